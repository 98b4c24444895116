"""The contract: whatever fails once on the way, a Tenant ends the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.tenant.stories import (
    IMAGE,
    NEWER,
    NEWEST,
    answer,
    images,
    pool,
    servers,
    status_of,
    tenant,
    to_image,
)

from holdfast.client.resources import CONTROLLER_REVISIONS, PODS
from holdfast.cluster.controllers import statefulsets
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.kinds.rustfs import KINDS
from holdfast.operators.tenant.controller import CONTROLLERS
from holdfast.operators.tenant.observe import TENANTS
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Bounds, Scenario, check, check_bounds, check_deletion, check_second_look
from holdfast.testing.wakeups import check_wakeups


async def reported(cluster: Cluster) -> list[dict[str, Any]]:
    """Be the node of all servers: those that are deleted go, and those that are pending become ready."""
    pods = await servers(cluster)
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            await cluster.delete(PODS, pod["metadata"]["name"], uid=pod["metadata"]["uid"], grace_seconds=0)
        elif pod["status"]["phase"] == "Pending":
            await cluster.report(pod["metadata"]["name"])
    return pods


async def carried_through(cluster: Cluster, image: str, number: int) -> None:
    """Report servers ready until all are of an image."""

    async def holds() -> bool:
        pods = await reported(cluster)
        status = await status_of(cluster)
        return status.get("currentState") == "Ready" and images(pods) == [image] * number

    await cluster.until(holds, step=1)


async def story(cluster: Cluster) -> None:
    """A store of one server; a rollout is paused, changed to a third image, and resumed."""
    await cluster.create(TENANTS, tenant("store", pool(servers=1), image=IMAGE))
    await carried_through(cluster, IMAGE, 1)
    await cluster.patch(TENANTS, "store", {"spec": {"image": NEWER, "rollout": {"paused": True}}})
    await cluster.until(lambda: paused(cluster), step=1)
    await cluster.patch(TENANTS, "store", {"spec": {"image": NEWEST, "rollout": {"paused": False}}})
    await carried_through(cluster, NEWEST, 1)


async def paused(cluster: Cluster) -> bool:
    """The rollout is paused, and the StatefulSet has a record of the new revision."""
    revisions = await cluster.list(CONTROLLER_REVISIONS)
    return answer(await status_of(cluster), "Ready") == ("False", "RolloutPaused") and len(revisions) == 2


SCENARIO = Scenario(
    name="a store, and a rollout that is paused and changed",
    controllers=(statefulsets.CONTROLLER, *CONTROLLERS),
    story=story,
    kinds=KINDS,
    deleted=(TENANTS, "store"),
    patience=30,
    # How often a StatefulSet was applied on the way may differ; how it ends may not.
    # So may the addresses of Services, which they get in the order of their creation.
    ignored=frozenset({"generation", "observedGeneration", "clusterIP", "clusterIPs"}),
)


async def changed_midway(cluster: Cluster) -> None:
    """Four servers, of which three must be ready, and two images that take turns while each rolls out."""
    await cluster.create(TENANTS, tenant("store", pool(servers=4), image=IMAGE))
    await carried_through(cluster, IMAGE, 4)
    for number in range(8):
        await to_image(cluster, (NEWER, IMAGE)[number % 2])
        for _ in range(4 + 2 * number):
            await reported(cluster)
            await cluster.advance(0.7)
    await carried_through(cluster, IMAGE, 4)


MIDWAY = Scenario(
    name="the image changes midway",
    controllers=(statefulsets.CONTROLLER, *CONTROLLERS),
    story=changed_midway,
    kinds=KINDS,
    patience=30,
    bounds=Bounds(floor=3, ceiling=4),
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_nothing_is_left_of_a_tenant_that_is_deleted_but_its_volumes() -> None:
    check_deletion(SCENARIO, components=lambda: (GarbageCollector(),))


def test_no_bound_is_broken_when_replies_are_lost_changes_are_late_and_the_image_changes_midway() -> None:
    check_bounds(MIDWAY, "replies lost and changes late")


def test_what_a_tenant_reads_wakes_it() -> None:
    check_wakeups(SCENARIO)
