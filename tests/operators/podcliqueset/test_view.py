"""The rollout of a PodCliqueSet as it is shown: what each status comes to, the whole on a screen, and its verbs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.resources import PODS, Resource
from holdfast.kinds.grove.sets import PodCliqueSet
from holdfast.operators.podcliqueset import hashes, labels
from holdfast.operators.podcliqueset import view as rollout_gangs
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS, SETS
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.operators.podcliqueset.verbs import RESTARTED_AT, ROLLOUT
from holdfast.operators.rollouts import Already, Answer, Case, Change, Observed, Refusal
from holdfast.runtime.controllers import PAUSED
from holdfast.testing.snapshots import Snapshot
from holdfast.views import rollout_screens, rollouts, spans
from holdfast.views.rollouts import RolloutState, Standing

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOON = "2025-01-01T12:00:00Z"


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def clique(name: str, image: str = "2", *, replicas: int = 2) -> dict[str, Any]:
    containers = [{"name": "app", "image": f"registry.example.com/llm/{name}:{image}"}]
    spec = {"roleName": name, "replicas": replicas, "minAvailable": 1, "podSpec": {"containers": containers}}
    return {"name": name, "spec": spec}


def condition(type: str, status: str, reason: str, message: str = "it says so") -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOON}


READY = condition("Ready", "True", "AllReplicasAvailable")
UPDATING = condition("UpdateInProgress", "True", "RollingUpdate", "1 of 2 replicas updated; more")


def pod_clique_set(
    *, conditions: tuple[dict[str, Any], ...] = (READY,), annotations: dict[str, str] | None = None, **status: Any
) -> dict[str, Any]:
    counts = {"replicas": 2, "availableReplicas": 2, "updatedReplicas": 2, "currentGenerationHash": "new"}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {
            "name": "llm",
            "namespace": "default",
            "uid": "set",
            "generation": 3,
            "annotations": annotations or {},
        },
        "spec": {
            "replicas": 2,
            "template": {
                "cliques": [clique("web"), clique("lead", replicas=1), clique("work")],
                "podCliqueScalingGroups": [{"name": "decode", "cliqueNames": ["lead", "work"], "minAvailable": 1}],
            },
        },
        "status": {"observedGeneration": 3, **counts, "conditions": list(conditions), **status},
    }


def progress(turn: int | None = None, ended: str | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {"updateStartedAt": ago(75)}
    if turn is not None:
        shown["currentlyUpdating"] = {"replicaIndex": turn, "updateStartedAt": ago(30)}
    return shown | ({} if ended is None else {"updateEndedAt": ended})


def observed(wire: dict[str, Any], *others: tuple[Resource, dict[str, Any]]) -> Observed:
    view = Snapshot(
        (resource, {"apiVersion": resource.api_version, "kind": resource.kind, **each}) for resource, each in others
    )
    return Observed(view.put(SETS, wire), view)


def standing(wire: dict[str, Any]) -> Standing:
    return rollout_gangs.standing(observed(wire))


# What a status comes to.

ROLLOUT_STATES: dict[str, tuple[dict[str, Any], RolloutState]] = {
    "all are there": (pod_clique_set(), RolloutState.COMPLETED),
    "not reconciled yet": (pod_clique_set(observedGeneration=2), RolloutState.UNSEEN),
    "a replica is updated": (
        pod_clique_set(conditions=(READY, UPDATING), rollingUpdateProgress=progress(1)),
        RolloutState.UNDER_WAY,
    ),
    "an update has ended": (pod_clique_set(rollingUpdateProgress=progress(ended=NOON)), RolloutState.COMPLETED),
    "replicas are being made": (
        pod_clique_set(conditions=(condition("Progressing", "True", "Creating"),), availableReplicas=1),
        RolloutState.UNDER_WAY,
    ),
    "there is no room, for now": (
        pod_clique_set(conditions=(condition("Blocked", "True", "Unschedulable"),), availableReplicas=1),
        RolloutState.UNDER_WAY,
    ),
    "nothing may be replaced": (
        pod_clique_set(conditions=(condition("Blocked", "True", "NoDisruptionBudget"),)),
        RolloutState.BLOCKED,
    ),
    "it cannot be had": (
        pod_clique_set(conditions=(condition("Blocked", "True", "InvalidSpec"),)),
        RolloutState.BLOCKED,
    ),
    "it is late": (
        pod_clique_set(conditions=(condition("Blocked", "True", "ProgressDeadlineExceeded"),)),
        RolloutState.FAILED,
    ),
    "pods have to be deleted": (
        pod_clique_set(conditions=(READY, condition("UpdateInProgress", "False", "Outdated")), updatedReplicas=0),
        RolloutState.WAITING,
    ),
    "it is paused in the middle": (
        pod_clique_set(annotations={PAUSED: "true"}, rollingUpdateProgress=progress(0)),
        RolloutState.WAITING,
    ),
    "it was changed while it is paused": (
        pod_clique_set(annotations={PAUSED: "true"}, observedGeneration=2),
        RolloutState.WAITING,
    ),
    "it is paused, and there is nothing to do": (pod_clique_set(annotations={PAUSED: "true"}), RolloutState.COMPLETED),
}


@pytest.mark.parametrize("case", ROLLOUT_STATES)
def test_every_status_has_one_state(case: str) -> None:
    wire, state = ROLLOUT_STATES[case]
    assert standing(wire).state is state


STATES: dict[str, tuple[dict[str, Any], bool, int | None, int]] = {
    "nothing is updated": (pod_clique_set(), False, None, 2),
    "an update has begun": (pod_clique_set(rollingUpdateProgress=progress(), updatedReplicas=0), True, None, 0),
    "the first replica is updated": (pod_clique_set(rollingUpdateProgress=progress(0), updatedReplicas=0), True, 0, 0),
    "the second one is": (pod_clique_set(rollingUpdateProgress=progress(1), updatedReplicas=1), True, 1, 1),
    "all are": (pod_clique_set(rollingUpdateProgress=progress(ended=NOON)), False, None, 2),
}


@pytest.mark.parametrize("case", STATES)
def test_programs_are_told_whether_it_runs_where_it_is_and_how_far(case: str) -> None:
    wire, running, replica, updated = STATES[case]
    shown = rollouts.to_json(standing(wire))
    assert shown["rollingUpdateInProgress"] is running
    assert shown["currentlyUpdatingReplica"] == replica
    assert shown["updateProgress"] == {"updated": updated, "total": 2}


def test_what_keeps_it_from_going_on_is_told_before_what_it_does() -> None:
    blocked = condition("Blocked", "True", "Unschedulable", "pods cannot be scheduled: llm-0-web")
    shown = standing(pod_clique_set(conditions=(READY, UPDATING, blocked), rollingUpdateProgress=progress(0)))
    assert (shown.phase, shown.because.code) == ("Blocked", "Unschedulable")
    assert rollouts.line(shown).endswith("pods cannot be scheduled: llm-0-web (Unschedulable)")


def test_a_lowered_floor_is_shown_as_a_warning() -> None:
    lowered = condition("FloorLowered", "True", "FloorLowered", "web keeps 1 of 2 pods")
    assert standing(pod_clique_set(conditions=(READY, UPDATING, lowered))).warnings == ("web keeps 1 of 2 pods",)


# The whole.

SET = pod_clique_set(
    conditions=(READY, UPDATING), rollingUpdateProgress=progress(1), updatedReplicas=1, availableReplicas=1
)
LAYOUT = Layout(observed(SET).object.decode(PodCliqueSet))
WANTED = {name: hashes.template_hash(template) for name, template in LAYOUT.pod_templates.items()}


def owner(kind: str, uid: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": uid, "uid": uid, "controller": True}]


def marks(index: int, template: str, **more: str) -> dict[str, str]:
    return labels.of_replica("llm", index) | {labels.TEMPLATE: template} | more


def made_clique(index: int, template: str, *, copy: int | None = None, ready: int, wait: str = "") -> dict[str, Any]:
    name = f"llm-{index}-{template}" if copy is None else f"llm-{index}-decode-{copy}-{template}"
    place = {} if copy is None else {labels.GROUP: f"llm-{index}-decode", labels.GROUP_INDEX: str(copy)}
    doing = [condition("UpdateInProgress", "True", "WaitingForReady", wait)] if wait else []
    size = next(each.spec.replicas for each in LAYOUT.cliques if each.name == template)
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "generation": 1,
            "labels": marks(index, template, **place, **{labels.TEMPLATE_HASH: WANTED[template]}),
            "ownerReferences": owner("PodCliqueSet", "set")
            if copy is None
            else owner("PodCliqueScalingGroup", f"llm-{index}-decode"),
        },
        "spec": {"replicas": size, "minAvailable": 1},
        "status": {
            "observedGeneration": 1,
            "replicas": size,
            "readyReplicas": ready,
            "updatedReplicas": size,
            "currentPodTemplateHash": WANTED[template],
            "currentPodCliqueSetGenerationHash": LAYOUT.generation_hash,
            "conditions": doing,
        },
    }


def made_group(index: int, *, available: int) -> dict[str, Any]:
    name = f"llm-{index}-decode"
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "generation": 1,
            "labels": marks(index, "decode"),
            "ownerReferences": owner("PodCliqueSet", "set"),
        },
        "spec": {"replicas": 1, "minAvailable": 1, "cliqueNames": ["lead", "work"]},
        "status": {
            "observedGeneration": 1,
            "availableReplicas": available,
            "currentPodCliqueSetGenerationHash": LAYOUT.generation_hash,
        },
    }


def pod(
    parent: str, suffix: str, image: str, *, ready: bool = True, age: int = 60, old: bool = False
) -> dict[str, Any]:
    index, template = int(parent.split("-")[1]), parent.rpartition("-")[2]
    place = {labels.GROUP_INDEX: parent.split("-")[3]} if "decode" in parent else {}
    conditions = [condition("Ready", "True" if ready else "False", "")]
    container = {"name": "app", "ready": ready, "state": {"running": {"startedAt": ago(age)}}}
    return {
        "metadata": {
            "name": f"{parent}-{suffix}",
            "namespace": "default",
            "uid": f"{parent}-{suffix}",
            "creationTimestamp": ago(age),
            "labels": marks(index, template, **place, **{labels.TEMPLATE_HASH: "old" if old else WANTED[template]}),
            "ownerReferences": owner("PodClique", parent),
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": f"registry.example.com/llm/{image}"}]},
        "status": {
            "phase": "Running",
            "conditions": [each | {"lastTransitionTime": ago(age)} for each in conditions],
            "containerStatuses": [container],
        },
    }


WHOLE = observed(
    SET,
    *((CLIQUES, made_clique(0, name, ready=2)) for name in ("web",)),
    (CLIQUES, made_clique(1, "web", ready=1, wait="pod x was taken down and what replaces it is not ready")),
    *((GROUPS, made_group(index, available=1 - index)) for index in (0, 1)),
    *((CLIQUES, made_clique(index, name, copy=0, ready=2)) for index in (0, 1) for name in ("lead", "work")),
    *((PODS, pod("llm-0-web", suffix, "web:2")) for suffix in ("aaaaa", "bbbbb")),
    (PODS, pod("llm-0-decode-0-lead", "ccccc", "lead:2")),
    *((PODS, pod("llm-0-decode-0-work", suffix, "work:2")) for suffix in ("ddddd", "eeeee")),
    (PODS, pod("llm-1-web", "fffff", "web:2", ready=False, age=4)),
    (PODS, pod("llm-1-web", "ggggg", "web:1", age=4_000, old=True)),
    (PODS, pod("llm-1-decode-0-lead", "hhhhh", "lead:2", ready=False, age=5)),
)


def shown(width: int, height: int | None = None) -> str:
    tree = rollout_gangs.tree(WHOLE, NOW)
    lines = rollout_screens.screen(tree, width=width, height=height, called="podcliqueset/llm")
    return "\n" + spans.text(lines) + "\n"


def test_a_screen_of_80_columns() -> None:
    assert (
        shown(80)
        == """
 … llm  RollingRecreate                                         Updating  1m15s
   revision new   1 of 2 replicas updated   replica 1 is being updated

 llm-1-web     ██████████████████████┃░░░░░░░░░░░░░░░░░░░░░  1 of 2   floor 1 ┃
 llm-1-decode  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░┃  0 of 1   floor 1 ┃
 llm-0-web     ██████████████████████┃█████████████████████  2 of 2   floor 1 ┃
 llm-0-decode  ███████████████████████████████████████████┃  1 of 1   floor 1 ┃
 updated       ██████████████████████░░░░░░░░░░░░░░░░░░░░░░  5 of 10 available

 … WaitingForReady
   llm-1-web: pod x was taken down and what replaces it is not ready

 ▾ replica 0  available                                 ●●●●●  5 of 5 available
   ▾ web  floor 1  …/web:2                                 ●●  2 of 2 available
     ● …aaaaa       1/1  node-1    1m
     ● …bbbbb       1/1  node-1    1m
   ▾ decode 0                                             ●●●  3 of 3 available
     ● …lead-ccccc  1/1  node-1    1m
     ● …work-ddddd  1/1  node-1    1m
     ● …work-eeeee  1/1  node-1    1m
 ▾ replica 1  updating  not available                     ○○■  1 of 3 available
     it lacks llm-1-decode
   ▾ web  updating  floor 1  …/web:1 → :2                  ○■  1 of 2 available
       pod x was taken down and what replaces it is not ready
     ○ …fffff       0/1  node-1    4s  runs, and its readiness probe has not s…
     ■ …ggggg       1/1  node-1  1h6m
   ▾ decode 0                                               ○  0 of 1 available
     ○ …lead-hhhhh  0/1  node-1    5s  runs, and its readiness probe has not s…
