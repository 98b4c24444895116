"""From samples to figures and a verdict."""

from __future__ import annotations

import itertools

import pytest

from holdfast.profiler.load.arrivals import times
from holdfast.profiler.load.figures import Comparison, Figures, Goals, Sample, compare, figures, sla_met, spread


def sample(sent: float, *, ttft: float = 0.1, itl: float = 0.01, tokens: int = 11, error: str = "") -> Sample:
    first = sent + ttft
    return Sample(sent=sent, first=first, last=first + itl * (tokens - 1), tokens=tokens, prompt=100, error=error)


def test_figures_are_of_the_requests_that_succeeded() -> None:
    found = figures([sample(0.0), sample(1.0), Sample(sent=0.5, error="503"), Sample(sent=0.6, error="503")])
    assert (found.requests, found.completed, found.errors) == (4, 2, {"503": 2})
    assert found.seconds == pytest.approx(1.2)
    assert found.tokens_per_second == pytest.approx(22 / 1.2)
    assert found.ttft_ms is not None
    assert found.itl_ms is not None
    assert found.ttft_ms.mean == pytest.approx(100)
    assert found.itl_ms.p50 == pytest.approx(10)


def test_requests_of_the_warm_up_are_left_out() -> None:
    found = figures([sample(0.0, ttft=5), sample(1.0), sample(2.0)], warmup=0.5)
    assert found.completed == 2
    assert found.ttft_ms is not None
    assert found.ttft_ms.max == pytest.approx(100)


def test_without_an_answer_there_is_no_spread_and_no_rate() -> None:
    found = figures([Sample(sent=0.0, error="refused")])
    assert found.ttft_ms is None
    assert found.requests_per_second == 0
    assert figures([]).requests == 0


def test_an_answer_of_one_token_has_no_time_between_tokens() -> None:
    assert figures([sample(0.0, tokens=1)]).itl_ms is None


def test_percentiles_are_interpolated() -> None:
    found = spread([float(each) for each in range(101)])
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.max) == (50, 90, 99, 100)


@pytest.mark.parametrize(
    ("goals", "met"),
    [
        (Goals(), None),
        (Goals(ttft_ms=100.1, itl_ms=10.1), True),
        (Goals(ttft_ms=99, itl_ms=10.1), False),
        (Goals(e2e_ms=200.1), True),
        (Goals(e2e_ms=150), False),
    ],
)
def test_the_service_level_is_met_where_every_target_is(goals: Goals, met: bool | None) -> None:
    found = figures([sample(0.0)])
    assert sla_met(found, compare(found, goals)) is met


def test_a_request_that_failed_breaks_the_service_level() -> None:
    found = figures([sample(0.0), Sample(sent=0.1, error="503")])
    assert sla_met(found, compare(found, Goals(ttft_ms=1000))) is False


def test_a_figure_stands_beside_its_prediction() -> None:
    found: Figures = figures([sample(0.0)])
    ttft, itl, _ = compare(found, Goals(predicted_ttft_ms=80, predicted_itl_ms=10))
    assert ttft == Comparison(name="ttft", measured=pytest.approx(100), predicted=80)
    assert ttft.error == pytest.approx(0.25)
    assert itl.error == pytest.approx(0.0)


def test_arrivals_have_the_rate_and_the_seed_that_are_asked_for() -> None:
    constant = list(itertools.islice(times(4, process="constant"), 5))
    assert constant == [0, 0.25, 0.5, 0.75, 1.0]
    random = list(itertools.islice(times(4, seed=1), 2001))
    assert random == list(itertools.islice(times(4, seed=1), 2001))
    assert random != list(itertools.islice(times(4, seed=2), 2001))
    assert 2000 / random[-1] == pytest.approx(4, rel=0.1)
