"""Quantities of resources: ``500m`` of a CPU, ``1.5Gi`` of memory, ``1e3`` of anything.

A quantity is a whole number of nanos, so arithmetic is exact, and it remembers the family of suffixes it was
written with, so that it prints in the user's own units. Equality, order and hash go by value alone:
``1Gi == 1024Mi``. The rules are Kubernetes':

- What is finer than a nano is rounded up, away from zero: who asks for something gets something.
- What is read is capped at ±(2**63 - 1). Sums are not: a total over a large fleet must stay a total.
- What prints in binary suffixes is a whole number of at least 1024; otherwise decimal ones are used.

This module must not know any resource's name, nor what counts as a sensible amount of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final, overload

from holdfast.meta.errors import MalformedError

_EXAMPLE: Final = "write a number with a suffix such as '500m', '2', '1.5Gi', '100M' or '1e3'"

_NANO: Final = 10**9
_CAP: Final = (2**63 - 1) * _NANO
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")

_QUANTITY: Final = re.compile(
    r"([+-]?)(?=\.?\d)(\d*)\.?(\d*)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?",
    re.ASCII,
)
_MAX_TEXT: Final = 256


class QuantityError(MalformedError):
    """A text that is not a quantity."""


class Format(Enum):
    """The family of suffixes that a quantity is written with."""

    BINARY_SI = "binary SI"
    DECIMAL_SI = "decimal SI"
    DECIMAL_EXPONENT = "decimal exponent"


@dataclass(frozen=True, slots=True, order=True, repr=False)
class Quantity:
    """An exact amount: `nanos` billionths of one unit."""

    nanos: int
    format: Format = field(default=Format.DECIMAL_SI, compare=False)

    @classmethod
    def parse(cls, value: str | int | float) -> Quantity:
        """Read a quantity, or a bare JSON number, which counts as the text it was written as."""
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise QuantityError(f"{value!r} is not a quantity; {_EXAMPLE}")
        return _parsed(str(value))

    @classmethod
    def of_bytes(cls, number: int) -> Quantity:
        """A number of bytes, which is written with binary suffixes where it has any."""
        return cls(number * _NANO, Format.BINARY_SI)

    def to_int(self) -> int:
        """Whole units, rounded away from zero."""
        return _rounded_up(self.nanos, _NANO)

    def to_millis(self) -> int:
        """Thousandths, rounded away from zero; how CPU is usually counted."""
        return _rounded_up(self.nanos, _NANO // 1000)

    def __str__(self) -> str:
        """The canonical form: the largest suffix of its family that leaves a whole number."""
        if not self.nanos:
            return "0"
        units, rest = divmod(self.nanos, _NANO)
        if self.format is Format.BINARY_SI and not rest and abs(units) >= 1024:
            number, steps = _divided(units, 1024, limit=len(_BINARY) - 1)
            return f"{number}{_BINARY[steps]}"
        if self.format is Format.DECIMAL_EXPONENT:
            number, steps = _divided(self.nanos, 1000)
            exponent = 3 * steps - 9
            return f"{number}e{exponent}" if exponent else str(number)
        number, steps = _divided(self.nanos, 1000, limit=len(_DECIMAL) - 1)
        return f"{number}{_DECIMAL[steps]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        # Zero has no units of its own, so that a running total prints in the units of what is added.
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self + -other

    def __mul__(self, times: int) -> Quantity:
        if not isinstance(times, int):
            return NotImplemented
        return Quantity(self.nanos * times, self.format)

    __rmul__ = __mul__

    @overload
    def __floordiv__(self, other: Quantity) -> int: ...

    @overload
    def __floordiv__(self, other: int) -> Quantity: ...

    def __floordiv__(self, other: Quantity | int) -> int | Quantity:
        """How often `other` fits in, or one of `other` equal shares; rounded down."""
        if isinstance(other, Quantity):
            return self.nanos // other.nanos
        if isinstance(other, int):
            return Quantity(self.nanos // other, self.format)
        return NotImplemented


@lru_cache(maxsize=4096)  # the pods of a cluster ask for a few amounts, again and again
def _parsed(text: str) -> Quantity:
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if match is None:
        raise QuantityError(f"{_shortened(text)!r} is not a quantity; {_EXAMPLE}{_suggestion(text)}")
    sign, whole, fraction, binary, decimal, exponent = match.groups()
    digits = int(whole + fraction)
    if binary:
        magnitude = _nanos(digits * 1024 ** _BINARY.index(binary), -len(fraction))
        # A fraction of one has no binary form, now or in any sum that starts with it.
        family = Format.DECIMAL_SI if 0 < magnitude < _NANO else Format.BINARY_SI
    elif exponent:
        magnitude = _nanos(digits, int(exponent) - len(fraction))
        family = Format.DECIMAL_EXPONENT
    else:
        magnitude = _nanos(digits, _DECIMAL.index(decimal or "") * 3 - 9 - len(fraction))
        family = Format.DECIMAL_SI
    return Quantity(-magnitude if sign == "-" else magnitude, family)


def _nanos(digits: int, power: int) -> int:
    """``digits * 10**power`` in nanos, rounded up to a whole one and capped.

    A text may ask for any power of ten. Beyond some, the answer is the cap or one nano whatever the digits are,
    and no larger power need be computed.
    """
    power = max(-2 * _MAX_TEXT, min(power + 9, 2 * _MAX_TEXT))
    scale: int = 10 ** abs(power)
    return min(digits * scale if power >= 0 else _rounded_up(digits, scale), _CAP)


def _rounded_up(number: int, unit: int) -> int:
    """``number / unit``, rounded away from zero."""
    return -(-number // unit) if number >= 0 else number // unit


def _divided(number: int, factor: int, *, limit: int | None = None) -> tuple[int, int]:
    """The number without its factors of `factor`, and how many there were, up to a limit."""
    steps = 0
    while number % factor == 0 and steps != limit:
        number //= factor
        steps += 1
    return number, steps


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _suggestion(text: str) -> str:
    """What was probably meant by the usual slips: spaces, a ``B`` for bytes, a capital ``K``."""
    base = "".join(text[:_MAX_TEXT].split()).removesuffix("B")
    for candidate in (base, f"{base.removesuffix('K')}k"):
        if candidate != text and _QUANTITY.fullmatch(candidate):
            return f"; did you mean {candidate!r}?"
    return ""
