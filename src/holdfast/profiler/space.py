"""The configurations that a request allows, each with its prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from holdfast.profiler import hardware, models, timing
from holdfast.profiler.hardware import Hardware
from holdfast.profiler.models import Architecture
from holdfast.profiler.performance import BUSIEST, Served, Worker, decoding, full, in_flight_apart, loaded, waiting
from holdfast.profiler.request import Request, Unanswerable
from holdfast.profiler.results import Engine, Point, Precision, Progress
from holdfast.profiler.targets import meets

MOST_GPUS: Final = 1024
"""The most GPUs that a request may have."""

BATCHES: Final = (*range(1, 16), *range(16, 32, 2), *range(32, 64, 4), *range(64, 128, 8), *range(128, 513, 16))
"""Sequences at once that are tried."""

PREFILL_MATCHING: Final = 0.9
DECODE_MATCHING: Final = 0.92
"""The share of its rate that a worker keeps beside workers of the other role."""
PLANNED_TTFT: Final = 1.8
"""What a planner's prefill worker must be faster by than its target, for prompts that wait."""

Report = Callable[[Progress], None]

Role = tuple[Worker, Literal["worker", "prefill", "decode"], int, int]
"""A worker, its role, how many there are and with how many sequences at once."""


def silent(progress: Progress) -> None:
    """Reports nothing."""


def _check(request: Request) -> None:
    """Raise `Unanswerable` for a field that is out of range, or contradicts another one."""
    traffic, targets, machines = request.traffic, request.targets, request.machines
    fields: list[tuple[str, float | None]] = [
        ("spec.workload.isl", traffic.isl),
        ("spec.workload.osl", traffic.osl),
        ("spec.workload.concurrency", traffic.concurrency),
        ("spec.workload.requestRate", traffic.request_rate),
        ("spec.sla.ttft", targets.ttft_ms),
        ("spec.sla.itl", targets.itl_ms),
        ("spec.sla.e2eLatency", targets.e2e_ms),
        ("spec.hardware.totalGpus", machines.gpus),
        ("spec.hardware.numGpusPerNode", machines.per_node),
        ("spec.hardware.vramMb", machines.memory_mib),
    ]
    for field, value in fields:
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise Unanswerable(field, f"{value:g} must be more than 0")
    if traffic.concurrency is not None and traffic.request_rate is not None:
        raise Unanswerable("spec.workload.requestRate", "give the load as concurrency or as requestRate, not both")
    if machines.gpus > MOST_GPUS:
        raise Unanswerable("spec.hardware.totalGpus", f"{machines.gpus} must be at most {MOST_GPUS}")
    if traffic.isl + traffic.osl > 2_000_000:
        raise Unanswerable("spec.workload.isl", "isl and osl together must be at most 2000000 tokens")


