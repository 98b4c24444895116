"""Connections of clients to the ports of a pod, as ``kubectl port-forward`` asks for them: SPDY inside a WebSocket.

For each connection the client opens a stream for errors and one for data, with the same request id.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from holdfast.cluster.process.streams.spdy import Answer, Data, Framing, Opened, Reset, SpdyError
from holdfast.meta.exchange import Duplex

FORWARD_PROTOCOLS: Final = ("SPDY/3.1+portforward.k8s.io",)

Connect = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a port; raises `OSError`."""

_CHUNK: Final = 32 * 1024
_QUEUED: Final = 64
"""Pieces of data that wait for a program which does not read."""

_SECONDS: Final = 10.0
"""How long a program has to accept a connection."""


async def forward(duplex: Duplex, connect: Connect, *, pod: str) -> None:
    """Serve the connections of a client until it goes."""
    session = _Session(duplex, connect, pod)
    try:
        while (message := await duplex.receive()) is not None:
            await session.take(message)
    except SpdyError:
        pass  # what comes after it cannot be read either
    finally:
        await session.close()


class _Session:
    def __init__(self, duplex: Duplex, connect: Connect, pod: str) -> None:
        self._duplex = duplex
        self._connect = connect
        self._pod = pod
        self._framing = Framing()
        self._errors: dict[str, int] = {}
        self._queues: dict[int, asyncio.Queue[bytes | None]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def take(self, message: bytes) -> None:
        for event in self._framing.feed(message):
            match event:
                case Opened(stream, headers, _):
                    await self._duplex.send(self._framing.reply(stream))
                    self._open(stream, headers)
                case Data(stream, data, ended) if stream in self._queues:
                    if data:
                        await self._queues[stream].put(data)
                    if ended:
                        await self._queues[stream].put(None)
                case Reset(stream) if stream in self._tasks:
                    self._tasks[stream].cancel()
                case Answer(data):
                    await self._duplex.send(data)

    def _open(self, stream: int, headers: Mapping[str, str]) -> None:
        request, kind, port = (headers.get(name, "") for name in ("requestid", "streamtype", "port"))
        if kind == "error":
            self._errors[request] = stream
        elif kind == "data":
            self._queues[stream] = asyncio.Queue(_QUEUED)
            number = int(port) if port.isdecimal() else 0
            self._tasks[stream] = asyncio.ensure_future(self._serve(stream, self._errors.pop(request, 0), number))

    async def _serve(self, stream: int, errors: int, port: int) -> None:
        """One connection, from its start to its end."""
        said = b""
        try:
            said = await self._joined(stream, port)
        finally:
            self._queues.pop(stream, None)
            self._tasks.pop(stream, None)
            with contextlib.suppress(ConnectionError):
                await self._duplex.send(self._framing.data(stream, b"", ended=True))
                if errors:
                    await self._duplex.send(self._framing.data(errors, said, ended=True))

    async def _joined(self, stream: int, port: int) -> bytes:
        """Join a stream with a port until the program closes the connection; returns what went wrong."""
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await self._connect(port)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or "it does not answer"
            return f"error forwarding port {port} to pod {self._pod}: {why}; does a process of the pod listen?".encode()
        queue = self._queues[stream]
        sending = asyncio.ensure_future(_send(queue, writer))
        try:
            while data := await reader.read(_CHUNK):
                await self._duplex.send(self._framing.data(stream, data))
        except ConnectionError:
            pass  # the program has closed it
        finally:
            sending.cancel()
            writer.close()
            await asyncio.gather(sending, return_exceptions=True)
        return b""

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send(queue: asyncio.Queue[bytes | None], writer: asyncio.StreamWriter) -> None:
    """Send what the client sends, until it ends that."""
    try:
        while (data := await queue.get()) is not None:
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (ConnectionError, RuntimeError, OSError):
        while await queue.get() is not None:
            pass  # the program does not read any more
