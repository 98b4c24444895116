"""Validation of cron schedules, with the syntax of CronJobs."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass, field
from typing import Final

from holdfast.meta import durations

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_ZONE: Final = re.compile(r"(CRON_TZ|TZ)=")


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: its bounds and the names that its numbers have."""

    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)

    def problem(self, text: str) -> str:
        for part in text.split(","):
            found = self._part_problem(part)
            if found:
                return found
        return ""

    def _part_problem(self, part: str) -> str:
        span, slash, step = part.partition("/")
        if "/" in step:
            return f"too many slashes: {part}"
        if slash and not (step.isascii() and step.isdigit()):
            return f"failed to parse int from {step}: write a whole number"
        if slash and int(step) == 0:
            return f"step of range should be a positive number: {part}"
        if span in ("*", "?"):
            return ""
        bounds = span.split("-")
        if len(bounds) > 2:
            return f"too many hyphens: {part}"
        numbers = [self._number(bound) for bound in bounds]
        if None in numbers:
            return f"failed to parse int from {span}: write a whole number or a name such as 'mon' or 'jan'"
        first, last = numbers[0] or 0, numbers[-1] or 0
        if first < self.low:
            return f"beginning of range ({first}) below minimum ({self.low}): {part}"
        if last > self.high:
            return f"end of range ({last}) above maximum ({self.high}): {part}"
        return f"beginning of range ({first}) beyond end of range ({last}): {part}" if first > last else ""

    def _number(self, text: str) -> int | None:
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
        return self.names.get(text.lower())


_FIELDS: Final = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def problem(schedule: str) -> str:
    """What is wrong with a schedule; empty if nothing is."""
    if _ZONE.search(schedule):
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        return _descriptor_problem(schedule)
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    return next((found for each, part in zip(_FIELDS, parts, strict=True) if (found := each.problem(part))), "")


def _descriptor_problem(schedule: str) -> str:
    every, _, interval = schedule.partition(" ")
    if every == "@every":
        try:
            durations.parse(interval)
        except durations.DurationError:
            return f"failed to parse duration {schedule}: write a duration such as '@every 1h30m'"
        return ""
    return "" if schedule in _DESCRIPTORS else f"unrecognized descriptor: {schedule}"


def is_zone(name: str) -> bool:
    """Whether a time zone of this name exists; ``Local`` is not accepted."""
    if not name or name.lower() == "local":
        return False
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
