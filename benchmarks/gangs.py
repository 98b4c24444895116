"""Many pods in gangs, created and rolled: one PodCliqueSet of ten replicas with a hundred pods each.

A replica of the set is updated at a time, half of its pods at once; each pod is ready after a second.  Server,
controllers, and scheduler with nodes are processes of their own, as for `rollouts`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import clusters, operating
from benchmarks.clusters import PER_NODE
from benchmarks.rollouts import WRITES, Fleet
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.protocols import Scope
from holdfast.client.resources import DEFINITIONS, PODS, Resource
from holdfast.cluster.simulation.behaviours import PREFIX
from holdfast.kinds import crds, grove, grove_scheduler

GANGS: Final = sized(10, 2)
SIZE: Final = sized(100, 4)
SURGE: Final = 50
"""In percent of a clique; nothing may be unavailable."""
READY_SECONDS: Final = 1
PATIENCE_SECONDS: Final = 180.0

PODS_IN_ALL: Final = GANGS * SIZE
BOUND: Final = GANGS * 100 / SURGE * READY_SECONDS
"""Seconds of a rollout if nothing but readiness takes time."""

SETS: Final = next(Resource.of(kind) for kind in grove.KINDS if kind.name == "PodCliqueSet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of the making, or of a rollout."""

    seconds: float
    bound: float
    writes: float
    cpu_seconds: float


LINES: Final[Sequence[Line[Figures]]] = (
    Line("until all pods are ready", "s", lambda it: it.seconds),
    Line("the same, in multiples of what readiness takes", "x", lambda it: it.seconds / it.bound),
    Line("controllers' writes for a pod", "", lambda it: it.writes / PODS_IN_ALL),
    Line("controllers' CPU for a pod", "ms", lambda it: it.cpu_seconds / PODS_IN_ALL * 1_000),
)


def report() -> None:
    made, rolled = asyncio.run(measured())
    show(f"{GANGS} gangs of {SIZE} pods", LINES, {"created": made, "rolled": rolled})


async def measured() -> tuple[Figures, Figures]:
    async with clusters.served() as (client, employ), asyncio.timeout(PATIENCE_SECONDS):
        for kind in (*grove.KINDS, *grove_scheduler.KINDS):
            await client.create(DEFINITIONS, crds.crd_of(kind))
        await clusters.furnish(client, count=2 * PODS_IN_ALL // PER_NODE + 1)
        since = (await client.list(PODS)).version
        with employ("nodes"):
            async with client.watch(PODS, Scope(namespace="default"), since=since) as events:
                fleet = Fleet(events, size=PODS_IN_ALL)
                made = await _act(client, employ, fleet, image="v1", bound=READY_SECONDS)
                rolled = await _act(client, employ, fleet, image="v2", bound=BOUND)
    return made, rolled


async def _act(client: Any, employ: Any, fleet: Fleet, *, image: str, bound: float) -> Figures:
    """Apply the set, by controllers that do nothing else, and wait until all pods are new and ready."""
    with employ("gangs") as controllers:
        await controllers.said(operating.WORKING)
        before = await controllers.settled()
        begin = time.perf_counter()
        await client.apply(SETS, _set(image))
        await fleet.renewed()
        seconds = time.perf_counter() - begin
        after = await controllers.settled()
        counted = controllers.ended()
    writes = sum(float(each) for each in WRITES.findall(counted))
    return Figures(seconds=seconds, bound=bound, writes=writes, cpu_seconds=after.cpu_seconds - before.cpu_seconds)


def _set(image: str) -> dict[str, Any]:
    container = {"name": "main", "image": f"registry.example.com/team/engine:{image}"}
    clique = {
        "name": "engine",
        "annotations": {f"{PREFIX}ready-after": f"{READY_SECONDS}s"},
        "spec": {
            "roleName": "engine",
            "replicas": SIZE,
            "minAvailable": SIZE,
            "podSpec": {"containers": [container]},
        },
    }
    strategy = {"type": "RollingRecreate", "rollingUpdate": {"maxSurge": f"{SURGE}%", "maxUnavailable": 0}}
    spec = {"replicas": GANGS, "updateStrategy": strategy, "template": {"cliques": [clique]}}
    return {"metadata": {"name": "rolled", "namespace": "default"}, "spec": spec}
