"""Texts about one object: its description, manifest, logs and Events.

Each is a generator of the lines to show, which yields them again whenever they have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.cli.background import background
from holdfast.cli.connecting import Session
from holdfast.cli.objects import printers
from holdfast.cli.objects.describe import described
from holdfast.cli.objects.events import Family
from holdfast.cli.objects.logs import Choice, Follower, Source, Wanted
from holdfast.cli.objects.owned import owned
from holdfast.cli.objects.targets import Target
from holdfast.cli.tui.view import ages
from holdfast.cli.watching import caches, running
from holdfast.client.discovery import Discovery
from holdfast.client.protocols import Scope
from holdfast.client.resources import EVENTS
from holdfast.views import events as event_views
from holdfast.views.pages.manifest import presentable
from holdfast.views.spans import Line, Span, Tone

MOST_LINES: Final = 5_000
"""Lines of logs that are kept."""

_TAIL: Final = 100
"""Lines of each container with which its logs begin."""

_TONES: Final = (Tone.OLD, Tone.GOOD, Tone.BETWEEN, Tone.CARE)
"""The tones of containers, in turns."""


@dataclass(frozen=True, slots=True)
class About:
    """The object that a text is about; `width` is that of the screen now."""

    session: Session
    known: Discovery
    target: Target
    width: Callable[[], int]


Lines = AsyncGenerator[Sequence[Line], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The lines of a text; where it `follows`, lines are added at the end, which stays visible."""

    lines: Callable[[About], Lines]
    follows: bool = False


async def _description(about: About) -> Lines:
    target = about.target
    obj = await about.session.client.get(target.resource, target.key)
    width = max(about.width() - 2, 40)  # beside the blank before each line and the scrollbar
    lines = await described(about.session, target.served, obj.wire(), about.known, width=width)
    yield [(Span(f" {line}"),) for line in lines]


async def _manifest(about: About) -> Lines:
    obj = await about.session.client.get(about.target.resource, about.target.key)
    yield [_yaml_line(line) for line in printers.as_yaml(presentable(obj.wire())).splitlines()]


def _yaml_line(line: str) -> Line:
    name, colon, rest = line.partition(":")
    if not colon or name.strip().startswith(("'", '"')):
        return (Span(f" {line}"),)
    return (Span(f" {name}:", Tone.OLD), Span(rest))


async def _events(about: About) -> Lines:
    """The Events of the object and of everything that it owns, the newest last."""
    session, known, target = about.session, about.known, about.target
    obj = await session.client.get(target.resource, target.key)
    below = await owned(session, target.served, obj, known)
    family = Family(session, known, {obj.uid, *(each.uid for each in below)})
    changed = asyncio.Event()
    async with running(caches(session, {EVENTS: Scope(namespace=target.scope.namespace)})) as stores:
        stores.subscribe(EVENTS, lambda old, new: changed.set())
        while True:
            changed.clear()
            found = [each for each in stores.list(EVENTS) if await family.joins(each)]
            rows = event_views.ordered(each.wire() for each in found)
            lines = event_views.lines(rows, age=ages(), width=max(about.width() - 1, 40))
            yield lines or [(Span(" no Events; the server keeps them for a limited time", Tone.FAINT),)]
            await changed.wait()


async def _logs(about: About) -> Lines:
    """What all containers of the object write."""
    printer = _Printer(about.width)
    choice = Choice(about.session, about.known, about.target)
    follower = Follower(about.session, choice, Wanted(follow=True, tail=_TAIL), printer)
    async with background(follower.run()) as following:
        following.add_done_callback(lambda done: printer.changed.set())
        while printer.changed.is_set() or not following.done():
            await printer.changed.wait()
            printer.changed.clear()
            yield printer.lines[-MOST_LINES:]


class _Printer:
    """Keeps the last lines that a `Follower` prints; those of several containers begin with their pod."""

    def __init__(self, width: Callable[[], int]) -> None:
        self.lines: list[Line] = []
        self.changed = asyncio.Event()
        self._width = width
        self._tones: dict[str, Tone] = {}
        self._several = False

    def begin(self, *, several: bool) -> None:
        self._several = several

    def add(self, source: Source) -> None:
        self._tones.setdefault(source.title, _TONES[len(self._tones) % len(_TONES)])

    def line(self, source: Source, line: bytes) -> None:
        text = line.decode(errors="replace").replace("\t", "    ")
        prefix = f" {source.title} │ " if self._several else " "
        room = max(self._width() - len(prefix) - 1, 20)
        # A long line goes on below, so that nothing of it is lost.
        for at in range(0, max(len(text), 1), room):
            start = Span(prefix, self._tones[source.title]) if at == 0 else Span(" " * max(len(prefix), 2))
            self._add((start, Span(text[at : at + room])))

    def note(self, text: str) -> None:
        self._add((Span(f" {text}", Tone.CARE),))

    def _add(self, line: Line) -> None:
        self.lines.append(line)
        if len(self.lines) > 2 * MOST_LINES:
            del self.lines[:-MOST_LINES]
        self.changed.set()


TEXTS: Final = {
    "describe": Text(lines=_description),
    "yaml": Text(lines=_manifest),
    "logs": Text(lines=_logs, follows=True),
    "events": Text(lines=_events, follows=True),
}
"""The texts by the names of their screens."""
