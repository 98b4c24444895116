"""Floors of pools: what their status reports, the budgets that keep them, and drains that end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
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
    status_of,
    tenant,
    to_image,
)

from holdfast.cli.operator.permissions import Permission, needed
from holdfast.client.objects import Object
from holdfast.client.protocols import Bookmark, Deleted, Scope
from holdfast.client.resources import BUDGETS, EVENTS, NODES, PODS, STATEFUL_SETS
from holdfast.kinds.rustfs import Tenant
from holdfast.meta.errors import TooManyRequests
from holdfast.meta.objects import Key
from holdfast.operators.tenant.controller import CONTROLLERS
from holdfast.operators.tenant.decide import decide
from holdfast.operators.tenant.observe import TENANTS, World
from holdfast.operators.tenant.render import DEFAULTS
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.clusters import Cluster, connected
from holdfast.testing.faults import RefusesPods

HANGS = {"metadata": {"annotations": {"sim.holdfast.dev/never-ready": "true"}}}


async def events_with(cluster: Cluster, reason: str) -> list[dict[str, Any]]:
    """The Events of the Tenant with a reason."""
    events = await cluster.list(EVENTS)
    return [each for each in events if each["reason"] == reason and each["involvedObject"]["kind"] == "Tenant"]


async def holds(cluster: Cluster, status: str) -> bool:
    found = answer(await status_of(cluster), "FloorHeld")
    return found is not None and found[0] == status


def test_a_floor_that_is_broken_is_reported_whatever_broke_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool("a"), pool("b"), image=IMAGE))
        status = await reaches(cluster, "Ready")
        assert answer(status, "FloorHeld") == ("True", "FloorHeld")
        for ordinal in (0, 1):
            await cluster.patch(PODS, f"store-b-{ordinal}", HANGS)
        await cluster.until(lambda: holds(cluster, "False"))
        status = await status_of(cluster)
        broken = condition(status, "FloorHeld")
        assert broken is not None
        assert broken["reason"] == "BelowFloor"
        assert broken["message"].startswith("pool b: 2 available, the floor is 3")
        assert [each["floor"]["lowest"] for each in status["pools"]][1] == 2
        (event,) = await events_with(cluster, "BelowFloor")
        assert event["type"] == "Warning"
        assert event["message"].startswith("pool b: 2 available")
        for ordinal in (0, 1):
            await cluster.delete(PODS, f"store-b-{ordinal}")
        await cluster.until(lambda: holds(cluster, "True"))

    play_story(story)


def test_a_floor_is_remembered_while_the_limits_are_invalid() -> None:
    floor = {"required": 3, "available": 4, "most": 4, "lowest": 2}
    made = tenant("store", pool(progressDeadline="99999999h"))
    made["status"] = {"pools": [{"ssName": "store-pool-0", "state": "PoolRolloutComplete", "floor": floor}]}
    world = World(object=Object.of(TENANTS, made), tenant=msgspec.convert(made, Tenant))
    decision = decide(world, datetime(2030, 1, 1, tzinfo=UTC), settings=DEFAULTS)
    assert decision.status is not None
    assert answer(decision.status, "SpecValid") == ("False", "InvalidRolloutSpec")
    assert decision.status["pools"][0]["floor"] == floor
    assert condition(decision.status, "FloorHeld") is None


def test_a_pool_that_is_being_created_breaks_no_floor() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool(servers=4), podManagementPolicy="OrderedReady"))
        await reaches(cluster, "Ready")
        assert await events_with(cluster, "BelowFloor") == []

    play_story(story)


def test_the_lowest_point_belongs_to_the_rollout_that_is_under_way() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        await cluster.patch(PODS, "store-pool-0-0", HANGS)
        await cluster.patch(PODS, "store-pool-0-1", HANGS)
        await cluster.until(lambda: holds(cluster, "False"))
        for ordinal in (0, 1):
            await cluster.delete(PODS, f"store-pool-0-{ordinal}")
        status = await reaches(cluster, "Ready")
        assert status["pools"][0]["floor"]["lowest"] == 2
        await to_image(cluster, NEWER)
        await cluster.settle()
        status = await reaches(cluster, "Ready")
        assert status["pools"][0]["floor"] == {"required": 3, "available": 4, "most": 4, "lowest": 3}

    play_story(story)


@pytest.mark.parametrize("midway", [False, True])
def test_a_floor_that_is_lowered_is_announced_before_the_first_server_is_stopped(midway: bool) -> None:
    """Of 4 servers, 10% is none; one is replaced at a time all the same, and that is reported first."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        status = await reaches(cluster, "Ready")
        assert condition(status, "FloorLowered") is None
        stopped: list[int] = []

        async def watch() -> None:
            async with cluster.client.watch(PODS, Scope(namespace="default"), initial=True) as events:
                async for event in events:
                    gone = not isinstance(event, Bookmark) and event.object.deleting
                    stopped.extend([int(event.object.version)] if gone else [])

        watching = asyncio.create_task(watch())
        if midway:
            await cluster.patch(TENANTS, "store", {"spec": {"image": NEWER, "rollout": {"paused": True}}})
            await cluster.advance(5)
        rollout = {"maxUnavailable": "10%", "paused": None}
        await cluster.patch(TENANTS, "store", {"spec": {"image": NEWER, "rollout": rollout}})
        await cluster.settle()
        status = await reaches(cluster, "Ready")
        watching.cancel()
        assert set(images(await servers(cluster))) == {NEWER}
        assert answer(status, "FloorLowered") == ("True", "FloorLowered")
        lowered = condition(status, "FloorLowered")
        assert lowered is not None
        assert "3 of 4 stay available" in lowered["message"]
        (event,) = await events_with(cluster, "FloorLowered")
        assert event["type"] == "Warning"
        assert int(event["metadata"]["resourceVersion"]) < min(stopped)

    play_story(story)


