"""The screens about one object: its page, its description, YAML, logs and Events; and the help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final

from textual import work
from textual.binding import Binding, BindingType

from holdfast.cli.objects import printers
from holdfast.cli.objects.describe import described
from holdfast.cli.objects.events import Family
from holdfast.cli.objects.logs import Choice, Follower, Source, Wanted
from holdfast.cli.objects.owned import owned
from holdfast.cli.tui.view import FAILURES, FRAME, View, ages, words_of
from holdfast.cli.tui.world import Subject, World
from holdfast.cli.watching import caches, running
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.client.resources import EVENTS
from holdfast.views import events as event_views
from holdfast.views import overview_screens
from holdfast.views.overview import Row
from holdfast.views.pages import screens
from holdfast.views.pages.manifest import presentable
from holdfast.views.spans import Line, Span, Tone

MOST_LINES: Final = 5_000
"""Lines of logs that are kept."""

KEYS: Final = (
    ("enter", "open the object"),
    ("esc", "back; on the overview: clear the filter"),
    ("j k ↓ ↑", "move"),
    ("g G", "to the first, to the last"),
    ("ctrl-f ctrl-b", "a page down, a page up"),
    ("/", "filter by words: kind, name, phase, reason"),
    (":", "command: a kind, all, ns NAME, ns all, a verb, logs, events, q"),
    ("t", "only objects in trouble"),
    ("a", "also objects that others made"),
    ("d", "describe"),
    ("y", "YAML"),
    ("l", "logs of all its pods"),
    ("e", "Events of it and of everything that it owns"),
    ("v", "verbs: pause, resume, promote, abort, retry, undo, restart"),
    ("s", "scale: another number of replicas"),
    ("ctrl-d", "delete"),
    ("?", "this help"),
    ("q ctrl-c", "quit"),
)


class SubjectScreen(View):
    """The page of one object."""

    keys = "esc back  d describe  y yaml  l logs  e events  v verbs  ctrl-d delete  ? help"

    def __init__(self, world: World, row: Row) -> None:
        super().__init__(world)
        self._row = row
        self._subject: Subject | None = None

    def chosen(self) -> Row | None:
        return self.world.rows.get(self._row.id, self._row)

    def on_mount(self) -> None:
        super().on_mount()
        self.title_line(f"{self._row.kind.lower()}/{self._row.name}", f"namespace {self._row.namespace}")
        self.follow()

    @work(exclusive=True)
    async def follow(self) -> None:
        obj = self.world.object(self._row)
        if obj is None:
            self.say("it was deleted", Tone.BAD)
            return
        subject = Subject(self.world, self._row, obj)
        try:
            async with subject.running():
                self._subject = subject
                while True:
                    self.draw()
                    await asyncio.sleep(FRAME)
                    await subject.changed.wait()
                    subject.changed.clear()
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)
        finally:
            self._subject = None

    def draw(self) -> None:
        subject = self._subject
        if subject is None:
            return
        sight = subject.sight(datetime.now(UTC))
        if sight is None:
            self.title_line(subject.called, "deleted", Tone.BAD)
            return
        width = max(self.size.width - 1, 40)
        lines = screens.lines(sight.page, sight.tree, width=width, called=subject.called, age=ages())
        self.text.show(lines)


class TextScreen(View):
    """Lines about one object, which are loaded once, and again with r."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "reload", show=False)]

    keys = "esc back  j/k scroll  r reload  ? help"
    name_of_view = ""

    def __init__(self, world: World, row: Row) -> None:
        super().__init__(world)
        self._row = row

    def chosen(self) -> Row | None:
        return self._row

    def on_mount(self) -> None:
        super().on_mount()
        place = f"namespace {self._row.namespace}" if self._row.namespace else ""
        self.title_line(f"{self.name_of_view} {self._row.kind.lower()}/{self._row.name}", place)
        self.action_reload()

    @work(exclusive=True)
    async def action_reload(self) -> None:
        try:
            await self.load()
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)

    async def load(self) -> None:
        """Load and show the lines."""
        raise NotImplementedError

    def plain(self, lines: Sequence[str]) -> None:
        self.text.show([(Span(f" {line}"),) for line in lines])


class DescribeScreen(TextScreen):
    name_of_view = "describe"

    async def load(self) -> None:
        target = self.world.target(self._row)
        obj = await self.world.session.client.get(target.resource, target.key)
        self.plain(await described(self.world.session, target.served, obj.wire(), self.holdfast.known))


