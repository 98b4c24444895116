"""What a schema says of one value, apart from what is inside it: ranges, lengths, patterns, formats, choices.

Each check takes a value and its path and returns a problem or None, in the
words of Kubernetes.  Paths are chains of steps, rendered only when a problem is
told, for most values have none.  This module must not know how objects and
lists are walked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.meta.errors import FieldError, MalformedError
from holdfast.meta.patches.json import json_equal
from holdfast.meta.schemas import formats

Path: TypeAlias = "tuple[()] | tuple[Path, str | int]"
"""Where a value is: the path of what it is in, and its key or index there; empty for the root."""


class PatternError(MalformedError):
    """A text that is not a regular expression."""


class Key(str):
    """A step into a map by a key that is data, not the name of a field: ``labels[app]``."""

    __slots__ = ()


Check = Callable[[Any, Path], FieldError | None]
Search = Callable[[str], object]
Patterns = Callable[[str], Search]
"""Makes a search of a pattern, or raises `PatternError`; what the search returns is true where it finds it."""

INT64: Final = (-(2**63), 2**63 - 1)
_INT32: Final = (-(2**31), 2**31 - 1)
_FLOAT32_MAX: Final = 3.4028234663852886e38

_INTEGERS: Final = {"int32": _INT32, "int64": INT64}
_DOLLAR: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$")


def name_of(path: Path) -> str:
    """The path as people write it: ``spec.ports[0].name``."""
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, (int, Key)) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


def python_patterns(pattern: str) -> Search:
    """Searches by Python's own engine, for patterns that are trusted; `$` means the very end, as in RE2."""
    try:
        return re.compile(_DOLLAR.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern)).search
    except re.error as error:
        raise PatternError(str(error)) from error


def text_checks(schema: Mapping[str, Any], patterns: Patterns) -> tuple[Check, ...]:
    """The checks of a text, in order; the first that fails ends the matter."""
    checks: list[Check] = []
    if "maxLength" in schema:
        checks.append(_at_most(schema["maxLength"]))
    if schema.get("minLength"):
        checks.append(_at_least(schema["minLength"]))
    if schema.get("pattern"):
        checks.append(_matching(schema["pattern"], patterns(schema["pattern"])))
    return tuple(checks)


def format_check(schema: Mapping[str, Any]) -> Check | None:
    name = schema.get("format", "")
    known = formats.check_of(name) if schema.get("type", "string") == "string" else None
    if known is None:
        return None

    def check(value: str, path: Path) -> FieldError | None:
        if known(value):
            return None
        name_here = name_of(path)
        shown = value.replace("\\", "\\\\").replace('"', '\\"')
        detail = f'{name_here} in body must be of type {name}: "{shown}"'
        return FieldError.type_invalid(name_here, value, detail=detail)

    return check


def number_checks(schema: Mapping[str, Any]) -> tuple[Check, ...]:
    """The checks of a number, all of which are told."""
    checks = [_in_range(schema)]
    if schema.get("multipleOf"):
        checks.append(_multiple(schema["multipleOf"]))
    if "minimum" in schema:
        checks.append(_above(schema["minimum"], exclusive=bool(schema.get("exclusiveMinimum"))))
    if "maximum" in schema:
        checks.append(_below(schema["maximum"], exclusive=bool(schema.get("exclusiveMaximum"))))
    return tuple(checks)


def fitting_integers(schema: Mapping[str, Any]) -> range:
    """The integers that pass `number_checks`, multiples aside."""
    low, high = _INTEGERS.get(schema.get("format", ""), INT64)
    if "minimum" in schema:
        least = schema["minimum"]
        low = max(low, math.floor(least) + 1 if schema.get("exclusiveMinimum") else math.ceil(least))
    if "maximum" in schema:
        most = schema["maximum"]
        high = min(high, math.ceil(most) - 1 if schema.get("exclusiveMaximum") else math.floor(most))
    return range(low, high + 1)


def enum_check(choices: list[Any]) -> Check:
    supported = [choice if isinstance(choice, str) else _json(choice) for choice in choices]
    texts = frozenset(choice for choice in choices if isinstance(choice, str))

    def check(value: Any, path: Path) -> FieldError | None:
        if value in texts if type(value) is str else any(json_equal(value, choice) for choice in choices):
            return None
        return FieldError.not_supported(name_of(path), value, supported=supported)

    return check


def invalid(path: Path, value: Any, what: str) -> FieldError:
    """The usual problem: what the value ``in body`` should be instead."""
    name = name_of(path)
    return FieldError.invalid(name, value, detail=f"{name} in body {what}")


def mismatch(path: Path, expected: Iterable[str], found: str) -> FieldError:
    name = name_of(path)
    detail = f'{name} in body must be of type {",".join(expected)}: "{found}"'
    return FieldError.type_invalid(name, found, detail=detail)


def _at_most(limit: int) -> Check:
    def check(value: str, path: Path) -> FieldError | None:
        return None if len(value) <= limit else FieldError.too_long(name_of(path), limit)

    return check


def _at_least(limit: int) -> Check:
    def check(value: str, path: Path) -> FieldError | None:
        return None if len(value) >= limit else invalid(path, value, f"should be at least {limit} chars long")

    return check


def _matching(pattern: str, search: Search) -> Check:
    def check(value: str, path: Path) -> FieldError | None:
        return None if search(value) else invalid(path, value, f"should match '{pattern}'")

    return check


def _in_range(schema: Mapping[str, Any]) -> Check:
    """Whether the machine's numbers hold the value; the server tells it without a field."""
    form = schema.get("format", "")
    if schema.get("type") == "integer" or schema.get("x-kubernetes-int-or-string"):
        low, high = _INTEGERS.get(form, INT64)
        kind, form = "integer", form if form in _INTEGERS else ""

        def holds(value: float) -> bool:
            return low <= value <= high and value == int(value)

    else:
        kind, form = "number", form if form == "float" else ""

        def holds(value: float) -> bool:
            return form != "float" or abs(value) <= _FLOAT32_MAX

    written = f"with format {form}" if form else "(default format)"

    def check(value: float, path: Path) -> FieldError | None:
        if holds(value):
            return None
        where = name_of(path)
        return FieldError.invalid("", "", detail=f"Checked value must be of type {kind} {written} in {where}")

    return check


def _multiple(factor: float) -> Check:
    def check(value: float, path: Path) -> FieldError | None:
        if isinstance(value, int) and factor == int(factor):
            fits = value % int(factor) == 0
        else:
            ratio = value / factor
            fits = math.isclose(ratio, round(ratio), rel_tol=1e-9, abs_tol=1e-12)
        return None if fits else invalid(path, value, f"should be a multiple of {_bound(factor, value)}")

    return check


def _above(limit: float, *, exclusive: bool) -> Check:
    def check(value: float, path: Path) -> FieldError | None:
        if value > limit or (value == limit and not exclusive):
            return None
        words = "greater than" if exclusive else "greater than or equal to"
        return invalid(path, value, f"should be {words} {_bound(limit, value)}")

    return check


def _below(limit: float, *, exclusive: bool) -> Check:
    def check(value: float, path: Path) -> FieldError | None:
        if value < limit or (value == limit and not exclusive):
            return None
        words = "less than" if exclusive else "less than or equal to"
        return invalid(path, value, f"should be {words} {_bound(limit, value)}")

    return check


def _bound(limit: float, value: float) -> str:
    """A bound as the server prints it: whole for whole values, else as Go prints a float."""
    if isinstance(value, int) or isinstance(limit, int) or limit.is_integer():
        return str(int(limit))
    return repr(limit)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
