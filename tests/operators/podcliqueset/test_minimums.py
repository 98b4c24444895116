"""minAvailable of a clique is fixed when the set is created, also where it is the default."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GANGS,
    SETS,
    Cluster,
    changed,
    clique,
    condition,
    group,
    pcs,
    scale,
    simulated,
    until_available,
    until_updated,
    update,
)

from holdfast.meta.errors import Invalid

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}


def resized(manifest: dict[str, Any], replicas: int) -> dict[str, Any]:
    """The manifest with so many replicas of each clique."""
    made = copy.deepcopy(manifest)
    for each in made["spec"]["template"]["cliques"]:
        each["spec"]["replicas"] = replicas
    return made


async def minimums(cluster: Cluster) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["minAvailable"] for each in await cluster.list(CLIQUES)}


@pytest.mark.parametrize("grouped", [False, True])
def test_more_replicas_with_a_new_image_are_rolled_out_where_min_available_is_the_default(grouped: bool) -> None:
    parts = (group("g", "a", replicas=2),) if grouped else ()
    manifest = pcs("wl", clique("a", 3, annotations=READY), *parts)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        before = await minimums(cluster)
        await update(cluster, changed(resized(manifest, 4)))
        await until_updated(cluster)
        assert condition(await cluster.get(SETS, "wl"), "Blocked")[0] == "False"
        assert await minimums(cluster) == before
        assert set(before.values()) == {3}
        gangs = {
            group["name"]: group["minReplicas"]
            for gang in await cluster.list(GANGS)
            for group in gang["spec"]["podgroups"]
        }
        assert gangs == before

    simulated(story)


@pytest.mark.parametrize("minimum", [None, 3])
def test_fewer_replicas_than_min_available_are_refused_and_change_no_live_clique(minimum: int | None) -> None:
    manifest = pcs("wl", clique("a", 3, minimum=minimum, annotations=READY))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        with pytest.raises(Invalid, match="minAvailable"):
            await update(cluster, changed(resized(manifest, 1)))
        assert await minimums(cluster) == {"wl-0-a": 3}

    simulated(story)


def test_a_replica_that_is_added_later_has_the_same_min_available_as_the_others() -> None:
    manifest = pcs("wl", clique("a", 2, annotations=READY))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await update(cluster, resized(manifest, 3))
        await scale(cluster, SETS, "wl", 0)
        await cluster.advance(30)
        await scale(cluster, SETS, "wl", 2)
        await until_available(cluster)
        assert await minimums(cluster) == {"wl-0-a": 2, "wl-1-a": 2}

    simulated(story)


def test_min_available_that_is_written_later_must_be_the_one_that_was_fixed() -> None:
    manifest = pcs("wl", clique("a", 2, annotations=READY))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await update(cluster, resized(manifest, 3))
        await until_available(cluster)
        written = resized(manifest, 3)
        written["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 3
        with pytest.raises(Invalid, match="minAvailable is immutable"):
            await update(cluster, written)

    simulated(story)
