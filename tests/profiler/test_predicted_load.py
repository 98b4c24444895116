"""What is predicted under load is what the mock engine does, in virtual time."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import pytest

from holdfast.profiler import hardware, models, timing
from holdfast.profiler.load.arrivals import times
from holdfast.profiler.mocker.engine import Limits, Step
from holdfast.profiler.mocker.simulation import Deployment, Pool, Traffic, simulate
from holdfast.profiler.performance import Worker, decoding, full, loaded, waiting

H200 = timing.Timing(hardware.find("h200_sxm"))
NEAR = 0.15


@dataclass(frozen=True)
class Predicted:
    """The timing of a worker, for the engine."""

    worker: Worker

    def step_ms(self, step: Step) -> float:
        context = round(step.context / step.decoding / 64) * 64 if step.decoding else 0
        return self.worker.step(tuple((c.tokens, c.prefix) for c in step.prefill), step.decoding, context).ms


def pool(worker: Worker, replicas: int = 1) -> Pool:
    return Pool(replicas=replicas, limits=Limits(kv_tokens=10**8, batch=512), timing=Predicted(worker))


def worker(name: str, split: int) -> Worker:
    return Worker(models.find(name), H200, split)


def simulated(deployment: Deployment, traffic: Traffic) -> tuple[float, float]:
    """Mean TTFT and ITL, without the beginning and the end."""
    samples = simulate(deployment, traffic)
    steady = samples[len(samples) // 5 : -len(samples) // 5]
    ttft = [1000 * (sample.first - sample.sent) for sample in steady]
    itl = [1000 * (sample.last - sample.first) / (sample.tokens - 1) for sample in steady]
    return statistics.mean(ttft), statistics.mean(itl)


@pytest.mark.parametrize(
    ("name", "split", "isl", "osl", "rate"),
    [
        ("Qwen/Qwen3-32B", 4, 4000, 100, 4.0),
        ("Qwen/Qwen3-32B", 4, 1000, 200, 10.0),
        ("Qwen/Qwen3-32B", 4, 20_000, 300, 0.4),
        ("meta-llama/Llama-3.1-8B", 1, 3000, 300, 4.0),
        ("Qwen/Qwen3-0.6B", 1, 2000, 300, 1.0),
    ],
)
def test_random_arrivals_at_a_worker(name: str, split: int, isl: int, osl: int, rate: float) -> None:
    engine = worker(name, split)
    traffic = Traffic(isl=isl, osl=osl, requests=400, times=times(rate, seed=1))
    ttft, itl = simulated(Deployment(workers=pool(engine)), traffic)
    predicted = loaded(engine, isl, osl, rate, 512)
    assert predicted is not None
    assert predicted.ttft_ms == pytest.approx(ttft, rel=NEAR)
    assert predicted.itl_ms == pytest.approx(itl, rel=NEAR)


@pytest.mark.parametrize(
    ("name", "split", "isl", "osl", "batch"),
    [
        ("Qwen/Qwen3-32B", 4, 4000, 200, 16),
        ("Qwen/Qwen3-32B", 4, 4000, 100, 32),
        ("meta-llama/Llama-3.1-8B", 1, 3000, 300, 30),
        ("meta-llama/Llama-3.1-8B", 1, 100, 100, 40),
        ("Qwen/Qwen3-0.6B", 1, 4000, 100, 1),
    ],
)
def test_requests_that_are_always_in_flight(name: str, split: int, isl: int, osl: int, batch: int) -> None:
    engine = worker(name, split)
    traffic = Traffic(isl=isl, osl=osl, requests=8 * batch, concurrency=batch)
    ttft, itl = simulated(Deployment(workers=pool(engine)), traffic)
    predicted = full(engine, isl, osl, batch)
    assert predicted.ttft_ms == pytest.approx(ttft, rel=NEAR)
    assert predicted.itl_ms == pytest.approx(itl, rel=NEAR)


def test_random_arrivals_at_prefill_and_decode_workers() -> None:
    prefill, decode, rate = worker("Qwen/Qwen3-32B", 1), worker("Qwen/Qwen3-32B", 4), 5.0
    deployment = Deployment(
        workers=pool(decode), prefill=pool(prefill, 3), transfer=lambda tokens: prefill.transfer_ms(tokens) / 1000
    )
    traffic = Traffic(isl=4000, osl=200, requests=1500, times=times(rate, seed=1))
    ttft, itl = simulated(deployment, traffic)
    alone = prefill.prefill(4000).ms
    served = decoding(decode, 4000, 200, rate, 512)
    assert served is not None
    assert alone + waiting(alone, rate * alone / 3000, 3) == pytest.approx(ttft, rel=NEAR)
    assert served.itl_ms + prefill.transfer_ms(4000) / 199 == pytest.approx(itl, rel=NEAR)
