from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.outcomes import Again, Done, Failure, Outcome, Permanent, Retry, soonest, until

SECOND = timedelta(seconds=1)
NOW = datetime(2025, 1, 1, tzinfo=UTC)
AGAINS = st.builds(Again, st.timedeltas(min_value=timedelta(microseconds=1)), st.text(min_size=1))
OUTCOMES = st.lists(st.one_of(st.just(Done()), AGAINS))


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((), Done()),
        ((Done(), Done()), Done()),
        ((Done(), Again(SECOND, "a")), Again(SECOND, "a")),
        ((Again(2 * SECOND, "later"), Again(SECOND, "sooner")), Again(SECOND, "sooner")),
        ((Again(SECOND, "first"), Again(SECOND, "second")), Again(SECOND, "first")),
    ],
)
def test_the_soonest_wait_wins(outcomes: tuple[Outcome, ...], expected: Outcome) -> None:
    assert soonest(outcomes) == expected


@given(OUTCOMES, OUTCOMES)
def test_combining_in_parts_changes_nothing(some: list[Outcome], others: list[Outcome]) -> None:
    assert soonest([soonest(some), soonest(others)]) == soonest([*some, *others])


@given(OUTCOMES)
def test_no_wait_is_slept_through(outcomes: list[Outcome]) -> None:
    chosen = soonest(outcomes)
    for outcome in outcomes:
        if isinstance(outcome, Again):
            assert isinstance(chosen, Again)
            assert chosen.after <= outcome.after


@pytest.mark.parametrize("after", [timedelta(0), -SECOND])
def test_an_again_that_would_spin_is_refused(after: timedelta) -> None:
    with pytest.raises(ValueError, match="would spin"):
        Again(after, "the moon")


def test_an_again_must_say_what_it_waits_for() -> None:
    with pytest.raises(ValueError, match="names what it waits for"):
        Again(SECOND, "")


def test_a_deadline_becomes_the_time_that_is_left() -> None:
    assert until(NOW + 90 * SECOND, now=NOW, because="the job may run that long") == Again(
        90 * SECOND, "the job may run that long"
    )


def test_a_deadline_that_passed_comes_soon_but_not_at_once() -> None:
    assert timedelta(0) < until(NOW - SECOND, now=NOW, because="rounding").after < SECOND


def test_transient_and_permanent_are_different_types_of_one_failure() -> None:
    retry, permanent = Retry("Unreachable", "the provider does not answer"), Permanent("Invalid", "set spec.image")
    assert isinstance(retry, Failure)
    assert isinstance(permanent, Failure)
    assert not isinstance(retry, Permanent)
    assert not isinstance(permanent, Retry)


def test_a_failure_carries_code_and_sentence() -> None:
    failure = Permanent("ImageMissing", "spec.image is empty; name an image")
    assert (failure.reason, failure.message) == ("ImageMissing", "spec.image is empty; name an image")
    assert str(failure) == "ImageMissing: spec.image is empty; name an image"


def test_a_retry_may_know_better_than_the_backoff() -> None:
    assert Retry("Busy", "the server asked for a pause").after is None
    assert Retry("Busy", "the server asked for a pause", after=SECOND).after == SECOND
    with pytest.raises(ValueError, match="lies in the past"):
        Retry("Busy", "the server asked for a pause", after=-SECOND)
