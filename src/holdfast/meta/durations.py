"""Durations as Go writes them: ``1h30m0s``, ``100ms``, ``-1.5h``.

A duration is a ``timedelta`` to the rest of Holdfast. Go counts nanoseconds, so the exact forms below take and
give an integer of them, for values that are only checked or passed on; `parse` drops what is finer than a
microsecond. There are no days: a day is not always 24 hours, and Go has none.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from holdfast.meta.errors import MalformedError

_EXAMPLE: Final = "write numbers with units such as '30s', '1h30m', '1.5h' or '100ms'"

_SECOND: Final = 1_000_000_000
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek letter mu
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3_600 * _SECOND,
}
_LIMIT: Final = 2**63

# Matches anything but the empty text, so that `_term` can say what is wrong with it.
_TERM: Final = re.compile(r"(?=.)(\d*)\.?(\d*)([^\d.]*)", re.ASCII | re.DOTALL)
_MAX_TEXT: Final = 256


class DurationError(MalformedError):
    """A text that is not a duration."""


def parse(text: str) -> timedelta:
    """Read a duration, dropping what is finer than a microsecond."""
    nanoseconds = parse_nanoseconds(text)
    microseconds = abs(nanoseconds) // 1_000
    return timedelta(microseconds=microseconds if nanoseconds >= 0 else -microseconds)


def parse_nanoseconds(text: str) -> int:
    """Read a duration exactly, within Go's 292 years; each term drops its fractions of a nanosecond, as in Go."""
    if len(text) > _MAX_TEXT:
        raise DurationError(f"{text[:20]!r}... is too long for a duration; {_EXAMPLE}")
    unsigned = text[1:] if text.startswith(("+", "-")) else text
    if not unsigned:
        raise DurationError(f"{text!r} is not a duration; {_EXAMPLE}")
    total = 0 if unsigned == "0" else sum(map(_term, _TERM.finditer(unsigned)))
    signed = -total if text.startswith("-") else total
    if not -_LIMIT <= signed < _LIMIT:
        raise DurationError(f"{text!r} is out of range; the longest duration is '2562047h47m16.854775807s'")
    return signed


def format(duration: timedelta) -> str:
    """Write as Go prints: ``1h30m0s``, ``1m0.5s``, ``100ms``, ``0s``."""
    return format_nanoseconds(_nanoseconds(duration))


def format_nanoseconds(nanoseconds: int) -> str:
    """As `format`, of an exact number of nanoseconds."""
    sign, rest = _sign(nanoseconds)
    if 0 < rest < _SECOND:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _NANOSECONDS[unit])
        return f"{sign}{_decimal(rest, _NANOSECONDS[unit])}{unit}"
    hours, minutes, seconds = _clock(rest)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}s"
    return f"{sign}{minutes}m{seconds}s" if minutes else f"{sign}{seconds}s"


def short(duration: timedelta) -> str:
    """Write for people, without the parts that are zero: ``1h30m``, ``2h5s``, ``100ms``, ``0s``."""
    nanoseconds = _nanoseconds(duration)
    sign, rest = _sign(nanoseconds)
    if rest < _SECOND:
        return format_nanoseconds(nanoseconds)
    parts = zip(_clock(rest), "hms", strict=True)
    return sign + "".join(f"{amount}{unit}" for amount, unit in parts if str(amount) != "0")


def _term(match: re.Match[str]) -> int:
    """One ``<number><unit>`` in nanoseconds."""
    whole, fraction, unit = match.groups()
    if not whole and not fraction:
        raise DurationError(f"{match.string!r} is not a duration; {_EXAMPLE}")
    if unit not in _NANOSECONDS:
        wrong = f"the unknown unit {unit!r}" if unit else f"no unit after {match[0]!r}"
        raise DurationError(f"{match.string!r} has {wrong}; the units are h, m, s, ms, us and ns: {_EXAMPLE}")
    scale: int = 10 ** len(fraction)
    return int(whole + fraction) * _NANOSECONDS[unit] // scale


def _nanoseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1) * 1_000


def _sign(number: int) -> tuple[str, int]:
    return ("-", -number) if number < 0 else ("", number)


def _clock(nanoseconds: int) -> tuple[int, int, str]:
    minutes, rest = divmod(nanoseconds, _NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    return hours, minutes, _decimal(rest, _SECOND)


def _decimal(number: int, unit: int) -> str:
    """``number / unit`` exactly, without trailing zeros; `unit` is a power of ten."""
    whole, rest = divmod(number, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).rjust(len(str(unit)) - 1, '0').rstrip('0')}"
