"""InvertedIndex: the objects that have a value, found without a scan.

Most values of most indexes belong to one object (a pod's own name as a label, an
owner of one pod), so a single object is stored without a set.
This module must not know what the values mean, nor where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.client.objects import Object


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
