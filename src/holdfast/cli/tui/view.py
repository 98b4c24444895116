"""What all screens of the terminal interface have in common: a body that scrolls, messages, and keys for an object.

Verbs are carried out here: the plan is shown, and nothing changes before it is confirmed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from holdfast.cli.errors import InputError
from holdfast.cli.objects import scale
from holdfast.cli.plan.command import brief
from holdfast.cli.tui.dialogs import VERBS, AskNumber, Confirm, VerbMenu
from holdfast.cli.tui.widgets import LineBar, Lines, Listing
from holdfast.cli.tui.world import World
from holdfast.client.objects import Undecodable
from holdfast.client.protocols import Unreachable
from holdfast.meta.ages import age
from holdfast.meta.errors import StatusError
from holdfast.operators import shown, steering
from holdfast.operators.rollouts import Already, Case, Change, Refusal
from holdfast.operators.steering import Order
from holdfast.views.overview import Row
from holdfast.views.spans import Span, Tone

if TYPE_CHECKING:
    from holdfast.cli.tui.app import HoldfastApp

FRAME: Final = 1 / 8
"""The least time between two frames, in seconds."""

TICK: Final = 1.0
"""Seconds after which ages and outages are shown again although nothing has changed."""

MESSAGE_SECONDS: Final = 8.0

FAILURES: Final = (StatusError, Unreachable, InputError, Undecodable)


def ages() -> Callable[[str | None], str]:
    return partial(age, now=time.time())


def words_of(error: Exception) -> str:
    text = error.format_message() if isinstance(error, InputError) else str(error)
    return " ".join(text.removeprefix("error: ").split())


class View(Screen[None]):
    """A screen with a body that scrolls, a line for messages, a prompt, and a line of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("g,home", "move(-1000000000)", show=False),
        Binding("G,end", "move(1000000000)", show=False),
        Binding("ctrl+f,pagedown,space", "page(1)", show=False),
        Binding("ctrl+b,pageup", "page(-1)", show=False),
        Binding("question_mark", "help", show=False),
        Binding("escape,q", "back", show=False),
        Binding("d", "describe", show=False),
        Binding("y", "yaml", show=False),
        Binding("l", "logs", show=False),
        Binding("e", "events", show=False),
        Binding("v", "verbs", show=False),
        Binding("s", "scale", show=False),
        Binding("ctrl+d", "delete", show=False),
    ]

    keys = "esc back  j/k scroll  ? help"
    body: Listing | Lines

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self._said_at = 0.0
        # Kept here and not looked up: a change may still be drawn while the screen is taken down.
        self._bars = {name: LineBar(id=name) for name in ("head", "banner", "message", "foot")}

    @property
    def holdfast(self) -> HoldfastApp:
        return cast("HoldfastApp", self.app)

    def compose(self) -> ComposeResult:
        yield self._bars["head"]
        yield self._bars["banner"]
        yield self.make_body()
        yield self._bars["message"]
        yield Input(id="prompt", compact=True)
        yield self._bars["foot"]

    def make_body(self) -> Listing | Lines:
        self.body = self.text = Lines(id="body")
        return self.body

    def on_mount(self) -> None:
        self.query_one("#prompt").display = False
        self.query_one("#banner").display = False
        self.query_one("#message").display = False
        self.bar("foot").show((Span(f" {self.keys}", Tone.FAINT),))
        self.body.focus()
        self.set_interval(TICK, self._tick)

    def bar(self, name: str) -> LineBar:
        return self._bars[name]

    def title_line(self, title: str, rest: str = "", tone: Tone = Tone.STRONG) -> None:
        self.bar("head").show((Span(f" {title}", tone), Span(f"  {rest}", Tone.FAINT)))

    def say(self, text: str, tone: Tone = Tone.CARE) -> None:
        """Show a message for a while."""
        self._said_at = time.monotonic()
        message = self.bar("message")
        message.show((Span(f" {text}", tone),))
        message.display = True

    def _tick(self) -> None:
        outage = self.world.outage()
        banner = self.bar("banner")
        banner.display = bool(outage)
        if outage:
            banner.show((Span(f" ! {outage}; what follows is as it was then", Tone.BAD),))
        if self._said_at and time.monotonic() - self._said_at > MESSAGE_SECONDS:
            self._said_at = 0.0
            self.bar("message").display = False
        self.draw()

    def draw(self) -> None:
        """Show what has changed."""

    def chosen(self) -> Row | None:
        """The object that keys are about."""
        return None

    # --- keys

    def action_move(self, by: int) -> None:
        self.body.move(by)

    def action_page(self, by: int) -> None:
        self.body.move(by * self.body.page)

    def action_help(self) -> None:
        self.holdfast.open_view("help", None)

    def action_back(self) -> None:
        self.app.pop_screen()

    def action_describe(self) -> None:
        self.holdfast.open_view("describe", self.chosen())

    def action_yaml(self) -> None:
        self.holdfast.open_view("yaml", self.chosen())

    def action_logs(self) -> None:
        self.holdfast.open_view("logs", self.chosen())

    def action_events(self) -> None:
        self.holdfast.open_view("events", self.chosen())

    @work
    async def action_verbs(self) -> None:
        row = self.chosen()
        obj = None if row is None else self.world.object(row)
        if row is None or obj is None:
            return
        rollout = self.world.kinds[row.resource].kind.rollout
        if rollout is None:
            self.say(f"{row.kind} does not roll out, so it has no verbs")
            return
        try:
            records = await steering.records(self.world.session.client, rollout, obj)
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)
            return
        case = Case(object=obj, records=records, now=datetime.now(UTC))
        known = {verb: shown.refusal(rollout, verb, case) for verb in VERBS if verb in rollout.verbs}
        verb = await self.app.push_screen_wait(VerbMenu(known, suggested=row.verb))
        if verb:
            self.act(verb)

    @work
    async def action_scale(self) -> None:
        """Set the number of replicas of the chosen object, after its plan was confirmed."""
        row = self.chosen()
        if row is None or self._is_read_only():
            return
        target, called = self.world.target(row), f"{row.kind.lower()}/{row.name}"
        if "scale" not in target.served.subresources:
            self.say(f"{row.kind} has no number of replicas that can be set")
            return
        number = await self.app.push_screen_wait(AskNumber(f"How many replicas for {called}?", row.desired or 0))
        if number is None:
            return
        try:
            scaling = await scale.prepared(self.world.session, target, number)
            if scaling.before == number:
                self.say(f"{called} has {number} replicas already")
                return
            said = "\n".join(scaling.plan)
            floors = [f"warning: {number} replicas are too few: {why}" for why in scaling.too_few if why not in said]
            if not await self.app.push_screen_wait(Confirm("Scale?", [*scaling.plan, *floors])):
                self.say(f"{called} was not changed")
                return
            await scale.carry_out(self.world.session, target, scaling)
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)
        else:
            self.say(f"{called} scaled from {scaling.before} to {number}", Tone.GOOD)

    def _is_read_only(self) -> bool:
        if self.holdfast.read_only:
            self.say("nothing can be changed: it was started with --read-only")
        return self.holdfast.read_only

    def act(self, verb: str) -> None:
        """Carry out a verb on the chosen object, after its plan was confirmed."""
        if (row := self.chosen()) is not None:
            self._steer(row, verb)

    @work
    async def _steer(self, row: Row, verb: str) -> None:
        if self._is_read_only():
            return
        kind, client = self.world.kinds[row.resource].kind.rollout, self.world.session.client
        if kind is None or verb not in (*kind.verbs, *kind.unsupported):
            self.say(f"{row.kind} has no verb {verb}")
            return
        target = self.world.target(row)
        order = Order(resource=target.resource, key=target.key, verb=verb)
        called = f"{row.kind.lower()}/{row.name}"
        try:
            obj = await steering.fresh(client, kind, order.resource, order.key)
            answer = await steering.answered(client, kind, order, obj)
            match answer:
                case Refusal(message, hint):
                    self.say(f"{called}: {message}; {hint}", Tone.BAD)
                    return
                case Already(said):
                    self.say(f"{called} {said}")
                    return
                case Change(patch, said, notes):
                    later = await steering.as_it_would_be(client, obj, patch)
                    plan = await steering.planned(client, kind, later)
            planned = [plan.message] if isinstance(plan, Refusal) else brief(plan)
            lines = [f"{called} will be {said}", "", *planned, *(f"note: {note}" for note in notes)]
            if not await self.app.push_screen_wait(Confirm(f"{VERBS[verb]}?", lines)):
                self.say(f"{called} was not changed")
                return
            answer = await steering.carried_out(client, kind, order)
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)
            return
        if isinstance(answer, Refusal):
            self.say(f"{called}: {answer.message}; {answer.hint}", Tone.BAD)
        else:
            self.say(f"{called} {answer.said}", Tone.GOOD)

    @work
    async def action_delete(self) -> None:
        row = self.chosen()
        if row is None or self._is_read_only():
            return
        called, target = f"{row.kind.lower()}/{row.name}", self.world.target(row)
        place = f" in namespace {row.namespace}" if row.namespace else ""
        lines = [f"{called}{place} is deleted, and everything that it owns.", "This cannot be undone."]
        if not await self.app.push_screen_wait(Confirm("Delete?", lines)):
            self.say(f"{called} was not deleted")
            return
        try:
            await self.world.session.client.delete(target.resource, target.key, propagation="Background")
        except FAILURES as error:
            self.say(words_of(error), Tone.BAD)
        else:
            self.say(f"{called} is being deleted", Tone.GOOD)
