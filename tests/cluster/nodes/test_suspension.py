"""A process that slept does not take its own absence for the silence of others."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.client.resources import NODES, PODS
from holdfast.cluster import simulation
from holdfast.cluster.nodes import evictions, lifecycle
from holdfast.cluster.nodes.lifecycle import NodeSettings
from holdfast.cluster.nodes.suspension import Suspension
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.testing.clusters import Cluster, play


@pytest.mark.parametrize("phase", [0.0, 2.5, 4.9, 7.5])
def test_nodes_and_pods_stay_ready_when_the_machine_sleeps(phase: float) -> None:
    suspension = Suspension()

    async def story(cluster: Cluster) -> None:
        spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "web:1"}]}
        await cluster.create(PODS, {"metadata": {"name": "web"}, "spec": spec})
        await cluster.advance(30 + phase)
        before = (await cluster.get(PODS, "web"))["status"]["conditions"]
        cluster.loop.advance(3600)
        await cluster.advance(60)
        assert (await cluster.get(PODS, "web"))["status"]["conditions"] == before
        for node in await cluster.list(NODES):
            assert "taints" not in node["spec"]

    play(
        story,
        components=[suspension, SimulatedNodes(Fleet(count=3))],
        controllers=[
            simulation.controller(),
            lifecycle.controller(NodeSettings(), suspension),
            evictions.controller(NodeSettings()),
        ],
    )


def test_a_process_that_is_busy_for_a_moment_was_attentive() -> None:
    suspension = Suspension()

    async def story(cluster: Cluster) -> None:
        for _ in range(10):
            await asyncio.sleep(4)
            cluster.loop.advance(9)
        await cluster.settle()
        assert suspension.since is None
        cluster.loop.advance(16)
        await cluster.settle()
        assert suspension.since == cluster.now()

    play(story, components=[suspension])
