"""Which process runs in a data directory: it holds a lock there, and says its number.

The lock goes with the process, however it ends, so a number that was left behind
misleads nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FILE: Final = "up.pid"
_LOOK_AGAIN: Final = 0.05


@contextlib.contextmanager
def announced(directory: Path) -> Iterator[None]:
    """Say that this process runs in a directory, for as long as the block lasts."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / _FILE
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def process_in(directory: Path) -> int | None:
    """The number of the process that runs in a directory, if one does."""
    try:
        file = (directory / _FILE).open()
    except FileNotFoundError:
        return None
    with file:
        if _is_free(file.fileno()):
            return None
        text = file.read().strip()
    return int(text) if text.isdigit() else None


def stop(directory: Path, *, within: float) -> bool:
    """Ask the process of a directory to end; whether it has ended in time."""
    number = process_in(directory)
    if number is None:
        return True
    deadline = time.monotonic() + within
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGTERM)
    while process_in(directory) == number:
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_AGAIN)
    return True


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True
