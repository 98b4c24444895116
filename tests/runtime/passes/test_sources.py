from __future__ import annotations

from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, Resource
from holdfast.runtime.controllers import SOON, Controller, Watch
from holdfast.runtime.decisions import Decision
from holdfast.runtime.passes.sources import sources
from holdfast.testing.snapshots import Snapshot

SETS = Resource("example.com", "v1", "sets", "Set")
NOTES = Resource("example.com", "v1", "notes", "Note")


def controller(**fields: Any) -> Controller[Any]:
    return Controller(
        name="sets",
        resource=SETS,
        observe=lambda view, key: None,
        decide=lambda world, now: Decision(),
        **fields,
    )


def test_an_owned_object_brings_its_owner_where_that_is_known_and_of_the_same_group() -> None:
    owned = Object.of(PODS, {"metadata": {"name": "web-0", "namespace": "team", "ownerReferences": [owner("Set")]}})
    other = Object.of(
        PODS,
        {"metadata": {"name": "x", "namespace": "team", "ownerReferences": [owner("Set", "other.example.com/v1")]}},
    )
    view = Snapshot()
    (source,) = sources(controller(owns=(PODS,)))[PODS]
    assert list(source.keys(owned, view)) == []
    own = Object.of(SETS, {"metadata": {"name": "web", "namespace": "team"}})
    view.insert(own)
    assert list(source.keys(owned, view)) == [own.key]
    assert list(source.keys(other, view)) == []


def test_a_resource_that_is_owned_and_watched_has_a_source_for_each() -> None:
    watch = Watch(resource=PODS, keys=lambda obj, view: (), within=SOON)
    found = sources(controller(owns=(PODS,), watches=(watch,)))
    assert [each.within for each in found[PODS]] == [0.0, SOON.total_seconds()]
    assert NOTES not in found


def test_owned_objects_may_wait_where_the_controller_says_which_changes_are_urgent() -> None:
    (source,) = sources(controller(owns=(PODS,), urgent=lambda old, new, view: True))[PODS]
    assert source.within == SOON.total_seconds()


def owner(kind: str, version: str = "example.com/v1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": "web", "uid": "1", "controller": True}
