"""The revisions of an object on its page, and how they differ."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from holdfast.views.pages.sections import Section
from holdfast.views.rollouts import Past


class DiffLine(msgspec.Struct, frozen=True, array_like=True):
    """A line of a diff: ``+``, ``-`` or a space, and the text."""

    mark: str
    text: str


class RevisionView(Section, frozen=True, kw_only=True):
    """A revision of the history, and how it differs from the one before."""

    number: int
    revision: str
    image: str = ""
    created: str | None = None
    marks: tuple[str, ...] = ()
    change: str = ""
    why: str = ""
    diff: tuple[DiffLine, ...] = ()


def revisions(past: Iterable[Past], *, dump: Callable[[Any], str]) -> tuple[RevisionView, ...]:
    """The history, newest first; `dump` writes a spec as YAML."""
    made: list[RevisionView] = []
    before: list[str] | None = None
    for each in past:
        text = dump(_content(each)).splitlines()
        made.append(
            RevisionView(
                number=each.number,
                revision=each.revision,
                image=each.image,
                created=each.made,
                marks=each.marks,
                change=each.change,
                why=each.why,
                diff=() if before is None else tuple(diff(before, text)),
            )
        )
        before = text
    return tuple(reversed(made))


def _content(past: Past) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(past.record.data)
    return {name: value for name, value in data.items() if value}


_CONTEXT: Final = 2
"""How many equal lines are shown around a change."""


def diff(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """The lines that differ, with a few around them."""
    lines = difflib.unified_diff(before, after, n=_CONTEXT, lineterm="")
    for line in list(lines)[2:]:
        yield DiffLine("@", "") if line.startswith("@@") else DiffLine(line[0], line[1:])
