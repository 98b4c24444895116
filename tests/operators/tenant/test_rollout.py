"""Rollouts across pools: one server of a pool at a time, pools in lockstep, broken revisions superseded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.operators.tenant.stories import (
    IMAGE,
    NEWER,
    NEWEST,
    answer,
    condition,
    images,
    is_ready,
    partition,
    pool,
    reaches,
    servers,
    states,
    status_of,
    tenant,
    to_image,
    told,
)

from holdfast.client.resources import PODS, STATEFUL_SETS
from holdfast.operators.tenant.observe import TENANTS
from holdfast.testing.clusters import Cluster


async def watched(cluster: Cluster, ends: Callable[[], Awaitable[bool]], *, pools: tuple[str, ...]) -> list[list[int]]:
    """Let time pass until something holds; how many servers of each pool were ready at each moment."""
    seen: list[list[int]] = []

    async def holds() -> bool:
        counts = [sum(map(is_ready, await servers(cluster, pool=name))) for name in pools]
        if not seen or counts != seen[-1]:
            seen.append(counts)
        return await ends()

    await cluster.until(holds, step=0.1)
    return seen


async def settled(cluster: Cluster, image: str, name: str = "store") -> bool:
    status = await status_of(cluster, name)
    return status.get("currentState") == "Ready" and set(images(await servers(cluster, name))) == {image}


def test_one_server_is_replaced_at_a_time() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        seen = await watched(cluster, lambda: settled(cluster, NEWER), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3
        assert await partition(cluster, "store-pool-0") == 0

    told(story)


def test_pools_are_rolled_out_in_lockstep() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool("a"), pool("b"), image=IMAGE))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        ahead: list[int] = []

        async def ends() -> bool:
            new = [sum(image == NEWER for image in images(await servers(cluster, pool=name))) for name in ("a", "b")]
            ahead.append(abs(new[0] - new[1]))
            return await settled(cluster, NEWER)

        seen = await watched(cluster, ends, pools=("a", "b"))
        assert min(min(counts) for counts in seen) == 3, "one server of each pool at a time"
        assert max(ahead) <= 1

    told(story)


@pytest.mark.parametrize(
    ("rollout", "lowest"),
    [({"maxUnavailable": 2}, 2), ({"maxUnavailable": "50%"}, 2), ({"maxUnavailable": 2, "minAvailable": 3}, 3)],
)
def test_the_limits_of_the_spec_are_kept(rollout: dict[str, Any], lowest: int) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE, rollout=rollout))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        seen = await watched(cluster, lambda: settled(cluster, NEWER), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == lowest

    told(story)


def test_a_paused_rollout_waits_until_it_is_resumed() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE, rollout={"paused": True}))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        await cluster.advance(3600)
        status = await status_of(cluster)
        assert set(images(await servers(cluster))) == {IMAGE}
        assert states(status) == ["PoolUpdating"], "whoever pauses is not late"
        assert answer(status, "Ready") == ("False", "RolloutPaused")
        await cluster.patch(TENANTS, "store", {"spec": {"rollout": {"paused": False}}})
        await reaches(cluster, "Ready")
        assert set(images(await servers(cluster))) == {NEWER}

    told(story)


def test_limits_that_leave_no_server_to_replace_are_told_before_anything_is_touched() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE, rollout={"minAvailable": 4}))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        status = await reaches(cluster, "Blocked")
        assert answer(status, "WorkloadsReady") == ("False", "RolloutBlocked")
        assert set(images(await servers(cluster))) == {IMAGE}
        await cluster.patch(TENANTS, "store", {"spec": {"rollout": {"minAvailable": 3}}})
        await reaches(cluster, "Ready")

    told(story)


# --- what fails


def test_a_rollout_that_hangs_fails_after_its_deadline_and_stops_one_server_only() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool(progressDeadline="2m"), image=IMAGE))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER, never_ready="true")
        await cluster.advance(60)
        assert states(await status_of(cluster)) == ["PoolUpdating"]
        status = await reaches(cluster, "Degraded", within=120)
        assert states(status) == ["PoolRolloutFailed"]
        assert answer(status, "PoolsReady") == ("False", "RolloutFailed")
        failed = condition(status, "PoolsReady")
        assert failed is not None
        assert "correct the spec" in failed["message"]
        assert sum(map(is_ready, await servers(cluster))) == 3
        await cluster.advance(3600)
        assert sum(map(is_ready, await servers(cluster))) == 3, "and it stays at that"

    told(story)


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_broken_revision_is_superseded_without_anybody_deleting_pods(policy: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE, podManagementPolicy=policy))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER, never_ready="true")
        await cluster.advance(30)
        assert sum(map(is_ready, await servers(cluster))) == 3
        await to_image(cluster, NEWEST, never_ready=None)
        seen = await watched(cluster, lambda: settled(cluster, NEWEST), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3

    told(story)


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_first_revision_that_never_worked_is_superseded_at_once(policy: str) -> None:
    async def story(cluster: Cluster) -> None:
        broken = {"sim.holdfast.dev/never-ready": "true"}
        await cluster.create(TENANTS, tenant(annotations=broken, image=IMAGE, podManagementPolicy=policy))
        await cluster.advance(30)
        await to_image(cluster, NEWER, never_ready=None)
        await reaches(cluster, "Ready", within=120)

    told(story)


def test_a_server_that_is_broken_below_healthy_ones_is_replaced_first() -> None:
    """The partition of a StatefulSet reaches it only after the others, which the floor forbids."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        broken = {"metadata": {"annotations": {"sim.holdfast.dev/never-ready": "true"}}}
        await cluster.patch(PODS, "store-pool-0-1", broken)
        await cluster.until(lambda: ready_count(cluster, 3))
        await to_image(cluster, NEWER)
        seen = await watched(cluster, lambda: settled(cluster, NEWER), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3
        strategy = (await cluster.get(STATEFUL_SETS, "store-pool-0"))["spec"]["updateStrategy"]
        assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}

    told(story)


async def ready_count(cluster: Cluster, number: int) -> bool:
    return sum(map(is_ready, await servers(cluster))) == number


def test_a_pool_that_fails_holds_the_others() -> None:
    async def story(cluster: Cluster) -> None:
        pools = (pool("a", progressDeadline="1m"), pool("b", progressDeadline="1m"))
        await cluster.create(TENANTS, tenant("store", *pools, image=IMAGE))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER, never_ready="true")
        status = await reaches(cluster, "Degraded")
        await cluster.advance(3600)
        status = await status_of(cluster)
        assert set(states(status)) == {"PoolRolloutFailed"}
        for name in ("a", "b"):
            assert sum(map(is_ready, await servers(cluster, pool=name))) == 3

    told(story)
