"""Simulated nodes: they register, are heard from, fall silent, vanish and come back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, LEASES, NODES, PODS
from holdfast.cluster import simulation
from holdfast.cluster.controllers.podgc import PodCollector
from holdfast.cluster.nodes import evictions, lifecycle
from holdfast.cluster.nodes.lifecycle import LEASE_NAMESPACE, NodeSettings
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.chaos import Fault, NodeDown, NodeGone
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes, World, decide, manifest
from holdfast.runtime.decisions import Create, Delete, Patch
from holdfast.testing.clusters import Cluster, play

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FLEET = Fleet(count=4, extended={"nvidia.com/gpu": "8"})


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def node(ready: str = "True") -> Object:
    wire = manifest(FLEET, "node-1", NOW)
    wire["metadata"]["uid"] = "n1"
    wire["status"]["conditions"][-1]["status"] = ready
    return Object.of(NODES, wire)


def lease() -> Object:
    return Object.of(LEASES, {"metadata": {"name": "node-1", "namespace": LEASE_NAMESPACE, "uid": "l1"}})


def seen(**how: Any) -> World:
    usual: dict[str, Any] = {"name": "node-1", "node": node(), "lease": lease(), "renewed": NOW, "registered": True}
    return World(**(usual | how))


def down(since: float = 0, until: float | None = None) -> NodeDown:
    return NodeDown(
        since=NOW + seconds(since), until=None if until is None else NOW + seconds(until), nodes=("node-1",)
    )


GONE = NodeGone(since=NOW, nodes=("node-1",))


@pytest.mark.parametrize(
    ("world", "writes", "due"),
    [
        pytest.param(seen(), [], 10, id="well, and heard from"),
        pytest.param(seen(renewed=NOW - seconds(10)), ["Patch leases"], 10, id="due"),
        pytest.param(seen(renewed=None, lease=None), ["Create leases"], 10, id="never heard from"),
        pytest.param(seen(renewed=None), ["Patch leases"], 10, id="a lease of an earlier life"),
        pytest.param(seen(node=node("Unknown")), ["Patch nodes"], 10, id="taken for lost"),
        pytest.param(seen(node=None, lease=None, registered=False), ["Create nodes"], None, id="not there yet"),
        pytest.param(seen(node=None), [], None, id="deleted by a user"),
        pytest.param(seen(renewed=NOW - seconds(60), outages=(down(),)), [], None, id="down"),
        pytest.param(seen(outages=(down(until=30),)), [], 30, id="down for a while"),
        pytest.param(seen(outages=(down(since=5),)), [], 5, id="down soon"),
        pytest.param(seen(outages=(GONE,)), ["Delete nodes", "Delete leases"], None, id="vanishing"),
        pytest.param(seen(node=None, lease=None, outages=(GONE,)), [], None, id="vanished"),
    ],
)
def test_a_node_does_what_is_due(world: World, writes: list[str], due: float | None) -> None:
    decided, at = decide(world, NOW, fleet=FLEET)
    assert all(isinstance(write, Create | Patch | Delete) for write in decided)
    assert [f"{type(write).__name__} {write.resource.plural}" for write in decided] == writes
    assert at == (None if due is None else NOW + seconds(due))


def test_nodes_say_what_they_are() -> None:
    made = [manifest(FLEET, name, NOW) for name in FLEET.names]
    assert [each["metadata"]["name"] for each in made] == ["node-1", "node-2", "node-3", "node-4"]
    zones = [each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in made]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]
    assert len({each["status"]["addresses"][0]["address"] for each in made}) == 4
    assert made[0]["status"]["allocatable"] == {
        "cpu": "32",
        "memory": "128Gi",
        "ephemeral-storage": "1Ti",
        "pods": "250",
        "nvidia.com/gpu": "8",
    }


@pytest.mark.parametrize("wrong", [{"count": -1}, {"heartbeat": timedelta(0)}])
def test_a_fleet_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|cannot be"):
        Fleet(**wrong)


# --- on a server

EVERYTHING: dict[str, Any] = {
    "components": [Scheduler(), SimulatedNodes(Fleet(count=2)), PodCollector()],
    "controllers": [
        simulation.controller(),
        lifecycle.controller(NodeSettings()),
        evictions.controller(NodeSettings()),
    ],
}


async def ready(cluster: Cluster, name: str) -> str:
    conditions = (await cluster.get(NODES, name))["status"]["conditions"]
    return next(str(each["status"]) for each in conditions if each["type"] == "Ready")


async def trouble(cluster: Cluster, name: str, fault: Fault) -> None:
    if await cluster.find(CONFIG_MAPS, chaos.PLACE.name, chaos.PLACE.namespace) is None:
        metadata = {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}
        await cluster.create(CONFIG_MAPS, {"metadata": metadata})
    patch = chaos.added(name, fault)
    await cluster.patch(CONFIG_MAPS, chaos.PLACE.name, patch, namespace=chaos.PLACE.namespace)
    await cluster.settle()


async def end(cluster: Cluster, *names: str) -> None:
    await cluster.patch(CONFIG_MAPS, chaos.PLACE.name, chaos.ended(names), namespace=chaos.PLACE.namespace)
    await cluster.settle()


async def pod_on(cluster: Cluster, name: str, where: str) -> None:
    spec = {"nodeName": where, "containers": [{"name": "c", "image": "web:1"}]}
    await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})
    await cluster.advance(2)


async def is_ready(cluster: Cluster, pod: str) -> bool:
    conditions = (await cluster.get(PODS, pod))["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_nodes_register_and_are_heard_from() -> None:
    async def story(cluster: Cluster) -> None:
        assert [await ready(cluster, name) for name in ("node-1", "node-2")] == ["True", "True"]
        first = (await cluster.get(LEASES, "node-1", LEASE_NAMESPACE))["spec"]["renewTime"]
        before = cluster.server.store.revision
        await cluster.advance(60)
        assert (await cluster.get(LEASES, "node-1", LEASE_NAMESPACE))["spec"]["renewTime"] > first
        assert cluster.server.store.revision - before == 12, "a heartbeat of each in ten seconds, and nothing else"

    play(story, **EVERYTHING)


def test_a_node_that_is_down_is_lost_and_its_pods_with_it_until_it_is_up() -> None:
    async def story(cluster: Cluster) -> None:
        await pod_on(cluster, "web", "node-1")
        assert await is_ready(cluster, "web")
        await trouble(cluster, "down", NodeDown(since=cluster.now(), nodes=("node-1",)))
        await cluster.advance(60)
        assert [await ready(cluster, name) for name in ("node-1", "node-2")] == ["Unknown", "True"]
        assert not await is_ready(cluster, "web")
        await end(cluster, "down")
        assert await ready(cluster, "node-1") == "True"
        await cluster.advance(1)
        assert await is_ready(cluster, "web")
        assert "taints" not in (await cluster.get(NODES, "node-1"))["spec"]

    play(story, **EVERYTHING)


def test_pods_of_a_node_that_stays_down_wait_for_their_end() -> None:
    async def story(cluster: Cluster) -> None:
        await pod_on(cluster, "web", "node-1")
        await trouble(cluster, "down", NodeDown(since=cluster.now(), nodes=("node-1",)))
        await cluster.advance(400)
        assert "deletionTimestamp" in (await cluster.get(PODS, "web"))["metadata"], "driven away, and still there"
        await end(cluster, "down")
        await cluster.advance(1)
        assert await cluster.find(PODS, "web") is None

    play(story, **EVERYTHING)


def test_a_node_that_vanishes_takes_its_pods_and_comes_back_as_a_new_one() -> None:
    async def story(cluster: Cluster) -> None:
        await pod_on(cluster, "web", "node-1")
        before = (await cluster.get(NODES, "node-1"))["metadata"]["uid"]
        await trouble(cluster, "gone", NodeGone(since=cluster.now(), nodes=("node-1",)))
        assert await cluster.find(NODES, "node-1") is None
        await cluster.until(lambda: _is_gone(cluster, "web"), within=120)
        await end(cluster, "gone")
        assert (await cluster.get(NODES, "node-1"))["metadata"]["uid"] != before
        assert await cluster.find(LEASES, "node-1", LEASE_NAMESPACE) is not None

    play(story, **EVERYTHING)


async def _is_gone(cluster: Cluster, pod: str) -> bool:
    return await cluster.find(PODS, pod) is None


def test_a_node_that_a_user_deletes_stays_deleted_until_the_next_start() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.delete(NODES, "node-2")
        await cluster.advance(30)
        assert await cluster.find(NODES, "node-2") is None
        await cluster.restart()
        await cluster.settle()
        assert await ready(cluster, "node-2") == "True"

    play(story, components=[SimulatedNodes(Fleet(count=2))])


def test_nodes_that_were_off_for_an_hour_go_on() -> None:
    async def story(cluster: Cluster) -> None:
        await pod_on(cluster, "web", "node-1")
        await cluster.kill()
        await asyncio.sleep(3600)
        await cluster.restart()
        await cluster.advance(1)
        assert await ready(cluster, "node-1") == "True"
        assert await is_ready(cluster, "web")

    play(story, **EVERYTHING)
