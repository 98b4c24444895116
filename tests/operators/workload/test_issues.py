"""Failures of other systems, tried here.  Each test is named after the issue that reported one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from tests.operators.workload.stages import (
    SLOW,
    Witness,
    annotate,
    because,
    change,
    images,
    operated,
    operator,
    reaches,
    staged,
    workload,
)

from holdfast.client.objects import Object
from holdfast.client.resources import BUDGETS, CONFIG_MAPS, PODS, Resource
from holdfast.cluster.simulation.behaviours import Defaults
from holdfast.meta.errors import Forbidden
from holdfast.meta.exchange import Request
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster, connected
from holdfast.testing.faults import Fault, Faulty


def test_kubernetes_67250_a_broken_revision_is_replaced_without_deleting_its_pods_by_hand() -> None:
    """An ordered set waited for pods of a bad revision to get ready, also after the revision had been corrected."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(WORKLOADS, workload())
        await reaches(cluster, "Completed")
        await change(cluster, image="web:broken")
        await because(cluster, "WaitingForReady")
        assert "web:broken" in await images(cluster)
        began = cluster.loop.time()
        await change(cluster, image="web:2")
        await reaches(cluster, "Completed")
        assert cluster.loop.time() - began < 60
        assert await images(cluster) == ["web:2"] * 10

    operated(story)


CANARY = {"minAvailable": 8, "strategy": "Canary", "canary": {"steps": [{"weight": 50, "manual": True}]}, "maxSurge": 2}


def test_argo_777_an_abort_keeps_the_floor() -> None:
    """An abort scaled the new replicas down at once, before the stable ones were back: nothing served."""

    async def story(cluster: Cluster) -> None:
        async with Witness(cluster, floor=8).watching() as witness, operator(cluster, witness.client):
            await cluster.create(WORKLOADS, workload(rollout=CANARY))
            await reaches(cluster, "Completed")
            witness.begin()
            await change(cluster, image="web:2")
            said = await because(cluster, "ApprovalNeeded")
            assert said["updatedReplicas"] == 5
            await annotate(cluster, "holdfast.dev/rejected-revision", said["updateRevision"])
            await because(cluster, "RevisionRejected")
            assert await images(cluster) == ["web:1"] * 10
            assert (witness.lowest, witness.breaches) == (8, [])

    staged(story, defaults=SLOW)


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Canary", "BlueGreen"])
def test_argo_3284_limits_are_kept_in_every_mode(strategy: str) -> None:
    """With another revision midway, limits that one mode kept were not kept in another: two outages."""
    rollout: dict[str, Any] = {"minAvailable": 8, "maxSurge": 2, "strategy": strategy}
    if strategy == "Canary":
        rollout["canary"] = {"steps": [{"weight": 20, "pauseDuration": "2s"}, {"weight": 60, "pauseDuration": "2s"}]}

    async def story(cluster: Cluster) -> None:
        async with Witness(cluster, floor=8).watching() as witness, operator(cluster, witness.client):
            await cluster.create(WORKLOADS, workload(rollout=rollout))
            await reaches(cluster, "Completed")
            witness.begin()
            await change(cluster, image="web:2")
            await cluster.advance(4)
            await change(cluster, image="web:3")
            await cluster.advance(4)
            await change(cluster, image="web:4")
            await reaches(cluster, "Completed")
            assert witness.lowest >= 8
            assert witness.highest <= (20 if strategy == "BlueGreen" else 12)
        assert await images(cluster) == ["web:4"] * 10

    staged(story, defaults=SLOW)


async def scale(cluster: Cluster) -> dict[str, Any]:
    """The scale subresource, as an autoscaler reads it."""
    response = await cluster.client.raw(Request("GET", WORKLOADS.path("default", "web", "scale")))
    found: dict[str, Any] = msgspec.json.decode(response.body)
    return found


