"""Watermarks: callbacks that wait until a write has been seen in the store.

A version is seen once it, or a later one, has been processed.  Versions of one
resource are whole numbers that grow, so the callbacks are kept in the order of their
versions.  Where a server's versions are not numbers, and where an object is to be
deleted, the object itself is compared instead.  This module must not know stores, nor
what waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count

from holdfast.client.objects import Object
from holdfast.meta.objects import Key

Callback = Callable[[], None]
Sight = Callable[[Object | None], bool]
"""Whether an object that is held (None if there is none) is what a callback waits for."""


def number(version: str) -> int | None:
    """A version as a number that can be compared, if it is one."""
    return int(version) if version.isascii() and version.isdigit() else None


class Watermarks:
    """Callbacks that wait, each called once."""

    __slots__ = ("_by_key", "_by_version", "_order")

    def __init__(self) -> None:
        self._by_version: list[tuple[int, int, Callback]] = []
        self._by_key: dict[Key, list[tuple[Sight, Callback]]] = {}
        self._order = count()

    def await_version(self, version: int, callback: Callback) -> None:
        heapq.heappush(self._by_version, (version, next(self._order), callback))

    def await_object(self, key: Key, sight: Sight, callback: Callback) -> None:
        self._by_key.setdefault(key, []).append((sight, callback))

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of objects that callbacks wait for."""
        return tuple(self._by_key)

    def reach(self, version: int) -> Iterator[Callback]:
        """The callbacks of versions up to this one, in the order of versions and then of registration."""
        while self._by_version and self._by_version[0][0] <= version:
            yield heapq.heappop(self._by_version)[2]

    def see(self, key: Key, obj: Object | None) -> list[Callback]:
        """The callbacks that an object as it is now satisfies."""
        waiting = self._by_key.pop(key, None)
        if waiting is None:
            return []
        still = [(sight, callback) for sight, callback in waiting if not sight(obj)]
        if still:
            self._by_key[key] = still
        return [callback for sight, callback in waiting if sight(obj)]

    def forget(self) -> list[Callback]:
        """All callbacks, because what they wait for may never come."""
        callbacks = [callback for _, _, callback in sorted(self._by_version, key=lambda entry: entry[:2])]
        callbacks += [callback for waiting in self._by_key.values() for _, callback in waiting]
        self._by_version.clear()
        self._by_key.clear()
        return callbacks
