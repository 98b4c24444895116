"""A rollout on a screen: a headline, the floors as bars, the reason, and the tree of its parts and pods.

Pure layout: a `Tree` and the size of the screen in, lines of spans out.  The tree itself
is laid out by `tree_screens`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from holdfast.views.fleets import Mark, Piece, gauge
from holdfast.views.folding import wrap
from holdfast.views.rollouts import Floor, RolloutState
from holdfast.views.spans import REVISIONS, Line, Span, Tone, cropped, cut, fitting_images, length
from holdfast.views.tree_screens import BESIDE, branches
from holdfast.views.trees import NEW, Tree, brief

_SOON: Final = timedelta(minutes=1)
"""How near a deadline is when it is worth a colour."""

BARS: Final = 4
"""Floors that have a bar; those that do not hold before others."""

_UPDATED: Final = "updated"

SIGNS: Final = {
    RolloutState.UNSEEN: ("?", Tone.CARE),
    RolloutState.UNDER_WAY: ("…", Tone.CARE),
    RolloutState.WAITING: ("‖", Tone.CARE),
    RolloutState.BLOCKED: ("✗", Tone.BAD),
    RolloutState.RETURNING: ("↩", Tone.BAD),
    RolloutState.COMPLETED: ("✓", Tone.GOOD),
    RolloutState.FAILED: ("✗", Tone.BAD),
    RolloutState.REJECTED: ("↩", Tone.BAD),
}

MARKS: Final = {
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
    lines = [(Span(" "), *line) for line in (*head, *branches(tree, inner, room))]
    # The last line of a terminal stays free for its cursor.
    return tuple(cropped(line, width) for line in lines[: None if height is None else max(height - 1, 1)])


# --- the head


def _title(tree: Tree, width: int) -> Line:
    standing = tree.standing
    sign, tone = SIGNS[standing.state]
    left = (Span(f"{sign} ", tone), Span(standing.name, Tone.STRONG), Span(f"  {standing.strategy}", Tone.FAINT))
    right = (Span(standing.phase, tone), Span(_elapsed(tree), Tone.FAINT))
    used = sum(map(length, (*left, *right)))
    middle = fitting_images(tree.images, width, max(width - used - 2, 0))
    return (*left, Span(middle), Span(" " * max(width - used - len(middle), 1)), *right)


def _elapsed(tree: Tree) -> str:
    standing = tree.standing
    if standing.started is None:
        return ""
    if standing.state is RolloutState.COMPLETED and standing.ended is not None:
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
    if standing.serving:
        facts.append(f"revision {standing.serving} serves")
    facts += standing.facts
    if standing.expected is not None and standing.expected > tree.now:
        facts.append(f"about {brief(standing.expected - tree.now)} to go")
    if facts:
        yield (Span(f"  {'   '.join(facts)}", Tone.FAINT),)


def _gauges(tree: Tree, width: int) -> Iterator[Line]:
    """A bar for each floor, as far as there is room for them, and one for the whole."""
    floors = sorted(tree.standing.floors, key=lambda each: each.held)
    shown = [each for each in tree.standing.floors if each in floors[:BARS]]
    label = max([len(_UPDATED), *(len(_label(each)) for each in shown)])
    numbers = [_numbers(each) for each in shown]
    beside = max((sum(map(length, each)) for each in numbers), default=BESIDE // 2)
    bar = max(min(width - label - 2 - beside, 60), 16)
    for each, counts in zip(shown, numbers, strict=True):
        cells = gauge(min(each.ready, each.desired), floor=each.floor, ceiling=each.desired, width=bar)
        yield (Span(_label(each).ljust(label + 2), Tone.FAINT), *_spans(cells), *counts)
    if len(floors) > len(shown):
        rest = floors[BARS:]
        state = "all held" if all(each.held for each in rest) else f"{sum(not each.held for each in rest):,} broken"
        yield (Span(f"{' ' * (label + 2)}and {len(rest):,} more floors, {state}", Tone.FAINT),)
    full = round(min(tree.updated, tree.size) * bar / max(tree.size, 1))
    yield (
        Span(_UPDATED.ljust(label + 2), Tone.FAINT),
        Span("█" * full, REVISIONS[NEW]),
        Span("░" * (bar - full), Tone.FAINT),
        Span(f"  {tree.updated:,}", Tone.STRONG),
        Span(f" of {tree.size:,} available"),
    )


def _label(floor: Floor) -> str:
    return cut(floor.name, BESIDE // 2) if floor.name else "ready"


def _numbers(floor: Floor) -> Line:
    return (
        Span(f"  {floor.ready:,}", Tone.GOOD if floor.held else Tone.BAD),
        Span(f" of {floor.desired:,}"),
        Span(f"   floor {floor.floor:,} ┃", Tone.STRONG),
        Span(f" lowered by {floor.lowered:,}" if floor.lowered else "", Tone.CARE),
        Span("" if floor.lowest is None else f"   lowest {floor.lowest:,}", _lowest_tone(floor)),
    )


def _lowest_tone(floor: Floor) -> Tone:
    return Tone.BAD if floor.lowest is not None and floor.lowest < floor.floor else Tone.FAINT


def _spans(pieces: Iterable[Piece]) -> tuple[Span, ...]:
    return tuple(Span(piece.text, MARKS[piece.mark]) for piece in pieces if piece.text)


def _why(tree: Tree, width: int, *, called: str) -> Iterator[Line]:
    standing = tree.standing
    sign, tone = SIGNS[standing.state]
    yield (Span(f"{sign} {standing.because.code}", tone), *_when(tree))
    yield from _paragraph(standing.because.message, width)
    if standing.remedy:
        yield from _paragraph(standing.remedy, width, tone=Tone.STRONG)
    if standing.verb and called:
        yield (Span("  → ", Tone.FAINT), Span(f"holdfast rollout {standing.verb} {called}", Tone.STRONG))
    for warning in standing.warnings:
        yield from _paragraph(f"! {warning}", width, tone=Tone.CARE)


def _when(tree: Tree) -> tuple[Span, ...]:
    """When it goes on by itself, or when its deadline is."""
    until, due = tree.standing.until, tree.standing.due
    if until is not None:
        left = until - tree.now
        when = f"until {until:%H:%M:%S}Z, in {brief(left)}" if left > timedelta() else "any moment now"
        return (Span(f"   {when}", Tone.FAINT),)
    if due is not None and tree.standing.state is RolloutState.UNDER_WAY:
        left = due - tree.now
        tone = Tone.CARE if left < _SOON else Tone.FAINT
        return (Span(f"   deadline in {brief(left)}" if left > timedelta() else "   past its deadline", tone),)
    return ()


def _paragraph(words: str, width: int, *, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    for part in wrap(words, width - 2):
        yield (Span(f"  {part}", tone),)
