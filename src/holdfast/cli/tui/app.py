"""The application ``holdfast tui``: its screens, and the cluster that they show."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from holdfast.cli.connecting import Session
from holdfast.cli.tui.overview import Overview
from holdfast.cli.tui.pages import HelpScreen, SubjectScreen, TextScreen
from holdfast.cli.tui.world import Watched, World, watched_kinds
from holdfast.client.discovery import Discovery
from holdfast.views.overview import Row


class HoldfastApp(App[None]):
    """The terminal interface."""

    TITLE = "holdfast"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True)]
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    LineBar { background: ansi_default; color: ansi_default; }
    Listing, Lines { background: ansi_default; color: ansi_default; scrollbar-size-vertical: 1; }
    Input { height: 3; border: round ansi_blue; background: ansi_default; color: ansi_default; }
    ModalScreen { align: center middle; background: ansi_default; }
    #dialog { width: 76; height: auto; border: round ansi_yellow; padding: 0 1; background: ansi_default; }
    """

    def __init__(self, session: Session, known: Discovery, *, namespace: str = "", read_only: bool = False) -> None:
        super().__init__(ansi_color=True)
        self.session = session
        self.known = known
        self.read_only = read_only
        self._namespace = namespace
        self._kinds: tuple[Watched, ...] = watched_kinds(known)
        self.main: Overview | None = None

    def on_mount(self) -> None:
        self.main = Overview(World(self.session, self._kinds, namespace=self._namespace))
        self.push_screen(self.main)

    def in_namespace(self, namespace: str) -> None:
        """Show the objects of another namespace, or of all."""
        if self.main is not None:
            self.main.use(World(self.session, self._kinds, namespace=namespace))

    def open_view(self, name: str, row: Row | None) -> None:
        """Open a screen about an object, above the current one."""
        if self.main is None:
            return
        if name == "help":
            self.push_screen(HelpScreen(self.main.world))
        elif row is not None:
            world = self.main.world
            self.push_screen(SubjectScreen(world, row) if name == "page" else TextScreen(world, row, name))
