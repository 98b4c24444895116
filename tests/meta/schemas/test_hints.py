"""Problems of a document, for its author: what is said about every word of a schema, where, and in which order."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from holdfast.meta.schemas import walk
from holdfast.meta.schemas.hints import Problem, problems


def found(schema: dict[str, Any], document: Any, path: str = "", **more: Any) -> list[Problem]:
    return list(problems(walk.compile(schema, resource=False), document, path, **more))


def said(schema: dict[str, Any], value: Any) -> list[str]:
    """The problems of `value` as the field ``v``."""
    return [str(problem) for problem in found({"type": "object", "properties": {"v": schema}}, {"v": value})]


def test_free_form_objects_may_hold_anything() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert list(found(schema, {"any": {"thing": [None, 1, "a"]}})) == []


@pytest.mark.parametrize(
    ("choices", "value", "hint"),
    [
        (["On", "Off", "OffGraceful"], True, 'write "On", in quotes'),
        (["On", "Off", "OffGraceful"], False, 'write "Off", in quotes'),
        (["yes", "on", "maybe"], True, 'write "yes" or "on", in quotes'),
        (["1.2", "2.0"], 2.0, 'write "2.0", in quotes'),
        (["Always", "Never", "ALWAYS"], True, "write one of Always, Never"),
        (["Always", "Never"], ["Always"], "write one of Always, Never"),
    ],
)
def test_a_choice_that_yaml_takes_for_something_else_is_to_be_quoted(choices: list[str], value: Any, hint: str) -> None:
    (problem,) = found({"type": "string", "enum": choices}, value, "spec.powerState")
    assert problem.hint == hint


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        ("^a$|^b$", "a\n", False),
        (r"^a\$$", "a$", True),
        (r"^a[$\]]$", "a$", True),
        (r"^\d$", "٣", False),
        ("a", "bab", True),
    ],
)
def test_a_pattern_means_what_it_means_to_an_api_server(pattern: str, text: str, fits: bool) -> None:
    assert (list(found({"type": "string", "pattern": pattern}, text)) == []) is fits


def test_an_embedded_object_says_what_it_is() -> None:
    schema = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert [str(problem) for problem in found(schema, {"kind": "Pod"}, "spec.pod")] == [
        "spec.pod.apiVersion: is required; an embedded object says what it is"
    ]


TEXT = {"type": "string"}
ENTRY = {"type": "object", "properties": {"name": TEXT, "port": {"type": "integer", "default": 80}}}
MAP = {"type": "array", "items": ENTRY, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]}

WORDS: dict[str, tuple[dict[str, Any], Any, list[str]]] = {
    "a date": (TEXT, date(2026, 1, 31), ['v: must be a string, not a date; write "2026-01-31", in quotes']),
    "an exclusive minimum": (
        {"type": "number", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["v: must be more than 1, is 1"],
    ),
    "an exclusive maximum": (
        {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
        1.5,
        ["v: must be less than 1.5, is 1.5"],
    ),
    "a multiple": ({"type": "integer", "multipleOf": 4}, 6, ["v: must be a multiple of 4, is 6"]),
    "no number at all": ({"type": "number", "multipleOf": 0.5}, float("nan"), ["v: must be a multiple of 0.5, is nan"]),
    "an integer that no field holds": (
        {"type": "integer", "format": "int32"},
        2**31,
        ["v: must be between -2147483648 and 2147483647, is 2147483648"],
    ),
    "a number that is whole is an integer": ({"type": "integer"}, 2.0, []),
    "too few characters": ({"type": "string", "minLength": 3}, "ab", ["v: must have at least 3 characters"]),
    "too many items": (
        {"type": "array", "items": TEXT, "maxItems": 1},
        ["a", "b"],
        ["v: must have at most 1 items, has 2"],
    ),
    "too few entries": (
        {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
        {},
        ["v: must have at least 1 entries, has 0"],
    ),
    "another format": ({"type": "string", "format": "ipv4"}, "a", ["v: 'a' is not in the format ipv4"]),
    "a null in a list": (
        {"type": "array", "items": TEXT},
        [None],
        ['v[0]: must not be null; leave it out, or write ""'],
    ),
    "a null in a map": (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"a.b": None},
        ["v[a.b]: must not be null; leave it out"],
    ),
    "a null that is allowed": ({"type": "object", "properties": {"a": TEXT | {"nullable": True}}}, {"a": None}, []),
    "a null in place of a required field": (
        {"type": "object", "properties": {"a": TEXT | {"description": "What it does. And more."}}, "required": ["a"]},
        {"a": None},
        ["v.a: is required; What it does"],
    ),
    "a required field with a default": (
        {"type": "object", "properties": {"a": TEXT | {"default": "x"}}, "required": ["a"]},
        {},
        [],
    ),
    "an entry that repeats an earlier one by default": (
        MAP,
        [{"name": "a"}, {"name": "a", "port": 81}, {"name": "a", "port": 80}],
        ["v[2]: repeats name 'a' and port 80 of v[0]; give each entry its own"],
    ),
    "a list in a set": (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "array", "items": TEXT}},
        [["a"], ["b"], ["a"]],
        ["v[2]: repeats ['a'] of v[0]; give each entry its own"],
    ),
    "equal items": (
        {"type": "array", "items": TEXT, "uniqueItems": True},
        ["a", "a"],
        ["v: has equal items; give each entry its own"],
    ),
    "nothing inside a value of a wrong type": (
        ENTRY,
        [{"nmae": 1}],
        ["v: must be an object, not an array; write fields without dashes"],
    ),
    "an object where a list is expected": (
        MAP,
        {"x": 1},
        ["v: must be an array, not an object; begin each entry with a dash"],
    ),
    "a field where none is configured": (
        {"type": "object"},
        {"a": 1},
        ["v.a: unknown field; nothing is configured here; write {}"],
    ),
    "no alternative": (
        {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        "c",
        ["v: does not fit the schema (anyOf)", "v: 'c' is not in the expected form; it must match ^a"],
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_is_said_about(name: str) -> None:
    schema, value, expected = WORDS[name]
    assert said(schema, value) == expected


def test_an_example_of_what_to_write_is_given_by_the_pattern() -> None:
    (problem,) = found(TEXT | {"pattern": "^[0-9]+s$"}, "5m", "spec.delay", examples={"^[0-9]+s$": "write 30s"})
    assert str(problem) == "spec.delay: '5m' is not in the expected form; write 30s"


def test_problems_come_in_the_order_of_the_document_and_what_is_missing_comes_first() -> None:
    schema = {
        "type": "object",
        "properties": {"list": MAP, "text": TEXT, "number": {"type": "integer"}},
        "required": ["number"],
    }
    document = {"zzz": 1, "text": 2, "list": [{"name": "a"}, {"name": "a"}, {"nmae": "b"}], 3: 4}
    assert [problem.path for problem in found(schema, document, "spec")] == [
        "spec", "spec.number", "spec.zzz", "spec.text", "spec.list[1]", "spec.list[2].nmae",
    ]  # fmt: skip


def test_a_document_is_not_changed() -> None:
    document = {"name": None, "ports": ({"name": "a"},), 1: 2}
    found({"type": "object", "properties": {"name": TEXT | {"default": "x"}, "ports": MAP}}, document)
    assert document == {"name": None, "ports": ({"name": "a"},), 1: 2}
