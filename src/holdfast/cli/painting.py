"""Colours on a terminal for the tones of `views.spans`; elsewhere plain text.

The sixteen colours of the terminal's own palette are used, which its user chose to be readable on its background.
`NO_COLOR` and a terminal without colours (`TERM=dumb`) are respected.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

from holdfast.cli.errors import printable
from holdfast.views import folding
from holdfast.views.spans import Line, Span, Tone

STYLES: Final[Mapping[Tone, str]] = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.FAINT: "bright_black",
    Tone.GOOD: "green",
    Tone.CARE: "yellow",
    Tone.BAD: "bold red",
    Tone.OLD: "blue",
    Tone.NEW: "green",
    Tone.BETWEEN: "magenta",
}
"""The styles of the tones, as rich and Textual name them."""

_CODES: Final[Mapping[Tone, str]] = {
    Tone.PLAIN: "",
    Tone.STRONG: "1",
    Tone.FAINT: "90",
    Tone.GOOD: "32",
    Tone.CARE: "33",
    Tone.BAD: "1;31",
    Tone.OLD: "34",
    Tone.NEW: "32",
    Tone.BETWEEN: "35",
}

_CYCLE: Final = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
"""Colours that tell several sources of lines apart; red is kept for errors."""


def has_colours(stream: IO[Any] | None = None) -> bool:
    """Whether text on a stream may have colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return (stream or sys.stdout).isatty()


def width(stream: IO[Any] | None = None) -> int | None:
    """The columns of the terminal that a stream is; None where it is none."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def folded(lines: Iterable[str]) -> str:
    """Lines as text, folded where the terminal is narrower than they are; their control characters are replaced."""
    return printable("\n".join(folding.folded(lines, width())))


def text(lines: Iterable[Line], *, colours: bool, exact: bool = False) -> str:
    """Lines as text, with or without colours; control characters of what they show are replaced.

    With `exact`, blanks at the end of a line are kept.
    """
    made = ("".join(_painted(span, colours=colours) for span in line) for line in lines)
    return "\n".join(line if exact else line.rstrip() for line in made)


def _painted(span: Span, *, colours: bool) -> str:
    shown, code = printable(span.text), _CODES[span.tone]
    return f"\x1b[{code}m{shown}\x1b[0m" if colours and code and shown else shown


def numbered(shown: str, number: int) -> str:
    """Text in the colour of the source of this number."""
    return f"\x1b[{_CYCLE[number % len(_CYCLE)]}m{shown}\x1b[0m"
