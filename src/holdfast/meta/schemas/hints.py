"""Findings in words for the author of a document: where the problem is, what it is, and what to write instead.

`problems` reports everything at once, in the order of the document.  It judges the document as a YAML reader returns
it, before an API server would drop nulls and write defaults, and reports only what the server would refuse or lose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.meta.fieldpaths import child
from holdfast.meta.schemas.constraints import INT64, INTEGERS, Finding, Path
from holdfast.meta.schemas.messages import JSON_TYPES
from holdfast.meta.schemas.walk import Schema
from holdfast.meta.suggestions import distinct, nearest

_OpenAPI = Mapping[str, Any]
_Steps = tuple[str | int, ...]

_YAML_WORDS: Final = {True: frozenset({"true", "yes", "on", "y"}), False: frozenset({"false", "no", "off", "n"})}
"""The words, in small letters, that a YAML reader may take for each boolean."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a document: its path, what is wrong, and what to write instead."""

    path: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}"
        return text if self.hint is None else f"{text}; {self.hint}"


def problems(
    schema: Schema, document: Any, path: str = "", *, examples: Mapping[str, str] | None = None
) -> Iterator[Problem]:
    """Everything in `document` that `schema` does not accept, in the order of the document.

    `path` is where the document stands in a larger one; `examples` say what to write, by the pattern that a text
    must match.
    """
    words = _Words(schema.source, path, examples or {})
    keys: list[tuple[_Steps, Any]] = []
    value = _plain(document, (), keys)
    said = [(at, Problem(words.name(at), f"the key {key!r} must be a string", _quoted(key))) for at, key in keys]
    for at, finding in _telling([(_steps(each.path), each) for each in schema.findings(value)]):
        problem = words.problem(at, finding)
        if problem is not None:
            said.append((at, problem))
    said.sort(key=lambda placed: _position(value, placed[0]))
    yield from dict.fromkeys(problem for _, problem in said)


def _telling(found: list[tuple[_Steps, Finding]]) -> Iterator[tuple[_Steps, Finding]]:
    """The findings without those that only follow from another: from a wrong type, or from a bound."""
    mistyped = {at for at, each in found if each.word == "type"}
    out_of_bounds = {at for at, each in found if each.word in _BOUNDS}
    for at, each in found:
        follows = any(at[:depth] in mistyped for depth in range(len(at)))
        if each.word != "type":
            follows |= at in mistyped or (each.word == "range" and at in out_of_bounds)
        if not follows:
            yield at, each


_BOUNDS: Final = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"})
_LEAST: Final = {"minimum": "at least", "exclusiveMinimum": "more than"}
_MOST: Final = {"maximum": "at most", "exclusiveMaximum": "less than"}


def _plain(value: Any, steps: _Steps, keys: list[tuple[_Steps, Any]]) -> Any:
    """A copy of a YAML value as JSON has it; the keys that are no strings are collected and left out."""
    if isinstance(value, dict):
        keys += [(steps, key) for key in value if not isinstance(key, str)]
        return {key: _plain(item, (*steps, key), keys) for key, item in value.items() if isinstance(key, str)}
    if isinstance(value, list | tuple):
        return [_plain(item, (*steps, index), keys) for index, item in enumerate(value)]
    return value


def _steps(path: Path) -> _Steps:
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    return tuple(reversed(steps))


def _position(value: Any, steps: _Steps) -> tuple[int, ...]:
    """Where in the document the steps lead; what is missing stands before everything else."""
    position = []
    for step in steps:
        if isinstance(step, int):
            position.append(step)
            value = value[step]
        else:
            position.append(list(value).index(step) if step in value else -1)
            value = value.get(step)
    return tuple(position)


