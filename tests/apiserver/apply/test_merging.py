"""Merging a configuration into an object: order, items, nulls, and what cannot be merged."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from holdfast.apiserver.apply import merging
from holdfast.apiserver.apply.fieldsets import Tree
from holdfast.apiserver.apply.ownership import structure_of

TEXT = {"type": "string"}
STRUCTURE = structure_of(
    {
        "type": "object",
        "properties": {
            "map": {"type": "object", "additionalProperties": TEXT},
            "args": {"type": "array", "items": TEXT},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": TEXT, "value": TEXT, "inner": {"type": "object"}}},
            },
            "object": {"type": "object", "properties": {"a": TEXT, "b": {"type": "object", "properties": {"c": TEXT}}}},
        },
    }
)


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("ab", "ab", "ab"),
        ("ab", "ba", "ba"),
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("ab", "xb", "axb"),
        ("ab", "bx", "abx"),
        ("ab", "xy", "abxy"),
        ("abc", "cxb", "acxb"),
        ("abc", "bax", "bcax"),
        ("abcd", "xdyb", "acxdyb"),
    ],
)
def test_the_configurations_order_holds_and_others_stay_where_they_stood(live: str, config: str, expected: str) -> None:
    merged = merging.merge({"tags": list(live)}, {"tags": list(config)}, STRUCTURE)
    assert "".join(merged["tags"]) == expected


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"a": "1", "b": "2"}}),
        ({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}),
        ({"map": {"a": "1"}}, {"map": None}, {"map": {"a": "1"}}),
        ({"map": {"a": "1"}}, {"map": {}}, {"map": {"a": "1"}}),
        ({"map": {}}, {"map": None}, {"map": None}),
        ({"tags": ["a"]}, {"tags": None}, {"tags": ["a"]}),
        ({"map": "text"}, {"map": {"a": "1"}}, {"map": {"a": "1"}}),
        (
            {"items": [{"name": "a", "value": "1"}, {"name": "b"}]},
            {"items": [{"name": "a", "inner": {}}]},
            {"items": [{"name": "a", "value": "1", "inner": {}}, {"name": "b"}]},
        ),
        (
            {"items": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}, {"name": "b"}]},
            {"items": [{"name": "a"}]},
            {"items": [{"name": "a"}, {"name": "b"}]},
        ),
        ({"items": [{"value": "nameless"}]}, {"items": [{"name": "a"}]}, {"items": [{"name": "a"}]}),
    ],
    ids=str,
)
def test_values_are_merged_as_far_as_they_are_divided(
    live: dict[str, Any], config: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy((live, config))
    assert merging.merge(live, config, STRUCTURE) == expected
    assert (live, config) == before


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"items": [{"name": "a"}, {"name": "a"}]}, '.items: duplicate entries for key [name="a"]'),
        ({"tags": ["a", "a"]}, '.tags: duplicate entries for key [="a"]'),
        ({"items": [{"value": "1"}]}, ".items: element 0: items of this list are merged; write an object with name"),
        ({"items": [None]}, ".items: element 0: items of this list are merged; write an object with name"),
        ({"tags": [{}]}, ".tags: element 0: items of this list are merged; write a string, number or boolean"),
    ],
)
def test_items_that_cannot_be_told_apart_are_refused(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(merging.UnmergeableError) as refused:
        merging.check(config, STRUCTURE)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("gone", "kept", "expected"),
    [
        ({"f:map": {"f:a": {}}}, {}, {"map": {"b": "2"}}),
        ({"f:map": {}}, {}, {}),
        ({"f:map": {"f:a": {}, "f:b": {}}}, {}, {}),
        ({"f:map": {"f:a": {}, "f:b": {}}}, {"f:map": {}}, {"map": {}}),
        ({"f:map": {"f:absent": {}}}, {}, {"map": {"a": "1", "b": "2"}}),
    ],
    ids=str,
)
def test_what_is_gone_is_taken_out_with_what_it_empties(gone: Tree, kept: Tree, expected: dict[str, Any]) -> None:
    assert merging.without({"map": {"a": "1", "b": "2"}}, gone, STRUCTURE, kept=kept) == expected


def test_items_are_taken_out_whole_or_in_part() -> None:
    obj = {"items": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}], "tags": ["x", "y"]}
    gone: Tree = {
        "f:items": {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {"f:value": {}}},
        "f:tags": {'v:"x"': {}},
    }
    assert merging.without(obj, gone, STRUCTURE, kept={}) == {"items": [{"name": "b"}], "tags": ["y"]}


def test_parents_that_have_names_come_with_their_fields() -> None:
    tree: Tree = {
        "f:object": {"f:b": {"f:c": {}}},
        "f:map": {"f:k": {}},
        "f:items": {'k:{"name":"a"}': {"f:value": {}}},
    }
    assert merging.with_parents(tree, STRUCTURE) == {
        "f:object": {".": {}, "f:b": {".": {}, "f:c": {}}},
        "f:map": {".": {}, "f:k": {}},
        "f:items": {".": {}, 'k:{"name":"a"}': {"f:value": {}}},
    }
