"""Reads the logs that supervisors write, as ``kubectl logs`` asks for them.

A log is one or two files (`process_supervisor.Log`); every line has a time, the
stream it came from and whether it is whole.  Nothing is read before it is sent, so
that a log of any length costs little, and only a reader who follows waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.meta import times
from holdfast.meta.errors import BadRequest, MalformedError
from holdfast.meta.exchange import Request

_BLOCK: Final = 64 * 1024
_GLANCE: Final = 0.1
"""How often a reader who follows looks for more, in seconds; nobody else looks at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is wanted of a log."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit: int | None = None

    @classmethod
    def of(cls, request: Request, now: datetime) -> Options:
        seconds, moment = _number(request, "sinceSeconds"), request.param("sinceTime")
        try:
            since = times.parse_micro(moment) if moment else None
        except MalformedError as error:
            raise BadRequest(f"sinceTime: {error}") from None
        if seconds is not None:
            since = now - timedelta(seconds=seconds)
        return cls(
            container=request.param("container"),
            follow=request.flag("follow"),
            previous=request.flag("previous"),
            timestamps=request.flag("timestamps"),
            tail=_number(request, "tailLines"),
            since=since,
            limit=_number(request, "limitBytes"),
        )


def _number(request: Request, name: str) -> int | None:
    text = request.param(name)
    if not text:
        return None
    if not text.isdecimal():
        raise BadRequest(f"{name}: {text!r} is not a number; write how many, such as 100")
    return int(text)


async def read(path: Path, options: Options, *, growing: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The lines that are asked for, in pieces; to the end of the run if they are followed.

    `growing` says whether more may come.
    """
    left = options.limit
    async for lines in _lines(path, options, growing=growing):
        text = b"".join(_shown(line, options) for line in lines if _is_wanted(line, options))
        if left is not None:
            text = text[:left]
            left -= len(text)
        if text:
            yield text
        if left == 0:
            return


async def _lines(path: Path, options: Options, *, growing: Callable[[], bool]) -> AsyncIterator[list[bytes]]:
    aside = path.with_name(f"{path.name}.1")
    skip = _skipped(aside, path, options.tail)
    for file_path, start in ((aside, skip[0]), (path, skip[1])):
        try:
            file = file_path.open("rb")
        except FileNotFoundError:
            continue
        file.seek(start)
        reading = _Reading(file, path)
        try:
            while True:
                # Asked before reading: what is written until the run ends is read after that.
                more = file_path == path and options.follow and growing()
                lines = reading.take()
                if lines:
                    yield lines
                    # A long log must not keep others waiting.
                    await asyncio.sleep(0)
                elif reading.replaced():
                    continue
                elif more:
                    await asyncio.sleep(_GLANCE)
                else:
                    break
        finally:
            reading.close()


class _Reading:
    """A log file that is read, and may be set aside for a new one meanwhile."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._rest = b""

    def take(self) -> list[bytes]:
        """The next whole lines; none at the end."""
        data = self._file.read(_BLOCK)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines or ([] if not data else self.take())

    def replaced(self) -> bool:
        """Whether there is a new file in place of this one; it is read from now on."""
        try:
            fresh = self._path.open("rb")
        except FileNotFoundError:
            return False
        if os.path.samestat(os.fstat(self._file.fileno()), os.fstat(fresh.fileno())):
            fresh.close()
            return False
        self._file.close()
        self._file, self._rest = fresh, b""
        return True

    def close(self) -> None:
        self._file.close()


def _skipped(aside: Path, path: Path, tail: int | None) -> tuple[int, int]:
    """Where to begin in both files to see the last `tail` lines."""
    if tail is None:
        return 0, 0
    start, found = _last_lines(path, tail)
    return _last_lines(aside, tail - found)[0], start


def _last_lines(path: Path, count: int) -> tuple[int, int]:
    """Where the last `count` lines of a file begin, and how many there are, from the end backwards."""
    try:
        with path.open("rb") as file:
            end = position = os.fstat(file.fileno()).st_size
            found = -1  # the end of the last line is not yet one
            while position > 0 and found < count:
                size = min(_BLOCK, position)
                position -= size
                file.seek(position)
                block = file.read(size)
                at = len(block)
                while found < count and (at := block.rfind(b"\n", 0, at)) >= 0:
                    found += 1
                if found == count:
                    return position + at + 1, count
            return (0, found + 1) if end else (0, 0)
    except FileNotFoundError:
        return 0, 0


def last_words(path: Path, *, lines: int = 80, limit: int = 2048) -> str:
    """The end of a log, for a container that says nothing else about why it failed."""
    try:
        with path.open("rb") as file:
            file.seek(_last_lines(path, lines)[0])
            text = b"".join(_shown(line, Options()) for line in file.read().splitlines())
    except FileNotFoundError:
        return ""
    return text[-limit:].decode(errors="replace")


def _is_wanted(line: bytes, options: Options) -> bool:
    if options.since is None:
        return True
    stamp = line.partition(b" ")[0].decode()
    return times.parse_micro(stamp) >= options.since


def _shown(line: bytes, options: Options) -> bytes:
    stamp, _, rest = line.partition(b" ")
    whole, _, text = rest.partition(b" ")[2].partition(b" ")
    ended = text + b"\n" if whole == b"F" else text
    return stamp + b" " + ended if options.timestamps else ended
