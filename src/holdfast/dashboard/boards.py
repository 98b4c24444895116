"""The board: a row for each object of the cluster, kept up to date, and read by any number of viewers.

Each change gets the next number.  A viewer asks for what changed after the number that it
has seen last, so a slow viewer needs no queue of its own: it gets the latest row of each
object once, however often it changed meanwhile.  The terminal reads the same board.

This module must not know how rows travel to viewers, nor any kind.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta import times
from holdfast.operators.shown import Reference, ShownKind, owner_link
from holdfast.runtime.controllers import Change
from holdfast.views import overview
from holdfast.views.overview import Counts, Health, Row
from holdfast.views.pages.sections import Link
from holdfast.views.pages.timeline import Sample

Subscribe = Callable[[Resource, Change], Callable[[], None]]
"""Calls back for every change of a resource, until the function that it returns is called."""

MOST_GONE: Final = 10_000
"""How many deletions are remembered; a viewer that missed more of them gets all rows again."""

MOST_SAMPLES: Final = 240
"""How many changes of its numbers are kept of an object."""

MOST_LINKS: Final = 200


@dataclass(slots=True)
class Entry:
    """An object on the board.

    own      its row by itself; `row` has the floors of its parts, where it has none itself
    encoded  the row as JSON, written once for all viewers
    number   the number of its last change
    """

    object: Object
    kind: ShownKind
    own: Row
    row: Row
    encoded: bytes
    number: int
    links: tuple[tuple[Reference, Link], ...] = ()
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed after a number; with `reset`, everything there is.

    rows  rows as JSON
    gone  the ids of objects that are deleted
    """

    number: int
    rows: list[bytes]
    gone: list[str]
    reset: bool


