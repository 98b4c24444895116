"""QEMU's machine protocol and the guest agent: JSON lines over a socket."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

LIMIT: Final = 16 << 20
"""The longest line that is read."""

Event = Callable[[str, dict[str, Any]], None]


class QmpError(Exception):
    """A command that QEMU refused, or a connection that ended."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


async def open_socket(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a socket; its path may be longer than an address of a socket can be."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{path.name}", limit=LIMIT)
    finally:
        os.close(folder)


class Qmp:
    """A connection to a running QEMU.  `on_event` sees every event; `closed` is done when the connection has ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_event: Event) -> None:
        self._reader, self._writer, self._on_event = reader, writer, on_event
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, path: Path, on_event: Event, timeout: float = 10.0) -> Qmp:
        async with asyncio.timeout(timeout):
            reader, writer = await open_socket(path)
            try:
                greeting = msgspec.json.decode(await reader.readline() or b"{}")
                if "QMP" not in greeting:
                    raise QmpError("Protocol", "QEMU did not greet")
                qmp = cls(reader, writer, on_event)
                qmp._reading = asyncio.create_task(qmp._read())
                await qmp.command("qmp_capabilities")
            except BaseException:
                writer.close()
                raise
            return qmp

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                message = msgspec.json.decode(line)
                if "event" in message:
                    self._on_event(message["event"], message.get("data", {}))
                    continue
                waiting = self._waiting.pop(message.get("id", 0), None)
                if waiting is None or waiting.done():
                    continue
                if "error" in message:
                    error = message["error"]
                    waiting.set_exception(QmpError(error.get("class", ""), error.get("desc", "")))
                else:
                    waiting.set_result(message.get("return"))
        except (OSError, ValueError, msgspec.DecodeError):
            pass
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(QmpError("Closed", "QEMU ended"))
            self._waiting.clear()
            self._writer.close()
            if not self.closed.done():
                self.closed.set_result(None)

    async def command(self, execute: str, timeout: float | None = 60.0, /, **arguments: Any) -> Any:
        if self.closed.done():
            raise QmpError("Closed", "QEMU ended")
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"execute": execute, "id": number}
        if arguments:
            message["arguments"] = {name.replace("_", "-"): value for name, value in arguments.items()}
        try:
            self._writer.write(msgspec.json.encode(message) + b"\n")
            async with asyncio.timeout(timeout):
                await self._writer.drain()
                return await waiting
        except OSError:
            raise QmpError("Closed", "QEMU ended") from None
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Leave QEMU alone: it goes on running."""
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading


async def ask_agent(path: Path, execute: str, timeout: float = 2.0, /, **arguments: Any) -> Any:
    """Ask the guest agent behind a socket.  Raises `QmpError` or `TimeoutError` if it does not answer."""
    async with asyncio.timeout(timeout):
        try:
            reader, writer = await open_socket(path)
        except OSError as error:
            raise QmpError("Closed", f"the agent's socket cannot be opened: {error.strerror}") from None
        try:
            number = int.from_bytes(os.urandom(4), "big") >> 1
            writer.write(msgspec.json.encode({"execute": "guest-sync", "arguments": {"id": number}}) + b"\n")
            while True:  # answers to questions of others may come first
                if (await _answer(reader)).get("return") == number:
                    break
            message: dict[str, Any] = {"execute": execute}
            if arguments:
                message["arguments"] = arguments
            writer.write(msgspec.json.encode(message) + b"\n")
            answer = await _answer(reader)
            if "error" in answer:
                raise QmpError(answer["error"].get("class", ""), answer["error"].get("desc", ""))
            return answer.get("return")
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> dict[str, Any]:
    while line := await reader.readline():
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.json.decode(line.strip(b"\xff\r\n ") or b"0")
            if isinstance(found, dict):
                return found
    raise QmpError("Closed", "the guest agent ended the connection")
