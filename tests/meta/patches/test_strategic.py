"""Strategic merge patches: the API server's recorded answers, the directives, and the patches that clients make."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.patches.json import json_equal
from holdfast.meta.patches.strategic import (
    MalformedDirective,
    MissingMergeKey,
    Schema,
    StrategicPatchError,
    apply,
)


def merged(strategy: str = "merge", *, key: str = "", **fields: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI schema of a list that is merged; without a key it is a set."""
    keyed = {"x-kubernetes-patch-merge-key": key} if key else {}
    items = {"type": "object", "properties": fields}
    return {"type": "array", "items": items, "x-kubernetes-patch-strategy": strategy, **keyed}


def nested(schema: dict[str, Any], *path: str) -> Schema:
    """The schema of an object that has a field of this schema at a path."""
    for name in reversed(path):
        schema = {"type": "object", "properties": {name: schema}}
    return Schema(schema)


CONTAINERS = merged(key="name", env=merged(key="name"), ports=merged(key="containerPort"))
POD = nested(merged(key="type"), "status", "conditions")
DEPLOYMENT = nested(CONTAINERS, "spec", "template", "spec", "containers")

# One field of each kind: keyed, keyed and nested, keyed union, set, replaced object, union.
EVERYTHING = Schema(
    {
        "properties": {
            "items": merged(key="name", parts=merged(key="id"), tags=merged()),
            "volumes": merged("merge,retainKeys", key="name"),
            "tags": merged(),
            "selector": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
            "strategy": {"type": "object", "x-kubernetes-patch-strategy": "merge,retainKeys"},
        }
    }
)


