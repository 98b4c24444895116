"""Rolling updates on simulated nodes: what is down at any moment, and what happens when something else changes."""

from __future__ import annotations

import asyncio

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    KINDS,
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
from tests.operators.podcliqueset.rollings import WL1, all_updated, is_running

from holdfast.client.resources import PODS
from holdfast.cluster.assembly import Cluster as Parts
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.controller import CONTROLLERS
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.clusters import connected, play
from holdfast.testing.faults import RefusesPods


async def turn(cluster: Cluster) -> int | None:
    progress = (await status(cluster)).get("rollingUpdateProgress") or {}
    current: int | None = (progress.get("currentlyUpdating") or {}).get("replicaIndex")
    return current


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
        assert (blocked["status"], blocked["reason"]) == ("True", "Unschedulable")
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


def test_a_template_that_the_api_refuses_stops_no_pod_of_cliques_and_groups() -> None:
    async def story(cluster: Cluster) -> None:
        manager = Manager(
            RefusesPods(connected(cluster.server), "refused"),
            controllers=CONTROLLERS,
            now=cluster.now,
            settings=Settings(),
            seed=1,
        )
        working = asyncio.create_task(manager.run())
        try:
            wanted = workload()
            await cluster.create(SETS, wanted)
            await until_available(cluster)
            running = {pod["metadata"]["uid"] for pod in await cluster.list(PODS)}
            await update(cluster, changed(wanted, to="refused"))
            await cluster.advance(120)
            assert {pod["metadata"]["uid"] for pod in await pods(cluster)} == running
            for resource, name in ((CLIQUES, "wl-0-pc-a"), (GROUPS, "wl-0-sg-x")):
                said = str((await cluster.get(resource, name))["status"])
                assert "the pod template of PodClique" in said
                assert "refused is not allowed" in said
            await update(cluster, changed(wanted, to="accepted"))
            await until_updated(cluster)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    parts = Parts(nodes=4)
    play(story, controllers=parts.controllers(), components=parts.components(), kinds=KINDS)
