"""A clock of the operator that is set back or forward in the middle of a rollout stops no rollout and breaks no floor.

Pods and nodes keep the clock of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.operators.podcliqueset import gangsets
from tests.operators.tenant import stories
from tests.operators.workload import stages

from holdfast.cluster.assembly import Cluster as Parts
from holdfast.kinds import cloudless, grove, grove_scheduler, rustfs
from holdfast.operators.podcliqueset import controller as podcliqueset
from holdfast.operators.podcliqueset.resources import SETS
from holdfast.operators.tenant import controller as tenant
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.workload import controller as workload
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.runtime.controllers import Controller
from holdfast.runtime.manager import Manager
from holdfast.testing.clusters import Cluster, connected, play
from holdfast.testing.contract import Bounds, bounded

STEPS = pytest.mark.parametrize("hours", [-1, 1])
KINDS = (*cloudless.KINDS, *grove.KINDS, *grove_scheduler.KINDS, *rustfs.KINDS)

Step = Callable[[], None]


def stepped(
    controllers: Sequence[Controller[Any]],
    story: Callable[[Cluster, Step], Awaitable[None]],
    *,
    hours: int,
    bounds: Bounds,
) -> None:
    """Play a story with an operator whose clock it steps by so many hours, once."""
    parts, offset = Parts(nodes=4), timedelta()

    def step() -> None:
        nonlocal offset
        offset = timedelta(hours=hours)

    async def played(cluster: Cluster) -> None:
        for resource, manifest in parts.default_objects():
            await cluster.create(resource, manifest)
        client = connected(cluster.server)
        manager = Manager(client, controllers=controllers, now=lambda: cluster.now() + offset, seed=1)
        working = asyncio.create_task(manager.run())
        try:
            async with bounded(cluster, bounds) as breaches:
                await story(cluster, step)
            assert breaches == []
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    play(played, controllers=parts.controllers(), components=parts.components(), kinds=KINDS)


@STEPS
@pytest.mark.parametrize("seconds", [0.2, 1, 3])
def test_a_workload_is_rolled_out(hours: int, seconds: float) -> None:
    async def story(cluster: Cluster, step: Step) -> None:
        rollout = {"minAvailable": 3, "maxSurge": 1}
        await cluster.create(WORKLOADS, stages.workload(replicas=4, rollout=rollout))
        await stages.reaches(cluster, "Completed", within=120)
        await stages.change(cluster, image="web:2")
        await cluster.advance(seconds)
        step()
        await stages.reaches(cluster, "Completed", within=120)
        assert await stages.images(cluster) == ["web:2"] * 4

    stepped(workload.CONTROLLERS, story, hours=hours, bounds=Bounds(floor=3, ceiling=5))


@STEPS
@pytest.mark.parametrize("seconds", [0.2, 1, 3])
def test_a_podcliqueset_is_updated(hours: int, seconds: float) -> None:
    manifest = gangsets.pcs("wl", gangsets.clique("a", 3, minimum=2))

    async def story(cluster: Cluster, step: Step) -> None:
        await cluster.create(SETS, manifest)
        await gangsets.until_available(cluster)
        await gangsets.update(cluster, gangsets.changed(manifest))
        await cluster.advance(seconds)
        step()
        await gangsets.until_updated(cluster, within=120)

    stepped(podcliqueset.CONTROLLERS, story, hours=hours, bounds=Bounds(floor=2, ceiling=3))


@STEPS
def test_the_replicas_of_a_scaling_group_are_updated(hours: int) -> None:
    manifest = gangsets.pcs("wl", gangsets.clique("a"), gangsets.group("g", "a", replicas=3, minimum=2))

    async def story(cluster: Cluster, step: Step) -> None:
        await cluster.create(SETS, manifest)
        await gangsets.until_available(cluster)
        await gangsets.update(cluster, gangsets.changed(manifest))
        await cluster.advance(1)
        step()
        await gangsets.until_updated(cluster, within=120)

    stepped(podcliqueset.CONTROLLERS, story, hours=hours, bounds=Bounds(floor=2, ceiling=3))


@STEPS
def test_a_deadline_that_is_missed_after_the_step_is_reported_until_there_is_progress(hours: int) -> None:
    async def story(cluster: Cluster, step: Step) -> None:
        rollout = {"minAvailable": 3, "maxSurge": 1, "progressDeadline": "60s", "onFailure": "hold"}
        await cluster.create(WORKLOADS, stages.workload(replicas=4, rollout=rollout))
        await stages.reaches(cluster, "Completed", within=120)
        slow = {"annotations": {"sim.holdfast.dev/ready-after": "200s"}}
        await cluster.patch(WORKLOADS, "web", {"metadata": slow, "spec": {"image": "web:2"}})
        await cluster.advance(1)
        step()
        await stages.because(cluster, "ProgressDeadlineExceeded", within=150)
        await stages.reaches(cluster, "Completed", within=1200)
        assert await stages.images(cluster) == ["web:2"] * 4

    stepped(workload.CONTROLLERS, story, hours=hours, bounds=Bounds(floor=3, ceiling=5))


@STEPS
@pytest.mark.parametrize("seconds", [0.2, 1, 3])
def test_a_tenant_is_rolled_out(hours: int, seconds: float) -> None:
    async def story(cluster: Cluster, step: Step) -> None:
        await cluster.create(TENANTS, stories.tenant("store", stories.pool(servers=4)))
        await stories.reaches(cluster, "Ready", within=120)
        await stories.to_image(cluster, stories.NEWER)
        await cluster.advance(seconds)
        step()
        await stories.reaches(cluster, "Ready", within=240)
        assert set(stories.images(await stories.servers(cluster))) == {stories.NEWER}

    controllers = tenant.controllers(connect=stories.connect)
    stepped(controllers, story, hours=hours, bounds=Bounds(floor=3, ceiling=4))
