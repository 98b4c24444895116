"""The screens about one object: its page, and texts about it; and the help."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import ClassVar, Final

from textual import work
from textual.binding import Binding, BindingType

from holdfast.cli.tui.texts import TEXTS, About
from holdfast.cli.tui.view import FAILURES, FRAME, View, ages, words_of
from holdfast.cli.tui.world import Subject, World
from holdfast.views import overview_screens
from holdfast.views.overview import Row
from holdfast.views.pages import screens
from holdfast.views.spans import Span, Tone

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
    """A text about one object, which is loaded again with r."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "reload", show=False)]

    keys = "esc back  j/k scroll  G end  r reload  ? help"

    def __init__(self, world: World, row: Row, name: str) -> None:
        super().__init__(world)
        self._row = row
        self._title = name
        self._shown = TEXTS[name]

    def chosen(self) -> Row | None:
        return self._row

    def on_mount(self) -> None:
        super().on_mount()
        place = f"namespace {self._row.namespace}" if self._row.namespace else ""
        self.title_line(f"{self._title} {self._row.kind.lower()}/{self._row.name}", place)
        self.action_reload()

    @work(exclusive=True)
    async def action_reload(self) -> None:
        world = self.world
        about = About(world.session, self.holdfast.known, world.target(self._row), lambda: self.size.width)
        try:
            async with contextlib.aclosing(self._shown.lines(about)) as found:
                async for lines in found:
                    self.text.show(lines, follow=self._shown.follows and self.text.is_at_end)
                    await asyncio.sleep(FRAME)
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)


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
