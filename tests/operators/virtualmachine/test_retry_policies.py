"""When operations on virtual machines are tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.kinds.virtrigaud.operations import FailedAttempts, RetryPolicy
from holdfast.operators.virtualmachine import retry_policies

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("policy", "count", "wait"),
    [
        (RetryPolicy(), 1, 5 * MINUTE),
        (RetryPolicy(), 3, 20 * MINUTE),
        (RetryPolicy(retry_delay="1m", backoff_multiplier=1), 9, MINUTE),
        (RetryPolicy(retry_delay="0s"), 10, 0 * MINUTE),
        (RetryPolicy(retry_delay="48h"), 2, timedelta(days=2)),
    ],
)
def test_each_wait_is_longer_than_the_one_before_up_to_a_day(policy: RetryPolicy, count: int, wait: timedelta) -> None:
    assert retry_policies.delay(policy, count) == wait


@pytest.mark.parametrize("first", ["5m", "24h"])
def test_the_longest_policy_that_is_valid_ends_before_the_calendar_does(first: str) -> None:
    policy = RetryPolicy(max_retries=10, retry_delay=first, backoff_multiplier=10)
    assert datetime(2025, 1, 1, tzinfo=UTC) + retry_policies.delay(policy, 10) == datetime(2025, 1, 2, tzinfo=UTC)
    assert retry_policies.most(policy) == 10
    assert retry_policies.most(RetryPolicy()) == 3


@pytest.mark.parametrize(
    ("next_time", "is_observed", "waits"),
    [
        ("2030-01-01T00:01:00Z", True, True),
        ("2030-01-01T00:00:00Z", True, False),
        (None, True, True),
        (None, False, False),
        ("2030-01-01T00:01:00Z", False, False),
    ],
)
def test_a_failure_is_waited_after_until_its_time_comes_or_the_spec_is_changed(
    next_time: str | None, is_observed: bool, waits: bool
) -> None:
    known = FailedAttempts(count=1, time="2030-01-01T00:00:00Z", reason="a", message="b", next_time=next_time)
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert retry_policies.waits(known, now, is_observed=is_observed) == (known if waits else None)
    assert retry_policies.waits(None, now, is_observed=is_observed) is None
