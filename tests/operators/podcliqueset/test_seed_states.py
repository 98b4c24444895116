"""The seven states of a rolling update, as they are documented, in the statuses that a watcher sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from tests.operators.podcliqueset.gangsets import (
    SETS,
    Cluster,
    changed,
    clique,
    filmed,
    group,
    pcs,
    simulated,
    until_available,
    until_updated,
    update,
)

from holdfast.kinds.grove import PodCliqueSet
from holdfast.kinds.grove.progress import (
    currently_updating_replica,
    is_rolling_update_in_progress,
    update_progress,
)

SLOW = {"sim.holdfast.dev/ready-after": "20s"}

MY_PCS = pcs(
    "my-pcs",
    clique("frontend", annotations={"sim.holdfast.dev/ready-after": "2s"}),
    clique("prefiller", annotations={"sim.holdfast.dev/ready-after": "5s"}),
    clique("decoder", annotations=SLOW),
    group("prefill", "prefiller"),
    group("decode", "decoder"),
    replicas=3,
)

FRONTENDS = ["my-pcs-0-frontend", "my-pcs-1-frontend", "my-pcs-2-frontend"]
GROUPS = [f"my-pcs-{index}-{name}" for index in range(3) for name in ("prefill", "decode")]


def state(
    *, available: int, updated: int, cliques: int, groups: int, current: int | None = None, ended: bool = False
) -> dict[str, Any]:
    """A documented state: counts, the parts that are listed, the replica that is updated."""
    return {
        "replicas": 3,
        "availableReplicas": available,
        "updatedReplicas": updated,
        "updatedPodCliques": FRONTENDS[:cliques],
        "updatedPodCliqueScalingGroups": GROUPS[:groups],
        "currentlyUpdating": current,
        "ended": ended,
    }


SEVEN = {
    "2 just started": state(available=3, updated=0, cliques=0, groups=0),
    "3 first replica selected": state(available=3, updated=0, cliques=0, groups=0, current=0),
    "4 first replica partially updated": state(available=2, updated=0, cliques=1, groups=1, current=0),
    "5 first complete, second selected": state(available=3, updated=1, cliques=1, groups=2, current=1),
    "6 several replicas updated": state(available=3, updated=2, cliques=2, groups=4, current=2),
    "7 completed": state(available=3, updated=3, cliques=3, groups=6, ended=True),
}


def seen(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status in the terms of the documented states."""
    progress = status.get("rollingUpdateProgress") or {}
    turn = progress.get("currentlyUpdating")
    return {
        "replicas": status.get("replicas"),
        "availableReplicas": status.get("availableReplicas"),
        "updatedReplicas": status.get("updatedReplicas"),
        "updatedPodCliques": progress.get("updatedPodCliques"),
        "updatedPodCliqueScalingGroups": progress.get("updatedPodCliqueScalingGroups"),
        "currentlyUpdating": None if turn is None else turn["replicaIndex"],
        "ended": "updateEndedAt" in progress,
    }


def in_order(states: Mapping[str, dict[str, Any]], statuses: Iterator[dict[str, Any]]) -> list[str]:
    """The states that the statuses pass through, one after the other; what lies between them may be anything."""
    found: list[str] = []
    waiting = dict(states)
    for status in statuses:
        for name in tuple(waiting)[:1]:
            if seen(status) == waiting[name]:
                found.append(name)
                del waiting[name]
    return found


def test_a_watcher_sees_all_seven_states_in_their_order() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MY_PCS)
        steady = await until_available(cluster, "my-pcs")
        # State 1: no update, all of one generation.
        assert "rollingUpdateProgress" not in steady
        assert (steady["replicas"], steady["availableReplicas"], steady["updatedReplicas"]) == (3, 3, 3)
        async with filmed(cluster, SETS) as film:
            await update(cluster, changed(MY_PCS))
            final = await until_updated(cluster, "my-pcs")
        statuses = list(film.statuses())
        assert in_order(SEVEN, iter(statuses)) == list(SEVEN)
        begun = next(each for each in statuses if each.get("rollingUpdateProgress"))
        assert begun["observedGeneration"] == 2, "the generation is observed when the update begins, not when it ends"
        assert begun["currentGenerationHash"] == final["currentGenerationHash"] != steady["currentGenerationHash"]
        assert "currentlyUpdating" not in final["rollingUpdateProgress"]
        # State 1 again: it stays as it is until the next update, which begins with empty lists.
        async with filmed(cluster, SETS) as film:
            await update(cluster, changed(MY_PCS, to="2"))
            await until_updated(cluster, "my-pcs")
        assert in_order(SEVEN, film.statuses()) == list(SEVEN)

    simulated(story)


def test_progress_is_told_by_three_functions() -> None:
    def of(status: Mapping[str, Any] | None) -> PodCliqueSet:
        wire = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", **MY_PCS}
        return msgspec.convert(wire | ({} if status is None else {"status": status}), PodCliqueSet)

    fresh = of(None)
    assert not is_rolling_update_in_progress(fresh)
    assert currently_updating_replica(fresh) is None
    assert update_progress(fresh) == (0, 0)
    started = {"updateStartedAt": "2025-01-15T11:00:00Z"}
    running = of(
        {
            "replicas": 3,
            "updatedReplicas": 1,
            "rollingUpdateProgress": {**started, "currentlyUpdating": {"replicaIndex": 1}},
        }
    )
    assert is_rolling_update_in_progress(running)
    assert currently_updating_replica(running) == 1
    assert update_progress(running) == (1, 3)
    ended = of({"rollingUpdateProgress": {**started, "updateEndedAt": "2025-01-15T11:15:00Z"}})
    assert not is_rolling_update_in_progress(ended)
    assert currently_updating_replica(ended) is None
