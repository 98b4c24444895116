"""Dialogs of the terminal interface: whether something shall be done, and which verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from holdfast.cli.tui.widgets import LineBar
from holdfast.views.folding import wrap
from holdfast.views.spans import Line, Span, Tone

VERBS: Final = {
    "pause": "Pause",
    "resume": "Resume",
    "promote": "Promote the step that waits",
    "abort": "Abort, and return to the revision before",
    "retry": "Retry a rejected revision",
    "undo": "Undo: return to the revision before",
    "restart": "Restart: replace all replicas",
}
"""The verbs of rollouts, in the order in which they are offered."""


_WIDTH: Final = 70
"""Columns of text in the box."""

_AROUND: Final = 8
"""Columns of the screen that the box and its margins take."""


class Confirm(ModalScreen[bool]):
    """What will happen, and whether it shall."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield LineBar(id="question", used=_AROUND)

    def on_mount(self) -> None:
        shown: list[Line] = [(Span(self._title, Tone.STRONG),), ()]
        for line in self._lines:
            tone = Tone.CARE if line.startswith(("warning", "note", "blocked")) else Tone.PLAIN
            shown += [(Span(part, tone),) for part in wrap(line, _WIDTH) or [""]]
        shown += [(), (Span("y", Tone.STRONG), Span(" yes   "), Span("n", Tone.STRONG), Span(" no"))]
        bar = self.query_one("#question", LineBar)
        bar.show(*shown)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class AskNumber(ModalScreen[int | None]):
    """A question whose answer is a number."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, value: int) -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield LineBar(id="question", used=_AROUND)
            yield Input(str(self._value), type="integer", compact=True, select_on_focus=True)

    def on_mount(self) -> None:
        hint: Line = (Span("enter shows the plan   esc back", Tone.FAINT),)
        self.query_one("#question", LineBar).show((Span(self._title, Tone.STRONG),), hint)
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.isdecimal():
            self.dismiss(int(event.value))

    def action_leave(self) -> None:
        self.dismiss(None)


class VerbMenu(ModalScreen[str]):
    """The verbs of a kind, to choose from."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("escape,q", "leave", show=False),
    ]

    def __init__(self, verbs: Mapping[str, str], *, suggested: str) -> None:
        """`verbs` are the verbs, each with why it would change nothing now; empty where it would."""
        super().__init__()
        self._verbs = tuple(verbs)
        self._refusals = verbs
        self._at = self._verbs.index(suggested) if suggested in verbs else 0

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield LineBar(id="question", used=_AROUND)

    def on_mount(self) -> None:
        self._draw()

    def _draw(self) -> None:
        lines: list[Line] = [(Span("Which verb?", Tone.STRONG),), ()]
        for number, verb in enumerate(self._verbs):
            here = number == self._at
            refusal = self._refusals[verb]
            tone = Tone.STRONG if here else Tone.FAINT if refusal else Tone.PLAIN
            words = Span(f"not now: {refusal}", Tone.FAINT) if refusal else Span(VERBS[verb])
            lines.append((Span(f"{'▸' if here else ' '} {verb:<8} ", tone), words))
        lines += [(), (Span("enter choose   esc back; the plan is shown before anything changes", Tone.FAINT),)]
        self.query_one("#question", LineBar).show(*lines)

    def action_move(self, by: int) -> None:
        self._at = (self._at + by) % len(self._verbs)
        self._draw()

    def action_choose(self) -> None:
        self.dismiss(self._verbs[self._at])

    def action_leave(self) -> None:
        self.dismiss("")
