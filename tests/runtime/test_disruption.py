"""Disruption budgets of an operator and of others, cordoned nodes, and how pods are stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import BUDGETS, NODES, PODS, REPLICA_SETS, SERVICES, STATEFUL_SETS, Resource
from holdfast.kernel.limits import Limits, resolve
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create, Delete, Evict, Patch, Write
from holdfast.runtime.disruption import (
    PODS_BY_NODE,
    Budget,
    budget_writes,
    cordoned,
    foreign_budgets,
    in_namespace_of_budget,
    is_reported,
    on_changed_node,
    own_budget,
    stop,
)
from holdfast.testing.snapshots import Snapshot

OWNER = Object.of(
    REPLICA_SETS,
    {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "owner"},
    },
)
LABELS = {"app": "web"}
SPEC = {"minAvailable": 2, "selector": {"matchLabels": LABELS}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


def owned(uid: str, *, kind: str = "ReplicaSet", name: str = "web") -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}]


def budget(name: str = "web", *, owner: str = "", spec: Any = None, **meta: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta}
    if owner:
        metadata["ownerReferences"] = owned(owner)
    return {"metadata": metadata, "spec": SPEC if spec is None else spec}


def writes(existing: dict[str, Any] | None, *, limits: Limits | None = None, wanted: bool = True) -> list[Write]:
    held = None if existing is None else Object.of(BUDGETS, existing)
    limits = resolve(3, min_available=2) if limits is None else limits
    return list(budget_writes(OWNER, held, name="web", selector=LABELS, limits=limits, wanted=wanted))


# --- the budget of an owner


def test_a_missing_budget_is_created_for_its_owner() -> None:
    (write,) = writes(None)
    assert isinstance(write, Create)
    assert write.because == "a drain keeps 2 available"
    assert write.manifest["spec"] == SPEC
    metadata = write.manifest["metadata"]
    assert (metadata["name"], metadata["namespace"], metadata["labels"]) == ("web", "default", LABELS)
    (reference,) = metadata["ownerReferences"]
    assert (reference["uid"], reference["controller"]) == ("owner", True)


def test_a_budget_as_it_should_be_is_not_written() -> None:
    assert writes(budget(owner="owner")) == []


@pytest.mark.parametrize("spec", [SPEC | {"minAvailable": 1}, {"maxUnavailable": 1}, SPEC | {"selector": {}}, {}])
def test_a_budget_that_differs_gets_the_whole_spec(spec: Mapping[str, Any]) -> None:
    (write,) = writes(budget(owner="owner", spec=spec))
    assert isinstance(write, Patch)
    assert (write.key, write.uid) == (Key("default", "web"), "uid-web")
    assert write.patch == [{"op": "replace", "path": "/spec", "value": SPEC}]


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [(resolve(3, min_available=2), False), (resolve(3, min_available=0), True), (resolve(0), True)],
    ids=["not wanted", "no floor", "no replicas"],
)
def test_a_budget_that_is_not_needed_is_deleted_by_its_uid(limits: Limits, wanted: bool) -> None:
    (write,) = writes(budget(owner="owner"), limits=limits, wanted=wanted)
    assert isinstance(write, Delete)
    assert (write.resource, write.key, write.uid) == (BUDGETS, Key("default", "web"), "uid-web")
    assert writes(None, limits=limits, wanted=wanted) == []


def test_a_floor_that_lets_no_drain_end_leaves_one_replica_to_evict() -> None:
    (write,) = writes(None, limits=resolve(3, min_available=3, max_surge=0))
    assert isinstance(write, Create)
    assert write.manifest["spec"]["minAvailable"] == 2


@pytest.mark.parametrize("wanted", [True, False])
def test_a_budget_that_is_being_deleted_is_waited_for(wanted: bool) -> None:
    going = budget(owner="owner", spec={}, deletionTimestamp="2025-01-15T10:00:00Z")
    assert writes(going, wanted=wanted) == []


@pytest.mark.parametrize("owner", ["", "another"])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_budget_of_another_owner_with_the_name_is_left_alone(owner: str, wanted: bool) -> None:
    assert writes(budget(owner=owner, spec={}), wanted=wanted) == []


def test_a_budget_is_found_by_its_name_whatever_its_owner() -> None:
    view = Snapshot([(BUDGETS, budget())])
    found = own_budget(view, OWNER, "web")
    assert found is not None
    assert found.uid == "uid-web"
    assert own_budget(view, OWNER, "other") is None


# --- the budgets of others


def selecting(selector: Any, **fields: Any) -> dict[str, Any]:
    return {"selector": selector, **fields}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (selecting({"matchLabels": {"app": "web"}}), True),
        (selecting({"matchLabels": {"app": "other"}}), False),
        (selecting({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), True),
        (selecting({}), True),
        (selecting(None), False),
        ({}, False),
    ],
)
def test_budgets_of_others_count_where_they_select_the_pods(spec: dict[str, Any], found: bool) -> None:
    view = Snapshot([(BUDGETS, budget("theirs", spec=spec))])
    assert bool(foreign_budgets(view, OWNER, [{"app": "worker"}, LABELS])) is found


def test_neither_the_own_budget_nor_one_of_another_namespace_is_of_others() -> None:
    elsewhere = budget("theirs", namespace="elsewhere")
    view = Snapshot([(BUDGETS, budget(owner="owner")), (BUDGETS, elsewhere)])
    assert foreign_budgets(view, OWNER, [LABELS]) == ()
    view.put(BUDGETS, budget("theirs", owner="another"))
    (found,) = foreign_budgets(view, OWNER, [LABELS])
    assert found.min_available == 2


@pytest.mark.parametrize(
    ("given", "floor"),
    [
        (Budget(min_available=2), 2),
        (Budget(min_available="50%"), 3),
        (Budget(max_unavailable=2), 3),
        (Budget(max_unavailable="50%"), 2),
        (Budget(max_unavailable=9), 0),
        (Budget(), 0),
    ],
)
def test_a_budget_keeps_so_many_of_five(given: Budget, floor: int) -> None:
    assert given.floor(5) == floor


def test_a_budget_brings_the_objects_of_its_namespace() -> None:
    view = Snapshot([(REPLICA_SETS, OWNER.wire())])
    watch = in_namespace_of_budget(REPLICA_SETS)
    assert watch.resource == BUDGETS
    assert list(watch.keys(Object.of(BUDGETS, budget()), view)) == [OWNER.key]
    assert list(watch.keys(Object.of(BUDGETS, budget(namespace="elsewhere")), view)) == []


# --- nodes


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, *, on: str, kind: str = "ReplicaSet", owner: str = "web") -> dict[str, Any]:
    references = owned("owner", kind=kind, name=owner) if owner else []
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": references}
    return {"metadata": metadata, "spec": {"nodeName": on} if on else {}}


def test_nodes_that_are_unschedulable_are_cordoned() -> None:
    view = Snapshot([(NODES, node("in")), (NODES, node("out", unschedulable=True))])
    assert cordoned(view, ["in", "out", "out", "missing", ""]) == {"out"}
    assert cordoned(view, []) == frozenset()


def changed_node(**options: Any) -> set[Key]:
    view = Snapshot(
        [
            (PODS, pod("a", on="out")),
            (PODS, pod("b", on="out", kind="StatefulSet")),
            (PODS, pod("c", on="out", owner="")),
            (PODS, pod("d", on="in", owner="other")),
            (PODS, pod("e", on="")),
        ],
        indexes=[PODS_BY_NODE],
    )
    spec = options.pop("spec", {"unschedulable": True})
    resource: Resource = options.pop("resource", REPLICA_SETS)
    return set(on_changed_node(resource, **options).keys(Object.of(NODES, node("out", **spec)), view))


def test_a_cordoned_node_brings_the_controllers_of_its_pods() -> None:
    assert changed_node() == {Key("default", "web")}
    assert changed_node(resource=SERVICES) == set()
    assert changed_node(resource=STATEFUL_SETS) == {Key("default", "web")}


def test_a_node_that_is_not_cordoned_brings_them_only_where_every_change_counts() -> None:
    assert changed_node(spec={}) == set()
    assert changed_node(spec={}, cordoned_only=False) == {Key("default", "web")}


def test_owners_that_do_not_control_their_pods_are_found_as_they_say() -> None:
    def named(found: Object) -> Key | None:
        return Key("default", found.key.name) if found.key.name != "b" else None

    assert changed_node(owner=named) == {Key("default", "a")}


# --- stopping pods


def test_a_pod_is_stopped_by_eviction_or_deletion_and_always_by_its_uid() -> None:
    meta = Object.of(PODS, pod("a", on="out")).meta
    key = Key("default", "a")
    assert stop(meta, "drained", evict=True, wave=1) == Evict(because="drained", key=key, uid="uid-a", wave=1)
    assert stop(meta, "outdated", evict=False) == Delete(because="outdated", resource=PODS, key=key, uid="uid-a")


def test_a_budget_that_only_reports_differs_from_one_that_asks_for_something_else() -> None:
    before = Object.of(BUDGETS, budget(generation=1, resourceVersion="1"))
    counted = Object.of(BUDGETS, budget(generation=1, resourceVersion="2") | {"status": {"currentHealthy": 3}})
    assert is_reported(before, counted)
    for other in (budget(generation=2), budget(generation=1, labels=LABELS), budget(generation=1, owner="o")):
        assert not is_reported(before, Object.of(BUDGETS, other))
    service = Object.of(SERVICES, budget(generation=1))
    assert not is_reported(service, service)
    assert not is_reported(None, before)
    assert not is_reported(before, None)
