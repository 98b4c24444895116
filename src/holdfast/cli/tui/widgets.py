"""Widgets of the terminal interface: a list of any length that draws only what is visible, and lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from holdfast.cli.errors import printable
from holdfast.cli.painting import STYLES
from holdfast.views.spans import Line, cropped

_STYLED = {tone: Style.parse(style) for tone, style in STYLES.items()}
_CHOSEN = Style(reverse=True)


def strip(line: Line, width: int, *, chosen: bool = False) -> Strip:
    """A line as Textual draws it."""
    segments = [Segment(printable(span.text), _STYLED[span.tone]) for span in cropped(line, width)]
    filled = Strip(segments).adjust_cell_length(width)
    return filled.apply_style(_CHOSEN) if chosen else filled


class LineBar(Static):
    """One or a few lines that do not scroll."""

    DEFAULT_CSS = "LineBar { height: auto; }"

    def __init__(self, *, id: str | None = None, used: int = 0) -> None:
        """`used` are the columns of the screen that belong to what is around it."""
        super().__init__(id=id)
        self._used = used

    def show(self, *lines: Line) -> None:
        width = self.app.size.width
        fitting = [cropped(line, width - self._used) for line in lines]
        made = [Text.assemble(*((printable(span.text), _STYLED[span.tone]) for span in line)) for line in fitting]
        self.update(Text("\n", no_wrap=True, overflow="ellipsis").join(made))


class Listing(ScrollView, can_focus=True):
    """A list of objects with a cursor; only the visible lines are made."""

    DEFAULT_CSS = "Listing { height: 1fr; overflow-x: hidden; }"

    cursor: reactive[int] = reactive(0)

    class Chosen(Message):
        """Enter was pressed on a line."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, line: Callable[[int, int], Line], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._line = line
        self._count = 0

    def show(self, count: int, *, cursor: int) -> None:
        """Draw so many lines again."""
        self._count = count
        self.virtual_size = Size(self.size.width, count)
        self.cursor = max(0, min(cursor, count - 1))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        width = self.size.width
        if number >= self._count:
            return Strip.blank(width)
        return strip(self._line(number, width), width, chosen=number == self.cursor)

    def watch_cursor(self) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif height and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        self.show(self._count, cursor=self.cursor)

    def move(self, by: int) -> None:
        self.cursor = max(0, min(self.cursor + by, self._count - 1))

    def on_click(self, event: events.Click) -> None:
        number = event.y + self.scroll_offset.y
        if number < self._count:
            if number == self.cursor:
                self.post_message(self.Chosen(number))
            self.cursor = number

    @property
    def page(self) -> int:
        return max(self.size.height - 1, 1)


class Lines(ScrollView, can_focus=True):
    """Lines of text that scroll; at the end, it stays there as lines are added."""

    DEFAULT_CSS = "Lines { height: 1fr; overflow-x: hidden; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line], *, follow: bool = False) -> None:
        self.lines = lines
        self.virtual_size = Size(self.size.width, len(lines))
        if follow:
            self.scroll_end(animate=False, immediate=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number, width = y + self.scroll_offset.y, self.size.width
        if number >= len(self.lines):
            return Strip.blank(width)
        return strip(self.lines[number], width)

    def move(self, by: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + by, animate=False)

    @property
    def page(self) -> int:
        return max(self.size.height - 1, 1)

    @property
    def is_at_end(self) -> bool:
        return self.scroll_offset.y + self.size.height >= len(self.lines)