# --- budgets


def test_every_pool_has_a_budget_that_keeps_its_floor() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(
            TENANTS, tenant("store", pool("a"), pool("b", 1), pool("c", 5), rollout={"minAvailable": 4})
        )
        await cluster.settle()
        found = {each["metadata"]["name"]: each for each in await cluster.list(BUDGETS)}
        assert {name: each["spec"]["minAvailable"] for name, each in found.items()} == {"store-a": 3, "store-c": 4}
        assert found["store-a"]["spec"]["selector"] == {"matchLabels": {"rustfs.tenant": "store", "rustfs.pool": "a"}}
        assert found["store-a"]["metadata"]["ownerReferences"][0]["kind"] == "Tenant"

    play_story(story)


def test_a_budget_follows_its_limits_and_is_repaired() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"spec": {"rollout": {"maxUnavailable": 2}}})
        await cluster.settle()
        assert (await cluster.get(BUDGETS, "store-pool-0"))["spec"]["minAvailable"] == 2
        await cluster.patch(BUDGETS, "store-pool-0", {"spec": {"minAvailable": 0}})
        await cluster.settle()
        assert (await cluster.get(BUDGETS, "store-pool-0"))["spec"]["minAvailable"] == 2
        await cluster.patch(TENANTS, "store", {"spec": {"rollout": {"disruptionBudget": "Unmanaged"}}})
        await cluster.settle()
        assert await cluster.list(BUDGETS) == []

    play_story(story)


def test_there_is_no_budget_while_another_one_selects_the_servers() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        theirs = {"metadata": {"name": "theirs"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {}}}}
        await cluster.create(BUDGETS, theirs)
        await cluster.settle()
        assert [each["metadata"]["name"] for each in await cluster.list(BUDGETS)] == ["theirs"]
        await cluster.delete(BUDGETS, "theirs")
        await cluster.settle()
        assert [each["metadata"]["name"] for each in await cluster.list(BUDGETS)] == ["store-pool-0"]

    play_story(story)


