"""PodCliques, decided by tables: how many pods, which go, how an update goes on, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.operators.podcliqueset.worlds import (
    CLIQUES,
    at,
    clique,
    created,
    creations,
    decided,
    deleted,
    pcs,
    pod,
    the_clique,
    the_set,
    touched,
)

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset.cliques.observe import observe
from holdfast.operators.podcliqueset.cliques.pods import Pod, expendable, free_indices
from holdfast.testing.snapshots import Snapshot

THREE = pcs("wl", clique("a", 3, minimum=2))


def situation(*, turn: int | None = None, progress: dict[str, Any] | None = None, size: int = 3, **more: Any) -> Any:
    made = the_set(THREE, turn=turn, **more)
    part = the_clique(made, replicas=size)
    if progress is not None:
        base = {
            "updateStartedAt": at(1),
            "podTemplateHash": part["metadata"]["labels"]["grove.io/pod-template-hash"],
            "podCliqueSetGenerationHash": made["status"]["currentGenerationHash"],
        }
        part["status"] = {"updateProgress": base | progress}
    return made, part


def pods_of(part: dict[str, Any], each: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pods a, b, c and d, as each is described."""
    return [pod("abcd"[index], part, index=index, **how) for index, how in enumerate(each)]


def condition(decision: Any, type: str) -> tuple[str, str]:
    found = next(each for each in decision.status["conditions"] if each["type"] == type)
    return found["status"], found["reason"]


# --- size


def test_missing_pods_are_made_with_the_smallest_free_indices() -> None:
    made, part = situation()
    decision = decided(made, part, [pod("x", part, index=1)])
    made_pods = creations(decision)
    assert [each["metadata"]["labels"]["grove.io/podclique-pod-index"] for each in made_pods] == ["0", "2"]
    assert [each["spec"]["hostname"] for each in made_pods] == ["wl-0-a-0", "wl-0-a-2"]


def test_818_holes_among_the_indices_are_filled_first() -> None:
    _, part = situation()
    pods = [Pod.of(Object.of(PODS, pod(name, part, index=index))) for name, index in (("x", 0), ("y", 3))]
    assert free_indices(tuple(pods), 3) == (1, 2, 4)


def test_pods_that_have_ended_are_replaced() -> None:
    made, part = situation()
    pods = [pod("a", part), pod("b", part, index=1), pod("c", part, index=2, phase="Failed")]
    first = decided(made, part, pods)
    assert (deleted(first), created(first)) == (["c"], 0)
    then = decided(made, part, pods[:2])
    assert (deleted(then), created(then)) == ([], 1)


def test_401_a_pod_that_does_not_go_is_not_waited_for() -> None:
    made, part = situation(size=1)
    stuck = pod("a", part, deletionTimestamp=at(20), finalizers=["example.com/stuck"])
    assert created(decided(made, part, [stuck])) == 1


def test_758_those_that_are_missed_least_go_first() -> None:
    _, part = situation(size=0)
    order = [
        pod("without a node", part, node="", ready=False),
        pod("pending", part, phase="Pending", ready=False),
        pod("not ready", part, ready=False),
        pod("outdated", part, outdated=True),
        pod("newest", part, created=1),
        pod("oldest", part, created=50),
    ]
    wanted = part["metadata"]["labels"]["grove.io/pod-template-hash"]
    read = (Pod.of(Object.of(PODS, each)) for each in reversed(order))
    found = sorted(read, key=lambda each: expendable(each, wanted=wanted))
    assert [each.name for each in found] == [each["metadata"]["name"] for each in order]


# --- updates


def test_nothing_is_replaced_before_it_is_the_replicas_turn() -> None:
    made, part = situation()
    decision = decided(made, part, [pod(name, part, index=index, outdated=True) for index, name in enumerate("abc")])
    assert not touched(decision)
    assert decision.status["updatedReplicas"] == 0
    assert condition(decision, "UpdateInProgress") == ("False", "Outdated")


