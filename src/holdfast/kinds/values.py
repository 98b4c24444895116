"""What a structural schema says of a value: its problems, its nulls, its defaults.

The same three passes that an API server makes, for use where there is none.
Problems are all reported at once, each with the path and what to write
instead.  This module must not know any kind; CEL rules are not its matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from holdfast.kinds.model import Duration, IntOrPercent, Quantity

Schema = Mapping[str, Any]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_INTEGER_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_RFC3339: Final = re.compile(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")
_PLAIN_KEY: Final = re.compile(r"^[A-Za-z0-9_-]+$")
_ESCAPE_CLASS_OR_END: Final = re.compile(r"(\\.|\[(?:\\.|[^]\\])*])|\$")
_YAML_WORDS: Final = {True: frozenset({"true", "yes", "on", "y"}), False: frozenset({"false", "no", "off", "n"})}
"""The words, in small letters, that a YAML reader may take for each boolean."""


def _pattern_of(annotated: Any) -> str:
    """The pattern of an annotated string, also where it is one member of a union."""
    for candidate in (annotated, *getattr(annotated, "__args__", ())):
        for note in getattr(candidate, "__metadata__", ()):
            if note.pattern is not None:
                return str(note.pattern)
    raise LookupError(annotated)


_EXAMPLES: Final = {
    _pattern_of(Duration): "write a duration such as 30s, 5m or 1h30m",
    _pattern_of(IntOrPercent): "write a count such as 2 or a percentage such as 25%",
    _pattern_of(Quantity): "write an amount such as 2, 500m or 1Gi",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document, where, and what to write instead."""

    path: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}"
        return text if self.hint is None else f"{text}; {self.hint}"


def is_open(schema: Schema) -> bool:
    """Whether an object keeps fields that its schema does not name."""
    return bool(schema.get(_PRESERVE))


def child(path: str, key: str) -> str:
    """The path of a field or map entry; keys with dots or slashes are bracketed."""
    step = key if _PLAIN_KEY.match(key) else f"[{key}]"
    if not path:
        return step
    return f"{path}{step}" if step.startswith("[") else f"{path}.{step}"


def problems(schema: Schema, value: Any, path: str = "") -> Iterator[Problem]:
    """Everything in ``value`` that ``schema`` does not accept, in document order."""
    if value is None:
        if not schema.get("nullable"):
            empty = ', or write ""' if schema.get("type") == "string" else ""
            yield Problem(path, "must not be null", f"leave it out{empty}")
        return
    wrong_type = _type_problem(schema, value, path)
    if wrong_type is not None:
        yield wrong_type
        return
    yield from _scalar_problems(schema, value, path)
    if isinstance(value, dict):
        yield from _object_problems(schema, value, path)
    elif isinstance(value, (list, tuple)):
        yield from _array_problems(schema, value, path)


def without_nulls(schema: Schema, value: Any) -> Any:
    """``value`` without the nulls that stand for absence; free-form parts are untouched."""
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        for key, item in value.items():
            inner = _property(schema, key)
            if inner is None:
                kept[key] = item
            elif item is not None or inner.get("nullable"):
                kept[key] = without_nulls(inner, item)
        return kept
    if isinstance(value, (list, tuple)) and "items" in schema:
        return [without_nulls(schema["items"], item) for item in value]
    return value


def defaulted(schema: Schema, value: Any) -> Any:
    """``value`` with every default that an API server would write, also inside defaults."""
    if isinstance(value, dict):
        filled = dict(value)
        for key, inner in schema.get("properties", {}).items():
            if "default" in inner and filled.get(key) is None and not (key in filled and inner.get("nullable")):
                filled[key] = inner["default"]
        for key, item in filled.items():
            inner = _property(schema, key)
            if inner is not None:
                filled[key] = defaulted(inner, item)
        return filled
    if isinstance(value, (list, tuple)) and "items" in schema:
        return [defaulted(schema["items"], item) for item in value]
    return value


def _property(schema: Schema, key: str) -> Schema | None:
    """The schema of one field or map entry; None where it is free-form or unknown."""
    found = schema.get("properties", {}).get(key)
    return found if found is not None else schema.get("additionalProperties")


# --- types -------------------------------------------------------------------


def _type_problem(schema: Schema, value: Any, path: str) -> Problem | None:
    wanted: tuple[str, ...] = ("integer", "string") if schema.get(_INT_OR_STRING) else (schema.get("type", ""),)
    if wanted == ("",):
        return None
    is_a = _type_name(value)
    if is_a in wanted or (is_a == "integer" and "number" in wanted):
        return None
    hint = _rechoose(schema, value) or _retype(wanted, value)
    return Problem(path, f"must be {_a(' or '.join(wanted))}, not {_a(is_a)}", hint)


