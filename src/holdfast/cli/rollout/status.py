"""``holdfast rollout status``: a rollout until it ends, or as it is now.

On a terminal it is a tree that changes in place; in a pipe, a line for each change; for
programs, JSON.  `views` makes the text and `following` watches the objects; this module
decides when to print, and when the command ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli import connecting, painting
from holdfast.cli.connecting import Refused, Session
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.objects import printers
from holdfast.cli.objects.targets import Target
from holdfast.cli.painting import STYLES
from holdfast.cli.rollout.following import Following, Outage, following, look
from holdfast.operators.rollouts import Observed, RolloutKind
from holdfast.views import rollout_screens, rollouts
from holdfast.views.rollouts import RolloutState, Standing
from holdfast.views.spans import Line, Span, Tone, text
from holdfast.views.trees import Tree

if TYPE_CHECKING:
    from rich.text import Text

FRAME: Final = 1 / 8
"""The least time between two frames, in seconds."""

TICK: Final = 1.0
"""Seconds after which ages are shown again although nothing has changed."""

CODES: Final = {
    RolloutState.UNSEEN: ExitCode.OK,
    RolloutState.UNDER_WAY: ExitCode.OK,
    RolloutState.COMPLETED: ExitCode.OK,
    RolloutState.RETURNING: ExitCode.BLOCKED,
    RolloutState.REJECTED: ExitCode.BLOCKED,
    RolloutState.FAILED: ExitCode.BLOCKED,
    RolloutState.WAITING: ExitCode.STANDS_STILL,
    RolloutState.BLOCKED: ExitCode.STANDS_STILL,
}
"""The exit code for each state."""


async def status(
    session: Session, target: Target, kind: RolloutKind, *, watch: bool, timeout: float, output: str | None
) -> ExitCode | None:
    """Show a rollout; returns the exit code."""
    if not watch:
        return _once(await look(session, target, kind), target, kind, output)
    async with following(session, target, kind) as followed:
        try:
            async with asyncio.timeout(timeout or None):
                return await _WAYS[_way(output)](followed, target, kind)
        except TimeoutError:
            outage = followed.outage()
            lost = f"; {outage.words}" if outage is not None else ""
            last = rollouts.line(_standing(followed, target, kind))
            said = f"error: timed out waiting for the rollout of {_called(target)}{lost}"
            raise Refused(said, printable(last)) from None


def _way(output: str | None) -> str:
    if output is not None:
        return output
    return "tree" if sys.stdout.isatty() else "line"


def _called(target: Target) -> str:
    return f"{target.resource.kind.lower()}/{target.name}"


def _present(observed: Observed | None, target: Target) -> Observed:
    if observed is None:
        raise Refused(f"error: {_called(target)} was deleted")
    return observed


def _standing(followed: Following, target: Target, kind: RolloutKind) -> Standing:
    return kind.standing(_present(followed.observed(), target))


def _once(observed: Observed, target: Target, kind: RolloutKind, output: str | None) -> ExitCode:
    standing = kind.standing(observed)
    match _way(output):
        case "json":
            click.echo(printers.as_json(rollouts.to_json(standing)), nl=False)
        case "line":
            click.echo(printable(rollouts.ending(standing)))
        case _:
            _print(_lines(_grown(observed, kind), target, height=None))
    return CODES[standing.state]


# Until it ends.


async def _as_lines(followed: Following, target: Target, kind: RolloutKind) -> ExitCode:
    """A line for each change, each new warning and each outage; the last line says how the rollout ended."""
    printed, warned, outages = "", set[str](), _Outages()
    while True:
        standing = _standing(followed, target, kind)
        for notice in outages.notices(followed.outage()):
            click.echo(printable(f"{standing.name}: {notice}"))
        for warning in standing.warnings:
            if warning not in warned:
                click.echo(printable(f"{standing.name}: warning: {warning}"))
                warned.add(warning)
        line = rollouts.ending(standing) if standing.state.final else rollouts.line(standing)
        if line != printed:
            click.echo(printable(line))
            printed = line
        if standing.state.final:
            return CODES[standing.state]
        await followed.change(within=TICK)


async def _as_json(followed: Following, target: Target, kind: RolloutKind) -> ExitCode:
    """The state in which the rollout ended; outages are reported on standard error."""
    outages = _Outages()
    while not (standing := _standing(followed, target, kind)).state.final:
        for notice in outages.notices(followed.outage()):
            click.echo(printable(f"{standing.name}: {notice}"), err=True)
        await followed.change(within=TICK)
    click.echo(printers.as_json(rollouts.to_json(standing)), nl=False)
    return CODES[standing.state]


async def _as_tree(followed: Following, target: Target, kind: RolloutKind) -> ExitCode:
    """The tree, redrawn in place; the last one stays, with a line that says how the rollout ended."""
    tree = _grown(_present(followed.observed(), target), kind)
    async with _live() as paint:
        while not tree.standing.state.final:
            outage = followed.outage()
            notice = () if outage is None else _banner(outage)
            height = shutil.get_terminal_size().lines - len(notice)
            paint((*notice, *_lines(tree, target, height=height)))
            await asyncio.sleep(FRAME)
            await followed.change(within=TICK)
            # While the connection is lost, ages and estimates stay as they were when it was lost.
            outage = followed.outage()
            now = None if outage is None else outage.since
            tree = _grown(_present(followed.observed(), target), kind, now=now)
    _print(_lines(tree, target, height=None))
    if tree.standing.state in (RolloutState.COMPLETED, RolloutState.REJECTED):
        click.echo(painting.folded([rollouts.ending(tree.standing)]))
    return CODES[tree.standing.state]


class _Outages:
    """The outages that were reported so far."""

    def __init__(self) -> None:
        self._reported: Outage | None = None

    def notices(self, outage: Outage | None) -> Iterator[str]:
        """A line when an outage begins, and one when it has ended."""
        before, self._reported = self._reported, outage
        if outage is not None and before is None:
            yield f"{outage.words}, retrying: {outage.trouble}" if outage.trouble else f"{outage.words}, retrying"
        elif outage is None and before is not None:
            seconds = (datetime.now(UTC) - before.since).total_seconds()
            yield f"connected again after {seconds:.0f}s"


def _banner(outage: Outage) -> tuple[Line, ...]:
    said = f" ! {outage.words}, retrying; what follows is as it was then"
    trouble = f"   {outage.trouble}"
    return ((Span(said, Tone.BAD),), *(((Span(trouble, Tone.CARE),),) if outage.trouble else ()))


_WAYS: Final[dict[str, Callable[[Following, Target, RolloutKind], Awaitable[ExitCode]]]] = {
    "line": _as_lines,
    "json": _as_json,
    "tree": _as_tree,
}


# On a terminal.


def _grown(observed: Observed, kind: RolloutKind, *, now: datetime | None = None) -> Tree:
    return kind.tree(observed, now or datetime.now(UTC))


def _lines(tree: Tree, target: Target, *, height: int | None) -> tuple[Line, ...]:
    width = shutil.get_terminal_size().columns
    return rollout_screens.screen(tree, width=width, height=height, called=connecting.addressed(_called(target)))


def _print(lines: tuple[Line, ...]) -> None:
    if not sys.stdout.isatty():
        click.echo(printable(text(lines)))
        return
    from rich.console import Console  # a tenth of a second that pipes and JSON need not wait for

    Console(highlight=False).print(_painted(lines), soft_wrap=True)


@contextlib.asynccontextmanager
async def _live() -> AsyncGenerator[Callable[[Iterable[Line]], None], None]:
    """A function that replaces the lines on the screen; they are removed when the block ends."""
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(highlight=False), auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        yield lambda lines: live.update(_painted(lines), refresh=True)


def _painted(lines: Iterable[Line]) -> Text:
    from rich.text import Text

    made = [Text.assemble(*((printable(span.text), STYLES[span.tone]) for span in spans)) for spans in lines]
    for line in made:
        line.rstrip()
    return Text("\n", no_wrap=True, overflow="crop").join(made)
