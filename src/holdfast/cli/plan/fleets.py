"""The screen of `holdfast simulate`: the view models of `views.fleets`, drawn with colours.

A screen has a title, a row of cells for each revision, a gauge of ready replicas against the
floor, a chart over time, and the reason for the current decision.  Colours only repeat what
the shapes say.  This module draws what it is given; it runs nothing and does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdfast.kernel.fleet import State
from holdfast.kernel.rollout import Blocked, Decision, Done, Hold, RollBack, Start, Stop, Switch, Wait
from holdfast.meta import durations
from holdfast.views.fleets import Mark, Picture, Piece, Row, Sample, chart, gauge, states

REVISIONS: Final = ("blue", "green", "magenta")
"""The colour of the first, second and third revision."""

STATES: Final = {State.UNREADY: "yellow", State.TERMINATING: "bright_black", State.DEAD: "bold red"}
"""The colours of states that look the same in every revision."""

MARKS: Final = {
    Mark.FULL: "green",
    Mark.SPARE: "bright_green",
    Mark.EMPTY: "bright_black",
    Mark.FLOOR: "bold",
    Mark.BREACH: "bold red",
}

CHART_HEIGHT: Final = 8
WIDE: Final = 110
"""The width of a terminal from which on the latest changes are beside the chart, in columns."""

HISTORY: Final = 44
"""The width of the latest changes beside the chart, in columns."""


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the screen at one moment.

    title, note  the left and the right part of the first line
    samples      the ready replicas so far, for the chart; `end` is its right edge and `top` its upper one
    most         the most cells that each revision has at any time, so that rows keep their places
    since        how long the decision has been the same
    recent       the latest changes: when, what, and whether the engine made them
    last         whether it is the last frame; the summary below it has the reason and the changes
    """

    title: tuple[str, ...]
    note: str
    picture: Picture
    ready: int
    desired: int
    floor: int
    ceiling: int
    decision: Decision
    samples: Sequence[Sample]
    at: timedelta
    end: timedelta
    top: int
    most: tuple[int, ...]
    since: timedelta
    recent: Sequence[tuple[timedelta, str, bool]]
    last: bool = False


def paint(screen: Screen, *, width: int, height: int) -> RenderableType:
    """A screen for a terminal of `width` columns and `height` lines."""
    inner = width - 4
    rows, used = _rows(screen, inner)
    # The chart gets the lines that the other parts leave, and the latest changes get the rest.
    left = height - used - 9
    tall = max(3, min(CHART_HEIGHT, left - 2))
    wide = width >= WIDE and not screen.last
    graph = _chart(screen, width=inner - 8 - (HISTORY if wide else 0), height=tall)
    lines = 0 if screen.last else tall + 2 if wide else max(0, min(4, left - tall - 2))
    middle: RenderableType = graph
    if wide:
        middle = Table.grid(padding=(0, 4, 0, 0))
        middle.add_row(graph, _history(screen, lines))
    elif lines:
        middle = Group(graph, _history(screen, lines))
    parts = [_title(screen, inner), Text(), rows, Text(), _gauge(screen, inner), Text(), middle]
    if not screen.last:
        parts += [Text(), _why(screen)]
    return Padding(Group(*parts), (1, 2, 0, 2))


def _title(screen: Screen, width: int) -> Text:
    name, *rest = screen.title
    left = Text.assemble((name, "bold"), "  ", ("  ".join(rest), "blue"))
    clock = Text.assemble((durations.short(screen.at), "bold"), (f"  {screen.note}", "bright_black"))
    left.truncate(max(0, width - clock.cell_len - 2), overflow="ellipsis")
    return Text.assemble(left, " " * max(2, width - left.cell_len - clock.cell_len), clock)