def _type_name(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case dict():
            return "object"
    return type(value).__name__


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _rechoose(schema: Schema, value: Any) -> str | None:
    """The choice that was meant: without quotes, YAML takes On for true and 1.2 for a number."""
    if "enum" not in schema or schema.get("type") != "string":
        return None
    words = _YAML_WORDS[value] if isinstance(value, bool) else {str(value)}
    meant = [f'"{choice}"' for choice in schema["enum"] if choice.lower() in words]
    return f"write {' or '.join(meant)}, in quotes" if meant else f"write one of {', '.join(_distinct(schema['enum']))}"


def _retype(wanted: tuple[str, ...], value: Any) -> str | None:
    """How to write ``value`` so that it has the wanted type, if that is plain."""
    if "string" in wanted and not isinstance(value, (dict, list)):
        # YAML reads true, 0.5 and 2026-01-01 as something else than the text that was typed.
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return f'write "{text}", in quotes'
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


# --- scalars -----------------------------------------------------------------


def _scalar_problems(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        choices = _distinct(schema["enum"])
        suggestion = nearest(str(value), choices)
        hint = None if suggestion is None else f"did you mean {suggestion}?"
        yield Problem(path, f"must be one of {', '.join(choices)}, not {value!r}", hint)
    if isinstance(value, str):
        yield from _string_problems(schema, value, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_problems(schema, value, path)


def _string_problems(schema: Schema, value: str, path: str) -> Iterator[Problem]:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < least:
        yield Problem(path, "must not be empty" if least == 1 else f"must have at least {least} characters")
        return
    if most is not None and len(value) > most:
        yield Problem(path, f"must have at most {most} characters, has {len(value)}")
    pattern = schema.get("pattern")
    if pattern is not None and not _compiled(pattern).search(value):
        hint = _EXAMPLES.get(pattern, f"it must match {pattern}")
        yield Problem(path, f"{value!r} is not in the expected form", hint)
    if schema.get("format") == "date-time" and not _RFC3339.match(value):
        yield Problem(path, f"{value!r} is not a time", "write it like 2026-01-31T12:00:00Z")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """``pattern`` as API servers read it: $ is the very end, not also before a last line break; classes are ASCII."""
    return re.compile(_ESCAPE_CLASS_OR_END.sub(lambda found: found[1] or r"\Z", pattern), re.ASCII)


def _number_problems(schema: Schema, value: float, path: str) -> Iterator[Problem]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        bound = "more than" if schema.get("exclusiveMinimum") else "at least"
        yield Problem(path, f"must be {bound} {least}, is {value}")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        bound = "less than" if schema.get("exclusiveMaximum") else "at most"
        yield Problem(path, f"must be {bound} {most}, is {value}")
    step = schema.get("multipleOf")
    if step and value % step:
        yield Problem(path, f"must be a multiple of {step}, is {value}")
    if isinstance(value, int):
        low, high = _INTEGER_RANGES["int32" if schema.get("format") == "int32" else "int64"]
        if not low <= value <= high:
            yield Problem(path, f"must be between {low} and {high}, is {value}")


# --- objects and arrays ------------------------------------------------------


def _object_problems(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if value.get(name) is None and "default" not in properties[name]:
            yield Problem(child(path, name), "is required", _purpose(properties[name]))
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if not isinstance(value.get(name), str):
                yield Problem(child(path, name), "is required", "an embedded object says what it is")
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    yield from _size_problems(len(value), least, most, path=path, noun="entries")
    for key, item in value.items():
        if not isinstance(key, str):
            yield Problem(path, f"the key {key!r} must be a string", _retype(("string",), key))
            continue
        inner = _property(schema, key)
        if inner is None:
            if not is_open(schema):
                yield Problem(child(path, key), "unknown field", _rename(key, properties))
        elif item is not None or schema.get("additionalProperties") is not None:
            yield from problems(inner, item, child(path, key))


def _array_problems(schema: Schema, value: Sequence[Any], path: str) -> Iterator[Problem]:
    yield from _size_problems(len(value), schema.get("minItems"), schema.get("maxItems"), path=path, noun="items")
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        at = f"{path}[{index}]"
        yield from problems(schema.get("items", {}), item, at)
        identity = _identity(schema, keys, item)
        if identity is None:
            continue
        if identity in seen:
            yield Problem(at, f"repeats {identity} of {path}[{seen[identity]}]", "give each entry its own")
        seen.setdefault(identity, index)


def _identity(schema: Schema, keys: Iterable[str], item: Any) -> str | None:
    """What must differ between the entries of a list that is a map or a set."""
    match schema.get("x-kubernetes-list-type"):
        case "map" if isinstance(item, dict):
            properties = schema["items"]["properties"]
            return " and ".join(f"{key} {item.get(key, properties[key].get('default'))!r}" for key in keys)
        case "set":
            return repr(item)
    return None


def _size_problems(size: int, least: int | None, most: int | None, *, path: str, noun: str) -> Iterator[Problem]:
    if least is not None and size < least:
        yield Problem(path, f"must have at least {least} {noun}, has {size}")
    if most is not None and size > most:
        yield Problem(path, f"must have at most {most} {noun}, has {size}")


# --- what to write instead ---------------------------------------------------


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that ``word`` was probably meant to be: another style first, then a slip."""
    import difflib  # only the sad path pays for it

    known = list(choices)
    styles = {_styleless(choice): choice for choice in reversed(known)}
    if _styleless(word) in styles:
        return styles[_styleless(word)]
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    return close[0] if close else None


def _rename(key: str, properties: Mapping[str, Schema]) -> str | None:
    suggestion = nearest(key, properties)
    if suggestion is not None:
        return f"did you mean {suggestion}?"
    inside = [f"{name}.{key}" for name, inner in properties.items() if key in inner.get("properties", {})]
    if inside:
        return f"did you mean {' or '.join(inside)}?"
    if not properties:
        return "nothing is configured here; write {}"
    return f"known here: {', '.join(properties)}"


def _purpose(schema: Schema) -> str | None:
    """The first sentence of a field's description, to say what to write."""
    description = schema.get("description")
    return None if description is None else str(description).split(". ")[0].rstrip(".")


def _distinct(values: Iterable[Any]) -> list[str]:
    """The choices without those that are only other spellings of an earlier one."""
    kept: dict[str, str] = {}
    for value in values:
        kept.setdefault(_styleless(str(value)), str(value))
    return list(kept.values())


def _styleless(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()
