"""A rollout on a screen: a headline, the floor as a bar, the reason, and the tree of revisions and replicas.

Pure layout: a `Tree` and the size of the screen in, lines of spans out.  A span says
what its text means (`Tone`), not how it is coloured, so the same lines are plain text in
a pipe, coloured on a terminal, and compared as text in tests.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from holdfast.kernel.fleet import State
from holdfast.kernel.reasons import Code
from holdfast.views.fleets import WORDS, Mark, Piece, gauge
from holdfast.views.rollouts import Standing, Verdict
from holdfast.views.trees import Branch, Leaf, Tree, brief


class Tone(Enum):
    """What a piece of text is for the reader."""

    PLAIN = "plain"
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    CARE = "care"
    BAD = "bad"
    OLD = "old"
    NEW = "new"
    BETWEEN = "between"


REVISIONS: Final = (Tone.OLD, Tone.NEW, Tone.BETWEEN)
"""The tones of the revisions, by the index of their branches."""


@dataclass(frozen=True, slots=True)
class Span:
    """Text of one tone."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]

NARROW: Final = 100
"""Columns below which names are shortened and bars are short."""

_SOON: Final = timedelta(minutes=1)
"""How near a deadline is when it is worth a colour."""

_BESIDE: Final = 60
"""Columns beside the cells of a revision: its name, its image, its numbers."""

SHOWN: Final = 12
"""Replicas of a revision that are listed where nobody says how high the screen is."""

_SIGNS: Final = {
    Verdict.UNSEEN: ("?", Tone.CARE),
    Verdict.UNDER_WAY: ("…", Tone.CARE),
    Verdict.WAITING: ("‖", Tone.CARE),
    Verdict.BLOCKED: ("✗", Tone.BAD),
    Verdict.RETURNING: ("↩", Tone.BAD),
    Verdict.COMPLETED: ("✓", Tone.GOOD),
    Verdict.FAILED: ("✗", Tone.BAD),
    Verdict.REJECTED: ("↩", Tone.BAD),
}

_STATES: Final = {
    State.AVAILABLE: Tone.GOOD,
    State.SETTLING: Tone.GOOD,
    State.UNREADY: Tone.CARE,
    State.TERMINATING: Tone.FAINT,
    State.DEAD: Tone.BAD,
}

_MARKS: Final = {
    Mark.FULL: Tone.GOOD,
    Mark.SPARE: Tone.GOOD,
    Mark.EMPTY: Tone.FAINT,
    Mark.FLOOR: Tone.STRONG,
    Mark.BREACH: Tone.BAD,
}

_VERBS: Final = {
    Code.PAUSED.value: "resume",
    Code.APPROVAL_NEEDED.value: "promote",
    Code.STEP_PAUSE.value: "promote",
    Code.PROGRESS_DEADLINE_EXCEEDED.value: "undo",
}
"""What somebody can do about a reason."""


def screen(tree: Tree, *, width: int, height: int | None = None, called: str = "") -> tuple[Line, ...]:
    """The lines of a screen; `called` is how commands name the object: ``workload/shop``."""
    inner = max(width - 2, 40)
    head = [_title(tree, inner), *_facts(tree), (), *_gauges(tree, inner), (), *_why(tree, inner, called=called), ()]
    room = None if height is None else max(height - len(head) - 1, len(tree.branches))
    lines = [(Span(" "), *line) for line in (*head, *_branches(tree, inner, room))]
    # The last line of a terminal stays free for its cursor.
    return tuple(_cropped(line, width) for line in lines[: None if height is None else max(height - 1, 1)])


