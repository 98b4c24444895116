"""The tree of a rollout on a screen: as many of its parts and pods as there is room for, the urgent ones first.

Pure layout: branches and the size of the screen in, lines of spans out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.kernel.fleet import State
from holdfast.views.fleets import WORDS, Row
from holdfast.views.spans import NARROW, REVISIONS, Line, Span, Tone, cropped, cut, fitting_images, length
from holdfast.views.trees import Branch, Leaf, Tree, brief

BESIDE: Final = 60
"""Columns beside the cells of a revision: its name, its image, its numbers."""

SHOWN: Final = 12
"""The most parts or pods of a branch that are listed where the screen has no height."""

STATES: Final = {
    State.AVAILABLE: Tone.GOOD,
    State.SETTLING: Tone.GOOD,
    State.UNREADY: Tone.CARE,
    State.TERMINATING: Tone.FAINT,
    State.DEAD: Tone.BAD,
}


@dataclass(frozen=True, slots=True)
class _Item:
    """A line of the tree: a branch, which is open or not, a pod, or words; and what it hangs on."""

    depth: int
    shown: Branch | Leaf | Span
    parent: Branch | None = None
    open: bool = False


def branches(tree: Tree, width: int, room: int | None) -> Iterator[Line]:
    items = tuple(_listed(tree.branches, room))
    columns = _columns(items, width)
    most = max((len(branch.leaves) for branch in tree.branches), default=0)
    scale = -(-most // max(width - BESIDE, 10)) or 1
    for item in items:
        match item.shown:
            case Branch() as branch:
                yield _header(item, branch, width, scale)
            case Leaf() as leaf:
                yield _pod(item, leaf, columns, width)
            case Span(text, tone):
                yield (Span(cut(f"{'  ' * item.depth}  {text}", width), tone),)


def height_of(node: Branch | Leaf) -> int:
    """How many lines it takes in full."""
    return 1 + (bool(node.why) + sum(map(height_of, node.children)) if isinstance(node, Branch) else 0)


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
        gift = min(height_of(nodes[place]) - 1, spare)
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
    used = sum(map(length, left)) + len(words) + 2
    cells = cut("".join(row.text for row in rows), max(width - used, 0))
    image = fitting_images(branch.images, width, max(width - used - len(cells), 0))
    left = (*left, Span(image))
    used = sum(map(length, left))
    return (
        *left,
        Span(" " * max(width - used - len(cells) - len(words), 2)),
        *_coloured(branch, rows, len(cells)),
        Span(words, Tone.FAINT),
    )


def _coloured(branch: Branch, rows: Iterable[Row], width: int) -> Line:
    """The cells of a branch in the tones of their revisions."""
    spans = (Span(row.text, Tone.BAD if "rejected" in branch.marks else REVISIONS[row.index]) for row in rows)
    return cropped(tuple(spans), width)


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
    tone, indent = STATES[leaf.state], "  " * item.depth
    cells = (
        Span(f"{indent}{leaf.glyph} ", REVISIONS[leaf.index] if leaf.state is State.AVAILABLE else tone),
        Span(
            _name(item, leaf, width).ljust(columns.name + 2 - len(indent)),
            Tone.FAINT if leaf.state is State.TERMINATING else Tone.PLAIN,
        ),
        Span(leaf.ready.ljust(5), tone),
        Span(cut(leaf.node, columns.node).ljust(columns.node + 2) if columns.node else "", Tone.FAINT),
        Span(brief(leaf.age).rjust(columns.age) + "  ", Tone.FAINT),
        Span(_restarts(leaf).ljust(columns.restarts + 2) if columns.restarts else "", Tone.CARE),
    )
    used = sum(map(length, cells))
    return (*cells, Span(cut(leaf.why, max(width - used, 0)), tone))


def _restarts(leaf: Leaf) -> str:
    return f"↻{leaf.restarts}" if leaf.restarts else ""


def _more(pods: Sequence[Leaf], number: int) -> str:
    """``and 12 more: 10 available, 2 terminating``."""
    states = [leaf.state for leaf in pods]
    counts = [f"{states.count(state):,} {word}" for state, word in WORDS.items() if state in states]
    return f"and {number:,} more: {', '.join(counts) or 'none'}"
