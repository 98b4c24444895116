"""The admin API of RustFS, as far as pools leave a store: its pools, and the drain of each.

`Admin` is the interface that the operator needs; `Store` is its client over HTTP.  Every error is an `AdminError`:
a code and a sentence without secrets.  This module must not know Tenants.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from holdfast.meta.exchange import Request, Response
from holdfast.meta.signatures import Credentials, signed

T = TypeVar("T")

BASE: Final = "/rustfs/admin/v3"

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=3)


class AdminError(Exception):
    """The store could not be asked, or refused."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Draining(msgspec.Struct, frozen=True, rename="camel"):
    """The drain of a pool."""

    start_time: str | None = None
    complete: bool = False
    failed: bool = False
    canceled: bool = False
    objects_decommissioned: int = 0
    objects_decommissioned_failed: int = 0
    bytes_decommissioned: int = 0
    bytes_decommissioned_failed: int = 0

    @property
    def over(self) -> bool:
        return self.complete or self.failed or self.canceled


class StorePool(msgspec.Struct, frozen=True, rename="camel"):
    """A pool as the store reports it: its number, and the volumes that it was started with."""

    id: int
    cmdline: str
    decommission_info: Draining | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The store could not be asked."""

    reason: str
    message: str


Survey: TypeAlias = tuple[StorePool, ...] | Unavailable
"""What a store reports of its pools."""


class Admin(Protocol):
    """The calls to a store; they raise `AdminError`."""

    async def pools(self) -> tuple[StorePool, ...]:
        """All pools; some servers leave out their drains."""
        ...

    async def pool(self, pool: int) -> StorePool:
        """One pool, with its drain."""
        ...

    async def start(self, pool: int) -> None: ...

    async def cancel(self, pool: int) -> None: ...


Connect: TypeAlias = Callable[[str, Credentials], Admin]
"""Creates the `Admin` of the store at a URL, with these credentials."""

Send: TypeAlias = Callable[[str, Request], Awaitable[Response]]
"""Sends one request to a URL; raises `AdminError` where no answer comes."""


_pools: Final = msgspec.json.Decoder(tuple[StorePool, ...])
_pool: Final = msgspec.json.Decoder(StorePool)


class Store:
    """The client of a store, which signs its requests."""

    def __init__(self, url: str, credentials: Credentials, *, send: Send, now: Callable[[], datetime]) -> None:
        self._url = url.rstrip("/")
        self._credentials = credentials
        self._send = send
        self._now = now

    async def pools(self) -> tuple[StorePool, ...]:
        return _decoded(_pools, await self._ask("GET", "/pools/list"))

    async def pool(self, pool: int) -> StorePool:
        return _decoded(_pool, await self._ask("GET", "/pools/status", pool=pool))

    async def start(self, pool: int) -> None:
        await self._ask("POST", "/pools/decommission", pool=pool)

    async def cancel(self, pool: int) -> None:
        await self._ask("POST", "/pools/cancel", pool=pool)

    async def _ask(self, method: str, path: str, *, pool: int | None = None) -> bytes:
        query = {} if pool is None else {"pool": (str(pool),), "by-id": ("true",)}
        plain = Request(method, BASE + path, query)
        headers = signed(plain, self._credentials, host=urlsplit(self._url).netloc, now=self._now())
        response = await self._send(self._url, Request(method, plain.path, query, headers))
        if response.status in (401, 403):
            raise AdminError("RustfsAccessDenied", f"the store refuses the root credentials ({response.status})")
        if response.status >= 300:
            raise AdminError("RustfsAdminFailed", f"{method} {path} was answered with {response.status}")
        return response.body


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise AdminError("RustfsAdminFailed", f"the answer of the store cannot be read: {error}") from error


async def send_over_http(url: str, request: Request) -> Response:
    """Send one request on a connection of its own: stores are asked rarely."""
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as session,
            session.request(
                request.method,
                url + request.path,
                params=[(name, value) for name, values in request.query.items() for value in values],
                headers={name: value for name, value in request.headers.items() if name != "host"},
                allow_redirects=False,
            ) as answer,
        ):
            return Response(answer.status, await answer.read())
    except (aiohttp.ClientError, OSError) as error:
        raise AdminError("RustfsUnreachable", f"{url} does not answer: {type(error).__name__}") from error


def connect(url: str, credentials: Credentials) -> Admin:
    """The store at a URL, over HTTP."""
    return Store(url, credentials, send=send_over_http, now=lambda: datetime.now(UTC))
