"""The contract: whatever fails once on the way, inference gangs end the same."""

from __future__ import annotations

import dataclasses
import os

import pytest
from tests.operators.podcliqueset.gangsets import (
    KINDS,
    SETS,
    Cluster,
    changed,
    clique,
    group,
    pcs,
    until_available,
    update,
)
from tests.operators.pods import run_pods

from holdfast.client.resources import PODS
from holdfast.cluster.assembly import Cluster as Parts
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.operators.podcliqueset.controller import CONTROLLERS
from holdfast.operators.podcliqueset.resources import CLIQUES
from holdfast.testing.contract import (
    FAULTS,
    Bounds,
    Scenario,
    Story,
    check,
    check_bounds,
    check_deletion,
    check_second_look,
)
from holdfast.testing.wakeups import check_wakeups

SMALL = pcs("wl", clique("a"), clique("b"), group("g", "b"))


async def available(cluster: Cluster, generation: int, *, pods: int = 2) -> None:
    async def holds() -> bool:
        await run_pods(cluster)
        now = (await cluster.get(SETS, "wl")).get("status") or {}
        return bool(
            now.get("updatedReplicas") == 1
            and now.get("observedGeneration") == generation
            and "currentlyUpdating" not in now.get("rollingUpdateProgress", {})
            and len(await cluster.list(PODS)) == pods
        )

    await cluster.until(holds, step=1)


async def made(cluster: Cluster) -> None:
    await cluster.create(SETS, SMALL)
    await available(cluster, 1)


async def rolled(cluster: Cluster) -> None:
    await made(cluster)
    await update(cluster, changed(SMALL))
    await available(cluster, 2)


def scenario(name: str, story: Story) -> Scenario:
    return Scenario(
        name=name,
        controllers=CONTROLLERS,
        components=lambda: (GarbageCollector(),),
        kinds=KINDS,
        story=story,
        deleted=(SETS, "wl"),
        patience=30,
        # Pods have generated names, and how often something was changed on the way may differ.
        ignored=frozenset({"generation", "observedGeneration", "podReferences"}),
    )


THREE = pcs("wl", clique("a", 3, minimum=2))


async def changed_midway(cluster: Cluster) -> None:
    """Three pods, of which two must be ready, and two templates that take turns while each rolls out."""
    await cluster.create(SETS, THREE)
    await available(cluster, 1, pods=3)
    for number in range(8):
        await update(cluster, changed(THREE, to=str(number % 2)))
        for _ in range(4 + 2 * number):
            await run_pods(cluster)
            await cluster.advance(0.7)
    await available(cluster, 9, pods=3)


MIDWAY = dataclasses.replace(
    scenario("the template changes midway", changed_midway),
    bounds=Bounds(floor=2, ceiling=3),
)


async def simulated(cluster: Cluster) -> None:
    """Made, on nodes that let pods go when they are deleted."""
    await cluster.create(SETS, SMALL)
    await until_available(cluster)


ROLLED = scenario("a set is made and updated", rolled)
PARTS = Parts(nodes=1)
SIMULATED = dataclasses.replace(
    scenario("a set is made", simulated), controllers=(*PARTS.controllers(), *CONTROLLERS), components=PARTS.components
)

EVERY = 1 if os.environ.get("HOLDFAST_WHOLE_CONTRACT") else 11
"""Which faults are tried: all of them take minutes, so usually one in so many."""


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds_while_a_set_is_made_and_updated(faults: str) -> None:
    check(ROLLED, faults, every=1 if faults in ("stale reads", "changes out of order") else EVERY)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(ROLLED)


def test_nothing_is_left_of_a_set_that_is_deleted() -> None:
    check_deletion(SIMULATED, components=lambda: ())


def test_no_bound_is_broken_when_replies_are_lost_changes_are_late_and_the_template_changes_midway() -> None:
    check_bounds(MIDWAY, "replies lost and changes late")


WITH_THEIR_SET = "the parts of a set come after it, and go with it"

NOT_AWAITED = {
    ("podcliquescalinggroup", SETS): WITH_THEIR_SET,
    ("podclique", SETS): WITH_THEIR_SET,
    ("podgang", SETS): WITH_THEIR_SET,
    ("podcliqueset", CLIQUES): "a scaling group reports for its own PodCliques",
}


def test_what_the_parts_of_a_set_read_wakes_them() -> None:
    check_wakeups(scenario("rolled out", rolled), but=NOT_AWAITED)
