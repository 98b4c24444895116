"""When an operation that failed is tried again, by its retry policy.  Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from holdfast.kinds.virtrigaud.operations import RetryPolicy
from holdfast.meta import durations

_DAY: Final = timedelta(days=1)


def most(policy: RetryPolicy) -> int:
    """How often an operation is tried again."""
    return 3 if policy.max_retries is None else policy.max_retries


def delay(policy: RetryPolicy, count: int, *, longest: timedelta = _DAY) -> timedelta:
    """The wait after so many failures: the first one as the policy says, each later one longer, up to `longest`."""
    first = durations.parse(policy.retry_delay or "5m")
    factor = (policy.backoff_multiplier or 2) ** (count - 1)
    limit = max(longest, first)
    return limit if first.total_seconds() * factor > limit.total_seconds() else first * factor
