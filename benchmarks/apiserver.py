"""The API server under load: speed, latency of watches, memory and start-up, over TLS on the loopback.

The server is a process of its own with a durable data directory; its clients are in this one, so that on two cores
each side has one.  Several servers are measured in turns, one operation after the other, so that what else happens on
the machine concerns all of them alike.  Everything is bounded in count and in time.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import targets
from benchmarks.load import Clients, Speed
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from benchmarks.targets import Target
from holdfast.apiserver.http.event_loops import new_event_loop

LISTED: Final = sized(1_000, 20)
KEPT: Final = sized(10_000, 40)
STARTS: Final = sized(3, 1)
ROUNDS: Final = sized(3, 1)
FILL_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of one server under load."""

    create: Speed
    get: Speed
    list: Speed
    list_gzip: Speed
    patch: Speed
    fan_out: Sequence[float]
    idle_bytes: float
    kept_bytes: float


@dataclass(frozen=True, slots=True)
class Starts:
    """Seconds until a server of ours has answered its first request."""

    empty: float
    with_objects: float


LINES: Final[Sequence[Line[Figures]]] = (
    Line("create, 1.5 KB", "/s", lambda it: it.create.per_second, ">= 3x"),
    Line("get, 1.5 KB", "/s", lambda it: it.get.per_second, ">= 3x"),
    Line("list of 1,000", "/s", lambda it: it.list.per_second),
    Line("list of 1,000, gzip", "/s", lambda it: it.list_gzip.per_second),
    Line("merge patch, 1.5 KB", "/s", lambda it: it.patch.per_second),
    Line("server's CPU for a create", "ms", lambda it: it.create.cpu_seconds * 1_000),
    Line("server's CPU for a get", "ms", lambda it: it.get.cpu_seconds * 1_000),
    Line("server's CPU for a list", "ms", lambda it: it.list.cpu_seconds * 1_000),
    Line("server's CPU for a patch", "ms", lambda it: it.patch.cpu_seconds * 1_000),
    Line("1 write to 100 watchers, p50", "ms", lambda it: statistics.median(it.fan_out) * 1_000),
    Line("1 write to 100 watchers, p99", "ms", lambda it: statistics.quantiles(it.fan_out, n=100)[98] * 1_000),
    Line("memory, idle", "MB", lambda it: it.idle_bytes / 1e6, "< 80"),
    Line("memory, 10,000 objects of 2 KB", "MB", lambda it: it.kept_bytes / 1e6, "<= 1/4"),
)
START_LINES: Final[Sequence[Line[Starts]]] = (
    Line("start to first answer", "s", lambda it: it.empty, "< 1"),
    Line("the same, with 10,000 objects", "s", lambda it: it.with_objects),
)


def report() -> None:
    """Measure and print; less than two minutes."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner, TemporaryDirectory(prefix="holdfast-bench-") as home:
        (figures,) = runner.run(measured(Path(home)))
        starts = runner.run(_starts(Path(home)))
    show("API server, TLS, 32 connections", LINES, {"holdfast": figures})
    show("starts", START_LINES, {"holdfast": starts})


async def measured(home: Path, *others: Target) -> list[Figures]:
    """The figures of our server, and of others beside it."""
    async with targets.ours(home, "first"):
        pass
    async with targets.ours(home, "speed") as target:
        figures = await _speeds((target, *others))
    async with targets.ours(home, "kept") as target:
        kept = [await _kept_bytes(each) for each in (target, *others)]
    return [replace(each, kept_bytes=octets) for each, octets in zip(figures, kept, strict=True)]


async def _starts(home: Path) -> Starts:
    empty = []
    for number in range(STARTS):
        async with targets.ours(home, f"start-{number}") as target:
            empty.append(target.ready_seconds)
    async with targets.ours(home, "kept") as target:
        return Starts(statistics.median(empty), target.ready_seconds)


Operation = Callable[[Clients, int], Awaitable[None]]

OPERATIONS: Final[Mapping[str, tuple[Operation, int]]] = {
    "list": (lambda clients, n: clients.list_all(gzip=False), sized(100, 5)),
    "list_gzip": (lambda clients, n: clients.list_all(gzip=True), sized(50, 5)),
    "get": (lambda clients, n: clients.get(n % LISTED), sized(8_000, 40)),
    "create": (lambda clients, n: clients.create(LISTED + n, size=1_500), sized(3_000, 40)),
    "patch": (lambda clients, n: clients.patch(n % LISTED, value=str(n)), sized(3_000, 40)),
}
"""What is done, and how often in a round."""


async def _speeds(servers: Sequence[Target]) -> list[Figures]:
    """The figures of servers, apart from what many objects take."""
    async with AsyncExitStack() as stack:
        each = [await stack.enter_async_context(Clients(target, "speed")) for target in servers]
        idle = [(await one.usage()).memory_bytes for one in each]
        for clients in each:
            await clients.repeat(partial(clients.create, size=1_500), most=LISTED, seconds=FILL_SECONDS)
        speeds = {name: await _in_turns(each, *operation) for name, operation in OPERATIONS.items()}
        fan_outs = [await one.fan_out(watchers=sized(100, 5), writes=sized(100, 5), size=1_500) for one in each]
        return [
            Figures(
                **{name: of_all[number] for name, of_all in speeds.items()},
                fan_out=fan_outs[number],
                idle_bytes=idle[number],
                kept_bytes=0.0,
            )
            for number in range(len(each))
        ]


async def _in_turns(each: Sequence[Clients], operation: Operation, most: int) -> list[Speed]:
    """The speed of an operation on each server: the median of several rounds."""
    measured: list[list[Speed]] = [[] for _ in each]
    for first in range(0, ROUNDS * most, most):
        for clients, speeds in zip(each, measured, strict=True):
            numbered = partial(_nth, operation, clients, first)
            speeds.append(await clients.speed(numbered, most=most))
    return [
        Speed(statistics.median(one.per_second for one in speeds), statistics.median(one.cpu_seconds for one in speeds))
        for speeds in measured
    ]


async def _nth(operation: Operation, clients: Clients, first: int, number: int) -> None:
    await operation(clients, first + number)


async def _kept_bytes(target: Target) -> float:
    async with Clients(target, "kept") as clients:
        kept = await clients.repeat(lambda n: clients.create(n, size=2_000), most=KEPT, seconds=FILL_SECONDS)
        return (await clients.usage()).memory_bytes if kept == KEPT else 0.0
