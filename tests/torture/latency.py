"""How long health checks and watches wait while one client sends the most costly requests there are.

    python -m tests.torture latency

The requests are those of `tests.apiserver.costs`, as large as the server accepts them.  A process of its own asks for
``/livez`` again and again on one connection, and watches on another what it writes on a third, so that only
delays of the server are measured.  What other processes of the machine do can only add to a delay, so a measurement
that is too long is taken again, and the shortest counts; still, the machine should have nothing else to do.  On a busy
machine, only what the server computes during a wait can be judged.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import clock_gettime, perf_counter
from typing import Any

import aiohttp
from tests.apiserver.costs import REQUESTS, YAML, Costly, named
from tests.torture.figures import Figure, at_most, counted
from tests.torture.server import COMMAND, CONFIGMAPS, UP, connected, ready, server_process

LONGEST = 0.1
"""Seconds within which health and watches are answered."""

LARGEST_JSON, LARGEST_YAML = 3 * 2**20, 2**20
TRIES = 5
QUICK = ("base 60", "owners", "numbers of an enum", "operations at the front", "applied YAML")
"""What the short form tries."""

SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"


def absurd_set(n: int) -> dict[str, Any]:
    """A PodCliqueSet of n pods for each of a thousand replicas."""
    spec = {"roleName": "a", "replicas": n, "podSpec": {"containers": [{"name": "c", "image": "i"}]}}
    template = {"cliques": [{"name": "a", "spec": spec}]}
    return named("PodCliqueSet", "grove.io/v1alpha1", spec={"replicas": 1_000, "template": template})


ABSURD = Costly("a PodCliqueSet of 100,000,000 pods", "POST", SETS, 50_000, absurd_set)
"""Its cost is the operator's, so it is sent to a whole cluster."""


@dataclass(frozen=True)
class Delays:
    """The longest waits during one request, in seconds."""

    health: float
    watch: float
    computed: float
    """The most processor time that the server used during one of the waits."""
    request: float = 0.0
    status: int = 0

    @property
    def kept(self) -> bool:
        return max(self.health, self.watch) <= LONGEST

    @property
    def kept_by_server(self) -> bool:
        """The same, if others may use the processor as well."""
        return self.kept or self.computed <= LONGEST

    def __str__(self) -> str:
        waits = f"health waited {self.health * 1000:.0f} ms, a watch {self.watch * 1000:.0f} ms"
        waits += f", with {self.computed * 1000:.0f} ms of the server's processor time"
        return f"{waits}; the request {self.request * 1000:.0f} ms for its {self.status}"


def figures(scale: float, seed: int) -> Iterator[Figure]:
    del seed  # nothing is drawn
    chosen = REQUESTS if scale >= 1 else REQUESTS[:: max(round(1 / scale), 1)]
    found = asyncio.run(measured([*chosen, ABSURD]))
    yield counted("costly requests", len(found))
    idle = asyncio.run(undisturbed())
    yield Figure("longest wait of health without any of them", f"{idle.health * 1000:.0f} ms")
    for what, seconds in (
        ("health", lambda delays: delays.health),
        ("watch", lambda delays: delays.watch),
        ("the request itself", lambda delays: delays.request),
    ):
        name, worst = max(found.items(), key=lambda item: seconds(item[1]))
        limit = LONGEST if what in ("health", "watch") else 30.0
        yield at_most(f"longest wait of {what} ({name})", seconds(worst) * 1000, limit * 1000, "ms")


async def measured(requests: Sequence[Costly]) -> dict[str, Delays]:
    """The delays during each request, at its largest."""
    found = {}
    for costly in requests:
        delays = found[costly.name] = await shortest(costly, _largest(costly))
        print(f"{costly.name}: {delays}", flush=True)
    return found


async def undisturbed(seconds: float = 3.0) -> Delays:
    """The delays when nothing costly is sent: what the machine itself adds, with all else that it does."""
    with tempfile.TemporaryDirectory() as name:
        async with server_process(Path(name)) as process:
            await ready(process)
            async with _probe(Path(name), process.pid) as probe:
                await asyncio.sleep(seconds)
                return Delays(*await probe.told())


def _largest(costly: Costly) -> int:
    """The largest size of which the server accepts the body, or nearly so."""
    if costly is ABSURD:
        return 2 * costly.size
    limit = LARGEST_YAML if costly.media == YAML or "yaml" in costly.name.lower() else LARGEST_JSON
    n, step = costly.size, costly.size
    while len(costly.request(n + step, "").body) < limit and n < 64 * costly.size:
        n += step
        step = n
    while step > costly.size // 4:
        if len(costly.request(n + step, "").body) < limit:
            n += step
        step //= 2
    return n


async def shortest(costly: Costly, n: int, *, kept: Callable[[Delays], bool] = lambda it: it.kept) -> Delays:
    """The delays during a request of a size, of which the shortest of a few measurements count."""
    best = None
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as directory:
            delays = await _measure(Path(directory), costly, n)
        if best is None or max(delays.health, delays.watch) < max(best.health, best.watch):
            best = delays
        if kept(best):
            break
    assert best is not None
    return best


