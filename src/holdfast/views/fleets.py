"""A fleet as a picture: replicas as cells, the floor as a line, time as a chart.

Pure view models: text and numbers that a terminal, a log and a page can show
alike.  Every revision has a shape of its own and every state a filling, so that
a picture is read without colours too.  Nothing here knows where replicas come
from or how anything is drawn.

    >>> Row("v2", 1, True, ((State.AVAILABLE, 3), (State.UNREADY, 1))).text
    '●●●○'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from holdfast.kernel.fleet import Replica, State

MOST_CELLS = 200
"""Above so many replicas a cell stands for several."""

SHAPES = (
    {State.AVAILABLE: "■", State.SETTLING: "▣", State.UNREADY: "□"},
    {State.AVAILABLE: "●", State.SETTLING: "◉", State.UNREADY: "○"},
    {State.AVAILABLE: "◆", State.SETTLING: "◈", State.UNREADY: "◇"},
)
"""Shapes of the first, second and third revision; the fourth looks like the first again."""

GOING = {State.TERMINATING: "·", State.DEAD: "✗"}
"""What no longer counts looks the same in every revision."""

TEXTURES = ("▒", "█", "▓")
"""What fills the chart for each revision."""

ORDER = (State.AVAILABLE, State.SETTLING, State.UNREADY, State.DEAD, State.TERMINATING)
"""From left to right, so that what serves is in front."""

WORDS = {
    State.AVAILABLE: "available",
    State.SETTLING: "settling",
    State.UNREADY: "not ready",
    State.DEAD: "dead",
    State.TERMINATING: "terminating",
}


class Cell(msgspec.Struct, frozen=True):
    """One replica, or several that are alike."""

    state: State
    glyph: str


class Row(msgspec.Struct, frozen=True):
    """The replicas of one revision.

    index   which revision it is, counted from the first; shape and colour follow it
    wanted  whether it is the revision that is being rolled out
    scale   how many replicas a cell stands for
    """

    revision: str
    index: int
    wanted: bool
    counts: tuple[tuple[State, int], ...] = ()
    scale: int = 1

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Rounded up, so that a single dead replica among thousands is still seen."""
        numbers = ((state, -(-number // self.scale)) for state, number in self.counts)
        return tuple(Cell(state, _glyph(state, self.index)) for state, number in numbers for _ in range(number))

    @property
    def text(self) -> str:
        return "".join(cell.glyph for cell in self.cells)

    @property
    def total(self) -> int:
        return sum(number for _, number in self.counts)

    @property
    def ready(self) -> int:
        return sum(number for state, number in self.counts if state in (State.AVAILABLE, State.SETTLING))

    @property
    def words(self) -> str:
        """``14 of 19 available``."""
        available = sum(number for state, number in self.counts if state is State.AVAILABLE)
        return f"{available:,} of {self.total:,} available" if self.total else "none"

    @property
    def tally(self) -> str:
        """``■812 □3``: the row in so little space that any fleet fits in a line."""
        return " ".join(f"{_glyph(state, self.index)}{number}" for state, number in self.counts)


class Picture(msgspec.Struct, frozen=True):
    """A fleet at a moment."""

    rows: tuple[Row, ...]
    scale: int = 1

    @property
    def ready(self) -> tuple[int, ...]:
        """Ready replicas of each revision, by its index."""
        return tuple(row.ready for row in self.rows)

    def line(self, *, most: int = 40) -> str:
        """All replicas on one line: cells, or numbers when there are more than `most`."""
        short = sum(row.total for row in self.rows) <= most
        return "  ".join(row.text if short else row.tally for row in self.rows if row.total)


def picture(
    replicas: Iterable[Replica],
    *,
    revisions: Sequence[str],
    target: str,
    now: datetime,
    min_ready: timedelta = timedelta(),
    scale: int = 1,
) -> Picture:
    """`replicas` as rows of cells, one row for each of `revisions`, oldest first."""
    counts = Counter((replica.revision, replica.state(min_ready=min_ready, now=now)) for replica in replicas)
    rows = []
    for index, revision in enumerate(revisions):
        known = tuple((state, counts[revision, state]) for state in ORDER if counts[revision, state])
        rows.append(Row(revision, index, revision == target, known, scale))
    return Picture(tuple(rows), scale)


def scale_of(replicas: int) -> int:
    """How many replicas a cell must stand for, so that so many can be seen at once."""
    return -(-replicas // MOST_CELLS) or 1


def _glyph(state: State, index: int) -> str:
    return GOING.get(state) or SHAPES[index % len(SHAPES)][state]


def legend(revisions: Sequence[str]) -> str:
    """What the shapes mean: ``■ v1  ● v2  ◉ settling  ○ not ready  ✗ dead  · terminating``."""
    shapes = [f"{_glyph(State.AVAILABLE, index)} {revision}" for index, revision in enumerate(revisions)]
    return "  ".join([*shapes, states(len(revisions) - 1)])


def states(index: int) -> str:
    """What the fillings mean, in the shape of the revision `index`."""
    return "  ".join(f"{_glyph(state, index)} {WORDS[state]}" for state in ORDER[1:])


class Mark(StrEnum):
    """What a piece of a gauge or chart means."""

    FULL = "full"
    EMPTY = "empty"
    FLOOR = "floor"
    BREACH = "breach"
    SPARE = "spare"

    def __str__(self) -> str:
        return self.value


class Piece(msgspec.Struct, frozen=True):
    """A run of equal characters; `index` is the revision it belongs to, if any."""

    text: str
    mark: Mark
    index: int | None = None


def gauge(ready: int, *, floor: int, ceiling: int, width: int) -> tuple[Piece, ...]:
    """Ready replicas as a bar of `width` columns from 0 to the ceiling, with the floor as a line across it."""
    top = max(1, ceiling, ready, floor)
    line = min(width - 1, round(floor * (width - 1) / top))
    full = round(ready * (width - 1) / top)
    below = Mark.FULL if ready >= floor else Mark.BREACH
    before, after = min(full, line), max(0, full - line)
    return (
        Piece("█" * before, below),
        Piece("░" * (line - before), Mark.EMPTY),
        Piece("┃", Mark.FLOOR),
        Piece("█" * after, Mark.SPARE),
        Piece("░" * (width - 1 - line - after), Mark.EMPTY),
    )


class Sample(msgspec.Struct, frozen=True):
    """How many replicas of each revision were ready from a moment on."""

    at: timedelta
    ready: tuple[int, ...]
    floor: int

    @property
    def total(self) -> int:
        return sum(self.ready)


def chart(
    samples: Sequence[Sample], *, until: timedelta, end: timedelta, top: int, width: int, height: int
) -> tuple[tuple[Piece, ...], ...]:
    """Ready replicas over time, newest revision at the bottom, with the floor as a row of its own.

    `until` is now and `end` the right edge; every column shows the worst moment
    within it, so that no dip is lost.  The rows come from top to bottom.
    """
    columns = _columns(samples, until=until, end=end, width=width)
    floor = samples[-1].floor if samples else 0
    top = max(1, top)
    height = min(height, top)
    line = round(floor * height / top)
    rows = []
    for level in range(height, 0, -1):
        if level == line:
            rows.append(_floor_row(columns, width))
        rows.append(_row(columns, level=level, height=height, top=top))
    if line == 0:
        rows.append(_floor_row(columns, width))
    return tuple(rows)


def _columns(samples: Sequence[Sample], *, until: timedelta, end: timedelta, width: int) -> list[Sample | None]:
    columns: list[Sample | None] = []
    last, position = None, 0
    for column in range(width):
        begins, ends = end * column / width, end * (column + 1) / width
        if begins > until:
            columns.append(None)
            continue
        worst = last
        while position < len(samples) and samples[position].at < ends and samples[position].at <= until:
            last = samples[position]
            # What lasted no longer than to the column's own beginning does not count in it.
            if worst is None or last.at <= begins or last.total - last.floor < worst.total - worst.floor:
                worst = last
            position += 1
        columns.append(worst)
    return columns


def _row(columns: Sequence[Sample | None], *, level: int, height: int, top: int) -> tuple[Piece, ...]:
    return _joined(_filling(column, (level - 0.5) * top / height) for column in columns)


def _filling(sample: Sample | None, at: float) -> Piece:
    """What stands at the height `at` of a column: newer revisions below older ones."""
    heap = 0
    for index in reversed(range(len(sample.ready) if sample else 0)):
        heap += sample.ready[index] if sample else 0
        if at <= heap:
            return Piece(TEXTURES[index % len(TEXTURES)], Mark.FULL, index)
    return Piece(" ", Mark.EMPTY)


def _floor_row(columns: Sequence[Sample | None], width: int) -> tuple[Piece, ...]:
    ahead = Piece("┄", Mark.EMPTY)
    kept, broken = Piece("━", Mark.FLOOR), Piece("╍", Mark.BREACH)
    return _joined(
        ahead if column is None else kept if column.total >= column.floor else broken for column in columns[:width]
    )


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and (last.mark, last.index, last.text[0]) == (piece.mark, piece.index, piece.text):
            joined[-1] = msgspec.structs.replace(last, text=last.text + piece.text)
        else:
            joined.append(piece)
    return tuple(joined)


def sparkline(values: Sequence[int], *, top: int) -> str:
    """A row of little bars, one for each value."""
    bars = " ▁▂▃▄▅▆▇█"
    return "".join(bars[min(len(bars) - 1, -(-value * (len(bars) - 1) // max(1, top)))] for value in values)


def worst_moments(samples: Sequence[Sample], *, end: timedelta, width: int) -> tuple[int, ...]:
    """The fewest ready replicas in each of `width` spans of time, for a sparkline."""
    return tuple(column.total for column in _columns(samples, until=end, end=end, width=width) if column is not None)
