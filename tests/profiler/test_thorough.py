"""The thorough search: candidates that are deployed and measured."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.profiler.mocker.servers import served
from tests.waiting import eventually

from holdfast.profiler import thorough
from holdfast.profiler.load.figures import Figures, Spread
from holdfast.profiler.mocker import modelled
from holdfast.profiler.mocker.engine import Engine as MockEngine
from holdfast.profiler.mocker.frontend import Backends, Frontend
from holdfast.profiler.mocker.worker import Settings, Worker
from holdfast.profiler.request import Machines, Request, Targets, Traffic
from holdfast.profiler.results import Engine, Point, Progress
from holdfast.profiler.search import search
from holdfast.profiler.thorough import Bounds, Skipped, Trial, measured, plan, sweep, trial

QUICK = Bounds(ready_seconds=5, answer_seconds=5, gone_seconds=5, least_seconds=0.5, most_seconds=5, tokens=5000)


def asked(**traffic: Any) -> Request:
    return Request(
        model="Qwen/Qwen3-0.6B",
        machines=Machines(sku="h200_sxm", gpus=4),
        traffic=Traffic(isl=64, osl=16, **traffic),
        targets=Targets(ttft_ms=500, itl_ms=50),
    )


def point(*engines: Engine, tokens: float = 100.0, ttft: float = 100.0, itl: float = 10.0) -> Point:
    return Point(
        engines=engines,
        ttft_ms=ttft,
        itl_ms=itl,
        requests_per_second=1,
        tokens_per_second=tokens,
        tokens_per_second_per_gpu=tokens,
        tokens_per_second_per_user=100,
        sla_met=True,
    )


def workers(replicas: int, batch: int = 8) -> Engine:
    return Engine(role="worker", tensor_parallel=1, replicas=replicas, batch=batch)


# --- how a candidate is measured


def test_what_the_machine_can_carry_is_measured_whole() -> None:
    how = trial(asked(request_rate=5), point(workers(4)), QUICK)
    assert (how.part, how.speed, how.point.engines[0].replicas) == (1, 1, 4)


def test_of_many_replicas_a_part_is_measured_under_the_same_part_of_the_load() -> None:
    how = trial(asked(request_rate=400), point(workers(4), tokens=6400), QUICK)
    assert (how.part, how.speed, how.point.engines[0].replicas) == (0.25, 1, 1)
    assert plan(asked(request_rate=400), how, "http://x").rate == 100


def test_a_replica_that_is_too_fast_is_slowed_down_and_its_figures_are_scaled_back() -> None:
    how = trial(asked(request_rate=1000), point(workers(1), tokens=20_000), QUICK)
    assert (how.part, how.speed) == (1, 0.25)
    spread = Spread(400, 400, 400, 400, 400, 400)
    found = Figures(
        requests=10, completed=10, seconds=1, requests_per_second=10, tokens_per_second=160, isl=64, osl=16,
        ttft_ms=spread, itl_ms=Spread(20, 20, 20, 20, 20, 20), e2e_ms=spread,
    )  # fmt: skip
    got = measured(asked(request_rate=1000), how.point, how, found)
    assert (got.ttft_ms, got.itl_ms, got.requests_per_second, got.tokens_per_second) == (100, 5, 40, 640)
    assert got.measured
    assert got.sla_met


def test_what_would_take_too_long_is_skipped() -> None:
    with pytest.raises(Skipped, match="s here, more than the 5 s for one candidate"):
        trial(asked(request_rate=1000), point(workers(1), tokens=200_000, itl=50), QUICK)


def test_prefill_and_decode_workers_are_divided_evenly() -> None:
    pair = point(
        Engine(role="prefill", tensor_parallel=1, replicas=4, batch=1),
        Engine(role="decode", tensor_parallel=1, replicas=2, batch=8),
        tokens=6000,
    )
    how = trial(asked(request_rate=400), pair, QUICK)
    assert [each.replicas for each in how.point.engines] == [2, 1]
    assert how.part == 0.5


def test_without_a_rate_a_candidate_is_filled() -> None:
    how = trial(asked(), point(workers(2, batch=8)), QUICK)
    assert plan(asked(), how, "http://x").concurrency == 16
    assert plan(asked(concurrency=6), how, "http://x").concurrency == 6


def test_a_candidate_that_does_not_answer_is_skipped_with_the_errors() -> None:
    how = Trial(point=point(workers(1)), seconds=1, warmup=0)
    found = Figures(
        requests=4, completed=0, seconds=0, requests_per_second=0, tokens_per_second=0, isl=0, osl=0,
        ttft_ms=None, itl_ms=None, e2e_ms=None, errors={"503 no worker is ready": 4},
    )  # fmt: skip
    with pytest.raises(Skipped, match="0 of 4 requests were answered: 4 times 503 no worker is ready"):
        measured(asked(request_rate=1), how.point, how, found)


# --- the search


@dataclass
class Local:
    """Candidates as servers of this process; some cannot be deployed."""

    request: Request
    broken: frozenset[int] = frozenset()
    deployed_now: set[int] = field(default_factory=set)
    seen: list[int] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def deployed(self, number: int, trial: Trial) -> AsyncIterator[str]:
        self.seen.append(number)
        if number in self.broken:
            raise Skipped("its pods crash")
        self.deployed_now.add(number)
        try:
            async with contextlib.AsyncExitStack() as stack:
                backends = Backends(clock=asyncio.get_running_loop().time)
                urls = []
                for engine in trial.point.engines:
                    pool = modelled.pool(engine, self.request)
                    settings = Settings(model=self.request.model, role=engine.role)
                    for _ in range(engine.replicas):
                        app = Worker(MockEngine(pool.limits, pool.timing), settings).app()
                        urls.append(await stack.enter_async_context(served(app)))
                backends.set(urls)
                url = await stack.enter_async_context(served(Frontend(backends).app()))
                await eventually(lambda: not backends.unknown)
                yield url
        finally:
            self.deployed_now.discard(number)


def test_the_best_candidates_are_measured_and_what_was_measured_decides() -> None:
    request = asked(request_rate=20)
    stage, reported = Local(request, broken=frozenset({1})), list[Progress]()
    found = asyncio.run(sweep(request, stage, reported.append, bounds=QUICK))
    assert found.chosen is not None
    assert found.chosen.measured
    assert found.chosen.sla_met
    assert found.why.startswith("measured: ")
    assert "not measured: " in found.why
    assert "its pods crash" in found.why
    assert not stage.deployed_now, "every candidate is deleted"
    assert all(each.measured for each in found.runners_up)
    assert len(stage.seen) <= thorough.MOST_CANDIDATES
    phases = [each.phase for each in reported]
    assert "SweepingPrefill" in phases
    assert phases[-1] == "SelectingConfig"
    counted = [each for each in reported if each.message.startswith("measuring")]
    assert len(counted) == len(stage.seen)
    assert all(each.done < each.total for each in counted)


def test_where_nothing_can_be_measured_the_prediction_stands_and_the_answer_says_so() -> None:
    request = asked(request_rate=20)
    stage = Local(request, broken=frozenset(range(10)))
    found = asyncio.run(sweep(request, stage, lambda progress: None, bounds=QUICK))
    assert found.chosen == search(request).chosen
    assert "not measured" in found.why


def test_candidates_belong_to_the_service_account_of_the_job() -> None:
    claims = {"kubernetes.io": {"namespace": "team", "serviceaccount": {"name": "profiler", "uid": "u1"}}}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    assert thorough.account_reference(f"h.{payload}.s") == {
        "apiVersion": "v1", "kind": "ServiceAccount", "name": "profiler", "uid": "u1",
    }  # fmt: skip
    assert thorough.account_reference("opaque") is None
    assert thorough.account_reference("a.b.c") is None
