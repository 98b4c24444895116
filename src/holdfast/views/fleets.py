"""View models of a fleet: replicas as cells, the floor as a line, ready replicas over time as a chart.

They are text and numbers, which the simulator and the log show in the same way.  Each
revision has a shape and each state a filling, so colours are not needed to read them.
This module must not know where replicas come from, nor how anything is drawn.

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
"""The most cells; with more replicas, a cell represents several."""

SHAPES = (
    {State.AVAILABLE: "■", State.SETTLING: "▣", State.UNREADY: "□"},
    {State.AVAILABLE: "●", State.SETTLING: "◉", State.UNREADY: "○"},
    {State.AVAILABLE: "◆", State.SETTLING: "◈", State.UNREADY: "◇"},
)
"""The shapes of the first, second and third revision; the fourth has the shapes of the first."""

GOING = {State.TERMINATING: "·", State.DEAD: "✗"}
"""The shapes of replicas that do not count any more; they are the same for every revision."""

TEXTURES = ("▒", "█", "▓")
"""The character that fills the chart, for each revision."""

ORDER = (State.AVAILABLE, State.SETTLING, State.UNREADY, State.DEAD, State.TERMINATING)
"""The order of states from left to right; available replicas come first."""

WORDS = {
    State.AVAILABLE: "available",
    State.SETTLING: "settling",
    State.UNREADY: "not ready",
    State.DEAD: "dead",
    State.TERMINATING: "terminating",
}


class Cell(msgspec.Struct, frozen=True):
    """One replica, or several of the same revision and state."""

    state: State
    glyph: str


class Row(msgspec.Struct, frozen=True):
    """The replicas of one revision.

    index   the position of the revision, from the oldest; it determines shape and colour
    wanted  whether the revision is being rolled out
    scale   how many replicas a cell represents
    """

    revision: str
    index: int
    wanted: bool
    counts: tuple[tuple[State, int], ...] = ()
    scale: int = 1

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells; their number is rounded up, so that a single dead replica among thousands is shown."""
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
        """The counts of each state, such as ``■812 □3``, which fit in a line for a fleet of any size."""
        return " ".join(f"{_glyph(state, self.index)}{number}" for state, number in self.counts)


class Picture(msgspec.Struct, frozen=True):
    """The replicas of a fleet at one moment."""

    rows: tuple[Row, ...]
    scale: int = 1

    @property
    def ready(self) -> tuple[int, ...]:
        """The number of ready replicas of each revision, in the order of the rows."""
        return tuple(row.ready for row in self.rows)

    def line(self, *, most: int = 40) -> str:
        """All replicas on one line: cells, or counts when there are more than `most`."""
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
    """How many replicas a cell must represent, so that all of them fit into `MOST_CELLS`."""
    return -(-replicas // MOST_CELLS) or 1


def _glyph(state: State, index: int) -> str:
    return GOING.get(state) or SHAPES[index % len(SHAPES)][state]


def legend(revisions: Sequence[str]) -> str:
    """The legend of the shapes: ``■ v1  ● v2  ◉ settling  ○ not ready  ✗ dead  · terminating``."""
    shapes = [f"{_glyph(State.AVAILABLE, index)} {revision}" for index, revision in enumerate(revisions)]
    return "  ".join([*shapes, states(len(revisions) - 1)])


def states(index: int) -> str:
    """The legend of the fillings, in the shape of the revision `index`."""
    return "  ".join(f"{_glyph(state, index)} {WORDS[state]}" for state in ORDER[1:])


class Mark(StrEnum):
    """The meaning of a piece of a gauge or chart."""

    FULL = "full"
    EMPTY = "empty"
    FLOOR = "floor"
    BREACH = "breach"
    SPARE = "spare"

    def __str__(self) -> str:
        return self.value


class Piece(msgspec.Struct, frozen=True):
    """A run of equal characters; `index` is the position of its revision, if it belongs to one."""

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

    `until` is now and `end` the right edge.  Each column shows the moment of its span with
    the fewest ready replicas.  The rows are in order from top to bottom.
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
            # A sample that ended when the span of the column began does not belong to it.
            if worst is None or last.at <= begins or last.total - last.floor < worst.total - worst.floor:
                worst = last
            position += 1
        columns.append(worst)
    return columns


def _row(columns: Sequence[Sample | None], *, level: int, height: int, top: int) -> tuple[Piece, ...]:
    return _joined(_filling(column, (level - 0.5) * top / height) for column in columns)


def _filling(sample: Sample | None, at: float) -> Piece:
    """The piece of a column at the height `at`; newer revisions are below older ones."""
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
    """A row of bars of one character each, one for each value."""
    bars = " ▁▂▃▄▅▆▇█"
    return "".join(bars[min(len(bars) - 1, -(-value * (len(bars) - 1) // max(1, top)))] for value in values)


def worst_moments(samples: Sequence[Sample], *, end: timedelta, width: int) -> tuple[int, ...]:
    """The fewest ready replicas in each of `width` spans of time, for a sparkline."""
    return tuple(column.total for column in _columns(samples, until=end, end=end, width=width) if column is not None)
