"""Sends requests to an OpenAI-compatible server and measures the streams that come back.

An open loop sends at times of its own, whatever the server does: it measures what users at a rate of requests see.
A closed loop keeps so many requests in flight: it measures what a server can do.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec

from holdfast.client.http import cause
from holdfast.profiler.load import arrivals
from holdfast.profiler.load.arrivals import Process
from holdfast.profiler.load.figures import Sample
from holdfast.profiler.mocker import text

CHAT: Final = "/v1/chat/completions"
_OWN_TOKENS: Final = text.MESSAGE_TOKENS + text.REPLY_TOKENS + 1
"""Tokens of a prompt that are not its text: those of the chat, and the number of the request."""

_CONNECT_SECONDS: Final = 5.0
_ASK_AGAIN: Final = 0.2
"""Seconds until a server that does not answer yet is asked again."""
_LONGEST_MESSAGE: Final = 120


class Unusable(Exception):
    """The server cannot be tested; the message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A load test.

    url          of the server, without ``/v1``
    model        its name; the first that the server lists where it is empty
    isl, osl     tokens of each prompt, by the count of `mocker.text`, and of each answer
    rate         requests a second, of an open loop
    concurrency  requests in flight, of a closed loop
    requests     how many requests are sent at most
    duration     seconds in which requests are sent
    ramp         seconds over which a closed loop begins, so that its requests do not stay in step
    timeout      seconds that one request may take
    """

    url: str
    model: str = ""
    isl: int = 256
    osl: int = 64
    rate: float | None = None
    concurrency: int | None = None
    requests: int | None = None
    duration: float | None = None
    ramp: float = 0.0
    process: Process = "poisson"
    seed: int = 0
    timeout: float = 300.0

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.concurrency is None):
            raise ValueError("a load test has a rate or a concurrency")
        if self.requests is None and self.duration is None:
            raise ValueError("a load test has a number of requests or a duration")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a test is: seconds since it began, requests that were sent, the samples that are complete."""

    seconds: float
    sent: int
    samples: tuple[Sample, ...]


