"""Figures: what a part of the torture has measured, and whether it is within its limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a part.

    limit  what is promised; empty where the number is only told
    kept   whether the promise was kept
    """

    what: str
    value: str
    limit: str = ""
    kept: bool = True


def counted(what: str, number: int) -> Figure:
    """A number that says how much was tried."""
    return Figure(what, f"{number:,}")


def none_of(what: str, number: int) -> Figure:
    """A number of broken promises, of which there must be none."""
    return Figure(what, f"{number:,}", "0", number == 0)


def at_most(what: str, number: float, limit: float, unit: str) -> Figure:
    return Figure(what, f"{number:,.0f} {unit}", f"{limit:,.0f} {unit}", number <= limit)


def table(rows: Iterable[tuple[str, Figure]]) -> str:
    """Figures by part, one line each."""
    lines = [("PART", "FIGURE", "VALUE", "LIMIT", "")]
    last = ""
    for part, figure in rows:
        verdict = ("ok" if figure.kept else "BROKEN") if figure.limit else ""
        lines.append((part if part != last else "", figure.what, figure.value, figure.limit, verdict))
        last = part
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    part, what, value, limit, verdict = line
    cells = (part.ljust(widths[0]), what.ljust(widths[1]), value.rjust(widths[2]), limit.rjust(widths[3]), verdict)
    return "   ".join(cells).rstrip()
