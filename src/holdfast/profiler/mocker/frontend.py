"""A router before workers: one OpenAI-compatible address, and the least loaded worker behind it for each request.

Where there are prefill and decode workers, a request goes to one of each: the stream of the prefill worker has the
first token, that of the decode worker the others.  A worker that cannot be reached is left out for a while and the
request goes to another, as long as the client has been sent nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiohttp
import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from holdfast.profiler.mocker import openai
from holdfast.profiler.mocker.openai import Refusal
from holdfast.profiler.mocker.worker import (
    MOST_BYTES,
    REQUEST_ID,
    REQUEST_START,
    ROLES,
    Role,
    as_openai,
    json,
    kept_running,
    live,
)

AWAY_SECONDS: Final = 1.0
"""How long a worker that could not be reached is left out."""

_ASK_AGAIN: Final = 0.5
_CONNECT_SECONDS: Final = 2.0
_COMPLETIONS: Final = ("/v1/chat/completions", "/v1/completions")


class _Health(msgspec.Struct, frozen=True):
    role: Role = "worker"
    model: str = ""


@dataclass(slots=True, kw_only=True)
class Backend:
    """A worker, as the router knows it: `role` is empty until it has answered; `load` are requests in flight."""

    url: str
    role: Role | None = None
    model: str = ""
    load: int = 0
    away_until: float = 0.0


class Backends:
    """The workers there are, and which of them gets the next request."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._backends: dict[str, Backend] = {}
        self.changed = asyncio.Event()

    def set(self, urls: Iterable[str]) -> None:
        """The workers by their URLs; requests that others have in flight go on."""
        wanted = dict.fromkeys(url.rstrip("/") for url in urls)
        self._backends = {url: self._backends.get(url) or Backend(url=url) for url in wanted}
        self.changed.set()

    @property
    def unknown(self) -> list[Backend]:
        """The workers that have not said yet what they are."""
        return [each for each in self._backends.values() if each.role is None]

    def ready(self, role: Role) -> list[Backend]:
        now = self._clock()
        return [each for each in self._backends.values() if each.role == role and each.away_until <= now]

    def pick(self, role: Role, *, without: Iterable[Backend] = ()) -> Backend | None:
        """The least loaded worker of a role."""
        left = [each for each in self.ready(role) if each not in without]
        return min(left, key=lambda each: each.load, default=None)

    def leave_out(self, backend: Backend) -> None:
        """Leave a worker out for a while, and ask it again before it is used."""
        backend.away_until = self._clock() + AWAY_SECONDS
        backend.role = None
        self.changed.set()

    @property
    def path(self) -> tuple[Role, ...]:
        """The roles that a request passes; empty while no worker can answer one."""
        if self.ready("worker"):
            return ("worker",)
        return ("prefill", "decode") if self.ready("prefill") and self.ready("decode") else ()

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.model for each in self._backends.values() if each.role and each.model))


