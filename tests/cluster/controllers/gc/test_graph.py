"""The ownership graph, and what becomes of objects whose owners go."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, NODES, PODS, Resource
from holdfast.cluster.controllers.gc import graph as garbage
from holdfast.cluster.controllers.gc.graph import Action, Detach, Doubts, Graph, Leave, Remove, Standing, action_for

FOREGROUND, ORPHAN = garbage.FOREGROUND, garbage.ORPHAN


def thing(
    uid: str, *owners: dict[str, Any] | str, resource: Resource = CONFIG_MAPS, namespace: str = "default", **meta: Any
) -> Object:
    """An object that is named as its UID is; owners are config maps that are named so too."""
    metadata: dict[str, Any] = {"name": uid, "uid": uid, "resourceVersion": "1"}
    if resource.namespaced:
        metadata["namespace"] = namespace
    if owners:
        metadata["ownerReferences"] = [owner(each) if isinstance(each, str) else each for each in owners]
    return Object.of(resource, {"metadata": metadata | meta})


def owner(uid: str, *, block: bool | None = None, kind: str = "ConfigMap", name: str = "") -> dict[str, Any]:
    reference: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "name": name or uid, "uid": uid}
    return reference if block is None else reference | {"blockOwnerDeletion": block}


def going(*finalizers: str) -> dict[str, Any]:
    return {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": list(finalizers)}


def graph(*objects: Object) -> Graph:
    made = Graph()
    for each in objects:
        made.put(each)
    return made


# --- the graph


def test_an_object_without_owners_is_never_doubtful() -> None:
    known = Graph()
    assert known.put(thing("a")) == Doubts()
    assert known.remove("a") == Doubts()
    assert len(known) == 0


def test_an_owner_that_goes_brings_its_dependents_under_doubt() -> None:
    known = graph(thing("a"), thing("b", "a"), thing("c", "a"), thing("d"))
    assert known.remove("a") == Doubts(examine=("b", "c"))


def test_an_owner_that_was_never_seen_is_doubted_at_once() -> None:
    known = Graph()
    assert known.put(thing("b", "a")) == Doubts(examine=("b",))
    assert known.put(thing("a")) == Doubts()
    assert known.remove("a") == Doubts(examine=("b",))


def test_a_deleted_owner_is_remembered_while_it_has_dependents() -> None:
    known = graph(thing("a"), thing("b", "a"))
    known.remove("a")
    for number in range(2 * garbage.REMEMBERED):
        known.put(thing(f"c{number}"))
        known.remove(f"c{number}")
    assert known.deleted("a") is not None
    assert known.deleted("c0") is None
    assert known.deleted(f"c{garbage.REMEMBERED}") is not None
    known.put(thing("a"))
    assert known.deleted("a") is None, "it exists"


def test_an_object_that_is_only_forgotten_was_not_deleted() -> None:
    known = graph(thing("a"), thing("b", "a"))
    assert known.forget("a") == Doubts(examine=("b",))
    assert known.get("a") is None
    assert known.deleted("a") is None


def test_a_change_that_leaves_owners_alone_is_not_doubted_again() -> None:
    known = graph(thing("b", "a"))
    assert known.put(thing("b", "a", labels={"x": "y"})) == Doubts()


def test_who_forgets_an_owner_does_not_go_with_it() -> None:
    known = graph(thing("a"), thing("b", "a"))
    known.put(thing("b"))
    assert known.remove("a") == Doubts()


def test_an_owner_that_waits_for_dependents_is_examined_after_them() -> None:
    known = graph(thing("a"), thing("b", "a"), thing("c", "a"))
    assert known.put(thing("a", **going(FOREGROUND))) == Doubts(examine=("b", "c", "a"))
    assert known.put(thing("a", labels={"x": "y"}, **going(FOREGROUND))) == Doubts()


def test_an_owner_that_waits_is_examined_whenever_a_dependent_stops_blocking_it() -> None:
    known = graph(thing("a", **going(FOREGROUND)), *(thing(name, owner("a", block=True)) for name in "bcd"))
    assert known.remove("b").examine == ("a",)
    assert known.put(thing("c", owner("a", block=False))).examine == ("a",)
    assert known.put(thing("d")).examine == ("a",)


def test_a_new_dependent_of_an_owner_that_waits_goes_with_it() -> None:
    known = graph(thing("a", **going(FOREGROUND)))
    assert known.put(thing("b", "a")).examine == ("b",)


def test_an_owner_that_orphans_is_told_once() -> None:
    known = graph(thing("a"), thing("b", "a"))
    assert known.put(thing("a", **going(ORPHAN))) == Doubts(examine=("a",))
    assert known.put(thing("a", labels={"x": "y"}, **going(ORPHAN))) == Doubts()


@pytest.mark.parametrize(
    ("uid", "blocking"),
    [
        pytest.param("a", ["b"], id="only dependents that say so block"),
        pytest.param("self", [], id="an object does not wait for itself"),
        pytest.param("unheard-of", [], id="nothing depends on an unknown object"),
    ],
)
def test_who_blocks(uid: str, blocking: list[str]) -> None:
    known = graph(
        thing("a"),
        thing("b", owner("a", block=True)),
        thing("c", owner("a", block=False)),
        thing("d", "a"),
        thing("self", owner("self", block=True)),
    )
    assert [each.uid for each in known.blocking(uid)] == blocking


def test_objects_that_wait_for_each_other_are_a_circle() -> None:
    known = graph(thing("a", "b", **going(FOREGROUND)), thing("b", "a"), thing("self", "self", **going(FOREGROUND)))
    assert known.circular("b")
    assert not known.circular("a")
    assert not known.circular("self")


def test_the_owner_of_a_namespaced_object_may_be_outside_of_all_namespaces() -> None:
    known = graph(thing("n", resource=NODES))
    assert known.put(thing("p", owner("n", kind="Node"), resource=PODS)) == Doubts()


@pytest.mark.parametrize(
    "dependent",
    [
        pytest.param(thing("b", "a", namespace="elsewhere"), id="of another namespace"),
        pytest.param(thing("b", "a", resource=NODES), id="outside of all namespaces"),
    ],
)
@pytest.mark.parametrize("owner_first", [True, False])
def test_an_owner_in_another_namespace_is_doubted_and_reported(dependent: Object, owner_first: bool) -> None:
    first, second = (thing("a"), dependent) if owner_first else (dependent, thing("a"))
    known = graph(first)
    assert known.put(second) == Doubts(examine=("b",), strays=((dependent, dependent.meta.owner_references[0]),))
    message = garbage.stray_message(dependent, dependent.meta.owner_references[0])
    place = dependent.meta.namespace
    assert message == (
        f'ownerRef [v1/ConfigMap, namespace: {place}, name: a, uid: a] does not exist in namespace "{place}"'
    )


@pytest.mark.parametrize("wrong", [owner("a", name="other"), owner("a", kind="Secret")])
def test_a_reference_with_the_right_uid_and_another_name_is_doubted_but_not_reported(wrong: dict[str, Any]) -> None:
    assert graph(thing("a")).put(thing("b", wrong)) == Doubts(examine=("b",))


def test_two_references_to_one_owner_count_once() -> None:
    known = graph(thing("a"), thing("b", "a", "a"))
    assert known.remove("b") == Doubts()
    assert known.remove("a") == Doubts()


def test_the_objects_of_a_kind_can_be_found() -> None:
    known = graph(thing("a"), thing("n", resource=NODES), thing("b"))
    assert known.of(CONFIG_MAPS) == ("a", "b")


def test_the_work_of_a_change_does_not_grow_with_the_graph() -> None:
    known = graph(thing("a"), *(thing(f"child-{number}", "a") for number in range(1000)))
    assert known.put(thing("lone", "child-1")) == Doubts()
    assert known.remove("lone") == Doubts()
    assert len(known.remove("a").examine) == 1000


# --- the action

SOLID, GOING, ABSENT = Standing


@pytest.mark.parametrize(
    ("owners", "dependents", "circular", "finalizers", "action"),
    [
        pytest.param({}, False, False, [], Leave(), id="who has no owner stays"),
        pytest.param({"a": SOLID}, False, False, [], Leave(), id="who has an owner stays"),
        pytest.param({"a": ABSENT}, False, False, [], Remove("Background"), id="who has lost its owner goes"),
        pytest.param({"a": ABSENT, "b": ABSENT}, False, False, [], Remove("Background"), id="who has lost all goes"),
        pytest.param({"a": ABSENT, "b": SOLID}, False, False, [], Detach(frozenset("a")), id="one solid one keeps it"),
        pytest.param({"a": GOING, "b": SOLID}, True, True, [], Detach(frozenset("a")), id="one that waits is let go"),
        pytest.param({"a": GOING}, False, False, [], Remove("Background"), id="who has no dependents goes at once"),
        pytest.param({"a": GOING}, True, False, [], Remove("Foreground"), id="who has dependents waits for them too"),
        pytest.param({"a": GOING}, True, True, [], Remove("Foreground", unblock=True), id="a circle is broken"),
        pytest.param({"a": GOING, "b": ABSENT}, True, False, [], Remove("Foreground"), id="one that waits is enough"),
        pytest.param({"a": ABSENT}, True, False, [], Remove("Background"), id="dependents follow in the background"),
        pytest.param({"a": ABSENT}, False, False, [ORPHAN], Remove("Orphan"), id="orphan deletion is kept"),
        pytest.param({"a": ABSENT}, False, False, [FOREGROUND], Remove("Foreground"), id="foreground deletion is kept"),
    ],
)  # fmt: skip
def test_what_becomes_of_an_object(
    owners: dict[str, Standing], dependents: bool, circular: bool, finalizers: list[str], action: Action
) -> None:
    obj = thing("x", finalizers=finalizers)
    assert action_for(obj, owners, dependents=dependents, circular=circular) == action


# --- the patches


def test_patches_keep_the_rest_and_hold_only_for_what_was_seen() -> None:
    kept = owner("b", block=True) | {"controller": True}
    obj = thing("x", "a", kept, finalizers=["example.com/hold", ORPHAN])
    seen = {"uid": "x", "resourceVersion": "1"}
    assert garbage.without_owners(obj, {"a"}) == {"metadata": seen | {"ownerReferences": [kept]}}
    assert garbage.without_owners(obj, {"a", "b"}) == {"metadata": seen | {"ownerReferences": None}}
    assert garbage.without_finalizer(obj, ORPHAN) == {"metadata": seen | {"finalizers": ["example.com/hold"]}}
    assert garbage.without_blocking(obj) == {
        "metadata": seen | {"ownerReferences": [owner("a", block=False), kept | {"blockOwnerDeletion": False}]}
    }