def text(lines: Iterable[Line]) -> str:
    """The lines without any colour."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


# --- the head


def _title(tree: Tree, width: int) -> Line:
    standing = tree.standing
    sign, tone = _SIGNS[standing.verdict]
    left = (Span(f"{sign} ", tone), Span(standing.name, Tone.STRONG), Span(f"  {standing.strategy}", Tone.FAINT))
    told = " → ".join(dict.fromkeys(_image(each.image, width) for each in reversed(tree.branches) if each.image))
    right = (Span(standing.phase, tone), Span(_elapsed(tree), Tone.FAINT))
    used = sum(map(_length, (*left, *right)))
    middle = _cut(f"  {told}", max(width - used - 2, 0))
    return (*left, Span(middle), Span(" " * max(width - used - len(middle), 1)), *right)


def _image(image: str, width: int) -> str:
    """An image; where there is little room, without where it comes from."""
    place, slash, name = image.rpartition("/")
    return f"…/{name}" if width < NARROW and slash and len(place) > 1 else image


def _elapsed(tree: Tree) -> str:
    standing = tree.standing
    if standing.started is None:
        return ""
    if standing.verdict is Verdict.COMPLETED and standing.ended is not None:
        return f" in {brief(standing.ended - standing.started)}"
    return f"  {brief(tree.now - standing.started)}"


def _facts(tree: Tree) -> Iterator[Line]:
    standing = tree.standing
    facts: list[str] = []
    if standing.steps > 1:
        facts.append(f"step {standing.step} of {standing.steps}")
    if standing.rejected:
        facts.append(f"revision {standing.rejected} is rejected, {standing.target} returns")
    elif standing.target and standing.target != standing.current and standing.current:
        facts.append(f"{standing.current} → {standing.target}")
    elif standing.target:
        facts.append(f"revision {standing.target}")
    if standing.expected is not None and standing.expected > tree.now:
        facts.append(f"about {brief(standing.expected - tree.now)} to go")
    if facts:
        yield (Span(f"  {'   '.join(facts)}", Tone.FAINT),)


def _gauges(tree: Tree, width: int) -> Iterator[Line]:
    standing = tree.standing
    top = max(standing.most, standing.desired, standing.ready, 1)
    numbers = (
        Span(f"  {standing.ready:,}", Tone.GOOD if standing.ready >= standing.floor else Tone.BAD),
        Span(f" of {standing.desired:,}"),
        Span(f"   floor {standing.floor:,} ┃", Tone.STRONG),
        Span("" if standing.lowest is None else f"   lowest {standing.lowest:,}", Tone.FAINT),
    )
    label = Span("ready    ", Tone.FAINT)
    bar = max(min(width - _length(label) - sum(map(_length, numbers)), 60), 16)
    yield (label, *_spans(gauge(standing.ready, floor=standing.floor, ceiling=top, width=bar)), *numbers)
    branch = next((each for each in tree.branches if each.revision == standing.target), None)
    available = 0 if branch is None else sum(leaf.state is State.AVAILABLE for leaf in branch.leaves)
    full = round(min(available, standing.desired) * bar / max(standing.desired, 1))
    yield (
        Span("updated  ", Tone.FAINT),
        Span("█" * full, Tone.GOOD if branch is None else _tone(branch)),
        Span("░" * (bar - full), Tone.FAINT),
        Span(f"  {available:,}", Tone.STRONG),
        Span(f" of {standing.desired:,} available"),
    )


def _spans(pieces: Iterable[Piece]) -> tuple[Span, ...]:
    return tuple(Span(piece.text, _MARKS[piece.mark]) for piece in pieces if piece.text)


def _why(tree: Tree, width: int, *, called: str) -> Iterator[Line]:
    standing = tree.standing
    sign, tone = _SIGNS[standing.verdict]
    yield (Span(f"{sign} {standing.because.code}", tone), *_when(tree))
    yield from _paragraph(standing.because.message, width)
    if standing.remedy:
        yield from _paragraph(standing.remedy, width, tone=Tone.STRONG)
    verb = _VERBS.get(standing.because.code)
    if verb is not None and called:
        yield (Span("  → ", Tone.FAINT), Span(f"holdfast rollout {verb} {called}", Tone.STRONG))
    for warning in standing.warnings:
        yield from _paragraph(f"! {warning}", width, tone=Tone.CARE)


def _when(tree: Tree) -> tuple[Span, ...]:
    """When it goes on by itself, or is late if nothing gets further."""
    until, due = tree.standing.until, tree.standing.due
    if until is not None:
        left = until - tree.now
        told = f"until {until:%H:%M:%S}Z, in {brief(left)}" if left > timedelta() else "any moment now"
        return (Span(f"   {told}", Tone.FAINT),)
    if due is not None and tree.standing.verdict is Verdict.UNDER_WAY:
        left = due - tree.now
        tone = Tone.CARE if left < _SOON else Tone.FAINT
        return (Span(f"   late in {brief(left)} if nothing gets further", tone),)
    return ()


def _paragraph(words: str, width: int, *, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    for part in textwrap.wrap(words, width - 2):
        yield (Span(f"  {part}", tone),)


# --- the tree


def _branches(tree: Tree, width: int, room: int | None) -> Iterator[Line]:
    rooms = _rooms(tree.branches, room)
    leaves = [leaf for branch, least in zip(tree.branches, rooms, strict=True) for leaf in branch.leaves[:least]]
    columns = _columns(tree.standing, leaves, width)
    most = max((len(branch.leaves) for branch in tree.branches), default=0)
    scale = -(-most // max(width - _BESIDE, 10)) or 1
    for branch, least in zip(tree.branches, rooms, strict=True):
        yield _header(branch, width, scale)
        for leaf in branch.leaves[:least]:
            yield _replica(leaf, branch, columns, width)
        if len(branch.leaves) > least:
            yield (Span(f"    {_more(branch.leaves[least:], all=not least)}", Tone.FAINT),)


def _rooms(branches: Sequence[Branch], room: int | None) -> list[int]:
    """How many replicas of each branch are listed: those of the first branches before those of the last."""
    if room is None:
        return [min(len(branch.leaves), SHOWN) for branch in branches]
    left = room - len(branches)
    rooms = []
    for place, branch in enumerate(branches):
        # A line for each later branch that has replicas at all, in which the rest of it is counted.
        later = sum(bool(each.leaves) for each in branches[place + 1 :])
        mine = max(left - later, 0)
        listed = len(branch.leaves) if len(branch.leaves) <= mine else max(mine - 1, 0)
        rooms.append(listed)
        left -= listed + (len(branch.leaves) > listed)
    return rooms


def _header(branch: Branch, width: int, scale: int) -> Line:
    row = branch.row(scale=scale)
    number = "" if branch.number is None else f"{branch.number}  "
    left: Line = (
        Span("▾ " if branch.leaves else "▸ ", Tone.FAINT),
        Span(number, Tone.FAINT),
        Span(branch.revision, _tone(branch)),
        Span(f"  {', '.join(branch.marks)}" if branch.marks else "", Tone.STRONG),
    )
    words = f"  {branch.words}"
    image = _cut(f"  {_image(branch.image, width)}", max(width - sum(map(_length, left)) - len(words), 0))
    left = (*left, Span(image))
    used = sum(map(_length, left))
    cells = _cut(row.text, max(width - used - len(words) - 2, 0))
    tone = Tone.BAD if "rejected" in branch.marks else _tone(branch)
    return (
        *left,
        Span(" " * max(width - used - len(cells) - len(words), 2)),
        Span(cells, tone),
        Span(words, Tone.FAINT),
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """How wide the cells of a replica are; a column of no width is left out."""

    name: int
    node: int
    age: int
    restarts: int
    prefix: str


def _columns(standing: Standing, leaves: Sequence[Leaf], width: int) -> _Columns:
    names = [leaf.name for leaf in leaves]
    prefix = f"{standing.name}-" if width < NARROW and all(name.startswith(standing.name) for name in names) else ""
    return _Columns(
        name=max((len(name) - len(prefix) for name in names), default=0) + bool(prefix),
        node=min(max((len(leaf.node) for leaf in leaves), default=0), 16 if width < NARROW else 40),
        age=max((len(brief(leaf.age)) for leaf in leaves), default=0),
        restarts=max((len(_restarts(leaf)) for leaf in leaves), default=0),
        prefix=prefix,
    )


def _replica(leaf: Leaf, branch: Branch, columns: _Columns, width: int) -> Line:
    name = f"…{leaf.name.removeprefix(columns.prefix)}" if columns.prefix else leaf.name
    tone = _STATES[leaf.state]
    cells = (
        Span(f"  {branch.glyph(leaf.state)} ", _tone(branch) if leaf.state is State.AVAILABLE else tone),
        Span(name.ljust(columns.name + 2), Tone.FAINT if leaf.state is State.TERMINATING else Tone.PLAIN),
        Span(leaf.ready.ljust(5), tone),
        Span(_cut(leaf.node, columns.node).ljust(columns.node + 2) if columns.node else "", Tone.FAINT),
        Span(brief(leaf.age).rjust(columns.age) + "  ", Tone.FAINT),
        Span(_restarts(leaf).ljust(columns.restarts + 2) if columns.restarts else "", Tone.CARE),
    )
    used = sum(map(_length, cells))
    return (*cells, Span(_cut(leaf.why, max(width - used, 0)), tone))


def _restarts(leaf: Leaf) -> str:
    return f"↻{leaf.restarts}" if leaf.restarts else ""


def _more(leaves: Sequence[Leaf], *, all: bool) -> str:
    """``and 12 more: 10 available, 2 terminating``; where none was listed, only the numbers."""
    states = [leaf.state for leaf in leaves]
    told = [f"{states.count(state):,} {word}" for state, word in WORDS.items() if state in states]
    return ", ".join(told) if all else f"and {len(leaves):,} more: {', '.join(told)}"


def _tone(branch: Branch) -> Tone:
    return REVISIONS[branch.index]


def _cropped(line: Line, width: int) -> Line:
    """What a terminal of so many columns has room for."""
    shown: list[Span] = []
    for span in line:
        shown.append(Span(_cut(span.text, width - sum(map(_length, shown))), span.tone))
    return tuple(span for span in shown if span.text)


def _length(span: Span) -> int:
    return len(span.text)


def _cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: max(width - 1, 0)] + "…" * (width > 0)