class Space(NamedTuple):
    """The configurations that a request allows."""

    request: Request
    model: Architecture
    hardware: Hardware
    memory_mib: float
    precision: Precision
    workers: dict[int, Worker]
    most: dict[int, int]
    """Sequences at once that fit, by the split."""

    @classmethod
    def of(cls, request: Request, given: Hardware | None) -> Space:
        _check(request)
        model = models.find(request.model)
        gpu = given or hardware.find(request.machines.sku)
        precision = request.precision or model.precision
        if precision == "fp8" and gpu.peaks.fp8 is None:
            if request.precision is not None:
                raise Unanswerable("precision", f"{gpu.sku} has no fp8 arithmetic; write bf16")
            precision = "bf16"
        memory = request.machines.memory_mib or gpu.peaks.memory_mib
        operators = timing.of(gpu)
        per_node = request.machines.per_node
        traffic = request.traffic
        workers: dict[int, Worker] = {}
        most: dict[int, int] = {}
        split = 1
        while split <= min(request.machines.gpus, 64):
            worker = Worker(model, operators, split, precision, per_node=per_node)
            # A worker spans nodes only where the model does not fit into one.
            if split <= per_node or not workers:
                fits = worker.most_sequences(traffic.isl + traffic.osl, memory) if model.splits(split) else 0
                if fits:
                    workers[split], most[split] = worker, fits
            split *= 2
        return cls(request, model, gpu, memory, precision, workers, most)

    @property
    def loaded(self) -> bool:
        """Whether the request says how much load there is."""
        return self.request.traffic.request_rate is not None or self.request.traffic.concurrency is not None

    # --- points --------------------------------------------------------------

    def points(self, report: Report) -> Iterator[Point]:
        if self.request.planner:
            yield from self._planned(report)
            return
        total = len(self.workers)
        for done, split in enumerate(self.workers):
            report(Progress(phase="SweepingPrefill", message=f"aggregated, tp {split}", done=done, total=total))
            yield from self._aggregated(split)
        for done, split in enumerate(self.workers):
            report(Progress(phase="SweepingDecode", message=f"decode, tp {split}", done=done, total=total))
            yield from self._disaggregated(split)

    def _batches(self, split: int) -> list[int]:
        most = min(self.most[split], BATCHES[-1])
        return sorted({*(batch for batch in BATCHES if batch < most), most})

    def _aggregated(self, split: int) -> Iterator[Point]:
        traffic, worker = self.request.traffic, self.workers[split]
        replicas, most = self.request.machines.gpus // split, min(self.most[split], BATCHES[-1])
        if not self.loaded:
            for batch in self._batches(split):
                served = full(worker, traffic.isl, traffic.osl, batch)
                yield self._point([(worker, "worker", replicas, batch)], served, replicas)
            return

        def serve(count: int) -> Point | None:
            served: Served | None = None
            batch = max(1, math.ceil((traffic.concurrency or 1) / count))
            if traffic.request_rate is not None:
                served = loaded(worker, traffic.isl, traffic.osl, traffic.request_rate / count, most)
                batch = 0 if served is None else _allowed(served.batch, most)
            elif batch <= most:
                served = full(worker, traffic.isl, traffic.osl, batch)
            if served is None:
                return None
            return self._point([(worker, "worker", count, batch)], served, count)

        yield from _fewest(serve, replicas)

    def _disaggregated(self, split: int) -> Iterator[Point]:
        """Prefill workers of every split beside decode workers of `split`."""
        gpus, decoder = self.request.machines.gpus, self.workers[split]
        for prefill_split, prefiller in self.workers.items():
            if prefill_split + split > gpus:
                continue
            if not self.loaded:
                for batch in self._batches(split):
                    for prefillers, decoders in self._pairs(prefiller, decoder, batch):
                        point = self._matched(prefiller, decoder, prefillers, decoders, batch)
                        if point is not None:
                            yield point
                continue
            for decoders in _steps((gpus - prefill_split) // split):

                def serve(prefillers: int, decoders: int = decoders, prefiller: Worker = prefiller) -> Point | None:
                    return self._matched(prefiller, decoder, prefillers, decoders, 0)

                yield from _fewest(serve, (gpus - decoders * split) // prefill_split)

    def _pairs(self, prefiller: Worker, decoder: Worker, batch: int) -> Iterator[tuple[int, int]]:
        """Numbers of prefill and decode workers that match in rate and use the GPUs well."""
        gpus, traffic = self.request.machines.gpus, self.request.traffic
        itl = decoder.decode(batch, traffic.isl + traffic.osl / 2).ms
        decode_rate = DECODE_MATCHING * batch / (max(1, traffic.osl - 1) * itl)
        ratio = decode_rate * prefiller.prefill(traffic.isl).ms / PREFILL_MATCHING
        middle = int(gpus / (decoder.tensor_parallel + ratio * prefiller.tensor_parallel))
        for decoders in range(max(1, middle - 1), middle + 3):
            room = (gpus - decoders * decoder.tensor_parallel) // prefiller.tensor_parallel
            needed = max(1, math.ceil(decoders * ratio - 1e-9))
            for prefillers in sorted({min(needed + more, room) for more in range(-1, 3)}):
                if prefillers > 0:
                    yield prefillers, decoders

    def _matched(self, prefiller: Worker, decoder: Worker, prefillers: int, decoders: int, batch: int) -> Point | None:
        """What `prefillers` and `decoders` serve together: the rate of the slower side, or the load that is asked."""
        traffic = self.request.traffic
        most = min(self.most[decoder.tensor_parallel], BATCHES[-1])
        tokens, context = max(1, traffic.osl - 1), traffic.isl + traffic.osl / 2
        prefill_ms, transfer = prefiller.prefill(traffic.isl).ms, prefiller.transfer_ms(traffic.isl)
        highest = PREFILL_MATCHING * 1000 * prefillers / prefill_ms
        if traffic.request_rate is not None:
            rate = traffic.request_rate
            decoded = decoding(decoder, traffic.isl, traffic.osl, rate / decoders, most)
            busy = rate * prefill_ms / 1000 / prefillers
            if busy > BUSIEST or decoded is None or decoded.batch > DECODE_MATCHING * most:
                return None
            itl, in_flight = decoded.itl_ms, decoded.batch
            allowed = _allowed(in_flight, most)
        elif traffic.concurrency is not None:
            allowed = max(1, math.ceil(traffic.concurrency / decoders))
            if allowed > most:
                return None
            kept = traffic.concurrency
            served = in_flight_apart(prefiller, decoder, prefillers, decoders, traffic.isl, traffic.osl, kept)
            pair: list[Role] = [(prefiller, "prefill", prefillers, 1), (decoder, "decode", decoders, allowed)]
            return self._point(pair, served, 1)
        else:
            in_flight = allowed = batch
            itl = decoder.decode(batch, context).ms
            rate = min(highest, DECODE_MATCHING * 1000 * decoders * batch / (tokens * itl))
        wait = waiting(prefill_ms, rate * prefill_ms / 1000 / prefillers, prefillers)
        # The first token comes from the prefill worker; the second one waits for the cache.
        served = Served(prefill_ms + wait, itl + transfer / tokens, rate, in_flight)
        roles: list[Role] = [
            (prefiller, "prefill", prefillers, 1),
            (decoder, "decode", decoders, allowed),
        ]
        return self._point(roles, served, 1)

    def _planned(self, report: Report) -> Iterator[Point]:
        traffic, targets, gpus = self.request.traffic, self.request.targets, self.request.machines.gpus
        total = len(self.workers)
        for done, (split, prefiller) in enumerate(self.workers.items()):
            report(Progress(phase="SweepingPrefill", message=f"prefill, tp {split}", done=done, total=total))
            prefill_ms = prefiller.prefill(traffic.isl).ms
            for other, decoder in self.workers.items():
                if split + other > gpus:
                    continue
                for batch in self._batches(other):
                    itl = decoder.decode(batch, traffic.isl + traffic.osl / 2).ms
                    rate = min(
                        PREFILL_MATCHING * 1000 / prefill_ms,
                        DECODE_MATCHING * 1000 * batch / (max(1, traffic.osl - 1) * itl),
                    )
                    if targets.itl_ms is not None and itl > targets.itl_ms and batch > 1:
                        break
                    served = Served(prefill_ms * PLANNED_TTFT, itl, rate, batch)
                    yield self._point([(prefiller, "prefill", 1, 1), (decoder, "decode", 1, batch)], served, 1)

    def _point(
        self,
        roles: Sequence[Role],
        served: Served,
        replicas: int,
    ) -> Point:
        traffic = self.request.traffic
        engines = tuple(
            Engine(
                role=role,
                tensor_parallel=worker.tensor_parallel,
                replicas=count,
                batch=batch,
                precision=self.precision,
                nodes=-(-worker.tensor_parallel // self.request.machines.per_node),
            )
            for worker, role, count, batch in roles
        )
        rate = served.requests_per_second * replicas
        tokens = rate * traffic.osl
        beyond: set[str] = set()
        for worker, role, _, batch in roles:
            if role != "decode":
                beyond.update(worker.prefill(traffic.isl).extrapolated)
            if role != "prefill":
                beyond.update(worker.decode(batch, traffic.isl + traffic.osl / 2).extrapolated)
        return Point(
            engines=engines,
            ttft_ms=served.ttft_ms,
            itl_ms=served.itl_ms,
            requests_per_second=rate,
            tokens_per_second=tokens,
            tokens_per_second_per_gpu=tokens / sum(engine.gpus for engine in engines),
            tokens_per_second_per_user=1000 / served.itl_ms,
            sla_met=meets(served.ttft_ms, served.itl_ms, self.request),
            estimated=self.hardware.estimated,
            extrapolated=tuple(sorted(beyond)),
        )


def _allowed(mean: float, most: int) -> int:
    """The sequences that an engine must take at once, so that requests that come at random hardly ever wait for others.

    Those in flight vary about their mean, and more than independent ones would, since many slow each other down.
    """
    return min(most, math.ceil(mean + 8 * math.sqrt(mean)) + 8)


def _steps(most: int) -> list[int]:
    """Numbers up to `most`: all small ones, then every eighth part more."""
    numbers, number = [], 1
    while number < most:
        numbers.append(number)
        number += max(1, number // 8)
    return [*numbers, most]


def _fewest(serve: Callable[[int], Point | None], most: int) -> Iterator[Point]:
    """The points with the fewest workers that serve the load, and that meet the targets as well.

    More workers serve more, and faster, so both numbers are found by halving.
    """
    seen: dict[int, Point | None] = {}

    def at(count: int) -> Point | None:
        if count not in seen:
            seen[count] = serve(count)
        return seen[count]

    for good in (lambda point: point is not None, lambda point: point is not None and point.sla_met):
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if good(at(middle)):
                high = middle
            else:
                low = middle + 1
        if low <= most:
            at(low)
    yield from (point for point in seen.values() if point is not None)
