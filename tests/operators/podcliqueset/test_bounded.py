"""Bounded updates: the floor holds, also where all are needed, and the indices end as they were."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    SETS,
    Cluster,
    changed,
    clique,
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

from holdfast.client.resources import PODS
from holdfast.operators.podcliqueset import labels

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}


def rolling(**wish: Any) -> dict[str, Any]:
    return {"type": "RollingRecreate", "rollingUpdate": wish}


def lowest_and_highest(film: Any, before: list[dict[str, Any]]) -> tuple[int, int]:
    """The fewest pods that were ready, and the most that lived, at any moment."""
    ready = {pod["metadata"]["name"]: is_ready(pod) for pod in before}
    lowest, highest = len(ready), len(ready)
    for event, pod in film.frames:
        name = pod["metadata"]["name"]
        if event == "Deleted" or "deletionTimestamp" in pod["metadata"]:
            ready.pop(name, None)
        else:
            ready[name] = is_ready(pod)
        lowest, highest = min(lowest, sum(ready.values())), max(highest, len(ready))
    return lowest, highest


@pytest.mark.parametrize(
    ("wish", "minimum", "lowest", "highest"),
    [
        pytest.param({}, 3, 3, 4, id="all are needed, so one more is started first"),
        pytest.param({"maxSurge": 2}, 3, 3, 5, id="two more are started first"),
        pytest.param({"maxUnavailable": 1, "maxSurge": 0}, 2, 2, 3, id="one may be down"),
        pytest.param({"maxUnavailable": 2, "maxSurge": 0}, 1, 1, 3, id="two may be down"),
    ],
)
def test_pods_of_a_clique_stay_within_bounds(wish: dict[str, Any], minimum: int, lowest: int, highest: int) -> None:
    manifest = pcs("wl", clique("a", 3, minimum=minimum, annotations=READY), strategy=rolling(**wish))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        before = await pods(cluster)
        async with filmed(cluster, PODS) as film:
            await update(cluster, changed(manifest))
            await until_updated(cluster)
        assert lowest_and_highest(film, before) == (lowest, highest)
        now = await pods(cluster)
        assert not {pod["metadata"]["name"] for pod in before} & {pod["metadata"]["name"] for pod in now}
        assert sorted(pod["metadata"]["labels"][labels.POD_INDEX] for pod in now) == ["0", "1", "2"]

    simulated(story)


def test_replicas_of_a_group_that_are_all_needed_are_replaced_without_a_gap() -> None:
    manifest = pcs(
        "wl",
        clique("a", 2, annotations=READY),
        group("g", "a", replicas=2, minimum=2, rollingUpdate={"maxSurge": 1}),
    )

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        before = await pods(cluster)
        async with filmed(cluster, GROUPS) as film, filmed(cluster, PODS) as pod_film:
            await update(cluster, changed(manifest))
            await until_updated(cluster)
        assert {each["availableReplicas"] for each in film.statuses() if "availableReplicas" in each} == {2}
        assert lowest_and_highest(pod_film, before) == (4, 6)
        now = await pods(cluster)
        assert sorted({pod["metadata"]["labels"][labels.GROUP_INDEX] for pod in now}) == ["0", "1"]
        assert len(await cluster.list(CLIQUES)) == 2

    simulated(story)


def test_what_cannot_go_on_says_what_to_change() -> None:
    manifest = pcs(
        "wl",
        clique("a", 2, minimum=1, annotations=READY),
        strategy=rolling(maxUnavailable=1, maxSurge=0, progressDeadline="30s"),
    )
    broken = changed(manifest)
    broken["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "nginx:broken"

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await update(cluster, broken)
        await cluster.advance(120)
        blocked = {each["type"]: each for each in (await status(cluster))["conditions"]}["Blocked"]
        assert (blocked["status"], blocked["reason"]) == ("True", "ProgressDeadlineExceeded")
        assert "apply a corrected revision" in blocked["message"]
        assert sum(map(is_ready, await pods(cluster))) == 1, "the floor holds"
        await update(cluster, changed(manifest, to="2"))
        await until_updated(cluster)

    simulated(story)
