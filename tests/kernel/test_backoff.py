from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.backoff import Backoff

SECOND = timedelta(seconds=1)
SPREADS = st.floats(min_value=0, max_value=1, exclude_max=True)
ATTEMPTS = st.integers(min_value=0, max_value=10_000)


@st.composite
def backoffs(draw: st.DrawFn) -> Backoff:
    base, cap = sorted(draw(st.tuples(*[st.timedeltas(min_value=timedelta(microseconds=1))] * 2)))
    return Backoff(
        base=base,
        cap=cap,
        factor=draw(st.floats(min_value=1, max_value=1e300)),
        jitter=draw(SPREADS),
    )


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (10_000, 10)]
)
def test_delays_double_from_the_base_and_stop_at_the_cap(attempt: int, seconds: int) -> None:
    assert Backoff(base=SECOND, cap=10 * SECOND).delay(attempt) == seconds * SECOND


def test_a_factor_of_one_waits_evenly() -> None:
    steady = Backoff(base=SECOND, factor=1, cap=10 * SECOND)
    assert {steady.delay(attempt) for attempt in range(1, 50)} == {SECOND}


def test_jitter_shortens_by_at_most_its_share() -> None:
    backoff = Backoff(base=10 * SECOND, jitter=0.5)
    assert backoff.delay(1, spread=0) == 10 * SECOND
    assert backoff.delay(1, spread=0.5) == 7.5 * SECOND
    assert backoff.delay(1, spread=0.999) > 5 * SECOND


def test_the_next_attempt_follows_from_the_persisted_facts_alone() -> None:
    failed = datetime(2025, 1, 1, tzinfo=UTC)
    assert Backoff(base=SECOND).next_attempt_at(failed, 3) == failed + 4 * SECOND
    assert Backoff(base=SECOND).next_attempt_at(failed, 0) == failed


@given(backoffs(), ATTEMPTS, ATTEMPTS, SPREADS)
def test_a_later_attempt_never_waits_less(backoff: Backoff, one: int, other: int, spread: float) -> None:
    earlier, later = sorted((one, other))
    assert backoff.delay(earlier, spread=spread) <= backoff.delay(later, spread=spread)


@given(backoffs(), ATTEMPTS, SPREADS)
def test_every_delay_lies_between_nothing_and_the_cap(backoff: Backoff, attempt: int, spread: float) -> None:
    assert timedelta(0) <= backoff.delay(attempt, spread=spread) <= backoff.cap


@given(backoffs(), ATTEMPTS, SPREADS)
def test_a_spread_never_lengthens_a_delay(backoff: Backoff, attempt: int, spread: float) -> None:
    assert backoff.delay(attempt, spread=spread) <= backoff.delay(attempt)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"base": timedelta(0)}, "base"),
        ({"base": 2 * SECOND, "cap": SECOND}, "cap"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"factor": float("inf")}, "factor"),
        ({"jitter": 1.0}, "jitter"),
        ({"jitter": -0.1}, "jitter"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=f"^{word} is "):
        Backoff(**settings)


@pytest.mark.parametrize(("attempt", "spread", "word"), [(-1, 0.0, "attempt"), (1, 1.0, "spread"), (1, -0.1, "spread")])
def test_arguments_out_of_range_are_refused_by_name(attempt: int, spread: float, word: str) -> None:
    with pytest.raises(ValueError, match=f"^{word} is "):
        Backoff().delay(attempt, spread=spread)
