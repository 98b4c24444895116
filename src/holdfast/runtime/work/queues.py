"""The queue of one controller: which key is worked on next, and when.

- A key is in the queue once, however often it was added, at the earliest time that was asked for.
- A key that is being worked on is never handed out a second time; what is added meanwhile waits for its end.
- A key can be withheld, until what it waits for has been seen.
- Failures in a row are counted here, so that their waits grow; a change of the object resets the count.
- Keys that changed run before keys that are only looked at again; one run in eight is of the latter.
- Among equals, the key that was due first runs first.

A plain data structure: time is an argument, in seconds of any clock that does not
go backwards.  It must not know tasks, timers, or what a key means.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

NEVER: Final = float("inf")


TURNS: Final = 8
"""Of so many keys that are taken, one is looked at that nothing changed for, if there is one."""


class Priority(IntEnum):
    """What goes first."""

    CHANGED = 0
    LOOKED_AT = 1


_CHANGES_FIRST: Final = (Priority.CHANGED, Priority.LOOKED_AT)
_LOOKS_FIRST: Final = (Priority.LOOKED_AT, Priority.CHANGED)


@dataclass(slots=True)
class _Entry:
    """What is known of a key that is queued, running, withheld or failing."""

    due: float = NEVER
    """When it is to run; NEVER, if no run was asked for."""
    priority: Priority = Priority.LOOKED_AT
    since: float = 0.0
    """When it was asked for first, of the runs that are outstanding."""
    failures: int = 0
    running: bool = False
    holds: int = 0
    """On how many things it waits before it may run."""
    ticket: int = 0
    """The one place in the heap that is valid; earlier ones are left there and skipped."""

    @property
    def idle(self) -> bool:
        return self.due == NEVER and not (self.failures or self.running or self.holds)


@dataclass(slots=True)
class Queue(Generic[K]):
    """Keys that are to be worked on."""

    _entries: dict[K, _Entry] = field(default_factory=dict)
    _heap: list[tuple[float, int, K]] = field(default_factory=list)
    """Keys that become due at a time."""
    _due: dict[Priority, list[tuple[float, int, K]]] = field(default_factory=lambda: {each: [] for each in Priority})
    """Keys that are due, of each priority by time."""
    _turn: int = 0
    """How many keys were taken since one that was merely to be looked at."""
    _tickets: int = 0
    running: int = 0

    def __len__(self) -> int:
        """How many keys are to run, now or later, running ones aside."""
        return sum(1 for entry in self._entries.values() if entry.due != NEVER and not entry.running)

    def depth(self, now: float) -> int:
        """How many keys could run now but for a free worker."""
        return sum(1 for entry in self._entries.values() if entry.due <= now and not entry.running and not entry.holds)

    def add(self, key: K, now: float, *, at: float | None = None, priority: Priority = Priority.CHANGED) -> bool:
        """Have a key run: now, or not before `at`.  An earlier time that was asked for stays.

        Returns whether workers have to look at the queue again: not where the key is queued already, runs or is held.
        """
        due = now if at is None else at
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        asked_for = entry.due != NEVER
        if asked_for and entry.due <= due and entry.priority <= priority:
            return False
        entry.since = min(entry.since, due) if asked_for else due
        entry.due = min(entry.due, due)
        entry.priority = min(entry.priority, priority) if asked_for else priority
        return self._place(key, entry)

    def changed(self, key: K, now: float) -> bool:
        """An object of the key changed: earlier failures say nothing about it any more."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.failures = 0
        return self.add(key, now)

    def touched(self, key: K, now: float) -> bool:
        """A write of our own was seen: the key runs again, but a wait after failures is not cut short."""
        entry = self._entries.get(key)
        return (entry is None or not entry.failures) and self.add(key, now)

    def take(self, now: float) -> K | None:
        """The next key that is due; it runs from now on, until `done`."""
        while self._heap and self._heap[0][0] <= now:
            due, ticket, key = heapq.heappop(self._heap)
            if (entry := self._able(ticket, key)) is not None:
                heapq.heappush(self._due[entry.priority], (due, ticket, key))
        for priority in _LOOKS_FIRST if self._turn >= TURNS - 1 else _CHANGES_FIRST:
            waiting = self._due[priority]
            while waiting:
                _, ticket, key = heapq.heappop(waiting)
                if (entry := self._able(ticket, key)) is not None:
                    entry.running, entry.due = True, NEVER
                    self.running += 1
                    self._turn = self._turn + 1 if priority is Priority.CHANGED else 0
                    return key
        return None

    def waited(self, key: K, now: float) -> float:
        """How long a key that was just taken had been due."""
        return max(now - self._entries[key].since, 0.0)

    def done(self, key: K, *, failed: bool = False) -> int:
        """A key's run has ended; returns how many failures in a row that makes."""
        entry = self._entries[key]
        entry.running = False
        entry.failures = entry.failures + 1 if failed else 0
        self.running -= 1
        self._rejoin(key, entry)
        return entry.failures

    def hold(self, key: K) -> None:
        """Keep a key from running until it is released, as often as it was held."""
        self._entries.setdefault(key, _Entry()).holds += 1

    def release(self, key: K) -> bool:
        """Let a key run again; returns whether workers have to look at the queue again, as `add` does."""
        entry = self._entries[key]
        entry.holds -= 1
        return self._rejoin(key, entry)

    def next_due(self) -> float:
        """When the next key can be taken, if nothing else happens: a past time means now."""
        for heap in (*self._due.values(), self._heap):
            while heap:
                if (entry := self._able(*heap[0][1:])) is not None:
                    return entry.due
                heapq.heappop(heap)
        return NEVER

    def _able(self, ticket: int, key: K) -> _Entry | None:
        """The entry that a place in a heap stands for, if it still does and the key could run."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.ticket == ticket and not (entry.running or entry.holds) else None

    def _rejoin(self, key: K, entry: _Entry) -> bool:
        """Queue again what was asked for while the key could not run, or forget the key."""
        if entry.idle:
            del self._entries[key]
            return False
        return entry.due != NEVER and self._place(key, entry)

    def _place(self, key: K, entry: _Entry) -> bool:
        if entry.running or entry.holds:
            return False
        self._tickets += 1
        entry.ticket = self._tickets
        heapq.heappush(self._heap, (entry.due, entry.ticket, key))
        return True
