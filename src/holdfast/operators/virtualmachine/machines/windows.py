"""Maintenance windows: whether one is open, and when the next one opens.  All times are in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.kinds.virtrigaud.machines import MaintenanceWindow, ReconfigurePolicy
from holdfast.meta import durations

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK = 7


def may_restart(policy: ReconfigurePolicy | None, now: datetime) -> bool:
    """Whether a machine may be restarted now for a change of its hardware."""
    match policy.restart if policy else None:
        case "Always":
            return True
        case "InWindow":
            assert policy is not None, "it says so"
            return any(opened <= now < closes for opened, closes in _spans(policy.windows, now))
        case _:
            return False


def next_opening(policy: ReconfigurePolicy | None, now: datetime) -> datetime | None:
    """When the next window opens; None where there is none to wait for."""
    if policy is None or policy.restart != "InWindow":
        return None
    return min((opens for opens, _ in _spans(policy.windows, now) if opens > now), default=None)


def _spans(windows: Sequence[MaintenanceWindow], now: datetime) -> list[tuple[datetime, datetime]]:
    """The windows around a time: those of last week may still be open."""
    found = []
    for window in windows:
        hour, _, minute = window.start.partition(":")
        for offset in range(-_WEEK, _WEEK + 1):
            day = (now + timedelta(days=offset)).replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
            if not window.days or _DAYS[day.weekday()] in window.days:
                found.append((day, day + durations.parse(window.duration)))
    return found
