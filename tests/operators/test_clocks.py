"""A clock that is set back or forward during a rollout freezes no Workload, and breaks no floor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.operators.workload import stages

from holdfast.cluster.assembly import Cluster as Parts
from holdfast.operators.workload.controller import CONTROLLERS as WORKLOAD_CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.runtime.controllers import Controller
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.clusters import Cluster, connected, play
from holdfast.testing.contract import Bounds, bounded

STEPS = pytest.mark.parametrize("hours", [-1, 1])
Step = Callable[[], None]


def stepped(
    controllers: Sequence[Controller[Any]],
    story: Callable[[Cluster, Step], Awaitable[None]],
    *,
    hours: int,
    bounds: Bounds,
    kinds: Any,
) -> None:
    """Play a story with an operator whose clock the story sets back or forward; pods keep the clock of the cluster."""
    offset = [timedelta(0)]

    def step() -> None:
        offset[0] = timedelta(hours=hours)

    async def played(cluster: Cluster) -> None:
        for resource, manifest in parts.default_objects():
            await cluster.create(resource, manifest)
        client = connected(cluster.server)
        now = lambda: cluster.now() + offset[0]  # noqa: E731
        manager = Manager(client, controllers=controllers, now=now, settings=Settings(), seed=1)
        working = asyncio.create_task(manager.run())
        try:
            async with bounded(cluster, bounds) as breaches:
                await story(cluster, step)
            assert breaches == []
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    parts = Parts(nodes=4)
    play(played, controllers=parts.controllers(), components=parts.components(), kinds=kinds)


@STEPS
def test_a_workload_is_rolled_out(hours: int) -> None:
    async def story(cluster: Cluster, step: Step) -> None:
        rollout = {"minAvailable": 3, "maxSurge": 1}
        await cluster.create(WORKLOADS, stages.workload(replicas=4, rollout=rollout))
        await stages.reaches(cluster, "Completed", within=120)
        await stages.change(cluster, image="web:2")
        await cluster.advance(1)
        step()
        await stages.reaches(cluster, "Completed", within=120)
        assert await stages.images(cluster) == ["web:2"] * 4

    stepped(WORKLOAD_CONTROLLERS, story, hours=hours, bounds=Bounds(floor=3, ceiling=5), kinds=stages.KINDS)
