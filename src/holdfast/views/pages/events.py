"""The Events of an object on its page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.views.events import how_often, last_seen
from holdfast.views.pages.sections import Section, Wire


class EventView(Section, frozen=True, kw_only=True):
    """An Event, or several that are the same."""

    id: str
    warning: bool = False
    reason: str = ""
    message: str = ""
    by: str = ""
    first: str | None = None
    last: str | None = None
    count: int = 1


MOST_EVENTS: Final = 200


def events(found: Iterable[Wire]) -> tuple[EventView, ...]:
    """Events, the latest first."""
    made = sorted(map(_event, found), key=lambda each: (each.last or "", each.id), reverse=True)
    return tuple(made[:MOST_EVENTS])


def _event(wire: Wire) -> EventView:
    meta, source = wire.get("metadata") or {}, wire.get("source") or {}
    return EventView(
        id=str(meta.get("name", "")),
        warning=wire.get("type") == "Warning",
        reason=str(wire.get("reason") or ""),
        message=str(wire.get("message") or wire.get("note") or ""),
        by=str(wire.get("reportingComponent") or source.get("component") or ""),
        first=wire.get("firstTimestamp") or wire.get("eventTime") or meta.get("creationTimestamp"),
        last=last_seen(wire),
        count=how_often(wire),
    )
