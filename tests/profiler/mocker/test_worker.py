"""A worker over HTTP, as clients of OpenAI's API see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from tests.profiler.mocker.servers import MODEL, worker
from tests.profiler.mocker.timings import Linear
from tests.waiting import eventually

from holdfast.profiler.mocker import text
from holdfast.profiler.mocker.engine import Engine
from holdfast.profiler.mocker.worker import on_its_way

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Say hello to the sea."}]


def with_worker(work: Callable[[aiohttp.ClientSession, Engine], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with worker(**options) as (url, engine), aiohttp.ClientSession(url) as http:
            await work(http, engine)

    asyncio.run(run())


async def events(response: aiohttp.ClientResponse) -> list[Any]:
    body = await response.text()
    assert body.endswith("data: [DONE]\n\n")
    data = [part.removeprefix("data: ") for part in body.strip().split("\n\n")]
    return [json.loads(each) for each in data[:-1]]


def test_a_chat_is_answered_whole() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        async with http.post(CHAT, json={"model": MODEL, "messages": HELLO, "max_tokens": 5}) as response:
            assert response.status == 200
            answer = await response.json()
        assert answer["object"] == "chat.completion"
        assert answer["id"].startswith("chatcmpl-")
        (choice,) = answer["choices"]
        assert choice["message"] == {"role": "assistant", "content": "the sea was calm and"}
        assert choice["finish_reason"] == "length"
        assert answer["usage"] == {"prompt_tokens": 13, "completion_tokens": 5, "total_tokens": 18}
        assert engine.running == 0

    with_worker(work)


def test_a_chat_is_streamed_token_by_token_with_its_usage_at_the_end() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        body = {
            "model": MODEL,
            "messages": HELLO,
            "max_completion_tokens": 4,
            "stream": True,
            "stream_options": {"include_usage": True},
            "nvext": {"ignore_eos": True},
            "temperature": 0.2,
        }
        async with http.post(CHAT, json=body) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            *parts, last, usage = await events(response)
        assert [each["choices"][0]["delta"] for each in parts] == [
            {"role": "assistant", "content": "the"},
            {"content": " sea"},
            {"content": " was"},
            {"content": " calm"},
        ]
        assert {each["object"] for each in (*parts, last, usage)} == {"chat.completion.chunk"}
        assert last["choices"][0]["finish_reason"] == "length"
        assert usage["choices"] == []
        assert usage["usage"]["completion_tokens"] == 4

    with_worker(work)


def test_a_prompt_of_tokens_is_completed() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        async with http.post(
            "/v1/completions", json={"model": MODEL, "prompt": [1, 2, 3], "max_tokens": 2}
        ) as response:
            answer = await response.json()
        assert answer["object"] == "text_completion"
        assert answer["choices"][0]["text"] == "the sea"
        assert answer["usage"]["prompt_tokens"] == 3

    with_worker(work)


def test_tokens_come_when_the_schedule_has_them() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        body = {"model": MODEL, "prompt": "a " * 100, "max_tokens": 11, "stream": True}
        async with http.post("/v1/completions", json=body) as response:
            times = [clock() - began async for line in response.content if line.startswith(b"data: {")]
        # 10 ms and 0.2 ms a token of the prompt, then ten steps of 10 ms; a busy machine may be late, never early.
        assert times[0] >= 0.030
        assert times[-1] >= 0.130
        assert times[-1] - times[0] <= 0.100 + 0.150, "lateness does not accumulate"

    with_worker(work, timing=Linear(step=10, prompt=0.2, token=0, context=0))


@pytest.mark.parametrize(
    ("body", "status", "param", "said"),
    [
        ({"messages": HELLO}, 400, "model", "model"),
        ({"model": "other", "messages": HELLO}, 404, "model", "'other' does not exist; this server has 'acme/tiny'"),
        ({"model": MODEL}, 400, None, "messages"),
        ({"model": MODEL, "messages": []}, 400, "messages", "empty"),
        ({"model": MODEL, "messages": "hello"}, 400, "messages", "Expected `array`"),
        ({"model": MODEL, "messages": HELLO, "max_tokens": 0}, 400, "max_tokens", "at least 1"),
        ({"model": MODEL, "messages": HELLO, "max_tokens": 1, "min_tokens": 2}, 400, "min_tokens", "more than"),
        ({"model": MODEL, "messages": HELLO, "n": 2}, 400, "n", "one choice"),
        ({"model": MODEL, "messages": HELLO, "max_tokens": 20_000}, 400, "messages", "KV cache of 10000 tokens"),
    ],
)
def test_a_wrong_request_is_refused_as_openai_does(
    body: dict[str, Any], status: int, param: str | None, said: str
) -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        async with http.post(CHAT, json=body) as response:
            error = (await response.json())["error"]
        assert (response.status, error["param"], error["type"]) == (status, param, "invalid_request_error")
        assert said in error["message"]

    with_worker(work)


def test_what_is_not_json_and_paths_that_do_not_exist_are_errors_of_the_same_shape() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        async with http.post(CHAT, data=b"{") as response:
            assert response.status == 400
            assert "not JSON" in (await response.json())["error"]["message"]
        async with http.get("/v1/embeddings") as response:
            assert response.status == 404
            assert "Not Found" in (await response.json())["error"]["message"]
        async with http.get(CHAT) as response:
            assert response.status == 405
            assert response.headers["Allow"] == "POST"

    with_worker(work)


def test_a_client_that_hangs_up_frees_its_place() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        body = {"model": MODEL, "messages": HELLO, "max_tokens": 5000, "stream": True}
        async with http.post(CHAT, json=body) as response:
            await response.content.readline()
            assert engine.running == 1
            response.close()
        await eventually(lambda: not engine.running)

    with_worker(work)


def test_a_stop_text_ends_the_answer() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        body = {"model": MODEL, "messages": HELLO, "max_tokens": 50, "stop": [" calm"]}
        async with http.post(CHAT, json=body) as response:
            (choice,) = (await response.json())["choices"]
        assert choice["message"]["content"] == "the sea was"
        assert choice["finish_reason"] == "stop"
        async with http.post(CHAT, json={**body, "stream": True}) as response:
            *parts, last = await events(response)
        assert "".join(each["choices"][0]["delta"]["content"] for each in parts) == "the sea was"
        assert last["choices"][0]["finish_reason"] == "stop"

    with_worker(work)


def test_models_health_and_metrics_are_served() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        async with http.get("/v1/models") as response:
            assert [each["id"] for each in (await response.json())["data"]] == [MODEL]
        async with http.get("/health") as response:
            assert await response.json() == {"status": "ready", "role": "worker", "model": MODEL}
        async with http.get("/live") as response:
            assert response.status == 200
        async with http.post(CHAT, json={"model": MODEL, "messages": HELLO, "max_tokens": 5}) as response:
            await response.read()
        async with http.get("/metrics") as response:
            assert "mocker_generation_tokens_total 5.0" in await response.text()

    with_worker(work)


def test_a_decode_worker_waits_for_the_transfer_and_gives_the_other_tokens() -> None:
    async def work(http: aiohttp.ClientSession, engine: Engine) -> None:
        body = {"model": MODEL, "messages": HELLO, "max_tokens": 3, "stream": True}
        began = asyncio.get_running_loop().time()
        async with http.post(CHAT, json=body) as response:
            *parts, _ = await events(response)
        assert "".join(each["choices"][0]["delta"]["content"] for each in parts) == " sea was"
        assert asyncio.get_running_loop().time() - began >= 0.05

    with_worker(work, role="decode", transfer=0.05)


@pytest.mark.parametrize(
    ("start", "seconds"),
    [("t=99.9", 0.1), ("99.9", 0.1), ("t=100.0", 0), ("t=101", 0), ("t=90", 0), ("", 0), ("t=x", 0), ("t=nan", 0)],
)
def test_a_request_is_ready_from_when_its_client_sent_it_if_that_can_be(start: str, seconds: float) -> None:
    assert on_its_way(start, 100.0) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("written", "tokens"),
    [("", 0), ("the sea", 2), ("unbelievable", 2), ("a, b.", 4), ("12345678", 2), ("  spaces\n\n only ", 2)],
)
def test_tokens_are_counted_by_pieces_of_words_and_marks(written: str, tokens: int) -> None:
    assert text.count(written) == tokens


@pytest.mark.parametrize("tokens", [0, 1, 7, 200])
def test_a_text_of_a_length_has_that_many_tokens(tokens: int) -> None:
    assert text.count(text.of_length(tokens, start=3)) == tokens
