"""An integer or a percentage, as ``maxSurge`` and ``minAvailable`` take it: ``3`` or ``"25%"``.

The rules, which are Kubernetes':

- A number is an integer, not negative; a percentage is digits and ``%``, so whole and not negative.
- ``"3"``, a number in quotes, is refused, not guessed: Kubernetes refuses it, and the same manifest must mean
  the same everywhere. So are booleans, which Python takes for integers.
- More than ``100%`` is allowed: a surge may double a fleet. The caller decides what to do with it.
- Resolving is exact; which way to round is the caller's to say, since it differs by field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from holdfast.meta.errors import MalformedError

Rounding = Literal["up", "down"]

_EXAMPLE: Final = "write a whole number such as 3, or a percentage such as '25%'"
_PERCENT: Final = re.compile(r"(\d{1,9})%", re.ASCII)


class AmountError(MalformedError):
    """A value that is neither a count nor a percentage."""


@dataclass(frozen=True, slots=True)
class IntOrPercent:
    """`number` of things, or `number` percent of them."""

    number: int
    is_percent: bool = False

    @classmethod
    def parse(cls, value: int | str) -> IntOrPercent:
        """Read the JSON value of a field."""
        match value:
            case bool():
                raise AmountError(f"{value} is a boolean, not an amount; {_EXAMPLE}")
            case int():
                return cls(_checked(value))
            case str():
                return cls(_percentage(value), is_percent=True)
            case _:
                raise AmountError(f"{value!r} is not an amount; {_EXAMPLE}")

    def to_wire(self) -> int | str:
        """The JSON value of a field; `parse` reads it back."""
        return f"{self.number}%" if self.is_percent else self.number

    def __str__(self) -> str:
        return str(self.to_wire())


def resolve(value: IntOrPercent | int | str, total: int, *, round: Rounding) -> int:
    """How many of `total` are meant. An integer is itself, whatever the total."""
    amount = value if isinstance(value, IntOrPercent) else IntOrPercent.parse(value)
    if not amount.is_percent:
        return amount.number
    match round:
        case "up":
            return -(-amount.number * total // 100)
        case "down":
            return amount.number * total // 100
        case _:
            assert_never(round)


def _checked(number: int) -> int:
    if number < 0:
        raise AmountError(f"{number} is negative; {_EXAMPLE}")
    return number


def _percentage(text: str) -> int:
    match = _PERCENT.fullmatch(text)
    if match is not None:
        return int(match[1])
    if text.isdecimal():
        raise AmountError(f"{text!r} is a number in quotes; write {text} without quotes, or '{text}%'")
    raise AmountError(f"{text!r} is not a percentage; {_EXAMPLE}")
