"""How the times of a configuration compare with the targets of a request.  Pure."""

from __future__ import annotations

from holdfast.profiler.request import Request, Targets


def e2e_ms(ttft_ms: float, itl_ms: float, osl: int) -> float:
    """How long a whole answer takes."""
    return ttft_ms + max(0, osl - 1) * itl_ms


def excess(ttft_ms: float, itl_ms: float, osl: int, targets: Targets) -> float:
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
    return excess(ttft_ms, itl_ms, request.traffic.osl, request.targets) <= 1
