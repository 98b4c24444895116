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
    play_story,
    pool,
    reaches,
    servers,
    states,
    status_of,
    strategy,
    tenant,
    to_image,
)

from holdfast.client.resources import EVENTS, PODS, STATEFUL_SETS
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.rolling import COMPLETE
from holdfast.runtime.controllers import PAUSED
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


HANGS = {"sim.holdfast.dev/never-ready": "true"}


async def stopped_by_stateful_sets(cluster: Cluster) -> list[str]:
    """The pods that the controller of StatefulSets deleted, as its Events tell."""
    events = await cluster.list(EVENTS)
    return [f"{each['message']} x{each.get('count', 1)}" for each in events if each["reason"] == "SuccessfulDelete"]


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
        assert await strategy(cluster) == COMPLETE

    play_story(story)


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

    play_story(story)


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

    play_story(story)


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

    play_story(story)


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

    play_story(story)


def test_a_server_that_is_lost_while_the_rollout_is_paused_comes_back_with_the_new_revision() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE, rollout={"paused": True}))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        await cluster.advance(1)
        await cluster.delete(PODS, "store-pool-0-1")
        await cluster.advance(600)
        assert images(await servers(cluster)) == [IMAGE, NEWER, IMAGE, IMAGE]
        assert states(await status_of(cluster)) == ["PoolUpdating"]

    play_story(story)


def test_a_rollout_that_was_paused_with_one_server_replaced_goes_on_to_a_third_image() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        await cluster.patch(PODS, "store-pool-0-0", {"metadata": {"annotations": HANGS}})
        await cluster.until(lambda: ready_count(cluster, 3))
        await to_image(cluster, NEWER, never_ready="true")
        await cluster.advance(30)
        assert images(await servers(cluster)) == [NEWER, IMAGE, IMAGE, IMAGE], "server 0 alone is replaced"
        await cluster.patch(TENANTS, "store", {"spec": {"rollout": {"paused": True}}})
        await cluster.advance(30)
        await cluster.patch(PODS, "store-pool-0-0", {"metadata": {"annotations": dict.fromkeys(HANGS)}})
        await cluster.until(lambda: ready_count(cluster, 4))
        await cluster.patch(TENANTS, "store", {"spec": {"rollout": None}})
        await to_image(cluster, NEWEST, never_ready=None)
        seen = await watched(cluster, lambda: settled(cluster, NEWEST), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3
        assert await strategy(cluster) == COMPLETE
        assert await stopped_by_stateful_sets(cluster) == []

    play_story(story)


def test_a_template_that_is_edited_in_a_stateful_set_is_set_back_by_this_operator() -> None:
    """All servers follow the edit while no operator runs: then setting it back is a rollout like any other."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"metadata": {"annotations": {PAUSED: "true"}}})
        (server,) = (await cluster.get(STATEFUL_SETS, "store-pool-0"))["spec"]["template"]["spec"]["containers"]
        edited = {"spec": {"template": {"spec": {"containers": [server | {"image": NEWER}]}}}}
        await cluster.patch(STATEFUL_SETS, "store-pool-0", edited)
        await cluster.until(lambda: all_run(cluster, NEWER))
        before = await stopped_by_stateful_sets(cluster)
        await cluster.patch(TENANTS, "store", {"metadata": {"annotations": {PAUSED: None}}})
        seen = await watched(cluster, lambda: settled(cluster, IMAGE), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3
        assert await stopped_by_stateful_sets(cluster) == before, "its controller stopped none"

    play_story(story)


async def all_run(cluster: Cluster, image: str) -> bool:
    pods = await servers(cluster)
    return set(images(pods)) == {image} and all(map(is_ready, pods))


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

    play_story(story)


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

    play_story(story)


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_first_revision_that_never_worked_is_superseded_at_once(policy: str) -> None:
    async def story(cluster: Cluster) -> None:
        broken = {"sim.holdfast.dev/never-ready": "true"}
        await cluster.create(TENANTS, tenant(annotations=broken, image=IMAGE, podManagementPolicy=policy))
        await cluster.advance(30)
        await to_image(cluster, NEWER, never_ready=None)
        await reaches(cluster, "Ready", within=120)

    play_story(story)


def test_a_server_that_is_broken_below_healthy_ones_is_replaced_first() -> None:
    """The controller of a StatefulSet would replace the others first, which the floor forbids."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        broken = {"metadata": {"annotations": {"sim.holdfast.dev/never-ready": "true"}}}
        await cluster.patch(PODS, "store-pool-0-1", broken)
        await cluster.until(lambda: ready_count(cluster, 3))
        await to_image(cluster, NEWER)
        seen = await watched(cluster, lambda: settled(cluster, NEWER), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3
        assert await strategy(cluster) == COMPLETE

    play_story(story)


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

    play_story(story)


def test_a_strategy_that_is_edited_in_a_stateful_set_midway_stops_no_rollout() -> None:
    """An apply cannot take the edited field away, and the API server refuses it beside OnDelete."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER)
        await cluster.until(lambda: replaced(cluster, 1))
        held = {"type": "RollingUpdate", "rollingUpdate": {"partition": 4}}
        await cluster.patch(STATEFUL_SETS, "store-pool-0", {"spec": {"updateStrategy": held}})
        seen = await watched(cluster, lambda: settled(cluster, NEWER), pools=("pool-0",))
        assert min(ready for (ready,) in seen) == 3
        assert await strategy(cluster) == COMPLETE
        assert await stopped_by_stateful_sets(cluster) == []

    play_story(story)


async def replaced(cluster: Cluster, number: int) -> bool:
    return images(await servers(cluster)).count(NEWER) == number
