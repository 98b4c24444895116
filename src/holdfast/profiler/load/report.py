"""The figures of a load test as text and as a value for JSON.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.profiler.load.figures import (
    STATISTICS,
    Comparison,
    Figures,
    Goals,
    Statistic,
    compare,
    figures,
    sla_met,
)
from holdfast.profiler.load.generator import Progress

_NAMES = {"ttft": "TTFT", "itl": "ITL", "e2e": "E2E"}


def live(progress: Progress) -> str:
    """One line on a test that runs."""
    found = figures(progress.samples)
    failed = f"  failed {found.requests - found.completed}" if found.completed < found.requests else ""
    ttft = f"  TTFT {ms(found.ttft_ms.p50)}" if found.ttft_ms else ""
    itl = f"  ITL {ms(found.itl_ms.p50)}" if found.itl_ms else ""
    done = f"{found.completed} of {progress.sent} done"
    return f"{progress.seconds:5.1f} s  {done}{failed}{ttft}{itl}  {found.tokens_per_second:.0f} tokens/s"


def text(found: Figures, goals: Goals, *, by: Statistic = "mean") -> str:
    return "\n".join(_lines(found, goals, by))


def _lines(found: Figures, goals: Goals, by: Statistic) -> Iterator[str]:
    yield (
        f"{found.completed} of {found.requests} requests in {found.seconds:.1f} s: {found.requests_per_second:.2f} "
        f"requests/s, {found.tokens_per_second:.1f} tokens/s; {found.isl:.0f} tokens in, {found.osl:.0f} out"
    )
    for error, count in found.errors.items():
        yield f"  {count} failed: {error}"
    spreads = {"TTFT": found.ttft_ms, "ITL": found.itl_ms, "E2E": found.e2e_ms}
    if any(spreads.values()):
        yield ""
        yield _row("ms", STATISTICS)
        for name, spread in spreads.items():
            if spread is not None:
                yield _row(name, (ms(spread.at(each)).removesuffix(" ms") for each in STATISTICS))
    compared = compare(found, goals, by=by)
    rows = [each for each in compared if each.target is not None or each.predicted is not None]
    if rows:
        yield ""
        yield _row(by, ("measured", "target", "predicted", "error"))
        for each in rows:
            yield _row(_NAMES[each.name], _compared(each))
    verdict = sla_met(found, compared)
    if verdict is not None:
        yield ""
        yield _verdict(found, compared, verdict, by)


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:<6}" + "".join(f"{cell:>11}" for cell in cells)


def _compared(row: Comparison) -> Iterator[str]:
    yield ms(row.measured)
    yield "" if row.target is None else f"{row.target:g} ms"
    yield "" if row.predicted is None else ms(row.predicted)
    yield "" if row.error is None else f"{row.error:+.1%}"


def _verdict(found: Figures, compared: Iterable[Comparison], met: bool, by: Statistic) -> str:
    if met:
        return "The SLA is met."
    missed = [
        f"{_NAMES[each.name]} {by} is {ms(each.measured)}, more than {each.target:g} ms"
        for each in compared
        if each.met is False
    ]
    if found.completed < found.requests:
        missed.append(f"{found.requests - found.completed} of {found.requests} requests failed")
    return f"The SLA is not met: {'; '.join(missed) or 'there was no request'}."


def ms(value: float) -> str:
    return f"{value:.2f} ms" if value < 10 else f"{value:.1f} ms" if value < 1000 else f"{value:.0f} ms"


def value(found: Figures, goals: Goals, *, by: Statistic = "mean") -> dict[str, Any]:
    """All of it, for JSON."""
    compared = compare(found, goals, by=by)
    return {
        "figures": msgspec.to_builtins(found),
        "comparedBy": by,
        "comparisons": [{**msgspec.to_builtins(each), "met": each.met, "error": each.error} for each in compared],
        "slaMet": sla_met(found, compared),
    }
