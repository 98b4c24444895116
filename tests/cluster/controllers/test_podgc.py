"""Pods that no node will end, and pods that have ended long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import NODES, PODS
from holdfast.cluster.controllers import podgc
from holdfast.cluster.controllers.podgc import Ended, PodCollector, PodSettings
from holdfast.meta.objects import Key
from holdfast.testing.clusters import Cluster, play

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOLD = "example.com/hold"


def ended(name: str, *, created: str, phase: str = "Succeeded", reason: str = "") -> Ended:
    meta = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": f"2030-01-01T00:00:{created}Z"}
    return Ended.of(Pod.of(Object.of(PODS, {"metadata": meta, "status": {"phase": phase, "reason": reason}})))


@pytest.mark.parametrize(
    ("kept", "goes"),
    [
        pytest.param(4, [], id="as many as may be kept"),
        pytest.param(3, ["evicted"], id="who was evicted goes first"),
        pytest.param(1, ["evicted", "old", "failed"], id="then the oldest"),
        pytest.param(0, ["evicted", "old", "failed", "young"], id="and at last all"),
    ],
)
def test_who_goes_when_there_are_too_many(kept: int, goes: list[str]) -> None:
    pods = [
        ended("young", created="30"),
        ended("old", created="10"),
        ended("evicted", created="40", phase="Failed", reason="Evicted"),
        ended("failed", created="20", phase="Failed"),
    ]
    assert [each.uid for each in podgc.excess({each.key: each for each in pods}, kept)] == goes


def test_an_orphan_is_not_blamed() -> None:
    assert podgc.failed(NOW, orphaned=False) == {"status": {"phase": "Failed"}}
    assert podgc.failed(NOW, orphaned=True) == {
        "status": {
            "phase": "Failed",
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists",
                    "lastTransitionTime": "2030-01-01T00:00:00Z",
                }
            ],
        }
    }


# --- on a cluster


def collected(story: Any, **settings: Any) -> None:
    play(story, components=[PodCollector(PodSettings(**settings))])


async def make(cluster: Cluster, name: str, *, node: str = "", **meta: Any) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]} | ({"nodeName": node} if node else {})
    await cluster.create(PODS, {"metadata": {"name": name, **meta}, "spec": spec})


async def names(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in await cluster.list(PODS)]


def test_the_pods_of_a_node_that_is_gone_go_after_a_while() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await cluster.create(NODES, {"metadata": {"name": name}})
        await make(cluster, "a", node="n1")
        await make(cluster, "held", node="n1", finalizers=[HOLD])
        await make(cluster, "b", node="n2")
        await cluster.delete(NODES, "n1")
        await cluster.advance(39)
        assert await names(cluster) == ["a", "b", "held"]
        await cluster.advance(2)
        assert await names(cluster) == ["b", "held"]
        status = (await cluster.get(PODS, "held"))["status"]
        assert status["phase"] == "Failed"
        assert [each["reason"] for each in status["conditions"]] == ["DeletionByPodGC"]

    collected(story)


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        await make(cluster, "a", node="n1")
        await cluster.advance(30)
        await cluster.create(NODES, {"metadata": {"name": "n1"}})
        await cluster.advance(60)
        await cluster.delete(NODES, "n1")
        await cluster.advance(30)
        assert await names(cluster) == ["a"]

    collected(story)


def test_the_while_can_be_shortened() -> None:
    async def story(cluster: Cluster) -> None:
        await make(cluster, "a", node="n1")
        await cluster.advance(2)
        assert await names(cluster) == []

    collected(story, quarantine=timedelta(seconds=1))


def test_a_pod_that_was_never_placed_is_ended_when_it_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await make(cluster, "a", finalizers=[HOLD])
        await cluster.settle()
        assert (await cluster.get(PODS, "a"))["status"]["phase"] == "Pending"
        await cluster.delete(PODS, "a")
        await cluster.settle()
        assert (await cluster.get(PODS, "a"))["status"]["phase"] == "Failed"
        await cluster.patch(PODS, "a", {"metadata": {"finalizers": None}})
        assert await names(cluster) == []

    collected(story)


def test_only_so_many_pods_that_have_ended_are_kept() -> None:
    async def story(cluster: Cluster) -> None:
        for number in range(6):
            await make(cluster, f"p{number}")
            if number != 2:
                await cluster.report(f"p{number}", phase="Succeeded", ready=False)
            await cluster.advance(1)
        assert await names(cluster) == ["p2", "p3", "p4", "p5"]

    collected(story, kept=3)


def test_keys_order_pods_of_one_moment() -> None:
    one, two = ended("a", created="10"), ended("b", created="10")
    assert podgc.excess({two.key: two, one.key: one}, 1) == [one]
    assert one.key == Key("default", "a")
