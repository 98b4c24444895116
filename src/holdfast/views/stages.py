"""Several rollouts on one screen: each with a headline, its floors as bars, and as much of its tree as there is room.

Pure layout: trees and the size of the screen in, lines of spans out.  `rollout_screens`
shows one rollout alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.views.fleets import Piece, gauge
from holdfast.views.folding import wrap
from holdfast.views.rollout_screens import MARKS, SIGNS
from holdfast.views.rollouts import Floor, RolloutState
from holdfast.views.spans import Line, Span, Tone, cropped, cut, length
from holdfast.views.tree_screens import branches, height_of
from holdfast.views.trees import Tree

LEGEND: Final[Line] = (
    Span("● new", Tone.NEW),
    Span("  ■ old", Tone.OLD),
    Span("  ○ □ not ready", Tone.CARE),
    Span("  · stopping", Tone.FAINT),
    Span("  ┃ the floor: never fewer ready", Tone.STRONG),
)

_REASON: Final = 3
"""The most lines of a reason."""

_BAR: Final = 24
"""The most cells of a bar."""


@dataclass(frozen=True, slots=True)
class Act:
    """What happens now: the time since the start, the act's number and how many there are, and its words."""

    clock: str
    number: int
    of: int
    words: str


def stage(act: Act, trees: Sequence[tuple[str, Tree]], *, width: int, height: int) -> tuple[Line, ...]:
    """The lines of a screen; each tree comes with the name of its kind."""
    head = (Span(f" {act.clock}  {act.number}/{act.of}  ", Tone.FAINT), Span(act.words, Tone.STRONG))
    # Beside the blocks there are the act and the legend, and the last line stays free for the cursor.
    room = max(height - 3, 1)
    lines = [head, *blocks(trees, width=width, height=room)]
    return tuple(cropped(line, width) for line in (*lines[: height - 2], (Span(" "), *LEGEND)))


def blocks(trees: Sequence[tuple[str, Tree]], *, width: int, height: int = 0) -> tuple[Line, ...]:
    """Each rollout in as many lines as there are for it, and at least in those that it needs."""
    made = [_Block(kind, tree, max(width - 3, 40)) for kind, tree in trees]
    apart = height >= sum(block.least for block in made) + len(made)
    lines: list[Line] = []
    for block, share in zip(made, _shares(made, height - len(made) * apart), strict=True):
        lines += [()] * apart
        lines += [(Span(" "), *line) for line in block.lines(share)]
    return tuple(cropped(line, width) for line in lines)


def _shares(blocks: Sequence[_Block], room: int) -> list[int]:
    """How many lines each gets: its least; the rest goes, line by line, to those in which something happens."""
    shares = [block.least for block in blocks]
    for resting in (False, True):
        growing = [place for place, block in enumerate(blocks) if block.at_rest is resting]
        while growing := [place for place in growing if shares[place] < blocks[place].most]:
            for place in growing:
                if sum(shares) >= room:
                    return shares
                shares[place] += 1
    return shares


@dataclass(frozen=True, slots=True)
class _Block:
    """One rollout, in as many lines as it gets."""

    kind: str
    tree: Tree
    width: int

    @property
    def at_rest(self) -> bool:
        return self.tree.standing.state is RolloutState.COMPLETED

    @property
    def least(self) -> int:
        return 1 + bool(self.tree.standing.floors) + len(self.tree.branches)

    @property
    def most(self) -> int:
        return 1 + len(self._reason) + len(self.tree.standing.floors) + sum(map(height_of, self.tree.branches))

    def lines(self, share: int) -> Iterator[Line]:
        """The headline and the branches; then, as far as there are lines, the reason, all floors and the pods."""
        floors, spare = self.tree.standing.floors, share - self.least
        why = tuple(self._why(spare))
        tightest = sorted(floors, key=lambda each: each.ready - each.floor)[:1]
        shown = floors if spare - len(why) + 1 >= len(floors) else tightest
        yield self._title()
        yield from why
        yield from self._gauges(shown, len(floors))
        yield from _indented(branches(self.tree, self.width - 2, share - 1 - len(why) - len(shown)))

    def _title(self) -> Line:
        standing = self.tree.standing
        sign, tone = SIGNS[standing.state]
        left = (Span(f"{sign} ", tone), Span(standing.name, Tone.STRONG), Span(f"  {self.kind}", Tone.FAINT))
        right = (Span(standing.phase, tone),)
        gap = self.width - sum(map(length, (*left, *right)))
        return (*left, Span(" " * max(gap, 1)), *right)

    @property
    def _reason(self) -> list[str]:
        return _joined(wrap(self.tree.standing.because.message, self.width - 2), _REASON)

    def _why(self, room: int) -> Iterator[Line]:
        """The reason, in as many lines as there are for it."""
        for line in _joined(self._reason, room):
            yield (Span(cut(f"  {line}", self.width), Tone.FAINT if self.at_rest else Tone.PLAIN),)

    def _gauges(self, shown: Sequence[Floor], of: int) -> Iterator[Line]:
        label = max((len(each.name) for each in shown), default=0)
        for each in shown:
            width = min(_BAR, 2 * max(each.desired, 1))
            cells = gauge(min(each.ready, each.desired), floor=each.floor, ceiling=each.desired, width=width)
            more = f"   and {of - 1} more floors" if of > len(shown) else ""
            yield (
                Span(f"  {each.name.ljust(label)}  " if label else "  ", Tone.FAINT),
                *_spans(cells),
                Span(f"  {each.ready:,}", Tone.GOOD if each.held else Tone.BAD),
                Span(f" of {each.desired:,} ready, floor {each.floor:,}"),
                Span(f", lowest {each.lowest:,}" if each.lowest is not None else "", Tone.FAINT),
                Span(more, Tone.FAINT),
            )


def _joined(lines: list[str], most: int) -> list[str]:
    """So many of the lines; the last one has the rest of the text, to be cut where it does not fit."""
    return lines if len(lines) <= most else [*lines[: most - 1], " ".join(lines[most - 1 :])] if most else []


def _spans(pieces: Sequence[Piece]) -> tuple[Span, ...]:
    return tuple(Span(piece.text, MARKS[piece.mark]) for piece in pieces if piece.text)


def _indented(lines: Iterator[Line]) -> Iterator[Line]:
    return ((Span("  "), *line) for line in lines)
