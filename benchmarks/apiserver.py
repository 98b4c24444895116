"""The API server under load: speed, latency of watches, memory and start-up, over TLS on the loopback.

The server is a process of its own with a durable data directory; its clients are in this one, so that on two cores
each side has one.  The same clients measure another API server too, if a kubeconfig is named: in namespaces of their
own, which are deleted in the end.  Everything is bounded in count and in time.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import targets
from benchmarks.load import Clients, Speed
from benchmarks.sizes import sized
from benchmarks.tables import shown
from benchmarks.targets import Target
from holdfast.apiserver.http.listener import new_event_loop

LISTED: Final = sized(1_000, 20)
KEPT: Final = sized(10_000, 40)
STARTS: Final = sized(3, 1)
FILL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of one server; of one that others started, not how long that took."""

    create: Speed
    get: Speed
    list: Speed
    list_gzip: Speed
    patch: Speed
    fan_out: Sequence[float]
    idle_bytes: float
    kept_bytes: float = 0.0
    starts: Sequence[float] = ()
    start_with_kept: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report: how a figure is read, and what it is held against."""

    name: str
    unit: str
    read: Callable[[Figures], float]
    bar: str = ""
    reference: float = 0.0


# The reference: a kube-apiserver with an etcd that does not flush, on two cores, over TLS with 32 connections.
LINES: Final = (
    Line("create, 1.5 KB", "/s", lambda it: it.create.per_second, "> 2x", 534),
    Line("get, 1.5 KB", "/s", lambda it: it.get.per_second, "> 2x", 1202),
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
    Line("memory, 10,000 objects of 2 KB", "MB", lambda it: it.kept_bytes / 1e6, "< 1/4", 480),
    Line("start to first answer", "s", lambda it: statistics.median(it.starts or [0.0]), "< 1"),
    Line("the same, with 10,000 objects", "s", lambda it: it.start_with_kept),
)


def report() -> None:
    """Measure and print; a server takes less than a minute."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        ours = runner.run(_ours())
        other = targets.other()
        theirs = runner.run(_theirs(other)) if other else None
    print(f"{'API server, TLS, 32 connections':32} {'bar':>6} {'holdfast':>12} {'reference':>12} {'other':>12}")
    for line in LINES:
        values = (line.read(ours), line.reference, line.read(theirs) if theirs else 0.0)
        cells = " ".join(f"{shown(value, line.unit):>12}" for value in values)
        print(f"{line.name:32} {line.bar:>6} {cells}")


async def _ours() -> Figures:
    with TemporaryDirectory(prefix="holdfast-bench-") as directory:
        home = Path(directory)
        async with targets.ours(home, "first"):
            pass
        starts = []
        for number in range(STARTS):
            async with targets.ours(home, f"start-{number}") as target:
                starts.append(target.ready_seconds)
        async with targets.ours(home, "speed") as target:
            figures = await _speeds(target)
        async with targets.ours(home, "kept") as target:
            figures = await _filled(target, figures)
        async with targets.ours(home, "kept") as target:
            return replace(figures, starts=starts, start_with_kept=target.ready_seconds)


async def _theirs(target: Target) -> Figures:
    return await _filled(target, await _speeds(target))


async def _speeds(target: Target) -> Figures:
    async with Clients(target, "speed") as clients:
        idle = (await clients.usage()).memory_bytes
        await clients.repeat(lambda n: clients.create(n, size=1_500), most=LISTED, seconds=FILL_SECONDS)
        plain = await clients.speed(lambda n: clients.list_all(gzip=False), most=sized(200, 5))
        packed = await clients.speed(lambda n: clients.list_all(gzip=True), most=sized(100, 5))
        return Figures(
            idle_bytes=idle,
            list=plain,
            list_gzip=packed,
            get=await clients.speed(lambda n: clients.get(n % LISTED), most=sized(8_000, 40)),
            create=await clients.speed(lambda n: clients.create(LISTED + n, size=1_500), most=sized(4_000, 40)),
            patch=await clients.speed(lambda n: clients.patch(n % LISTED, value=str(n)), most=sized(4_000, 40)),
            fan_out=await clients.fan_out(watchers=sized(100, 5), writes=sized(100, 5), size=1_500),
        )


async def _filled(target: Target, figures: Figures) -> Figures:
    async with Clients(target, "kept") as clients:
        kept = await clients.repeat(lambda n: clients.create(n, size=2_000), most=KEPT, seconds=FILL_SECONDS)
        return replace(figures, kept_bytes=(await clients.usage()).memory_bytes if kept == KEPT else 0.0)
