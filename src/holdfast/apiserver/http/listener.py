"""The listener: serves HTTP/1.1 over TLS on a socket, and converts requests and responses to `exchange` values.

The only module that serves with aiohttp.  It bounds what a client can make the server hold: the size of everything
that is read, and the time for headers, bodies and writes.  It must not know what requests mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote

from aiohttp import HttpVersion11, StreamReader, WSMsgType, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestPayloadError
from multidict import CIMultiDict

from holdfast.apiserver.auth.authentication import certificate_user
from holdfast.apiserver.http.gate import PEER, Handle, close
from holdfast.apiserver.http.refusals import refusal
from holdfast.meta.errors import BadRequest, InternalError, RequestEntityTooLarge, StatusError, Timeout
from holdfast.meta.exchange import ANONYMOUS, Request, Response, Upgrade

_log: Final = logging.getLogger("holdfast.apiserver.http.listener")

_MANY_HEADERS: Final = 1024
"""The parser accepts this much, so that the listener refuses larger requests with a Status."""


_SLICE: Final = 256 * 1024
"""The size of the chunks in which a response is written."""

_UNREAD: Final = 16 * 1024
"""About how many bytes of a body are taken from the socket before the body is read."""

_SERVER: Final = "holdfast"

_HEARTBEAT: Final = 30.0
"""Seconds between the pings on a WebSocket, by which a client that is gone is noticed."""

_CLOSE_SECONDS: Final = 0.1
"""Seconds to wait for the TLS close of a client; many never send one, and their sockets would stay open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits for a client: sizes and times."""

    body: int = 3 * 1024 * 1024
    url: int = 32 * 1024
    header: int = 16 * 1024
    headers: int = 128
    parameters: int = 256
    head_seconds: float = 15.0
    body_seconds: float = 30.0
    idle_seconds: float = 180.0
    write_seconds: float = 30.0
    handshake_seconds: float = 10.0
    gzip_from: int = 128 * 1024


class Listener:
    """A bound socket and the connections on it."""

    def __init__(self, handle: Handle, *, bounds: Bounds, now: Callable[[], datetime]) -> None:
        self._handle = handle
        self._bounds = bounds
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._web = web.Server(self._answer, handler_cancellation=True)
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.Task[Any]] = set()
        self._transports: set[asyncio.Transport] = set()
        self.under_way = 0
        """The number of requests that are being read, processed or answered."""
        self._quiet = asyncio.Event()
        self.draining = False
        self.address = ("", 0)
        """Host and port, once it listens."""

    async def listen(self, bind: str, port: int, *, tls: ssl.SSLContext) -> None:
        """Start to listen; raises `OSError` if the address cannot be bound."""
        self._server = await self._loop.create_server(
            self._connection,
            bind,
            port,
            ssl=tls,
            backlog=512,
            ssl_handshake_timeout=self._bounds.handshake_seconds,
        )
        host, bound, *_ = self._server.sockets[0].getsockname()
        self.address = (host, bound)

    async def drain(self, seconds: float = 10.0) -> None:
        """Accept no more connections, end the streams, let running requests finish in time, and close."""
        self.draining = True
        if self._server is not None:
            self._server.close()
        for task in tuple(self._streams):
            task.cancel()
        if self.under_way:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), seconds)
        self._web.pre_shutdown()
        await self._web.shutdown(_CLOSE_SECONDS)
        if self._transports:
            await asyncio.sleep(_CLOSE_SECONDS)
        for transport in tuple(self._transports):
            transport.abort()
        # The loop closes aborted transports on its next iteration.
        await asyncio.sleep(0)

    def _connection(self) -> _Connection:
        bounds = self._bounds
        return _Connection(
            self._web,
            transports=self._transports,
            head_seconds=bounds.head_seconds,
            loop=self._loop,
            access_log=None,
            logger=_log,
            keepalive_timeout=bounds.idle_seconds,
            lingering_time=5.0,
            max_line_size=bounds.url,
            max_field_size=bounds.header,
            max_headers=_MANY_HEADERS,
            auto_decompress=False,
            read_bufsize=_UNREAD,
        )

    async def _answer(self, incoming: web.BaseRequest) -> web.StreamResponse:
        connection = incoming.protocol
        assert isinstance(connection, _Connection)
        connection.head_is_complete()
        self.under_way += 1
        try:
            return await self._written(incoming, await self._response(incoming))
        finally:
            connection.awaits_head()
            self.under_way -= 1
            if self.draining and not self.under_way:
                self._quiet.set()

    async def _response(self, incoming: web.BaseRequest) -> Response:
        try:
            return await self._handle(self._request(incoming))
        except StatusError as error:
            return refusal(error)
        except Exception:
            _log.exception("request failed")
            return refusal(InternalError.of("an unexpected error"))

    def _request(self, incoming: web.BaseRequest) -> Request:
        if len(incoming.headers) > self._bounds.headers:
            raise BadRequest(f"too many headers: limit is {self._bounds.headers}", code=431)
        path, query = _target(incoming.raw_path, self._bounds.parameters)
        headers = _headers(incoming)
        transport = incoming.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        return Request(
            incoming.method,
            path,
            query,
            headers,
            user=(certificate_user(certificate, self._now()) if certificate else None) or ANONYMOUS,
            # Read only for a client that may send it: until then its bytes stay in the socket.
            receive=partial(self._body, incoming) if incoming.body_exists else None,
        )

    async def _body(self, incoming: web.BaseRequest) -> bytes:
        limit = self._bounds.body
        if (incoming.content_length or 0) > limit:
            raise RequestEntityTooLarge.of(limit)
        if incoming.headers.get("Expect", "").lower() == "100-continue":
            await incoming.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            incoming.writer.output_size = 0
        try:
            # A small body comes with its headers.
            came = incoming.content.is_eof()
            body = incoming.content.read_nowait() if came else await self._collected(incoming.content)
        except (RequestPayloadError, ConnectionError):
            raise BadRequest("the length of the body differs from its headers") from None
        if len(body) > limit:
            raise RequestEntityTooLarge.of(limit)
        return body

    async def _collected(self, content: StreamReader) -> bytes:
        """A body that is still to come, within its time and size."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._bounds.body_seconds):
                while chunk := await content.readany():
                    body += chunk
                    if len(body) > self._bounds.body:
                        break
        except TimeoutError:
            raise Timeout("the body did not arrive in time", code=408) from None
        return bytes(body)

    async def _written(self, incoming: web.BaseRequest, response: Response) -> web.StreamResponse:
        if self._is_plain(incoming, response):
            return await self._written_at_once(incoming, response)
        headers = CIMultiDict(response.headers)
        headers["Content-Type"] = response.content_type
        headers["Cache-Control"] = "no-cache, private"
        headers["Server"] = _SERVER
        for warning in _shortened(response.warnings):
            headers.add("Warning", _warning(warning))
        answer: web.StreamResponse
        if response.upgrade is not None:
            return await self._upgraded(incoming, response.upgrade)
        if response.stream is not None:
            answer = web.StreamResponse(status=response.status, headers=headers)
            answer.enable_chunked_encoding()
            await self._streamed(incoming, answer, response.stream)
        else:
            body = response.body
            if len(body) >= self._bounds.gzip_from and _takes_gzip(incoming):
                body = await asyncio.to_thread(_gzip, body)
                headers["Content-Encoding"] = "gzip"
                headers["Vary"] = "Accept-Encoding"
            large = len(body) > _SLICE and incoming.method != "HEAD"
            if large:
                answer = web.StreamResponse(status=response.status, headers=headers)
                answer.content_length = len(body)
            else:
                answer = web.Response(status=response.status, body=body, headers=headers)
            if self.draining or response.status in _CLOSING:
                answer.force_close()
            if large:
                await self._sliced(incoming, answer, body)
        # Not left to aiohttp, which would wait without limit for a client that does not read.
        with contextlib.suppress(ConnectionError), self._patience(incoming):
            await answer.prepare(incoming)
            await answer.write_eof()
        return answer

    async def _upgraded(self, incoming: web.BaseRequest, upgrade: Upgrade) -> web.StreamResponse:
        """Serve a WebSocket until one of the sides closes it, or the server stops."""
        spoken = _protocols(incoming)
        answer = web.WebSocketResponse(
            protocols=upgrade.protocols,
            heartbeat=_HEARTBEAT,
            compress=False,
            max_msg_size=self._bounds.body,
            timeout=_CLOSE_SECONDS,
        )
        if not answer.can_prepare(cast("web.Request", incoming)) or not spoken & {*upgrade.protocols}:
            known = ", ".join(upgrade.protocols)
            why = f"Upgrade request required: this subresource needs a WebSocket that speaks one of {known}"
            return await self._written(incoming, refusal(BadRequest(why)))
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await answer.prepare(cast("web.Request", incoming))
            await upgrade.run(_Socket(answer))
        except asyncio.CancelledError:
            if not self.draining or task.uncancel():
                raise
        except ConnectionError:
            pass  # the client disconnected
        except Exception:
            _log.exception("connection failed")
        finally:
            self._streams.discard(task)
        with contextlib.suppress(ConnectionError):
            await answer.close()
        return answer

    def _is_plain(self, incoming: web.BaseRequest, response: Response) -> bool:
        """Whether a response is one small body on a connection that stays open, as most are."""
        return (
            response.stream is None
            and response.upgrade is None
            and len(response.body) < min(self._bounds.gzip_from, _SLICE)
            and not response.warnings
            and response.status in _REASONS
            and incoming.version == HttpVersion11
            and incoming.keep_alive
            and incoming.method != "HEAD"
            and not self.draining
        )

    async def _written_at_once(self, incoming: web.BaseRequest, response: Response) -> web.StreamResponse:
        """Write head and body in one piece, without the layers of aiohttp that serve all other responses."""
        transport = incoming.transport
        if transport is not None and not transport.is_closing():
            transport.write(_head(response, int(self._now().timestamp())) + response.body)
            if transport.get_write_buffer_size():
                with contextlib.suppress(ConnectionError), self._patience(incoming):
                    await incoming.writer.drain()
        return _SENT

    async def _sliced(self, incoming: web.BaseRequest, answer: web.StreamResponse, body: bytes) -> None:
        """Write a body in chunks: encrypted as a whole, it would be in memory three times."""
        with contextlib.suppress(ConnectionError):
            await answer.prepare(incoming)
            for at in range(0, len(body), _SLICE):
                with self._patience(incoming):
                    await answer.write(memoryview(body)[at : at + _SLICE])

    async def _streamed(
        self, incoming: web.BaseRequest, answer: web.StreamResponse, stream: AsyncIterator[bytes]
    ) -> None:
        """Write chunks as they come, until the stream ends, the client disconnects, or the server stops."""
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await answer.prepare(incoming)
            if incoming.method == "HEAD" or self.draining:
                return
            async for chunk in stream:
                with self._patience(incoming):
                    await answer.write(chunk)
        except asyncio.CancelledError:
            if not self.draining or task.uncancel():
                raise
        except ConnectionError:
            pass  # the client disconnected
        except Exception:
            _log.exception("stream failed")
            _abort(incoming)  # an orderly end would mean to the client that the response is complete
        finally:
            self._streams.discard(task)
            await close(stream)

    @contextlib.contextmanager
    def _patience(self, incoming: web.BaseRequest) -> Iterator[None]:
        """Abort the connection if the enclosed code takes too long."""
        timer = self._loop.call_later(self._bounds.write_seconds, _abort, incoming)
        try:
            yield
        finally:
            timer.cancel()


