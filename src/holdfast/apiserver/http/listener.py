"""The listener: serves HTTP/1.1 over TLS on a socket, and converts requests and responses to `exchange` values.

With `connections`, the only module that serves with aiohttp.  It bounds what a client can make the server hold: the
size of everything that is read, and the time for headers, bodies and writes.  It must not know what requests mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.web_protocol import RequestPayloadError
from multidict import CIMultiDict

from holdfast.apiserver.auth.authentication import certificate_user
from holdfast.apiserver.http import heads
from holdfast.apiserver.http.connections import UNREAD, Connection, Socket, abort, protocols
from holdfast.apiserver.http.gate import Handle, close
from holdfast.apiserver.http.refusals import refusal
from holdfast.meta.errors import BadRequest, InternalError, RequestEntityTooLarge, StatusError, Timeout
from holdfast.meta.exchange import ANONYMOUS, Request, Response, Upgrade

_log: Final = logging.getLogger("holdfast.apiserver.http.listener")

_MANY_HEADERS: Final = 1024
"""The parser accepts this much, so that the listener refuses larger requests with a Status."""


_SLICE: Final = 256 * 1024
"""The size of the chunks in which a response is written."""

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

    def _connection(self) -> Connection:
        bounds = self._bounds
        return Connection(
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
            read_bufsize=UNREAD,
        )

    async def _answer(self, incoming: web.BaseRequest) -> web.StreamResponse:
        connection = incoming.protocol
        assert isinstance(connection, Connection)
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
        path, query = heads.target(incoming.raw_path, self._bounds.parameters)
        headers = heads.headers(incoming)
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
        headers["Server"] = heads.SERVER
        for warning in heads.shortened(response.warnings):
            headers.add("Warning", heads.warning(warning))
        answer: web.StreamResponse
        if response.upgrade is not None:
            return await self._upgraded(incoming, response.upgrade)
        if response.stream is not None:
            answer = web.StreamResponse(status=response.status, headers=headers)
            answer.enable_chunked_encoding()
            await self._streamed(incoming, answer, response.stream)
        else:
            body = response.body
            if len(body) >= self._bounds.gzip_from and heads.takes_gzip(incoming):
                body = await asyncio.to_thread(heads.gzip, body)
                headers["Content-Encoding"] = "gzip"
                headers["Vary"] = "Accept-Encoding"
            large = len(body) > _SLICE and incoming.method != "HEAD"
            if large:
                answer = web.StreamResponse(status=response.status, headers=headers)
                answer.content_length = len(body)
            else:
                answer = web.Response(status=response.status, body=body, headers=headers)
            if self.draining or response.status in heads.CLOSING:
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
        spoken = protocols(incoming)
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
            await upgrade.run(Socket(answer))
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
            and response.status in heads.REASONS
            and incoming.version == HttpVersion11
            and incoming.keep_alive
            and incoming.method != "HEAD"
            and not self.draining
        )

    async def _written_at_once(self, incoming: web.BaseRequest, response: Response) -> web.StreamResponse:
        """Write head and body in one piece, without the layers of aiohttp that serve all other responses."""
        transport = incoming.transport
        if transport is not None and not transport.is_closing():
            transport.write(heads.head(response, int(self._now().timestamp())) + response.body)
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
            abort(incoming)  # an orderly end would mean to the client that the response is complete
        finally:
            self._streams.discard(task)
            await close(stream)

    @contextlib.contextmanager
    def _patience(self, incoming: web.BaseRequest) -> Iterator[None]:
        """Abort the connection if the enclosed code takes too long."""
        timer = self._loop.call_later(self._bounds.write_seconds, abort, incoming)
        try:
            yield
        finally:
            timer.cancel()


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
