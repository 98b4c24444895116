"""Gangs get their places together or not at all: nodes come one by one, and each holds one pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GANGS,
    GROUPS,
    SETS,
    Cluster,
    clique,
    pcs,
    pods,
    scale,
    simulated,
    until_available,
    workload,
)

from holdfast.client.resources import NODES

STRICT = workload(memory="80Mi")
"""Ten pods, all of them needed."""

LENIENT = workload(strict=False, memory="80Mi")
"""Ten pods; one of each clique is needed, and one replica of the group."""


async def open_nodes(cluster: Cluster, number: int) -> None:
    """Let pods on the first so many nodes, and on no others."""
    for index, node in enumerate(sorted(await cluster.list(NODES), key=lambda each: int(each["metadata"]["name"][5:]))):
        closed = index >= number
        if bool(node["spec"].get("unschedulable")) != closed:
            patch = {"spec": {"unschedulable": True if closed else None}}
            await cluster.patch(NODES, node["metadata"]["name"], patch)


async def placed(cluster: Cluster) -> int:
    return sum("nodeName" in pod["spec"] for pod in await pods(cluster))


GROW_GROUP = (GROUPS, "wl-0-sg-x", 3)
GROW_SET = (SETS, "wl", 2)

STORIES = [
    # what happens: how many nodes there are -> how many pods have one; or something is scaled
    pytest.param(STRICT, [(9, 0), (10, 10)], id="GS-1 ten pods or none"),
    pytest.param(STRICT, [(10, 10), GROW_GROUP, (13, 10), (14, 14)], id="GS-2 a replica of a group or none of it"),
    pytest.param(STRICT, [(10, 10), GROW_SET, (19, 10), (20, 20)], id="GS-3 a replica of the set or none of it"),
    pytest.param(
        STRICT, [(10, 10), GROW_GROUP, GROW_SET, (14, 14), (23, 14), (24, 24)], id="GS-4 both, each as a whole"
    ),
    pytest.param(LENIENT, [(2, 0), (3, 3), (10, 10)], id="GS-5 the minimum first, then the rest"),
    pytest.param(LENIENT, [(10, 10), GROW_GROUP, (11, 10), (12, 12), (14, 14)], id="GS-6 two pods of a new replica"),
    pytest.param(LENIENT, [GROW_GROUP, (2, 0), (3, 3), (14, 14)], id="GS-7 a group that grew before there was a place"),
    pytest.param(
        LENIENT, [(3, 3), GROW_GROUP, (14, 14)], id="GS-8 a group that grows while only the minimum has places"
    ),
    pytest.param(LENIENT, [(10, 10), GROW_SET, (12, 10), (13, 13), (20, 20)], id="GS-9 the minimum of a new replica"),
    pytest.param(LENIENT, [GROW_SET, (2, 0), (20, 20)], id="GS-10 a set that grew before there was a place"),
    pytest.param(LENIENT, [(10, 10), GROW_GROUP, GROW_SET, (24, 24)], id="GS-11 both, late"),
    pytest.param(LENIENT, [GROW_GROUP, GROW_SET, (2, 0), (24, 24)], id="GS-12 both, early"),
]


@pytest.mark.parametrize(("manifest", "steps"), STORIES)
def test_gangs_get_their_places_together(manifest: Mapping[str, Any], steps: list[Any]) -> None:
    async def story(cluster: Cluster) -> None:
        await open_nodes(cluster, 0)
        await cluster.create(SETS, manifest)
        await cluster.settle()
        for step in steps:
            if len(step) == 3:
                await scale(cluster, *step)
                await cluster.advance(2)
                continue
            nodes, expected = step
            await open_nodes(cluster, nodes)
            await cluster.advance(30)
            assert await placed(cluster) == expected, f"with {nodes} nodes"
        await cluster.advance(5)
        gangs = await cluster.list(GANGS)
        assert {gang["status"]["phase"] for gang in gangs} == {"Running"}

    most = max(step[0] for step in steps if len(step) == 2)
    simulated(story, nodes=most, memory="100Mi")


def test_scaled_gangs_wait_for_the_base_gang_and_say_so() -> None:
    async def story(cluster: Cluster) -> None:
        await open_nodes(cluster, 0)
        await cluster.create(SETS, LENIENT)
        await cluster.advance(5)
        gangs = {gang["metadata"]["name"]: gang for gang in await cluster.list(GANGS)}
        assert sorted(gangs) == ["wl-0", "wl-0-sg-x-0"]
        conditions = {each["type"]: each for each in gangs["wl-0-sg-x-0"]["status"]["conditions"]}
        assert "and wait: PodGang wl-0 has too few scheduled pods of wl-0-pc-a" in conditions["Initialized"]["message"]
        held = [pod for pod in await pods(cluster) if pod["spec"].get("schedulingGates")]
        assert {pod["metadata"]["labels"]["grove.io/podgang"] for pod in held} == {"wl-0-sg-x-0"}

    simulated(story, nodes=3, memory="100Mi")


def test_a_gang_no_longer_lists_pods_that_are_gone_after_its_clique_was_scaled_down() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, pcs("wl", clique("a", 6, minimum=1)))
        await until_available(cluster)
        await scale(cluster, CLIQUES, "wl-0-a", 2)
        await cluster.advance(60)
        (listed,) = (await cluster.get(GANGS, "wl-0"))["spec"]["podgroups"]
        left = {pod["metadata"]["name"] for pod in await pods(cluster)}
        assert len(left) == 2
        assert {each["name"] for each in listed["podReferences"]} == left

    simulated(story)
