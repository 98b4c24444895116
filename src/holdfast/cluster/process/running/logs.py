"""Reads the logs that supervisors write, as ``kubectl logs`` asks for them.

A log is one or two files (`supervisor.Log`); every line has a time, the
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
"""How often a request with ``follow`` reads on, in seconds; Python has no notices of files that grow."""


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
    reading = _Reading.begin(path, options.tail)
    if reading is None:
        return
    try:
        while True:
            # Asked before reading: what is written until the run ends is read after that.
            more = options.follow and growing()
            lines = reading.take()
            if lines:
                yield lines
                # A long log must not keep others waiting.
                await asyncio.sleep(0)
            elif reading.moved():
                continue
            elif more:
                await asyncio.sleep(_GLANCE)
            else:
                break
    finally:
        reading.close()


class _Reading:
    """A log that is read from one file to the next: from the one that was set aside to the current one."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._rest = b""

    @classmethod
    def begin(cls, path: Path, tail: int | None) -> _Reading | None:
        """A log from the last `tail` lines on, or from where it begins; None if there is none."""
        aside = path.with_name(f"{path.name}.1")
        start, found = (0, 0) if tail is None else _last_lines(path, tail)
        first, offset = path, start
        if aside.exists() and (tail is None or found < tail):
            first, offset = aside, 0 if tail is None else _last_lines(aside, tail - found)[0]
        try:
            file = first.open("rb")
        except FileNotFoundError:
            return None
        file.seek(offset)
        return cls(file, path)

    def take(self) -> list[bytes]:
        """The next whole lines; none at the end."""
        while data := self._file.read(_BLOCK):
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines:
                return lines
        return []

    def moved(self) -> bool:
        """Whether there is more to take, because this file is not the current one: what is left of it, or the next."""
        try:
            fresh = self._path.open("rb")
        except FileNotFoundError:
            return False
        if os.path.samestat(os.fstat(self._file.fileno()), os.fstat(fresh.fileno())):
            fresh.close()
            return False
        # It may have grown after it was read and before it was set aside.
        if self._file.tell() < os.fstat(self._file.fileno()).st_size:
            fresh.close()
            return True
        self._file.close()
        self._file, self._rest = fresh, b""
        return True

    def close(self) -> None:
        self._file.close()


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