class Board:
    """The rows of all objects that one identity may see."""

    def __init__(self, subscribe: Subscribe, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.epoch = secrets.token_hex(8)
        """Numbers of changes mean something only together with it: another board counts from the beginning."""
        self._subscribe = subscribe
        self._now = now
        self._entries: dict[str, Entry] = {}
        """By id, in the order of their last changes."""
        self._by_uid: dict[str, str] = {}
        self._parts: dict[str, set[str]] = {}
        """The ids of the objects that the object with a UID controls."""
        self._referrers: dict[str, dict[str, str]] = {}
        """By the id of an object: the ids of those that refer to it, and what they are to it."""
        self._gone: deque[tuple[int, str]] = deque()
        self._forgotten = 0
        """The number up to which deletions are no longer remembered."""
        self._number = 0
        self._counts = dict.fromkeys(Health, 0)
        self._waiting: set[asyncio.Event] = set()
        self._stops: dict[Resource, Callable[[], None]] = {}
        self._kinds: dict[Resource, ShownKind] = {}

    # Following.

    def follow(self, kinds: Iterable[ShownKind]) -> None:
        """Show the objects of these kinds; those that are shown already stay."""
        for kind in kinds:
            if kind.resource not in self._stops:
                self._kinds[kind.resource] = kind
                self._stops[kind.resource] = self._subscribe(kind.resource, partial(self._changed, kind))

    def close(self) -> None:
        for stop in self._stops.values():
            stop()
        self._stops.clear()

    @property
    def kinds(self) -> Mapping[Resource, ShownKind]:
        """The kinds that are shown."""
        return self._kinds

    def _changed(self, kind: ShownKind, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or old.uid != new.uid):
            self._drop(_id(kind, old))
        if new is not None:
            self._put(kind, new)
        self._wake()

    def _put(self, kind: ShownKind, obj: Object) -> None:
        own = kind.row(obj)
        id = own.id
        known = self._entries.get(id)
        entry = known or Entry(obj, kind, own, own, b"", 0)
        entry.object, entry.own = obj, own
        if known is None:
            self._entries[id] = entry
            self._by_uid[obj.uid] = id
            self._counts[own.health] += 1
            if (owner := obj.controller) is not None:
                self._parts.setdefault(owner.uid, set()).add(id)
        elif known.row.health is not own.health:
            self._counts[known.row.health] -= 1
            self._counts[own.health] += 1
        self._renew(id, entry)
        self._refer(id, entry, kind.links(obj))

    def _drop(self, id: str) -> None:
        entry = self._entries.pop(id, None)
        if entry is None:
            return
        self._counts[entry.row.health] -= 1
        self._by_uid.pop(entry.object.uid, None)
        self._refer(id, entry, ())
        self._number += 1
        self._gone.append((self._number, id))
        if len(self._gone) > MOST_GONE:
            self._forgotten = self._gone.popleft()[0]
        if (owner := entry.object.controller) is not None:
            parts = self._parts.get(owner.uid, set())
            parts.discard(id)
            if not parts:
                self._parts.pop(owner.uid, None)
            self._renew_owner(owner.uid)

    def _renew(self, id: str, entry: Entry) -> None:
        """Write the row again, where it differs, and that of the owner, which may show this one's floor."""
        row = self._with_parts(entry)
        if row == entry.row and entry.encoded:
            return
        floor_moved = (row.floor, row.floors) != (entry.row.floor, entry.row.floors) or not entry.encoded
        self._number += 1
        entry.row, entry.number, entry.encoded = row, self._number, msgspec.json.encode(row)
        self._sample(entry)
        # The latest change is the last entry.
        self._entries[id] = self._entries.pop(id)
        if floor_moved and (owner := entry.object.controller) is not None:
            self._renew_owner(owner.uid)

    def _renew_owner(self, uid: str) -> None:
        id = self._by_uid.get(uid)
        if id is not None and self._entries[id].own.floor is None:
            self._renew(id, self._entries[id])

    def _with_parts(self, entry: Entry) -> Row:
        """The row of an object, with the floors of its parts where it has none."""
        row, parts = entry.own, self._parts.get(entry.object.uid)
        if row.floor is not None or not parts:
            return row
        found = [self._entries[part].row for part in parts if self._entries[part].row.floor is not None]
        floors = [each.floor for each in found if each.floor is not None]
        worst = min(floors, key=lambda floor: floor.margin, default=None)
        return msgspec.structs.replace(row, floor=worst, floors=sum(each.floors for each in found))

    def _sample(self, entry: Entry) -> None:
        row = entry.row
        if row.ready is None:
            return
        floor = row.floor.floor if row.floor is not None and row.floors == 1 else 0
        numbers = (row.ready, row.updated or 0, row.desired or 0, floor)
        last = entry.samples[-1] if entry.samples else None
        if last is None or (last.ready, last.updated, last.desired, last.floor) != numbers:
            entry.samples.append(Sample(times.format(self._now()), *numbers))

    def _refer(self, id: str, entry: Entry, links: tuple[tuple[Reference, Link], ...]) -> None:
        if links == entry.links:
            return
        for _, link in entry.links:
            referrers = self._referrers.get(_linked(link), {})
            referrers.pop(id, None)
            if not referrers:
                self._referrers.pop(_linked(link), None)
        for reference, link in links:
            self._referrers.setdefault(_linked(link), {})[id] = reference.back
        entry.links = links

    # Reading.

    @property
    def number(self) -> int:
        return self._number

    @property
    def counts(self) -> Counts:
        counts = self._counts
        return Counts(trouble=counts[Health.TROUBLE], progressing=counts[Health.PROGRESSING], good=counts[Health.GOOD])

    def rows(self) -> list[Row]:
        """All rows, trouble first."""
        return overview.ordered(each.row for each in self._entries.values())

    def entry(self, id: str) -> Entry | None:
        return self._entries.get(id)

    def since(self, number: int) -> Delta:
        """What changed after a number; everything, where that is not known any more."""
        if number <= 0 or number < self._forgotten or number > self._number:
            return Delta(self._number, [each.encoded for each in self._entries.values()], [], True)
        rows: list[bytes] = []
        for entry in reversed(self._entries.values()):
            if entry.number <= number:
                break
            rows.append(entry.encoded)
        gone = []
        for at, id in reversed(self._gone):
            if at <= number:
                break
            if id not in self._entries:
                gone.append(id)
        return Delta(self._number, rows, gone, False)

    def links(self, id: str) -> tuple[Link, ...]:
        """The objects that own an object, that it refers to, that belong to it, and that refer to it."""
        entry = self._entries.get(id)
        if entry is None:
            return ()
        found = list(self.owners(entry.object))
        found += [link for _, link in entry.links]
        found += [_link("part", self._entries[part].row) for part in sorted(self._parts.get(entry.object.uid, ()))]
        referring = self._referrers.get(id, {})
        found += [_link(referring[each], self._entries[each].row) for each in sorted(referring)]
        unique = {(each.resource, each.namespace, each.name): each for each in reversed(found)}
        return tuple(each for each in found if unique[each.resource, each.namespace, each.name] is each)[:MOST_LINKS]

    def owners(self, obj: Object) -> tuple[Link, ...]:
        """The owners of an object, which need not be on the board itself."""
        resources = {(each.group, each.kind): each for each in self._kinds}
        return tuple(owner_link(owner, obj, resources) for owner in obj.meta.owner_references)

    async def change(self, number: int) -> None:
        """Return when something has changed after a number."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            while self._number <= number:
                event.clear()
                await event.wait()
        finally:
            self._waiting.discard(event)

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()


def _id(kind: ShownKind, obj: Object) -> str:
    return overview.identity(kind.name, obj.key.namespace, obj.key.name)


def _linked(link: Link) -> str:
    return overview.identity(link.resource, link.namespace, link.name)


def _link(relation: str, row: Row) -> Link:
    return Link(relation=relation, kind=row.kind, resource=row.resource, namespace=row.namespace, name=row.name)
