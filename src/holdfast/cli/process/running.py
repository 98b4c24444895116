"""The process that runs in a data directory: it holds a lock on a file there, which has its process id.

The system releases the lock when the process ends, so a file that is left behind does
no harm.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

_FILE: Final = "up.pid"
_PREFIX: Final = "holdfast-"
_EPHEMERAL: Final = "ephemeral"
"""The file that marks a directory of `for_now`: only such directories are ever removed."""

_LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at a process that is no child of this one, so that nothing announces its end."""


@contextlib.contextmanager
def announced(directory: Path) -> Iterator[None]:
    """Write and lock the file of this process in a directory until the block ends."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, unannounced = directory / _FILE, directory / f"{_FILE}.{os.getpid()}"
    with os.fdopen(os.open(unannounced, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # On a full disk it stays empty: the process runs, and only `holdfast down` does not find it.
        with contextlib.suppress(OSError):
            os.write(file.fileno(), f"{os.getpid()}\n".encode())
        # Locked before it is renamed, so no other process takes it for a file that was left behind.
        unannounced.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def for_now(parent: Path | None = None) -> Iterator[Path]:
    """A temporary directory; those that killed processes got here and left behind are removed."""
    place = parent or Path(gettempdir())
    for each in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another process removed it, or belongs to another user
            if _is_left_behind(each):
                shutil.rmtree(each, ignore_errors=True)
    with TemporaryDirectory(prefix=_PREFIX, dir=place) as name, announced(Path(name)):
        (Path(name) / _EPHEMERAL).touch()  # after the lock, so that no other process takes it for one left behind
        yield Path(name)


def _is_left_behind(directory: Path) -> bool:
    """Whether a directory is one of `for_now`, of a process of this user that was killed."""
    is_ours = directory.stat(follow_symlinks=False).st_uid == os.getuid()
    return is_ours and (directory / _EPHEMERAL).is_file() and process_in(directory) is None


def process_in(directory: Path) -> int | None:
    """The id of the process that runs in a directory, if one does."""
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
    """Stop the process of a directory; returns whether it stopped in time."""
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
