"""A frontend before workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.profiler.mocker.servers import MODEL, frontend, worker
from tests.waiting import eventually

from holdfast.profiler.mocker import discovery
from holdfast.profiler.mocker.frontend import Backends

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Say hello to the sea."}]
ASKED: dict[str, Any] = {"model": MODEL, "messages": HELLO, "max_tokens": 4}


@contextlib.asynccontextmanager
async def routed(*urls: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a frontend that knows all its workers."""
    backends = Backends(clock=asyncio.get_running_loop().time)
    backends.set(urls)
    async with frontend(backends) as url, aiohttp.ClientSession(url) as http:
        await eventually(lambda: not backends.unknown)
        yield http


def test_requests_go_to_the_worker_with_the_fewest_in_flight() -> None:
    async def run() -> None:
        async with worker() as (one, first), worker() as (two, second), routed(one, two) as http:
            body = {**ASKED, "max_tokens": 500, "stream": True}
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(4):
                    response = await stack.enter_async_context(http.post(CHAT, json=body))
                    await response.content.readline()
                assert (first.running, second.running) == (2, 2)

    asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True])
def test_a_dead_worker_is_left_out_and_its_request_goes_to_another(stream: bool) -> None:
    async def run() -> None:
        async with worker() as (alive, _), contextlib.AsyncExitStack() as doomed:
            dead, _ = await doomed.enter_async_context(worker())
            async with routed(dead, alive) as http:
                await doomed.aclose()
                for _ in range(2):
                    async with http.post(CHAT, json={**ASKED, "stream": stream}) as response:
                        assert response.status == 200
                        assert "calm" in await response.text()

    asyncio.run(run())


def test_without_a_worker_the_answer_is_503_and_when_to_try_again() -> None:
    async def run() -> None:
        async with routed() as http:
            for _ in range(2):
                async with http.post(CHAT, json=ASKED) as response:
                    assert response.status == 503
                    assert response.headers["Retry-After"] == "1"
                    assert (await response.json())["error"]["message"] == "no worker is ready"
            async with http.get("/health") as response:
                assert response.status == 503
            async with http.get("/live") as response:
                assert response.status == 200

    asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_passes_a_prefill_worker_and_a_decode_worker(stream: bool) -> None:
    async def run() -> None:
        async with (
            worker("prefill") as (one, _),
            worker("decode") as (two, _),
            routed(one, two) as http,
        ):
            async with http.get("/v1/models") as response:
                assert [each["id"] for each in (await response.json())["data"]] == [MODEL]
            async with http.post(CHAT, json={**ASKED, "stream": stream}) as response:
                body = await response.text()
            if stream:
                parts = [json.loads(each[6:]) for each in body.strip().split("\n\n")[:-1]]
                assert len({each["id"] for each in parts}) == 1
                content = "".join(each["choices"][0]["delta"].get("content", "") for each in parts)
            else:
                content = json.loads(body)["choices"][0]["message"]["content"]
            assert content == "the sea was calm"

    asyncio.run(run())


def test_an_answer_of_one_token_needs_no_decode_worker() -> None:
    async def run() -> None:
        async with worker("prefill") as (one, _), worker("decode") as (two, _), routed(one, two) as http:
            body = {**ASKED, "max_tokens": 1, "stream": True}
            async with http.post(CHAT, json=body) as response:
                assert (await response.text()).endswith("data: [DONE]\n\n")

    asyncio.run(run())


def test_a_refusal_of_a_worker_is_passed_on() -> None:
    async def run() -> None:
        async with worker() as (one, _), routed(one) as http:
            for stream in (False, True):
                async with http.post(CHAT, json={**ASKED, "model": "other", "stream": stream}) as response:
                    assert response.status == 404
                    assert "'other' does not exist" in (await response.json())["error"]["message"]

    asyncio.run(run())


def test_a_client_that_hangs_up_frees_its_place_on_the_worker() -> None:
    async def run() -> None:
        async with worker() as (one, engine), routed(one) as http:
            async with http.post(CHAT, json={**ASKED, "max_tokens": 5000, "stream": True}) as response:
                await response.content.readline()
                response.close()
            await eventually(lambda: not engine.running)

    asyncio.run(run())


def test_the_workers_of_a_file_are_followed(tmp_path: Path) -> None:
    async def run() -> None:
        file = tmp_path / "workers.json"
        seen: list[tuple[str, ...]] = []
        changed = asyncio.Event()

        def found(urls: Iterable[str]) -> None:
            seen.append(tuple(urls))
            changed.set()

        following = asyncio.create_task(discovery.follow_file(file, found))
        for address in ("127.8.0.3:9090", "127.8.0.4:9090"):
            changed.clear()
            file.write_text(json.dumps({"workers": [{"component": "D", "type": "decode", "address": address}]}))
            async with asyncio.timeout(5):
                await changed.wait()
        following.cancel()
        assert seen == [("http://127.8.0.3:9090",), ("http://127.8.0.4:9090",)]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("127.0.0.1:9090", "http://127.0.0.1:9090"),
        ("http://127.0.0.1:9090/", "http://127.0.0.1:9090"),
        ("decode=chat-decode.ns.svc:9090", "http://chat-decode.ns.svc:9090"),
    ],
)
def test_a_worker_is_given_by_url_or_host_and_port(given: str, url: str) -> None:
    assert discovery.url(given) == url


@pytest.mark.parametrize("given", ["", "host", "ftp://host:1", "host:port", "http://:80"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="write http://HOST:PORT"):
        discovery.url(given)
