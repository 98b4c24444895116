"""Processes that are measured from outside: what they have used, as the kernel counts it (Linux)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from benchmarks.load import Usage
from benchmarks.sizes import sized

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LOOK_SECONDS: Final = 0.2
_LOOKS: Final = sized(50, 5)
_MOST: Final = 1_000_000
"""Bytes of a log that are read; the place where its writer is must not be moved."""
_TOLD: Final = 2_000
"""Characters of a log that are shown when something went wrong."""


def usage(pid: int) -> Usage:
    """What a process has used so far."""
    home = Path("/proc", str(pid))
    # The name of the program, in parentheses, may hold anything; what is counted comes after it.
    fields = (home / "stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    resident = int((home / "statm").read_text().split()[1])
    return Usage((user + system) / _TICKS, resident * _PAGE)


class Process:
    """A child, while it runs."""

    def __init__(self, child: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self._child = child
        self._output = output

    def usage(self) -> Usage:
        return usage(self._child.pid)

    async def settled(self) -> Usage:
        """What it has used once it has nothing more to do, or after ten seconds."""
        used = self.usage()
        for _ in range(_LOOKS):
            await asyncio.sleep(_LOOK_SECONDS)
            before, used = used, self.usage()
            if used.cpu_seconds - before.cpu_seconds <= 1 / _TICKS:
                break
        return used

    async def said(self, text: str) -> None:
        """Until its output has a text."""
        while text not in self._said():
            if self._child.poll() is not None:
                raise RuntimeError("the process ended; its log above says why")
            await asyncio.sleep(_LOOK_SECONDS / 10)

    def ended(self) -> str:
        """Have it end, and return all that it said."""
        self._child.terminate()
        self._child.wait()
        return self._said()

    def _said(self) -> str:
        return os.pread(self._output.fileno(), _MOST, 0).decode(errors="replace")


@contextlib.contextmanager
def started(command: Sequence[str], **environment: str) -> Iterator[Process]:
    """A process, until the end of the block; of one in whose time something fails, the end of its log is shown."""
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}) as child,
    ):
        process = Process(child, output)
        try:
            yield process
        except BaseException:
            print(process.ended()[-_TOLD:])
            raise
        finally:
            child.terminate()
