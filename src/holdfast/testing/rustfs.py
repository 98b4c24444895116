"""A RustFS server in process, with nothing but the admin API by which pools leave a store.

    store = RustFS([volumes_of_a, volumes_of_b], access_key="…", secret_key="…", now=cluster.now)
    await store.send("http://anywhere", request)           # as a client's transport
    async with store.served() as url: ...                  # or over a socket

It checks signatures as a server does, and drains a pool within `takes`.  A test can make it fail, make it
unreachable, or change the number of a pool.  This module must not know its clients.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from holdfast.meta import times
from holdfast.meta.exchange import Request, Response

_BASE: Final = "/rustfs/admin/v3/pools/"
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), "
    r"SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)
_SKEW: Final = timedelta(minutes=15)


@dataclass(slots=True)
class StoredPool:
    """One pool of the store.

    id        its number
    volumes   the volumes that it was started with
    objects   how many there are to move
    began     when its drain began, if it did
    ended     how the drain ended, unless well: canceled or failed
    """

    id: int
    volumes: str
    objects: int = 1000
    began: datetime | None = None
    ended: str = ""


class RustFS:
    """The store.

    takes    how long it takes to drain a pool
    away     whether it is unreachable
    failing  pools whose drain fails half way, by their volumes
    asked    the requests, in order
    """

    def __init__(
        self,
        volumes: Sequence[str],
        *,
        access_key: str,
        secret_key: str,
        now: Callable[[], datetime],
        takes: timedelta = timedelta(minutes=5),
    ) -> None:
        self.pools = [StoredPool(number, each) for number, each in enumerate(volumes)]
        self.access_key = access_key
        self.now = now
        self.takes = takes
        self.away = False
        self.failing: set[str] = set()
        self.asked: list[str] = []
        self._secret_key = secret_key

    # --- requests

    async def send(self, url: str, request: Request) -> Response:
        """Answer a request to any URL."""
        if self.away:
            raise ConnectionRefusedError(f"{url} is unreachable")
        return self.handle(request)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """The store on a port of this machine, by its URL."""

        async def answer(request: web.Request) -> web.Response:
            query = {name: tuple(request.query.getall(name)) for name in request.query}
            headers = {name.lower(): value for name, value in request.headers.items()}
            given = self.handle(Request(request.method, request.path, query, headers, await request.read()))
            return web.Response(status=given.status, body=given.body, content_type=given.content_type)

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()

    def handle(self, request: Request) -> Response:
        if not self._authentic(request):
            return Response.of({"code": "SignatureDoesNotMatch"}, 403)
        path, asked = request.path.removeprefix(_BASE), request.param("pool")
        self.asked.append(f"{path} {asked}".strip())
        if (request.method, path) == ("GET", "list"):
            return Response.of([self._shown(pool, detailed=False) for pool in self.pools])
        pool = next((each for each in self.pools if str(each.id) == asked), None)
        if pool is None or not request.flag("by-id"):
            return Response.of({"code": "NoSuchPool"}, 404)
        match request.method, path:
            case "GET", "status":
                return Response.of(self._shown(pool, detailed=True))
            case "POST", "decommission":
                return self._start(pool)
            case "POST", "cancel":
                return self._cancel(pool)
            case _:
                return Response.of({"code": "NotImplemented"}, 501)

    # --- drains

    def begin(self, volumes: str) -> None:
        """Start the drain of a pool, as another client does."""
        self._start(next(pool for pool in self.pools if pool.volumes == volumes))

    def _start(self, pool: StoredPool) -> Response:
        if self._running(pool) or self._complete(pool) or len(self.pools) < 2:
            return Response.of({"code": "InvalidRequest"}, 400)
        pool.began, pool.ended = self.now(), ""
        return Response.of({})

    def _cancel(self, pool: StoredPool) -> Response:
        if not self._running(pool):
            return Response.of({"code": "InvalidRequest"}, 400)
        pool.ended = "canceled"
        return Response.of({})

    def _moved(self, pool: StoredPool) -> float:
        """How much of a pool has moved, from 0 to 1."""
        return 0.0 if pool.began is None else min((self.now() - pool.began) / self.takes, 1.0)

    def _ended(self, pool: StoredPool) -> str:
        fails = pool.volumes in self.failing and self._moved(pool) >= 0.5
        return "failed" if fails else pool.ended

    def _complete(self, pool: StoredPool) -> bool:
        return self._moved(pool) == 1.0 and not self._ended(pool)

    def _running(self, pool: StoredPool) -> bool:
        return pool.began is not None and not self._ended(pool) and not self._complete(pool)

    def _shown(self, pool: StoredPool, *, detailed: bool) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": pool.id, "cmdline": pool.volumes, "lastUpdate": times.format(self.now())}
        if pool.began is None or not detailed:
            return shown
        moved = int(pool.objects * self._moved(pool))
        ended = self._ended(pool)
        return shown | {
            "decommissionInfo": {
                "startTime": times.format(pool.began),
                "complete": self._complete(pool),
                "failed": ended == "failed",
                "canceled": ended == "canceled",
                "objectsDecommissioned": moved,
                "objectsDecommissionedFailed": 1 if ended == "failed" else 0,
                "bytesDecommissioned": moved * 1024,
                "bytesDecommissionedFailed": 1024 if ended == "failed" else 0,
            }
        }

    # --- authentication

    def _authentic(self, request: Request) -> bool:
        """Whether a request is signed with the key of the store, recently, and over its content."""
        given = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        stamp = request.headers.get("x-amz-date", "")
        if given is None or given["key"] != self.access_key or not given["scope"].startswith(stamp[:8]):
            return False
        try:
            sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=self.now().tzinfo)
        except ValueError:
            return False
        if abs(self.now() - sent) > _SKEW:
            return False
        if request.headers.get("x-amz-content-sha256") != hashlib.sha256(request.body).hexdigest():
            return False
        expected = self._signature(request, stamp, given["scope"], given["headers"].split(";"))
        return hmac.compare_digest(expected, given["signature"])

    def _signature(self, request: Request, stamp: str, scope: str, signed: Sequence[str]) -> str:
        pairs = sorted((name, value) for name, values in request.query.items() for value in values)
        lines = [
            request.method,
            quote(request.path),
            "&".join(f"{quote(a, safe='')}={quote(b, safe='')}" for a, b in pairs),
        ]
        lines += [f"{name}:{request.headers.get(name, '')}" for name in signed]
        lines += ["", ";".join(signed), request.headers["x-amz-content-sha256"]]
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key = f"AWS4{self._secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, digest))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
