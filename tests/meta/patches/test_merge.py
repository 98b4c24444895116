"""Merge patches: RFC 7386, and the three-way patch of `kubectl apply` for custom resources."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.patches.json import json_equal
from holdfast.meta.patches.merge import apply, diff


def objects() -> st.SearchStrategy[dict[str, Any]]:
    scalars = st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]) | st.lists(st.integers(0, 2) | st.none())
    keys = st.sampled_from("abcd")
    members = st.recursive(scalars, lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=12)
    return st.dictionaries(keys, members, max_size=4)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        # The table of RFC 7386, appendix A.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_patch_gives_the_document_of_the_rfc(target: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert apply(target, patch) == expected
    assert target == before


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"b": 3}, {"a": None, "b": 3}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": 1}, {"a": {}}, {"a": {}}),
        ({"a": {}}, {"a": {}}, {}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({"a": 1}, [1], [1]),
        ([1], {"a": 1}, {"a": 1}),
        ({"a": None}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({"a": 5}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_found_patch_says_only_what_changed(before: Any, after: Any, expected: Any) -> None:
    assert diff(before, after) == expected


@given(objects(), objects())
def test_found_patch_leads_from_before_to_after(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert json_equal(apply(before, diff(before, after)), after)


@given(objects(), objects())
def test_a_patch_applied_twice_is_a_patch_applied_once(target: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply(target, patch)
    assert apply(once, patch) == once
