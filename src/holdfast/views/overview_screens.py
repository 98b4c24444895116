"""The overview on a screen: a line for each object, with a mark, its phase, its replicas and what it waits for.

Pure layout: rows and the size of the screen in, lines of spans out.  Health has a shape as well as a colour, so that
nothing is shown by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.views.overview import Counts, FloorBar, Health, Row
from holdfast.views.spans import Line, Span, Tone, cut

MARKS: Final = {
    Health.TROUBLE: ("✗", Tone.BAD),
    Health.PROGRESSING: ("◐", Tone.CARE),
    Health.GOOD: ("✓", Tone.GOOD),
}

_WIDE: Final = 110
"""Columns from which on floors are bars, and ages are shown."""

_KIND, _PHASE, _READY, _BAR, _SINCE = 14, 13, 8, 10, 7

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the columns on a screen."""

    kind: int
    name: int
    phase: int
    ready: int
    bar: int
    since: int
    because: int

    @classmethod
    def of(cls, width: int, longest: int) -> Columns:
        """The columns of a screen, where the longest name has so many characters."""
        wide = width >= _WIDE
        bar, since = (_BAR, _SINCE) if wide else (0, 0)
        fixed = 2 + _KIND + _PHASE + _READY + bar + since
        name = max(12, min(longest + 2, (width - fixed) // 2))
        return cls(_KIND, name, _PHASE, _READY, bar, since, max(width - fixed - name, 0))


def titles(columns: Columns) -> Line:
    """The titles of the columns."""
    cells = (("  ", 2), ("KIND", columns.kind), ("NAME", columns.name), ("PHASE", columns.phase))
    more = (("READY", columns.ready), ("FLOOR", columns.bar), ("SINCE", columns.since), ("WAITS FOR", columns.because))
    return (Span("".join(cut(text, width).ljust(width) for text, width in (*cells, *more)), Tone.FAINT),)


def line(row: Row, columns: Columns, *, namespaces: bool, age: Callable[[str | None], str]) -> Line:
    """One object."""
    mark, tone = MARKS[row.health]
    plain = Tone.PLAIN if row.health is Health.GOOD else tone
    paused = " ‖" if row.paused else ""
    return (
        Span(f"{mark} ", tone),
        Span(_cell(short(row.kind, columns.kind - 1), columns.kind), Tone.FAINT),
        Span(_cell(title(row, namespaces=namespaces), columns.name), Tone.STRONG),
        Span(_cell(row.phase + paused, columns.phase), plain),
        Span(_cell(ready(row), columns.ready)),
        *_bar(row.floor, columns.bar),
        Span(_cell(age(row.since) if row.since else "", columns.since), Tone.FAINT),
        Span(cut("" if row.health is Health.GOOD else row.because, columns.because)),
    )


def short(kind: str, width: int) -> str:
    """A kind in a narrow column: of a long name, the last words, which tell it from others."""
    if len(kind) <= width:
        return kind
    words = _WORDS.findall(kind)
    tails = ("…" + "".join(words[at:]) for at in range(1, len(words)))
    return next((tail for tail in tails if len(tail) <= width), cut(kind, width))


def title(row: Row, *, namespaces: bool) -> str:
    return f"{row.namespace}/{row.name}" if namespaces and row.namespace else row.name


def ready(row: Row) -> str:
    if row.desired is None:
        return "" if row.ready is None else str(row.ready)
    return f"{row.ready or 0}/{row.desired}"


def summary(counts: Counts) -> Line:
    """How many objects are in which state."""
    cells = (
        (Health.TROUBLE, counts.trouble, "in trouble"),
        (Health.PROGRESSING, counts.progressing, "in progress"),
        (Health.GOOD, counts.good, "good"),
    )
    spans = []
    for health, number, words in cells:
        mark, tone = MARKS[health]
        spans.append(Span(f"{mark} {number:,} {words}   ", tone if number else Tone.FAINT))
    return tuple(spans)


def matches(row: Row, words: str) -> bool:
    """Whether an object has all these words in its kind, namespace, name, phase, health or reason."""
    text = f"{row.kind} {row.namespace}/{row.name} {row.phase} {row.health} {row.because} {row.owner}".lower()
    return all(each in text for each in words.lower().split())


def longest_name(rows: Iterable[Row], *, namespaces: bool) -> int:
    return max((len(title(row, namespaces=namespaces)) for row in rows), default=0)


def _cell(text: str, width: int) -> str:
    """Text in a column, with a blank behind it."""
    return cut(text, width - 1).ljust(width) if width else ""


def _bar(floor: FloorBar | None, width: int) -> tuple[Span, ...]:
    """Ready replicas of those that are desired, with the floor as a line."""
    if not width:
        return ()
    cells = width - 2
    if floor is None:
        return (Span(" " * width),)
    most = max(floor.desired, floor.ready, floor.floor, 1)
    full, at = round(floor.ready * cells / most), round(floor.floor * cells / most)
    tone = Tone.BAD if floor.ready < floor.floor else Tone.GOOD
    spans = []
    for cell in range(cells):
        if cell == at and floor.floor:
            spans.append(Span("╎", Tone.STRONG))
        else:
            spans.append(Span("█", tone) if cell < full else Span("░", Tone.FAINT))
    return (*spans, Span("  "))
