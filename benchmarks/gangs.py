"""Pods in gangs, created and rolled: the replicas of a scaling group, or those of a PodCliqueSet.

Of a scaling group, one replica at a time is replaced as a whole.  Of a set, one replica at a time is updated, and a
part of its pods at once.  Each pod is ready after a second.  Server, controllers, and scheduler with nodes are
processes of their own, as for `rollouts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import clusters, operating
from benchmarks.clusters import PER_NODE, Cluster
from benchmarks.rollouts import WRITES, Fleet, Opened, pod_events
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.resources import PODS, Resource
from holdfast.cluster.simulation.behaviours import PREFIX
from holdfast.kinds import crds, grove, grove_scheduler

READY_SECONDS: Final = sized(1.0, 0.1)
PATIENCE_SECONDS: Final = 180.0

SETS: Final = Resource.of(grove.sets.KIND)
CLIQUES: Final = Resource.of(grove.cliques.KIND)


@dataclass(frozen=True, slots=True)
class Shape:
    """A set: its gangs, the pods of each, and the percentage of them that may surge.

    Without a surge, the gangs are replicas of a scaling group.
    """

    gangs: int
    size: int
    surge: int = 0

    def __str__(self) -> str:
        kind = f"surge {self.surge} %" if self.surge else "scaling group"
        return f"{self.gangs} gangs of {self.size} pods, {kind}"

    @property
    def pods(self) -> int:
        return self.gangs * self.size

    @property
    def bound(self) -> float:
        """Seconds of a rollout if nothing but readiness takes time."""
        return self.gangs * 100 / (self.surge or 100) * READY_SECONDS


SMALL: Final = sized(Shape(10, 10), Shape(2, 2))
LARGE: Final = sized(Shape(10, 100, 50), Shape(2, 4, 50))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of the creation of a set, or of its rollout."""

    pods: int
    seconds: float
    bound: float
    writes: float
    cpu_seconds: float
    memory_bytes: float


LINES: Final[Sequence[Line[Figures]]] = (
    Line("until all pods are ready", "s", lambda it: it.seconds),
    Line("the same, in multiples of what readiness takes", "x", lambda it: it.seconds / it.bound, "<= 1.3x"),
    Line("controllers' writes for a pod", "", lambda it: it.writes / it.pods),
    Line("controllers' CPU for a pod", "ms", lambda it: it.cpu_seconds / it.pods * 1_000, "<= 10 ms"),
    Line("controllers' memory", "MB", lambda it: it.memory_bytes / 1e6),
)


def report() -> None:
    for shape in (SMALL, LARGE):
        created, rolled = asyncio.run(measured(clusters.ours(), shape))
        show(str(shape), LINES, {"created": created, "rolled": rolled})


async def measured(opened: Opened, shape: Shape) -> tuple[Figures, Figures]:
    """The creation of a set, and its rollout."""
    async with opened as cluster, asyncio.timeout(PATIENCE_SECONDS):
        namespace = await cluster.namespace("gangs")
        for kind in (*grove.KINDS, *grove_scheduler.KINDS):
            await cluster.define(crds.crd_of(kind))
        await cluster.collects(CLIQUES, _clique_alone(shape, namespace))
        await cluster.create_nodes(count=2 * shape.pods // PER_NODE + 1)
        since = (await cluster.client.list(PODS)).version
        with cluster.start("nodes"):
            async with contextlib.aclosing(pod_events(cluster.client, namespace, since)) as events:
                fleet = Fleet(events, size=shape.pods)
                created = await _act(cluster, fleet, shape, _set(shape, namespace, "v1"), bound=READY_SECONDS)
                rolled = await _act(cluster, fleet, shape, _set(shape, namespace, "v2"), bound=shape.bound)
    return created, rolled


async def _act(cluster: Cluster, fleet: Fleet, shape: Shape, manifest: dict[str, Any], *, bound: float) -> Figures:
    """Apply a set, with a process that does nothing else, and wait until all pods are new and ready."""
    with cluster.start("gangs") as controllers:
        await controllers.said(operating.WORKING)
        before = await controllers.settled()
        begin = time.perf_counter()
        await cluster.client.apply(SETS, manifest)
        await fleet.renewed()
        seconds = time.perf_counter() - begin
        after = await controllers.settled()
        counted = controllers.ended()
    return Figures(
        pods=shape.pods,
        seconds=seconds,
        bound=bound,
        writes=sum(float(each) for each in WRITES.findall(counted)),
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        memory_bytes=after.memory_bytes,
    )


def _clique(shape: Shape, image: str) -> dict[str, Any]:
    """The spec of a clique."""
    container = {"name": "main", "image": f"registry.example.com/team/engine:{image}"}
    spec = {"containers": [container]}
    return {"roleName": "engine", "replicas": shape.size, "minAvailable": shape.size, "podSpec": spec}


def _clique_alone(shape: Shape, namespace: str) -> dict[str, Any]:
    return {"metadata": {"name": "alone", "namespace": namespace}, "spec": _clique(shape, "v1")}


def _set(shape: Shape, namespace: str, image: str) -> dict[str, Any]:
    annotations = {f"{PREFIX}ready-after": f"{READY_SECONDS:g}s"}
    clique = {"name": "engine", "annotations": annotations, "spec": _clique(shape, image)}
    template: dict[str, Any] = {"cliques": [clique]}
    if shape.surge:
        rolling = {"maxSurge": f"{shape.surge}%", "maxUnavailable": 0}
        strategy = {"type": "RollingRecreate", "rollingUpdate": rolling}
        spec = {"replicas": shape.gangs, "updateStrategy": strategy, "template": template}
    else:
        group = {"name": "engines", "cliqueNames": ["engine"], "replicas": shape.gangs, "minAvailable": 1}
        spec = {"replicas": 1, "template": {**template, "podCliqueScalingGroups": [group]}}
    return {"metadata": {"name": "rolled", "namespace": namespace}, "spec": spec}
