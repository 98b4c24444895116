"""Cron schedules: when something is due, in a time zone.

    >>> nightly = parse("30 2 * * mon-fri")
    >>> nightly.next(datetime(2025, 1, 3, 12, tzinfo=UTC), UTC)
    datetime.datetime(2025, 1, 6, 2, 30, tzinfo=datetime.timezone.utc)

Five fields (minute, hour, day of the month, month, day of the week), a name such as ``@daily``, or ``@every 6h``.  As
with CronJobs, a day matches either of the two day fields if both are restricted.  A time that a change of the clocks
skips is due by as much later; one that comes twice is due once, unless the hour is ``*``.  Pure: time and time zone
are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from holdfast.meta import durations
from holdfast.meta.errors import MalformedError

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAY: Final = timedelta(days=1)
_HORIZON: Final = 8 * 366
"""Days after which a schedule is said to be never due: 29 February comes at least once in eight years."""


class CronError(MalformedError):
    """A text that is not a cron schedule."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule of five fields; the two `any` say which day fields are not restricted."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool
    any_hour: bool

    def next(self, after: datetime, zone: tzinfo) -> datetime | None:
        """The first time after an instant, in UTC; None if there is none in the next eight years."""
        first = after.astimezone(zone).date() - _DAY
        for n in range(_HORIZON):
            for instant in self._on(first + n * _DAY, zone):
                if instant > after:
                    return instant
        return None

    def latest(self, after: datetime, until: datetime, zone: tzinfo) -> datetime | None:
        """The last time after an instant and not after another, in UTC."""
        first, last = after.astimezone(zone).date() - _DAY, until.astimezone(zone).date()
        for n in range((last - first).days + 1):
            for instant in reversed(self._on(last - n * _DAY, zone)):
                if instant <= until:
                    return instant if instant > after else None
        return None

    def _matches(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        either = not self.any_day and not self.any_weekday
        return day.month in self.months and ((in_month or in_week) if either else (in_month and in_week))

    def _on(self, day: date, zone: tzinfo) -> list[datetime]:
        """The instants of one day, in UTC, in order."""
        return sorted(set(self._instants(day, zone))) if self._matches(day) else []

    def _instants(self, day: date, zone: tzinfo) -> Iterator[datetime]:
        for hour in self.hours:
            for minute in self.minutes:
                wall = datetime.combine(day, time(hour, minute), zone)
                yield wall.astimezone(UTC)
                if self.any_hour and wall.utcoffset() != wall.replace(fold=1).utcoffset():
                    yield wall.replace(fold=1).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule of one interval, counted from the instant that `next` and `latest` are given."""

    interval: timedelta

    def next(self, after: datetime, zone: tzinfo) -> datetime | None:
        return after + self.interval

    def latest(self, after: datetime, until: datetime, zone: tzinfo) -> datetime | None:
        times = (until - after) // self.interval
        return after + times * self.interval if times > 0 else None


def parse(text: str) -> Cron | Every:
    """Read a schedule; raises `CronError`."""
    every, _, interval = text.partition(" ")
    if every == "@every":
        return Every(_interval(text, interval))
    fields = _NAMED.get(text, text).split()
    if text.startswith("@") and text not in _NAMED:
        raise CronError(f"{text!r} is not a schedule; write @daily, @every 6h, or five fields such as '30 2 * * *'")
    if len(fields) != len(_FIELDS):
        raise CronError(
            f"{text!r} has {len(fields)} fields; write five: minute, hour, day of the month, month, day of the week"
        )
    minutes, hours, days, months, weekdays = (each.read(part) for each, part in zip(_FIELDS, fields, strict=True))
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        any_day=_any(fields[2]),
        any_weekday=_any(fields[4]),
        any_hour=_any(fields[1]),
    )


def _interval(text: str, interval: str) -> timedelta:
    try:
        found = durations.parse(interval)
    except durations.DurationError as error:
        raise CronError(f"{text!r} is not a schedule: {error}") from error
    if found < timedelta(seconds=1):
        raise CronError(f"{text!r} is not a schedule; the shortest interval is 1s")
    return timedelta(seconds=int(found.total_seconds()))


def _any(text: str) -> bool:
    return text[0] in "*?"


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: what it is called, its bounds, and the names that its numbers have."""

    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)

    def read(self, text: str) -> set[int]:
        return {number for part in text.split(",") for number in self._part(part)}

    def _part(self, part: str) -> range:
        span, slash, step = part.partition("/")
        by = self._number(step, part) if slash else 1
        if by < 1:
            raise CronError(f"{part!r} in the field {self.name}: the step must be at least 1")
        if span in ("*", "?"):
            return range(self.low, self.high + 1, by)
        first, hyphen, last = span.partition("-")
        low = self._number(first, part)
        high = self._number(last, part) if hyphen else self.high if slash else low
        if not self.low <= low <= high <= self.high:
            raise CronError(
                f"{part!r} in the field {self.name}: write numbers from {self.low} to {self.high}, in order"
            )
        return range(low, high + 1, by)

    def _number(self, text: str, part: str) -> int:
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
        if text.lower() in self.names:
            return self.names[text.lower()]
        known = f" or a name such as {next(iter(self.names))}" if self.names else ""
        raise CronError(f"{part!r} in the field {self.name}: {text!r} is not a number{known}")


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("day of the week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)
