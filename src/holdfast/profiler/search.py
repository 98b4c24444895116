"""The search: from a request to the configuration that answers it best.

Three modes.  Without a load, the most tokens a second within the targets and the GPUs; with a request rate or a
concurrency, the fewest GPUs that serve it within the targets; with a planner, one prefill and one decode worker that
a planner multiplies.  Targets are never relaxed: where nothing meets them, nothing is chosen, and the answer has the
closest point and what would have to change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from holdfast.profiler import hardware, models, timing
from holdfast.profiler.hardware import Hardware
from holdfast.profiler.models import Architecture
from holdfast.profiler.performance import BUSIEST, Served, Worker, decoding, full, in_flight_apart, loaded, waiting
from holdfast.profiler.request import Request, Targets, Unanswerable
from holdfast.profiler.results import Engine, Point, Precision, Progress, Result

MOST_GPUS: Final = 1024
BATCHES: Final = (*range(1, 16), *range(16, 32, 2), *range(32, 64, 4), *range(64, 128, 8), *range(128, 513, 16))
"""Sequences at once that are tried."""
RUNNERS_UP: Final = 5

PREFILL_MATCHING: Final = 0.9
DECODE_MATCHING: Final = 0.92
"""The share of its rate that a worker keeps beside workers of the other role."""
PLANNED_TTFT: Final = 1.8
"""What a planner's prefill worker must be faster by than its target, for prompts that wait."""

Report = Callable[[Progress], None]


Role = tuple[Worker, Literal["worker", "prefill", "decode"], int, int]
"""A worker, its role, how many there are and with how many sequences at once."""


def _silent(progress: Progress) -> None:
    """Reports nothing."""


def search(request: Request, *, hardware: Hardware | None = None, report: Report = _silent) -> Result:
    """The answer to `request`; `Unanswerable` where a field is wrong.

    `hardware` replaces what is known of the SKU, such as a table that the user measured.
    """
    report(Progress(phase="Initializing", message=f"reading the architecture of {request.model}"))
    space = _Space.of(request, hardware)
    points = list(space.points(report))
    report(Progress(phase="SelectingConfig", message=f"choosing between {len(points)} configurations"))
    return _choose(request, space, points)


def choose(request: Request, points: Sequence[Point]) -> Result:
    """The answer to `request` among points that are given, such as measured ones."""
    return _choose(request, _Space.of(request, None), points)


# --- the request -------------------------------------------------------------


def _check(request: Request) -> None:
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


class _Space(NamedTuple):
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
    def of(cls, request: Request, given: Hardware | None) -> _Space:
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


# --- the choice --------------------------------------------------------------


def e2e_ms(ttft_ms: float, itl_ms: float, osl: int) -> float:
    """How long a whole answer takes."""
    return ttft_ms + max(0, osl - 1) * itl_ms


def _excess(ttft_ms: float, itl_ms: float, osl: int, targets: Targets) -> float:
    """By what factor the worst target is missed; at most 1 where all are met."""
    ratios = [0.0]
    if targets.e2e_ms is not None:
        ratios.append(e2e_ms(ttft_ms, itl_ms, osl) / targets.e2e_ms)
    else:
        if targets.ttft_ms is not None:
            ratios.append(ttft_ms / targets.ttft_ms)
        if targets.itl_ms is not None:
            ratios.append(itl_ms / targets.itl_ms)
    return max(ratios)


def meets(ttft_ms: float, itl_ms: float, request: Request) -> bool:
    """Whether such times are within the targets of `request`."""
    return _excess(ttft_ms, itl_ms, request.traffic.osl, request.targets) <= 1


def _layout(point: Point) -> tuple[tuple[str, int], ...]:
    return tuple((engine.role, engine.tensor_parallel) for engine in point.engines)


def _rank(request: Request) -> Callable[[Point], tuple[float, ...]]:
    """The order of points that meet the targets, the best first."""
    osl, traffic = request.traffic.osl, request.traffic

    def latency(point: Point) -> float:
        return e2e_ms(point.ttft_ms, point.itl_ms, osl)

    if request.planner:
        return lambda point: (-point.tokens_per_second_per_gpu, latency(point))
    if traffic.request_rate is not None or traffic.concurrency is not None:
        return lambda point: (point.gpus, latency(point))
    if request.targets.favour == "latency":
        return lambda point: (latency(point), -point.tokens_per_second)
    return lambda point: (-point.tokens_per_second, point.gpus, latency(point))


