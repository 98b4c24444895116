"""Long lines on a narrow screen: folded at blanks, below where their last column or their text begins.

Pure.  Terminals break lines anywhere, which makes tables and messages hard to read.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Final

LEAST: Final = 20
"""Columns that a folded text needs below the last column; where fewer are left, it goes on below the first one."""

_GAP: Final = re.compile(r" {3,}(?=\S)")
_INDENT: Final = re.compile(r" *(?:- )?")
_FIELD: Final = re.compile(r"[\w./-]+: ")
"""A field with its value, which goes on behind the beginning of its name."""


def wrap(text: str, width: int, hanging: str = "") -> list[str]:
    """A text in lines; names with hyphens stay whole, so that they can be copied."""
    return textwrap.wrap(text, width, subsequent_indent=hanging, break_on_hyphens=False)


def folded(lines: Iterable[str], width: int | None) -> list[str]:
    """The lines, none of them wider than the screen where it has room; without a width, as they are."""
    if width is None:
        return list(lines)
    return [part for line in lines for part in (_fold(line, width) if len(line) > width else (line,))]


def _fold(line: str, width: int) -> list[str]:
    start = _start(line)
    if width - start < LEAST:  # no room below the last column: go on a little behind the beginning of the line
        below = " " * (_begin(line) + 4)
        return textwrap.wrap(line, width, subsequent_indent=below, break_on_hyphens=False, break_long_words=False)
    hanging = "  " if _FIELD.match(line, start) else ""
    first, *rest = wrap(line[start:], width - start, hanging) or [""]
    return [line[:start] + first, *(" " * start + part for part in rest)]


def _start(line: str) -> int:
    """Where the last column of a line begins, or the text behind its indentation."""
    begin = _begin(line)
    gaps = [found.end() for found in _GAP.finditer(line, begin)]
    return gaps[-1] if gaps else begin


def _begin(line: str) -> int:
    """Where the text behind the indentation begins."""
    indent = _INDENT.match(line)
    return 0 if indent is None else indent.end()


def folded_messages(text: str, width: int | None) -> str:
    """Errors, hints and notes, folded; excerpts of files stay as they are."""
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        if len(line) > width and line.startswith(_MESSAGES):
            lines += textwrap.wrap(line, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        else:
            lines.append(line)
    return "\n".join(lines)


_MESSAGES: Final = (
    "error: ",
    "internal error: ",
    "hint: ",
    "note: ",
    "warning: ",
    "Error from server",
    "blocked: ",
    "remedy: ",
)
