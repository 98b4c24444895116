"""Stores: how objects are found, which listeners are called, and when a write counts as seen."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.sources import obj

from holdfast.client.objects import Object
from holdfast.client.protocols import Listing
from holdfast.client.resources import PODS
from holdfast.meta.objects import Key
from holdfast.meta.selectors import NOTHING, LabelSelector
from holdfast.runtime.caching.stores import Store, UnknownIndex, Writer
from holdfast.runtime.controllers import Index
from holdfast.testing.snapshots import Snapshot

BY_NODE = Index(resource=PODS, name="node", values=lambda pod: pod.meta.annotations.get("nodes", "").split())


def make(*objects: Object, indexes: tuple[Index, ...] = ()) -> tuple[Store, Writer]:
    store = Store(PODS, indexes=indexes)
    writer = Writer(store)
    for each in objects:
        writer.put(each)
    return store, writer


def names(objects: tuple[Object, ...]) -> list[str]:
    return [each.meta.name for each in objects]


@dataclass(eq=False)
class Ear:
    """The calls of a listener, as versions."""

    calls: list[tuple[str | None, str | None]] = field(default_factory=list)

    def __call__(self, old: Object | None, new: Object | None) -> None:
        self.calls.append((old.version if old else None, new.version if new else None))


# --- finding

POD_A = obj("a", 1, labels={"app": "web", "tier": "front"}, ownerReferences=[{"uid": "rs-1", "controller": True}])
POD_B = obj("b", 2, labels={"app": "web", "tier": "back"}, ownerReferences=[{"uid": "rs-1"}, {"uid": "rs-2"}])
POD_C = obj("c", 3, labels={"app": "db"}, namespace="another", annotations={"nodes": "n1 n2 n1"})

SELECTIONS: dict[str, tuple[str, str, list[str]]] = {
    "everything, in the order of keys": ("", "", ["c", "a", "b"]),
    "a namespace": ("default", "", ["a", "b"]),
    "a namespace that has nothing": ("nowhere", "", []),
    "one label": ("", "app=web", ["a", "b"]),
    "two labels": ("", "app=web,tier=back", ["b"]),
    "a label in a namespace": ("another", "app=db", ["c"]),
    "a label that is elsewhere": ("default", "app=db", []),
    "one of several values": ("", "app in (web,db)", ["c", "a", "b"]),
    "a value that nothing has": ("", "app=cache", []),
    "a label that nothing has": ("", "nothing=here", []),
    "a label that exists": ("", "tier", ["a", "b"]),
    "a label that does not": ("", "!tier", ["c"]),
    "a value that is not": ("", "app=web,tier!=back", ["a"]),
}


@pytest.mark.parametrize(("namespace", "labels", "found"), SELECTIONS.values(), ids=SELECTIONS)
def test_objects_are_found_by_namespace_and_labels(namespace: str, labels: str, found: list[str]) -> None:
    store, _ = make(POD_A, POD_B, POD_C)
    assert names(store.list(namespace=namespace, labels=LabelSelector.parse(labels))) == found


def test_the_selector_that_selects_nothing_finds_nothing() -> None:
    store, _ = make(POD_A)
    assert store.list(labels=NOTHING) == ()


def test_objects_are_found_by_key_and_owner() -> None:
    store, _ = make(POD_A, POD_B, POD_C)
    assert store.get(Key("another", "c")) is POD_C
    assert store.get(Key("default", "c")) is None
    assert names(store.owned("rs-1")) == ["a", "b"]
    assert names(store.owned("rs-2")) == ["b"]
    assert store.owned("rs-3") == ()
    assert len(store) == 3


def test_objects_are_found_by_an_index_of_ones_own_that_came_before_or_after_them() -> None:
    before, _ = make(POD_A, POD_C, indexes=(BY_NODE,))
    after, _ = make(POD_A, POD_C)
    after.require(BY_NODE)
    after.require(BY_NODE)
    for store in (before, after):
        assert names(store.indexed("node", "n1")) == names(store.indexed("node", "n2")) == ["c"]
        assert store.indexed("node", "n3") == ()


def test_an_index_that_is_not_declared_is_an_error_that_says_where_to_declare_it() -> None:
    store, _ = make(indexes=(BY_NODE,))
    with pytest.raises(UnknownIndex, match=r"pods has no index 'zone' \(it has: node\); declare it"):
        store.indexed("zone", "z")


def test_two_different_indexes_cannot_have_one_name() -> None:
    store, _ = make(indexes=(BY_NODE,))
    with pytest.raises(ValueError, match="two indexes of pods are named 'node'"):
        store.require(Index(resource=PODS, name="node", values=lambda pod: ()))


def test_an_object_that_an_index_cannot_read_is_kept_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: Object) -> list[str]:
        raise KeyError(pod.meta.name)

    with caplog.at_level(logging.CRITICAL, "holdfast.runtime"):
        store, writer = make(POD_A, indexes=(Index(resource=PODS, name="broken", values=broken),))
        writer.remove(POD_A)
    assert len(store) == 0


def test_a_selector_looks_only_at_the_objects_of_its_rarest_label() -> None:
    common = [obj(f"p{i}", i + 1, labels={"app": "web", "one": str(i)}) for i in range(200)]
    store, _ = make(*common)
    looked_at = list(store._with(next(iter(LabelSelector.parse("one=7").requirements)), ""))
    assert names(tuple(looked_at)) == ["p7"]
    assert names(store.list(labels=LabelSelector.parse("app=web,one=7"))) == ["p7"]


# --- changing and telling


def test_what_is_put_changed_and_removed_is_told_as_it_was_and_as_it_is() -> None:
    store, writer = make(obj("a", 1))
    ear = Ear()
    store.subscribe(ear)
    writer.put(obj("a", 2))
    writer.put(obj("b", 3))
    writer.remove(obj("a", 4))
    assert ear.calls == [(None, "1"), ("1", "2"), (None, "3"), ("2", None)]


def test_what_is_known_or_older_changes_nothing() -> None:
    store, writer = make(obj("a", 5))
    ear = Ear()
    store.subscribe(ear)
    writer.put(obj("a", 5))
    writer.put(obj("a", 4))
    writer.put(obj("a", 3, uid="an-earlier-one"))
    writer.remove(obj("a", 4))
    writer.remove(obj("unknown", 6))
    assert ear.calls == [(None, "5")]
    assert store.version == 6


def test_versions_are_compared_as_numbers() -> None:
    store, writer = make(obj("a", 9))
    writer.put(obj("a", 10))
    assert store.list()[0].version == "10"


def test_an_object_that_was_deleted_and_made_again_is_told_as_both() -> None:
    for act in (lambda writer: writer.put(obj("a", 7, uid="new")), lambda w: w.replace([obj("a", 7, uid="new")], "9")):
        store, writer = make(obj("a", 1, uid="old"))
        ear = Ear()
        store.subscribe(ear)
        act(writer)
        assert ear.calls == [(None, "1"), ("1", None), (None, "7")]
        assert store.list()[0].uid == "new"


def test_a_list_tells_what_happened_meanwhile_and_nothing_else() -> None:
    store, writer = make(obj("gone", 1), obj("same", 2), obj("changed", 3))
    ear = Ear()
    store.subscribe(ear)
    ear.calls.clear()
    writer.replace([obj("same", 2), obj("changed", 5), obj("new", 6)], "8")
    assert ear.calls == [("1", None), ("3", "5"), (None, "6")]
    assert names(store.list()) == ["changed", "new", "same"]
    assert store.version == 8


def test_a_list_of_a_restored_server_is_believed_although_it_is_older() -> None:
    store, writer = make(obj("a", 50), obj("b", 60))
    waited: list[str] = []
    store.when_seen(Key("default", "a"), "70", lambda: waited.append("released"))
    writer.replace([obj("a", 40)], "45")
    assert [(each.meta.name, each.version) for each in store.list()] == [("a", "40")]
    assert store.version == 45
    assert waited == ["released"], "what it waited for may never come"


@pytest.mark.parametrize(
    ("listed", "version", "shown"),
    [
        ([("a", 50), ("b", 60)], "80", True),
        ([("a", 50), ("b", 70)], "80", False),
        ([("a", 50), ("b", 60), ("c", 70)], "80", False),
        ([("a", 50)], "80", False),
        ([("a", 50), ("b", 55)], "58", True),
        ([("c", 40)], "60", True),
        ([("a", 50), ("b", 60)], "no number", True),
        ([("a", 50)], "no number", False),
    ],
    ids=["same", "changed", "created", "deleted", "later", "processed further", "same, in words", "deleted, in words"],
)
def test_a_store_shows_a_list_once_it_has_all_of_it_and_nothing_that_had_gone(
    listed: list[tuple[str, int]], version: str, shown: bool
) -> None:
    store, _ = make(obj("elsewhere", 10, namespace="other"), obj("a", 50), obj("b", 60))
    assert store.shows(Listing(tuple(obj(*each) for each in listed), version), namespace="default") is shown


def test_a_list_that_renews_says_more_of_the_same_version_without_telling() -> None:
    store, writer = make(obj("a", 1))
    ear = Ear()
    store.subscribe(ear)
    fuller = obj("a", 1, labels={"app": "web"})
    writer.renew()
    writer.replace([fuller], "2")
    assert store.list(labels=LabelSelector.parse("app=web")) == (fuller,)
    assert ear.calls == [(None, "1")]
    writer.replace([obj("a", 1)], "3")
    assert store.list() == (fuller,)


def test_everything_is_in_place_before_a_listener_is_called() -> None:
    store, writer = make(obj("a", 1, labels={"app": "old"}), obj("b", 2))
    sights: list[list[str]] = []
    store.subscribe(lambda old, new: sights.append(names(store.list())))
    sights.clear()
    writer.replace([obj("a", 3, labels={"app": "new"}), obj("c", 4)], "5")
    assert sights == [["a", "c"]] * 3
    assert store.list(labels=LabelSelector.parse("app=old")) == ()


def test_who_unsubscribed_is_told_no_more() -> None:
    store, writer = make()
    ear, other = Ear(), Ear()
    store.subscribe(ear)
    store.subscribe(other)
    store.unsubscribe(ear)
    store.unsubscribe(ear)
    writer.put(obj("a", 1))
    assert (ear.calls, other.calls) == ([], [(None, "1")])
    assert store.has_listeners


def test_a_listener_that_fails_keeps_no_other_listener_from_being_called(caplog: pytest.LogCaptureFixture) -> None:
    def fail(old: Object | None, new: Object | None) -> None:
        raise ZeroDivisionError

    store, writer = make()
    ear = Ear()
    store.subscribe(fail)
    store.subscribe(ear)
    writer.put(obj("a", 1))
    assert ear.calls == [(None, "1")]
    assert caplog.messages == ["a listener failed on a change"]


# --- own writes


def test_a_version_is_seen_once_it_or_a_later_one_came_from_anywhere() -> None:
    arrivals: dict[str, Callable[[Writer], None]] = {
        "the object": lambda writer: writer.put(obj("a", 7)),
        "another object": lambda writer: writer.put(obj("b", 8)),
        "a deletion": lambda writer: writer.remove(obj("b", 9)),
        "a bookmark": lambda writer: writer.advance("7"),
        "a list": lambda writer: writer.replace([], "7"),
    }
    for what, arrive in arrivals.items():
        store, writer = make(obj("a", 3))
        seen: list[str] = []
        store.when_seen(Key("default", "a"), "7", lambda what=what, seen=seen: seen.append(what))
        writer.advance("6")
        assert seen == []
        arrive(writer)
        assert seen == [what]
        assert store.seen(Key("default", "a"), "7")


def test_who_waits_is_called_in_the_order_of_versions_after_listeners_and_once() -> None:
    store, writer = make()
    order: list[str] = []
    key = Key("default", "a")
    store.subscribe(lambda old, new: order.append("calls"))
    for version in ("9", "7", "8", "7"):
        store.when_seen(key, version, lambda version=version: order.append(version))
    writer.put(obj("a", 8))
    writer.put(obj("a", 20))
    store.when_seen(key, "15", lambda: order.append("at once"))
    assert order == ["calls", "7", "7", "8", "calls", "9", "at once"]


def test_a_deletion_is_seen_when_the_object_is_gone_leaving_or_another() -> None:
    arrivals: list[Callable[[Writer], None]] = [
        lambda writer: writer.remove(obj("a", 4)),
        lambda writer: writer.put(obj("a", 4, deletionTimestamp="2030-01-01T00:00:00Z")),
        lambda writer: writer.put(obj("a", 4, uid="another")),
        lambda writer: writer.replace([], "9"),
    ]
    for arrive in arrivals:
        store, writer = make(obj("a", 3))
        gone: list[bool] = []
        store.when_gone(Key("default", "a"), "uid-a", lambda gone=gone: gone.append(True))
        writer.put(obj("b", 4))
        assert gone == []
        arrive(writer)
        store.when_gone(Key("default", "a"), "uid-a", lambda gone=gone: gone.append(True))
        assert gone == [True, True]


def test_versions_that_are_no_numbers_are_seen_on_the_object_itself() -> None:
    def opaque(version: str) -> Object:
        return Object.of(PODS, {"metadata": {"name": "a", "namespace": "default", "resourceVersion": version}})

    store, writer = make(opaque("x"))
    key, order = Key("default", "a"), list[str]()
    assert store.seen(key, "x")
    store.when_seen(key, "z", lambda: order.append("z"))
    writer.put(opaque("y"))
    assert order == []
    writer.put(opaque("z"))
    assert order == ["z"]
    store.when_seen(key, "lost", lambda: order.append("listed anew"))
    writer.replace([opaque("zz")], "l")
    assert order == ["z", "listed anew"]


# --- the same as looking at everything

meta = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from("xyz"), st.sampled_from(["1", "2", ""])),
        "ownerReferences": st.lists(st.fixed_dictionaries({"uid": st.sampled_from(["o1", "o2"])}), max_size=2),
        "annotations": st.fixed_dictionaries({"nodes": st.sampled_from(["", "n1", "n1 n2", "n2"])}),
        "namespace": st.sampled_from(["one", "two"]),
    }
)
changes = st.lists(st.tuples(st.sampled_from(["put", "put", "remove", "replace"]), st.sampled_from("abcd"), meta))
SELECTORS = ["", "x=1", "x=1,y=2", "x in (1,2),!z", "y", "z!=1", "x="]


@settings(max_examples=150, deadline=None)
@given(changes)
def test_indexes_find_what_looking_at_everything_finds(history: list[tuple[str, str, dict[str, Any]]]) -> None:
    store, writer = make(indexes=(BY_NODE,))
    plain: dict[Key, Object] = {}
    for version, (what, name, described) in enumerate(history, 1):
        made = obj(name, version, uid=f"{name}-{version}", **described)
        if what == "put":
            writer.put(made)
            plain[made.key] = made
        elif what == "remove":
            writer.remove(made)
            plain.pop(made.key, None)
        else:
            kept = dict(list(plain.items())[::2])
            plain = kept | {made.key: made}
            writer.replace(plain.values(), str(version))
    snapshot = Snapshot(((PODS, each.wire()) for each in plain.values()), indexes=(BY_NODE,))
    for namespace in ("", "one", "two"):
        for text in SELECTORS:
            labels = LabelSelector.parse(text)
            expected = snapshot.list(PODS, namespace=namespace, labels=labels)
            assert names(store.list(namespace=namespace, labels=labels)) == names(expected)
    for uid in ("o1", "o2"):
        assert names(store.owned(uid)) == names(snapshot.owned(PODS, uid))
    for node in ("n1", "n2"):
        assert names(store.indexed("node", node)) == names(snapshot.indexed(PODS, "node", node))
    assert len(store) == len(plain)


def test_a_store_that_was_emptied_keeps_nothing() -> None:
    store, writer = make(POD_A, POD_B, POD_C, indexes=(BY_NODE,))
    writer.replace([], "9")
    assert (store._namespaces, store._labels, len(store._owners), len(store._indexes["node"][1])) == ({}, {}, 0, 0)


def test_the_indexes_of_an_object_take_a_tenth_of_what_it_takes_itself() -> None:
    def pod(i: int) -> Object:
        labels = {"app": f"app-{i // 30}", "hash": f"hash-{i // 3}", "index": str(i % 3), "name": f"pod-{i}"}
        padding = {"padding": "x" * 4096}
        return obj(f"pod-{i}", i + 1, labels=labels, annotations=padding, ownerReferences=[{"uid": f"rs-{i // 3}"}])

    count = 2000
    objects = [pod(i) for i in range(count)]
    gc.collect()
    tracemalloc.start()
    try:
        store, _ = make(*objects)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(store) == count
    assert used / count < 600
