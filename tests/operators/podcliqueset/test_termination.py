"""Gangs that are incomplete for too long are ended and made again: no more of them than needs be, and on time."""

from __future__ import annotations

from typing import Any

from tests.operators.podcliqueset.gangsets import (
    SETS,
    Cluster,
    cordon,
    pods,
    simulated,
    status,
    until_available,
    workload,
)

from holdfast.client.resources import EVENTS, PODS
from holdfast.operators.podcliqueset import labels

STRICT = workload(terminationDelay="10s")
LENIENT = workload(strict=False, terminationDelay="10s")


def of(pod: dict[str, Any], clique: str, group_index: str = "") -> bool:
    marks = pod["metadata"]["labels"]
    return bool(marks[labels.TEMPLATE] == clique and marks.get(labels.GROUP_INDEX, "") == group_index)


async def lose(cluster: Cluster, clique: str, group_index: str = "", *, number: int = 1) -> None:
    """Delete pods that are ready; no node takes what replaces them."""
    await cordon(cluster)
    ready = [pod for pod in await pods(cluster) if of(pod, clique, group_index) and "nodeName" in pod["spec"]]
    for pod in ready[:number]:
        await cluster.delete(PODS, pod["metadata"]["name"])


async def begin(cluster: Cluster, manifest: dict[str, Any]) -> set[str]:
    await cluster.create(SETS, manifest)
    await until_available(cluster)
    await cluster.advance(5)
    return await names(cluster)


async def names(cluster: Cluster) -> set[str]:
    return {pod["metadata"]["name"] for pod in await pods(cluster)}


async def recovered(cluster: Cluster) -> set[str]:
    await cordon(cluster, off=True)
    await until_available(cluster)
    await cluster.advance(30)
    assert "terminatingReplicas" not in await status(cluster)
    found = await names(cluster)
    assert len(found) == 10
    return found


def test_gt_1_a_lost_pod_that_is_needed_ends_the_replica_after_the_delay() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, STRICT)
        await lose(cluster, "pc-a")
        await cluster.advance(9)
        assert len(before & await names(cluster)) == 9, "nothing else goes before the delay has passed"
        await cluster.advance(6)
        assert not before & await names(cluster), "then the whole replica goes"
        assert not before & await recovered(cluster)
        reasons = [event["reason"] for event in await cluster.list(EVENTS)]
        assert reasons.count("PodCliqueSetReplicaDeleteSuccessful") == 1

    simulated(story)


def test_gt_2_a_lost_pod_of_a_group_that_is_needed_ends_the_replica_as_well() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, STRICT)
        await lose(cluster, "pc-c", "0")
        await cluster.advance(9)
        assert len(before & await names(cluster)) == 9
        await cluster.advance(6)
        assert not before & await names(cluster)
        assert not before & await recovered(cluster)

    simulated(story)


def test_gt_3_a_loss_above_the_minimum_is_borne_and_the_next_one_is_not() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, LENIENT)
        await lose(cluster, "pc-a")
        await cluster.advance(60)
        assert len(before & await names(cluster)) == 9
        await lose(cluster, "pc-a")
        await cluster.advance(20)
        assert not before & await names(cluster)
        assert not before & await recovered(cluster)

    simulated(story)


def test_gt_4_and_5_one_replica_of_a_group_goes_alone_and_only_both_end_the_replica_of_the_set() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, LENIENT)
        await until_available(cluster)
        await cluster.advance(5)
        before = {pod["metadata"]["name"]: pod for pod in await pods(cluster)}
        await lose(cluster, "pc-b", "0")
        await cluster.advance(20)
        left = {
            pod["metadata"]["labels"].get(labels.GROUP_INDEX)
            for name, pod in before.items()
            if name in await names(cluster)
        }
        assert left == {None, "1"}, "GT-5: only the replica that lacks something is made again"
        assert len(set(before) & await names(cluster)) == 6
        await lose(cluster, "pc-b", "1")
        await cluster.advance(20)
        assert not set(before) & await names(cluster), "GT-4: with both down the group has too few"
        await recovered(cluster)

    simulated(story)


def test_gt_6_a_loss_above_the_minimum_of_a_scaled_replica_ends_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, LENIENT)
        await lose(cluster, "pc-c", "1")
        await cluster.advance(60)
        assert len(before & await names(cluster)) == 9
        await recovered(cluster)

    simulated(story)


def test_what_was_never_complete_is_not_ended() -> None:
    async def story(cluster: Cluster) -> None:
        await cordon(cluster)
        await cluster.create(SETS, STRICT)
        await cluster.advance(5)
        before = await names(cluster)
        await cluster.advance(120)
        assert before == await names(cluster)

    simulated(story)


def test_the_end_of_a_replica_that_is_cut_off_is_taken_up_again() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, STRICT)
        await lose(cluster, "pc-a")
        await cluster.advance(9)
        await cluster.restart()
        await cluster.advance(6)
        assert not before & await names(cluster)
        await recovered(cluster)

    simulated(story)
