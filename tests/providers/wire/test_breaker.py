"""The circuit breaker and the rate limit, on a clock that the test names."""

from __future__ import annotations

from holdfast.providers.wire.breaker import Breaker, Settings, State
from holdfast.providers.wire.client import Bucket


def test_failures_in_a_row_open_it_and_a_success_between_does_not() -> None:
    breaker = Breaker(Settings(failures=3, open_seconds=10))
    for _ in range(5):
        breaker.failed(0)
        breaker.failed(0)
        breaker.succeeded()
    assert breaker.state(0) is State.CLOSED
    for _ in range(3):
        assert breaker.allows(0)
        breaker.failed(0)
    assert breaker.state(1) is State.OPEN
    assert not breaker.allows(1)
    assert breaker.remaining(4) == 6


def test_half_open_it_lets_one_call_through_which_closes_it_or_doubles_the_pause() -> None:
    breaker = Breaker(Settings(failures=1, open_seconds=10, longest_seconds=15))
    breaker.failed(0)
    assert breaker.state(10) is State.HALF_OPEN
    assert [breaker.allows(10), breaker.allows(10)] == [True, False]
    breaker.failed(10)
    assert (breaker.state(24), breaker.state(25)) == (State.OPEN, State.HALF_OPEN)
    assert breaker.allows(25)
    breaker.abandoned()
    assert breaker.allows(25)
    breaker.succeeded()
    assert breaker.state(25) is State.CLOSED
    breaker.failed(30)
    assert breaker.remaining(30) == 10
    assert breaker.trips == 3


def test_a_call_that_began_before_does_not_prolong_the_pause() -> None:
    breaker = Breaker(Settings(failures=1, open_seconds=10))
    breaker.failed(0)
    breaker.failed(9)
    assert breaker.state(10) is State.HALF_OPEN


def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = Bucket(10, 3)
    assert [round(bucket.wait(100), 3) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]
    assert bucket.wait(101) == 0
