"""JSON Patch: the operations of RFC 6902, its errors, and its limits."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.patches import json as jsonpatch
from holdfast.meta.patches.json import (
    InvalidOperation,
    JSONPatchError,
    PatchTooLarge,
    TargetMissing,
    TestFailed,
    apply,
    format_pointer,
    json_equal,
    parse_pointer,
)


def json_values() -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5]) | st.text(max_size=2)
    keys = st.sampled_from(["a", "b", "", "~", "/", "~1", "0", "-"])
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=15
    )


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": None}, {"a": None}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": [2]}, {"a": [1, [2]]}),
        ({"a": 1}, {"op": "add", "path": "", "value": [1]}, [1]),
        ({"": 1}, {"op": "add", "path": "/", "value": 2}, {"": 2}),
        ({"a": {"b": {"c": 1}}}, {"op": "remove", "path": "/a/b/c"}, {"a": {"b": {}}}),
        ([1, 2, 3], {"op": "remove", "path": "/1"}, [1, 3]),
        ({"a": 1}, {"op": "remove", "path": ""}, None),
        ({"a/b": 1, "c~d": 2}, {"op": "remove", "path": "/a~1b"}, {"c~d": 2}),
        ({"~1": 1}, {"op": "replace", "path": "/~01", "value": 2}, {"~1": 2}),
        ({"a": [1, 2]}, {"op": "replace", "path": "/a/0", "value": {}}, {"a": [{}, 2]}),
        ({"a": 1}, {"op": "replace", "path": "", "value": 5}, 5),
        ({"a": {"x": 1}}, {"op": "move", "from": "/a/x", "path": "/b"}, {"a": {}, "b": 1}),
        ([1, 2, 3], {"op": "move", "from": "/0", "path": "/2"}, [2, 3, 1]),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
        ({"a": 1}, {"op": "move", "from": "", "path": ""}, {"a": 1}),
        ({"a": {"b": 1}}, {"op": "move", "from": "/a/b", "path": "/a"}, {"a": 1}),
        ({"a": {"x": 1}}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a": 1}, {"op": "copy", "from": "", "path": "/b"}, {"a": 1, "b": {"a": 1}}),
        ({"a": [1, {"b": 2}]}, {"op": "test", "path": "/a", "value": [1.0, {"b": 2}]}, {"a": [1, {"b": 2}]}),
        ({"a": None}, {"op": "test", "path": "/a", "value": None}, {"a": None}),
        # The API server lets a test against null pass for a member that is not there.
        ({"a": {}}, {"op": "test", "path": "/a/b", "value": None}, {"a": {}}),
        # Members that an operation does not define are ignored.
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2, "from": 7, "x": 1}, {"a": 1, "b": 2}),
    ],
)
def test_operation_gives_the_document_of_the_rfc(document: Any, operation: dict[str, Any], expected: Any) -> None:
    before = copy.deepcopy(document)
    assert apply(document, [operation]) == expected
    assert document == before


@pytest.mark.parametrize(
    ("operation", "error", "pointer"),
    [
        ({"op": "remove", "path": "/none"}, TargetMissing, "/none"),
        ({"op": "remove", "path": "/list/2"}, TargetMissing, "/list/2"),
        ({"op": "remove", "path": "/list/-"}, TargetMissing, "/list/-"),
        ({"op": "replace", "path": "/none", "value": 1}, TargetMissing, "/none"),
        ({"op": "add", "path": "/none/b", "value": 1}, TargetMissing, "/none"),
        ({"op": "add", "path": "/list/3", "value": 1}, TargetMissing, "/list/3"),
        ({"op": "add", "path": "/text/x", "value": 1}, TargetMissing, "/text"),
        ({"op": "add", "path": "/text/x/y", "value": 1}, TargetMissing, "/text"),
        ({"op": "add", "path": "/list/01", "value": 1}, InvalidOperation, "/list/01"),
        ({"op": "add", "path": "/list/-1", "value": 1}, InvalidOperation, "/list/-1"),
        ({"op": "add", "path": "/list/x", "value": 1}, InvalidOperation, "/list/x"),
        ({"op": "add", "path": "/list/²", "value": 1}, InvalidOperation, "/list/²"),
        ({"op": "add", "path": "/list/" + "9" * 5000, "value": 1}, TargetMissing, "/list/" + "9" * 5000),
        ({"op": "move", "from": "/none", "path": "/x"}, TargetMissing, "/none"),
        ({"op": "move", "from": "/map", "path": "/map/x"}, InvalidOperation, "/map"),
        ({"op": "copy", "from": "/none", "path": "/x"}, TargetMissing, "/none"),
        ({"op": "test", "path": "/text", "value": "other"}, TestFailed, "/text"),
        ({"op": "test", "path": "/one", "value": True}, TestFailed, "/one"),
        ({"op": "test", "path": "/text", "value": None}, TestFailed, "/text"),
        ({"op": "test", "path": "/list/9", "value": None}, TargetMissing, "/list/9"),
        ({"op": "test", "path": "/none", "value": 1}, TargetMissing, "/none"),
        ({"op": "fly", "path": "/text"}, InvalidOperation, "/text"),
        ({"path": "/text"}, InvalidOperation, "/text"),
        ({"op": "add", "path": "/x"}, InvalidOperation, "/x"),
        ({"op": "add", "value": 1}, InvalidOperation, None),
        ({"op": "add", "path": 5, "value": 1}, InvalidOperation, None),
        ({"op": "copy", "path": "/x"}, InvalidOperation, None),
        ({"op": "add", "path": "x", "value": 1}, InvalidOperation, "x"),
        ({"op": "add", "path": "/~2", "value": 1}, InvalidOperation, "/~2"),
        ("add", InvalidOperation, None),
    ],
)
def test_operation_that_cannot_be_done_says_which_and_where(
    operation: Any, error: type[JSONPatchError], pointer: str | None
) -> None:
    document = {"text": "abc", "list": [1, 2], "map": {"k": "v"}, "one": 1}
    with pytest.raises(error) as caught:
        apply(document, [{"op": "test", "path": "/one", "value": 1}, operation])
    assert caught.value.index == 1
    assert caught.value.pointer == pointer
    assert str(caught.value).startswith("operation 1")
    assert document == {"text": "abc", "list": [1, 2], "map": {"k": "v"}, "one": 1}


@pytest.mark.parametrize("patch", [{"op": "add"}, "[]", None, 5])
def test_patch_that_is_no_array_is_refused(patch: Any) -> None:
    with pytest.raises(InvalidOperation, match="array of operations"):
        apply({}, patch)


def test_operations_see_what_those_before_them_did() -> None:
    patch = [
        {"op": "add", "path": "/metadata/labels", "value": {"k": "v"}},
        {"op": "copy", "from": "/data/a", "path": "/data/z"},
        {"op": "move", "from": "/data/b", "path": "/data/y"},
        {"op": "test", "path": "/metadata/labels/k", "value": "v"},
    ]
    document = {"metadata": {"name": "x"}, "data": {"a": "9", "b": "2"}}
    assert apply(document, patch) == {
        "metadata": {"name": "x", "labels": {"k": "v"}},
        "data": {"a": "9", "y": "2", "z": "9"},
    }


def test_a_patch_that_fails_late_has_done_nothing() -> None:
    document = {"a": {"b": [1]}}
    with pytest.raises(TestFailed):
        apply(document, [{"op": "add", "path": "/a/b/-", "value": 2}, {"op": "test", "path": "/a", "value": 0}])
    assert document == {"a": {"b": [1]}}


def test_untouched_parts_are_shared_not_copied() -> None:
    document = {"spec": {"replicas": 1}, "status": {"ready": 1}}
    patched = apply(document, [{"op": "replace", "path": "/spec/replicas", "value": 2}])
    assert patched["status"] is document["status"]


def test_more_operations_than_the_limit_are_refused() -> None:
    operation = {"op": "test", "path": "", "value": {}}
    assert apply({}, [operation] * jsonpatch.MAX_OPERATIONS) == {}
    with pytest.raises(PatchTooLarge, match="10001 operations"):
        apply({}, [operation] * (jsonpatch.MAX_OPERATIONS + 1))


def test_copies_that_double_a_document_over_and_over_are_stopped() -> None:
    with pytest.raises(PatchTooLarge, match="copies add more than"):
        apply({"a": "x" * 100}, [{"op": "copy", "from": "", "path": "/a"}, *_doublings(64)])


def _doublings(times: int) -> list[dict[str, Any]]:
    return [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(times)]


@given(st.lists(st.text(alphabet="ab~/01", max_size=4), max_size=4))
def test_pointer_parses_to_the_tokens_it_was_made_of(tokens: list[str]) -> None:
    assert parse_pointer(format_pointer(tokens)) == tuple(tokens)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (True, True, True),
        (True, 1, False),
        ([0], [False], False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ("1", 1, False),
        (None, False, False),
    ],
)
def test_values_are_compared_as_json_compares_them(a: Any, b: Any, equal: bool) -> None:
    assert json_equal(a, b) is equal
    assert json_equal(b, a) is equal