class _Connection(web.RequestHandler):
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
            limit(high=_UNREAD)
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
        headers = {"Content-Type": response.content_type, "Connection": "close", "Server": _SERVER}
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


class _Socket:
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


def _protocols(incoming: web.BaseRequest) -> set[str]:
    """The protocols that a client offers for a WebSocket."""
    offered = incoming.headers.getall("Sec-WebSocket-Protocol", [])
    return {each.strip() for line in offered for each in line.split(",")}


def _abort(incoming: web.BaseRequest) -> None:
    if incoming.transport is not None:
        incoming.transport.abort()


_CLOSING: Final = frozenset({408, 413, 431})
"""Responses to requests whose remaining body is not read."""

_REASONS: Final = {
    status.value: status.phrase for status in HTTPStatus if status >= 200 and status not in (204, 304, *_CLOSING)
}
"""The phrases of the responses that have a body and leave the connection open."""


class _Sent(web.StreamResponse):
    """A response that has been written: nothing is left to do for aiohttp."""

    def __init__(self) -> None:
        super().__init__()
        self._keep_alive = True

    async def prepare(self, request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


_SENT: Final = _Sent()


def _head(response: Response, now: int) -> bytes:
    """The status line and the headers of a response; control characters would end a header early."""
    lines = [
        f"HTTP/1.1 {response.status} {_REASONS[response.status]}",
        *(f"{name}: {_CONTROL.sub(' ', value)}" for name, value in response.headers.items()),
        f"Content-Type: {response.content_type}",
        "Cache-Control: no-cache, private",
        f"Content-Length: {len(response.body)}",
        f"Date: {_date(now)}",
        f"Server: {_SERVER}",
        "\r\n",
    ]
    return "\r\n".join(lines).encode()


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@lru_cache(maxsize=1)
def _date(now: int) -> str:
    return formatdate(now, usegmt=True)


def _target(raw: str, most: int) -> tuple[str, Mapping[str, tuple[str, ...]]]:
    """Path and query of a request's target, decoded."""
    if not raw.startswith("/"):
        raise BadRequest("the request target must be a path")
    path, _, text = raw.partition("?")
    path = _text(unquote(path, errors="replace"))
    if not text:
        return path, {}
    query: dict[str, tuple[str, ...]] = {}
    try:
        pairs = parse_qsl(text.partition("#")[0], keep_blank_values=True, max_num_fields=most)
    except ValueError:
        raise BadRequest(f"too many query parameters: limit is {most}") from None
    for name, value in pairs:
        query[_text(name)] = (*query.get(name, ()), _text(value))
    return path, query


def _headers(incoming: web.BaseRequest) -> dict[str, str]:
    """Headers by their lower-case name.

    Repeated headers are joined by commas; those of impersonation by lines, since names may contain commas.
    """
    headers: dict[str, str] = {}
    for key, raw in incoming.headers.items():
        name, value = key.lower(), _text(raw)
        if name in headers:
            separator = "\n" if name.startswith("impersonate-") else ", "
            value = f"{headers[name]}{separator}{value}"
        headers[name] = value
    headers[PEER] = incoming.remote or ""
    return headers


def _text(value: str) -> str:
    """Text with bytes that are not UTF-8 replaced."""
    return value if value.isascii() else value.encode(errors="surrogateescape").decode(errors="replace")


def _takes_gzip(incoming: web.BaseRequest) -> bool:
    return any(
        each.split(";")[0].strip() == "gzip" and not each.replace(" ", "").endswith(";q=0")
        for each in incoming.headers.get("Accept-Encoding", "").split(",")
    )


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(level=1, wbits=31)
    return compressor.compress(body) + compressor.flush()


_MOST_WARNING: Final = 4096
_SHORT_WARNING: Final = 256
"""The characters of all warnings together; where they have more, each has at most as many as the second says."""


def _shortened(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings as far as clients read headers, cut as Kubernetes cuts them."""
    if sum(map(len, warnings)) <= _MOST_WARNING:
        yield from warnings
        return
    left = _MOST_WARNING
    for warning in warnings:
        text = warning[:_SHORT_WARNING]
        left -= len(text)
        if left < 0:
            return
        yield text


def _warning(text: str) -> str:
    """A warning in the form of the Warning header: one line, quoted."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    escaped = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


async def listen(
    handle: Handle,
    bind: str,
    *,
    port: int = 0,
    tls: ssl.SSLContext,
    bounds: Bounds | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Listener:
    """Serve `handle` on an address; port 0 is any free one."""
    listener = Listener(handle, bounds=bounds or Bounds(), now=now)
    await listener.listen(bind, port, tls=tls)
    return listener