def test_kubernetes_72775_an_autoscaler_does_not_grow_a_fleet_by_its_surge() -> None:
    """Surge was counted among the replicas, so that load seemed to grow with every rollout: 383 became 664."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(WORKLOADS, workload())
        await reaches(cluster, "Completed")
        await change(cluster, image="web:2")
        sizes = []
        for _ in range(40):
            # The load on each replica is just right, so the size is to stay: replicas x 1.
            found = await scale(cluster)
            assert found["status"]["selector"] == "cloudless.io/workload=web"
            sizes.append(math.ceil(found["status"]["replicas"] * 1.0))
            patch = {"spec": {"replicas": max(sizes[-1], 1)}}
            await cluster.patch(WORKLOADS, "web", patch, subresource="scale")
            await cluster.advance(0.5)
        await reaches(cluster, "Completed")
        assert max(sizes) == 10
        assert await images(cluster) == ["web:2"] * 10

    operated(story, defaults=SLOW)


def test_kubernetes_72775_nor_does_it_take_away_what_works_while_new_replicas_do_little_yet() -> None:
    """New replicas have no load at first, so that an autoscaler thinks that half of them would do."""

    async def story(cluster: Cluster) -> None:
        async with Witness(cluster, floor=8).watching() as witness, operator(cluster, witness.client):
            await cluster.create(WORKLOADS, workload())
            await reaches(cluster, "Completed")
            witness.begin()
            await change(cluster, image="web:2")
            await because(cluster, "WaitingForReady")
            await cluster.patch(WORKLOADS, "web", {"spec": {"replicas": 5}}, subresource="scale")
            await cluster.advance(1)
            said = (await cluster.get(WORKLOADS, "web"))["status"]
            assert "ShrinkHeld" in [each["code"] for each in said["limits"]["warnings"]]
            assert (witness.lowest, witness.breaches) == (8, [])
            await reaches(cluster, "Completed")
        assert await images(cluster) == ["web:2"] * 5

    staged(story, defaults=SLOW)


LINGERING = Defaults(stop=(timedelta(seconds=8), timedelta(seconds=8)))


@pytest.mark.parametrize(("replacement", "exceeds"), [("onTermination", False), ("immediately", True)])
def test_kubernetes_107920_what_is_still_going_keeps_its_place(replacement: str, exceeds: bool) -> None:
    """Pods that took long to end were replaced meanwhile, and a full cluster got fuller."""
    rollout = {"minAvailable": 8, "maxSurge": 2, "replacement": replacement}

    async def story(cluster: Cluster) -> None:
        await cluster.create(WORKLOADS, workload(rollout=rollout))
        await reaches(cluster, "Completed")
        await change(cluster, image="web:2")
        peak = 0

        async def done() -> bool:
            nonlocal peak
            peak = max(peak, len(await cluster.list(PODS)))
            status = (await cluster.get(WORKLOADS, "web"))["status"]
            return bool(status["phase"] == "Completed" and status["updatedReplicas"] == 10)

        await cluster.until(done)
        assert (peak > 12) == exceeds

    operated(story, defaults=LINGERING)


def test_kubernetes_89820_a_disruption_budget_is_kept_by_a_rollout() -> None:
    """Updates went by their own limits, and a budget was kept by evictions alone."""

    async def story(cluster: Cluster) -> None:
        async with Witness(cluster, floor=9).watching() as witness, operator(cluster, witness.client):
            selector = {"matchLabels": {"cloudless.io/workload": "web"}}
            budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 9, "selector": selector}}
            await cluster.create(BUDGETS, budget)
            await cluster.create(WORKLOADS, workload(rollout={"maxUnavailable": 5, "maxSurge": 0}))
            said = await reaches(cluster, "Completed")
            assert (said["limits"]["minAvailable"], said["limits"]["floor"]) == (5, 9)
            witness.begin()
            await change(cluster, image="web:2")
            await reaches(cluster, "Completed")
            assert (witness.lowest, witness.breaches) == (9, [])
            # It is kept no longer than it is there.
            await cluster.delete(BUDGETS, "web")
            await change(cluster, image="web:3")
            said = await reaches(cluster, "Completed")
            assert (said["limits"]["floor"], witness.lowest) == (5, 5)

    staged(story)


def test_kubernetes_22368_a_changed_config_map_is_rolled_out() -> None:
    """Pods went on with the configuration that they had started with, until a person thought of restarting them."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "app"}, "data": {"level": "info"}})
        await cluster.create(WORKLOADS, workload(replicas=3, envFrom=[{"configMapRef": {"name": "app"}}], rollout={}))
        before = (await reaches(cluster, "Completed"))["currentRevision"]
        first = {pod["metadata"]["name"] for pod in await cluster.list(PODS)}
        await cluster.patch(CONFIG_MAPS, "app", {"data": {"level": "debug"}})

        async def replaced() -> bool:
            status = (await cluster.get(WORKLOADS, "web"))["status"]
            return bool(status["phase"] == "Completed" and status["currentRevision"] != before)

        await cluster.until(replaced)
        await cluster.advance(60)
        assert first.isdisjoint({pod["metadata"]["name"] for pod in await cluster.list(PODS)})
        # Back again is the same revision as at first, and not a third one.
        await cluster.patch(CONFIG_MAPS, "app", {"data": {"level": "info"}})

        async def returned() -> bool:
            status = (await cluster.get(WORKLOADS, "web"))["status"]
            return bool(status["phase"] == "Completed" and status["currentRevision"] == before)

        await cluster.until(returned)

    operated(story)


