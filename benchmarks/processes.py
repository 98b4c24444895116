"""Processes that are measured from outside: what they have used, as the kernel counts it (Linux)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from benchmarks.sizes import sized

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LOOK_SECONDS: Final = 0.2
"""Between two looks at what another process has used or written, which nothing announces."""
_LOOKS: Final = sized(50, 5)
_MOST: Final = 1_000_000
"""Bytes of a log that are read; the place where its writer is must not be moved."""
_TOLD: Final = 2_000
"""Characters of a log that are shown when something went wrong."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used."""

    cpu_seconds: float
    memory_bytes: float


def usage(pid: int) -> Usage:
    """What a process has used so far."""
    home = Path("/proc", str(pid))
    # The name of the program, in parentheses, may hold anything; what is counted comes after it.
    fields = (home / "stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    resident = int((home / "statm").read_text().split()[1])
    return Usage((user + system) / _TICKS, resident * _PAGE)


def usage_of_all(pids: Sequence[int]) -> Usage:
    """What several processes have used together."""
    each = [usage(pid) for pid in pids]
    return Usage(sum(one.cpu_seconds for one in each), sum(one.memory_bytes for one in each))


class Running:
    """Processes that run already; without any, nothing is known of what they use."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids

    def usage(self) -> Usage:
        return usage_of_all(self._pids)

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
        """Return when the output has a text; that of a process which runs already is not waited for."""

    def ended(self) -> str:
        """End the process, and return its output; one that ran already goes on, and its output is not known."""
        return ""


class Process(Running):
    """A child, while it runs."""

    def __init__(self, child: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        super().__init__(child.pid)
        self._child = child
        self._output = output

    async def said(self, text: str) -> None:
        while text not in self._said():
            if self._child.poll() is not None:
                raise RuntimeError("the process ended; its log above says why")
            await asyncio.sleep(_LOOK_SECONDS / 10)

    def ended(self) -> str:
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
