"""Which changes of others are worth a reconciliation: those that are read, so that statuses cost no passes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.operators.podcliqueset.worlds import CLIQUES, SETS, at, clique, pcs, pod, the_clique, the_set

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, Resource
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset.cliques.observe import is_urgent as is_pod_urgent
from holdfast.operators.podcliqueset.cliques.render import GATE
from holdfast.operators.podcliqueset.gangs.observe import CLIQUES_OF_GANG, PODS_OF_GANG, matters
from holdfast.operators.podcliqueset.part_status import is_urgent
from holdfast.operators.podcliqueset.resources import GANGS
from holdfast.operators.podcliqueset.turns import on_changed_set
from holdfast.runtime.controllers import Watch
from holdfast.testing.snapshots import Snapshot

Wire = dict[str, Any]
SET = the_set(pcs("web", clique("a", 3)), turn=0, observedGeneration=1, replicas=1)
CLIQUE = the_clique(SET, status={"replicas": 3, "scheduledReplicas": 1})
CONDITION = {"type": "Ready", "reason": "Pending", "message": "", "lastTransitionTime": at(0)}
POD = pod("a-0", CLIQUE, ready=False)


def changed(before: Wire, **changes: Any) -> Wire:
    """An object with other values of some fields, named by paths with underscores."""
    after = deepcopy(before)
    for path, value in changes.items():
        *parents, last = path.split("__")
        at_ = after
        for name in parents:
            at_ = at_.setdefault(name, {})
        at_[last] = value
    return after


def is_worth_a_pass(watch: Watch, resource: Resource, before: Wire, **changes: Any) -> bool:
    """Whether a change of some fields is worth a pass."""
    assert watch.matters is not None
    return watch.matters(Object.of(resource, before), Object.of(resource, changed(before, **changes)))


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


def test_a_gang_follows_the_pods_of_its_cliques_until_they_or_the_cliques_are_deleted() -> None:
    here, going = Object.of(PODS, POD), Object.of(PODS, changed(POD, metadata__deletionTimestamp=at(0)))
    view = Snapshot([(CLIQUES, CLIQUE)])
    assert list(PODS_OF_GANG.keys(here, view)) == [Key("default", "web-0")]
    assert list(PODS_OF_GANG.keys(going, view)) == []
    assert list(PODS_OF_GANG.keys(here, Snapshot())) == []
    assert list(PODS_OF_GANG.keys(here, Snapshot([(CLIQUES, changed(CLIQUE, metadata__uid="another"))]))) == []


def test_a_gang_lists_new_pods_at_once_when_enough_exist_or_one_is_scheduled() -> None:
    def is_urgent_among(*others: Wire) -> bool:
        placed = [(PODS, each) for each in (fresh, *others)]
        assert PODS_OF_GANG.urgent is not None
        return PODS_OF_GANG.urgent(None, Object.of(PODS, fresh), Snapshot([(CLIQUES, CLIQUE), *placed]))

    fresh, second, third = (pod(name, CLIQUE, ready=False, node="") for name in ("a-0", "a-1", "a-2"))
    assert not is_urgent_among()
    assert not is_urgent_among(second)
    assert is_urgent_among(second, third)
    assert is_urgent_among(pod("a-1", CLIQUE))


def test_a_gang_reports_soon_that_a_pod_is_scheduled_or_deleted() -> None:
    view, unscheduled = Snapshot([(CLIQUES, CLIQUE)]), Object.of(PODS, pod("a-0", CLIQUE, ready=False, node=""))
    assert PODS_OF_GANG.urgent is not None
    assert not PODS_OF_GANG.urgent(unscheduled, Object.of(PODS, pod("a-0", CLIQUE, ready=False)), view)
    assert not PODS_OF_GANG.urgent(unscheduled, None, view)
    orphan = Object.of(PODS, changed(POD, metadata__ownerReferences=[]))
    assert PODS_OF_GANG.urgent(orphan, Object.of(PODS, POD), Snapshot([(CLIQUES, CLIQUE), (PODS, POD)]))


@pytest.mark.parametrize(
    ("changes", "worth"),
    [
        ({"status__phase": "Running"}, False),
        ({"status__conditions": [{**CONDITION, "type": "Initialized", "status": "False"}]}, False),
        ({"status__conditions": [{**CONDITION, "status": "True"}]}, True),
        ({"status__phase": ""}, True),
        ({"metadata__generation": 2}, True),
        ({"metadata__labels": {"another": "label"}}, True),
        ({"metadata__deletionTimestamp": at(0)}, True),
    ],
)
def test_a_gang_is_not_looked_at_for_what_is_reported_of_it(changes: Wire, worth: bool) -> None:
    reported = {"phase": "Pending", "conditions": [{**CONDITION, "type": "Initialized", "status": "True"}]}
    before: Wire = {"metadata": {"name": "web-0", "namespace": "default", "generation": 1}, "status": reported}
    after = changed(before, **changes)
    assert matters(Object.of(GANGS, before), Object.of(GANGS, after)) is worth


@pytest.mark.parametrize(
    ("changes", "urgent"),
    [
        ({"status__scheduledReplicas": 2}, False),
        ({"status__readyReplicas": 2}, False),
        ({"status__conditions": [{**CONDITION, "type": "PodsReady", "status": "False", "reason": "Starting"}]}, False),
        ({"status__readyReplicas": 3}, True),
        ({"status__scheduledReplicas": 0}, True),
        ({"status__currentPodTemplateHash": "another"}, True),
        ({"status__conditions": [{**CONDITION, "type": "MinAvailableBreached", "status": "True"}]}, True),
        ({"metadata__generation": 2}, True),
        ({"metadata__deletionTimestamp": at(0)}, True),
    ],
)
def test_an_owner_looks_at_once_at_what_it_decides_by_and_soon_at_what_it_reports(changes: Wire, urgent: bool) -> None:
    before, after = Object.of(CLIQUES, CLIQUE), Object.of(CLIQUES, changed(CLIQUE, **changes))
    assert is_urgent(before, after, Snapshot()) is urgent
    assert is_urgent(None, after, Snapshot())
    assert is_urgent(before, None, Snapshot())


def test_pods_that_an_earlier_clique_of_the_name_left_are_not_urgent() -> None:
    another = changed(CLIQUE, metadata__uid="another")
    left = Object.of(PODS, POD)
    assert is_pod_urgent(left, None, Snapshot([(CLIQUES, CLIQUE)]))
    assert not is_pod_urgent(left, None, Snapshot([(CLIQUES, another)]))
