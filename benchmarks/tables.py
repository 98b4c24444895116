"""What was measured, as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line(Generic[T]):
    """One line of a report: how a figure is read, and what it is held against."""

    name: str
    unit: str
    read: Callable[[T], float]
    bar: str = ""


def show(title: str, lines: Sequence[Line[T]], measured: Mapping[str, T]) -> None:
    """Print figures in columns; of two, also the first as a multiple of the second."""
    heads = [*measured, *(("ratio",) if len(measured) == 2 else ())]
    print(f"{title:44} {'bar':>10} " + " ".join(f"{head:>12}" for head in heads))
    for line in lines:
        values = [line.read(figures) for figures in measured.values()]
        cells = [shown(value, line.unit) for value in values]
        if len(values) == 2:
            cells.append(f"{values[0] / values[1]:.2f}x" if values[1] else "-")
        print(f"{line.name:44} {line.bar:>10} " + " ".join(f"{cell:>12}" for cell in cells))


def shown(value: float, unit: str) -> str:
    if not value:
        return "-"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.2f} {unit}"