class _Words:
    """The words for findings about one document."""

    def __init__(self, schema: _OpenAPI, path: str, examples: Mapping[str, str]) -> None:
        self.schema = schema
        self.path = path
        self.examples = examples

    def name(self, steps: _Steps) -> str:
        path = self.path
        for step in steps:
            path = child(path, step)
        return path

    def problem(self, steps: _Steps, finding: Finding) -> Problem | None:
        """The problem; None for a finding that the defaults of the schema repair."""
        name, value, limit, schema = self.name(steps), finding.value, finding.limit, self._at(steps)
        match finding.word:
            case "unknown":
                properties = self._at(steps[:-1]).get("properties", {})
                return Problem(name, "unknown field", _rename(str(steps[-1]), properties))
            case "required":
                return self._missing(steps, limit)
            case "type" if value is None:
                return self._null(steps)
            case "type":
                return _mistyped(name, schema, value)
            case "resource":
                return Problem(name, "is required", "an embedded object says what it is")
            case "enum":
                choices = distinct(limit)
                meant = nearest(str(value), choices)
                hint = None if meant is None else f"did you mean {meant}?"
                return Problem(name, f"must be one of {', '.join(choices)}, not {value!r}", hint)
            case "minLength":
                return Problem(name, "must not be empty" if limit == 1 else f"must have at least {limit} characters")
            case "maxLength":
                return Problem(name, f"must have at most {limit} characters, has {len(value)}")
            case "pattern":
                hint = self.examples.get(limit, f"it must match {limit}")
                return Problem(name, f"{value!r} is not in the expected form", hint)
            case "format" if limit == "date-time":
                return Problem(name, f"{value!r} is not a time", "write it like 2026-01-31T12:00:00Z")
            case "format":
                return Problem(name, f"{value!r} is not in the format {limit}")
            case "minimum" | "exclusiveMinimum":
                return Problem(name, f"must be {_LEAST[finding.word]} {limit}, is {value}")
            case "maximum" | "exclusiveMaximum":
                return Problem(name, f"must be {_MOST[finding.word]} {limit}, is {value}")
            case "multipleOf":
                return Problem(name, f"must be a multiple of {limit}, is {value}")
            case "range":
                low, high = INTEGERS.get(limit[1], INT64)
                bounds = f"between {low} and {high}" if limit[0] == "integer" else "smaller"
                return Problem(name, f"must be {bounds}, is {value}")
            case "minItems" | "minProperties":
                return Problem(name, f"must have at least {limit} {_noun(value)}, has {len(value)}")
            case "maxItems" | "maxProperties":
                return Problem(name, f"must have at most {limit} {_noun(value)}, has {len(value)}")
            case "duplicate":
                entry = (
                    " and ".join(f"{key} {item!r}" for key, item in value.items()) if isinstance(value, dict) else ""
                )
                earlier = self.name((*steps[:-1], limit))
                return Problem(name, f"repeats {entry or repr(value)} of {earlier}", "give each entry its own")
            case "uniqueItems":
                return Problem(name, "has equal items", "give each entry its own")
            case "listMap":
                return Problem(name, "must be an object")
        return Problem(name, f"does not fit the schema ({finding.word})")

    def _at(self, steps: _Steps) -> _OpenAPI:
        """The schema of what the steps lead to; an empty one where it says nothing."""
        schema = self.schema
        for step in steps:
            schema = (schema.get("items") if isinstance(step, int) else _property(schema, step)) or {}
        return schema

    def _missing(self, steps: _Steps, field: str) -> Problem | None:
        schema = self._at((*steps, field))
        if schema.get("default") is not None:
            return None
        description = schema.get("description")
        purpose = None if description is None else str(description).split(". ")[0].rstrip(".")
        return Problem(self.name((*steps, field)), "is required", purpose)

    def _null(self, steps: _Steps) -> Problem | None:
        """A null is as good as an absent field; in maps and lists it is none."""
        *before, last = steps or (0,)
        parent = self._at(tuple(before))
        if last in parent.get("properties", {}):
            return self._missing(tuple(before), str(last)) if last in parent.get("required", ()) else None
        empty = ', or write ""' if self._at(steps).get("type") == "string" else ""
        return Problem(self.name(steps), "must not be null", f"leave it out{empty}")


def _property(schema: _OpenAPI, key: str) -> _OpenAPI | None:
    found = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
    return found if isinstance(found, Mapping) else None


def _noun(value: Any) -> str:
    return "items" if isinstance(value, list) else "entries"


# --- types -------------------------------------------------------------------


def _mistyped(name: str, schema: _OpenAPI, value: Any) -> Problem:
    integer_or_string = schema.get("x-kubernetes-int-or-string")
    wanted = ("integer", "string") if integer_or_string else (str(schema.get("type", "string")),)
    hint = _choice(schema, value) or _rewritten(wanted, value)
    return Problem(name, f"must be {_a(' or '.join(wanted))}, not {_a(_type_name(value))}", hint)


def _type_name(value: Any) -> str:
    return JSON_TYPES.get(type(value)) or type(value).__name__


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _choice(schema: _OpenAPI, value: Any) -> str | None:
    """The choice that was meant: without quotes, YAML takes On for true and 1.2 for a number."""
    if "enum" not in schema or schema.get("type") != "string":
        return None
    words = _YAML_WORDS[value] if isinstance(value, bool) else {str(value)}
    meant = [f'"{choice}"' for choice in schema["enum"] if choice.lower() in words]
    return f"write {' or '.join(meant)}, in quotes" if meant else f"write one of {', '.join(distinct(schema['enum']))}"


def _rewritten(wanted: Sequence[str], value: Any) -> str | None:
    """How to write `value` so that it has the wanted type, where that is plain."""
    if "string" in wanted and not isinstance(value, dict | list):
        return _quoted(value)
    if isinstance(value, str):
        if wanted[0] == "integer" and re.fullmatch(r"[+-]?\d+", value):
            return f"write {value.removeprefix('+')}, without quotes"
        for boolean, words in _YAML_WORDS.items():
            if wanted[0] == "boolean" and value.lower() in words:
                return f"write {str(boolean).lower()}, without quotes"
        if wanted[0] == "array":
            return f'write ["{value}"]'
    if wanted[0] == "array":
        return "begin each entry with a dash"
    if wanted[0] == "object" and isinstance(value, list):
        return "write fields without dashes"
    return None


def _quoted(value: Any) -> str:
    # YAML reads true, 0.5 and 2026-01-01 as something else than the text that was typed.
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f'write "{text}", in quotes'


# --- names -------------------------------------------------------------------


def _rename(key: str, properties: Mapping[str, _OpenAPI]) -> str:
    meant = nearest(key, properties)
    if meant is not None:
        return f"did you mean {meant}?"
    inside = [f"{name}.{key}" for name, inner in properties.items() if key in inner.get("properties", {})]
    if inside:
        return f"did you mean {' or '.join(inside)}?"
    return f"known here: {', '.join(properties)}" if properties else "nothing is configured here; write {}"
