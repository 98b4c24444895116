"""Cells below each other in columns, and what becomes of a table that is wider than the screen.

Pure.  Where all columns fit, each is as wide as its widest cell, as kubectl has it.  Otherwise texts are
wrapped inside their columns, and the columns for which there is still no room go below their row, with
their titles:

    NAME    READY   STATUS    AGE
    web-0   1/1     Running   5m
        IP: 10.64.0.2   NODE: node-1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap, zip_longest
from typing import Final, NamedTuple

NOTHING: Final = "<none>"

_GAP: Final = 3
_NARROWEST: Final = 3
_TEXT: Final = 32
"""The least width of a column whose text is wrapped; narrower ones are hard to read."""

_LEAST: Final = 20
"""The least width of a text below its row."""

_BELOW: Final = " " * 4
_EMPTY: Final = frozenset({"", "-", NOTHING})
_WORDS: Final = re.compile(r"\S+?(?:,(?=\S)|(?=\s|$))\s*")
"""A text breaks behind blanks, and behind the commas of a list."""


class Piece(NamedTuple):
    """Text of a line, and the column that it shows; None for titles and blanks."""

    text: str
    column: int | None = None


@dataclass
class Alignment:
    """Lays rows out in columns; the widths of earlier rows are kept, as a watch needs it.

    width    the columns of the screen; None where there is none, such as in a pipe
    widths   the widths of the columns that stand beside each other
    """

    width: int | None = None
    widths: list[int] = field(default_factory=list)

    def lines(self, rows: Sequence[Sequence[str]], titles: Sequence[str] = ()) -> list[str]:
        """The rows as text; the first one has the titles, where they are not given."""
        laid = self.rows(rows, titles or next(iter(rows), ()))
        return ["".join(piece.text for piece in line) for row in laid for line in row]

    def rows(self, rows: Sequence[Sequence[str]], titles: Sequence[str]) -> list[list[list[Piece]]]:
        """The lines of each row."""
        self._fit(rows, titles)
        return [list(self._lines(row, titles)) for row in rows]

    def _fit(self, rows: Sequence[Sequence[str]], titles: Sequence[str]) -> None:
        columns = [[row[index] for row in rows if index < len(row)] for index in range(max(map(len, rows), default=0))]
        natural = [max(_NARROWEST, *map(len, cells)) for cells in columns]
        grown = list(starmap(max, zip_longest(self.widths, natural, fillvalue=0)))
        if self.width is None or _total(grown) <= self.width:
            self.widths = grown
        elif not self.widths:
            self.widths = _narrowed(columns, titles, self.width)

    def _lines(self, row: Sequence[str], titles: Sequence[str]) -> Iterator[list[Piece]]:
        beside, below = row[: len(self.widths)], list(enumerate(row))[len(self.widths) :]
        if self.width is None:
            parts = [[cell] for cell in beside]
        else:
            parts = [list(wrapped(cell, width)) for cell, width in zip(beside, self.widths, strict=False)]
        for number in range(max(map(len, parts), default=1)):
            cells = [part[number] if number < len(part) else "" for part in parts]
            # The last cell is not filled up: nothing comes after it.
            filled = [cell.ljust(width + _GAP) for cell, width in zip(cells[:-1], self.widths, strict=False)]
            yield [Piece(cell, index) for index, cell in enumerate([*filled, *cells[-1:]])]
        if self.width is not None and row is not titles and below:
            shown = [(index, titles[index], cell) for index, cell in below if cell not in _EMPTY]
            yield from _stacked(shown, self.width)


def aligned(rows: Iterable[Sequence[str]], width: int | None = None) -> list[str]:
    """Rows as text; the first one has the titles."""
    return Alignment(width).lines(list(rows))


def wrapped(text: str, width: int) -> Iterator[str]:
    """A text in lines of a width, broken behind blanks and commas; what has none stays whole."""
    if len(text) <= width:
        yield text
        return
    line = ""
    for word in _WORDS.findall(text):
        if line and len(line + word.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += word
    yield line.rstrip()


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _narrowed(columns: Sequence[Sequence[str]], titles: Sequence[str], width: int) -> list[int]:
    """The widths of as many columns as the screen has room for beside each other, and of one at least."""
    natural = [max(_NARROWEST, *map(len, cells)) for cells in columns]
    least = [_least(cells, title) for cells, title in zip(columns, titles, strict=True)]
    count = len(columns)
    while count > 1 and _total(least[:count]) > width:
        count -= 1
    widths = natural[:count]
    while _total(widths) > width and widths != least[:count]:
        widest = max((index for index in range(count) if widths[index] > least[index]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _least(cells: Sequence[str], title: str) -> int:
    """How wide a column has to be: for its short cells, or for some words of its texts."""
    body = [cell for cell in cells if cell != title]
    parts = [part.rstrip() for cell in (title, *body) for part in _WORDS.findall(cell)]
    word = max(map(len, parts), default=0)
    return max(_NARROWEST, word, min(max(map(len, body), default=0), _TEXT))


def _stacked(cells: Sequence[tuple[int, str, str]], width: int) -> Iterator[list[Piece]]:
    """Cells that go below their row, with their titles, as many on a line as fit."""
    line: list[Piece] = []
    for index, title, cell in cells:
        label = f"{title}: "
        if line and sum(len(piece.text) for piece in line) + _GAP + len(label) + len(cell) > width:
            yield line
            line = []
        first = next(wrapped(cell, max(width - len(_BELOW) - len(label), _LEAST)))
        rest = cell[len(first) :].strip()
        line += [Piece((" " * _GAP if line else _BELOW) + label), Piece(first, index)]
        for part in wrapped(rest, max(width - len(_BELOW) - 2, _LEAST)) if rest else ():
            yield line
            line = [Piece(_BELOW + "  "), Piece(part, index)]
    if line:
        yield line
