"""The transport to a server in the same process: a call, and no socket.

The server is any callable of `meta.exchange` values, so nothing here knows which
one.  Requests carry their token as they would over a socket, and are let in or
not by the same rules.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec.structs import replace

from holdfast.client.protocols import Unsent
from holdfast.client.streams import close
from holdfast.meta.exchange import Request, Response

Handle = Callable[[Request], Awaitable[Response]]


class InProcess:
    """Sends requests to `handle` with `token`; without one, as an anonymous user."""

    def __init__(self, handle: Handle, token: str = "") -> None:
        self._handle = handle
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._streams: set[_Stream] = set()
        self._closed = False

    async def send(self, request: Request) -> Response:
        if self._closed:
            raise Unsent("the client is closed; make another one")
        response = await self._handle(replace(request, headers={**self._headers, **request.headers}))
        if response.stream is not None:
            response.stream = _Stream(response.stream, self._streams)
        return response

    async def close(self) -> None:
        """Send nothing more, and end the streams that were given out."""
        self._closed = True
        for stream in tuple(self._streams):
            await stream.aclose()


class _Stream(AsyncIterator[bytes]):
    """A stream that is known to its transport until it is over."""

    def __init__(self, stream: AsyncIterator[bytes], opened: set[_Stream]) -> None:
        self._stream = stream
        self._opened = opened
        opened.add(self)

    async def __anext__(self) -> bytes:
        return await anext(self._stream)

    async def aclose(self) -> None:
        self._opened.discard(self)
        await close(self._stream)
