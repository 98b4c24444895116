"""Floors: no ready pod is stopped below them, a lowered one is announced first, and a broken one is reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    KINDS,
    SETS,
    Cluster,
    changed,
    clique,
    condition,
    events,
    filmed,
    group,
    is_ready,
    message,
    pcs,
    pods,
    simulated,
    until_available,
    until_updated,
    update,
    workload,
)
from tests.operators.pods import run_pods

from holdfast.client.resources import PODS
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.operators.podcliqueset.controller import CONTROLLERS
from holdfast.testing.clusters import play

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}


def by_hand(story: Callable[[Cluster], Awaitable[None]]) -> None:
    """Play a story in which the test reports for scheduler and nodes."""
    play(story, controllers=CONTROLLERS, components=(GarbageCollector(),), kinds=KINDS)


async def made_ready(cluster: Cluster) -> None:
    """Schedule all pods and make them ready."""
    for _ in range(5):
        await cluster.advance(1)
        await run_pods(cluster)
    await cluster.advance(1)


async def names(cluster: Cluster, *, ready: bool) -> set[str]:
    return {pod["metadata"]["name"] for pod in await pods(cluster) if is_ready(pod) == ready}


@pytest.mark.parametrize(("replicas", "minimum"), [(3, 2), (2, 2), (4, 1)])
def test_no_ready_pod_is_stopped_for_an_update_until_a_crashed_one_is_back(replicas: int, minimum: int) -> None:
    manifest = pcs("wl", clique("a", replicas, minimum=minimum))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await made_ready(cluster)
        crashed, *others = sorted(await names(cluster, ready=True))
        assert len(others) == replicas - 1
        await cluster.report(crashed, ready=False)
        await cluster.settle()
        await update(cluster, changed(manifest))
        await cluster.advance(600)
        assert await names(cluster, ready=True) == set(others), "no ready pod is stopped"
        assert condition(await cluster.get(CLIQUES, "wl-0-a"), "UpdateInProgress")[0] == "True"
        await made_ready(cluster)
        assert len(set(others) & await names(cluster, ready=True)) < len(others), "then the update goes on"

    by_hand(story)


def test_a_group_replica_is_not_stopped_while_another_one_is_down() -> None:
    manifest = pcs("wl", clique("a"), group("g", "a", replicas=3, minimum=2))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await made_ready(cluster)
        crashed, *others = sorted(await names(cluster, ready=True))
        await cluster.report(crashed, ready=False)
        await cluster.settle()
        await update(cluster, changed(manifest))
        await cluster.advance(600)
        assert await names(cluster, ready=True) == set(others)
        for _ in range(5):
            await made_ready(cluster)
        assert not set(others) & await names(cluster, ready=True)
        assert len(await names(cluster, ready=True)) == 3

    by_hand(story)


# --- declared exceptions


def test_a_lowered_floor_is_announced_before_the_first_pod_is_stopped() -> None:
    manifest = workload(replicas=2)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        assert condition(await cluster.get(SETS, "wl"), "FloorLowered") == ("", "")
        async with filmed(cluster, SETS) as sets, filmed(cluster, PODS) as stopped:
            await update(cluster, changed(manifest))
            await until_updated(cluster)
        announced = next(each for _, each in sets.frames if condition(each, "FloorLowered")[0])
        assert condition(announced, "FloorLowered") == ("True", "FloorLowered")
        said = message(announced, "FloorLowered")
        assert "pc-a keeps 1 of 2 pods, sg-x keeps 1 of 2 replicas" in said
        assert "set rollingUpdate.maxSurge to 1 or more" in said
        assert "currentlyUpdating" not in announced["status"]["rollingUpdateProgress"], "no part has its turn yet"
        first = next(pod for _, pod in stopped.frames if "deletionTimestamp" in pod["metadata"])
        assert int(announced["metadata"]["resourceVersion"]) < int(first["metadata"]["resourceVersion"])
        found = await events(cluster)
        assert found.count(("Warning", "FloorLowered", "wl")) == 1
        assert "BelowFloor" not in {reason for _, reason, _ in found}, "the exception is no broken floor"
        assert condition(await cluster.get(SETS, "wl"), "FloorLowered") == ("", "")
        floor = (await cluster.get(CLIQUES, "wl-0-pc-a"))["status"]["floor"]
        assert floor == {"required": 2, "available": 2, "most": 2, "lowest": 1}

    simulated(story)


def test_only_parts_that_change_are_announced() -> None:
    manifest = pcs("wl", clique("a", 2, annotations=READY), clique("b", 2, annotations=READY))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        async with filmed(cluster, SETS) as film:
            await update(cluster, changed(manifest, "b"))
            await until_updated(cluster)
        said = {message(each, "FloorLowered") for _, each in film.frames if condition(each, "FloorLowered")[0]}
        assert len(said) == 1
        assert "b keeps 1 of 2 pods;" in said.pop()

    simulated(story)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(pcs("wl", clique("a", 3, minimum=2, annotations=READY)), id="one may be down"),
        pytest.param(
            pcs("wl", clique("a", 3, annotations=READY), strategy={"rollingUpdate": {"maxSurge": 1}}),
            id="one may surge",
        ),
    ],
)
def test_nothing_is_announced_where_no_floor_is_lowered(manifest: dict[str, Any]) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        async with filmed(cluster, SETS) as sets, filmed(cluster, CLIQUES) as cliques:
            await update(cluster, changed(manifest))
            await until_updated(cluster)
        for _, each in (*sets.frames, *cliques.frames):
            assert condition(each, "FloorLowered") == ("", "")
            assert condition(each, "FloorHeld")[0] == "True"
        assert "FloorLowered" not in {reason for _, reason, _ in await events(cluster)}
        floor = (await cluster.get(CLIQUES, "wl-0-a"))["status"]["floor"]
        assert floor["lowest"] == floor["required"]

    simulated(story)


def test_the_exception_lasts_until_the_pods_of_an_interrupted_update_are_back() -> None:
    manifest = pcs("wl", clique("a", 2))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await made_ready(cluster)
        await update(cluster, changed(manifest))
        await cluster.advance(5)
        assert len(await names(cluster, ready=True)) == 1
        await cluster.patch(SETS, "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
        await cluster.advance(5)
        part = await cluster.get(CLIQUES, "wl-0-a")
        assert condition(part, "UpdateInProgress")[0] == "False"
        assert (condition(part, "FloorHeld")[0], condition(part, "FloorLowered")[0]) == ("True", "True")
        await made_ready(cluster)
        assert condition(await cluster.get(CLIQUES, "wl-0-a"), "FloorLowered") == ("", "")
        assert "BelowFloor" not in {reason for _, reason, _ in await events(cluster)}

    by_hand(story)


# --- broken floors


def test_a_broken_floor_is_reported_by_the_part_and_by_the_set() -> None:
    manifest = pcs("wl", clique("a", 3, minimum=2), clique("b"), group("g", "b", replicas=2, minimum=2))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await cluster.advance(5)
        assert condition(await cluster.get(CLIQUES, "wl-0-a"), "FloorHeld") == ("True", "StillGrowing")
        await made_ready(cluster)
        assert condition(await cluster.get(SETS, "wl"), "FloorHeld") == ("True", "FloorHeld")
        for pod in await pods(cluster, "grove.io/podclique=wl-0-a"):
            await cluster.report(pod["metadata"]["name"], ready=False)
        await cluster.settle()
        part = await cluster.get(CLIQUES, "wl-0-a")
        assert condition(part, "FloorHeld") == ("False", "BelowFloor")
        assert part["status"]["floor"]["lowest"] == 0
        whole = await cluster.get(SETS, "wl")
        assert condition(whole, "FloorHeld") == ("False", "BelowFloor")
        assert message(whole, "FloorHeld") == "wl-0-a has fewer available than its floor of 2"
        assert ("Warning", "BelowFloor", "wl-0-a") in await events(cluster)
        (lost,) = await pods(cluster, "grove.io/podclique=wl-0-g-0-b")
        await cluster.report(lost["metadata"]["name"], ready=False)
        await cluster.settle()
        assert condition(await cluster.get(GROUPS, "wl-0-g"), "FloorHeld") == ("False", "BelowFloor")
        for pod in await pods(cluster):
            await cluster.report(pod["metadata"]["name"])
        await cluster.settle()
        assert condition(await cluster.get(SETS, "wl"), "FloorHeld") == ("True", "FloorHeld")

    by_hand(story)
