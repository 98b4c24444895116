"""How an update goes through the replicas of a set and of a scaling group, decided by tables."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from tests.operators.podcliqueset.worlds import (
    NOW,
    SETS,
    at,
    clique,
    group,
    group_world,
    layout_of,
    pcs,
    stored,
    the_set,
)

from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import render
from holdfast.operators.podcliqueset.groups.decide import decide as decide_group
from holdfast.operators.podcliqueset.groups.termination import Termination
from holdfast.operators.podcliqueset.groups.update import update as group_update
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS
from holdfast.operators.podcliqueset.sets.observe import World, observe
from holdfast.operators.podcliqueset.sets.update import update
from holdfast.runtime.decisions import Delete
from holdfast.testing.snapshots import Snapshot

MANIFEST = pcs("wl", clique("a", 2), replicas=3)

DONE = {"ready": 2, "current": True}
OLD = {"ready": 2}
UNPLACED = {"ready": 0, "scheduled": 0}
BREACHED = {"ready": 1, "breached": True}


def part_status(
    made: dict[str, Any],
    wire: dict[str, Any],
    *,
    ready: int,
    scheduled: int | None = None,
    current: bool = False,
    breached: bool = False,
    never: bool = False,
) -> dict[str, Any]:
    """What a PodClique says of itself."""
    size = wire["spec"]["replicas"]
    placed = size if scheduled is None else scheduled
    flags = {
        "MinAvailableBreached": breached,
        "PodCliqueScheduled": placed >= wire["spec"]["minAvailable"],
        "Ready": True,
    }
    return {
        "observedGeneration": 1,
        "replicas": size,
        "readyReplicas": ready,
        "updatedReplicas": size if current else 0,
        "scheduledReplicas": placed,
        "currentPodTemplateHash": wire["metadata"]["labels"]["grove.io/pod-template-hash"] if current else "before",
        "currentPodCliqueSetGenerationHash": made["status"]["currentGenerationHash"] if current else "before",
        **({} if never else {"lastScheduled": at(50)}),
        **({"minAvailableBreachedSince": at(5)} if breached else {}),
        "conditions": [
            {
                "type": type,
                "status": "True" if flag else "False",
                "lastTransitionTime": at(5),
                "reason": "SomeReason",
                "message": "",
            }
            for type, flag in flags.items()
        ],
    }


def world(made: dict[str, Any], *replicas: dict[str, Any] | None) -> World:
    """A set whose replicas say this of their only clique; None where it does not exist."""
    snapshot = Snapshot([(SETS, made)])
    empty = observe(snapshot, Key.of(made))
    assert empty is not None
    for index, said in enumerate(replicas):
        if said is not None:
            layout = layout_of(made)
            rendered = render.clique(layout, layout.by_name["a"], index, template_hash=empty.hashes["a"])
            wire = stored(CLIQUES, rendered, owner=made)
            snapshot.put(CLIQUES, wire | {"status": part_status(made, wire, **said)})
    found = observe(snapshot, Key.of(made))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("replicas", "turn"),
    [
        pytest.param((OLD, OLD, OLD), 0, id="the lowest index"),
        pytest.param((OLD, BREACHED, OLD), 1, id="one that has too few before others"),
        pytest.param((OLD, BREACHED, UNPLACED), 2, id="one without pods on nodes before all"),
        pytest.param((OLD, OLD, None), 2, id="one that was just added has none on nodes"),
        pytest.param((DONE, OLD, OLD), 1, id="what is done is passed over"),
        pytest.param((DONE, DONE, {**DONE, "ready": 1}), 2, id="what is updated and not available is waited for"),
    ],
)
def test_which_replica_is_next(replicas: tuple[dict[str, Any] | None, ...], turn: int) -> None:
    made = the_set(MANIFEST)
    made["status"]["rollingUpdateProgress"] = {"updateStartedAt": at(2)}
    assert update(world(made, *replicas), NOW).replica == turn


def test_the_same_replica_stays_until_it_is_done() -> None:
    made = the_set(MANIFEST, turn=1)
    made_update = update(world(made, OLD, OLD, UNPLACED), NOW)
    assert made_update.replica == 1
    assert made_update.progress is not None
    assert made_update.progress.currently_updating is not None
    assert made_update.progress.currently_updating.update_started_at == at(1)


def test_the_next_replica_is_chosen_in_the_pass_that_sees_the_last_one_done() -> None:
    assert update(world(the_set(MANIFEST, turn=1), DONE, DONE, OLD), NOW).replica == 2


def test_an_update_ends_when_no_replica_is_left() -> None:
    made_update = update(world(the_set(MANIFEST, turn=2), DONE, DONE, DONE), NOW)
    assert (made_update.running, made_update.replica) == (False, None)
    assert made_update.progress is not None
    assert made_update.progress.updated_pod_cliques == ("wl-0-a", "wl-1-a", "wl-2-a")


def test_a_replica_beyond_the_size_is_not_waited_for() -> None:
    made = the_set({**MANIFEST, "spec": {**MANIFEST["spec"], "replicas": 1}}, turn=2)
    assert not update(world(made, DONE, OLD, OLD), NOW).running


def test_the_first_template_is_no_update() -> None:
    made = stored(SETS, MANIFEST)
    made_update = update(world(the_set(MANIFEST), None, None, None), NOW)
    assert made_update.progress is None
    empty = observe(Snapshot([(SETS, made)]), Key.of(made))
    assert empty is not None
    assert update(empty, NOW).progress is None


@pytest.mark.parametrize(
    ("strategy", "progress", "running"),
    [
        pytest.param({}, None, True, id="rolling, for the first time"),
        pytest.param({}, {"updateStartedAt": at(9), "updateEndedAt": at(8)}, True, id="rolling, after an earlier one"),
        pytest.param({}, {"updateStartedAt": at(9)}, True, id="rolling, in the middle of another"),
        pytest.param({"type": "OnDelete"}, None, False, id="on delete, for the first time"),
        pytest.param({"type": "OnDelete"}, {"updateStartedAt": at(9)}, False, id="on delete, in the middle of another"),
    ],
)
def test_400_another_template_begins_anew(
    strategy: dict[str, Any], progress: dict[str, Any] | None, running: bool
) -> None:
    manifest = pcs("wl", clique("a", 2), replicas=3, strategy=strategy)
    made = the_set(manifest, generation="bbbbbbbbbb")
    if progress is not None:
        made["status"]["rollingUpdateProgress"] = {**progress, "currentlyUpdating": {"replicaIndex": 1}}
    made_update = update(world(made, OLD, OLD, OLD), NOW)
    assert (made_update.started, made_update.running, made_update.replica) == (True, running, None)
    assert made_update.progress is not None
    assert (made_update.progress.update_started_at, made_update.progress.updated_pod_cliques) == (at(0), ())


# --- scaling groups


GROUPED = pcs("wl", clique("b"), clique("c"), group("g", "b", "c", replicas=3, minimum=2))
OUTDATED = {"template": "before", "ready": 1}
FRESH = {"ready": 1, "current": True}
LATE = {"ready": 0, "current": True}


def group_of(*replicas: dict[str, Any], progress: dict[str, Any] | None = None, turn: int | None = 0) -> Any:
    """A scaling group whose replicas' cliques say this of themselves."""
    made = the_set(GROUPED, turn=turn)
    layout = layout_of(made)
    snapshot = Snapshot([(SETS, made)])
    wire = stored(GROUPS, render.group(layout, layout.groups[0], 0), owner=made)
    if progress is not None:
        known = {"updateStartedAt": at(1), "podCliqueSetGenerationHash": made["status"]["currentGenerationHash"]}
        wire["status"] = {"updateProgress": known | progress}
    snapshot.put(GROUPS, wire)
    wanted = group_world(snapshot, "wl-0-g").hashes
    for place, said in enumerate(replicas):
        for name in ("b", "c"):
            how = dict(said)
            template = how.pop("template", "") or wanted[name]
            rendered = render.member(
                layout, layout.groups[0], layout.by_name[name], index=0, group_index=place, template_hash=template
            )
            member = stored(CLIQUES, rendered, owner=wire)
            snapshot.put(CLIQUES, member | {"status": part_status(made, member, **how)})
    return group_world(snapshot, "wl-0-g")


