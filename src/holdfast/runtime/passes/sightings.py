"""Sightings: when this process first saw an event whose time, by another machine's clock, was still to come.

Nodes have clocks of their own.  One that is an hour ahead says that a pod became ready in an hour, and what waits
for a time after that would wait for an hour longer.  An event that has been seen has happened: if its time is still to
come, it counts from when it was first seen, by our clock, and goes on doing so when its time has come.

A new process sees everything for the first time.  This module must not know what happens to whom.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from holdfast.runtime.recent import Recent

_REMEMBERED: Final = 10_000


class Sightings:
    """Events that were seen before their time."""

    def __init__(self) -> None:
        self._first: Recent[tuple[str, datetime], datetime] = Recent(_REMEMBERED)

    def at(self, now: datetime) -> Sight:
        """What is seen now."""
        return Sight(self._first, now)


class Sight:
    """What is seen at one moment: the time of an event by our clock."""

    def __init__(self, first: Recent[tuple[str, datetime], datetime], now: datetime) -> None:
        self._first = first
        self._now = now

    def __call__(self, uid: str, said: datetime) -> datetime:
        """The time of an event, by the identity of what it happened to and the time that is said."""
        known, now = self._first.get((uid, said)), self._now
        if known is None and said > now:
            known = now
            self._first.put((uid, said), now)
        # A clock that was set back after the sighting must not make it one that is still to come.
        return said if known is None else min(known, now)

    def corrected(self, events: Iterable[tuple[str, datetime | None]]) -> dict[str, datetime]:
        """By identity, the times of the events that count from another time than is said."""
        now, remembers = self._now, bool(self._first)
        # Where all clocks agree, which is usual, nothing has to be looked up.
        doubtful = [(uid, said) for uid, said in events if said is not None and (remembers or said > now)]
        found = ((uid, said, self(uid, said)) for uid, said in doubtful)
        return {uid: seen for uid, said, seen in found if seen != said}