def test_an_update_is_recorded_before_it_stops_the_oldest_ready_pod() -> None:
    made, part = situation(turn=0)
    pods = [pod(name, part, index=index, outdated=True, created=10 + index) for index, name in enumerate("abc")]
    begun = decided(made, part, pods)
    assert not touched(begun)
    assert begun.status["updateProgress"]["updateStartedAt"] == at(0)
    part["status"] = dict(begun.status)
    first = decided(made, part, pods)
    assert deleted(first) == ["c"]
    assert first.status["updateProgress"]["readyPodsSelectedToUpdate"] == {"current": "c"}
    assert condition(first, "UpdateInProgress") == ("True", "StoppingOld")
    part["status"] = dict(first.status)
    then = decided(made, part, [*pods[:2], pod("d", part, index=2, created=1)])
    assert deleted(then) == ["b"]
    assert then.status["updateProgress"]["readyPodsSelectedToUpdate"] == {"current": "b", "completed": ["c"]}


def test_what_the_status_names_as_selected_decides_nothing() -> None:
    made, part = situation(turn=0, progress={"readyPodsSelectedToUpdate": {"current": "a"}})
    pods = [pod(name, part, index=index, outdated=True, created=10 + index) for index, name in enumerate("abc")]
    assert deleted(decided(made, part, pods)) == ["c"]


@pytest.mark.parametrize(
    ("pods", "gone"),
    [
        pytest.param([{"node": "", "ready": False}] * 3, ["a", "b", "c"], id="without nodes: all at once"),
        pytest.param([{"ready": False}] * 3, ["a"], id="running and not ready: a part of them"),
        pytest.param([{"ready": False}, {}, {}], ["a"], id="what is not ready before what is"),
        pytest.param([{"crashed": True}] * 3, ["a"], id="697 ready ones that crashed once are ready ones"),
    ],
)
def test_which_outdated_pods_are_stopped(pods: list[dict[str, Any]], gone: list[str]) -> None:
    made, part = situation(turn=0, progress={})
    outdated = pods_of(part, ({"outdated": True, **each} for each in pods))
    assert deleted(decided(made, part, outdated)) == gone


def test_765_ready_pods_are_never_replaced_together_whatever_they_went_through() -> None:
    made, part = situation(turn=0, progress={})
    pods = [pod(name, part, index=index, outdated=True, crashed=True) for index, name in enumerate("abc")]
    for _ in range(3):
        decision = decided(made, part, pods)
        assert len(deleted(decision)) <= 1
        part["status"] = dict(decision.status)


WAITS = [
    pytest.param(
        [{"outdated": True}, {"outdated": True}, {"ready": False}], "WaitingForReady", id="the replacement is not ready"
    ),
    pytest.param(
        [{"outdated": True}, {}, {"ready": False}],
        "WaitingForReady",
        id="a pod that was new before does not stand for the replacement",
    ),
    pytest.param(
        [{"outdated": True}, {"ready": False}, {"ready": False}],
        "WaitingForReady",
        id="fewer than the minimum are ready",
    ),
    pytest.param(
        [{"outdated": True}, {"outdated": True}, {"outdated": True, "ready": False}, {"deletionTimestamp": at(0)}],
        "WaitingForTermination",
        id="as few are ready as the floor needs, and one is terminating",
    ),
    pytest.param([{}, {}, {"ready": False}], "WaitingForReady", id="786 it ends when replacements are ready"),
]


@pytest.mark.parametrize(("pods", "reason"), WAITS)
def test_what_an_update_waits_for(pods: list[dict[str, Any]], reason: str) -> None:
    made, part = situation(turn=0, progress={})
    decision = decided(made, part, pods_of(part, pods))
    assert not touched(decision)
    assert condition(decision, "UpdateInProgress") == ("True", reason)
    assert "updateEndedAt" not in decision.status["updateProgress"]
    assert condition(decision, "MinAvailableBreached") == ("Unknown", "UpdateInProgress")
    assert "currentPodTemplateHash" not in decision.status


