"""Indexes: the objects that have a value, found without a scan.

Most values of most indexes belong to one object (a pod's own name as a label), so
`InvertedIndex` stores a single object without a set.  `OrderedIndex` keeps the objects of
a value in the order of their keys, where all of them are asked for again and again: those
of an owner, in each of its passes.
This module must not know what the values mean, nor where they come from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final

from holdfast.client.objects import Object

ORDER: Final[Any] = attrgetter("meta.namespace", "meta.name")
"""By what objects are put in the order of their keys."""


class InvertedIndex:
    """The objects of each value, by identity: one version of one object is one entry."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, Object | set[Object]] = {}

    def add(self, value: str, obj: Object) -> None:
        held = self._entries.get(value)
        if held is None:
            self._entries[value] = obj
        elif isinstance(held, set):
            held.add(obj)
        elif held is not obj:
            self._entries[value] = {held, obj}

    def remove(self, value: str, obj: Object) -> None:
        held = self._entries.get(value)
        if held is obj:
            del self._entries[value]
        elif isinstance(held, set):
            held.discard(obj)
            if not held:
                del self._entries[value]

    def swap(self, value: str, old: Object, new: Object) -> None:
        """Put an object in the place of an earlier version of it."""
        held = self._entries.get(value)
        if isinstance(held, set):
            held.discard(old)
            held.add(new)
        else:
            self._entries[value] = new

    def find(self, value: str) -> Iterable[Object]:
        held = self._entries.get(value)
        if held is None:
            return ()
        return held if isinstance(held, set) else (held,)

    def count(self, value: str) -> int:
        held = self._entries.get(value)
        if held is None:
            return 0
        return len(held) if isinstance(held, set) else 1

    def __len__(self) -> int:
        """How many values there are."""
        return len(self._entries)


class OrderedIndex:
    """The objects of each value, in the order of their keys; of one key, there is one object."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, list[Object]] = {}

    def add(self, value: str, obj: Object) -> None:
        held = self._entries.setdefault(value, [])
        place = bisect_left(held, ORDER(obj), key=ORDER)
        if place == len(held) or held[place] is not obj:
            held.insert(place, obj)

    def remove(self, value: str, obj: Object) -> None:
        held = self._entries.get(value, [])
        place = bisect_left(held, ORDER(obj), key=ORDER)
        if place < len(held) and held[place] is obj:
            del held[place]
            if not held:
                del self._entries[value]

    def swap(self, value: str, old: Object, new: Object) -> None:
        """Put an object in the place of an earlier version of it, which has its key."""
        held = self._entries[value]
        held[bisect_left(held, ORDER(old), key=ORDER)] = new

    def find(self, value: str) -> tuple[Object, ...]:
        return tuple(self._entries.get(value, ()))

    def __len__(self) -> int:
        """How many values there are."""
        return len(self._entries)