def _choose(request: Request, space: _Space, points: Sequence[Point]) -> Result:
    rank = _rank(request)
    layouts: dict[tuple[tuple[str, int], ...], Point] = {}
    for point in sorted((point for point in points if point.sla_met), key=rank):
        layouts.setdefault(_layout(point), point)
    ranked = list(layouts.values())
    backend: Literal["sglang", "trtllm", "vllm"] = "vllm" if request.backend == "auto" else request.backend
    result = Result(backend=backend, chosen=None, pareto=pareto(points), considered=len(points))
    if ranked:
        chosen, *others = ranked
        why = _why(request, chosen, others)
        return msgspec.structs.replace(result, chosen=chosen, runners_up=tuple(others[:RUNNERS_UP]), why=why)

    def nearness(point: Point) -> tuple[float, float]:
        excess = _excess(point.ttft_ms, point.itl_ms, request.traffic.osl, request.targets)
        return excess, -point.tokens_per_second

    closest = min(points, key=nearness, default=None)
    return msgspec.structs.replace(result, closest=closest, remedy=_remedy(request, space, points))


def pareto(points: Iterable[Point]) -> tuple[Point, ...]:
    """The points that no other beats both for its users and for its GPUs, the fastest for users first."""
    front: list[Point] = []
    ordered = sorted(points, key=lambda point: (-point.tokens_per_second_per_user, -point.tokens_per_second_per_gpu))
    for point in ordered:
        if not front or point.tokens_per_second_per_gpu > front[-1].tokens_per_second_per_gpu:
            front.append(point)
    return tuple(front)


# --- in words ----------------------------------------------------------------


def described(point: Point) -> str:
    """The engines of a point, such as ``3 prefill (tp 1) and 1 decode (tp 4, batch 160)``."""
    words = []
    for engine in point.engines:
        details = [f"tp {engine.tensor_parallel}"]
        if engine.role != "prefill":
            details.append(f"batch {engine.batch}")
        plural = "s" if engine.role == "worker" and engine.replicas != 1 else ""
        words.append(f"{engine.replicas} {engine.role}{plural} ({', '.join(details)})")
    return " and ".join(words)


def _why(request: Request, chosen: Point, others: Sequence[Point]) -> str:
    traffic = request.traffic
    if request.planner:
        claim = "the most within the targets"

        def figure(point: Point) -> str:
            return f"{point.tokens_per_second_per_gpu:.0f} tokens/s for a GPU"
    elif traffic.request_rate is not None or traffic.concurrency is not None:
        load = f"{traffic.request_rate:g} requests/s" if traffic.request_rate else f"{traffic.concurrency:g} at once"
        claim = f"the fewest that serve {load} within the targets"

        def figure(point: Point) -> str:
            return _gpus(point.gpus)
    elif request.targets.favour == "latency":
        claim = "the shortest within the targets"

        def figure(point: Point) -> str:
            return f"{e2e_ms(point.ttft_ms, point.itl_ms, traffic.osl):.0f} ms for an answer"
    else:
        claim = f"the most within the targets and {_gpus(request.machines.gpus)}"

        def figure(point: Point) -> str:
            return f"{point.tokens_per_second:.0f} tokens/s"

    against = f"; next: {described(others[0])} with {figure(others[0])}" if others else ""
    return f"{described(chosen)} with {figure(chosen)}, {claim}{against}"


def _asked(targets: Targets) -> list[tuple[str, float, Callable[[Point, int], float]]]:
    """The targets, with what a point reaches of them."""
    if targets.e2e_ms is not None:
        return [("e2eLatency", targets.e2e_ms, lambda point, osl: e2e_ms(point.ttft_ms, point.itl_ms, osl))]
    asked: list[tuple[str, float, Callable[[Point, int], float]]] = []
    if targets.ttft_ms is not None:
        asked.append(("ttft", targets.ttft_ms, lambda point, osl: point.ttft_ms))
    if targets.itl_ms is not None:
        asked.append(("itl", targets.itl_ms, lambda point, osl: point.itl_ms))
    return asked


