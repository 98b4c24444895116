"""Sets of fields as managedFields write them: their algebra, their order, their one spelling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.apply import fieldsets
from holdfast.apiserver.apply.fieldsets import (
    Tree,
    difference,
    intersection,
    ordered,
    parse,
    paths,
    show,
    union,
)

A: Tree = {"f:a": {}}
B: Tree = {"f:b": {}}
BELOW: Tree = {"f:a": {"f:x": {}}}
BOTH: Tree = {"f:a": {".": {}, "f:x": {}}}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({}, {}, {}),
        (A, {}, A),
        ({}, A, A),
        (A, B, {"f:a": {}, "f:b": {}}),
        (A, BELOW, BOTH),
        (BELOW, A, BOTH),
        (BOTH, BELOW, BOTH),
        ({"f:a": {"f:x": {}}}, {"f:a": {"f:y": {}}}, {"f:a": {"f:x": {}, "f:y": {}}}),
    ],
)
def test_a_union_has_what_is_in_either(left: Tree, right: Tree, expected: Tree) -> None:
    assert union(left, right) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (A, A, {}),
        (A, {}, A),
        (A, B, A),
        (A, BELOW, A),
        (BELOW, A, BELOW),
        (BOTH, A, BELOW),
        (BOTH, BELOW, A),
        (BOTH, BOTH, {}),
        ({}, A, {}),
    ],
)
def test_a_difference_takes_members_and_not_what_is_below_them(left: Tree, right: Tree, expected: Tree) -> None:
    assert difference(left, right) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(A, A, A), (A, B, {}), (A, BELOW, {}), (BOTH, A, A), (BOTH, BELOW, BELOW), (BOTH, BOTH, BOTH), ({}, A, {})],
)
def test_an_intersection_has_what_is_in_both(left: Tree, right: Tree, expected: Tree) -> None:
    assert intersection(left, right) == expected
    assert intersection(right, left) == expected


def test_members_are_written_level_by_level_fields_before_items() -> None:
    tree: Tree = {
        "v:true": {},
        'v:"b"': {},
        "v:10": {},
        "v:9": {},
        "i:3": {},
        'k:{"port":443}': {".": {}, "f:port": {}},
        'k:{"port":80}': {},
        "f:z": {},
        "f:a": {"f:y": {}},
    }
    assert list(ordered(tree)) == [
        "f:a", "f:z", 'k:{"port":80}', 'k:{"port":443}', "v:9", "v:10", 'v:"b"', "v:true", "i:3",
    ]  # fmt: skip
    assert [show(path) for path in paths(tree)] == [
        ".z", "[port=80]", "[port=443]", "[=9]", "[=10]", '[="b"]', "[=true]", "[3]", ".a.y", "[port=443].port",
    ]  # fmt: skip


def test_a_path_is_shown_as_people_read_it() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"main"}', "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}')
    assert show(path) == '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"]'


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({".": {}, "f:a": {}}, {"f:a": {}}),
        ({'k:{ "b": 1, "a": "x" }': {}}, {'k:{"a":"x","b":1}': {}}),
        ({"v:1.0": {}}, {"v:1": {}}),
        ({'v:"<&>"': {}}, {'v:"\\u003c\\u0026\\u003e"': {}}),
        ({"i:007": {}}, {"i:7": {}}),
    ],
)
def test_what_clients_write_is_brought_into_one_spelling(written: Any, read: Tree) -> None:
    assert parse(written) == read


@pytest.mark.parametrize(
    "wrong", [None, [], {"f:a": 1}, {"": {}}, {"x:a": {}}, {"k:[]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}]
)
def test_what_is_no_set_is_refused(wrong: Any) -> None:
    with pytest.raises(fieldsets.FieldSetError, match="fieldsV1"):
        parse(wrong)


elements = st.one_of(
    st.sampled_from(["a", "b", "c"]).map(lambda name: f"f:{name}"),
    st.integers(0, 3).map(fieldsets.value_element),
    st.sampled_from(["x", "y"]).map(lambda value: fieldsets.key_element(("name",), value)),
)


def _members(chosen: list[list[str]]) -> Tree:
    tree: Tree = {}
    for path in chosen:
        one: Tree = {}
        for element in reversed(path):
            one = {element: one}
        tree = union(tree, one)
    return tree


sets = st.lists(st.lists(elements, min_size=1, max_size=4), max_size=6).map(_members)


@given(sets)
def test_a_set_survives_being_written_and_read(tree: Tree) -> None:
    assert parse(tree) == tree
    assert list(ordered(parse(tree))) == list(ordered(tree))


@given(sets, sets)
def test_the_algebra_is_that_of_sets_of_paths(left: Tree, right: Tree) -> None:
    ours, theirs = set(paths(left)), set(paths(right))
    assert set(paths(union(left, right))) == ours | theirs
    assert set(paths(difference(left, right))) == ours - theirs
    assert set(paths(intersection(left, right))) == ours & theirs


@given(sets, sets)
def test_equal_sets_are_equal_trees(left: Tree, right: Tree) -> None:
    assert union(left, right) == union(right, left)
    assert union(difference(left, right), intersection(left, right)) == left
    assert difference(union(left, right), difference(right, left)) == left
