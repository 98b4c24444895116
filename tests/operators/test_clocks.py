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


BEHIND = pytest.mark.parametrize("hours", [0, -1])
"""The hours by which the clock of the operator is behind those of the nodes, from the beginning on."""

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}


@BEHIND
@pytest.mark.parametrize("wait", [{"minReadySeconds": 20}, {"pauseDuration": "20s"}])
def test_a_workload_waits_as_long_as_it_should_for_pods_of_nodes_whose_clocks_are_ahead(
    hours: int, wait: dict[str, Any]
) -> None:
    async def story(cluster: Cluster, step: Step) -> None:
        step()
        rollout = {"minAvailable": 2, "maxSurge": 1, "maxUnavailable": 0, **wait}
        manifest = stages.workload(replicas=2, rollout=rollout, metadata={"annotations": READY})
        await cluster.create(WORKLOADS, manifest)
        await stages.reaches(cluster, "Completed", within=60)
        await stages.change(cluster, image="web:2")
        began = cluster.loop.time()
        await stages.reaches(cluster, "Completed", within=120)
        # Two batches of one.
        assert 40 <= cluster.loop.time() - began < 60

    stepped(workload.CONTROLLERS, story, hours=hours, bounds=Bounds(floor=2, ceiling=3))


@BEHIND
def test_pods_of_a_clique_are_updated_as_fast_on_nodes_whose_clocks_are_ahead(hours: int) -> None:
    strategy = {"type": "RollingRecreate", "rollingUpdate": {"minReadySeconds": 20, "maxSurge": 1}}
    manifest = gangsets.pcs("wl", gangsets.clique("a", 2, minimum=2, annotations=READY), strategy=strategy)

    async def story(cluster: Cluster, step: Step) -> None:
        step()
        await cluster.create(SETS, manifest)
        await gangsets.until_available(cluster)
        await gangsets.update(cluster, gangsets.changed(manifest))
        began = cluster.loop.time()
        await gangsets.until_updated(cluster, within=120)
        assert 40 <= cluster.loop.time() - began < 80

    stepped(podcliqueset.CONTROLLERS, story, hours=hours, bounds=Bounds(floor=2, ceiling=3))


def test_replicas_of_a_group_wait_no_longer_after_the_clock_of_the_operator_was_set_back() -> None:
    strategy = {"type": "RollingRecreate", "rollingUpdate": {"minReadySeconds": 20}}
    cliques = (gangsets.clique("a", annotations=READY), gangsets.group("g", "a", replicas=2, minimum=1))
    manifest = gangsets.pcs("wl", *cliques, strategy=strategy)

    async def story(cluster: Cluster, step: Step) -> None:
        await cluster.create(SETS, manifest)
        await gangsets.until_available(cluster)
        await gangsets.update(cluster, gangsets.changed(manifest))
        await cluster.advance(5)
        step()
        await gangsets.until_updated(cluster, within=120)

    stepped(podcliqueset.CONTROLLERS, story, hours=-1, bounds=Bounds(floor=1, ceiling=3))


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
