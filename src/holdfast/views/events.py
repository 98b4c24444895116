"""Events as lines: when, what, about which object, and the message.

Pure: Events in, lines out.  Wide screens and pipes have one line for each Event; narrow screens have its message
below it, so that nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.views.columns import NOTHING, Alignment
from holdfast.views.folding import wrap
from holdfast.views.spans import Line, Span, Tone

Object = Mapping[str, Any]

WIDE: Final = 140
"""Columns from which on a screen has one line for each Event."""

HEADER: Final = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """What is shown of an Event.

    seen   when it was last observed
    about  the object that it is about, such as ``pod/web-0``
    times  how often it was observed
    """

    seen: str
    type: str
    reason: str
    about: str
    message: str
    times: int = 1
    namespace: str = ""

    @property
    def is_warning(self) -> bool:
        return self.type != "Normal"


def row(event: Object) -> EventRow:
    """What is shown of an Event of either API."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    return EventRow(
        seen=str(last_seen(event) or ""),
        type=str(event.get("type") or "Normal"),
        reason=str(event.get("reason") or NOTHING),
        about=f"{str(about.get('kind') or 'object').lower()}/{about.get('name') or NOTHING}",
        message=" ".join(str(event.get("message") or event.get("note") or "").split()),
        times=how_often(event),
        namespace=str(about.get("namespace") or ""),
    )


def last_seen(event: Object) -> str | None:
    """When an Event of either API was last observed."""
    created = (event.get("metadata") or {}).get("creationTimestamp")
    series = event.get("series") or {}
    return series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or created


def how_often(event: Object) -> int:
    """How often an Event of either API was observed."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def ordered(events: Iterable[Object]) -> list[EventRow]:
    """The Events from the oldest to the newest."""
    return sorted(map(row, events), key=lambda each: (each.seen, each.about, each.reason))


def lines(
    rows: Sequence[EventRow],
    *,
    age: Callable[[str | None], str],
    width: int | None = None,
    namespaces: bool = False,
    alignment: Alignment | None = None,
) -> list[Line]:
    """The Events as lines of a screen, or of a pipe if it has no width.

    alignment  that of earlier lines, where these follow them; the titles of the columns come before the first
    """
    if width is not None and width < WIDE:
        return [line for each in rows for line in _stacked(each, age=age, width=width, namespaces=namespaces)]
    cells = [_cells(each, age=age, namespaces=namespaces) for each in rows]
    titles = header(namespaces=namespaces)
    alignment = alignment or Alignment(width)
    above = [] if alignment.widths else [titles]
    made = alignment.rows([*above, *cells], titles)
    tones = [*(Tone.FAINT for _ in above), *map(_tone, rows)]
    return [
        tuple(Span(piece.text, tone) for piece in line)
        for lines, tone in zip(made, tones, strict=True)
        for line in lines
    ]


def header(*, namespaces: bool) -> tuple[str, ...]:
    """The titles of the columns."""
    return (*(("NAMESPACE",) if namespaces else ()), *HEADER)


def _cells(each: EventRow, *, age: Callable[[str | None], str], namespaces: bool) -> tuple[str, ...]:
    seen = age(each.seen or None) + (f" (x{each.times})" if each.times > 1 else "")
    place = (each.namespace or NOTHING,) if namespaces else ()
    return (*place, seen, each.type, each.reason, each.about, each.message)


def _stacked(each: EventRow, *, age: Callable[[str | None], str], width: int, namespaces: bool) -> Iterable[Line]:
    about = f"{each.namespace}/{each.about}" if namespaces and each.namespace else each.about
    often = f" (x{each.times})" if each.times > 1 else ""
    mark = "!" if each.is_warning else " "
    yield (
        Span(f"{age(each.seen or None):>6} ", Tone.FAINT),
        Span(f"{mark} {each.reason}", _tone(each) if each.is_warning else Tone.STRONG),
        Span(f"  {about}"),
        Span(often, Tone.FAINT),
    )
    for part in wrap(each.message, max(width - 9, 20)) or ():
        yield (Span(" " * 9 + part),)


def _tone(each: EventRow) -> Tone:
    return Tone.CARE if each.is_warning else Tone.PLAIN
