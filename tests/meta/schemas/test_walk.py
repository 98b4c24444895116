"""Schemas at work: unknown fields, defaults, nulls, and problems in Kubernetes' words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.schemas import walk
from holdfast.meta.schemas.constraints import PatternError, python_patterns

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def listing(items: dict[str, Any], **words: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **words}


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def said(schema: dict[str, Any], value: Any, *, old: Any = None) -> list[str]:
    """The problems of `value` as the field ``v``."""
    judge = walk.compile(record(v=schema), resource=False)
    return [str(error) for error in judge.validate({"v": value}, old=None if old is None else {"v": old})]


# --- unknown fields ----------------------------------------------------------

SHAPE = record(
    spec=record(
        name=TEXT,
        items=listing(record(port=NUMBER)),
        labels={"type": "object", "additionalProperties": TEXT},
        free={"type": "object", PRESERVE: True, "properties": {"known": record(a=TEXT)}},
        template={"type": "object", EMBEDDED: True, "properties": {"spec": record(a=TEXT)}},
        empty={"type": "object"},
    )
)

UNKNOWN: list[tuple[dict[str, Any], list[str]]] = [
    ({"spec": {"name": "a"}}, []),
    ({"spec": {"foo": 1}, "extra": 2}, ["extra", "spec.foo"]),
    ({"spec": {"items": [{"port": 1, "bar": 2}, {"baz": 3}]}}, ["spec.items[0].bar", "spec.items[1].baz"]),
    ({"spec": {"labels": {"any": "thing"}}}, []),
    ({"spec": {"free": {"any": {"thing": 1}}}}, []),
    ({"spec": {"free": {"known": {"b": 1}}}}, ["spec.free.known.b"]),
    ({"spec": {"empty": {"a": 1}}}, ["spec.empty.a"]),
    ({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "labels": {"b": "c"}}}, []),
    (
        {"metadata": {"nam": "a", "ownerReferences": [{"nope": 1}]}},
        ["metadata.nam", "metadata.ownerReferences[0].nope"],
    ),
    (
        {"spec": {"template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "bad": 1}, "other": 2}}},
        ["spec.template.metadata.bad", "spec.template.other"],
    ),
    ({"spec": "not an object"}, []),
    ({"spec": {"items": {"not": "a list"}}}, ["spec.items.not"]),
]


@pytest.mark.parametrize(("obj", "paths"), UNKNOWN)
def test_unknown_fields_are_named_by_their_paths_in_order(obj: dict[str, Any], paths: list[str]) -> None:
    before = copy.deepcopy(obj)
    assert walk.compile(SHAPE).unknown(obj) == paths
    assert obj == before


@pytest.mark.parametrize(("obj", "paths"), UNKNOWN)
def test_pruning_drops_what_is_unknown_and_nothing_else(obj: dict[str, Any], paths: list[str]) -> None:
    judge, obj = walk.compile(SHAPE), copy.deepcopy(obj)
    assert judge.prune(obj) == paths
    assert judge.unknown(obj) == []


def test_a_list_that_keeps_unknown_fields_keeps_them_in_its_items() -> None:
    judge = walk.compile(record(a=listing(record(b=TEXT), **{PRESERVE: True})))
    assert judge.unknown({"a": [{"b": "c", "other": 1}]}) == []


# --- defaults and nulls ------------------------------------------------------

DEFAULTS: list[tuple[dict[str, Any], Any, Any]] = [
    (record(a={"type": "string", "default": "x"}), {}, {"a": "x"}),
    (record(a={"type": "string", "default": "x"}), {"a": "y"}, {"a": "y"}),
    (record(a={"type": "string", "default": "x"}), {"a": None}, {"a": "x"}),
    (record(a={"type": "string", "default": "x", "nullable": True}), {"a": None}, {"a": None}),
    (record(a={"type": "string", "default": "x", "nullable": True}), {}, {"a": "x"}),
    (record(a=TEXT), {"a": None}, {}),
    (record(a={"type": "string", "nullable": True}), {"a": None}, {"a": None}),
    (record(a={**record(b={"type": "string", "default": "x"}), "default": {}}), {}, {"a": {"b": "x"}}),
    (record(a=record(b={"type": "string", "default": "x"})), {}, {}),
    (record(a={**record(b={"type": "string", "default": "x"}), "default": {}}), {"a": None}, {"a": {"b": "x"}}),
    (listing(record(a={"type": "string", "default": "x"})), [{}, {"a": "y"}], [{"a": "x"}, {"a": "y"}]),
    (listing({"type": "string", "default": "x"}), [None, "y"], ["x", "y"]),
    (listing(TEXT), [None], [None]),
    ({"type": "object", "additionalProperties": TEXT}, {"a": None, "b": "c"}, {"b": "c"}),
    ({"type": "object", "additionalProperties": {"type": "string", "default": "x"}}, {"a": None}, {"a": "x"}),
    (
        {"type": "object", "additionalProperties": record(a={"type": "integer", "default": 1})},
        {"k": {}},
        {"k": {"a": 1}},
    ),
    ({"type": "object", PRESERVE: True}, {"a": None}, {"a": None}),
]


@pytest.mark.parametrize(("schema", "value", "expected"), DEFAULTS)
def test_defaults_fill_what_is_absent_and_forbidden_nulls_go(schema: dict[str, Any], value: Any, expected: Any) -> None:
    value = copy.deepcopy(value)
    walk.compile(schema, resource=False).default(value)
    assert value == expected


def test_a_default_is_copied_so_that_objects_share_nothing() -> None:
    judge = walk.compile(record(a={"type": "object", PRESERVE: True, "default": {"b": [1]}}))
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    judge.default(one)
    judge.default(other)
    one["a"]["b"].append(2)
    assert other == {"a": {"b": [1]}}


def test_nulls_that_are_not_allowed_can_be_dropped_without_writing_defaults() -> None:
    schema = {
        "type": "object",
        "properties": {
            "kept": {"type": "string", "nullable": True, "default": "a"},
            "gone": {"type": "string"},
            "not filled": {"type": "string", "default": "b"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
    }
    doc = {"kept": None, "gone": None, "not filled": None, "free": {"null": None}, "items": [{"a": None}]}
    walk.compile(schema, resource=False).drop_nulls(doc)
    assert doc == {"kept": None, "free": {"null": None}, "items": [{}]}


# --- values ------------------------------------------------------------------

VALUES: list[tuple[dict[str, Any], Any, list[str]]] = [
    # types
    (NUMBER, 3, []),
    (NUMBER, 3.0, []),
    (NUMBER, "3", ['v: Invalid value: "string": v in body must be of type integer: "string"']),
    (NUMBER, True, ['v: Invalid value: "boolean": v in body must be of type integer: "boolean"']),
    (NUMBER, None, ['v: Invalid value: "null": v in body must be of type integer: "null"']),
    (
        NUMBER,
        2.5,
        [
            'v: Invalid value: "number": v in body must be of type integer: "number"',
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in v',
        ],
    ),
    ({"type": "number"}, 3, []),
    ({"type": "number"}, "x", ['v: Invalid value: "string": v in body must be of type number: "string"']),
    ({"type": "boolean"}, "yes", ['v: Invalid value: "string": v in body must be of type boolean: "string"']),
    ({"type": "object"}, [], ['v: Invalid value: "array": v in body must be of type object: "array"']),
    (listing(TEXT), {}, ['v: Invalid value: "object": v in body must be of type array: "object"']),
    ({"type": "string", "nullable": True}, None, []),
    ({INT_OR_STRING: True}, "50%", []),
    ({INT_OR_STRING: True}, 5, []),
    ({INT_OR_STRING: True}, True, ['v: Invalid value: "boolean": v in body must be of type integer,string: "boolean"']),
    ({PRESERVE: True}, {"any": ["thing"]}, []),
    # numbers
    ({"type": "integer", "minimum": 1}, 0, ["v: Invalid value: 0: v in body should be greater than or equal to 1"]),
    ({"type": "integer", "maximum": 10}, 11, ["v: Invalid value: 11: v in body should be less than or equal to 10"]),
    (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["v: Invalid value: 1: v in body should be greater than 1"],
    ),
    (
        {"type": "number", "maximum": 0.5, "exclusiveMaximum": True},
        0.5,
        ["v: Invalid value: 0.5: v in body should be less than 0.5"],
    ),
    ({"type": "integer", "multipleOf": 5}, 7, ["v: Invalid value: 7: v in body should be a multiple of 5"]),
    ({"type": "integer", "multipleOf": 5}, 10, []),
    ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    (
        {"type": "integer", "format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in v'],
    ),
    (NUMBER, 2**70, ['<nil>: Invalid value: "": Checked value must be of type integer (default format) in v']),
    # texts
    ({"type": "string", "maxLength": 3}, "abcd", ["v: Too long: may not be more than 3 bytes"]),
    ({"type": "string", "minLength": 1}, "", ['v: Invalid value: "": v in body should be at least 1 chars long']),
    (
        {"type": "string", "pattern": "^[a-z]+$", "maxLength": 9},
        "A",
        ["v: Invalid value: \"A\": v in body should match '^[a-z]+$'"],
    ),
    (
        {"type": "string", "pattern": "^[a-z]+$"},
        "a\n",
        ["v: Invalid value: \"a\\n\": v in body should match '^[a-z]+$'"],
    ),
    ({"type": "string", "pattern": "[$]"}, "a$", []),
    ({"type": "string", "enum": ["a", "b"]}, "c", ['v: Unsupported value: "c": supported values: "a", "b"']),
    ({"type": "integer", "enum": [1, 2]}, 3, ['v: Unsupported value: 3: supported values: "1", "2"']),
    ({"type": "integer", "enum": [1, 2]}, 2, []),
    # formats
    (
        {"type": "string", "format": "date-time"},
        "tomorrow",
        ['v: Invalid value: "tomorrow": v in body must be of type date-time: "tomorrow"'],
    ),
    ({"type": "string", "format": "date-time"}, "2026-01-31T12:00:00.5+01:00", []),
    (
        {"type": "string", "format": "date-time"},
        5,
        ['v: Invalid value: "int64": v in body must be of type date-time: "int64"'],
    ),
    ({"type": "string", "format": "no-such-format"}, "anything", []),
    # lists and objects
    (
        listing(NUMBER, minItems=1, maxItems=2),
        [1, 2, 3],
        ["v: Too many: 3: must have at most 2 items"],
    ),
    (listing(NUMBER, minItems=1), [], ["v: Invalid value: 0: v in body should have at least 1 items"]),
    (listing(NUMBER), [1, "x"], ['v[1]: Invalid value: "string": v[1] in body must be of type integer: "string"']),
    (listing(NUMBER, uniqueItems=True), [1, 1], ['v: Invalid value: "": v in body shouldn\'t contain duplicates']),
    (record(a=TEXT) | {"required": ["a", "b"]}, {}, ["v.a: Required value", "v.b: Required value"]),
    ({"type": "object", "minProperties": 1}, {}, ["v: Invalid value: 0: v in body should have at least 1 properties"]),
    ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, ["v: Too many: 2: must have at most 1 item"]),
    (
        {"type": "object", "additionalProperties": NUMBER},
        {"k": "v"},
        ['v.k: Invalid value: "string": v.k in body must be of type integer: "string"'],
    ),
    # sets and maps
    (listing(TEXT, **{"x-kubernetes-list-type": "set"}), ["a", "b", "a"], ['v[2]: Duplicate value: "a"']),
    (
        listing(record(n=TEXT, p=TEXT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}),
        [{"n": "a", "p": "1"}, {"n": "a", "p": "2"}],
        ['v[1]: Duplicate value: {"n":"a"}'],
    ),
    (
        listing(
            record(n=TEXT, p={"type": "string", "default": "TCP"}),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"]},
        ),
        [{"n": "a"}, {"n": "a", "p": "TCP"}, {"n": "a", "p": "UDP"}],
        ['v[1]: Duplicate value: {"n":"a","p":"TCP"}'],
    ),
    (
        {"type": "object", "additionalProperties": listing(TEXT, **{"x-kubernetes-list-type": "set"})},
        {"k": ["a", "a"]},
        ['v[k][1]: Duplicate value: "a"'],
    ),
    (listing({PRESERVE: True}, **{"x-kubernetes-list-type": "set"}), [1, True, 1.0, {"a": []}], []),
    (
        listing({PRESERVE: True}, **{"x-kubernetes-list-type": "set"}),
        [{"a": []}, {"a": []}],
        ['v[1]: Duplicate value: {"a":[]}'],
    ),
    # logical operators
    (
        {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        True,
        [
            'v: Invalid value: "boolean": v in body must be of type integer,string: "boolean"',
            '<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)',
            'v: Invalid value: "boolean": v in body must be of type integer: "boolean"',
        ],
    ),
    (
        record(a=TEXT, b=TEXT) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [
            '<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found none valid',
            "v.a: Required value",
        ],
    ),
    (
        record(a=TEXT, b=TEXT) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": "x", "b": "y"},
        ['<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ),
    (record(a=TEXT, b=TEXT) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": "y"}, []),
    (
        {"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 3}]},
        5,
        [
            "v: Invalid value: 5: v in body should be less than or equal to 3",
            '<nil>: Invalid value: "": "v" must validate all the schemas (allOf)',
        ],
    ),
    (
        {"type": "string", "not": {"enum": ["a"]}},
        "a",
        ['<nil>: Invalid value: "": "v" must not validate the schema (not)'],
    ),
    # embedded resources
    (
        {"type": "object", EMBEDDED: True, PRESERVE: True},
        {"kind": "A"},
        ["v.apiVersion: Required value: must not be empty"],
    ),
    (
        {"type": "object", EMBEDDED: True, PRESERVE: True},
        {"apiVersion": 1, "kind": "A", "metadata": []},
        [
            'v.apiVersion: Invalid value: "integer": v.apiVersion in body must be of type string: "integer"',
            'v.metadata: Invalid value: "array": v.metadata in body must be of type object: "array"',
        ],
    ),
]


@pytest.mark.parametrize(("schema", "value", "problems"), VALUES)
def test_problems_are_told_in_the_words_of_kubernetes(schema: dict[str, Any], value: Any, problems: list[str]) -> None:
    assert said(schema, value) == problems


FORMATS: list[tuple[str, list[str], list[str]]] = [
    ("ipv4", ["10.0.0.1"], ["10.0.0", "::1", "010.0.0.1"]),
    ("ipv6", ["::1", "fe80::1"], ["10.0.0.1", ":::"]),
    ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33"]),
    ("date", ["2026-02-28"], ["2026-02-30", "2026-2-1", "20260228"]),
    ("date-time", ["2026-01-31T12:00:00Z"], ["2026-13-01T12:00:00Z", "2026-01-31T25:00:00Z", "2026-01-31"]),
    ("duration", ["1h30m", "22 ns", "3 days"], ["soon", "1", ""]),
    ("uuid", ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"], ["6ba7b810"]),
    ("uuid4", ["f47ac10b-58cc-4372-a567-0e02b2c3d479"], ["f47ac10b-58cc-1372-a567-0e02b2c3d479"]),
    ("byte", ["YQ==", ""], ["a", "!!!!"]),
    ("email", ["a@b.c"], ["a", "@"]),
    ("hostname", ["example.com", "a"], ["-a", "a..b", "a" * 64]),
    ("uri", ["https://example.com/a?b#c", "/path"], ["a b", "relative"]),
    ("mac", ["00:00:5e:00:53:01", "00-00-5e-00-53-01"], ["00:00:5e", "00:00:5e:00:53-01"]),
    ("hexcolor", ["#fff", "a1b2c3"], ["#ff", "red"]),
    ("rgbcolor", ["rgb(1, 2,255)"], ["rgb(1,2)", "rgb(1,2,256)"]),
    ("isbn", ["0321751043", "978-0321751041"], ["0321751044", "978-0321751042", "x"]),
    ("creditcard", ["4111 1111 1111 1111"], ["4111 1111 1111 1112", "1"]),
    ("ssn", ["111-22-3333"], ["111-22-333"]),
    ("bsonobjectid", ["507f1f77bcf86cd799439011"], ["507f"]),
    ("quantity", ["1.5Gi"], ["much"]),
    ("k8s-short-name", ["a-b"], ["a.b", "A"]),
    ("k8s-long-name", ["a-b.c"], ["a_b"]),
    ("password", ["anything"], []),
]


@pytest.mark.parametrize(("name", "good", "bad"), FORMATS, ids=[name for name, _, _ in FORMATS])
def test_formats_take_what_they_are_for_and_nothing_else(name: str, good: list[str], bad: list[str]) -> None:
    schema = {"type": "string", "format": name}
    assert [text for text in good if said(schema, text)] == []
    assert [text for text in bad if not said(schema, text)] == []


def test_the_path_of_the_value_comes_before_the_paths_inside() -> None:
    judge = walk.compile(record(a=listing(NUMBER)), resource=False)
    (problem,) = judge.validate({"a": ["x"]}, path="spec.x")
    assert str(problem) == (
        'spec.x.a[0]: Invalid value: "string": spec.x.a[0] in body must be of type integer: "string"'
    )


def test_a_pattern_that_is_none_is_refused_by_its_own_error() -> None:
    with pytest.raises(PatternError):
        python_patterns("(")


# --- updates -----------------------------------------------------------------

KEYED = listing(
    record(n=TEXT, size={"type": "integer", "maximum": 5}),
    **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
)

UPDATES: list[tuple[dict[str, Any], Any, Any, bool]] = [
    ({"type": "integer", "maximum": 5}, 9, 9, True),
    ({"type": "integer", "maximum": 5}, 9, 8, False),
    (record(a={"type": "integer", "maximum": 5}, b=TEXT), {"a": 9, "b": "x"}, {"a": 9, "b": "y"}, True),
    (record(a={"type": "integer", "maximum": 5}), {"a": 9}, {}, False),
    (KEYED, [{"n": "b", "size": 9}, {"n": "a", "size": 1}], [{"n": "a", "size": 2}, {"n": "b", "size": 9}], True),
    (KEYED, [{"n": "b", "size": 9}], [{"n": "b", "size": 8}], False),
    (KEYED, [{"n": "b", "size": 9}], [{"n": "c", "size": 9}], False),
    (listing({"type": "integer", "maximum": 5}), [9], [9], True),
    (listing({"type": "integer", "maximum": 5}), [9, 1], [9], False),
    (record(a=TEXT) | {"required": ["b"]}, {"a": "x"}, {"a": "x"}, True),
    (record(a=TEXT) | {"required": ["b"]}, {"a": "x"}, {"a": "y"}, False),
    ({"type": "integer"}, True, 1, False),
    (listing(TEXT, **{"x-kubernetes-list-type": "set"}), ["a", "a", "b"], ["a", "a"], True),
    (listing(TEXT, **{"x-kubernetes-list-type": "set"}), ["a", "a"], ["a"], False),
]


@pytest.mark.parametrize(("schema", "new", "old", "forgiven"), UPDATES)
def test_an_update_is_forgiven_what_it_left_as_it_was(
    schema: dict[str, Any], new: Any, old: Any, forgiven: bool
) -> None:
    assert said(schema, new)
    assert (said(schema, new, old=old) == []) is forgiven


# --- anything ----------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abv"), inner, max_size=3),
    max_leaves=8,
)
NODES = st.recursive(
    st.sampled_from(
        [
            TEXT, NUMBER, {"type": "number", "minimum": 1}, {"type": "boolean"}, {INT_OR_STRING: True},
            {PRESERVE: True}, {"type": "string", "default": "x"}, {"type": "string", "nullable": True},
            {"type": "string", "maxLength": 2, "pattern": "a", "enum": ["a", "ba"]},
            {"type": "string", "format": "date-time"},
        ]
    ),
    lambda inner: st.builds(lambda a, b: record(a=a, b=b) | {"required": ["a"]}, inner, inner)
    | st.builds(lambda a: listing(a, maxItems=2), inner)
    | st.builds(lambda a: {"type": "object", "additionalProperties": a}, inner)
    | st.builds(lambda a, b: {PRESERVE: True, "anyOf": [a, b], "not": {"enum": [1]}}, inner, inner),
    max_leaves=6,
)  # fmt: skip


@given(schema=NODES, value=JSON, old=JSON)
def test_no_value_surprises_a_schema(schema: dict[str, Any], value: Any, old: Any) -> None:
    judge = walk.compile(record(v=schema), resource=False)
    obj = {"v": value}
    judge.prune(obj)
    judge.default(obj)
    assert judge.unknown(obj) == []
    for problem in judge.validate(obj, old={"v": old}):
        assert str(problem).startswith(("v", "<nil>: "))
    assert judge.validate(obj, old=copy.deepcopy(obj)) == []
    once = copy.deepcopy(obj)
    judge.default(once)
    assert once == obj