def _rows(screen: Screen, width: int) -> tuple[RenderableType, int]:
    """A row for each revision, and the number of lines that all rows take."""
    columns = max(20, width - max(len(row.revision) for row in screen.picture.rows) - 28)
    airy = 2 * max(screen.most, default=0) <= columns
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(width=columns, overflow="fold")
    grid.add_column(no_wrap=True, overflow="ellipsis", justify="right", width=22)
    used = 0
    for row in screen.picture.rows:
        colour = REVISIONS[row.index % len(REVISIONS)]
        name = Text.assemble(("▸ " if row.wanted else "  ", "bold"), (row.revision, f"bold {colour}"))
        cells = _cells(row, gap=" " if airy else "")
        lines, needed = (max(1, -(-number // columns)) for number in (len(row.cells), screen.most[row.index]))
        cells.append("" if airy else "\n" * (needed - lines))
        grid.add_row(name, cells, Text(row.words, "bright_black"))
        used += 1 if airy else needed
    scale = f"{screen.picture.scale:,} to a cell  " if screen.picture.scale > 1 else ""
    key = f"  {scale}{states(len(screen.picture.rows) - 1)}"
    return Group(grid, Text(key, "bright_black", no_wrap=True, overflow="ellipsis")), used + 1


def _cells(row: Row, *, gap: str) -> Text:
    colour = REVISIONS[row.index % len(REVISIONS)]
    text = Text()
    for cell in row.cells:
        style = STATES.get(cell.state) or (colour if cell.state is State.SETTLING else f"bold {colour}")
        text.append(cell.glyph, style)
        text.append(gap)
    return text


def _gauge(screen: Screen, width: int) -> Text:
    pieces = gauge(screen.ready, floor=screen.floor, ceiling=screen.top, width=max(20, width - 38))
    style = "bold green" if screen.ready >= screen.floor else "bold red"
    numbers = Text.assemble(
        (f"{screen.ready:,}", style),
        (f" of {screen.desired:,} ready", ""),
        ("   floor ", "bright_black"),
        (f"{screen.floor:,} ┃", "bold"),
    )
    return Text.assemble(("ready ", "bright_black"), _joined(pieces), "  ", numbers)


def _chart(screen: Screen, *, width: int, height: int) -> RenderableType:
    rows = chart(screen.samples, until=screen.at, end=screen.end, top=screen.top, width=width, height=height)
    lines = []
    for index, row in enumerate(rows):
        floor = any(piece.text[0] in "━╍┄" for piece in row)
        label = f"{screen.floor:,}" if floor else f"{screen.top:,}" if index == 0 else ""
        axis = Text.assemble((f"{label:>5} ", "bold" if floor else "bright_black"), ("┤" if label else "│", "dim"))
        lines.append(axis + _joined(row))
    begin, end = "0s", durations.short(screen.end)
    rule = "─" * max(1, width - len(begin) - len(end) - 2)
    lines.append(Text(f"      └{begin} {rule} {end}", "bright_black"))
    return Group(*lines)


def _joined(pieces: Iterable[Piece]) -> Text:
    text = Text()
    for piece in pieces:
        colour = MARKS[piece.mark] if piece.index is None else REVISIONS[piece.index % len(REVISIONS)]
        text.append(piece.text, colour)
    return text


def _history(screen: Screen, lines: int) -> Text:
    shown = list(screen.recent)[-lines:] if lines else []
    text = Text(no_wrap=True, overflow="ellipsis")
    for at, what, ours in shown:
        text.append(f"{durations.short(at):>7}  ", "bright_black")
        text.append(f"{what}\n", "" if ours else "bright_black")
    text.append("\n" * (lines - len(shown)))
    text.right_crop(1)
    return text


def _why(screen: Screen) -> RenderableType:
    """The reason; always two lines, so that the screen keeps its height."""
    mark, style = sign(screen.decision)
    because = screen.decision.because
    since = f"  {durations.short(screen.since)}" if screen.since else ""
    head = Text.assemble((f"{mark} {because.code.value}", style), (since, "bright_black"))
    return Group(head, Text(f"  {because.message}", overflow="ellipsis", no_wrap=True))


def sign(decision: Decision) -> tuple[str, str]:
    """A sign and a style for a decision."""
    match decision:
        case Start():
            return "+", "bold green"
        case Stop():
            return "-", "bold magenta"
        case Switch():
            return "⇄", "bold cyan"
        case RollBack():
            return "↩", "bold red"
        case Wait() | Hold():
            return "…", "bold yellow"
        case Blocked():
            return "✗", "bold red"
        case Done():
            return "✓", "bold green"
