"""The first screen of the terminal interface: all objects, those in trouble first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import events, work
from textual.binding import Binding, BindingType
from textual.widgets import Input

from holdfast.cli.background import background
from holdfast.cli.tui.dialogs import VERBS
from holdfast.cli.tui.view import FRAME, View, ages
from holdfast.cli.tui.widgets import Lines, Listing
from holdfast.cli.tui.world import World
from holdfast.meta.suggestions import nearest
from holdfast.views import overview, overview_screens
from holdfast.views.overview import Health, Row
from holdfast.views.overview_screens import Columns
from holdfast.views.spans import Line, Span, Tone


class Overview(View):
    """All objects, those in trouble first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", show=False),
        # With priority, so that the prompt is open before the next key is handled: keys may come all at once.
        Binding("slash", "filter", show=False, priority=True),
        Binding("colon", "command", show=False, priority=True),
        Binding("t", "trouble", show=False),
        Binding("a", "everything", show=False),
        Binding("q", "quit", show=False),
    ]

    keys = "enter open  / filter  : command  d describe  l logs  e events  v verbs  ? help"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._rows: list[Row] = []
        self._columns = Columns.of(80, 0)
        self._words = ""
        self._kind = ""
        self._trouble_only = False
        self._everything = False
        self._chosen_id = ""
        self._task: asyncio.Task[None] | None = None

    def make_body(self) -> Listing | Lines:
        self.listing = Listing(self._line, id="body")
        self.body = self.listing
        return self.listing

    def on_mount(self) -> None:
        super().on_mount()
        self._watch()

    @work(exclusive=True, group="world")
    async def _watch(self) -> None:
        async with background(self.world.run()):
            while True:
                self.draw()
                await asyncio.sleep(FRAME)
                await self.world.changed.wait()
                self.world.changed.clear()

    def use(self, world: World) -> None:
        """Show other objects."""
        self.world = world
        self._watch()

    # --- what is shown

    def draw(self) -> None:
        if not self.is_mounted:
            return
        every = self.world.rows.values()
        self._rows = overview.ordered(row for row in every if self._is_shown(row))
        width = max(self.size.width, 40)
        everywhere = not self.world.namespace
        longest = overview_screens.longest_name(self._rows, namespaces=everywhere)
        self._columns = Columns.of(width, longest)
        self._draw_head(overview.counts(row for row in every if not row.owner or row.health is Health.TROUBLE))
        self.listing.show(len(self._rows), cursor=self._cursor())

    def _cursor(self) -> int:
        """Where the cursor is: at the object that the user moved to, and before that at the top."""
        if not self._chosen_id:
            return 0
        found = next((number for number, row in enumerate(self._rows) if row.id == self._chosen_id), None)
        return min(self.listing.cursor, len(self._rows) - 1) if found is None else found

    def _draw_head(self, counts: overview.Counts) -> None:
        place = f"namespace {self.world.namespace}" if self.world.namespace else "all namespaces"
        limits = [place]
        limits += [f"kind {self._kind}"] if self._kind else []
        limits += [f"filter {self._words!r}"] if self._words else []
        limits += ["in trouble"] if self._trouble_only else []
        title: Line = (Span(" holdfast  ", Tone.STRONG), Span(", ".join(limits), Tone.FAINT))
        second: Line = (Span(" "), *overview_screens.summary(counts))
        if not self.world.kinds:
            second = (Span(" no kinds of Holdfast are served here; 'holdfast crds | holdfast apply -f -'", Tone.CARE),)
        elif not self.world.is_loaded and not self.world.rows:
            second = (Span(" loading ...", Tone.FAINT),)
        elif not self._rows:
            nothing = "nothing matches; esc clears the filter" if self._is_filtered else "there are no objects yet"
            second = (*second, Span(nothing, Tone.CARE))
        self.bar("head").show(title, second, overview_screens.titles(self._columns))

    @property
    def _is_filtered(self) -> bool:
        return bool(self._words or self._kind or self._trouble_only)

    def _is_shown(self, row: Row) -> bool:
        if self._trouble_only and row.health is not Health.TROUBLE:
            return False
        if self._kind and row.resource != self._kind:
            return False
        if self._words and not overview_screens.matches(row, self._words):
            return False
        # What another object made is part of that one, and shown only where it needs a look or was asked for.
        asked = self._everything or self._words or self._kind
        return bool(not row.owner or asked or row.health is Health.TROUBLE)

    def _line(self, number: int, width: int) -> Line:
        if number >= len(self._rows):
            return ()
        return overview_screens.line(self._rows[number], self._columns, namespaces=not self.world.namespace, age=ages())

    def _remember(self) -> None:
        row = self.chosen()
        self._chosen_id = "" if row is None else row.id

    def chosen(self) -> Row | None:
        number = self.listing.cursor
        return self._rows[number] if 0 <= number < len(self._rows) else None

    # --- keys

    def action_move(self, by: int) -> None:
        super().action_move(by)
        self._remember()

    def action_page(self, by: int) -> None:
        super().action_page(by)
        self._remember()

    def action_open(self) -> None:
        self.holdfast.open_view("page", self.chosen())

    def on_listing_chosen(self, message: Listing.Chosen) -> None:
        self._remember()
        self.action_open()

    def action_trouble(self) -> None:
        self._trouble_only = not self._trouble_only
        self.draw()

    def action_everything(self) -> None:
        self._everything = not self._everything
        self.say(
            "objects that others made are shown too" if self._everything else "objects that others made are hidden"
        )
        self.draw()

    def action_back(self) -> None:
        self._words, self._kind, self._trouble_only = "", "", False
        self._remember()
        self.draw()

    def action_quit(self) -> None:
        self.app.exit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the prompt, the keys that open it are characters like others."""
        return action not in ("filter", "command") or not isinstance(self.focused, Input)

    def action_filter(self) -> None:
        self._ask("/", self._words)

    def action_command(self) -> None:
        self._ask(":", "")

    # --- the prompt

    def _ask(self, sign: str, value: str) -> None:
        prompt = self.query_one("#prompt", Input)
        prompt.placeholder = "words of kind, name, phase or reason" if sign == "/" else "a kind, ns NAME, a verb, q"
        prompt.border_title = sign
        prompt.value = value
        prompt.display = True
        self.set_focus(prompt)  # at once: what is typed next belongs to it

    def _close_prompt(self) -> None:
        prompt = self.query_one("#prompt", Input)
        prompt.display = False
        self.set_focus(self.listing)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.border_title == "/" and event.input.display:
            self._words = event.value.strip()
            self._chosen_id = ""
            self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_prompt()
        if event.input.border_title == ":":
            self._obey(event.value.strip())

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self.query_one("#prompt", Input).has_focus:
            event.stop()
            event.prevent_default()
            if self.query_one("#prompt", Input).border_title == "/":
                self._words = ""
            self._close_prompt()
            self.draw()

    def _obey(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        actions: dict[str, Callable[[], object]] = {
            "q": self.app.exit,
            "q!": self.app.exit,
            "quit": self.app.exit,
            "help": self.action_help,
            "describe": self.action_describe,
            "yaml": self.action_yaml,
            "logs": self.action_logs,
            "events": self.action_events,
            "delete": self.action_delete,
            "scale": self.action_scale,
            "all": self.action_back,
        }
        kinds = {name: kind for kind, each in self.world.kinds.items() for name in each.names}
        if not word:
            return
        if word in actions:
            actions[word]()
        elif word in ("ns", "namespace"):
            self.holdfast.in_namespace("" if rest.strip() in ("", "all") else rest.strip())
        elif word in VERBS:
            self.act(word)
        elif word.lower() in kinds:
            self._kind = kinds[word.lower()]
            self.draw()
        else:
            meant = nearest(word, (*actions, *VERBS, *kinds))
            hint = f"did you mean {meant}?" if meant else "? shows what can be written"
            self.say(f"there is no command or kind {word!r}; {hint}", Tone.BAD)
