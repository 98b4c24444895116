"""The garbage collector on a cluster: owners go, and what is theirs goes with them, before them, or stays."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.resources import CONFIG_MAPS, DEFINITIONS, EVENTS, NAMESPACES, NODES, SECRETS, Resource
from holdfast.cluster.controllers.gc.collector import GarbageCollector, _Collection
from holdfast.testing.clusters import Cluster, play

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
HOLD = "example.com/hold"


def collected(story: Any) -> None:
    play(story, components=[GarbageCollector()])


async def make(
    cluster: Cluster, name: str, *owners: dict[str, Any], resource: Resource = CONFIG_MAPS, **meta: Any
) -> dict[str, Any]:
    if owners:
        meta["ownerReferences"] = list(owners)
    return await cluster.create(resource, {"metadata": {"name": name, **meta}})


def owner(obj: dict[str, Any], **more: Any) -> dict[str, Any]:
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    return reference | {"uid": obj["metadata"]["uid"]} | more


async def names(cluster: Cluster, resource: Resource = CONFIG_MAPS) -> list[str]:
    return [each["metadata"]["name"] for each in await cluster.list(resource)]


def test_a_deletion_in_the_background_takes_everything_along_to_the_last_generation() -> None:
    async def story(cluster: Cluster) -> None:
        first = await make(cluster, "a")
        second = await make(cluster, "b", owner(first))
        await make(cluster, "c", owner(second), resource=SECRETS)
        await make(cluster, "other")
        await cluster.delete(CONFIG_MAPS, "a", propagation="Background")
        await cluster.settle()
        assert await names(cluster) == ["other"]
        assert await names(cluster, SECRETS) == []

    collected(story)


def test_a_deletion_that_orphans_leaves_the_dependents() -> None:
    async def story(cluster: Cluster) -> None:
        first, second = await make(cluster, "a"), await make(cluster, "b")
        for number in range(30):
            await make(cluster, f"c{number}", owner(first), owner(second))
        await cluster.delete(CONFIG_MAPS, "a", propagation="Orphan")
        await cluster.settle()
        assert await cluster.find(CONFIG_MAPS, "a") is None
        for number in range(30):
            kept = await cluster.get(CONFIG_MAPS, f"c{number}")
            assert [each["name"] for each in kept["metadata"]["ownerReferences"]] == ["b"]

    collected(story)


def test_a_deletion_in_the_foreground_waits_for_those_that_block_it() -> None:
    async def story(cluster: Cluster) -> None:
        first = await make(cluster, "a")
        second = await make(cluster, "b", owner(first, blockOwnerDeletion=True), finalizers=[HOLD])
        await make(cluster, "c", owner(second, blockOwnerDeletion=True), finalizers=[HOLD])
        await make(cluster, "d", owner(first), finalizers=[HOLD])
        await cluster.delete(CONFIG_MAPS, "a", propagation="Foreground")
        await cluster.settle()
        assert {
            each["metadata"]["name"]: each["metadata"]["finalizers"] for each in await cluster.list(CONFIG_MAPS)
        } == {"a": ["foregroundDeletion"], "b": [HOLD, "foregroundDeletion"], "c": [HOLD], "d": [HOLD]}
        for name, left in (("c", ["a", "b", "d"]), ("b", ["d"]), ("d", [])):
            await cluster.patch(CONFIG_MAPS, name, {"metadata": {"finalizers": None}})
            await cluster.settle()
            assert await names(cluster) == left

    collected(story)


def test_one_owner_that_stays_is_enough() -> None:
    async def story(cluster: Cluster) -> None:
        first, second = await make(cluster, "a"), await make(cluster, "b")
        kept = owner(second, controller=True, blockOwnerDeletion=True)
        await make(cluster, "c", owner(first), kept)
        await cluster.delete(CONFIG_MAPS, "a")
        await cluster.settle()
        assert (await cluster.get(CONFIG_MAPS, "c"))["metadata"]["ownerReferences"] == [kept]

    collected(story)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_objects_that_own_each_other_can_be_deleted(propagation: str) -> None:
    async def story(cluster: Cluster) -> None:
        first = await make(cluster, "a")
        second = await make(cluster, "b", owner(first, blockOwnerDeletion=True))
        circle = [owner(second, blockOwnerDeletion=True), owner(first, blockOwnerDeletion=True)]
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"ownerReferences": circle}})
        await cluster.settle()
        assert await names(cluster) == ["a", "b"]
        await cluster.delete(CONFIG_MAPS, "a", propagation=propagation)
        await cluster.settle()
        assert await names(cluster) == []

    collected(story)


def test_an_owner_of_the_same_name_is_not_the_owner() -> None:
    async def story(cluster: Cluster) -> None:
        first = await make(cluster, "a")
        await make(cluster, "b", owner(first) | {"uid": "00000000-0000-4000-8000-000000000000"})
        await cluster.settle()
        assert await names(cluster) == ["a"]

    collected(story)


def test_an_owner_in_another_namespace_does_not_count_and_is_reported() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
        first = await make(cluster, "a", namespace="elsewhere")
        await cluster.settle()
        await make(cluster, "b", owner(first))
        await make(cluster, "n", owner(first), resource=NODES)
        await cluster.settle()
        assert await names(cluster) == []
        assert await names(cluster, NODES) == ["n"]
        events = {each["involvedObject"]["name"]: each for each in await cluster.list(EVENTS)}
        assert {each["reason"] for each in events.values()} == {"OwnerRefInvalidNamespace"}
        uid = first["metadata"]["uid"]
        assert events["b"]["message"] == (
            f'ownerRef [v1/ConfigMap, namespace: default, name: a, uid: {uid}] does not exist in namespace "default"'
        )
        assert events.keys() == {"b", "n"}

    collected(story)


def test_a_thousand_dependents_cost_a_write_each() -> None:
    async def story(cluster: Cluster) -> None:
        first = await make(cluster, "a")
        for number in range(1000):
            await make(cluster, f"b{number}", owner(first))
        await cluster.settle()
        before = cluster.server.store.revision
        await cluster.delete(CONFIG_MAPS, "a")
        await cluster.settle()
        assert await names(cluster) == []
        assert cluster.server.store.revision - before == 1001

    collected(story)


def test_an_owner_that_was_never_seen_is_read_from_the_server() -> None:
    async def story(cluster: Cluster) -> None:
        await make(cluster, "b", {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "gone-long-ago"})
        await cluster.settle()
        assert await names(cluster) == []

    collected(story)


# --- kinds that come and go

WIDGET: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def test_kinds_are_followed_as_they_are_defined() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(DEFINITIONS, WIDGET)
        await cluster.advance(1)
        first = await make(cluster, "a", resource=WIDGETS)
        await make(cluster, "b", owner(first))
        await make(cluster, "c", owner(await make(cluster, "d")), resource=WIDGETS)
        await cluster.settle()
        await cluster.delete(WIDGETS, "a")
        await cluster.delete(CONFIG_MAPS, "d")
        await cluster.settle()
        assert await names(cluster) == []
        assert await names(cluster, WIDGETS) == []

    collected(story)


def test_dependents_of_a_kind_that_is_not_served_stay() -> None:
    async def story(cluster: Cluster) -> None:
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": "gone-long-ago"}
        await make(cluster, "b", widget)
        await cluster.advance(600)
        assert await names(cluster) == ["b"]
        await cluster.create(DEFINITIONS, WIDGET)
        await cluster.advance(5)
        assert await names(cluster) == []

    collected(story)


@pytest.mark.parametrize("events_arrive", [True, False])
def test_the_dependents_of_all_objects_are_deleted_with_the_definition_of_their_kind(
    events_arrive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More owners than the server is asked about at a time, and more than it remembers without dependents."""
    if not events_arrive:
        # The watch of widgets ends before it says that they are deleted.
        changed = _Collection._changed
        monkeypatch.setattr(
            _Collection,
            "_changed",
            lambda self, old, new: None if new is None and old.resource == WIDGETS else changed(self, old, new),
        )

    async def story(cluster: Cluster) -> None:
        await cluster.create(DEFINITIONS, WIDGET)
        await cluster.advance(1)
        for number in range(600):
            await make(cluster, f"b{number}", owner(await make(cluster, f"a{number}", resource=WIDGETS)))
        await make(cluster, "other")
        await cluster.settle()
        await cluster.delete(DEFINITIONS, "widgets.example.com")
        await cluster.advance(40)
        assert await cluster.find(DEFINITIONS, "widgets.example.com") is None
        assert await names(cluster) == ["other"]

    collected(story)


def test_a_dependent_that_is_created_after_the_definition_of_its_owner_was_deleted_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(DEFINITIONS, WIDGET)
        await cluster.advance(1)
        widget = await make(cluster, "a", resource=WIDGETS)
        await cluster.settle()
        await cluster.delete(DEFINITIONS, "widgets.example.com")
        await cluster.advance(5)
        await make(cluster, "late", owner(widget))
        await make(cluster, "wrong", owner(widget) | {"name": "z"})
        await cluster.advance(5)
        assert await names(cluster) == ["wrong"], "that reference names no object that was seen"

    collected(story)


def test_dependents_stay_while_a_kind_is_not_served_but_defined() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(DEFINITIONS, WIDGET)
        await cluster.advance(1)
        await make(cluster, "b", owner(await make(cluster, "a", resource=WIDGETS)))
        await cluster.settle()
        for served in (False, True):
            versions = [WIDGET["spec"]["versions"][0] | {"served": served}]
            await cluster.patch(DEFINITIONS, "widgets.example.com", {"spec": {"versions": versions}})
            await cluster.advance(40)
            assert await names(cluster) == ["b"]
        await cluster.delete(WIDGETS, "a")
        await cluster.advance(5)
        assert await names(cluster) == []

    collected(story)
