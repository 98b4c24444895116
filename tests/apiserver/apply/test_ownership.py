"""What a schema says of ownership: leaves, items, keys, and how two objects differ."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.apiserver.apply.fieldsets import Tree
from holdfast.apiserver.apply.ownership import compare, of_object, structure_of

TEXT = {"type": "string"}
PORT = {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": {"type": "object"},
        "data": {"type": "object", "additionalProperties": TEXT},
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "limit": {"x-kubernetes-int-or-string": True},
                "args": {"type": "array", "items": TEXT},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["protocol", "port"],
                    "items": PORT,
                },
                "merged": {
                    "type": "array",
                    "x-kubernetes-patch-strategy": "merge",
                    "x-kubernetes-patch-merge-key": "name",
                    "items": {"type": "object", "properties": {"name": TEXT, "value": TEXT}},
                },
                "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": TEXT}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}
STRUCTURE = structure_of(SCHEMA)


def spec(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "a", "namespace": "n", "uid": "u"},
        "spec": fields,
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"size": 1}, {"f:size": {}}),
        ({"size": None}, {"f:size": {}}),
        ({"args": ["a", "b"]}, {"f:args": {}}),
        ({"args": []}, {"f:args": {}}),
        ({"selector": {"a": "b"}}, {"f:selector": {}}),
        ({"tags": ["x"]}, {"f:tags": {'v:"x"': {}}}),
        ({"tags": []}, {}),
        (
            {"ports": [{"port": 80}]},
            {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
        ),
        ({"merged": [{"name": "a"}]}, {"f:merged": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}),
        ({"free": {}}, {"f:free": {}}),
        ({"free": {"a": {"b": 1}, "c": [1]}}, {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}}),
    ],
    ids=str,
)
def test_a_configuration_speaks_of_its_leaves_and_items(fields: dict[str, Any], expected: Tree) -> None:
    assert of_object(spec(**fields), STRUCTURE) == ({"f:spec": expected} if expected else {})


def test_identity_and_what_only_the_server_writes_has_no_owner() -> None:
    metadata = {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2025-01-01T00:00:00Z",
        "managedFields": [],
        "labels": {"a": "b"},
        "finalizers": ["x/y"],
        "ownerReferences": [{"uid": "1", "name": "o"}],
    }
    assert of_object({"apiVersion": "v1", "kind": "Thing", "metadata": metadata}, STRUCTURE) == {
        "f:metadata": {
            "f:labels": {"f:a": {}},
            "f:finalizers": {'v:"x/y"': {}},
            "f:ownerReferences": {'k:{"uid":"1"}': {}},
        }
    }
    assert of_object({"metadata": {"name": "a"}}, structure_of({"type": "object"})) == {}


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"size": 1}, {"size": 1}, {}, {}),
        ({"size": 1}, {"size": 2}, {"f:size": {}}, {}),
        ({}, {"size": 1}, {"f:size": {}}, {}),
        ({"size": 1}, {}, {}, {"f:size": {}}),
        ({"args": ["a"]}, {"args": ["b"]}, {"f:args": {}}, {}),
        ({"selector": {"a": "b"}}, {"selector": {}}, {"f:selector": {}}, {}),
        ({}, {"free": {"a": {"b": 1}}}, {"f:free": {".": {}, "f:a": {".": {}, "f:b": {}}}}, {}),
        ({"free": {}}, {"free": {"a": 1}}, {"f:free": {"f:a": {}}}, {}),
        ({"free": None}, {"free": {"a": 1}}, {"f:free": {"f:a": {}}}, {}),
        ({"free": None}, {"free": {}}, {"f:free": {}}, {}),
        ({"free": {"a": 1}}, {"free": {}}, {}, {"f:free": {"f:a": {}}}),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": 5}}, {"f:free": {"f:a": {}}}, {"f:free": {"f:a": {"f:b": {}}}}),
        ({"limit": "50%"}, {"limit": 1}, {"f:limit": {}}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, {}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"f:tags": {'v:"b"': {}}}, {"f:tags": {'v:"a"': {}}}),
        (
            {},
            {"merged": [{"name": "a"}]},
            {"f:merged": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}}},
            {},
        ),
        (
            {"merged": [{"name": "a", "value": "1"}, {"name": "b"}]},
            {"merged": [{"name": "b"}, {"name": "a", "value": "2"}]},
            {"f:merged": {'k:{"name":"a"}': {"f:value": {}}}},
            {},
        ),
        (
            {"merged": [{"name": "a", "value": "1"}]},
            {"merged": [{"name": "a"}, {"name": "a"}]},
            {"f:merged": {'k:{"name":"a"}': {}}},
            {"f:merged": {'k:{"name":"a"}': {"f:name": {}, "f:value": {}}}},
        ),
        ({"merged": [{"name": "a"}]}, {"merged": [{"value": "nameless"}]}, {"f:merged": {}},
         {"f:merged": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}),
    ],
    ids=str,
)  # fmt: skip
def test_two_objects_differ_in_fields(old: dict[str, Any], new: dict[str, Any], changed: Tree, removed: Tree) -> None:
    found = compare(spec(**old), spec(**new), STRUCTURE)
    assert found.changed == ({"f:spec": changed} if changed else {})
    assert found.removed == ({"f:spec": removed} if removed else {})


def test_server_owned_metadata_makes_no_difference() -> None:
    old, new = spec(size=1), spec(size=1)
    new["metadata"] |= {"resourceVersion": "2", "generation": 7, "managedFields": [{}]}
    found = compare(old, new, STRUCTURE)
    assert (found.changed, found.removed) == ({}, {})


def test_circular_schemas_are_read_as_far_as_objects_go() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"value": TEXT}}
    node["properties"]["next"] = node
    obj = {"metadata": {}, "value": "1", "next": {"next": {"value": "3"}}}
    assert of_object(obj, structure_of(node)) == {"f:value": {}, "f:next": {"f:next": {"f:value": {}}}}


def test_a_new_object_of_a_built_in_kind_has_its_empty_structs_already() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "default": {}, "properties": {"name": TEXT}},
            "spec": {
                "type": "object",
                "default": {},
                "required": ["containers", "serviceName"],
                "properties": {
                    "containers": {"type": "array"},
                    "serviceName": {"type": "string", "default": ""},
                    "replicas": {"type": "integer", "default": 1},
                    "pointer": {"type": "object", "properties": {"a": TEXT}},
                },
            },
        },
    }
    assert structure_of(schema).blank() == {"metadata": {}, "spec": {"containers": None, "serviceName": ""}}