# --- drains


def test_the_role_of_the_operator_allows_evictions_and_budgets() -> None:
    allowed = needed(CONTROLLERS)
    assert Permission(PODS, "create", "eviction") in allowed
    assert {Permission(BUDGETS, verb) for verb in ("create", "patch", "delete")} <= allowed


@contextlib.asynccontextmanager
async def counted(cluster: Cluster) -> AsyncIterator[list[int]]:
    """How many servers are ready after each event of a pod."""
    pods: dict[str, bool] = {}
    seen: list[int] = []

    async def watch() -> None:
        scope = Scope(namespace="default", labels="rustfs.tenant=store")
        async with cluster.client.watch(PODS, scope, initial=True) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                pods[event.object.key.name] = not isinstance(event, Deleted) and is_ready(event.object.wire())
                if len(pods) == 4:
                    seen.append(sum(pods.values()))

    watching = asyncio.create_task(watch())
    try:
        await cluster.settle()
        yield seen
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def drained(cluster: Cluster, node: str) -> bool:
    """Evict the servers of a node as `kubectl drain` does; a refusal is tried again later."""
    left = [each for each in await servers(cluster) if each["spec"].get("nodeName") == node]
    for pod in left:
        name = pod["metadata"]["name"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        with contextlib.suppress(TooManyRequests):
            await cluster.client.post(PODS, Key("default", name), "eviction", body)
    return not left


@pytest.mark.parametrize("rolls", [False, True])
def test_a_drain_of_the_node_of_all_servers_ends_and_keeps_the_floor(rolls: bool) -> None:
    async def story(cluster: Cluster) -> None:
        first, second = sorted(each["metadata"]["name"] for each in await cluster.list(NODES, namespace=""))
        await cluster.patch(NODES, second, {"spec": {"unschedulable": True}})
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        assert {each["spec"]["nodeName"] for each in await servers(cluster)} == {first}
        await cluster.patch(NODES, second, {"spec": {"unschedulable": None}})
        await cluster.patch(NODES, first, {"spec": {"unschedulable": True}})
        async with counted(cluster) as seen:
            if rolls:
                await to_image(cluster, NEWER)
            await cluster.until(lambda: drained(cluster, first), within=600)
            await cluster.settle()
            await reaches(cluster, "Ready")
        assert min(seen) == 3
        pods = await servers(cluster)
        assert {each["spec"]["nodeName"] for each in pods} == {second}
        assert set(images(pods)) == {NEWER if rolls else IMAGE}
        assert await events_with(cluster, "BelowFloor") == []

    play_story(story, nodes=2)


def test_a_template_that_the_api_refuses_stops_no_server_and_does_not_reach_the_stateful_set() -> None:
    async def story(cluster: Cluster) -> None:
        client = RefusesPods(connected(cluster.server), NEWER)
        manager = Manager(client, controllers=CONTROLLERS, now=cluster.now, settings=Settings(), seed=1)
        working = asyncio.create_task(manager.run())
        try:
            await cluster.create(TENANTS, tenant("store", pool("a"), image=IMAGE))
            await reaches(cluster, "Ready")
            running = {pod["metadata"]["uid"] for pod in await servers(cluster)}
            await to_image(cluster, NEWER)
            await cluster.advance(120)
            assert {pod["metadata"]["uid"] for pod in await servers(cluster)} == running
            made = await cluster.get(STATEFUL_SETS, "store-a")
            assert made["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
            messages = [each["message"] for each in (await status_of(cluster))["conditions"]]
            assert any("the pod template of pool a" in said and f"{NEWER} is not allowed" in said for said in messages)
            await cluster.delete(STATEFUL_SETS, "store-a", propagation="Orphan")
            await to_image(cluster, NEWEST)
            await reaches(cluster, "Ready")
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    play_story(story, operated=False)
