"""An engine behind HTTP: an OpenAI-compatible server whose tokens are sent when the schedule has them.

The engine computes when each step ends; the server waits for that moment and sends.  Steps follow each other on the
schedule and not on the clock of the loop, so that a loop that is late by a millisecond stays late by a millisecond.

A worker has a role.  ``worker`` answers whole requests.  ``prefill`` computes the prompt and the first token;
``decode`` takes a prompt as computed, waits for the modelled transfer of its KV cache, and goes on with the second
token.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from holdfast.profiler.mocker import openai, text
from holdfast.profiler.mocker.engine import Engine, Token, TooLong
from holdfast.profiler.mocker.openai import Answer, Asked, FinishReason, Refusal

Role = Literal["worker", "prefill", "decode"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

REQUEST_ID: Final = "X-Request-Id"
REQUEST_START: Final = "X-Request-Start"
"""When a client sent a request, as ``t=`` and seconds since 1970.

What carries requests on a laptop is no part of what is modelled, so a sequence is ready from when it was sent, and not
from when it was read.
"""

_LONGEST_WAY: Final = 0.25
"""Seconds that a request may have been on its way; a start before that is not believed."""

MOST_BYTES: Final = 8 * 2**20
"""The largest body of a request."""

_log: Final = logging.getLogger("holdfast.profiler.mocker")

_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def _at_once(prompt: int) -> float:
    return 0.0


class Schedule:
    """Runs an engine in real time: `tokens` of each sequence come out when the engine has them."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float]) -> None:
        self.engine = engine
        self._clock = clock
        self._queues: dict[str, asyncio.Queue[Token]] = {}
        self._arrived = asyncio.Event()
        self.lag = 0.0
        """By how many seconds the last step was sent late."""

    @contextlib.asynccontextmanager
    async def sequence(
        self, id: str, *, prompt: int, output: int, cached: bool = False, delay: float = 0.0
    ) -> AsyncIterator[AsyncIterator[Token]]:
        """The tokens of a sequence that is ready after a delay, which may be negative.

        It is forgotten at the end of the block.
        """
        queue: asyncio.Queue[Token] = asyncio.Queue()
        self.engine.submit(id, at=self._clock() + delay, prompt=prompt, output=output, cached=cached)
        self._queues[id] = queue
        self._arrived.set()
        try:
            yield _until_last(queue)
        finally:
            del self._queues[id]
            self.engine.cancel(id)

    async def run(self) -> None:
        """Run steps until cancelled."""
        free = self._clock()
        while True:
            start = self.engine.next_start(free)
            if start is None or start > self._clock():
                await self._arrival(start)
                continue
            outcome = self.engine.step(start)
            if outcome is None:
                free = self._clock()  # what was ready has been cancelled meanwhile
                continue
            await asyncio.sleep(max(outcome.end - self._clock(), 0))
            self.lag = max(self._clock() - outcome.end, 0)
            for token in outcome.tokens:
                if token.sequence in self._queues:
                    self._queues[token.sequence].put_nowait(token)
            free = outcome.end

    async def _arrival(self, start: float | None) -> None:
        """Until something arrives, or the next step can start."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if start is None else start - self._clock()):
                await self._arrived.wait()
        self._arrived.clear()


async def _until_last(queue: asyncio.Queue[Token]) -> AsyncIterator[Token]:
    while True:
        token = await queue.get()
        yield token
        if token.last:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker serves.

    model     the name of the model in requests
    transfer  seconds that the KV cache of a prompt takes to a decode worker
    """

    model: str
    role: Role = "worker"
    transfer: Callable[[int], float] = _at_once