class Frontend:
    """The handlers of a router."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._created = int(time.time())
        self._registry = CollectorRegistry()
        self._requests = Counter("frontend_requests", "Requests.", registry=self._registry)
        self._retries = Counter("frontend_retries", "Requests sent to another worker.", registry=self._registry)
        workers = Gauge("frontend_workers", "Workers that are ready.", ["role"], registry=self._registry)
        for role in ROLES:
            workers.labels(role).set_function(partial(_ready, backends, role))

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MOST_BYTES, middlewares=[as_openai])
        for path in _COMPLETIONS:
            app.router.add_post(path, self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/live", live)
        app.router.add_get("/metrics", self._metrics)
        app.cleanup_ctx.append(self._connected)
        return app

    async def _connected(self, app: web.Application) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as self._http,
            kept_running(self._ask_all()),
        ):
            yield

    # --- workers

    async def _ask_all(self) -> None:
        """Ask workers that are new or were away who they are, until cancelled."""
        while True:
            self._backends.changed.clear()
            await asyncio.gather(*map(self._ask, self._backends.unknown))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ASK_AGAIN if self._backends.unknown else None):
                    await self._backends.changed.wait()

    async def _ask(self, backend: Backend) -> None:
        limit = aiohttp.ClientTimeout(total=_CONNECT_SECONDS)
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, msgspec.MsgspecError):
            async with self._http.get(f"{backend.url}/health", timeout=limit) as response:
                if response.status == 200:
                    known = msgspec.json.decode(await response.read(), type=_Health)
                    backend.role, backend.model = known.role, known.model
                    backend.away_until = 0.0

    # --- requests

    async def _health(self, request: web.Request) -> web.Response:
        if not self._backends.path:
            raise Refusal("no worker is ready", status=503)
        return json(b'{"status":"ready"}')

    async def _models(self, request: web.Request) -> web.Response:
        return json(openai.models(self._backends.models, created=self._created))

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), content_type="text/plain")

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self._requests.inc()
        body = await request.read()
        asked = openai.read(body, chat=request.path == _COMPLETIONS[0])
        headers = {
            "Content-Type": "application/json",
            REQUEST_ID: request.headers.get(REQUEST_ID) or uuid.uuid4().hex,
        }
        if REQUEST_START in request.headers:
            headers[REQUEST_START] = request.headers[REQUEST_START]
        path = self._backends.path
        if not path:
            raise Refusal("no worker is ready", status=503)
        if path[0] == "prefill" and asked.output_tokens == 1:
            path = path[:1]
        if not asked.stream:
            return await self._whole(request, path, body, headers)
        return await self._stream(request, path, body, headers)

    async def _whole(
        self, request: web.Request, path: tuple[Role, ...], body: bytes, headers: dict[str, str]
    ) -> web.Response:
        """The answer of the last worker, which has everything; or the first refusal."""
        status, content = 503, b""
        for role in path:
            async with self._answered(role, request.path, body, headers) as answer:
                status, content = answer.status, await answer.read()
            if status != 200:
                break
        return web.Response(status=status, body=content, content_type="application/json")

    async def _stream(
        self, request: web.Request, path: tuple[Role, ...], body: bytes, headers: dict[str, str]
    ) -> web.StreamResponse:
        """The streams of the workers, one after the other."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        for role in path:
            try:
                async with self._answered(role, request.path, body, headers) as answer:
                    if answer.status != 200:
                        raise Refusal(await _message(answer), status=answer.status)
                    if not response.prepared:
                        await response.prepare(request)
                    async for piece in answer.content.iter_any():
                        await response.write(piece)
            except (Refusal, aiohttp.ClientError) as error:
                if not response.prepared:
                    raise
                # The client has had a part of the answer; OpenAI's clients raise what such an event says.
                lost = openai.error_body(f"the answer ended early: {error}", status=502)
                await response.write(b"data: " + lost + b"\n\n")
                break
        await response.write_eof()
        return response

    @contextlib.asynccontextmanager
    async def _answered(
        self, role: Role, path: str, body: bytes, headers: dict[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer of the least loaded worker that can be reached."""
        tried: list[Backend] = []
        while True:
            backend = self._backends.pick(role, without=tried)
            if backend is None:
                raise Refusal(f"no {role} worker can be reached" if tried else "no worker is ready", status=503)
            backend.load += 1
            try:
                try:
                    answer = await self._http.post(f"{backend.url}{path}", data=body, headers=headers)
                except (aiohttp.ClientError, TimeoutError):
                    answer = None
                if answer is None or answer.status == 503:
                    if answer is not None:
                        answer.release()
                    tried.append(backend)
                    self._backends.leave_out(backend)
                    self._retries.inc()
                    continue
                async with answer:
                    yield answer
                return
            finally:
                backend.load -= 1


def _ready(backends: Backends, role: Role) -> int:
    return len(backends.ready(role))


async def _message(answer: aiohttp.ClientResponse) -> str:
    """What the error of a worker says."""
    body = await answer.read()
    try:
        return str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return f"the worker answered {answer.status}"
