"""The floor holds: whole rollouts on simulated nodes, watched event by event, undisturbed and under trouble."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from tests.operators.workload.stages import (
    SLOW,
    Wire,
    Witness,
    because,
    change,
    images,
    mortal,
    operator,
    reaches,
    staged,
    trouble,
    workload,
)

from holdfast.client.resources import NODES, PODS
from holdfast.cluster.controllers import budgets
from holdfast.cluster.controllers.podgc import PodCollector, PodSettings
from holdfast.cluster.nodes import evictions, lifecycle
from holdfast.cluster.nodes.lifecycle import NodeSettings
from holdfast.cluster.simulation.chaos import Crash, NodeGone
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster, connected
from holdfast.testing.faults import RefusesPods


@asynccontextmanager
async def witnessed(cluster: Cluster, workload: Wire, *, floor: int) -> AsyncIterator[Witness]:
    """A Workload that is complete, with an operator and a witness from here on."""
    async with Witness(cluster, floor).watching() as witness, operator(cluster, witness.client):
        await cluster.create(WORKLOADS, workload)
        await reaches(cluster, "Completed")
        witness.begin()
        yield witness


def test_ten_replicas_are_updated_and_never_fewer_than_eight_serve() -> None:
    async def story(cluster: Cluster) -> None:
        async with witnessed(cluster, workload(), floor=8) as witness:
            await change(cluster, image="web:2")
            said = await reaches(cluster, "Completed")
            assert (witness.lowest, said["rollout"]["lowestReady"]) == (8, 8)
            assert witness.highest <= 12
            assert witness.breaches == []
            assert witness.events > 40
        assert await images(cluster) == ["web:2"] * 10

    staged(story, defaults=SLOW)


def test_the_witness_would_see_it() -> None:
    async def story(cluster: Cluster) -> None:
        lower = workload(rollout={"minAvailable": 7, "maxSurge": 2})
        async with witnessed(cluster, lower, floor=8) as witness:
            await change(cluster, image="web:2")
            await reaches(cluster, "Completed")
            assert witness.lowest == 7
            assert witness.breaches

    staged(story, defaults=SLOW)


@pytest.mark.parametrize("every", [1, 2, 3, 5, 8])
def test_also_when_the_operator_is_killed_after_every_nth_write(every: int) -> None:
    async def story(cluster: Cluster) -> None:
        async with operator(cluster):
            await cluster.create(WORKLOADS, workload())
            await reaches(cluster, "Completed")
        async with (
            Witness(cluster, floor=8).watching() as witness,
            mortal(cluster, every=every, seen=witness.ours) as deaths,
        ):
            await cluster.settle()
            witness.begin()
            await change(cluster, image="web:2")
            await reaches(cluster, "Completed")
            # Writes that are under way together die together, so there are fewer deaths than the 40 writes.
            assert deaths() >= 10 / every
            assert (witness.lowest, witness.breaches) == (8, [])
            assert witness.highest <= 12
        assert await images(cluster) == ["web:2"] * 10

    staged(story, defaults=SLOW)


GOING_FAST = NodeSettings(patience=timedelta(seconds=5))


@pytest.mark.parametrize("every", [0, 3])
def test_under_chaos_nothing_is_stopped_that_the_floor_needs(every: int) -> None:
    """Containers crash in waves and a node vanishes; what they take is not our doing, and we take nothing on top."""

    async def story(cluster: Cluster) -> None:
        async with operator(cluster):
            await cluster.create(WORKLOADS, workload())
            await reaches(cluster, "Completed")
        async with Witness(cluster, floor=8).watching() as witness:
            await cluster.settle()
            witness.begin()
            await change(cluster, image="web:2")
            seen = witness.ours
            ours = mortal(cluster, every=every, seen=seen) if every else operator(cluster, witness.client)
            async with ours:
                now = cluster.now()
                crashes = {
                    f"crash-{n}": Crash(since=now + timedelta(seconds=2.3 * n), share=0.4, seed=n) for n in range(1, 6)
                }
                gone = NodeGone(since=now + timedelta(seconds=3), until=now + timedelta(seconds=60), nodes=("node-2",))
                await trouble(cluster, **crashes, gone=gone)
                await reaches(cluster, "Completed")
                assert witness.lowest < 8, "there was no trouble"
                assert witness.breaches == []
        assert await images(cluster) == ["web:2"] * 10

    staged(
        story,
        defaults=SLOW,
        controllers=[lifecycle.controller(GOING_FAST), evictions.controller(GOING_FAST)],
        components=[PodCollector(PodSettings())],
    )


@pytest.mark.parametrize(("on_failure", "phase"), [("rollBack", "Failed"), ("abort", "Failed")])
def test_a_broken_image_misses_its_deadline_and_is_rolled_back_above_the_floor(on_failure: str, phase: str) -> None:
    rollout = {"minAvailable": 8, "maxSurge": 2, "progressDeadline": "30s", "onFailure": on_failure}

    async def story(cluster: Cluster) -> None:
        async with witnessed(cluster, workload(rollout=rollout), floor=8) as witness:
            before = (await cluster.get(WORKLOADS, "web"))["status"]["currentRevision"]
            await change(cluster, image="web:broken")
            began = cluster.loop.time()
            said = await because(cluster, "RevisionRejected")
            assert 30 <= cluster.loop.time() - began < 60
            assert (witness.lowest, witness.breaches) == (8, [])
            assert (said["phase"], said["currentRevision"]) == (phase, before)
            assert said["rejectedRevision"] != before
            assert await images(cluster) == ["web:1"] * 10
            await change(cluster, image="web:3")
            await reaches(cluster, "Completed")
            assert await images(cluster) == ["web:3"] * 10

    staged(story, defaults=SLOW)


def test_a_broken_image_is_held_where_it_is_if_that_is_asked() -> None:
    rollout = {"minAvailable": 8, "maxSurge": 2, "progressDeadline": "30s"}

    async def story(cluster: Cluster) -> None:
        async with witnessed(cluster, workload(rollout=rollout), floor=8) as witness:
            await change(cluster, image="web:broken")
            said = await because(cluster, "ProgressDeadlineExceeded")
            assert (said["phase"], said["readyReplicas"]) == ("Failed", 8)
            await change(cluster, image="web:2")
            await reaches(cluster, "Completed")
            assert (witness.lowest, witness.breaches) == (8, [])

    staged(story, defaults=SLOW)


def test_a_drained_node_is_emptied_above_the_floor_by_surging_first() -> None:
    async def story(cluster: Cluster) -> None:
        full = workload(rollout={"minAvailable": 10, "maxSurge": 2})
        async with witnessed(cluster, full, floor=10) as witness:
            await cluster.patch(NODES, "node-1", {"spec": {"unschedulable": True}})

            async def emptied() -> bool:
                return all(pod["spec"].get("nodeName") != "node-1" for pod in await cluster.list(PODS))

            await cluster.until(emptied)
            await reaches(cluster, "Completed")
            assert (witness.lowest, witness.breaches) == (10, [])

    staged(story, defaults=SLOW, controllers=[budgets.CONTROLLER])


def test_a_template_that_the_api_refuses_stops_no_replica() -> None:
    async def story(cluster: Cluster) -> None:
        async with operator(cluster, RefusesPods(connected(cluster.server), "web:2")):
            await cluster.create(WORKLOADS, workload(replicas=3, rollout={"maxSurge": 0, "maxUnavailable": 1}))
            await reaches(cluster, "Completed")
            running = {pod["metadata"]["uid"] for pod in await cluster.list(PODS)}
            await change(cluster, image="web:2")
            await cluster.advance(120)
            pods = await cluster.list(PODS)
            assert {pod["metadata"]["uid"] for pod in pods} == running
            assert not any("deletionTimestamp" in pod["metadata"] for pod in pods)
            conditions = (await cluster.get(WORKLOADS, "web"))["status"]["conditions"]
            said = next(each["message"] for each in conditions if each["type"] == "Blocked")
            assert "the pod template of revision" in said
            assert "web:2 is not allowed" in said
            await change(cluster, image="web:3")
            await reaches(cluster, "Completed")

    staged(story)
