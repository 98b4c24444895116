"""What the search predicts, against the mock engine in virtual time."""

from __future__ import annotations

import pytest

from holdfast.profiler.load.figures import Figures, figures
from holdfast.profiler.mocker import modelled
from holdfast.profiler.mocker.engine import Chunk, Step
from holdfast.profiler.mocker.simulation import simulate
from holdfast.profiler.request import Machines, Request, Targets, Traffic
from holdfast.profiler.results import Point
from holdfast.profiler.search import search


def asked(model: str, traffic: Traffic) -> Request:
    return Request(model=model, machines=Machines(sku="h200_sxm", gpus=8), traffic=traffic, targets=Targets())


def chosen(request: Request) -> Point:
    found = search(request).chosen
    assert found is not None
    return found


def measured(request: Request, point: Point, requests: int) -> Figures:
    """A load test in virtual time, without its first and its last answers, when there are fewer in flight."""
    whole = (point.ttft_ms + point.itl_ms * request.traffic.osl) / 1000
    samples = simulate(modelled.deployment(point, request), modelled.traffic(request, point, requests=requests))
    last = max(each.sent for each in samples)
    return figures([each for each in samples if each.sent <= last - whole], warmup=1.5 * whole)


@pytest.mark.parametrize(
    ("model", "isl", "osl", "rate"),
    [
        ("Qwen/Qwen3-0.6B", 1000, 100, 5),
        ("Qwen/Qwen3-8B", 256, 64, 5),
        ("Qwen/Qwen3-8B", 256, 64, 20),
        ("Qwen/Qwen3-8B", 1000, 100, 20),
        ("Qwen/Qwen3-8B", 4000, 1000, 1),
        ("Qwen/Qwen3-32B", 256, 64, 5),
        ("Qwen/Qwen3-32B", 1000, 100, 5),
    ],
)
def test_at_the_rate_that_is_asked_for_the_engine_does_what_was_predicted(
    model: str, isl: int, osl: int, rate: float
) -> None:
    request = asked(model, Traffic(isl=isl, osl=osl, request_rate=rate))
    point = chosen(request)
    found = measured(request, point, 250 if osl == 1000 else 600)
    assert found.ttft_ms is not None
    assert found.itl_ms is not None
    assert found.ttft_ms.mean == pytest.approx(point.ttft_ms, rel=0.15)
    assert found.itl_ms.mean == pytest.approx(point.itl_ms, rel=0.15)


@pytest.mark.parametrize(("model", "concurrency"), [("Qwen/Qwen3-8B", 200), ("Qwen/Qwen3-32B", 32)])
def test_with_requests_in_flight_prefill_and_decode_workers_do_what_was_predicted(
    model: str, concurrency: float
) -> None:
    request = asked(model, Traffic(isl=1000, osl=100, concurrency=concurrency))
    point = chosen(request)
    assert point.disaggregated
    found = measured(request, point, 1000 if concurrency > 100 else 400)
    assert found.ttft_ms is not None
    assert found.itl_ms is not None
    assert found.ttft_ms.mean == pytest.approx(point.ttft_ms, rel=0.15)
    assert found.itl_ms.mean == pytest.approx(point.itl_ms, rel=0.15)


def test_an_engine_takes_more_at_once_than_are_in_flight_on_average() -> None:
    point = chosen(asked("Qwen/Qwen3-8B", Traffic(isl=256, osl=64, request_rate=5)))
    in_flight = point.requests_per_second * (point.ttft_ms + 64 * point.itl_ms) / 1000
    assert point.engines[0].batch > 2 * in_flight


def test_a_step_with_several_prompts_costs_less_than_a_step_for_each() -> None:
    timing = modelled.Modelled(modelled.worker("Qwen/Qwen3-8B", "h200_sxm"))
    one = timing.step_ms(Step(4, 4000, (Chunk(100),)))
    three = timing.step_ms(Step(4, 4000, (Chunk(100), Chunk(100), Chunk(100))))
    assert one < three < 3 * one


def test_a_model_that_does_not_fit_has_no_room_for_a_cache() -> None:
    assert modelled.kv_tokens(modelled.worker("Qwen/Qwen3-32B", "t4")) == 0
    assert modelled.kv_tokens(modelled.worker("Qwen/Qwen3-8B", "h200_sxm")) > 100_000
