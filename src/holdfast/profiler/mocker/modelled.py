"""Engines with the timing of the performance model."""

from __future__ import annotations

from typing import Final

from holdfast.profiler import hardware, models
from holdfast.profiler.load.arrivals import Process, times
from holdfast.profiler.mocker.engine import Limits, Step
from holdfast.profiler.mocker.simulation import Deployment, Pool, Traffic
from holdfast.profiler.performance import CHUNK, Worker
from holdfast.profiler.request import Request
from holdfast.profiler.results import Engine, Point, Precision
from holdfast.profiler.timing import Timing

_CONTEXT: Final = 32
"""Tokens to which the mean context of a step is rounded, so that steps that are nearly alike are computed once."""


class Modelled:
    """The steps of a worker, as the performance model has them."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def step_ms(self, step: Step) -> float:
        context = round(step.context / step.decoding / _CONTEXT) * _CONTEXT if step.decoding else 0
        prompts = tuple((chunk.tokens, chunk.prefix) for chunk in step.prefill)
        return self._worker.step(prompts, step.decoding, context).ms


def worker(model: str, gpu: str, *, tensor_parallel: int = 1, precision: Precision | None = None) -> Worker:
    """A worker by the names of its model and GPU; raises `Unanswerable`."""
    architecture = models.find(model)
    return Worker(architecture, Timing(hardware.find(gpu)), tensor_parallel, precision or architecture.precision)


def kv_tokens(worker: Worker, memory_mib: float | None = None) -> int:
    """Tokens that the KV cache of a worker holds; 0 where the weights leave no room."""
    memory = memory_mib or worker.timing.hardware.peaks.memory_mib
    return max(0, int(worker.free_bytes(memory) / worker.architecture.kv_bytes(worker.tensor_parallel)))


def pool(engine: Engine, request: Request) -> Pool:
    """The engines of a role of a point."""
    modelled = worker(
        request.model,
        request.machines.sku,
        tensor_parallel=engine.tensor_parallel,
        precision=engine.precision,
    )
    limits = Limits(
        kv_tokens=kv_tokens(modelled, request.machines.memory_mib),
        batch=engine.batch,
        step_tokens=CHUNK,
    )
    return Pool(replicas=engine.replicas, limits=limits, timing=Modelled(modelled))


def deployment(point: Point, request: Request) -> Deployment:
    """The deployment of a point, in virtual time."""
    pools = {engine.role: pool(engine, request) for engine in point.engines}
    if "worker" in pools:
        return Deployment(workers=pools["worker"])
    prefiller = worker(request.model, request.machines.sku, tensor_parallel=point.engines[0].tensor_parallel)
    return Deployment(
        workers=pools["decode"],
        prefill=pools["prefill"],
        transfer=lambda tokens: prefiller.transfer_ms(tokens) / 1000,
    )


def traffic(request: Request, point: Point, *, requests: int, process: Process = "poisson", seed: int = 0) -> Traffic:
    """The traffic that a point is predicted for: the load that is asked for, or all that it can have in flight."""
    asked = request.traffic
    if asked.request_rate is not None:
        sent = times(asked.request_rate, process=process, seed=seed)
        return Traffic(isl=asked.isl, osl=asked.osl, requests=requests, times=sent)
    in_flight = asked.concurrency or sum(each.batch * each.replicas for each in point.engines if each.role != "prefill")
    return Traffic(isl=asked.isl, osl=asked.osl, requests=requests, concurrency=round(in_flight))
