"""Which pods are replicas: those with the labels are adopted, and those that lost them are released and replaced."""

from __future__ import annotations

from typing import Any

from tests.operators.workload.stages import Wire, operated, reaches, workload
from tests.operators.workload.worlds import (
    Placed,
    condition,
    decided,
    deeds,
    pod,
    pods,
    record,
    said,
    status,
    web,
)

from holdfast.client.resources import PODS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.render import WORKLOAD
from holdfast.testing.clusters import Cluster

KNOWN = record("web:1")
SURGE = {"minAvailable": 3, "maxSurge": 1}


def orphan(name: str, image: str = "web:1", **fields: Any) -> Placed:
    """A pod with the labels of a replica, and without a controller."""
    resource, wire = pod(name, image, **fields)
    wire["metadata"]["ownerReferences"] = []
    return resource, wire


def test_a_pod_that_lost_the_label_of_the_selector_is_released_and_replaced() -> None:
    decision = decided(web(status=said("web:1")), KNOWN, pods("web:1", 3), pod("x", labels={WORKLOAD: "other"}))
    assert deeds(decision) == ["release x", "start 1 of web:1"]
    assert status(decision)["readyReplicas"] == 3


def test_pods_that_lost_their_labels_do_not_count_toward_the_floor() -> None:
    there = [*pods("web:1", 2), pod("x", labels={}), pod("y", labels={})]
    decision = decided(web(status=said("web:1", mostAvailable=4), rollout=SURGE), KNOWN, there)
    assert condition(decision, "FloorHeld") == "False BelowFloor"
    assert condition(decision, "Available") == "False TooFewAvailable"


def test_no_ready_replica_is_stopped_for_an_update_in_place_of_one_that_lost_its_labels() -> None:
    there = [KNOWN, record("web:2", 2), *pods("web:1", 3), pod("x", labels={}), *pods("web:2", 1, ready=False)]
    workload = web("web:2", status=said("web:1", rolling="web:2"), rollout={"minAvailable": 3, "maxSurge": 0})
    assert deeds(decided(workload, there)) == ["release x"]


def test_a_pod_that_is_terminating_is_not_released() -> None:
    decision = decided(web(status=said("web:1")), KNOWN, pods("web:1", 4), pod("x", labels={}, going=True))
    assert deeds(decision) == []


def test_an_orphan_with_the_labels_is_adopted_in_place_of_a_missing_replica() -> None:
    decision = decided(web(status=said("web:1")), KNOWN, pods("web:1", 3), orphan("x"))
    assert deeds(decision) == ["adopt x"]
    assert status(decision)["readyReplicas"] == 4


def test_an_orphan_of_another_revision_is_adopted_and_replaced() -> None:
    decision = decided(web(status=said("web:1"), rollout=SURGE), KNOWN, pods("web:1", 4), orphan("x", "web:2"))
    assert deeds(decision) == ["adopt x", "stop x"]


def test_a_pod_of_another_controller_is_left_alone_whatever_its_labels() -> None:
    resource, wire = orphan("x")
    wire["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "uid-other", "controller": True}
    ]
    assert deeds(decided(web(status=said("web:1")), KNOWN, pods("web:1", 4), (resource, wire))) == []


def test_labels_that_are_removed_and_restored_are_followed_in_a_cluster() -> None:
    """A pod is taken out for debugging by its label, replaced, and given back."""

    async def story(cluster: Cluster) -> None:
        await cluster.create(WORKLOADS, workload(replicas=3, rollout={"minAvailable": 2, "maxSurge": 1}))
        await reaches(cluster, "Completed")
        taken = (await cluster.list(PODS))[0]["metadata"]["name"]
        await cluster.patch(PODS, taken, {"metadata": {"labels": {WORKLOAD: None}}})
        await cluster.advance(30)
        released = await cluster.get(PODS, taken)
        assert not released["metadata"].get("ownerReferences")
        assert len(await controlled(cluster)) == 3
        await cluster.patch(PODS, taken, {"metadata": {"labels": {WORKLOAD: "web"}}})
        await cluster.advance(30)
        assert len(await controlled(cluster)) == 3
        assert len(await cluster.list(PODS)) == 3

    operated(story)


async def controlled(cluster: Cluster) -> list[Wire]:
    return [pod for pod in await cluster.list(PODS) if pod["metadata"].get("ownerReferences")]
