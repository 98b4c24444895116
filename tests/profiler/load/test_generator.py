"""The load generator against servers whose timing is known."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.profiler.mocker.servers import MODEL, served, worker
from tests.profiler.mocker.timings import Linear

from holdfast.profiler.load import generator
from holdfast.profiler.load.figures import Sample, figures
from holdfast.profiler.load.generator import Plan, Progress, Unusable


def measured(timing: Linear | None = None, **plan: Any) -> list[Sample]:
    async def run() -> list[Sample]:
        async with worker(timing=timing or Linear(step=20, prompt=0.2, token=0, context=0)) as (url, _):
            return await generator.run(Plan(url=url, **plan))

    return asyncio.run(run())


def test_a_closed_loop_measures_what_the_server_does() -> None:
    samples = measured(concurrency=2, requests=6, isl=100, osl=6)
    found = figures(samples)
    assert (found.requests, found.completed) == (6, 6)
    assert (found.isl, found.osl) == (100, 6)
    assert found.ttft_ms is not None
    assert found.itl_ms is not None
    # 20 ms of a step and 20 ms of a prompt, two prompts at a time; never early, and late by what the machine is.
    assert 39 <= found.ttft_ms.p50 <= 100
    assert 19.5 <= found.itl_ms.p50 <= 40


def test_an_open_loop_sends_at_its_rate_whatever_the_server_does() -> None:
    samples = measured(rate=100, process="constant", requests=20, isl=20, osl=2, timing=Linear(step=500, prompt=0))
    sent = sorted(each.sent for each in samples)
    assert len(sent) == 20
    assert sent[-1] - sent[0] >= 0.18
    assert sent[-1] < min(each.first for each in samples), "no request waits for the answer to another"
    assert all(not each.error for each in samples)


def test_a_test_ends_after_its_duration() -> None:
    samples = measured(rate=50, duration=0.2, isl=20, osl=2, timing=Linear(step=1, prompt=0))
    assert max(each.sent for each in samples) - min(each.sent for each in samples) <= 0.35
    assert samples


def test_progress_is_reported_and_the_last_report_has_everything() -> None:
    seen: list[Progress] = []

    async def run() -> None:
        async with worker() as (url, _):
            await generator.run(Plan(url=url, concurrency=1, requests=3, isl=20, osl=2), report=seen.append)

    asyncio.run(run())
    assert (seen[-1].sent, len(seen[-1].samples)) == (3, 3)


def test_requests_that_fail_are_samples_with_the_reason() -> None:
    async def run() -> list[Sample]:
        async with worker() as (url, _):
            return await generator.run(Plan(url=url, model="other", concurrency=1, requests=2))

    for each in asyncio.run(run()):
        assert each.error == f"404 the model 'other' does not exist; this server has '{MODEL}'"


def test_a_stream_that_breaks_off_is_an_error() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"the"}}]}\n\n')
        return response

    async def failing(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'data: {"error":{"message":"the worker was lost"}}\n\ndata: not json\n\ndata: [DONE]\n\n')
        return response

    async def run(handler: Any) -> list[Sample]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handler)
        async with served(app) as url:
            return await generator.run(Plan(url=url, model="m", concurrency=1, requests=1))

    assert asyncio.run(run(cut))[0].error == "the stream ended before it was complete"
    assert asyncio.run(run(failing))[0].error == "the worker was lost"


def test_a_server_that_cannot_be_tested_is_named() -> None:
    async def run(url: str) -> None:
        await generator.run(Plan(url=url, concurrency=1, requests=1))

    with pytest.raises(Unusable, match="cannot be reached"):
        asyncio.run(run("http://127.0.0.1:1"))

    async def empty() -> None:
        async with served(web.Application()) as url:
            await run(url)

    with pytest.raises(Unusable, match="answered 404"):
        asyncio.run(empty())
