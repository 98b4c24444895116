"""Which changes of others are worth a reconciliation: those that are read, so that statuses cost no passes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.operators.podcliqueset.worlds import CLIQUES, SETS, at, clique, pcs, pod, the_clique, the_set

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, Resource
from holdfast.operators.podcliqueset.cliques.render import GATE
from holdfast.operators.podcliqueset.gangs.observe import CLIQUES_OF_GANG, PODS_OF_GANG
from holdfast.operators.podcliqueset.turns import on_changed_set
from holdfast.runtime.controllers import Watch

Wire = dict[str, Any]
SET = the_set(pcs("web", clique("a", 3)), turn=0, observedGeneration=1, replicas=1)
CLIQUE = the_clique(SET, status={"replicas": 3, "scheduledReplicas": 1})
CONDITION = {"type": "Ready", "reason": "Pending", "message": "", "lastTransitionTime": at(0)}
POD = pod("a-0", CLIQUE, ready=False)


def is_worth_a_pass(watch: Watch, resource: Resource, before: Wire, **changes: Any) -> bool:
    """Whether a change of some fields, named by paths with underscores, is worth a pass."""
    after = deepcopy(before)
    for path, value in changes.items():
        *parents, last = path.split("__")
        at_ = after
        for name in parents:
            at_ = at_.setdefault(name, {})
        at_[last] = value
    assert watch.matters is not None
    return watch.matters(Object.of(resource, before), Object.of(resource, after))


@pytest.mark.parametrize(
    ("changes", "worth"),
    [
        ({"status__readyReplicas": 1}, False),
        ({"status__conditions": [{**CONDITION, "status": "False"}]}, False),
        ({"status__rollingUpdateProgress__updatedPodCliques": ["a"]}, False),
        ({"status__rollingUpdateProgress__currentlyUpdating": {"replicaIndex": 1, "updateStartedAt": at(1)}}, True),
        ({"status__rollingUpdateProgress__updateEndedAt": at(0)}, True),
        ({"status__currentGenerationHash": "another"}, True),
        ({"metadata__generation": 2}, True),
        ({"metadata__annotations": {"holdfast.dev/paused": "true"}}, True),
        ({"metadata__deletionTimestamp": at(0)}, True),
    ],
)
def test_parts_follow_the_spec_and_the_turn_of_their_set_and_not_its_counts(changes: Wire, worth: bool) -> None:
    assert is_worth_a_pass(on_changed_set(CLIQUES), SETS, SET, **changes) is worth


@pytest.mark.parametrize(
    ("changes", "worth"),
    [
        ({"status__conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(0)}]}, False),
        ({"status__podIP": "10.0.0.1"}, False),
        ({"status__phase": "Failed"}, True),
        ({"spec__nodeName": ""}, True),
        ({"spec__schedulingGates": [{"name": GATE}]}, True),
        ({"metadata__deletionTimestamp": at(0)}, True),
        ({"metadata__labels": {}}, True),
        ({"metadata__ownerReferences": []}, True),
    ],
)
def test_a_gang_follows_which_pods_it_has_and_not_whether_they_are_ready(changes: Wire, worth: bool) -> None:
    assert is_worth_a_pass(PODS_OF_GANG, PODS, POD, **changes) is worth


@pytest.mark.parametrize(
    ("changes", "worth"),
    [
        ({"status__readyReplicas": 3}, False),
        ({"status__scheduledReplicas": 2}, False),
        ({"status__scheduledReplicas": 3}, True),
        ({"metadata__generation": 2}, True),
        ({"metadata__deletionTimestamp": at(0)}, True),
    ],
)
def test_gangs_follow_whether_enough_pods_of_a_clique_are_scheduled(changes: Wire, worth: bool) -> None:
    assert is_worth_a_pass(CLIQUES_OF_GANG, CLIQUES, CLIQUE, **changes) is worth