async def run(plan: Plan, *, report: Callable[[Progress], None] | None = None, every: float = 0.5) -> list[Sample]:
    """The samples of a test.  Cancelling it ends the requests in flight; those are no samples."""
    test = _Test(plan)
    timeout = aiohttp.ClientTimeout(total=plan.timeout, sock_connect=_CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as test.http:
        test.model = plan.model or await first_model(test.http, plan.url)
        reporting = asyncio.create_task(test.report(report, every)) if report is not None else None
        try:
            await test.run()
        finally:
            if reporting is not None:
                reporting.cancel()
    if report is not None:
        report(test.progress())
    return test.samples


async def first_model(http: aiohttp.ClientSession, url: str) -> str:
    """The first model that a server lists; raises `Unusable`."""
    try:
        async with http.get(f"{url}/v1/models") as response:
            body = await response.read()
            if response.status != 200:
                raise Unusable(f"{url}/v1/models answered {response.status}; name an OpenAI-compatible server")
        names = [str(each["id"]) for each in msgspec.json.decode(body)["data"]]
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unusable(f"{url} cannot be reached: {cause(error)}; is it running, and its address right?") from None
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise Unusable(f"{url}/v1/models is not a list of models; name an OpenAI-compatible server") from None
    if not names:
        raise Unusable(f"{url} serves no model yet; wait until its workers are ready")
    return names[0]


async def answering(url: str, *, within: float) -> str:
    """The first model of a server, as soon as it lists one; raises `Unusable` where it does not in time."""
    clock = asyncio.get_running_loop().time
    until = clock() + within
    timeout = aiohttp.ClientTimeout(total=_CONNECT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as http:
        while True:
            try:
                return await first_model(http, url)
            except Unusable:
                if clock() >= until:
                    raise
            await asyncio.sleep(_ASK_AGAIN)


class _Test:
    http: aiohttp.ClientSession

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._numbers = itertools.count()
        self._sent = 0
        self.model = plan.model
        self.samples: list[Sample] = []

    def progress(self) -> Progress:
        return Progress(self._clock() - self._began, self._sent, tuple(self.samples))

    async def report(self, report: Callable[[Progress], None], every: float) -> None:
        while True:
            await asyncio.sleep(every)
            report(self.progress())

    async def run(self) -> None:
        self._began = self._clock()
        async with asyncio.TaskGroup() as group:
            if self._plan.concurrency is not None:
                for number in range(self._plan.concurrency):
                    delay = self._plan.ramp * number / self._plan.concurrency
                    group.create_task(self._one_after_another(delay))
                return
            async for _ in self._moments():
                group.create_task(self._request())

    async def _moments(self) -> AsyncIterator[None]:
        plan = self._plan
        assert plan.rate is not None, "an open loop has a rate"
        for at in self._counted(arrivals.times(plan.rate, process=plan.process, seed=plan.seed)):
            if plan.duration is not None and at >= plan.duration:
                return
            await asyncio.sleep(max(self._began + at - self._clock(), 0))
            yield

    def _counted(self, times: Iterator[float]) -> Iterator[float]:
        return times if self._plan.requests is None else itertools.islice(times, self._plan.requests)

    async def _one_after_another(self, delay: float) -> None:
        plan = self._plan
        await asyncio.sleep(delay)
        while plan.requests is None or self._sent < plan.requests:
            if plan.duration is not None and self._clock() - self._began >= plan.duration:
                return
            await self._request()

    async def _request(self) -> None:
        self._sent += 1
        number = next(self._numbers)
        body = msgspec.json.encode(self._body(number))
        headers = {"Content-Type": "application/json", "X-Request-Start": f"t={time.time():.6f}"}
        reading = _Reading(self._clock)
        try:
            async with self.http.post(f"{self._plan.url}{CHAT}", data=body, headers=headers) as response:
                if response.status != 200:
                    reading.error = f"{response.status} {_said(await response.read(), response.reason or '')}".strip()
                else:
                    await reading.read(response)
        except TimeoutError:
            reading.error = f"no answer within {self._plan.timeout:g} s"
        except (aiohttp.ClientError, OSError) as error:
            reading.error = _short(str(error) or type(error).__name__)
        self.samples.append(reading.sample())

    def _body(self, number: int) -> dict[str, Any]:
        # The number comes first, so that no server has the beginning of a prompt in its cache.
        prompt = f"{number % 1_000_000} {text.of_length(self._plan.isl - _OWN_TOKENS, start=number)}".strip()
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self._plan.osl,
            "min_tokens": self._plan.osl,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


_read_chunk: Final = msgspec.json.Decoder(_Chunk).decode


class _Reading:
    """One answer, as it comes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent = clock()
        self._first: float | None = None
        self._last = self._sent
        self._chunks = 0
        self._usage = _Usage()
        self.error = ""

    async def read(self, response: aiohttp.ClientResponse) -> None:
        done = False
        async for line in response.content:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                done = True
                continue
            self._take(data)
        if not done and not self.error:
            self.error = "the stream ended before it was complete"

    def _take(self, data: bytes) -> None:
        try:
            chunk = _read_chunk(data)
        except msgspec.MsgspecError:
            self.error = self.error or "the stream has a chunk that cannot be read"
            return
        if chunk.error is not None:
            message = chunk.error.get("message") if isinstance(chunk.error, dict) else chunk.error
            self.error = self.error or _short(str(message))
        if any(each.delta.content or each.delta.reasoning_content for each in chunk.choices):
            self._last = self._clock()
            self._first = self._last if self._first is None else self._first
            self._chunks += 1
        if chunk.usage is not None:
            self._usage = chunk.usage

    def sample(self) -> Sample:
        if self._first is None:
            return Sample(sent=self._sent, error=self.error or "the answer is empty")
        return Sample(
            sent=self._sent,
            first=self._first,
            last=self._last,
            tokens=self._usage.completion_tokens or self._chunks,
            prompt=self._usage.prompt_tokens,
            error=self.error,
        )


def _said(body: bytes, reason: str) -> str:
    try:
        return _short(str(msgspec.json.decode(body)["error"]["message"]))
    except (msgspec.MsgspecError, KeyError, TypeError):
        return reason


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"
