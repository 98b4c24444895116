"""What the status of a set counts while its parts are updated, and how many pods are replaced at a time."""

from __future__ import annotations

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    SETS,
    Cluster,
    changed,
    clique,
    cordon,
    filmed,
    group,
    is_ready,
    pcs,
    pods,
    simulated,
    status,
    until_available,
    until_updated,
    update,
)
from tests.operators.podcliqueset.worlds import the_clique, the_set

from holdfast.client.resources import PODS
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset.sets.observe import observe
from holdfast.testing.snapshots import Snapshot

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}
SURGE = {"type": "RollingRecreate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize("grouped", [False, True])
def test_with_surge_a_replica_of_the_set_stays_available_while_its_parts_are_updated(grouped: bool) -> None:
    parts = (group("g", "a", replicas=2, minimum=2),) if grouped else ()
    manifest = pcs("wl", clique("a", 2, annotations=READY), *parts, strategy=SURGE)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        async with filmed(cluster, SETS) as film:
            for number in range(3):
                await update(cluster, changed(manifest, to=str(number)))
                await until_updated(cluster)
        assert {each["availableReplicas"] for each in film.statuses()} == {1}

    simulated(story)


def test_updated_replicas_are_counted_by_hash_also_while_a_pod_of_one_is_lost() -> None:
    manifest = pcs("wl", clique("a", 2, annotations=READY), replicas=2)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await update(cluster, changed(manifest))
        await until_updated(cluster)
        async with filmed(cluster, SETS) as film:
            await cluster.delete(PODS, (await pods(cluster))[0]["metadata"]["name"], grace_seconds=0)
            await cluster.settle()
            await until_available(cluster)
        seen = [(each["availableReplicas"], each["updatedReplicas"]) for each in film.statuses()]
        assert (1, 2) in seen, "it is not available, and still updated"
        assert {updated for _, updated in seen} == {2}

    simulated(story)


def test_a_quarter_of_the_pods_that_are_not_ready_is_replaced_at_a_time_though_replacements_are_unscheduled() -> None:
    never = {"sim.holdfast.dev/never-ready": "true", "sim.holdfast.dev/stop-after": "1s"}
    manifest = pcs("wl", clique("a", 8, minimum=1, annotations=never))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await cluster.advance(30)
        before = {pod["metadata"]["name"] for pod in await pods(cluster)}
        assert len(before) == 8
        assert not any(map(is_ready, await pods(cluster)))
        await cordon(cluster)
        await update(cluster, changed(manifest))
        await cluster.advance(300)
        left = before & {pod["metadata"]["name"] for pod in await pods(cluster)}
        assert len(left) == 6, "two of eight are replaced, and their replacements are waited for"
        assert (await cluster.get(CLIQUES, "wl-0-a"))["status"]["updatedReplicas"] == 2
        assert (await status(cluster))["updatedReplicas"] == 0

    simulated(story)


@pytest.mark.parametrize("observed", [1, 2])
def test_a_part_with_a_new_template_is_as_available_as_it_was_before_its_controller_has_seen_it(observed: int) -> None:
    made = the_set(pcs("wl", clique("a", 2)))
    part = the_clique(made, status={"readyReplicas": 2, "replicas": 2, "observedGeneration": observed})
    part["metadata"]["generation"] = 2
    world = observe(Snapshot([(SETS, made), (CLIQUES, part)]), Key.of(made))
    assert world is not None
    assert [replica.available for replica in world.replicas] == [True]
