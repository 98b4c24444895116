"""A rollout of many replicas, bound by how fast pods get ready: by a Workload, and by a Deployment beside it.

Server, controllers, and scheduler with nodes are processes of their own; this one watches the pods, and counts how
many are ready at each moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import clusters, operating
from benchmarks.clusters import PER_NODE, Cluster
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Client, Deleted, Event, Scope
from holdfast.client.resources import DEPLOYMENTS, PODS, Resource
from holdfast.cluster.simulation.behaviours import PREFIX
from holdfast.kinds import crds
from holdfast.kinds.cloudless import KINDS

REPLICAS: Final = sized(1_000, 20)
SURGE: Final = sized(10, 50)
"""In percent of the replicas; nothing may be unavailable."""
READY_SECONDS: Final = sized(1.0, 0.1)
PATIENCE_SECONDS: Final = 180.0

BOUND: Final = 100 / SURGE * READY_SECONDS
"""Seconds that it takes if nothing but readiness does: a surge at a time, and no moment lost between them."""

WORKLOADS: Final = Resource.of(KINDS[0])
_IMAGE: Final = "registry.example.com/team/server"
_ANNOTATIONS: Final = {f"{PREFIX}ready-after": f"{READY_SECONDS:g}s"}
WRITES: Final = re.compile(r"^holdfast_writes_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one rollout."""

    seconds: float
    writes: float
    """Of the controllers; what the nodes write is not theirs."""
    cpu_seconds: float
    memory_bytes: float
    lowest: int
    """How many were ready at the worst moment."""


LINES: Final[Sequence[Line[Figures]]] = (
    Line("until the last replica is new and ready", "s", lambda it: it.seconds),
    Line("the same, in multiples of what readiness takes", "x", lambda it: it.seconds / BOUND),
    Line("controllers' writes to start or stop a pod", "", lambda it: it.writes / (2 * REPLICAS), "<= 2"),
    Line("controllers' CPU for a replica", "ms", lambda it: it.cpu_seconds / REPLICAS * 1_000, "< 2 ms"),
    Line("controllers' memory", "MB", lambda it: it.memory_bytes / 1e6),
    Line("ready at the worst moment", "", lambda it: it.lowest, f">= {REPLICAS:,}"),
)


def report() -> None:
    workload = asyncio.run(measured_workload(clusters.ours()))
    deployment = asyncio.run(measured_deployment(clusters.ours()))
    show(f"rollout of {REPLICAS:,}, surge {SURGE} %", LINES, {"Workload": workload, "Deployment": deployment})


Opened = AbstractAsyncContextManager[Cluster]


async def measured_workload(opened: Opened) -> Figures:
    return await _measured(opened, "workloads", WORKLOADS, _workload)


async def measured_deployment(opened: Opened) -> Figures:
    return await _measured(opened, "deployments", DEPLOYMENTS, _deployment)


async def _measured(opened: Opened, program: str, resource: Resource, manifest: Callable[[str], Any]) -> Figures:
    """One rollout, from the change of the image until all replicas have it and are ready."""
    async with opened as cluster, asyncio.timeout(PATIENCE_SECONDS):
        client, namespace = cluster.client, await cluster.namespace("rollout")
        await cluster.define(crds.crd_of(KINDS[0]))
        await cluster.create_nodes(count=2 * REPLICAS // PER_NODE + 1)
        since = (await client.list(PODS)).version
        with cluster.start("nodes"):
            async with contextlib.aclosing(pod_events(client, namespace, since)) as events:
                fleet = Fleet(events, size=REPLICAS)
                with cluster.start(program) as others:
                    await others.said(operating.WORKING)
                    await client.apply(resource, _in(namespace, manifest("v1")))
                    await fleet.renewed()
                # A new process does the rollout, so that what it writes and uses is for nothing else.
                with cluster.start(program) as controllers:
                    await controllers.said(operating.WORKING)
                    before = await controllers.settled()
                    begin = time.perf_counter()
                    await client.apply(resource, _in(namespace, manifest("v2")))
                    lowest = await fleet.renewed()
                    seconds = time.perf_counter() - begin
                    after = await controllers.settled()
                    counted = controllers.ended()
    return Figures(
        seconds=seconds,
        writes=sum(float(each) for each in WRITES.findall(counted)),
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        memory_bytes=after.memory_bytes,
        lowest=lowest,
    )


def _in(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


async def pod_events(client: Client, namespace: str, since: str) -> AsyncGenerator[Event, None]:
    """The events of the pods of a namespace; a watch that the server ends, as it may, is begun again."""
    while True:
        async with client.watch(PODS, Scope(namespace=namespace), since=since) as events:
            async for event in events:
                since = event.version if isinstance(event, Bookmark) else event.object.version
                yield event


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
    return {"metadata": {"name": "rolled", "annotations": _ANNOTATIONS}, "spec": spec}


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
    return {"metadata": {"name": "rolled"}, "spec": spec}
