"""Deployments in virtual time."""

from __future__ import annotations

import pytest
from tests.profiler.mocker.timings import Linear

from holdfast.profiler.load.arrivals import times
from holdfast.profiler.load.figures import figures
from holdfast.profiler.mocker.engine import Limits
from holdfast.profiler.mocker.simulation import Deployment, Pool, Traffic, simulate

POOL = Pool(
    replicas=1, limits=Limits(kv_tokens=100_000, batch=64), timing=Linear(step=10, prompt=0.1, token=0, context=0)
)


def test_one_request_at_a_time_takes_the_time_of_its_steps() -> None:
    found = figures(simulate(Deployment(workers=POOL), Traffic(isl=100, osl=11, requests=5)))
    assert found.completed == 5
    assert found.ttft_ms is not None
    assert found.itl_ms is not None
    assert found.ttft_ms.mean == pytest.approx(20)
    assert found.itl_ms.mean == pytest.approx(10)
    assert found.requests_per_second == pytest.approx(1 / 0.12)


def test_requests_are_spread_over_replicas() -> None:
    pair = Pool(replicas=2, limits=Limits(kv_tokens=100_000, batch=1), timing=POOL.timing)
    found = figures(simulate(Deployment(workers=pair), Traffic(isl=100, osl=11, requests=20, concurrency=2)))
    assert found.ttft_ms is not None
    assert found.ttft_ms.max == pytest.approx(20), "no request waits for another"


def test_a_prefill_worker_gives_the_first_token_and_the_transfer_delays_the_second() -> None:
    apart = Deployment(workers=POOL, prefill=POOL, transfer=lambda tokens: tokens / 1000)
    (sample,) = simulate(apart, Traffic(isl=100, osl=11, requests=1))
    assert sample.ttft == pytest.approx(20)
    assert sample.e2e == pytest.approx(20 + 100 + 10 * 10)


def test_decode_workers_are_not_interrupted_by_prompts() -> None:
    traffic = Traffic(isl=1000, osl=50, requests=100, times=times(2, seed=3))
    together = figures(simulate(Deployment(workers=POOL), traffic))
    apart = figures(
        simulate(
            Deployment(workers=POOL, prefill=POOL), Traffic(isl=1000, osl=50, requests=100, times=times(2, seed=3))
        )
    )
    assert together.itl_ms is not None
    assert apart.itl_ms is not None
    assert apart.itl_ms.mean < together.itl_ms.mean


def test_the_same_seed_gives_the_same_figures() -> None:
    def found() -> object:
        return figures(simulate(Deployment(workers=POOL), Traffic(isl=50, osl=10, requests=50, times=times(5, seed=1))))

    assert found() == found()