class YamlScreen(TextScreen):
    name_of_view = "yaml"

    async def load(self) -> None:
        target = self.world.target(self._row)
        obj = await self.world.session.client.get(target.resource, target.key)
        lines = printers.as_yaml(presentable(obj.wire())).splitlines()
        self.text.show([_yaml_line(line) for line in lines])


def _yaml_line(line: str) -> Line:
    name, colon, rest = line.partition(":")
    if not colon or name.strip().startswith(("'", '"')):
        return (Span(f" {line}"),)
    return (Span(f" {name}:", Tone.OLD), Span(rest))


class LogsScreen(TextScreen):
    """The logs of all pods of an object, as they are written."""

    name_of_view = "logs"
    keys = "esc back  j/k scroll  G end  r reload  ? help"

    def __init__(self, world: World, row: Row) -> None:
        super().__init__(world, row)
        self._lines: list[Line] = []
        self._numbers: dict[str, int] = {}
        self._several = False
        self._dirty = False

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(FRAME, self._flush)

    async def load(self) -> None:
        self._lines = []
        choice = Choice(self.world.session, self.holdfast.known, self.world.target(self._row))
        await Follower(self.world.session, choice, Wanted(follow=True, tail=100), self).run()

    def _flush(self) -> None:
        if self._dirty:
            self._dirty = False
            follow = self.text.is_at_end
            self.text.show(self._lines[-MOST_LINES:], follow=follow)

    # What a `Follower` calls.

    def begin(self, *, several: bool) -> None:
        self._several = several

    def add(self, source: Source) -> None:
        self._numbers.setdefault(source.title, len(self._numbers))

    def line(self, source: Source, line: bytes) -> None:
        tones = (Tone.OLD, Tone.GOOD, Tone.BETWEEN, Tone.CARE)
        text = line.decode(errors="replace").replace("\t", "    ")
        prefix = f" {source.title} │ " if self._several else " "
        tone = tones[self._numbers[source.title] % len(tones)]
        room = max(self.size.width - len(prefix) - 1, 20)
        # A long line goes on below, so that nothing of it is lost.
        for at in range(0, max(len(text), 1), room):
            start = Span(prefix, tone) if at == 0 else Span(" " * (len(prefix) - 2) + "  ")
            self._add((start, Span(text[at : at + room])))

    def note(self, text: str) -> None:
        self._add((Span(f" {text}", Tone.CARE),))

    def _add(self, line: Line) -> None:
        self._lines.append(line)
        if len(self._lines) > 2 * MOST_LINES:
            del self._lines[:-MOST_LINES]
        self._dirty = True


class EventsScreen(TextScreen):
    """The Events of an object and of everything that it owns, as they occur; the newest last."""

    name_of_view = "events"

    async def load(self) -> None:
        session, known = self.world.session, self.holdfast.known
        target = self.world.target(self._row)
        obj = await session.client.get(target.resource, target.key)
        below = await owned(session, target.served, obj, known)
        family = Family(session, known, {obj.uid, *(each.uid for each in below)})
        stores = caches(session, {EVENTS: Scope(namespace=target.scope.namespace)})
        changed = asyncio.Event()
        async with running(stores):
            stores.subscribe(EVENTS, lambda old, new: changed.set())
            while True:
                changed.clear()
                found: list[Object] = [each for each in stores.list(EVENTS) if await family.joins(each)]
                self._show(found)
                await asyncio.sleep(FRAME)
                await changed.wait()

    def _show(self, found: Sequence[Object]) -> None:
        rows = event_views.ordered(each.wire() for each in found)
        lines = event_views.lines(rows, age=ages(), width=max(self.size.width - 1, 40))
        self.text.show(
            lines or [(Span(" no Events; the server keeps them for a limited time", Tone.FAINT),)], follow=True
        )


class HelpScreen(View):
    """All keys."""

    def on_mount(self) -> None:
        super().on_mount()
        self.title_line("keys")
        width = max(len(key) for key, _ in KEYS)
        keys = [(Span(f" {key:<{width}}  ", Tone.STRONG), Span(words)) for key, words in KEYS]
        marks = [
            (Span(f" {mark} ", tone), Span(words))
            for (mark, tone), words in zip(
                overview_screens.MARKS.values(),
                ("in trouble: a floor is broken, or it does not go on by itself", "in progress", "good"),
                strict=True,
            )
        ]
        self.text.show([*keys, (), *marks])
