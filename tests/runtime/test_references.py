"""References by name: which objects a change of a Secret or a Service brings."""

from __future__ import annotations

from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import REPLICA_SETS, SECRETS, SERVICES, Resource
from holdfast.meta.objects import Key
from holdfast.runtime.references import References
from holdfast.testing.snapshots import Snapshot


def test_an_object_is_reconciled_when_what_it_mentions_in_its_namespace_changes() -> None:
    def mentions(obj: Object) -> list[tuple[Resource, str]]:
        return [(SECRETS, obj.meta.annotations["secret"]), (SERVICES, "front")]

    references = References(REPLICA_SETS, mentions)

    def replica_set(name: str, namespace: str, secret: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": namespace, "annotations": {"secret": secret}}}

    view = Snapshot(
        [
            (REPLICA_SETS, replica_set("a", "default", "s")),
            (REPLICA_SETS, replica_set("b", "default", "t")),
            (REPLICA_SETS, replica_set("c", "elsewhere", "s")),
        ],
        indexes=[references.index],
    )

    def brought(resource: Resource, name: str, namespace: str = "default") -> list[str]:
        obj = Object.of(resource, {"metadata": {"name": name, "namespace": namespace}})
        (watch,) = (each for each in references.watches(SECRETS, SERVICES) if each.resource == resource)
        return [key.name for key in watch.keys(obj, view)]

    assert brought(SECRETS, "s") == ["a"]
    assert brought(SECRETS, "s", "elsewhere") == ["c"]
    assert brought(SERVICES, "front") == ["a", "b"]
    assert brought(SECRETS, "front") == []


def test_two_sets_of_references_of_one_resource_have_indexes_of_their_own() -> None:
    def none(obj: Object) -> list[tuple[Resource, str]]:
        return []

    names = {References(REPLICA_SETS, none).index.name, References(REPLICA_SETS, none, name="others").index.name}
    assert len(names) == 2


def test_the_index_of_references_is_the_same_whenever_it_is_asked_for() -> None:
    def none(obj: Object) -> list[tuple[Resource, str]]:
        return []

    references = References(REPLICA_SETS, none)
    assert references.index == references.index


def test_an_object_may_mention_one_in_another_namespace() -> None:
    references = References(REPLICA_SETS, lambda obj: [(SECRETS, Key("shared", "s"))])
    owner = {"metadata": {"name": "a", "namespace": "default"}}
    view = Snapshot([(REPLICA_SETS, owner)], indexes=[references.index])
    for namespace, expected in (("shared", ["a"]), ("default", [])):
        secret = Object.of(SECRETS, {"metadata": {"name": "s", "namespace": namespace}})
        assert [each.key.name for each in references.of(view, secret)] == expected
