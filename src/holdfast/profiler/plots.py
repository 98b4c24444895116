"""The Pareto front as a picture: of characters for a terminal, and as SVG.  Pure.

To the right, tokens a second for one user; upwards, tokens a second for one GPU.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from holdfast.profiler.results import Point, Result

Mark = Literal["aggregated", "disaggregated", "chosen", "target", "axis"]

MARKS: Final[dict[Mark, str]] = {"aggregated": "o", "disaggregated": "x", "chosen": "@", "target": ":", "axis": ""}


class Run(NamedTuple):
    """Characters of one line that are alike."""

    text: str
    mark: Mark


def _nice(high: float) -> float:
    """The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `high`."""
    power = math.pow(10, math.floor(math.log10(max(high, 1e-9))))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= high * (1 - 1e-12))


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _marked(result: Result) -> list[tuple[float, float, Mark]]:
    """What is drawn, the most important last."""
    drawn: list[tuple[float, float, Mark]] = []
    for point in (*result.pareto, *result.runners_up):
        mark: Mark = "disaggregated" if point.disaggregated else "aggregated"
        drawn.append((point.tokens_per_second_per_user, point.tokens_per_second_per_gpu, mark))
    best = result.chosen or result.closest
    if best is not None:
        drawn.append((best.tokens_per_second_per_user, best.tokens_per_second_per_gpu, "chosen"))
    return drawn


def text(result: Result, *, width: int = 78, height: int = 16, itl_ms: float | None = None) -> list[list[Run]]:
    """Lines of at most `width` characters; `itl_ms` draws the target, left of which answers are too slow."""
    drawn = _marked(result)
    if not drawn:
        return []
    right, top = _nice(max(x for x, _, _ in drawn)), _nice(max(y for _, y, _ in drawn))
    margin = len(_short(top)) + 1
    columns, rows = max(10, width - margin - 2), max(4, height - 3)
    cells: list[list[tuple[str, Mark]]] = [[(" ", "axis")] * columns for _ in range(rows)]

    def place(x: float, y: float) -> tuple[int, int]:
        return (
            min(columns - 1, max(0, round(x / right * (columns - 1)))),
            min(rows - 1, max(0, rows - 1 - round(y / top * (rows - 1)))),
        )

    if itl_ms is not None and 1000 / itl_ms <= right:
        column, _ = place(1000 / itl_ms, 0)
        for line in cells:
            line[column] = (MARKS["target"], "target")
    for x, y, mark in drawn:
        column, row = place(x, y)
        cells[row][column] = (MARKS[mark], mark)
    lines = []
    for number, line in enumerate(cells):
        label = {0: _short(top), rows - 1: "0"}.get(number, "")
        lines.append([Run(f"{label:>{margin}}┤" if label else f"{'':>{margin}}│", "axis"), *_runs(line)])
    axis = f"{'':>{margin}}└" + "─" * columns
    scale = [" "] * (margin + 1 + columns + 1)
    for share in (0, 0.25, 0.5, 0.75, 1):
        word = _short(round(right * share, 6))
        start = margin + 1 + round(share * (columns - 1)) - (len(word) - 1 if share == 1 else len(word) // 2)
        scale[start : start + len(word)] = list(word)
    lines.append([Run(axis, "axis")])
    lines.append([Run("".join(scale).rstrip(), "axis")])
    return lines


def _runs(line: Sequence[tuple[str, Mark]]) -> list[Run]:
    runs: list[Run] = []
    for character, mark in line:
        if runs and runs[-1].mark == mark:
            runs[-1] = Run(runs[-1].text + character, mark)
        else:
            runs.append(Run(character, mark))
    return runs


# --- SVG ---------------------------------------------------------------------

_COLOURS: Final = {"aggregated": "#2f6fdb", "disaggregated": "#d9730d", "chosen": "#1a7f37"}


def svg(result: Result, *, title: str, itl_ms: float | None = None) -> str:
    """The same as a picture of 720 by 440."""
    drawn = _marked(result)
    right = _nice(max((x for x, _, _ in drawn), default=1.0))
    top = _nice(max((y for _, y, _ in drawn), default=1.0))
    left, upper, wide, high = 70, 50, 620, 320

    def at(x: float, y: float) -> tuple[float, float]:
        return left + x / right * wide, upper + high - y / top * high

    look = 'font-family="system-ui, sans-serif" font-size="12" role="img"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="440" viewBox="0 0 720 440" {look}>',
        '<rect width="720" height="440" fill="#ffffff"/>',
        f'<text x="{left}" y="28" font-size="15" font-weight="600">{html.escape(title)}</text>',
    ]
    for number in range(5):
        x, y = at(right * number / 4, top * number / 4)
        parts.append(f'<line x1="{x:.1f}" y1="{upper}" x2="{x:.1f}" y2="{upper + high}" stroke="#e5e5e5"/>')
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + wide}" y2="{y:.1f}" stroke="#e5e5e5"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{upper + high + 18}" text-anchor="middle" fill="#555">'
            f"{_short(round(right * number / 4, 6))}</text>"
        )
        parts.append(
            f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">'
            f"{_short(round(top * number / 4, 6))}</text>"
        )
    parts.append(
        f'<text x="{left + wide / 2}" y="{upper + high + 40}" text-anchor="middle">tokens/s for a user</text>'
        f'<text transform="translate(20 {upper + high / 2}) rotate(-90)" text-anchor="middle">tokens/s for a GPU</text>'
    )
    if itl_ms is not None and 1000 / itl_ms <= right:
        x, _ = at(1000 / itl_ms, 0)
        parts.append(
            f'<line x1="{x:.1f}" y1="{upper}" x2="{x:.1f}" y2="{upper + high}" '
            'stroke="#c62828" stroke-dasharray="5 4"/>'
            f'<text x="{x + 5:.1f}" y="{upper + 12}" fill="#c62828">itl {itl_ms:g} ms</text>'
        )
    line = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in _front(result.pareto))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#bbbbbb"/>')
    for x, y, mark in drawn:
        cx, cy = at(x, y)
        radius = 7 if mark == "chosen" else 4
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{radius}" fill="{_COLOURS[mark]}" fill-opacity="0.85"/>')
    for number, (name, colour) in enumerate(_COLOURS.items()):
        x = left + 130 * number
        word = name if name != "chosen" or result.chosen is not None else "closest"
        parts.append(f'<circle cx="{x + 6}" cy="424" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="428">{word}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _front(points: Sequence[Point]) -> list[tuple[float, float]]:
    return [(point.tokens_per_second_per_user, point.tokens_per_second_per_gpu) for point in points]
