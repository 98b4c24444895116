"""The contract: whatever fails once on the way, a graph ends the same."""

from __future__ import annotations

import dataclasses
import os

import pytest
from tests.operators.deploymentrequest.graphs.stories import (
    CONTROLLERS,
    GANG_CONTROLLERS,
    GRAPHS,
    KINDS,
    SETS,
    Cluster,
    component,
    graph,
    status,
    update,
    with_image,
)
from tests.operators.podcliqueset.test_contract import NOT_AWAITED
from tests.operators.pods import run_pods

from holdfast.client.resources import PODS
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.testing.contract import FAULTS, Bounds, Scenario, Story, check, check_second_look
from holdfast.testing.wakeups import check_wakeups

FIRST = graph(component("decode", "decode", 1))
SECOND = with_image(FIRST, "engine:2")
THIRD = graph(component("worker", "worker", 1))


async def ready(cluster: Cluster, generation: int, *, pods: int = 1) -> None:
    """Wait until the graph is as its spec says, and nothing of what it was is left."""

    async def holds() -> bool:
        await run_pods(cluster)
        now = await status(cluster)
        whole = now.get("state") == "successful" and now.get("observedGeneration") == generation
        return whole and len(await cluster.list(PODS)) == pods and len(await cluster.list(SETS)) == 1

    await cluster.until(holds, step=1)


async def updated(cluster: Cluster) -> None:
    await cluster.create(GRAPHS, FIRST)
    await ready(cluster, 1)
    await update(cluster, SECOND)
    await ready(cluster, 2)


async def replaced(cluster: Cluster) -> None:
    await cluster.create(GRAPHS, FIRST)
    await ready(cluster, 1)
    await update(cluster, THIRD)
    await ready(cluster, 2)


def scenario(name: str, story: Story) -> Scenario:
    return Scenario(
        name=name,
        controllers=(*GANG_CONTROLLERS, *CONTROLLERS),
        components=lambda: (GarbageCollector(),),
        kinds=KINDS,
        story=story,
        deleted=(GRAPHS, "chat"),
        patience=30,
        # Pods have generated names, and how often something was changed on the way may differ.
        ignored=frozenset({"generation", "observedGeneration", "podReferences", "clusterIP", "clusterIPs"}),
    )


THREE = graph(component("decode", "decode", 3, minAvailable=2))


async def changed_midway(cluster: Cluster) -> None:
    """Three workers, all of which must be ready while a fourth is started, and two images that take turns midway."""
    await cluster.create(GRAPHS, THREE)
    await ready(cluster, 1, pods=3)
    for number in range(8):
        await update(cluster, with_image(THREE, f"engine:{2 - number % 2}"))
        for _ in range(4 + 2 * number):
            await run_pods(cluster)
            await cluster.advance(0.7)
    await ready(cluster, 9, pods=3)


MIDWAY = dataclasses.replace(
    scenario("the image changes midway", changed_midway), bounds=Bounds(floor=3, ceiling=4), deleted=None
)


UPDATED = scenario("a graph is made and updated", updated)
REPLACED = scenario("a graph is made and given other components", replaced)

EVERY = 1 if os.environ.get("HOLDFAST_WHOLE_CONTRACT") else 97
"""Which faults are tried: all of them take minutes, so usually one in so many."""


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds_while_a_graph_is_made_and_updated(faults: str) -> None:
    check(UPDATED, faults, every=EVERY if "any" in faults else min(EVERY, 6))


@pytest.mark.parametrize(
    "faults", [each for each in FAULTS if os.environ.get("HOLDFAST_WHOLE_CONTRACT")] or ["stale reads"]
)
def test_the_contract_holds_while_a_graph_is_given_other_components(faults: str) -> None:
    check(REPLACED, faults, every=EVERY)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(UPDATED)


def test_what_a_graph_reads_wakes_it() -> None:
    check_wakeups(UPDATED, but=NOT_AWAITED)