def template(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


MAIN = {"name": "main", "image": "nginx:1", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}
SIDE = {"name": "side", "image": "envoy:1"}


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param(template(MAIN), template(SIDE), template(SIDE, MAIN), id="a new item comes first"),
        pytest.param(
            template(SIDE, MAIN),
            template({"name": "main", "image": "nginx:2", "env": [{"name": "B", "value": "2"}]}),
            template(
                SIDE,
                {**MAIN, "image": "nginx:2", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]},
            ),
            id="an item is merged into its namesake, and so are its lists",
        ),
        pytest.param(
            template(SIDE, MAIN),
            template({"name": "side", "$patch": "delete"}),
            template(MAIN),
            id="an item is deleted",
        ),
        pytest.param(
            template(MAIN),
            template({"$patch": "replace"}, {"name": "only", "image": "x"}),
            template({"name": "only", "image": "x"}),
            id="a keyed list is replaced",
        ),
        pytest.param(
            {"spec": {"replicas": 2, "x": 1}}, {"spec": {"replicas": None}}, {"spec": {"x": 1}}, id="null removes"
        ),
    ],
)
def test_deployment_is_patched_as_the_api_server_does(
    original: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert apply(original, patch, schema=DEPLOYMENT) == expected


def test_conditions_of_a_pod_are_merged_by_type() -> None:
    pod = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert apply(pod, patch, schema=POD)["status"]["conditions"] == [
        {"type": "Ready", "status": "False"},
        {"type": "PodScheduled", "status": "True"},
    ]


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}, id="objects are merged"),
        pytest.param({"l": [1, 2]}, {"l": [3]}, {"l": [3]}, id="lists without a key are replaced"),
        pytest.param({"a": {"x": 1}}, {"a": {"$patch": "replace", "y": 2}}, {"a": {"y": 2}}, id="$patch replace"),
        pytest.param({"a": {"x": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="$patch delete empties an object"),
        pytest.param({"a": {"x": 1}}, {"a": {"$patch": "merge", "y": 2}}, {"a": {"x": 1, "y": 2}}, id="$patch merge"),
        pytest.param({"x": 1}, {"$patch": "replace", "y": 2}, {"y": 2}, id="$patch replace of everything"),
        pytest.param({"selector": {"a": 1}}, {"selector": {"b": 1}}, {"selector": {"b": 1}}, id="an atomic object"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="another type replaces"),
        pytest.param({"items": None}, {"items": [{"name": "a"}]}, {"items": [{"name": "a"}]}, id="null is no list"),
        pytest.param(
            {}, {"a": {"b": {"c": None, "d": 1}}}, {"a": {"b": {"d": 1}}}, id="nulls of new values are dropped"
        ),
        pytest.param(
            {},
            {
                "items": [
                    {"$patch": "replace"},
                    {"name": "a", "$patch": "delete"},
                    {"name": "b", "$retainKeys": ["name"]},
                ],
                "$setElementOrder/items": [{"name": "b"}],
                "$deleteFromPrimitiveList/tags": ["x"],
                "gone": {"$patch": "delete"},
            },
            {"items": [{"name": "b"}]},
            id="directives never reach a new value",
        ),
        pytest.param(
            {"items": [{"name": "a", "id": 1}, {"name": "b"}, {"name": "a", "id": 2}]},
            {"items": [{"name": "a", "$patch": "delete"}]},
            {"items": [{"name": "b"}]},
            id="delete takes all with that key",
        ),
        pytest.param(
            {"items": [{"name": "a"}]},
            {"items": [{"name": "zz", "$patch": "delete"}]},
            {"items": [{"name": "a"}]},
            id="delete of nothing",
        ),
        pytest.param(
            {"items": [{"odd": 1}, "odder", {"name": "a"}]},
            {"items": [{"name": "a", "v": 1}]},
            {"items": [{"odd": 1}, "odder", {"name": "a", "v": 1}]},
            id="stored items without a key are left alone",
        ),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["c", "a"]}, {"tags": ["c", "a", "b"]}, id="sets are united"),
        pytest.param(
            {"tags": ["a", "b", "c"]},
            {"$deleteFromPrimitiveList/tags": ["b", "z"]},
            {"tags": ["a", "c"]},
            id="set deletion",
        ),
        pytest.param({}, {"$deleteFromPrimitiveList/tags": ["b"]}, {}, id="set deletion from nothing"),
        pytest.param(
            {"tags": ["a", "b", "c"]},
            {"tags": ["d"], "$deleteFromPrimitiveList/tags": ["a"], "$setElementOrder/tags": ["c", "d", "b"]},
            {"tags": ["c", "d", "b"]},
            id="a set: add, delete and order",
        ),
        pytest.param(
            {"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            {"$setElementOrder/items": [{"name": "c"}, {"name": "a"}]},
            {"items": [{"name": "b"}, {"name": "c"}, {"name": "a"}]},
            id="order alone; what it does not name keeps its place",
        ),
        pytest.param(
            {"items": [{"name": "a"}, {"name": "b"}]},
            {"items": [{"name": "new"}], "$setElementOrder/items": [{"name": "a"}, {"name": "new"}, {"name": "b"}]},
            {"items": [{"name": "a"}, {"name": "new"}, {"name": "b"}]},
            id="order places a new item",
        ),
        pytest.param({}, {"$setElementOrder/items": [{"name": "a"}]}, {}, id="order of nothing"),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="retainKeys drops what the new type excludes",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
            id="retainKeys inside a keyed list",
        ),
        pytest.param(
            {"a": {"$ref": "x"}}, {"a": {"$ref": "y"}}, {"a": {"$ref": "y"}}, id="other dollars are plain members"
        ),
    ],
)
def test_patch_gives_the_expected_object(
    original: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    before, patch_before = copy.deepcopy(original), copy.deepcopy(patch)
    assert apply(original, patch, schema=EVERYTHING) == expected
    assert (original, patch) == (before, patch_before)


@pytest.mark.parametrize(
    ("patch", "error", "path"),
    [
        ({"a": {"$patch": "explode"}}, MalformedDirective, "a"),
        ({"items": [{"name": "a", "$patch": []}]}, MalformedDirective, "items"),
        ({"items": [{"image": "x"}]}, MissingMergeKey, "items[0]"),
        ({"items": ["x"]}, MissingMergeKey, "items[0]"),
        ({"items": [{"$patch": "delete"}]}, MissingMergeKey, "items[0]"),
        ({"items": [{"name": {"deep": 1}}]}, MissingMergeKey, "items[0]"),
        ({"items": [{"name": "a", "parts": [{}]}]}, MissingMergeKey, "items[a].parts[0]"),
        ({"tags": [{"x": 1}]}, MissingMergeKey, "tags[0]"),
        ({"$setElementOrder/items": "a"}, MalformedDirective, ""),
        ({"$setElementOrder/items": [{"x": 1}]}, MissingMergeKey, "items"),
        ({"$deleteFromPrimitiveList/tags": {}}, MalformedDirective, ""),
        ({"$setElementOrder/items": [], "items": [{"name": "a"}]}, MalformedDirective, "items"),
        (
            {"$setElementOrder/tags": ["x", "y"], "tags": ["y", "x"]},
            MalformedDirective,
            "tags",
        ),
        ({"strategy": {"$retainKeys": "type"}}, MalformedDirective, "strategy"),
        ({"strategy": {"$retainKeys": ["type"], "x": 1}}, MalformedDirective, "strategy"),
    ],
)
def test_patch_that_cannot_be_applied_says_where(
    patch: dict[str, Any], error: type[StrategicPatchError], path: str
) -> None:
    original = {"a": {}, "items": [{"name": "a", "parts": []}], "tags": ["t"], "strategy": {}}
    with pytest.raises(error) as caught:
        apply(original, patch, schema=EVERYTHING)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("original", "modified", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 1}, {"a": 2}, {"a": 2, "b": None}),
        (
            {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 1}]},
            {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]},
            {"items": [{"name": "b", "v": 2}]},
        ),
        (
            {"items": [{"name": "a"}, {"name": "b"}]},
            {"items": [{"name": "b"}]},
            {"items": [{"$patch": "delete", "name": "a"}]},
        ),
        (
            {"items": [{"name": "a"}]},
            {"items": [{"name": "a"}, {"name": "b"}]},
            {"items": [{"name": "b"}], "$setElementOrder/items": [{"name": "a"}, {"name": "b"}]},
        ),
        (
            {"items": [{"name": "a"}, {"name": "b"}]},
            {"items": [{"name": "b"}, {"name": "a"}]},
            {"$setElementOrder/items": [{"name": "b"}, {"name": "a"}]},
        ),
        (
            {"tags": ["a", "b"]},
            {"tags": ["b", "c"]},
            {"tags": ["c"], "$deleteFromPrimitiveList/tags": ["a"], "$setElementOrder/tags": ["b", "c"]},
        ),
        (
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
            {"strategy": {"type": "Recreate"}},
            {"strategy": {"type": "Recreate", "rollingUpdate": None, "$retainKeys": ["type"]}},
        ),
        ({"selector": {"a": 1, "b": 1}}, {"selector": {"a": 1}}, {"selector": {"a": 1}}),
        # Two ports 53 cannot be told apart by their key.
        (
            {"items": [{"name": 53, "protocol": "TCP"}]},
            {"items": [{"name": 53, "protocol": "TCP"}, {"name": 53, "protocol": "UDP"}]},
            {"items": [{"$patch": "replace"}, {"name": 53, "protocol": "TCP"}, {"name": 53, "protocol": "UDP"}]},
        ),
        ({"items": [{"name": 53}, {"name": 53}]}, {"items": [{"name": 53}, {"name": 53}]}, {}),
    ],
)
def test_the_patches_that_clients_make_lead_from_the_original_to_the_modified_object(
    original: dict[str, Any], modified: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert apply(original, patch, schema=EVERYTHING) == modified


def objects() -> st.SearchStrategy[dict[str, Any]]:
    scalars = st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"])
    plain = st.recursive(
        scalars, lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, max_size=3), max_leaves=6
    )
    tags = st.lists(st.sampled_from("abcde"), unique=True)
    part = st.fixed_dictionaries({"id": st.integers(0, 4)}, optional={"v": plain})
    parts = st.lists(part, max_size=3, unique_by=lambda each: int(each["id"]))
    item = st.fixed_dictionaries(
        {"name": st.sampled_from("abcde")}, optional={"v": plain, "w": plain, "parts": parts, "tags": tags}
    )
    items = st.lists(item, max_size=4, unique_by=lambda each: str(each["name"]))
    return st.fixed_dictionaries(
        {},
        optional={
            "items": items,
            "volumes": items,
            "tags": tags,
            "selector": st.dictionaries(st.sampled_from("xyz"), plain),
            "strategy": st.dictionaries(st.sampled_from("xyz"), plain) | scalars,
            "other": plain | st.lists(plain, max_size=3),
        },
    )


@given(objects(), objects())
def test_a_patch_changes_neither_the_original_nor_itself(original: dict[str, Any], patch: dict[str, Any]) -> None:
    before, patch_before = copy.deepcopy(original), copy.deepcopy(patch)
    apply(original, patch, schema=EVERYTHING)
    assert json_equal(original, before)
    assert json_equal(patch, patch_before)


@given(objects(), objects())
def test_what_a_patch_says_is_so_afterwards_and_stays_so(original: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply(original, patch, schema=EVERYTHING)
    assert json_equal(apply(once, patch, schema=EVERYTHING), once)
