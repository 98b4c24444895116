"""Servers of the mock engine on free ports of the loopback, for tests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from aiohttp import web
from tests.profiler.mocker.timings import Linear

from holdfast.profiler.mocker.engine import Engine, Limits, Timing
from holdfast.profiler.mocker.frontend import Backends, Frontend
from holdfast.profiler.mocker.worker import Role, Settings, Worker

MODEL = "acme/tiny"
FAST = Linear(step=4, prompt=0.02, token=0, context=0)


@contextlib.asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def worker(
    role: Role = "worker", *, timing: Timing = FAST, kv_tokens: int = 10_000, batch: int = 64, transfer: float = 0.0
) -> AsyncIterator[tuple[str, Engine]]:
    engine = Engine(Limits(kv_tokens=kv_tokens, batch=batch), timing)
    settings = Settings(model=MODEL, role=role, transfer=lambda tokens: transfer)
    async with served(Worker(engine, settings).app()) as url:
        yield url, engine


@contextlib.asynccontextmanager
async def frontend(backends: Backends) -> AsyncIterator[str]:
    async with served(Frontend(backends).app()) as url:
        yield url
