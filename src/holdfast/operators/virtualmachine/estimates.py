"""How long a task of a provider will still take, and how fast it is.  Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.meta import durations


def eta(began: datetime, now: datetime, percentage: int | None) -> str | None:
    """The time left of a task, if it goes on as fast as so far; None where that is not known."""
    if not percentage:
        return None
    left = (now - began) * ((100 - percentage) / percentage)
    return durations.format(timedelta(seconds=int(left.total_seconds())))


def rate(began: datetime, now: datetime, done_bytes: int | None) -> int | None:
    """Bytes in a second since a task began; None where that is not known."""
    seconds = (now - began).total_seconds()
    return int(done_bytes / seconds) if done_bytes and seconds > 0 else None