class Quota(Faulty):
    """A client whose server admits only so many pods, those that are going included."""

    def __init__(self, cluster: Cluster, pods: int) -> None:
        super().__init__(connected(cluster.server), Fault())
        self._cluster = cluster
        self._pods = pods

    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        if resource == PODS and len(await self._cluster.list(PODS)) >= self._pods:
            raise Forbidden.of("pods", "", why="exceeded quota: pods, requested: pods=1")
        return await super().create(resource, manifest, dry_run=dry_run)


def test_kubernetes_98656_a_quota_costs_no_more_time_than_it_takes_to_have_room() -> None:
    """A controller that was refused waited ever longer, up to a quarter of an hour, though room had come long ago."""
    slow_to_go = Defaults(stop=(timedelta(seconds=5), timedelta(seconds=5)))

    async def story(cluster: Cluster) -> None:
        async with operator(cluster, Quota(cluster, 4)):
            await cluster.create(WORKLOADS, workload(replicas=4, rollout={"maxUnavailable": 1, "maxSurge": 0}))
            await reaches(cluster, "Completed")
            began = cluster.loop.time()
            await change(cluster, image="web:2")
            said = await because(cluster, "RequestRefused")
            blocked = next(each for each in said["conditions"] if each["type"] == "Blocked")
            assert (blocked["status"], blocked["reason"]) == ("True", "RequestRefused")
            assert "exceeded quota" in blocked["message"]
            said = await reaches(cluster, "Completed")
            assert cluster.loop.time() - began < 4 * (5 + 3)
            blocked = next(each for each in said["conditions"] if each["type"] == "Blocked")
            assert blocked["status"] == "False"
        assert await images(cluster) == ["web:2"] * 4

    staged(story, defaults=slow_to_go)


@pytest.mark.parametrize("surge", [None, 1, 2])
def test_lws_779_one_replica_is_updated_by_surging(surge: int | None) -> None:
    """A single replica with a surge of one was never updated: neither could be first."""
    rollout = {"minAvailable": 1} | ({} if surge is None else {"maxSurge": surge})

    async def story(cluster: Cluster) -> None:
        async with Witness(cluster, floor=1).watching() as witness, operator(cluster, witness.client):
            await cluster.create(WORKLOADS, workload(replicas=1, rollout=rollout))
            await reaches(cluster, "Completed")
            witness.begin()
            await change(cluster, image="web:2")
            await reaches(cluster, "Completed")
            assert (witness.lowest, witness.breaches) == (1, [])
        assert await images(cluster) == ["web:2"]

    staged(story)
