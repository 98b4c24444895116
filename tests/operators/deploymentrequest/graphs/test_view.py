"""The rollout of a graph as it is shown: what each status comes to, its components as a tree, and its verbs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.operators.deploymentrequest.graphs.stories import GRAPHS, component, graph

from holdfast.client.resources import PODS, Resource
from holdfast.operators.deploymentrequest.graphs import view
from holdfast.operators.deploymentrequest.graphs.resources import CLIQUES
from holdfast.operators.deploymentrequest.graphs.verbs import ROLLOUT
from holdfast.operators.rollouts import Already, Answer, Case, Change, Observed, Refusal
from holdfast.runtime.controllers import PAUSED
from holdfast.testing.snapshots import Snapshot
from holdfast.views import rollout_screens, spans
from holdfast.views.rollouts import RolloutState

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOON = "2025-01-01T12:00:00Z"

Wire = dict[str, Any]


def stored(annotations: dict[str, str] | None = None, restart: str = "", **status: Any) -> Wire:
    manifest = graph(component("Frontend", "frontend", 1), component("decode", "decode", 2, multinode={"nodeCount": 2}))
    if restart:
        manifest["spec"]["restart"] = {"id": restart}
    counts = {
        "Frontend": {"componentKind": "PodClique", "availableReplicas": 1, "updatedReplicas": 1, "replicas": 1},
        "decode": {
            "componentKind": "PodCliqueScalingGroup",
            "availableReplicas": 2,
            "updatedReplicas": 1,
            "replicas": 2,
        },
    }
    reported = {"observedGeneration": 2, "state": "successful", "components": counts, **status}
    reported.setdefault("conditions", [ready("True", "all_resources_are_ready", "all are ready")])
    return {
        "apiVersion": GRAPHS.api_version,
        "kind": GRAPHS.kind,
        "metadata": {
            "name": "chat",
            "namespace": "default",
            "uid": "g",
            "generation": 2,
            "annotations": annotations or {},
        },
        "spec": manifest["spec"],
        "status": reported,
    }


def ready(status: str, reason: str, message: str) -> Wire:
    return {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": NOON}


def marks(name: str) -> dict[str, str]:
    return {"nvidia.com/dynamo-graph-deployment-name": "chat", "nvidia.com/dynamo-component": name}


def clique(name: str, part: str) -> tuple[Resource, Wire]:
    labels = marks(name) | {"grove.io/pod-template-hash": "new"}
    return CLIQUES, {"metadata": {"name": part, "namespace": "default", "labels": labels}}


def pod(name: str, part: str, number: int, *, template: str = "new", **labels: str) -> tuple[Resource, Wire]:
    every = marks(name) | {"grove.io/podclique": part, "grove.io/pod-template-hash": template} | labels
    metadata = {"name": f"{part}-{number}", "namespace": "default", "labels": every, "creationTimestamp": NOON}
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": NOON}
    status = {"phase": "Running", "podIP": f"127.8.0.{number}", "conditions": [condition]}
    container = {"name": "main", "image": "engine:1" if template == "new" else "engine:0"}
    return PODS, {"metadata": metadata, "spec": {"containers": [container]}, "status": status}


def observed(wire: Wire, *others: tuple[Resource, Wire]) -> Observed:
    kinds = ((each, {"apiVersion": each.api_version, "kind": each.kind, **obj}) for each, obj in others)
    snapshot = Snapshot(kinds)
    return Observed(snapshot.put(GRAPHS, wire), snapshot)


GROUP_INDEX = "grove.io/podcliquescalinggroup-replica-index"
PARTS = (
    clique("Frontend", "chat-0-frontend"),
    clique("decode", "chat-0-decode-0-decode-ldr"),
    clique("decode", "chat-0-decode-1-decode-ldr"),
    pod("Frontend", "chat-0-frontend", 1),
    pod("decode", "chat-0-decode-0-decode-ldr", 2, **{GROUP_INDEX: "0"}),
    pod("decode", "chat-0-decode-1-decode-ldr", 3, template="old", **{GROUP_INDEX: "1"}),
)

STATES: dict[str, tuple[Wire, RolloutState]] = {
    "all are ready": (stored(), RolloutState.COMPLETED),
    "not reconciled yet": (stored(observedGeneration=1), RolloutState.UNSEEN),
    "pods are starting": (stored(state="pending"), RolloutState.UNDER_WAY),
    "something has to be changed": (stored(state="failed"), RolloutState.BLOCKED),
    "it is paused in the middle": (stored({PAUSED: "true"}, state="pending"), RolloutState.WAITING),
}


@pytest.mark.parametrize("case", STATES)
def test_every_status_has_one_state(case: str) -> None:
    wire, state = STATES[case]
    assert view.standing(observed(wire)).state is state


def test_the_tree_has_components_with_their_replicas_and_pods() -> None:
    rolling = {"phase": "InProgress", "startTime": NOON, "updatedComponents": ["Frontend"]}
    wire = stored(
        state="pending",
        rollingUpdate=rolling,
        conditions=[ready("False", "rolling_update_in_progress", "decode: 2 of 2 replicas ready, updating")],
    )
    tree = view.tree(observed(wire, *PARTS), NOW)
    assert tree.size == 1 + 2 * 2
    frontend, decode = tree.branches
    assert [leaf.name for leaf in frontend.leaves] == ["chat-0-frontend-1"]
    assert [getattr(each, "name", "") for each in decode.children] == ["replica 0", "replica 1"]
    assert decode.images == ("engine:0", "engine:1")
    text = spans.text(rollout_screens.screen(tree, width=120, height=None, called="dgd/chat"))
    for expected in ("Frontend", "decode", "replica 1", "1 of 2 components updated", "http://127.8.0.1:8000"):
        assert expected in text


def test_programs_get_the_components_and_the_endpoints() -> None:
    more = view.standing(observed(stored(), *PARTS)).more
    assert more["endpoints"] == ["http://127.8.0.1:8000"]
    assert more["components"]["decode"]["availableReplicas"] == 2


def test_a_graph_is_shown_in_one_line() -> None:
    line = view.headline(stored(state="pending"))
    assert (line.phase, line.at_rest) == ("Pending", False)
    assert view.headline(stored()).at_rest


def answer(verb: str, wire: Wire) -> Answer:
    return ROLLOUT.answer(verb, Case(object=observed(wire).object, now=NOW))


def test_restart_sets_another_id_once_a_second() -> None:
    made = answer("restart", stored())
    assert isinstance(made, Change)
    assert made.patch == {"spec": {"restart": {"id": NOON}}}
    assert isinstance(answer("restart", stored(restart=NOON)), Already)


def test_pause_and_resume_are_an_annotation() -> None:
    paused = answer("pause", stored())
    assert isinstance(paused, Change)
    assert paused.patch == {"metadata": {"annotations": {PAUSED: "true"}}}
    assert isinstance(answer("resume", stored()), Already)
    resumed = answer("resume", stored({PAUSED: "true"}))
    assert isinstance(resumed, Change)
    assert resumed.patch == {"metadata": {"annotations": {PAUSED: None}}}


@pytest.mark.parametrize("verb", ["promote", "abort", "retry", "undo", "history", "plan"])
def test_what_a_graph_does_not_have_is_refused_with_another_way(verb: str) -> None:
    refusal = ROLLOUT.unsupported[verb]
    assert isinstance(refusal, Refusal)
    assert refusal.hint