def _remedy(request: Request, space: _Space, points: Sequence[Point]) -> str:
    """What would have to change; every way that is named was tried."""
    ways = list(_ways(request, space))
    gpus, osl = request.machines.gpus, request.traffic.osl
    if not space.workers:
        size = space.model.weight_bytes(space.precision) / 2**30
        tokens = request.traffic.isl + osl
        problem = (
            f"{space.model.name} ({size:.0f} GiB of weights in {space.precision}) and one request of {tokens} tokens "
            f"do not fit into {gpus} {space.hardware.sku} of {space.memory_mib / 1024:.0f} GiB"
        )
        return f"{problem}; {_or(ways, 'no more than 64 GPUs were tried')}"
    if not points and request.planner:
        return f"a prefill and a decode worker do not fit into {_gpus(gpus)}; {_or(ways, 'leave out the planner')}"
    if not points:
        traffic = request.traffic
        load = f"{traffic.request_rate:g} requests/s" if traffic.request_rate else f"{traffic.concurrency:g} at once"
        return f"{load} are more than {_gpus(gpus)} can serve; {_or(ways, 'ask for less load')}"
    asked = _asked(request.targets)
    best = {name: min(reached(point, osl) for point in points) for name, _, reached in asked}
    missed = [(name, target) for name, target, _ in asked if best[name] > target]
    if missed:
        problem = " and ".join(f"{name} {target:g} ms" for name, target in missed)
        limits = " and ".join(f"{_ms(best[name])} ms" for name, _ in missed)
        lowest = " and ".join(f"{name}: {_ceiled(best[name])}" for name, _ in missed)
        bound = f"the best within {_gpus(gpus)} is {limits}"
    else:
        problem = " and ".join(f"{name} {target:g} ms" for name, target, _ in asked) + " together"
        closest = min(points, key=lambda point: _excess(point.ttft_ms, point.itl_ms, osl, request.targets))
        reached_now = " and ".join(f"{name} {_ms(reached(closest, osl))} ms" for name, _, reached in asked)
        lowest = " and ".join(f"{name}: {_ceiled(reached(closest, osl))}" for name, _, reached in asked)
        bound = f"the closest within {_gpus(gpus)} is {reached_now}"
    if ways:
        return f"{problem} needs {' or '.join(ways)}; {bound}"
    return f"{problem} cannot be met; {bound}, so ask for {lowest}"


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


def _or(ways: Sequence[str], otherwise: str) -> str:
    return f"it needs {' or '.join(ways)}" if ways else otherwise


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _ceiled(value: float) -> str:
    return f"{math.ceil(value * 10) / 10:g}" if value < 100 else f"{math.ceil(value)}"


def _ways(request: Request, space: _Space) -> Iterator[str]:
    """Changes to the request that make it answerable, by trying them: more GPUs, fp8, both."""
    quantized = msgspec.structs.replace(request, precision="fp8")
    tried = [("", request)]
    if space.precision == "bf16" and space.hardware.peaks.fp8 is not None:
        if _first(_meeting(quantized, space.hardware)) is not None:
            yield "fp8"
        else:
            tried.append(("fp8 with ", quantized))
    # More GPUs than two nodes make no worker faster; they serve more load, or hold a larger model.
    most = MOST_GPUS if space.loaded or not space.workers else 2 * request.machines.per_node
    fewest = MOST_GPUS + 1
    for way, given in tried:
        for times in (2, 4, 8, 16):
            machines = msgspec.structs.replace(given.machines, gpus=given.machines.gpus * times)
            larger = msgspec.structs.replace(given, machines=machines)
            if machines.gpus > most:
                break
            point = _first(_meeting(larger, space.hardware))
            if point is not None:
                if point.gpus < fewest:
                    fewest = point.gpus
                    yield f"{way}{_gpus(fewest)} (tp {max(engine.tensor_parallel for engine in point.engines)})"
                break


def _meeting(request: Request, gpu: Hardware) -> Iterator[Point]:
    """The points of a changed request that meet its targets."""
    return (point for point in _Space.of(request, gpu).points(_silent) if point.sla_met)


def _first(points: Iterable[Point]) -> Point | None:
    """The point with the fewest GPUs."""
    return min(points, key=lambda point: point.gpus, default=None)
