"""Rollouts under faults: servers crash, nodes vanish, the operator dies with each of its writes.

A watch of the servers shows, in the order of the writes, that none was stopped on purpose while the floor needed
it, and that pools went through legal states only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.operators.tenant.stories import (
    IMAGE,
    NEWER,
    NEWEST,
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

from holdfast.client.protocols import Bookmark, Deleted, Scope
from holdfast.client.resources import CONFIG_MAPS, EVENTS, PODS, STATEFUL_SETS
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.chaos import Crash, Fault, Hang, NodeDown, NodeGone
from holdfast.operators.tenant.controller import CONTROLLERS
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.pools import TRANSITIONS
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing import faults
from holdfast.testing.clusters import Cluster, connected

FLOOR = 3
HELD = {"type": "RollingUpdate", "rollingUpdate": {"partition": 4}}
HANGS = {"sim.holdfast.dev/never-ready": "true"}


class Witness:
    """Watches servers and pools from outside.

    broken  what was stopped on purpose although the floor needed it
    lowest  the fewest servers of a pool that were ready
    """

    def __init__(self, cluster: Cluster, *, doomed: Callable[[], frozenset[str]]) -> None:
        self.broken: list[str] = []
        self.states: dict[str, list[str]] = {}
        self._cluster = cluster
        self._doomed = doomed
        self._pods: dict[str, dict[str, Any]] = {}

    async def watch_pods(self) -> None:
        scope = Scope(namespace="default", labels="rustfs.tenant=store")
        async with self._cluster.client.watch(PODS, scope, initial=True) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                pod = event.object.wire()
                name = pod["metadata"]["name"]
                self._judge(name, pod)
                if isinstance(event, Deleted):
                    self._pods.pop(name, None)
                else:
                    self._pods[name] = pod

    def _judge(self, name: str, pod: dict[str, Any]) -> None:
        before = self._pods.get(name)
        if before is None or not is_ready(before) or "deletionTimestamp" not in pod["metadata"]:
            return
        if pod["spec"].get("nodeName") in self._doomed():
            return  # its node is what stops it
        mates = [
            other
            for other in self._pods.values()
            if other["metadata"]["labels"]["rustfs.pool"] == pod["metadata"]["labels"]["rustfs.pool"]
        ]
        left = sum(is_ready(each) for each in mates) - 1
        if left < FLOOR:
            self.broken.append(f"{name} was stopped with {left} others ready")

    async def watch_states(self) -> None:
        scope = Scope(namespace="default")
        async with self._cluster.client.watch(TENANTS, scope, initial=True) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                for each in (event.object.wire().get("status") or {}).get("pools", ()):
                    seen = self.states.setdefault(each["ssName"], [])
                    if not seen or seen[-1] != each["state"]:
                        seen.append(each["state"])

    def check(self) -> None:
        assert not self.broken, self.broken
        for seen in self.states.values():
            for old, new in pairwise(seen):
                TRANSITIONS.check(old, new)


@contextlib.asynccontextmanager
async def witnessed(cluster: Cluster, doomed: Callable[[], frozenset[str]] = frozenset) -> AsyncIterator[Witness]:
    witness = Witness(cluster, doomed=doomed)
    watching = [asyncio.create_task(witness.watch_pods()), asyncio.create_task(witness.watch_states())]
    try:
        yield witness
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    witness.check()


async def trouble(cluster: Cluster, *entries: Fault) -> None:
    data = {f"fault-{number}": chaos.written(fault) for number, fault in enumerate(entries)}
    place = {"metadata": {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}}
    await cluster.create(CONFIG_MAPS, place | {"data": data})


async def ended(cluster: Cluster, image: str) -> bool:
    status = await status_of(cluster)
    return status.get("currentState") == "Ready" and set(images(await servers(cluster))) == {image}


SECOND = timedelta(seconds=1)


def crashes(cluster: Cluster) -> list[Fault]:
    return [Crash(since=cluster.now() + number * SECOND, share=0.3, seed=number) for number in range(1, 20, 3)]


def hangs(cluster: Cluster) -> list[Fault]:
    return [Hang(since=cluster.now() + 2 * SECOND, until=cluster.now() + 40 * SECOND, share=0.25, seed=3)]


def node_down(cluster: Cluster) -> list[Fault]:
    return [NodeDown(since=cluster.now() + 2 * SECOND, until=cluster.now() + 600 * SECOND, nodes=("node-2",))]


def node_gone(cluster: Cluster) -> list[Fault]:
    return [NodeGone(since=cluster.now() + 2 * SECOND, until=cluster.now() + 300 * SECOND, nodes=("node-1",))]


@pytest.mark.parametrize("weather", [crashes, hangs, node_down, node_gone])
@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_the_floor_holds_in_every_weather(weather: Callable[[Cluster], list[Fault]], policy: str) -> None:
    async def story(cluster: Cluster) -> None:
        made = tenant("store", pool("a"), image=IMAGE, podManagementPolicy=policy)
        await cluster.create(TENANTS, made)
        await reaches(cluster, "Ready")
        entries = weather(cluster)
        doomed = frozenset(node for each in entries for node in getattr(each, "nodes", ()))
        async with witnessed(cluster, lambda: doomed):
            await trouble(cluster, *entries)
            await to_image(cluster, NEWER)
            await cluster.until(lambda: ended(cluster, NEWER), within=3600, step=5)

    play_story(story, nodes=5)


def test_the_floor_holds_when_revisions_follow_each_other_and_one_is_broken() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool("a"), pool("b"), image=IMAGE))
        await reaches(cluster, "Ready")
        async with witnessed(cluster):
            await trouble(cluster, *crashes(cluster))
            await to_image(cluster, NEWER)
            await cluster.advance(3)
            await to_image(cluster, NEWEST, never_ready="true")
            await cluster.advance(60)
            await to_image(cluster, NEWER, never_ready=None)
            await cluster.until(lambda: ended(cluster, NEWER), within=3600, step=5)

    play_story(story)


@pytest.mark.parametrize("seed", range(6))
def test_the_floor_holds_and_the_last_spec_wins_in_whatever_order_a_rollout_is_changed(seed: int) -> None:
    """Pauses, resumes, images, broken images, single servers that hang and edited strategies follow each other."""
    chance = Random(seed)

    async def change(cluster: Cluster) -> None:
        image = chance.choice([IMAGE, NEWER, NEWEST])
        server = f"store-{chance.choice('ab')}-{chance.randrange(4)}"
        match chance.randrange(8):
            case 0:
                await cluster.patch(TENANTS, "store", {"spec": {"rollout": {"paused": True}}})
            case 1:
                await cluster.patch(TENANTS, "store", {"spec": {"rollout": None}})
            case 2:
                await to_image(cluster, image, never_ready="true")
            case 3:
                await to_image(cluster, image, never_ready=None)
            case 4 if await cluster.find(PODS, server) is not None:
                await cluster.patch(PODS, server, {"metadata": {"annotations": HANGS}})
            case 5 if await cluster.find(PODS, server) is not None:
                await cluster.patch(PODS, server, {"metadata": {"annotations": dict.fromkeys(HANGS)}})
            case 6:
                held = chance.choice([{"type": "OnDelete", "rollingUpdate": None}, HELD])
                await cluster.patch(STATEFUL_SETS, "store-a", {"spec": {"updateStrategy": held}})
            case _:
                await cluster.restart()

    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool("a"), pool("b", 4), image=IMAGE))
        await reaches(cluster, "Ready")
        async with witnessed(cluster):
            for _ in range(12):
                await change(cluster)
                await cluster.advance(chance.choice([0, 0, 0.3, 1, 2, 5, 20]))
            for server in await servers(cluster):
                await cluster.patch(
                    PODS, server["metadata"]["name"], {"metadata": {"annotations": dict.fromkeys(HANGS)}}
                )
            await to_image(cluster, NEWEST, never_ready=None)
            await cluster.patch(TENANTS, "store", {"spec": {"rollout": None}})
            await cluster.until(lambda: ended(cluster, NEWEST), within=3600, step=5)
        reasons = {each["reason"] for each in await cluster.list(EVENTS)}
        assert "SuccessfulDelete" not in reasons, "the controller of StatefulSets stopped no server"

    play_story(story)


async def dying(cluster: Cluster) -> None:
    """An operator that dies with each of its writes, and is started again every time."""
    while True:
        fault = faults.Crash(1)
        manager = Manager(
            faults.Faulty(connected(cluster.server), fault),
            controllers=CONTROLLERS,
            now=cluster.now,
            settings=Settings(side_by_side=1),
            seed=1,
        )
        working = asyncio.create_task(manager.run())
        try:
            await fault.dead.wait()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def test_the_floor_holds_when_the_operator_dies_with_each_of_its_writes() -> None:
    async def story(cluster: Cluster) -> None:
        operator = asyncio.create_task(dying(cluster))
        try:
            await cluster.create(TENANTS, tenant("store", pool("a"), image=IMAGE))
            await reaches(cluster, "Ready")
            async with witnessed(cluster) as witness:
                await to_image(cluster, NEWER)
                await cluster.until(lambda: ended(cluster, NEWER), within=600, step=1)
                assert witness.states["store-a"][-1] == "PoolRolloutComplete"
        finally:
            operator.cancel()
            await asyncio.gather(operator, return_exceptions=True)

    play_story(story, operated=False)
