"""Checks of one value against the words of its schema: ranges, lengths, patterns, formats, choices.

A check takes a value and its path and returns a `Finding`, or None if the value is as it should be.  Findings carry
facts and no sentences: `messages` says them in the words of the API server, `hints` in words for the author of a
document.  Paths are chains of steps that are only rendered for a finding, because most values have none.

The module must not know how objects and lists are walked.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.meta.errors import MalformedError
from holdfast.meta.patches.json import hashable
from holdfast.meta.schemas import formats

Path: TypeAlias = "tuple[()] | tuple[Path, str | int]"
"""Where a value is: the path of what it is in, and its key or index there; empty for the root."""


class PatternError(MalformedError):
    """A text that is not a regular expression."""


class Key(str):
    """A step into a map by a key that is data, not the name of a field: ``labels[app]``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A value that breaks a word of its schema.

    word   the word: ``type``, ``required``, ``maximum`` and so on
    path   where the value is
    value  the value
    limit  what the schema says under that word
    """

    word: str
    path: Path
    value: Any = None
    limit: Any = None


Check = Callable[[Any, Path], Finding | None]
Search = Callable[[str], object]
Patterns = Callable[[str], Search]
"""Makes a search of a pattern, or raises `PatternError`; a search returns something true for a text that matches."""

INT64: Final = (-(2**63), 2**63 - 1)
_INT32: Final = (-(2**31), 2**31 - 1)
_FLOAT32_MAX: Final = 3.4028234663852886e38

INTEGERS: Final = {"int32": _INT32, "int64": INT64}
_DOLLAR: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$")


def name_of(path: Path) -> str:
    """The path as the API server writes it: ``spec.ports[0].name``."""
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, (int, Key)) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


def python_patterns(pattern: str) -> Search:
    """Searches by Python's own engine, for patterns that are trusted.

    As in RE2, which API servers use, `$` means the very end and classes such as ``\\d`` are ASCII.
    """
    try:
        return re.compile(_DOLLAR.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern), re.ASCII).search
    except re.error as error:
        raise PatternError(str(error)) from error


def text_checks(schema: Mapping[str, Any], patterns: Patterns) -> tuple[Check, ...]:
    """The checks of a text, in order; the first that fails is the only one that is reported."""
    checks: list[Check] = []
    if "maxLength" in schema:
        checks.append(_check("maxLength", schema["maxLength"], lambda value, most: len(value) <= most))
    if schema.get("minLength"):
        checks.append(_check("minLength", schema["minLength"], lambda value, least: len(value) >= least))
    if schema.get("pattern"):
        search = patterns(schema["pattern"])
        checks.append(_check("pattern", schema["pattern"], lambda value, _: search(value)))
    return tuple(checks)


def format_check(schema: Mapping[str, Any]) -> Check | None:
    name = schema.get("format", "")
    known = formats.check_of(name) if schema.get("type", "string") == "string" else None
    return None if known is None else _check("format", name, lambda value, _: known(value))


def number_checks(schema: Mapping[str, Any]) -> tuple[Check, ...]:
    """The checks of a number, all of which are reported."""
    checks = [_in_range(schema)]
    if schema.get("multipleOf"):
        checks.append(_check("multipleOf", schema["multipleOf"], _is_multiple))
    if "minimum" in schema:
        word = "exclusiveMinimum" if schema.get("exclusiveMinimum") else "minimum"
        checks.append(_check(word, schema["minimum"], operator.gt if schema.get("exclusiveMinimum") else operator.ge))
    if "maximum" in schema:
        word = "exclusiveMaximum" if schema.get("exclusiveMaximum") else "maximum"
        checks.append(_check(word, schema["maximum"], operator.lt if schema.get("exclusiveMaximum") else operator.le))
    return tuple(checks)


def fitting_integers(schema: Mapping[str, Any]) -> range:
    """The integers that pass `number_checks`, multiples aside."""
    low, high = INTEGERS.get(schema.get("format", ""), INT64)
    if "minimum" in schema:
        least = schema["minimum"]
        low = max(low, math.floor(least) + 1 if schema.get("exclusiveMinimum") else math.ceil(least))
    if "maximum" in schema:
        most = schema["maximum"]
        high = min(high, math.ceil(most) - 1 if schema.get("exclusiveMaximum") else math.floor(most))
    return range(low, high + 1)


def enum_check(choices: list[Any]) -> Check:
    known = frozenset(map(hashable, choices))

    def is_one(value: Any, _: list[Any]) -> bool:
        return hashable(value) in known

    return _check("enum", choices, is_one)


def _check(word: str, limit: Any, holds: Callable[[Any, Any], object]) -> Check:
    def check(value: Any, path: Path) -> Finding | None:
        return None if holds(value, limit) else Finding(word, path, value, limit)

    return check


def _in_range(schema: Mapping[str, Any]) -> Check:
    """Whether the number fits into the type that holds it: ``(type, format)`` is the limit."""
    form = schema.get("format", "")
    if schema.get("type") == "integer" or schema.get("x-kubernetes-int-or-string"):
        low, high = INTEGERS.get(form, INT64)
        limit = ("integer", form if form in INTEGERS else "")

        def holds(value: float, _: Any) -> bool:
            return low <= value <= high and value == int(value)

    else:
        limit = ("number", form if form == "float" else "")

        def holds(value: float, _: Any) -> bool:
            return form != "float" or abs(value) <= _FLOAT32_MAX

    return _check("range", limit, holds)


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and factor == int(factor):
        return value % int(factor) == 0
    ratio = value / factor
    return math.isfinite(ratio) and math.isclose(ratio, round(ratio), rel_tol=1e-9, abs_tol=1e-12)
