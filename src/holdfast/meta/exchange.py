"""Requests and responses as values, independent of the transport.

The API server answers these values; the client asks with them, over a socket or in the same process.  Nothing here
knows HTTP libraries, sockets, or what a request means.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

JSON: Final = "application/json"

WEBSOCKET: Final = "websocket"
"""The value of the header ``upgrade`` by which a client asks for a connection."""

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
"""JSON bytes of a value; the one encoder of the server."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as authentication found out."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


class Request(msgspec.Struct, frozen=True):
    """One request.  Header names are lower-case; `path` is percent-decoded; `query` keeps every value.

    A request from a socket may come without its body, which `receive` then reads.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User = ANONYMOUS
    receive: Callable[[], Awaitable[bytes]] | None = None

    async def received(self) -> Request:
        """The request with its body."""
        return self if self.receive is None else replace(self, body=await self.receive(), receive=None)

    def param(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """Whether a boolean parameter is set: any value but these two does, as Kubernetes reads it."""
        return name in self.query and self.param(name).lower() not in ("0", "false")


class Duplex(Protocol):
    """A connection with messages in both directions, such as a WebSocket."""

    @property
    def protocol(self) -> str:
        """The protocol of the messages, which both sides agreed on."""
        ...

    async def receive(self) -> bytes | None:
        """The next message; None once the other side has closed the connection."""
        ...

    async def send(self, message: bytes) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A response that takes the connection over: the protocols that it speaks, and what it does until the end."""

    protocols: tuple[str, ...]
    run: Callable[[Duplex], Awaitable[None]]


@dataclass(slots=True)
class Response:
    """One response: a body, a stream of chunks that ends when the iterator does, or a connection.

    upgrade  what a server does with the connection
    duplex   the connection, on the side of a client that asked for one
    """

    status: int
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    content_type: str = JSON
    warnings: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    upgrade: Upgrade | None = None
    duplex: Duplex | None = None

    @classmethod
    def of(cls, value: Any, status: int = 200, *, warnings: tuple[str, ...] = ()) -> Response:
        return cls(status, encode(value), warnings=warnings)
