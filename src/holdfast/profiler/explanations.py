"""Why a configuration was chosen, or what would have to change, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from holdfast.profiler.hardware import Hardware
from holdfast.profiler.request import Request, Targets
from holdfast.profiler.results import Point
from holdfast.profiler.space import MOST_GPUS, Space, silent
from holdfast.profiler.targets import e2e_ms, excess


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


def why(request: Request, chosen: Point, others: Sequence[Point]) -> str:
    """Why a point was chosen, with the next best one."""
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


def remedy(request: Request, space: Space, points: Sequence[Point]) -> str:
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
        closest = min(points, key=lambda point: excess(point.ttft_ms, point.itl_ms, osl, request.targets))
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


def _ways(request: Request, space: Space) -> Iterator[str]:
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
    return (point for point in Space.of(request, gpu).points(silent) if point.sla_met)


def _first(points: Iterable[Point]) -> Point | None:
    """The point with the fewest GPUs."""
    return min(points, key=lambda point: point.gpus, default=None)
