"""Plain words of YAML as the values that kubectl takes them for.

kubectl follows neither YAML 1.1 nor 1.2 but Go's number syntax and a fixed list
of words: ``0o17`` and ``017`` are 15, ``1e3`` is 1000, ``1:30`` and dates are
text.  This module knows single words only.
"""

from __future__ import annotations

import re
from typing import Any, Final

LEGACY_BOOLEANS: Final = frozenset(
    form for word in ("y", "n", "yes", "no", "on", "off") for form in (word, word.capitalize(), word.upper())
)
"""Booleans of YAML 1.1 that are read as text here."""

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_BASES: Final = (16, 2, 8, 10)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST: Final = 300
"""Digits of a number; no float and no integer of an API has more."""


class NotAScalar(ValueError):
    """The word cannot be the value that is asked for; ``hint`` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}; {hint}")
        self.message = message
        self.hint = hint


def scalar(text: str, kind: str = "") -> Any:
    """The value of a word: by its form, or of a ``kind`` that a tag such as ``!!int`` names.

    >>> [scalar(word) for word in ("3", "0x10", "1e3", "true", "On", "2026-01-31", "~")]
    [3, 16, 1000, True, 'On', '2026-01-31', None]
    """
    if kind in ("str", "timestamp"):
        return text
    value = _value(text)
    if kind == "":
        return value
    if kind not in _KINDS:
        raise NotAScalar(f"the tag !!{kind} is not known", "leave it out")
    if kind == "float" and type(value) is int:
        return float(value)
    if type(value) not in _KINDS[kind]:
        raise NotAScalar(f"{text!r} is not of the type !!{kind}", "leave the tag out, or write such a value")
    return value


_KINDS: Final[dict[str, tuple[type, ...]]] = {"int": (int,), "float": (float,), "bool": (bool,), "null": (type(None),)}


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_FINITE.fullmatch(text):
        raise NotAScalar(f"{text} is a number that JSON does not have", "write a finite number, or the word in quotes")
    digits = text.replace("_", "")
    integer, real = _INTEGER.fullmatch(digits), _FLOAT.fullmatch(digits)
    if (integer or real) and len(digits) > _LONGEST:
        raise NotAScalar(f"a number of {len(digits):,} characters", "put it in quotes if it is a text")
    if integer:
        base, number = next((base, found) for base, found in zip(_BASES, integer.groups()[1:], strict=True) if found)
        return int(integer[1] + number, base)
    return _number(text, float(digits)) if real else text


def _number(text: str, value: float) -> int | float:
    """A float as JSON has it: one without a fraction is an integer."""
    if value in (float("inf"), float("-inf")):
        raise NotAScalar(f"{text} is larger than any number", "put it in quotes if it is a text")
    return int(value) if value.is_integer() else value
