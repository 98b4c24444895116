"""When an operation that failed is tried again, by its retry policy.  Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.operations import FailedAttempts, RetryPolicy
from holdfast.meta import durations, times

_DAY: Final = timedelta(days=1)


def most(policy: RetryPolicy) -> int:
    """How often an operation is tried again."""
    return 3 if policy.max_retries is None else policy.max_retries


def waits(known: FailedAttempts | None, now: datetime, *, is_observed: bool) -> FailedAttempts | None:
    """The failure after which the next try waits.

    None if nothing failed, if the time has come, or if the status is of an earlier spec: a change is tried at once.
    """
    due = times.read(known.next_time) if known is not None else None
    return known if is_observed and (due is None or now < due) else None


def failure(
    reason: Reason, message: str, now: datetime, *, count: int, wait: timedelta | None, generation: int | None = None
) -> FailedAttempts:
    """The record of an operation that failed `count` times in a row; without a `wait` it is not tried again."""
    return FailedAttempts(
        count=count,
        time=times.format(now),
        reason=reason.value,
        message=message,
        next_time=None if wait is None else times.format(now + wait),
        generation=generation,
    )


def delay(policy: RetryPolicy, count: int, *, longest: timedelta = _DAY) -> timedelta:
    """The wait after so many failures: the first one as the policy says, each later one longer, up to `longest`."""
    first = durations.parse(policy.retry_delay or "5m")
    factor = (policy.backoff_multiplier or 2) ** (count - 1)
    limit = max(longest, first)
    return limit if first.total_seconds() * factor > limit.total_seconds() else first * factor
