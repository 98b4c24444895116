"""The search: from a request to the configuration that answers it best.

Three modes.  Without a load, the most tokens a second within the targets and the GPUs; with a request rate or a
concurrency, the fewest GPUs that serve it within the targets; with a planner, one prefill and one decode worker that
a planner multiplies.  Targets are never relaxed: where nothing meets them, nothing is chosen, and the answer has the
closest point and what would have to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

import msgspec

from holdfast.profiler.explanations import remedy, why
from holdfast.profiler.hardware import Hardware
from holdfast.profiler.request import Request
from holdfast.profiler.results import Point, Progress, Result
from holdfast.profiler.space import Report, Space, silent
from holdfast.profiler.targets import e2e_ms, excess

RUNNERS_UP: Final = 5
"""How many other configurations an answer has."""


def search(request: Request, *, hardware: Hardware | None = None, report: Report = silent) -> Result:
    """The answer to `request`; `Unanswerable` where a field is wrong.

    `hardware` replaces what is known of the SKU, such as a table that the user measured.
    """
    report(Progress(phase="Initializing", message=f"reading the architecture of {request.model}"))
    space = Space.of(request, hardware)
    points = list(space.points(report))
    report(Progress(phase="SelectingConfig", message=f"choosing between {len(points)} configurations"))
    return _choose(request, space, points)


def choose(request: Request, points: Sequence[Point]) -> Result:
    """The answer to `request` among points that are given, such as measured ones."""
    return _choose(request, Space.of(request, None), points)


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


def _choose(request: Request, space: Space, points: Sequence[Point]) -> Result:
    rank = _rank(request)
    layouts: dict[tuple[tuple[str, int], ...], Point] = {}
    for point in sorted((point for point in points if point.sla_met), key=rank):
        layouts.setdefault(_layout(point), point)
    ranked = list(layouts.values())
    backend: Literal["sglang", "trtllm", "vllm"] = "vllm" if request.backend == "auto" else request.backend
    result = Result(backend=backend, chosen=None, pareto=pareto(points), considered=len(points))
    if ranked:
        chosen, *others = ranked
        return msgspec.structs.replace(
            result, chosen=chosen, runners_up=tuple(others[:RUNNERS_UP]), why=why(request, chosen, others)
        )

    def nearness(point: Point) -> tuple[float, float]:
        missed_by = excess(point.ttft_ms, point.itl_ms, request.traffic.osl, request.targets)
        return missed_by, -point.tokens_per_second

    closest = min(points, key=nearness, default=None)
    return msgspec.structs.replace(result, closest=closest, remedy=remedy(request, space, points))


def pareto(points: Iterable[Point]) -> tuple[Point, ...]:
    """The points that no other beats both for its users and for its GPUs, the fastest for users first."""
    front: list[Point] = []
    ordered = sorted(points, key=lambda point: (-point.tokens_per_second_per_user, -point.tokens_per_second_per_gpu))
    for point in ordered:
        if not front or point.tokens_per_second_per_gpu > front[-1].tokens_per_second_per_gpu:
            front.append(point)
    return tuple(front)
