"""JSONPath as kubectl speaks it: what paths select, how templates print, and where errors point."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.jsonpath import evaluate
from holdfast.meta.jsonpath.evaluate import EvaluationError, InvalidExpression, JSONPathError, MissingKey, text_of

TENANT = {
    "metadata": {"name": "dev", "labels": {"app.kubernetes.io/name": "rustfs", "tier": "x"}},
    "status": {
        "pools": [
            {"name": "a", "state": "PoolUpdating", "ready": 3, "replicas": 4, "busy": True},
            {
                "name": "b",
                "state": "PoolRolloutComplete",
                "ready": 4,
                "replicas": 4,
                "busy": False,
                "note": "it's (ok)",
            },
            {"name": "c", "state": "PoolUpdating", "ready": 0, "replicas": 4, "share": 0.5, "gone": None},
        ]
    },
}

NODES = {
    "kind": "List",
    "items": [
        {
            "metadata": {"name": "n1"},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": {"cpu": "4"},
            },
        },
        {
            "metadata": {"name": "n2"},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "Hostname", "address": "h2"}],
                "conditions": [{"type": "Ready", "status": "False"}],
                "capacity": {"cpu": "8"},
            },
        },
    ],
}


def names(found: list[Any]) -> list[str]:
    return [pool["name"] for pool in found]


def test_pools_that_are_updating_are_found() -> None:
    path = evaluate.compile('{.status.pools[?(@.state=="PoolUpdating")]}')
    assert names(path.find(TENANT)) == ["a", "c"]
    assert path.render({"status": {"pools": [{"state": "PoolUpdating", "name": "a"}, {"state": "x"}]}}) == (
        '{"name":"a","state":"PoolUpdating"}'
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("{.metadata.name}", ["dev"]),
        (".metadata.name", ["dev"]),
        ("metadata.name", ["dev"]),
        ("$.metadata.name", ["dev"]),
        ("@.metadata.name", ["dev"]),
        ("{$.metadata.name}", ["dev"]),
        ("{ .metadata.name }", ["dev"]),
        ("['metadata'].name", ["dev"]),
        ("metadata['name']", ["dev"]),
        ('metadata["name"]', ["dev"]),
        ("['metadata.name']", ["dev"]),
        (r"metadata.labels.app\.kubernetes\.io/name", ["rustfs"]),
        (r"metadata.labels['app\.kubernetes\.io/name']", ["rustfs"]),
        ("{.metadata.labels.*}", ["rustfs", "x"]),
        ("metadata['name','labels.tier']", ["dev", "x"]),
        ("status.pools[0].name", ["a"]),
        ("status.pools[-1].name", ["c"]),
        ("status.pools[0:2].name", ["a", "b"]),
        ("status.pools[0:-1].name", ["a", "b"]),
        ("status.pools[:2].name", ["a", "b"]),
        ("status.pools[-2:].name", ["b", "c"]),
        ("status.pools[1:].name", ["b", "c"]),
        ("status.pools[::2].name", ["a", "c"]),
        ("status.pools[1:1].name", []),
        ("status.pools[3:].name", []),
        ("status.pools[0,2].name", ["a", "c"]),
        ("status.pools[ 2 , 0 ].name", ["c", "a"]),
        ("status.pools[0:1,2].name", ["a", "c"]),
        ("status.pools[*].name", ["a", "b", "c"]),
        ("status.pools.*.name", ["a", "b", "c"]),
        ("..name", ["dev", "a", "b", "c"]),
        ("status..name", ["a", "b", "c"]),
        ("{...name}", ["dev", "a", "b", "c"]),
        ("..pools[0].name", ["a"]),
        ("status.pools[*].note", ["it's (ok)"]),
        ("status.pools[2].gone", [None]),
        ("status.pools[2].gone.deeper", []),
        ("status.pools[2].gone[0]", []),
        ("metadata.none.deeper", []),
        ("metadata.name.deeper", []),
    ],
)
def test_path_selects_values(expression: str, expected: list[Any]) -> None:
    assert evaluate.compile(expression).find(TENANT) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('@.state=="PoolUpdating"', ["a", "c"]),
        ("@.state=='PoolUpdating'", ["a", "c"]),
        ('@.state == "PoolUpdating"', ["a", "c"]),
        ('$.state=="PoolUpdating"', ["a", "c"]),
        ('.state=="PoolUpdating"', ["a", "c"]),
        ('"PoolUpdating"==@.state', ["a", "c"]),
        ('@.state!="PoolUpdating"', ["b"]),
        ("@.ready<3", ["c"]),
        ("@.ready<=3", ["a", "c"]),
        ("@.ready>3", ["b"]),
        ("@.ready>=3", ["a", "b"]),
        ("@.ready>-1", ["a", "b", "c"]),
        ("@.ready<3.5", ["a", "c"]),
        ("@.ready==@.replicas", ["b"]),
        ("@.busy==true", ["a"]),
        ("@.busy!=true", ["b"]),
        ("@.share", ["c"]),
        ("@.share<1", ["c"]),
        ("@.gone", ["c"]),
        ("@.gone==1", []),
        ("@.none", []),
        ("@.none[7]", []),
        ("@.name[0]", []),
        ("@.none==1", []),
        (r'@.note=="it\'s (ok)"', ["b"]),
        ('@.name>"a"', ["b", "c"]),
    ],
)
def test_filter_keeps_the_items_that_pass(condition: str, expected: list[str]) -> None:
    assert names(evaluate.compile(f".status.pools[?({condition})]").find(TENANT)) == expected


def test_filter_may_hold_a_filter() -> None:
    path = evaluate.compile('{.items[?(@.status.conditions[?(@.type=="Ready")].status=="True")].metadata.name}')
    assert path.find(NODES) == ["n1"]


def test_filter_works_on_plain_numbers() -> None:
    assert evaluate.compile("{[?(@<5)]}").render([2, 6, 3, 7]) == "2 3"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.kind}", "List"),
        ("kind: {.kind}!", "kind: List!"),
        ("{.items[*].metadata.name}", "n1 n2"),
        ("{range .items[*]}{.metadata.name}, {end}{.kind}", "n1, n2, List"),
        (r'{range .items[*]}{.metadata.name}{"\t"}{.status.capacity}{"\n"}{end}', 'n1\t{"cpu":"4"}\nn2\t{"cpu":"8"}\n'),
        ("{range .items[*]}{range .status.addresses[*]}{.address} {end}; {end}", "10.0.0.1 ; 10.0.0.2 h2 ; "),
        ("{range .items[*]}{@.metadata.name}{' '}{end}", "n1 n2 "),
        ("{range .none[*]}{.x}{end}done", "done"),
        ("{.items[*]['metadata.name', 'status.capacity']}", 'n1 n2 {"cpu":"4"} {"cpu":"8"}'),
        ("before-{.none}-after", "before--after"),
        ('{"{"}{.kind}{"}"}', "{List}"),
        (r'{"a\"\\\u00e9\x41"}', 'a"\\éA'),
        ("{.items[0].status.capacity}", '{"cpu":"4"}'),
        ("{.items[0].status.addresses}", '[{"address":"10.0.0.1","type":"InternalIP"}]'),
    ],
)
def test_template_prints_as_kubectl_does(template: str, expected: str) -> None:
    assert evaluate.compile(template).render(NODES) == expected


def test_find_on_a_template_leaves_the_text_out() -> None:
    assert evaluate.compile("{range .items[*]}name={.metadata.name};{end}{.kind}").find(NODES) == ["n1", "n2", "List"]


@pytest.mark.parametrize("expression", ["{.}", "{@}", "{$}", ".", "@"])
def test_a_lone_dot_is_the_whole_value(expression: str) -> None:
    assert evaluate.compile(expression).find(TENANT) == [TENANT]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x y", "x y"),
        ("", ""),
        (True, "true"),
        (None, "null"),
        (7, "7"),
        (1.0, "1"),
        (2.5, "2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-05, "1e-05"),
        ([1, "a", None], '[1,"a",null]'),
        ({"b": "<&>", "a": 1}, '{"a":1,"b":"<&>"}'),
    ],
)
def test_value_is_printed_as_kubectl_does(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("expression", "position"),
    [
        ("{.none}", 2),
        ("{.metadata.none}", 11),
        (".metadata.name.deeper", 15),
        ("{.status.pools[*].none}", 18),
        ("{.status.pools[?(@.share>0)]}", 19),
    ],
)
def test_missing_key_is_an_error_only_if_asked_for(expression: str, position: int) -> None:
    path = evaluate.compile(expression)
    path.find(TENANT)
    with pytest.raises(MissingKey) as caught:
        path.find(TENANT, missing_ok=False)
    assert caught.value.position == position
    with pytest.raises(MissingKey):
        path.render(TENANT, missing_ok=False)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (".status.pools[0].ready", 3),
        (".status.pools[*].name", "a"),
        (".status.none", None),
        (".status.pools[9].name", None),
        (".metadata[0]", None),
        ('.status.pools[?(@.state=="none")].name', None),
    ],
)
def test_printer_column_shows_the_first_value_or_nothing(expression: str, expected: Any) -> None:
    assert evaluate.compile(expression).first(TENANT) == expected


@pytest.mark.parametrize(
    ("expression", "problem", "position"),
    [
        (".status.pools[3]", "out of bounds", 13),
        (".status.pools[-4]", "out of bounds", 13),
        (".status.pools[0:4]", "out of bounds", 13),
        (".status.pools[5:]", "out of bounds", 13),
        (".status.pools[2:1]", "after its end", 13),
        (".metadata[0]", "only a list", 9),
        (".metadata[*]", "only a list", 9),
        (".metadata.labels[?(@.x)]", "only a list", 16),
        (".status.pools[?(@.ready=='3')]", 'cannot compare 3 == "3"', 13),
        (".status.pools[?(@.busy>true)]", "cannot compare", 13),
        (".status.pools[?(@.*==1)]", "one value with one value", 13),
    ],
)
def test_expression_that_does_not_fit_says_where(expression: str, problem: str, position: int) -> None:
    with pytest.raises(EvaluationError, match=problem) as caught:
        evaluate.compile(expression).find(TENANT)
    assert caught.value.position == position
    assert not isinstance(caught.value, MissingKey)


@pytest.mark.parametrize(
    ("expression", "problem", "position"),
    [
        ("{hello}", "a field starts with a dot", 1),
        ("{5}", "a field starts with a dot", 1),
        ("{.a", "never closed", 0),
        ("{.items[0}", "expected ']', not '}'", 9),
        ("{.a]}", "expected '}', not ']'", 3),
        (".a[0", "never closed", 2),
        (".a[]", "expected an index", 3),
        (".a[x]", "expected an index", 3),
        (".a[-]", "expected an index", 3),
        (".a['x]", "never closed", 3),
        (".a[0:1:0]", "1 or more", 3),
        (".a[1234567890]", "expected ']'", 12),
        (".a b", "a field starts with a dot", 3),
        (".a@", "unexpected '@'", 2),
        (".a\\", "needs a character after it", 2),
        ("....a", "twice in a row", 2),
        ('{"text}', "open here", 1),
        (r'{"\q"}', "unknown escape", 2),
        (r'{"\u12"}', "hex digits", 2),
        (r'{"\ud800"}', "hex digits", 2),
        (r'{"\U00110000"}', "hex digits", 2),
        ("x{end}", "without a {range", 1),
        ("{.a}{range .b[*]}{.c}", "has no {end}", 4),
        (".a[?x]", r"written [?(", 4),
        (".a[?()]", "expected a path", 5),
        (".a[?(@.x==)]", "expected a path", 10),
        (".a[?(@.x==null)]", "expected a path", 10),
        (".a[?(@.x=1)]", "write ==", 8),
        ('.a[?(@.x=~"y")]', "no regular expressions", 8),
        (".a[?(@.x<>1)]", "the operators are", 8),
        (".a[?(@.x && @.y)]", "no && and no ||", 9),
        (".a[?(@.x==1 || @.y==2)]", "no && and no ||", 12),
        (".a[?(@.x==1", "never closed", 2),
        (".a[?(@.x==1)", "never closed", 2),
        (".a" + "[?(@" * 20, "nested more than 16 deep", 66),
    ],
)
def test_expression_that_cannot_be_read_points_at_the_place(expression: str, problem: str, position: int) -> None:
    with pytest.raises(InvalidExpression) as caught:
        evaluate.compile(expression)
    assert problem in caught.value.problem
    assert caught.value.position == position


def test_error_shows_the_line_with_a_caret_below_the_place() -> None:
    with pytest.raises(JSONPathError) as caught:
        evaluate.compile("first\n{.items[0}\nlast")
    assert str(caught.value).splitlines()[1:] == ["  {.items[0}", "           ^"]


def test_compiled_path_is_remembered_and_frozen() -> None:
    path = evaluate.compile("{.a}")
    assert evaluate.compile("{.a}") is path
    with pytest.raises(dataclasses.FrozenInstanceError):
        path.expression = "{.b}"


FRAGMENTS = [
    "{",
    "}",
    "[",
    "]",
    ".",
    "..",
    "*",
    "a",
    "b",
    "0",
    "-1",
    ":",
    ",",
    "?(",
    ")",
    "@",
    "$",
    "==",
    "<",
    "'",
    '"',
    "\\",
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.sampled_from([*FRAGMENTS, "range ", "end", " ", "true"]), max_size=14).map("".join), JSON_VALUES)
def test_any_text_either_works_or_fails_with_our_error(expression: str, value: Any) -> None:
    before = copy.deepcopy(value)
    with contextlib.suppress(JSONPathError):
        evaluate.compile(expression).render(value)
    assert value == before


@given(st.lists(st.text(min_size=1, max_size=5).filter(lambda name: name != "*"), min_size=1, max_size=4), JSON_VALUES)
def test_any_name_can_be_written_with_escapes(path: list[str], leaf: Any) -> None:
    value = leaf
    for name in reversed(path):
        value = {name: value}
    escaped = "".join("." + "".join("\\" + letter for letter in name) for name in path)
    assert evaluate.compile("{" + escaped + "}").find(value) == [leaf]


@given(st.lists(st.integers(), max_size=6), st.integers(-7, 7), st.integers(-7, 7))
def test_slice_is_pythons_wherever_it_does_not_fail(items: list[int], start: int, stop: int) -> None:
    try:
        found = evaluate.compile(f"[{start}:{stop}]").find(items)
    except EvaluationError:
        return
    assert found == items[start:stop]


@given(JSON_VALUES)
def test_descent_finds_every_field_of_a_name(value: Any) -> None:
    assert evaluate.compile("..a").find(value) == _fields_named_a([value])


def _fields_named_a(values: list[Any]) -> list[Any]:
    """Collect level by level inside each value, the value before what it holds."""
    found = []
    for value in values:
        if isinstance(value, dict):
            found += [value["a"]] if "a" in value else []
            found += _fields_named_a(list(value.values()))
        elif isinstance(value, list):
            found += _fields_named_a(value)
    return found


@given(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=4))
def test_printed_object_is_the_object_in_json(value: dict[str, Any]) -> None:
    assert msgspec.json.decode(text_of(value)) == value
