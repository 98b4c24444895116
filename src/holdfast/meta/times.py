"""Instants as Kubernetes writes them: RFC 3339 in UTC, in whole seconds; leases in microseconds.

Every instant here is an aware ``datetime`` in UTC, and a naive one is refused: guessing its zone is how clocks go
wrong. This module must not know what time it is.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

from holdfast.meta.errors import MalformedError

_EXAMPLE: Final = "write an RFC 3339 time such as '2025-01-15T10:00:00Z' or '2025-01-15T11:00:00+01:00'"

# Stricter than `datetime.fromisoformat`, which also takes week dates, spaces and absent zones.
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


class TimeError(MalformedError):
    """A text that is not a time, or a datetime that does not say its zone."""


@lru_cache(maxsize=4096)  # what happens together is stamped alike, and is read again at every look
def parse(text: str) -> datetime:
    """Read a time, dropping fractions of a second: ``lastTransitionTime`` and its like have none."""
    return parse_micro(text).replace(microsecond=0)


def read(text: str | None) -> datetime | None:
    """A time that a status keeps; None where it has none, or where another client has written something else."""
    try:
        return parse(text) if text else None
    except TimeError:
        return None


def parse_micro(text: str) -> datetime:
    """Read a time to the microsecond, dropping what is finer; for ``MicroTime`` fields such as a Lease's."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise TimeError(f"{text!r} is not a time; {_EXAMPLE}")
    *fields, fraction, sign, hours, minutes = match.groups()
    try:
        offset = timedelta(hours=int(hours or 0), minutes=_below(60, minutes or "0"))
        zone = timezone(-offset if sign == "-" else offset)
        year, month, day, hour, minute, second = map(int, fields)
        microsecond = int((fraction or "").ljust(6, "0")[:6])
        return datetime(year, month, day, hour, minute, second, microsecond, zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise TimeError(f"{text!r} is not a time: {error}; {_EXAMPLE}") from error


@lru_cache(maxsize=4096)
def format(instant: datetime) -> str:
    """Write ``2025-01-15T10:00:00Z``, dropping fractions of a second."""
    return _written(instant, "seconds")


def format_micro(instant: datetime) -> str:
    """Write ``2025-01-15T10:00:00.000000Z``, always with six digits."""
    return _written(instant, "microseconds")


def truncate(instant: datetime) -> datetime:
    """The instant in UTC and whole seconds: what remains of it after a trip through the API."""
    return _utc(instant).replace(microsecond=0) if instant.microsecond or instant.tzinfo is not UTC else instant


def _written(instant: datetime, timespec: str) -> str:
    if instant.tzinfo is not UTC:
        instant = _utc(instant)
    return instant.isoformat(timespec=timespec)[: -len("+00:00")] + "Z"


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise TimeError(f"{instant!r} has no time zone; make it with tzinfo=UTC")
    return instant.astimezone(UTC)


def _below(limit: int, digits: str) -> int:
    number = int(digits)
    if number >= limit:
        raise ValueError(f"zone offset minutes must be in 0..{limit - 1}")
    return number
