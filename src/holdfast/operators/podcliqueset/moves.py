"""The next move of an update, of a PodClique's pods or of a scaling group's replicas.

What moves and what is kept of it differ; that something is made, taken down, waited
for or blocked does not.  This module must not know how a move is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from holdfast.kernel.reasons import Because


class Kept(Protocol):
    """What is kept of an update."""

    @property
    def update_ended_at(self) -> str | None: ...


P = TypeVar("P", bound=Kept)
T = TypeVar("T")


# Without slots: a frozen class that has them cannot be made through an alias that says its types.
@dataclass(frozen=True, kw_only=True)
class Move(Generic[P, T]):
    """
    progress  what is kept of it; None where there is nothing to tell
    create    how many are made beyond those that are there
    delete    those that are taken down
    blocked   what to change, if it cannot go on
    until     when to look again though nothing changes
    """

    progress: P | None
    because: Because
    create: int = 0
    delete: tuple[T, ...] = ()
    blocked: str = ""
    until: datetime | None = None

    @property
    def running(self) -> bool:
        return self.progress is not None and self.progress.update_ended_at is None