"""
    )


def test_on_a_low_screen_the_replica_that_is_updated_is_the_one_that_is_shown() -> None:
    text = shown(80, height=22)
    assert "▸ replica 0  available" in text
    assert "▾ replica 1  updating" in text
    assert "runs, and its readiness probe has not s…" in text
    assert len(text.strip("\n").splitlines()) < 22


def test_a_set_without_any_objects_is_shown_all_the_same() -> None:
    tree = rollout_gangs.tree(observed(pod_clique_set()), NOW)
    assert [branch.name for branch in tree.branches] == ["replica 0", "replica 1"]
    assert tree.branches[0].why.startswith("it lacks web")


def test_pods_of_a_replica_that_is_no_longer_wanted_are_shown_as_leaving() -> None:
    stray = pod("llm-7-web", "zzzzz", "web:2")
    tree = rollout_gangs.tree(observed(pod_clique_set(), (PODS, stray)), NOW)
    assert [(branch.name, branch.marks) for branch in tree.branches][-1] == ("replica 7", ("leaving",))


# The verbs.


def answer(verb: str, wire: dict[str, Any]) -> Answer:
    return ROLLOUT.answer(verb, Case(object=observed(wire).object, now=NOW))


PAUSES: dict[str, Any] = {"annotations": {PAUSED: "true"}}

CHANGES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "pause": (
        "pause",
        SET,
        {"metadata": {"annotations": {PAUSED: "true"}}},
        "the current replica is finished",
    ),
    "pause what is complete": (
        "pause",
        pod_clique_set(),
        {"metadata": {"annotations": {PAUSED: "true"}}},
        "nothing is under way",
    ),
    "resume": ("resume", pod_clique_set(**PAUSES), {"metadata": {"annotations": {PAUSED: None}}}, ""),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_verb_sets_what_any_client_could_set(case: str) -> None:
    verb, wire, patch, note = CHANGES[case]
    given = answer(verb, wire)
    assert isinstance(given, Change)
    assert given.patch == patch
    assert note in " ".join(given.notes)


def test_a_restart_makes_another_template_of_every_clique_and_changes_nothing_else() -> None:
    given = answer("restart", pod_clique_set(**PAUSES))
    assert isinstance(given, Change)
    cliques = given.patch["spec"]["template"]["cliques"]
    assert [each.pop("annotations") for each in cliques] == [{RESTARTED_AT: NOON}] * 3
    assert cliques == pod_clique_set()["spec"]["template"]["cliques"]
    assert given.notes == ("it is paused, so nothing happens before it is resumed",)


def test_a_restart_of_what_is_replaced_by_hand_says_so() -> None:
    wire = pod_clique_set()
    wire["spec"]["updateStrategy"] = {"type": "OnDelete"}
    given = answer("restart", wire)
    assert isinstance(given, Change)
    assert "when you delete them" in given.notes[0]


def test_a_verb_whose_wish_is_fulfilled_changes_nothing() -> None:
    wire = pod_clique_set(**PAUSES)
    for each in wire["spec"]["template"]["cliques"]:
        each["annotations"] = {RESTARTED_AT: NOON}
    assert isinstance(answer("pause", wire), Already)
    assert isinstance(answer("restart", wire), Already)
    assert isinstance(answer("resume", pod_clique_set()), Already)


@pytest.mark.parametrize("verb", ["promote", "abort", "retry", "undo"])
def test_what_a_set_cannot_do_is_refused_with_a_way(verb: str) -> None:
    given = answer(verb, SET)
    assert isinstance(given, Refusal)
    assert given.hint
