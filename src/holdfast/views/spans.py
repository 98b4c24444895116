"""Lines of text whose pieces say what they mean, and not how they are coloured.

So the same lines are plain text in a pipe, coloured on a terminal, and compared as text in
tests.  This module must not know what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Tone(Enum):
    """What a piece of text is for the reader."""

    PLAIN = "plain"
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    CARE = "care"
    BAD = "bad"
    OLD = "old"
    NEW = "new"
    BETWEEN = "between"


REVISIONS: Final = (Tone.OLD, Tone.NEW, Tone.BETWEEN)
"""The tones of the revisions, by the index of their branches."""


@dataclass(frozen=True, slots=True)
class Span:
    """Text of one tone."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]

NARROW: Final = 100
"""Columns below which names are shortened and bars are short."""


def text(lines: Iterable[Line]) -> str:
    """The lines without any colour."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def joined_images(images: Iterable[str], width: int) -> str:
    """Images, joined by arrows; on a narrow screen, only the parts that differ."""
    names, before = [], ""
    for image in dict.fromkeys(images):
        place, slash, name = image.rpartition("/")
        if width >= NARROW:
            names.append(image)
        elif before and image.rpartition(":")[0] == before.rpartition(":")[0] != "":
            names.append(f":{image.rpartition(':')[2]}")
        else:
            names.append(f"…/{name}" if slash and len(place) > 1 else image)
        before = image
    return " → ".join(names)


def fitting_images(images: Iterable[str], width: int, room: int) -> str:
    """Images behind two blanks, in as many columns as there are for them: in short where the whole does not fit."""
    given = tuple(images)
    whole = f"  {joined_images(given, width)}"
    return whole if len(whole) <= room else cut(f"  {joined_images(given, 0)}", room)


def cropped(line: Line, width: int) -> Line:
    """What a terminal of so many columns has room for."""
    shown: list[Span] = []
    for span in line:
        shown.append(Span(cut(span.text, width - sum(map(length, shown))), span.tone))
    return tuple(span for span in shown if span.text)


def length(span: Span) -> int:
    return len(span.text)


def cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: max(width - 1, 0)] + "…" * (width > 0)
