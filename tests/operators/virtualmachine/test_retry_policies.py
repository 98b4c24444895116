"""When operations on virtual machines are tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.kinds.virtrigaud.operations import RetryPolicy
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
