"""Committed objects in memory, in order, and the stage on which changes to them are decided.

Pure data structures: this module does not wait, write to disk or notify watches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import NamedTuple

from holdfast.apiserver.storage.entries import Change, Entry, Event, Key, outcome


class _Shelf(NamedTuple):
    """The objects of one resource in one namespace, and their names in order."""

    names: list[str]
    entries: dict[str, Entry]


class Shelves:
    """Objects by resource, namespace and name."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._resources: dict[str, dict[str, _Shelf]] = {}
        for entry in entries:
            self._put(entry)

    def get(self, key: Key) -> Entry | None:
        resource, namespace, name = key
        shelf = self._resources.get(resource, {}).get(namespace)
        return shelf.entries.get(name) if shelf else None

    def all(self, resource: str, namespace: str | None) -> list[Entry]:
        """The objects of a resource, in one namespace or in all, sorted by namespace and name."""
        return [shelf.entries[name] for shelf in self._chosen(resource, namespace) for name in shelf.names]

    def every(self) -> list[Entry]:
        """All objects of all resources."""
        return [entry for resource in sorted(self._resources) for entry in self.all(resource, None)]

    def count(self, resource: str, namespace: str | None) -> int:
        return sum(len(shelf.names) for shelf in self._chosen(resource, namespace))

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.type == "DELETED":
                self._remove(event.entry)
            else:
                self._put(event.entry)

    def _chosen(self, resource: str, namespace: str | None) -> list[_Shelf]:
        shelves = self._resources.get(resource, {})
        if namespace is None:
            return [shelves[name] for name in sorted(shelves)]
        return [shelves[namespace]] if namespace in shelves else []

    def _put(self, entry: Entry) -> None:
        shelf = self._resources.setdefault(entry.resource, {}).setdefault(entry.namespace, _Shelf([], {}))
        if entry.name not in shelf.entries:
            insort(shelf.names, entry.name)
        shelf.entries[entry.name] = entry

    def _remove(self, entry: Entry) -> None:
        namespaces = self._resources[entry.resource]
        shelf = namespaces[entry.namespace]
        del shelf.entries[entry.name]
        del shelf.names[bisect_left(shelf.names, entry.name)]
        if not shelf.names:
            del namespaces[entry.namespace]


class Stage:
    """Writes that are decided one after the other, each as if those before it were committed.

    read       the committed objects
    revision   the version that they are at; the events follow it without a gap
    """

    def __init__(self, read: Callable[[Key], Entry | None], *, revision: int, at: int) -> None:
        self._read = read
        self._revision = revision
        self._at = at
        self._heads: dict[Key, Entry | None] = {}
        self.events: list[Event] = []

    def take(self, changes: Iterable[Change]) -> tuple[Entry, ...]:
        """Decide one write; if it is `Stale`, none of its changes is staged."""
        heads: dict[Key, Entry | None] = {}
        events: list[Event] = []
        for change in changes:
            key = change.resource, change.namespace, change.name
            layer = heads if key in heads else self._heads
            found = layer[key] if key in layer else self._read(key)
            rv = self._revision + len(self.events) + len(events) + 1
            event = outcome(change, found, rv=rv, at=self._at)
            heads[key] = None if event.type == "DELETED" else event.entry
            events.append(event)
        self._heads |= heads
        self.events += events
        return tuple(event.entry for event in events)
