"""Rolling updates on simulated nodes: what is down at any moment, and what happens when something else changes."""

from __future__ import annotations

from typing import Any

import pytest
from gangsets import (
    CLIQUES,
    GROUPS,
    SETS,
    Cluster,
    changed,
    cordon,
    down_at_once,
    filmed,
    pods,
    scale,
    simulated,
    status,
    until_available,
    until_updated,
    update,
    workload,
)

from holdfast.client.resources import PODS
from holdfast.operators.podcliqueset import labels

WL1 = workload(replicas=2)
"""All of ten pods a replica are needed."""


async def is_running(cluster: Cluster) -> bool:
    progress = (await status(cluster)).get("rollingUpdateProgress") or {}
    return "currentlyUpdating" in progress


async def turn(cluster: Cluster) -> int | None:
    progress = (await status(cluster)).get("rollingUpdateProgress") or {}
    current: int | None = (progress.get("currentlyUpdating") or {}).get("replicaIndex")
    return current


async def trigger(cluster: Cluster, pod: dict[str, Any]) -> str:
    env = pod["spec"]["containers"][0].get("env") or ()
    return next((each.get("value", "") for each in env if each["name"] == "UPDATE_TRIGGER"), "")


async def all_updated(cluster: Cluster, number: int, *cliques: str) -> None:
    """So many pods, all ready, and those of the cliques from the new template."""
    await cluster.settle()
    found = await pods(cluster)
    assert len(found) == number
    for pod in found:
        if not cliques or pod["metadata"]["labels"][labels.TEMPLATE] in cliques:
            assert await trigger(cluster, pod) == "1"


@pytest.mark.parametrize(
    ("scenario", "cliques", "part", "most"),
    [
        pytest.param("RU-7", ("pc-a",), (labels.CLIQUE,), 1, id="RU-7 one pod of a clique at a time"),
        pytest.param(
            "RU-8", ("pc-b",), (labels.GROUP, labels.GROUP_INDEX), 4, id="RU-8 one replica of a group at a time"
        ),
    ],
)
def test_one_part_at_a_time(scenario: str, cliques: tuple[str, ...], part: tuple[str, ...], most: int) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        before = await pods(cluster)
        async with filmed(cluster, PODS) as film:
            await update(cluster, changed(WL1, *cliques))
            await until_updated(cluster)
        assert down_at_once(film, before, *part) == (1, most)
        assert down_at_once(film, before, labels.SET_INDEX)[0] == 1, "one replica of the set at a time"
        await all_updated(cluster, 20, *cliques)

    simulated(story)


def test_ru_9_cliques_and_groups_of_one_replica_are_updated_side_by_side_each_one_at_a_time() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        before = await pods(cluster)
        async with filmed(cluster, PODS) as film:
            await update(cluster, changed(WL1))
            await until_updated(cluster)
        alone = [pod for pod in before if pod["metadata"]["labels"][labels.TEMPLATE] == "pc-a"]
        grouped = [pod for pod in before if pod not in alone]
        assert down_at_once(film, alone, labels.CLIQUE) == (1, 1)
        assert down_at_once(film, grouped, labels.GROUP, labels.GROUP_INDEX) == (1, 4)
        assert down_at_once(film, before, labels.SET_INDEX)[0] == 1
        await all_updated(cluster, 20)

    simulated(story)


def test_ru_10_nothing_more_is_taken_down_while_there_is_no_place_for_the_replacement() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        old = {pod["metadata"]["name"] for pod in await pods(cluster)}
        await cordon(cluster)
        await update(cluster, changed(WL1, "pc-a"))
        await cluster.advance(120)
        now = await pods(cluster)
        fresh = [pod for pod in now if pod["metadata"]["name"] not in old]
        assert len(now) == 20
        assert [pod["status"]["phase"] for pod in fresh] == ["Pending"]
        blocked = {each["type"]: each for each in (await status(cluster))["conditions"]}["Blocked"]
        assert (blocked["status"], blocked["reason"]) == ("True", "NoPlace")
        await cordon(cluster, off=True)
        await until_updated(cluster)
        await all_updated(cluster, 20, "pc-a")

    simulated(story)


def test_ru_11_a_set_that_grows_during_an_update_ends_updated() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        await update(cluster, changed(WL1))
        await cluster.until(lambda: is_running(cluster))
        await scale(cluster, SETS, "wl", 3)
        await until_updated(cluster)
        await all_updated(cluster, 30)

    simulated(story)


def test_ru_12_a_set_that_shrinks_by_the_replica_that_is_updated_ends_updated() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        await update(cluster, changed(WL1))

        async def second() -> bool:
            return await turn(cluster) == 1

        await cluster.until(second, step=0.1)
        await scale(cluster, SETS, "wl", 1)
        final = await until_updated(cluster)
        assert final["rollingUpdateProgress"]["updatedPodCliques"] == ["wl-0-pc-a"]
        assert final["updateProgress"]["totalPodCliquesCount"] == 1
        await cluster.advance(5)
        await all_updated(cluster, 10)

    simulated(story)


def test_ru_13_a_set_that_shrinks_after_an_update_stays_updated() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        await update(cluster, changed(WL1))
        done = await until_updated(cluster)
        await scale(cluster, SETS, "wl", 1)
        await cluster.advance(10)
        final = await until_updated(cluster)
        assert final["rollingUpdateProgress"]["updateEndedAt"] == done["rollingUpdateProgress"]["updateEndedAt"]
        await all_updated(cluster, 10)

    simulated(story)


SCALINGS = [
    # id, resource, name, from, to, during the update or before it, pods in the end
    pytest.param(GROUPS, "wl-{}-sg-x", 2, 3, "during", 28, id="RU-14 a group grows during an update"),
    pytest.param(GROUPS, "wl-{}-sg-x", 2, 3, "before", 28, id="RU-15 a group grew before an update"),
    pytest.param(GROUPS, "wl-{}-sg-x", 3, 2, "during", 20, id="RU-16 a group shrinks during an update"),
    pytest.param(GROUPS, "wl-{}-sg-x", 3, 2, "before", 20, id="RU-17 a group shrank before an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 2, 4, "during", 24, id="RU-18 a clique grows during an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 2, 4, "before", 24, id="RU-19 a clique grew before an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 3, 2, "during", 20, id="RU-20 a clique shrinks during an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 3, 2, "before", 20, id="RU-21 a clique shrank before an update"),
]


@pytest.mark.parametrize(("resource", "name", "first", "then", "when", "total"), SCALINGS)
def test_parts_that_change_their_size_are_updated_once(
    resource: Any, name: str, first: int, then: int, when: str, total: int
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        parts = [name.format(index) for index in range(2)]
        if first != 2:
            for part in parts:
                await scale(cluster, resource, part, first)
            await cluster.advance(10)
        if when == "before":
            for part in parts:
                await scale(cluster, resource, part, then)
            await cluster.advance(10)
        async with filmed(cluster, PODS) as film:
            await update(cluster, changed(WL1))
            if when == "during":
                await cluster.until(lambda: is_running(cluster), step=0.1)
                for part in parts:
                    await scale(cluster, resource, part, then)
            await until_updated(cluster)
            await cluster.advance(10)
        await all_updated(cluster, total)
        assert (await until_available(cluster))["availableReplicas"] == 2
        made = {pod["metadata"]["name"] for event, pod in film.frames if event == "Added"}
        going = {pod["metadata"]["name"] for _, pod in film.frames if "deletionTimestamp" in pod["metadata"]}
        if resource == GROUPS:
            assert not made & going, "what was made from the new template is not made again"

    simulated(story)
