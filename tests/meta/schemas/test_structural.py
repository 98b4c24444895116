"""What is refused of the schemas of definitions, in the API server's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.fieldpaths import PathError, find, steps
from holdfast.meta.schemas import structural

LIST_TYPE, MAP_KEYS, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
PRESERVE, EMBEDDED, INT_OR_STRING = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)
TEXT = {"type": "string"}
EITHER = [{"type": "integer"}, {"type": "string"}]


def root(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def keyed(items: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {"type": "array", "items": items, LIST_TYPE: "map", MAP_KEYS: list(keys)}


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SOUND: list[dict[str, Any]] = [
    TEXT,
    {INT_OR_STRING: True},
    {INT_OR_STRING: True, "anyOf": EITHER},
    {INT_OR_STRING: True, "allOf": [{"anyOf": EITHER}, {"pattern": "a"}]},
    {PRESERVE: True},
    {"type": "object", EMBEDDED: True, PRESERVE: True},
    {"type": "object", "additionalProperties": TEXT},
    {"type": "array", "items": TEXT, LIST_TYPE: "set"},
    keyed(record(n=TEXT) | {"required": ["n"]}, "n"),
    keyed(record(n={"type": "string", "default": "x"}), "n"),
    record(b=TEXT, c=TEXT) | {"oneOf": [{"required": ["b"]}, {"properties": {"c": {"pattern": "x"}}}]},
    {"type": "string", "default": "x", "enum": ["x", "y"]},
    record(b=TEXT) | {"default": {"b": "x"}},
    {"type": "string", "pattern": "^[a-z]+$"},
]


@pytest.mark.parametrize("schema", SOUND)
def test_a_sound_schema_has_no_problems(schema: dict[str, Any]) -> None:
    assert structural.problems(root(schema), "s") == []


A = "s.properties[a]"
BROKEN: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [f"{A}.type: Required value: must not be empty for specified object fields"]),
    ({"type": "array"}, [f"{A}.items: Required value: must be specified"]),
    (
        {"type": "array", "items": {}},
        [f"{A}.items.type: Required value: must not be empty for specified array items"],
    ),
    (
        {"type": "text"},
        [
            (
                f'{A}.type: Unsupported value: "text": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            )
        ],
    ),
    (
        {INT_OR_STRING: True, PRESERVE: True},
        [f"{A}.{PRESERVE}: Invalid value: true: must be false if {INT_OR_STRING} is true"],
    ),
    (
        {"type": "string", "anyOf": [{"type": "string"}]},
        [f"{A}.anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        {"type": "string", "not": {"default": "x"}},
        [f"{A}.not.default: Forbidden: must be undefined to be structural"],
    ),
    (
        record(b=TEXT) | {"allOf": [{"properties": {"c": {"pattern": "x"}}}]},
        [f"{A}.properties[c]: Required value: because it is defined in {A}.allOf[0].properties[c]"],
    ),
    (
        {"type": "string", "pattern": "("},
        [
            (
                f'{A}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: '
                "missing ), unterminated subpattern at position 0"
            )
        ],
    ),
    (
        {"type": "object", EMBEDDED: True},
        [
            f"{A}.properties: Required value: must not be empty if {EMBEDDED} is true without {PRESERVE}",
        ],
    ),
    (
        {"type": "string", EMBEDDED: True, PRESERVE: True},
        [f'{A}.type: Invalid value: "string": must be object if {EMBEDDED} is true'],
    ),
    (
        {"type": "array", "items": TEXT, "uniqueItems": True},
        [
            (
                f"{A}.uniqueItems: Forbidden: "
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            )
        ],
    ),
    (
        record(b=TEXT) | {"additionalProperties": TEXT},
        [f"{A}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    ),
    ({"type": "string", "$ref": "#/x"}, [f"{A}.$ref: Forbidden: $ref is not supported"]),
    ({"type": "object", PRESERVE: False}, [f"{A}.{PRESERVE}: Invalid value: false: must be true or undefined"]),
    (
        {"type": "string", LIST_TYPE: "set"},
        [f'{A}.type: Invalid value: "string": must be array if {LIST_TYPE} is specified'],
    ),
    (
        {"type": "array", "items": TEXT, LIST_TYPE: "bag"},
        [f'{A}.{LIST_TYPE}: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
    ),
    (
        {"type": "array", "items": record(b=TEXT), LIST_TYPE: "set"},
        [f"{A}.items.{MAP_TYPE}: Invalid value: null: must be atomic as item of a list with {LIST_TYPE}=set"],
    ),
    (
        {"type": "array", "items": record(b=TEXT), MAP_KEYS: ["b"]},
        [f"{A}.{LIST_TYPE}: Required value: must be map if {MAP_KEYS} is non-empty"],
    ),
    (
        {"type": "array", "items": record(b=TEXT), LIST_TYPE: "map"},
        [f"{A}.{MAP_KEYS}: Required value: must not be empty if {LIST_TYPE} is map"],
    ),
    (
        keyed(record(n=TEXT), "n"),
        [
            (
                f"{A}.items.properties[n].default: Required value: this property is in {MAP_KEYS}, "
                "so it must have a default or be a required property"
            )
        ],
    ),
    (
        keyed(record(n=TEXT) | {"required": ["n"]}, "n", "m"),
        [f'{A}.{MAP_KEYS}: Invalid value: ["n","m"]: entries must all be names of item properties'],
    ),
    (
        keyed(TEXT, "n"),
        [f'{A}.items.type: Invalid value: "string": must be object if parent array\'s {LIST_TYPE} is map'],
    ),
    (
        {"type": "string", "default": 5},
        [f'{A}.default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ),
    (
        record(b={"type": "integer", "maximum": 3}) | {"default": {"b": 5}},
        [f"{A}.default.b: Invalid value: 5: b in body should be less than or equal to 3"],
    ),
    (
        record(b=TEXT) | {"default": {"c": "x"}},
        [f'{A}.default: Invalid value: {{"c":"x"}}: must not have unknown fields'],
    ),
    (
        {"type": "string", "minLength": "x"},
        [f'{A}.minLength: Invalid value: "string": {A}.minLength in body must be of type integer: "string"'],
    ),
    ({"type": "array", "items": [TEXT]}, [f"{A}.items: Forbidden: items must be a schema object and not an array"]),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": " "}]},
        [f"{A}.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "true", "message": "a\nb"}]},
        [f'{A}.x-kubernetes-validations[0].message: Invalid value: "a\\nb": message must not contain line breaks'],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Because"}]},
        [
            (
                f'{A}.x-kubernetes-validations[0].reason: Unsupported value: "Because": supported values: '
                '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
            )
        ],
    ),
    (
        record(b=TEXT) | {"x-kubernetes-validations": [{"rule": "true", "fieldPath": ".c"}]},
        [f'{A}.x-kubernetes-validations[0].fieldPath: Invalid value: ".c": fieldPath must be a valid path'],
    ),
]


@pytest.mark.parametrize(("schema", "problems"), BROKEN)
def test_a_broken_schema_is_refused_where_it_is_broken(schema: dict[str, Any], problems: list[str]) -> None:
    assert [str(problem) for problem in structural.problems(root(schema), "s")] == problems


ROOTS: list[tuple[dict[str, Any], bool, list[str]]] = [
    ({"type": "string"}, False, ['s.type: Invalid value: "string": must be object at the root']),
    ({}, False, ["s.type: Required value: must not be empty at the root"]),
    ({"type": "object", "nullable": True}, False, ["s.nullable: Forbidden: nullable cannot be true at the root"]),
    (
        {"type": "object", "additionalProperties": TEXT},
        False,
        ["s.additionalProperties: Forbidden: must not be used at the root"],
    ),
    (
        record(metadata=record(labels={"type": "object", "additionalProperties": TEXT})),
        False,
        [
            (
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
                "but metadata is implicitly specified"
            )
        ],
    ),
    (record(metadata=record(name={"type": "string", "maxLength": 9})), True, []),
    (record(kind={"type": "integer"}), False, ['s.properties[kind].type: Invalid value: "integer": must be string']),
    (
        record(kind={"type": "string", "default": "X"}),
        False,
        ["s.properties[kind].default: Forbidden: must not be set in top-level kind"],
    ),
    (
        record(a=TEXT) | {"oneOf": [{"required": ["a"]}]},
        True,
        ["s: Forbidden: oneOf not allowed at the root of the schema if the status subresource is enabled"],
    ),
]


@pytest.mark.parametrize(("schema", "status", "problems"), ROOTS)
def test_the_root_must_be_an_object_that_leaves_metadata_alone(
    schema: dict[str, Any], status: bool, problems: list[str]
) -> None:
    assert [str(problem) for problem in structural.problems(schema, "s", status=status)] == problems


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = TEXT
    for _ in range(200):
        schema = record(a=schema)
    (problem,) = structural.problems(schema, "s")
    assert "nested more than 64 levels deep" in str(problem)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "(", "object", "array", "map"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(
            [
                "type", "properties", "items", "additionalProperties", "default", "anyOf", "not", "required", "enum",
                "pattern", "a", "metadata", LIST_TYPE, MAP_KEYS, MAP_TYPE, PRESERVE, EMBEDDED, INT_OR_STRING,
                "x-kubernetes-validations", "rule", "nullable", "minLength", "format",
            ]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["type", "properties", "anyOf", "metadata"]), JSON), st.booleans())
def test_no_schema_surprises_the_checks(schema: dict[str, Any], status: bool) -> None:
    for problem in structural.problems(schema, "s", status=status):
        assert str(problem)


PATHS: list[tuple[str, tuple[str, ...]]] = [
    (".a.b", ("a", "b")),
    (".a['b.c'].d", ("a", "b.c", "d")),
    (r"['it\'s']", ("it's",)),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_a_field_path_goes_through_names(path: str, expected: tuple[str, ...]) -> None:
    assert steps(path) == expected


@pytest.mark.parametrize("path", ["a", ".", ".a..b", ".a[0]", "['a"])
def test_a_field_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        steps(path)


def test_a_field_path_finds_fields_and_entries_of_maps() -> None:
    schema = record(spec=record(map={"type": "object", "additionalProperties": TEXT}))
    assert find(schema, ".spec.map['k']") == ("spec.map[k]", TEXT)
    with pytest.raises(PathError):
        find(schema, ".spec.nope")
    with pytest.raises(PathError):
        find(schema, ".spec['map']", brackets=False)
