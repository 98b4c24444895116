"""Phases: one word for people, derived from facts by a ladder.

A `Ladder` names the phase of a world; `Transitions` says which phase may follow
which.  Both are data that fits on a screen and both are checked when they are
built, so a typing error fails at import and not in a cluster.  The module must
not know any operator's phases, and nothing may steer by the phase it derives.

    >>> ladder = Ladder((("Ready", lambda ready: ready), ("Pending", always)))
    >>> ladder.phase(False)
    'Pending'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

World = TypeVar("World")
Phase = TypeVar("Phase", bound=str)


def always(_: object) -> bool:
    """The predicate of the last rung: what the phase is when nothing else can be said."""
    return True


@dataclass(frozen=True, slots=True)
class Ladder(Generic[World, Phase]):
    """Rungs in order of precedence; the first whose predicate holds names the phase.

    The last rung, and no other, is `always`: a world without a phase and a rung
    that can never be reached are both refused here.
    """

    rungs: tuple[tuple[Phase, Callable[[World], bool]], ...]

    def __post_init__(self) -> None:
        if not self.rungs or self.rungs[-1][1] is not always:
            raise ValueError("the last rung of a ladder must be (phase, always), or some world would have no phase")
        for phase, predicate in self.rungs[:-1]:
            if predicate is always:
                raise ValueError(f"rung {phase} is `always` but not the last: the rungs below it can never match")

    def phase(self, world: World) -> Phase:
        """The phase of the first rung that matches."""
        return next(phase for phase, holds in self.rungs if holds(world))


class IllegalTransition(Exception):
    """A phase followed another although the table has no such edge."""

    def __init__(self, old: str | None, new: str, *, allowed: Iterable[str]) -> None:
        self.old = old
        self.new = new
        self.allowed = tuple(sorted(allowed))
        came = f"phase may not go from {old} to {new}" if old is not None else f"phase may not start as {new}"
        may = ", ".join(self.allowed) or f"nothing, because {old} is final or not in the table"
        super().__init__(f"{came}; allowed: {may}. Correct the rung of the ladder, or add the edge")


@dataclass(frozen=True, slots=True)
class Transitions(Generic[Phase]):
    """Which phase may follow which: a row for every phase, an empty row for a final one.

    Staying is always legal.  `start` names the phases an object may begin in.
    """

    table: Mapping[Phase, Iterable[Phase]]
    start: tuple[Phase, ...]

    def __post_init__(self) -> None:
        table = MappingProxyType({phase: frozenset(following) for phase, following in self.table.items()})
        object.__setattr__(self, "table", table)
        named = {*self.start, *(phase for following in table.values() for phase in following)}
        if unknown := sorted(named - set(table)):
            raise ValueError(f"no row for {', '.join(unknown)}: correct the name, or add a row (empty if final)")
        if unreachable := sorted(set(table) - self._reachable()):
            raise ValueError(f"no path from the start to {', '.join(unreachable)}: add an edge, or remove the row")

    def check(self, old: Phase | None, new: Phase) -> None:
        """Raise `IllegalTransition` unless `new` may follow `old`; `None` is an object that has no phase yet."""
        if old == new and new in self.table:
            return
        allowed = frozenset(self.start if old is None else self.table.get(old, ()))
        if new not in allowed:
            raise IllegalTransition(old, new, allowed=allowed)

    def _reachable(self) -> set[Phase]:
        seen: set[Phase] = set()
        frontier = list(self.start)
        while frontier:
            phase = frontier.pop()
            if phase not in seen:
                seen.add(phase)
                frontier += self.table[phase]
        return seen
