"""Troubles: what is wrong with whom, so that each is told when it begins or changes, and not at every attempt.

A plain data structure.  It must not know who is told, nor what a trouble means.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Troubles(Generic[K]):
    """The last trouble of everybody who has one."""

    def __init__(self) -> None:
        self._known: dict[K, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def is_news(self, whose: K, *what: str) -> bool:
        """Whether a trouble is another one than before; it is known from now on."""
        known, self._known[whose] = self._known.get(whose), what
        return known != what

    def over(self, whose: K) -> None:
        """All is well; the same trouble would be news again."""
        self._known.pop(whose, None)