async def _measure(directory: Path, costly: Costly, n: int) -> Delays:
    command = UP if costly is ABSURD else COMMAND
    async with server_process(directory, command=command) as process:
        await ready(process)
        async with connected(directory) as client:
            for preparation in costly.preparations(n, ""):
                answer = await client.post(preparation.path, data=io.BytesIO(preparation.body), headers=_json())
                await answer.read()
                if answer.status != 201:
                    # The objects that go before are too large: the request is as costly as it can be without them.
                    break
            request = costly.request(n, "")
            headers = {each: value for each, value in request.headers.items() if each != "authorization"}
            query = [(each, value) for each, values in request.query.items() for value in values]
            async with _probe(directory, process.pid) as probe:
                began = perf_counter()
                async with client.request(
                    request.method, request.path, params=query, data=io.BytesIO(request.body), headers=headers
                ) as answer:
                    await answer.read()
                seconds = perf_counter() - began
                if costly is ABSURD:
                    await _reported(client)
                health, watch, computed = await probe.told()
            assert answer.status < 500, f"{costly.name}: {answer.status} {await answer.text()}"
            return Delays(health, watch, computed, seconds, answer.status)


def _json() -> dict[str, str]:
    return {"Content-Type": "application/json"}


async def _reported(client: aiohttp.ClientSession) -> None:
    """Wait until the operator has said something about the set."""
    async with client.get(SETS, params={"watch": "1", "timeoutSeconds": "20"}) as events:
        async for line in events.content:
            if json.loads(line)["object"].get("status"):
                return


# --- the process that asks


class Probe:
    """A process that measures, until it is asked what it found."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def _asked(self, word: bytes) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word + b"\n")
        return json.loads(await self._process.stdout.readline())

    async def begin(self) -> None:
        await self._asked(b"begin")

    async def told(self) -> tuple[float, float, float]:
        """The longest wait of a health check and of a watch since the beginning, and the most computed during one."""
        health, watch, computed = await self._asked(b"tell")
        return health, watch, computed


@asynccontextmanager
async def _probe(directory: Path, server: int) -> AsyncIterator[Probe]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.torture.latency",
        str(directory),
        str(server),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        probe = Probe(process)
        await probe.begin()
        yield probe
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


class _Asking:
    """Asks for health, and writes and watches an object; keeps the longest wait of each."""

    def __init__(self, server: int) -> None:
        self.worst = [0.0, 0.0, 0.0]
        self.rounds = [0, 0]
        self._sent: dict[str, tuple[float, float]] = {}
        self._clock = _clock_of(server)

    def _now(self) -> tuple[float, float]:
        """The time, and the processor time that the server has used."""
        return perf_counter(), clock_gettime(self._clock)

    def _note(self, which: int, since: tuple[float, float]) -> None:
        waited, computed = (now - then for now, then in zip(self._now(), since, strict=True))
        self.worst[which] = max(self.worst[which], waited)
        self.worst[2] = max(self.worst[2], computed)
        self.rounds[which] += 1

    async def health(self, client: aiohttp.ClientSession) -> None:
        while True:
            began = self._now()
            async with client.get("/livez") as answer:
                await answer.read()
            self._note(0, began)
            await asyncio.sleep(0.002)

    async def write(self, client: aiohttp.ClientSession) -> None:
        number = 0
        async with client.post(CONFIGMAPS, json={"metadata": {"name": "probe"}}) as answer:
            assert answer.status in (201, 409), await answer.text()
        while True:
            number += 1
            self._sent[str(number)] = self._now()
            patch = {"data": {"number": str(number)}}
            headers = {"Content-Type": "application/merge-patch+json"}
            async with client.patch(f"{CONFIGMAPS}/probe", json=patch, headers=headers) as answer:
                await answer.read()
            await asyncio.sleep(0.005)

    async def watch(self, client: aiohttp.ClientSession) -> None:
        query = {"watch": "1", "fieldSelector": "metadata.name=probe"}
        async with client.get(CONFIGMAPS, params=query) as events:
            async for line in events.content:
                number = json.loads(line)["object"].get("data", {}).get("number", "")
                if number in self._sent:
                    self._note(1, self._sent.pop(number))

    async def both(self) -> None:
        """Wait until each was answered again, so that what waits now is counted."""
        before = list(self.rounds)
        while any(now < then + 2 for now, then in zip(self.rounds, before, strict=True)):
            await asyncio.sleep(0.002)


def _clock_of(process: int) -> int:
    """The clock of the processor time of another process, as Linux numbers them (clock_getcpuclockid)."""
    return (~process << 3) | 2


async def _ask(directory: Path, server: int) -> None:
    asking = _Asking(server)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with connected(directory) as first, connected(directory) as second, connected(directory) as third:
        tasks = [
            asyncio.create_task(asking.health(first)),
            asyncio.create_task(asking.write(second)),
            asyncio.create_task(asking.watch(third)),
        ]
        while line := await reader.readline():
            await asking.both()
            print(json.dumps(asking.worst), flush=True)
            if line == b"begin\n":
                asking.worst = [0.0, 0.0, 0.0]
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(_ask(Path(sys.argv[1]), int(sys.argv[2])))
