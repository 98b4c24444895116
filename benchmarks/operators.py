"""Holdfast's runtime against kopf: the same work, on one API server, in one run, each in a process of its own.

Objects are copied from spec to status: first those that were there before the operator came, which shows what it can
do by itself; then objects that are created, and then changed, while it works.  The load is the same for both, and so
is whoever watches until all statuses are right.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from benchmarks import clusters, kopf_copy, operating, processes
from benchmarks.clusters import Cluster
from benchmarks.copying import COPIES, DEFINITION, Copy, Value
from benchmarks.load import CONNECTIONS
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.protocols import Bookmark, Client, Scope
from holdfast.meta.objects import Key

OBJECTS: Final = sized(1_000, 20)
PATIENCE_SECONDS: Final = 60.0
"""After which an operator is given up in one phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Seconds since the beginning, until the first and the last status were right."""

    first: float
    last: float

    @property
    def per_second(self) -> float:
        """How fast statuses became right, whatever it took to begin."""
        return (OBJECTS - 1) / (self.last - self.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of one operator."""

    sending: float
    """Seconds that it takes to create the objects while no operator runs."""
    found: Phase
    created: Phase
    updated: Phase
    cpu_seconds: float
    """Of its process, for one object that was created or updated."""
    memory_bytes: float


LINES: Final[Sequence[Line[Figures]]] = (
    Line("objects found at the start", "/s", lambda it: it.found.per_second, bar=">= 10x"),
    Line("the same, from the start of the process", "s", lambda it: it.found.last),
    Line("1,000 creations until all are right", "s", lambda it: it.created.last, bar="<= 1x"),
    Line("1,000 updates until all are right", "s", lambda it: it.updated.last, bar="<= 1x"),
    Line("the load alone: sending 1,000 creations", "s", lambda it: it.sending),
    Line("CPU for one object", "ms", lambda it: it.cpu_seconds * 1_000, bar="<= 1/5"),
    Line("memory", "MB", lambda it: it.memory_bytes / 1e6),
)


def report() -> None:
    ours, theirs = asyncio.run(measured(clusters.ours()))
    show("a field copied to the status", LINES, {"holdfast": ours, "kopf": theirs})


async def measured(opened: AbstractAsyncContextManager[Cluster]) -> tuple[Figures, Figures]:
    """Holdfast's figures and kopf's."""
    async with opened as cluster:
        await cluster.define(DEFINITION)
        ours, theirs = await cluster.namespace("ours"), await cluster.namespace("theirs")
        return (
            await _figures(cluster, ours, operating.command("copy", namespace=ours)),
            await _figures(cluster, theirs, (*_KOPF, "--namespace", theirs)),
        )


_KOPF: Final = (sys.executable, "-m", "kopf", "run", "--quiet", "--standalone", str(kopf_copy.__file__))


async def _figures(cluster: Cluster, namespace: str, command: Sequence[str]) -> Figures:
    work = _Work(cluster.client, namespace)
    sending = await work.send(lambda number: work.create("found", number))
    with processes.started(command, KUBECONFIG=str(cluster.kubeconfig)) as process:
        found = await work.phase("found")
        before = await process.settled()
        created = await work.phase("created", lambda number: work.create("created", number))
        updated = await work.phase("updated", lambda number: work.update("created", number, value="updated"))
        after = await process.settled()
    return Figures(
        sending=sending,
        found=found,
        created=created,
        updated=updated,
        cpu_seconds=(after.cpu_seconds - before.cpu_seconds) / (2 * OBJECTS),
        memory_bytes=after.memory_bytes,
    )


class _Work:
    """The load in one namespace, and the statuses that come of it."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._scope = Scope(namespace=namespace)

    async def create(self, value: str, number: int) -> None:
        metadata = {"namespace": self._scope.namespace, "name": f"{value}-{number}"}
        await self._client.create(COPIES, {"metadata": metadata, "spec": {"value": value}})

    async def update(self, name: str, number: int, *, value: str) -> None:
        key = Key(self._scope.namespace, f"{name}-{number}")
        await self._client.patch(COPIES, key, {"spec": {"value": value}})

    async def send(self, load: Callable[[int], Awaitable[None]]) -> float:
        """Send a load on all connections at once; the seconds that it took."""
        numbers = iter(range(OBJECTS))
        begin = time.perf_counter()

        async def sender() -> None:
            for number in numbers:
                await load(number)

        await asyncio.gather(*(sender() for _ in range(CONNECTIONS)))
        return time.perf_counter() - begin

    async def phase(self, value: str, load: Callable[[int], Awaitable[None]] | None = None) -> Phase:
        """Send a load, if there is one, and wait until as many statuses have the value."""
        listed = await self._client.list(COPIES, self._scope)
        begin = time.perf_counter()
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            seeing = group.create_task(self._seen(Value(value), listed.version))
            if load is not None:
                await self.send(load)
            first, last = await seeing
        return Phase(first=first - begin, last=last - begin)

    async def _seen(self, value: Value, since: str) -> tuple[float, float]:
        """When the first and the last status of a value were seen."""
        times: dict[str, float] = {}
        async with self._client.watch(COPIES, self._scope, since=since) as events:
            async for event in events:
                if isinstance(event, Bookmark) or event.object.decode(Copy).status != value:
                    continue
                times.setdefault(event.object.meta.name, time.perf_counter())
                if len(times) == OBJECTS:
                    break
        return min(times.values()), max(times.values())
