"""LogOnce: the last problem of each key, so that a problem is logged when it begins or changes, not at every attempt.

A plain data structure.  It must not know the log, nor what a problem means.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class LogOnce(Generic[K]):
    """The last problem of each key that has one."""

    def __init__(self) -> None:
        self._known: dict[K, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def is_new(self, key: K, *problem: str) -> bool:
        """Whether the problem differs from the last one of the key; it is the last one from now on."""
        known, self._known[key] = self._known.get(key), problem
        return known != problem

    def clear(self, key: K) -> None:
        """Forget the problem of a key, which has none; the same one would be new again."""
        self._known.pop(key, None)
