"""The summary that ``holdfast up`` prints: on a terminal it changes in place, elsewhere lines are added."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import click
import msgspec

from holdfast.cli import logs, painting
from holdfast.client.objects import Object, decoder
from holdfast.client.pods import FINISHED, Condition
from holdfast.client.resources import NODES, PODS
from holdfast.operators.shown import ShownKind
from holdfast.runtime.controllers import Stores
from holdfast.views.folding import wrap
from holdfast.views.overview import Health
from holdfast.views.spans import Span, Tone, cut
from holdfast.views.summaries import Board, Tally

_PACE: Final = {True: 0.5, False: 5.0}
"""The least time between two summaries, on a terminal and elsewhere, in seconds."""


async def watch_summary(stores: Stores, kinds: Iterable[ShownKind]) -> None:
    """Print the summary whenever it has changed, until cancelled."""
    board, changed = Board(), asyncio.Event()
    stops = followed(stores, board, kinds, changed.set)
    live = sys.stdout.isatty()
    shown: tuple[str, ...] = ()

    def erase() -> None:
        if live and shown:
            # Up to the first line of what is there, and clear all below.
            click.echo(f"\x1b[{len(shown)}A\x1b[J", nl=False)

    def draw() -> None:
        if live:
            _show(shown)

    try:
        with logs.above(erase, draw):
            while True:
                await changed.wait()
                changed.clear()
                lines = board.summary().lines()
                if live:
                    size = shutil.get_terminal_size()
                    lines = on_screen(lines, width=size.columns, height=size.lines)
                if lines != shown:
                    erase()
                    shown = lines
                    _show(shown)
                await asyncio.sleep(_PACE[live])
    finally:
        for stop in stops:
            stop()


def followed(
    stores: Stores, board: Board, kinds: Iterable[ShownKind], changed: Callable[[], None]
) -> list[Callable[[], None]]:
    """Keep a board up to date with the stores; returns the functions that end it."""

    def count(tally: Tally, old: Object | None, new: Object | None) -> None:
        if old is not None:
            tally.put(old.key, None)
        if new is not None:
            tally.put(new.key, _is_well(new))
        changed()

    def show(kind: ShownKind, old: Object | None, new: Object | None) -> None:
        name = _name(new or old)
        row = None if new is None else kind.row(new)
        # What another object made is part of that one, and counts only where it needs a look.
        if row is None or (row.owner and row.health is not Health.TROUBLE):
            board.drop(name)
        else:
            at_rest = row.health is Health.GOOD
            board.put(name, None if at_rest else (row.phase, row.because), trouble=row.health is Health.TROUBLE)
        changed()

    return [
        stores.subscribe(NODES, partial(count, board.nodes)),
        stores.subscribe(PODS, partial(count, board.pods)),
        *(stores.subscribe(kind.resource, partial(show, kind)) for kind in kinds),
    ]


def _name(obj: Object | None) -> str:
    assert obj is not None, "a change is of something"
    return f"{obj.resource.kind.lower()}/{obj.key.namespace}/{obj.key.name}"


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class _Reported(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def _is_well(obj: Object) -> bool | None:
    """Whether a node or a pod is ready; None for a pod that has finished."""
    # Read past the object, which remembers how others read it.
    status = decoder(_Reported).decode(obj.raw).status
    if status.phase in FINISHED:
        return None
    return any(each.type == "Ready" and each.status == "True" for each in status.conditions)


def on_screen(lines: Iterable[str], *, width: int, height: int) -> tuple[str, ...]:
    """The lines of a summary on a terminal: folded, or cut where there is no room for that."""
    folded = tuple(part for line in lines for part in wrap(line, max(width - 1, 20), "    ") or [""])
    return folded if len(folded) < height else tuple(cut(line, width - 1) for line in lines)[: max(height - 1, 1)]


def _show(lines: tuple[str, ...]) -> None:
    colours, tone = painting.has_colours(), Tone.PLAIN
    for line in lines:
        if not line.startswith("    "):  # which continues the line above
            tone = Tone.BAD if line.startswith("!") else Tone.CARE if line.startswith(" ") else Tone.PLAIN
        click.echo(painting.text([(Span(line, tone),)], colours=colours), color=True)
    sys.stdout.flush()