def test_an_update_ends_when_all_pods_are_new_and_ready() -> None:
    made, part = situation(turn=0, progress={"readyPodsSelectedToUpdate": {"current": "gone", "completed": ["x", "y"]}})
    decision = decided(made, part, [pod(name, part, index=index) for index, name in enumerate("abc")])
    assert decision.status["updateProgress"]["updateEndedAt"] == at(0)
    assert decision.status["currentPodCliqueSetGenerationHash"] == made["status"]["currentGenerationHash"]


def test_what_finds_no_place_beyond_the_minimum_does_not_keep_an_update_from_ending() -> None:
    made, part = situation(turn=0, progress={})
    pods = [pod("a", part), pod("b", part, index=1), pod("c", part, index=2, node="", ready=False, unschedulable=True)]
    assert decided(made, part, pods).status["updateProgress"]["updateEndedAt"] == at(0)


def test_a_clique_whose_template_did_not_change_takes_the_new_generation_at_once() -> None:
    made, part = situation(generation="another")
    part["status"] = {"currentPodCliqueSetGenerationHash": "before"}
    decision = decided(made, part, [pod(name, part, index=index) for index, name in enumerate("abc")])
    assert decision.status["currentPodCliqueSetGenerationHash"] == "another"
    assert not touched(decision)


# --- conditions


BREACHES = [
    pytest.param([{}, {}, {}], ("False", "SufficientReadyPods"), id="all are ready"),
    pytest.param([{}, {}, {"ready": False}], ("False", "SufficientReadyPods"), id="enough are ready"),
    pytest.param(
        [{}, {"node": "", "ready": False}], ("True", "ScheduledReplicasBelowMinAvailable"), id="614 too few have nodes"
    ),
    pytest.param([], ("True", "ScheduledReplicasBelowMinAvailable"), id="614 none has a node"),
    pytest.param(
        [{}, {"ready": False}, {"ready": False}], ("True", "InsufficientReadyPods"), id="started and not ready"
    ),
    pytest.param(
        [{}, {"ready": False, "crashed": True, "started": False}, {"ready": False, "crashed": True, "started": False}],
        ("True", "InsufficientReadyPods"),
        id="277 crashed and not ready",
    ),
    pytest.param([{}, {"ready": False, "started": False}], ("False", "SufficientReadyPods"), id="still starting"),
    pytest.param([{}, {"crashed": True}], ("False", "SufficientReadyPods"), id="crashed once and ready again"),
]


@pytest.mark.parametrize(("pods", "expected"), BREACHES)
def test_when_a_clique_has_too_few_pods(pods: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    made, part = situation()
    decision = decided(made, part, pods_of(part, pods))
    assert condition(decision, "MinAvailableBreached") == expected
    assert ("minAvailableBreachedSince" in decision.status) == (expected[0] == "True")


def test_terminating_pods_are_counted_nowhere() -> None:
    made, part = situation()
    decision = decided(made, part, [pod("a", part), pod("b", part, index=1, deletionTimestamp=at(0))])
    counts = ("replicas", "readyReplicas", "scheduledReplicas", "updatedReplicas")
    assert {decision.status[name] for name in counts} == {1}


def test_losing_every_pod_on_nodes_is_told() -> None:
    made, part = situation()
    part["status"] = {"scheduledReplicas": 2}
    assert [notice.reason for notice in decided(made, part).notices] == ["AllScheduledReplicasLost"]


def test_errors_are_told_and_forgotten_after_a_pass_that_went_well() -> None:
    made, part = situation()
    part["status"] = {"lastErrors": [{"code": "Forbidden", "description": "no", "observedAt": at(5)}]}
    assert "lastErrors" not in decided(made, part).status


def test_a_clique_whose_set_is_gone_is_left_to_the_garbage_collector() -> None:
    _, part = situation()
    assert observe(Snapshot([(CLIQUES, part)]), Key.of(part)) is None