class Worker:
    """The handlers of one worker."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._settings = settings
        self._schedule = Schedule(engine, clock=asyncio.get_running_loop().time)
        self._created = int(time.time())
        self._metrics = _Metrics(self._schedule)
        self._leaving = False

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MOST_BYTES, middlewares=[as_openai])
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._completion)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/live", live)
        app.router.add_get("/metrics", self._show_metrics)
        app.cleanup_ctx.append(self._scheduled)
        app.on_shutdown.append(self._leave)
        return app

    async def _scheduled(self, app: web.Application) -> AsyncIterator[None]:
        async with kept_running(self._schedule.run()):
            yield

    async def _leave(self, app: web.Application) -> None:
        self._leaving = True

    async def _health(self, request: web.Request) -> web.Response:
        if self._leaving:
            raise Refusal("the worker is shutting down", status=503)
        body = {"status": "ready", "role": self._settings.role, "model": self._settings.model}
        return json(msgspec.json.encode(body))

    async def _models(self, request: web.Request) -> web.Response:
        return json(openai.models((self._settings.model,), created=self._created))

    async def _show_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": _METRICS_TYPE})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _completion(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _complete(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        asked = openai.read(await request.read(), chat=chat)
        if asked.model != self._settings.model:
            message = f"the model {asked.model!r} does not exist; this server has {self._settings.model!r}"
            raise Refusal(message, status=404, param="model", code="model_not_found")
        id = request.headers.get(REQUEST_ID) or uuid.uuid4().hex
        answer = Answer(asked=asked, id=id, created=int(time.time()))
        self._metrics.begun(asked)
        role = self._settings.role
        carried = on_its_way(request.headers.get(REQUEST_START, ""), time.time())
        decode = role == "decode" and asked.output_tokens > 1
        try:
            # A sequence of its own, whatever the client calls its request.
            async with self._schedule.sequence(
                uuid.uuid4().hex,
                prompt=asked.prompt_tokens,
                output=1 if role == "prefill" else asked.output_tokens,
                cached=decode,
                delay=self._settings.transfer(asked.prompt_tokens) if decode else -carried,
            ) as tokens:
                if asked.stream:
                    return await self._stream(request, answer, tokens)
                return await self._whole(answer, tokens)
        except TooLong as error:
            raise Refusal(str(error), param="messages" if chat else "prompt", code="context_length_exceeded") from None

    async def _whole(self, answer: Answer, tokens: AsyncIterator[Token]) -> web.Response:
        last = 0
        async for token in tokens:
            last = token.index
            self._metrics.tokens.inc()
        # A decode worker has not produced the first token, but what it was is known.
        content = "".join(map(text.word, range(last + 1)))
        ended = _cut(content, answer.asked)
        reason: FinishReason = "length" if ended is None and answer.asked.bounded else "stop"
        content = content if ended is None else content[:ended]
        return json(answer.whole(content, last + 1, reason))

    async def _stream(self, request: web.Request, answer: Answer, tokens: AsyncIterator[Token]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        asked, content = answer.asked, ""
        async for token in tokens:
            self._metrics.tokens.inc()
            if asked.stop and token.index == 1 and not content:
                content = text.word(0)  # the first token of a decode worker was sent by the prefill worker
            content += text.word(token.index)
            ended = _cut(content, asked)
            if ended is not None:
                await response.write(answer.end(token.index + 1, "stop"))
                break
            piece = answer.part(text.word(token.index), first=token.index == 0)
            # A prefill worker leaves the end of the stream to the decode worker.
            if token.last and (self._settings.role != "prefill" or asked.output_tokens == 1):
                piece += answer.end(token.index + 1, "length" if asked.bounded else "stop")
            await response.write(piece)
        await response.write_eof()
        return response


def on_its_way(start: str, now: float) -> float:
    """For how many seconds a request was carried to this worker, by the header in which its client says it began."""
    try:
        seconds = now - float(start.removeprefix("t="))
    except ValueError:
        return 0.0
    return seconds if 0 < seconds <= _LONGEST_WAY else 0.0


def _cut(content: str, asked: Asked) -> int | None:
    """Where a stop text begins, if one is in the answer."""
    places = [place for stop in asked.stop if (place := content.find(stop)) >= 0]
    return min(places, default=None)


class _Metrics:
    """What Prometheus reads, by the names of vLLM where it has them."""

    def __init__(self, schedule: Schedule) -> None:
        self._registry = CollectorRegistry()
        engine = schedule.engine
        for name, meaning, value in (
            ("num_requests_running", "Sequences that run.", lambda: engine.running),
            ("num_requests_waiting", "Sequences that wait.", lambda: engine.waiting),
            ("kv_cache_usage_perc", "Part of the KV cache in use.", lambda: engine.kv_used / engine.limits.kv_tokens),
            ("num_preemptions", "Sequences that lost their place in the KV cache.", lambda: engine.preemptions),
            ("lag_seconds", "How late the tokens of the last step were sent.", lambda: schedule.lag),
        ):
            Gauge(f"mocker_{name}", meaning, registry=self._registry).set_function(value)
        self._requests = Counter("mocker_requests", "Requests.", registry=self._registry)
        self._prompt = Counter("mocker_prompt_tokens", "Tokens of prompts.", registry=self._registry)
        self.tokens = Counter("mocker_generation_tokens", "Tokens of answers.", registry=self._registry)

    def begun(self, asked: Asked) -> None:
        self._requests.inc()
        self._prompt.inc(asked.prompt_tokens)

    def text(self) -> bytes:
        return generate_latest(self._registry)


# --- what workers and frontends share


@web.middleware
async def as_openai(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors in the shape of OpenAI's API."""
    try:
        return await handler(request)
    except Refusal as error:
        headers = {"Retry-After": "1"} if error.status == 503 else {}
        return web.Response(status=error.status, body=error.body(), content_type="application/json", headers=headers)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        message = f"{request.method} {request.path}: {error.reason}"
        body = openai.error_body(message, status=error.status)
        return web.Response(status=error.status, body=body, content_type="application/json", headers=allowed)


@contextlib.asynccontextmanager
async def kept_running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something beside a server until the end of the block; where it fails, the process is stopped."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            _log.error("the server cannot go on", exc_info=task.exception())
            signal.raise_signal(signal.SIGTERM)

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def live(request: web.Request) -> web.Response:
    return json(b'{"status":"live"}')


def json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
