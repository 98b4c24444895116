"""A rollout on a screen: a headline, the floors as bars, the reason, and the tree of its parts and pods.

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
from holdfast.views.fleets import WORDS, Mark, Piece, Row, gauge
from holdfast.views.rollouts import Floor, Verdict
from holdfast.views.trees import NEW, Branch, Leaf, Tree, brief


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
"""Parts or pods of a branch that are listed where nobody says how high the screen is."""

BARS: Final = 4
"""Floors that have a bar; those that do not hold before others."""

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
    told = _images(tree.images, width)
    right = (Span(standing.phase, tone), Span(_elapsed(tree), Tone.FAINT))
    used = sum(map(_length, (*left, *right)))
    middle = _cut(f"  {told}", max(width - used - 2, 0))
    return (*left, Span(middle), Span(" " * max(width - used - len(middle), 1)), *right)


def _images(images: Iterable[str], width: int) -> str:
    """Images, from one to the next; where there is little room, only what tells them apart."""
    told, before = [], ""
    for image in dict.fromkeys(images):
        place, slash, name = image.rpartition("/")
        if width >= NARROW:
            told.append(image)
        elif before and image.rpartition(":")[0] == before.rpartition(":")[0] != "":
            told.append(f":{image.rpartition(':')[2]}")
        else:
            told.append(f"…/{name}" if slash and len(place) > 1 else image)
        before = image
    return " → ".join(told)


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
    facts += standing.facts
    if standing.expected is not None and standing.expected > tree.now:
        facts.append(f"about {brief(standing.expected - tree.now)} to go")
    if facts:
        yield (Span(f"  {'   '.join(facts)}", Tone.FAINT),)


def _gauges(tree: Tree, width: int) -> Iterator[Line]:
    """A bar for each floor, as far as there is room for them, and one for the whole."""
    floors = sorted(tree.standing.floors, key=lambda each: each.held)
    shown = [each for each in tree.standing.floors if each in floors[:BARS]]
    label = max((len(_label(each)) for each in shown), default=0)
    numbers = [_numbers(each) for each in shown]
    beside = max((sum(map(_length, each)) for each in numbers), default=_BESIDE // 2)
    bar = max(min(width - label - 2 - beside, 60), 16)
    for each, told in zip(shown, numbers, strict=True):
        cells = gauge(each.ready, floor=each.floor, ceiling=max(each.most, each.desired, each.ready, 1), width=bar)
        yield (Span(_label(each).ljust(label + 2), Tone.FAINT), *_spans(cells), *told)
    if len(floors) > len(shown):
        rest = floors[BARS:]
        state = "all held" if all(each.held for each in rest) else f"{sum(not each.held for each in rest):,} broken"
        yield (Span(f"{' ' * (label + 2)}and {len(rest):,} more floors, {state}", Tone.FAINT),)
    full = round(min(tree.updated, tree.size) * bar / max(tree.size, 1))
    yield (
        Span("updated".ljust(label + 2), Tone.FAINT),
        Span("█" * full, REVISIONS[NEW]),
        Span("░" * (bar - full), Tone.FAINT),
        Span(f"  {tree.updated:,}", Tone.STRONG),
        Span(f" of {tree.size:,} available"),
    )


def _label(floor: Floor) -> str:
    return _cut(floor.name, _BESIDE // 2) if floor.name else "ready  "


def _numbers(floor: Floor) -> Line:
    return (
        Span(f"  {floor.ready:,}", Tone.GOOD if floor.held else Tone.BAD),
        Span(f" of {floor.desired:,}"),
        Span(f"   floor {floor.floor:,} ┃", Tone.STRONG),
        Span("" if floor.lowest is None else f"   lowest {floor.lowest:,}", Tone.FAINT),
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
    if standing.verb and called:
        yield (Span("  → ", Tone.FAINT), Span(f"holdfast rollout {standing.verb} {called}", Tone.STRONG))
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


@dataclass(frozen=True, slots=True)
class _Item:
    """A line of the tree: a branch, which is open or not, a pod, or words; and what it hangs on."""

    depth: int
    shown: Branch | Leaf | Span
    parent: Branch | None = None
    open: bool = False


def _branches(tree: Tree, width: int, room: int | None) -> Iterator[Line]:
    items = tuple(_listed(tree.branches, room))
    columns = _columns(items, width)
    most = max((len(branch.leaves) for branch in tree.branches), default=0)
    scale = -(-most // max(width - _BESIDE, 10)) or 1
    for item in items:
        match item.shown:
            case Branch() as branch:
                yield _header(item, branch, width, scale)
            case Leaf() as leaf:
                yield _pod(item, leaf, columns, width)
            case Span(text, tone):
                yield (Span(_cut(f"{'  ' * item.depth}  {text}", width), tone),)


def _height(node: Branch | Leaf) -> int:
    """How many lines it takes in full."""
    return 1 + (bool(node.why) + sum(map(_height, node.children)) if isinstance(node, Branch) else 0)


def _listed(
    nodes: Sequence[Branch | Leaf], room: int | None, *, depth: int = 0, parent: Branch | None = None
) -> Iterator[_Item]:
    """As much of the tree as there is room for; what is left out is counted."""
    if room is None:
        kept = nodes if parent is None else nodes[:SHOWN]
    else:
        kept = nodes if len(nodes) <= room else nodes[: max(room - 1, 0)]
    rest = nodes[len(kept) :]
    gifts = _gifts(kept, None if room is None else room - len(kept) - bool(rest))
    for node, gift in zip(kept, gifts, strict=True):
        if isinstance(node, Leaf):
            yield _Item(depth, node, parent)
            continue
        inside = tuple(_inside(node, gift, depth + 1))
        yield _Item(depth, node, parent, open=bool(inside))
        yield from inside
    if rest:
        pods = [leaf for node in rest for leaf in (node.leaves if isinstance(node, Branch) else (node,))]
        yield _Item(depth, Span(_more(pods, len(rest)), Tone.FAINT), parent)


def _inside(branch: Branch, room: int | None, depth: int) -> Iterator[_Item]:
    if branch.why and room != 0:
        yield _Item(depth, Span(branch.why, Tone.CARE), branch)
        room = None if room is None else room - 1
    # A single line in which several are counted says no more than the line of the branch.
    if room is None or room >= min(len(branch.children), 2):
        yield from _listed(branch.children, room, depth=depth, parent=branch)


def _gifts(nodes: Sequence[Branch | Leaf], spare: int | None) -> list[int | None]:
    """How many lines each gets beyond its own: as many as it takes, the urgent ones first."""
    if spare is None:
        return [None] * len(nodes)
    gifts: list[int | None] = [0] * len(nodes)
    for place in sorted(range(len(nodes)), key=lambda place: not _is_urgent(nodes[place])):
        gift = min(_height(nodes[place]) - 1, spare)
        gifts[place] = gift
        spare -= gift
    return gifts


def _is_urgent(node: Branch | Leaf) -> bool:
    return isinstance(node, Branch) and node.urgent


def _header(item: _Item, branch: Branch, width: int, scale: int) -> Line:
    left: Line = (
        Span(f"{'  ' * item.depth}{'▾' if item.open else '▸'} ", Tone.FAINT),
        Span(f"{branch.number}  " if branch.number else "", Tone.FAINT),
        Span(branch.name, REVISIONS[branch.index]),
        Span(f"  {', '.join(branch.marks)}" if branch.marks else "", Tone.STRONG),
        Span(f"  {branch.note}" if branch.note else "", Tone.FAINT),
    )
    words, rows = f"  {branch.words}", branch.rows(scale=scale)
    used = sum(map(_length, left)) + len(words) + 2
    cells = _cut("".join(row.text for row in rows), max(width - used, 0))
    image = _cut(f"  {_images(branch.images, width)}", max(width - used - len(cells), 0))
    left = (*left, Span(image))
    used = sum(map(_length, left))
    return (
        *left,
        Span(" " * max(width - used - len(cells) - len(words), 2)),
        *_coloured(branch, rows, len(cells)),
        Span(words, Tone.FAINT),
    )


def _coloured(branch: Branch, rows: Iterable[Row], width: int) -> Line:
    """The cells of a branch in the tones of their revisions."""
    spans = (Span(row.text, Tone.BAD if "rejected" in branch.marks else REVISIONS[row.index]) for row in rows)
    return _cropped(tuple(spans), width)


@dataclass(frozen=True, slots=True)
class _Columns:
    """How wide the cells of a pod are; a column of no width is left out."""

    name: int
    node: int
    age: int
    restarts: int


def _columns(items: Iterable[_Item], width: int) -> _Columns:
    pods = [(item, item.shown) for item in items if isinstance(item.shown, Leaf)]
    return _Columns(
        name=max((2 * item.depth + len(_name(item, leaf, width)) for item, leaf in pods), default=0),
        node=min(max((len(leaf.node) for _, leaf in pods), default=0), 16 if width < NARROW else 40),
        age=max((len(brief(leaf.age)) for _, leaf in pods), default=0),
        restarts=max((len(_restarts(leaf)) for _, leaf in pods), default=0),
    )


def _name(item: _Item, leaf: Leaf, width: int) -> str:
    """The name of a pod; where there is little room, without what it shares with others of its branch."""
    prefix = item.parent.prefix if item.parent is not None and width < NARROW else ""
    return f"…{leaf.name.removeprefix(prefix)}" if prefix and leaf.name.startswith(prefix) else leaf.name


def _pod(item: _Item, leaf: Leaf, columns: _Columns, width: int) -> Line:
    tone, indent = _STATES[leaf.state], "  " * item.depth
    cells = (
        Span(f"{indent}{leaf.glyph} ", REVISIONS[leaf.index] if leaf.state is State.AVAILABLE else tone),
        Span(
            _name(item, leaf, width).ljust(columns.name + 2 - len(indent)),
            Tone.FAINT if leaf.state is State.TERMINATING else Tone.PLAIN,
        ),
        Span(leaf.ready.ljust(5), tone),
        Span(_cut(leaf.node, columns.node).ljust(columns.node + 2) if columns.node else "", Tone.FAINT),
        Span(brief(leaf.age).rjust(columns.age) + "  ", Tone.FAINT),
        Span(_restarts(leaf).ljust(columns.restarts + 2) if columns.restarts else "", Tone.CARE),
    )
    used = sum(map(_length, cells))
    return (*cells, Span(_cut(leaf.why, max(width - used, 0)), tone))


def _restarts(leaf: Leaf) -> str:
    return f"↻{leaf.restarts}" if leaf.restarts else ""


def _more(pods: Sequence[Leaf], number: int) -> str:
    """``and 12 more: 10 available, 2 terminating``."""
    states = [leaf.state for leaf in pods]
    told = [f"{states.count(state):,} {word}" for state, word in WORDS.items() if state in states]
    return f"and {number:,} more: {', '.join(told) or 'none'}"


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
