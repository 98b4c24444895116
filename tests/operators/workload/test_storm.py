"""A Workload to which everything is done, in any order, by seeds that can be replayed: it always comes to rest."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.operators.workload.stages import (
    Wire,
    annotate,
    change,
    images,
    mortal,
    operator,
    reaches,
    staged,
    trouble,
    workload,
)

from holdfast.client.resources import BUDGETS, NODES, PODS, SERVICES
from holdfast.cluster.simulation.behaviours import Defaults
from holdfast.cluster.simulation.chaos import Crash
from holdfast.meta.errors import AlreadyExists, NotFound
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.render import REVISION, WORKLOAD
from holdfast.testing.clusters import Cluster

ACTS = 14
REJECTED, PROMOTED = "holdfast.dev/rejected-revision", "holdfast.dev/promoted"


def rollout_of(random: Random) -> Wire:
    """Any rollout that can be had; None takes a field away."""
    strategy = random.choice(["RollingUpdate", "Recreate", "BlueGreen", "Canary", "OnDelete"])
    steps = [random.choice([{"weight": 30, "pauseDuration": "3s"}, {"replicas": 1, "manual": True}]) for _ in range(2)]
    switching = random.choice([None, {"scaleDownDelay": "2s"}, {"autoPromote": False}, {"service": "front"}])
    return {
        "strategy": strategy,
        "minAvailable": random.choice([None, 0, 2, "50%", 4]),
        "maxSurge": random.choice([None, 1, 2, "50%"]),
        "maxUnavailable": random.choice([None, 1, 2]),
        "pauseDuration": random.choice([None, "2s"]),
        "minReadySeconds": random.choice([None, 2]),
        "replacement": random.choice([None, "onTermination"]),
        "canary": {"steps": steps} if strategy == "Canary" else None,
        "blueGreen": switching if strategy == "BlueGreen" else None,
        "partition": random.choice([None, 2]) if strategy == "RollingUpdate" else None,
    }


class Storm:
    """A user who does anything at random."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self._cluster = cluster
        self._random = random

    async def act(self) -> None:
        acts: list[Callable[[], Awaitable[Any]]] = [
            self._image,
            self._image,
            self._scale,
            self._rollout,
            self._pause,
            self._reject,
            self._promote,
            self._crash,
            self._drain,
            self._delete,
            self._budget,
        ]
        with contextlib.suppress(AlreadyExists, NotFound):
            await self._random.choice(acts)()

    async def _image(self) -> None:
        await change(self._cluster, image=f"web:{self._random.choice([1, 2, 3, 'broken'])}")

    async def _scale(self) -> None:
        await change(self._cluster, replicas=self._random.randrange(7))

    async def _rollout(self) -> None:
        await change(self._cluster, rollout=rollout_of(self._random))

    async def _pause(self) -> None:
        await change(self._cluster, rollout={"paused": self._random.choice([True, None])})

    async def _reject(self) -> None:
        await annotate(self._cluster, REJECTED, self._random.choice([None, await self._revision()]))

    async def _promote(self) -> None:
        await annotate(self._cluster, PROMOTED, f"{await self._revision()}:{self._random.randrange(3)}")

    async def _revision(self) -> str:
        status = (await self._cluster.get(WORKLOADS, "web")).get("status") or {}
        return str(status.get("updateRevision", ""))

    async def _crash(self) -> None:
        seed = self._random.randrange(100)
        await trouble(self._cluster, **{f"crash-{seed}": Crash(since=self._cluster.now(), share=0.5, seed=seed)})

    async def _drain(self) -> None:
        node, cordoned = f"node-{self._random.randrange(1, 4)}", self._random.choice([True, None])
        await self._cluster.patch(NODES, node, {"spec": {"unschedulable": cordoned}})

    async def _delete(self) -> None:
        for pod in (await self._cluster.list(PODS))[:1]:
            await self._cluster.delete(PODS, pod["metadata"]["name"])

    async def _budget(self) -> None:
        if self._random.choice([True, False]):
            await self._cluster.delete(BUDGETS, "web")
        spec = {"minAvailable": 3, "selector": {"matchLabels": {WORKLOAD: "web"}}}
        await self._cluster.create(BUDGETS, {"metadata": {"name": "web"}, "spec": spec})


@pytest.mark.parametrize("seed", [1, 2, 85, 4, 5, 6, 7, 8])
def test_whatever_was_done_to_it_it_comes_to_rest(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    random = Random(seed)

    async def story(cluster: Cluster) -> None:
        every = random.choice([0, 2, 5])
        async with mortal(cluster, every=every, seen=set()) if every else operator(cluster):
            made = workload(replicas=4, rollout=rollout_of(random), ports=[{"containerPort": 80}])
            await cluster.create(WORKLOADS, made)
            storm = Storm(cluster, random)
            for _ in range(ACTS):
                await cluster.advance(random.choice([0.2, 1, 3, 8]))
                await storm.act()
            for node in range(1, 5):
                await cluster.patch(NODES, f"node-{node}", {"spec": {"unschedulable": None}})
            await change(cluster, image="web:9", replicas=4, rollout=None)
            await reaches(cluster, "Completed")
        assert await images(cluster) == ["web:9"] * 4
        for service in await cluster.list(SERVICES):
            assert REVISION not in service["spec"].get("selector", {}), "it was not released"

    with caplog.at_level(logging.ERROR):
        staged(story, defaults=Defaults(seed=seed))
    assert caplog.messages == []