STEPS = [
    # what replicas are, which of them are stopped, which are selected so far, why
    pytest.param((OUTDATED,) * 3, [0], [0], "StoppingOld", id="the lowest index first"),
    pytest.param((LATE, OUTDATED, OUTDATED), [], [], "WaitingForReady", id="its replacement is waited for"),
    pytest.param((FRESH, OUTDATED, OUTDATED), [1], [1], "StoppingOld", id="then the next"),
    pytest.param((LATE, LATE, OUTDATED), [], [], "WaitingForReady", id="none below the minimum"),
    pytest.param(
        (OUTDATED, OUTDATED, {**OUTDATED, "ready": 0, "scheduled": 0}), [2], [], "ReplacingDead", id="not scheduled"
    ),
    pytest.param((OUTDATED, {**OUTDATED, "ready": 0}, OUTDATED), [1], [], "RemovingUnready", id="not available"),
    pytest.param((LATE, {**OUTDATED, "ready": 0}, OUTDATED), [], [], "WaitingForReady", id="few at a time"),
    pytest.param((FRESH, FRESH, LATE), [], [], "WaitingForReady", id="it ends when all are available"),
    pytest.param((FRESH,) * 3, [], [], "Updated", id="then it has ended"),
]


@pytest.mark.parametrize(("replicas", "stopped", "selected", "reason"), STEPS)
def test_the_steps_of_a_groups_update(
    replicas: tuple[dict[str, Any], ...], stopped: list[int], selected: list[int], reason: str
) -> None:
    made = group_update(group_of(*replicas, progress={}), Termination(), NOW)
    assert [int(each) for each in made.step.stops] == stopped
    assert made.progress is not None
    known = made.progress.ready_replica_indices_selected_to_update
    assert ([] if known is None else [*known.completed, known.current]) == selected
    assert made.because.code == reason
    assert made.running == (reason != "Updated")


