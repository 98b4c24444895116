"""A rollout of many replicas, bound by how fast pods get ready: by a Workload, and by a Deployment beside it.

Server, controllers, and scheduler with nodes are processes of their own; this one watches the pods, and counts how
many are ready at each moment.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import clusters, operating
from benchmarks.clusters import PER_NODE
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Deleted, Event, Scope
from holdfast.client.resources import DEFINITIONS, DEPLOYMENTS, PODS, Resource
from holdfast.cluster.simulation.behaviours import PREFIX
from holdfast.kinds import crds
from holdfast.kinds.cloudless import KINDS

REPLICAS: Final = sized(1_000, 20)
SURGE: Final = sized(10, 50)
"""In percent of the replicas; nothing may be unavailable."""
READY_SECONDS: Final = 1
PATIENCE_SECONDS: Final = 60.0

BOUND: Final = 100 / SURGE * READY_SECONDS
"""Seconds that it takes if nothing but readiness does: a surge at a time, and no moment lost between them."""

WORKLOADS: Final = Resource.of(KINDS[0])
_IMAGE: Final = "registry.example.com/team/server"
_ANNOTATIONS: Final = {f"{PREFIX}ready-after": f"{READY_SECONDS}s"}
WRITES: Final = re.compile(r"^holdfast_writes_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one rollout."""

    seconds: float
    writes: float
    """Of the controllers; what the nodes write is not theirs."""
    cpu_seconds: float
    lowest: int
    """How many were ready at the worst moment."""


LINES: Final[Sequence[Line[Figures]]] = (
    Line("until the last replica is new and ready", "s", lambda it: it.seconds),
    Line("the same, in multiples of what readiness takes", "x", lambda it: it.seconds / BOUND),
    Line("controllers' writes to start or stop a pod", "", lambda it: it.writes / (2 * REPLICAS), "<= 2"),
    Line("controllers' CPU for a replica", "ms", lambda it: it.cpu_seconds / REPLICAS * 1_000, "< 2 ms"),
    Line("ready at the worst moment", "", lambda it: it.lowest, f">= {REPLICAS:,}"),
)


def report() -> None:
    workload = asyncio.run(measured("workloads", WORKLOADS, _workload))
    deployment = asyncio.run(measured("deployments", DEPLOYMENTS, _deployment))
    show(f"rollout of {REPLICAS:,}, surge {SURGE} %", LINES, {"Workload": workload, "Deployment": deployment})


async def measured(crew: str, resource: Resource, manifest: Callable[[str], dict[str, Any]]) -> Figures:
    """One rollout, from the change of the image until all replicas have it and are ready."""
    async with clusters.served() as (client, employ), asyncio.timeout(PATIENCE_SECONDS):
        await client.create(DEFINITIONS, crds.crd_of(KINDS[0]))
        await clusters.furnish(client, count=2 * REPLICAS // PER_NODE + 1)
        since = (await client.list(PODS)).version
        with employ("nodes"):
            async with client.watch(PODS, Scope(namespace="default"), since=since) as events:
                fleet = Fleet(events, size=REPLICAS)
                with employ(crew) as others:
                    await others.said(operating.WORKING)
                    await client.apply(resource, manifest("v1"))
                    await fleet.renewed()
                # Others do the rollout, so that what they write and use is for nothing else.
                with employ(crew) as controllers:
                    await controllers.said(operating.WORKING)
                    before = await controllers.settled()
                    begin = time.perf_counter()
                    await client.apply(resource, manifest("v2"))
                    lowest = await fleet.renewed()
                    seconds = time.perf_counter() - begin
                    after = await controllers.settled()
                    counted = controllers.ended()
    writes = sum(float(each) for each in WRITES.findall(counted))
    return Figures(seconds=seconds, writes=writes, cpu_seconds=after.cpu_seconds - before.cpu_seconds, lowest=lowest)


class Fleet:
    """The pods that a watch shows, of which there should be so many."""

    def __init__(self, events: AsyncIterator[Event], *, size: int) -> None:
        self._events = events
        self._size = size
        self._ready: set[str] = set()
        """UIDs of the pods that serve."""

    async def renewed(self) -> int:
        """Until as many pods are ready as there should be, and none of those that were; the fewest there were."""
        old, lowest = frozenset(self._ready), len(self._ready)
        async for event in self._events:
            if isinstance(event, Bookmark):
                continue
            pod = Pod.of(event.object)
            if pod.ready and pod.active and not isinstance(event, Deleted):
                self._ready.add(pod.metadata.uid)
            else:
                self._ready.discard(pod.metadata.uid)
            lowest = min(lowest, len(self._ready))
            if len(self._ready) == self._size and self._ready.isdisjoint(old):
                return lowest
        raise RuntimeError("the watch ended before all pods were ready")


def _workload(tag: str) -> dict[str, Any]:
    rollout = {"strategy": "RollingUpdate", "maxSurge": f"{SURGE}%", "maxUnavailable": 0}
    spec = {"image": f"{_IMAGE}:{tag}", "replicas": REPLICAS, "rollout": rollout}
    return {"metadata": {"name": "rolled", "namespace": "default", "annotations": _ANNOTATIONS}, "spec": spec}


def _deployment(tag: str) -> dict[str, Any]:
    labels = {"app": "rolled"}
    spec = {
        "replicas": REPLICAS,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": f"{SURGE}%", "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": labels, "annotations": _ANNOTATIONS},
            "spec": {"containers": [{"name": "main", "image": f"{_IMAGE}:{tag}"}]},
        },
    }
    return {"metadata": {"name": "rolled", "namespace": "default"}, "spec": spec}
