"""Errors for users.

One message: where, what is wrong, what to write instead; and an exit code that scripts
can rely on.  Commands raise `InputError`; nothing here may know a
command, a kind or a file format.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import IO, Any, Final

import click


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    BLOCKED = 1
    """The command worked, and the answer is no: a rollout is blocked, a request refused."""
    BAD_INPUT = 2
    """A manifest or an option is invalid."""
    STANDS_STILL = 3
    """A rollout waits for a user."""
    INTERNAL = 70
    """A defect of Holdfast."""
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """The reader of the output closed the pipe."""


MOST_SHOWN: Final = 10
"""Complaints that are shown at once; more would scroll the first one away."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file; lines and columns count from 1."""

    source: str
    line: int | None = None
    column: int | None = None
    text: str | None = None
    """The line itself."""

    def __str__(self) -> str:
        known = [str(number) for number in (self.line, self.column) if number is not None]
        return ":".join([self.source, *known])

    def excerpt(self) -> str:
        """The line and a mark under the column, or nothing where the line is not known."""
        if self.line is None or self.text is None:
            return ""
        column = (self.column or 1) - 1
        start = max(0, column - 60)
        shown = self.text[start : start + 100].replace("\t", "→")
        number = f"{self.line:>5}"
        return f"{number} | {shown}\n{' ' * len(number)} | {' ' * (column - start)}^"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One thing that is wrong: what, where, and what to write instead."""

    message: str
    hint: str | None = None
    place: Place | None = None
    path: str | None = None
    """The field, or the option, that is at fault."""

    def __str__(self) -> str:
        where = [str(part) for part in (self.place, self.path) if part is not None]
        lines = [": ".join([*where, self.message])]
        if self.place is not None and (excerpt := self.place.excerpt()):
            lines.append(excerpt)
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class InputError(click.ClickException):
    """What was given cannot be used, and why."""

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, *complaints: Complaint) -> None:
        super().__init__("\n".join(str(complaint) for complaint in complaints))
        self.complaints = complaints

    def format_message(self) -> str:
        shown = [f"error: {complaint}" for complaint in self.complaints[:MOST_SHOWN]]
        left = len(self.complaints) - MOST_SHOWN
        if left > 0:
            shown.append(f"error: and {left} more")
        return printable("\n".join(shown))

    def show(self, file: IO[Any] | None = None) -> None:
        text = self.format_message()
        click.echo(for_terminal(text) if file is None else text, file=file, err=file is None)


def printable(text: str) -> str:
    """``text`` without control characters: it may come from a file that the user does not trust."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def for_terminal(text: str) -> str:
    """Messages for standard error: folded at blanks where it is a terminal that is narrower."""
    if not sys.stderr.isatty():
        return text
    from holdfast.views.folding import folded_messages  # help and completion need no views

    return folded_messages(text, shutil.get_terminal_size().columns)


_PLAIN: Final = {
    "\n\t": " ",  # before each choice of an argument
    "is not a valid integer range": "is not an integer",
    "is not a valid integer": "is not an integer",
    "is not a valid float range": "is not a number",
}
"""What click writes about a wrong value, and how it is shown."""


def usage_message(error: click.UsageError) -> str:
    """A wrong command line in the same form as any other bad input."""
    message = error.format_message().rstrip(".")
    for written, plain in _PLAIN.items():
        message = message.replace(written, plain)
    lines = [f"error: {message[:1].lower()}{message[1:]}"]
    if error.ctx is not None:
        lines.append(f"hint: '{error.ctx.command_path} --help' shows what can be written")
    return printable("\n".join(lines))