def test_what_a_groups_status_names_as_selected_decides_nothing() -> None:
    progress = {"readyReplicaIndicesSelectedToUpdate": {"current": 2, "completed": [1]}}
    made = group_update(group_of(*(OUTDATED,) * 3, progress=progress), Termination(), NOW)
    assert made.step.stops == ("0",)


def test_a_group_is_not_updated_before_it_is_its_turn() -> None:
    decision = decide_group(group_of(*(OUTDATED,) * 3, turn=None), NOW)
    assert not [write for write in decision.writes if isinstance(write, Delete)]
    assert decision.status is not None
    assert decision.status["updatedReplicas"] == 0


BREACHES = [
    pytest.param((FRESH, FRESH, FRESH), "False", id="all are whole"),
    pytest.param((FRESH, FRESH, {**FRESH, "breached": True}), "False", id="enough are"),
    pytest.param((FRESH, {**FRESH, "breached": True}, {**FRESH, "breached": True}), "True", id="too few are"),
    pytest.param((FRESH,), "True", id="replicas are missing"),
]


@pytest.mark.parametrize(("replicas", "expected"), BREACHES)
def test_when_a_group_has_too_few_replicas(replicas: tuple[dict[str, Any], ...], expected: str) -> None:
    status = decide_group(group_of(*replicas, turn=None), NOW).status
    assert status is not None
    found = next(each for each in status["conditions"] if each["type"] == "MinAvailableBreached")
    assert found["status"] == expected


def test_a_group_that_shrinks_loses_its_highest_indices() -> None:
    found = group_of(*(FRESH,) * 3, turn=None)
    smaller = msgspec.structs.replace(found.group.spec, replicas=1)
    decision = decide_group(dataclasses.replace(found, group=msgspec.structs.replace(found.group, spec=smaller)), NOW)
    names = [write.key.name for write in decision.writes if isinstance(write, Delete)]
    assert names == ["wl-0-g-1-b", "wl-0-g-1-c", "wl-0-g-2-b", "wl-0-g-2-c"]
