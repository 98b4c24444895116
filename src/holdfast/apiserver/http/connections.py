"""One connection of a client, as aiohttp serves it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import LineTooLong

from holdfast.apiserver.http.heads import SERVER
from holdfast.apiserver.http.refusals import refusal
from holdfast.meta.errors import BadRequest, InternalError, StatusError

_log: Final = logging.getLogger("holdfast.apiserver.http.listener")

UNREAD: Final = 16 * 1024
"""About how many bytes of a body are taken from the socket before the body is read."""


class Connection(web.RequestHandler):
    """One connection: refuses invalid HTTP with a Status, and bounds the time for headers."""

    __slots__ = ("_between", "_head_seconds", "_socket", "_timer", "_transports")

    def __init__(
        self, manager: web.Server, *, transports: set[asyncio.Transport], head_seconds: float, **settings: Any
    ) -> None:
        super().__init__(manager, **settings)
        self._transports = transports
        self._socket: asyncio.Transport | None = None
        """Kept until the connection is lost, since the base class drops it on close."""
        self._head_seconds = head_seconds
        self._between = True
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Not checked: the transports of other event loops are not subclasses.
        self._socket = cast("asyncio.Transport", transport)
        self._transports.add(self._socket)
        # Transports with TLS keep 256 KiB, which many clients that send a body would multiply.
        if (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:
            limit(high=UNREAD)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._between and self._timer is None:
            self._expect_head()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.head_is_complete()
        if self._socket is not None:
            self._transports.discard(self._socket)
        super().connection_lost(exc)

    def head_is_complete(self) -> None:
        self._between = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def awaits_head(self) -> None:
        """Start the timeout with the first byte of the next request."""
        self._between = True

    def _expect_head(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._head_seconds, self.force_close)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        response = refusal(self._refusal(status, exc))
        # aiohttp takes what it could not parse for HTTP/1.0, in which nothing is said of a connection that is closed.
        headers = {"Content-Type": response.content_type, "Connection": "close", "Server": SERVER}
        answer = web.Response(status=response.status, body=response.body, headers=headers)
        answer.force_close()
        return answer

    def _refusal(self, status: int, exc: BaseException | None) -> StatusError:
        if isinstance(exc, LineTooLong):
            # The parser's two errors differ in their limits alone.
            if exc.args[1] == self.max_line_size:
                return BadRequest(f"the URL is too long: limit is {self.max_line_size}", code=414)
            return BadRequest(f"a header is too large: limit is {self.max_field_size}", code=431)
        if status == 400:
            return BadRequest("the request is not valid HTTP/1.1")
        _log.error("response failed", exc_info=exc)
        return InternalError.of("an unexpected error")


class Socket:
    """A WebSocket as a `Duplex`."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    @property
    def protocol(self) -> str:
        return self._socket.ws_protocol or ""

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            return bytes(message.data)
        return str(message.data).encode() if message.type is WSMsgType.TEXT else None

    async def send(self, message: bytes) -> None:
        await self._socket.send_bytes(message)

    async def close(self) -> None:
        await self._socket.close()


def protocols(incoming: web.BaseRequest) -> set[str]:
    """The protocols that a client offers for a WebSocket."""
    offered = incoming.headers.getall("Sec-WebSocket-Protocol", [])
    return {each.strip() for line in offered for each in line.split(",")}


def abort(incoming: web.BaseRequest) -> None:
    if incoming.transport is not None:
        incoming.transport.abort()
