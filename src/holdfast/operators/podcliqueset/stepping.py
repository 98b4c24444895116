"""One step of an update that somebody bounded: the kernel's engine over pods, or over replicas of a scaling group.

Places have indices, and surge takes the ones beyond the desired number.  When nothing
outdated is left, what stands beyond makes way, above the same floor, so that in the
end the indices are the first ones again.

Pure.  This module must not know pods, nor how anything is started or stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel import fleet as fleets
from holdfast.kernel import rollout as engine
from holdfast.kernel.fleet import Replica, State
from holdfast.kernel.guard import guard
from holdfast.kernel.limits import resolve
from holdfast.kernel.reasons import Because
from holdfast.kernel.rollout import Blocked, Done, Hold, Kind, Progress, Rollout, Start, Stop, Wait
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.meta import durations

_STATES: Final = {
    Kind.DEAD: frozenset({State.DEAD}),
    Kind.UNREADY: frozenset({State.UNREADY}),
    Kind.READY: frozenset({State.SETTLING, State.AVAILABLE}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next, and why.

    blocked  what to change, if it cannot go on
    until    when to look again though nothing changes
    """

    because: Because
    start: int = 0
    stop: tuple[str, ...] = ()
    done: bool = False
    blocked: str = ""
    until: datetime | None = None
    progressed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What an update has to keep: so many replicas, of which so many must stay available."""

    replicas: int
    minimum: int
    wish: RollingUpdate

    def rollout(self, target: str) -> Rollout:
        wish = self.wish
        limits = resolve(
            self.replicas,
            max_surge=wish.max_surge,
            max_unavailable=wish.max_unavailable,
            min_available=min(self.minimum, self.replicas),
        )
        deadline = None if wish.progress_deadline is None else durations.parse(wish.progress_deadline)
        return Rollout(limits=limits, target=target, deadline=deadline)

    @property
    def min_ready(self) -> timedelta:
        return timedelta(seconds=self.wish.min_ready_seconds or 0)


def next_step(
    replicas: Iterable[Replica],
    target: str,
    *,
    bounds: Bounds,
    outdated_before: int,
    progressed: datetime,
    now: datetime,
) -> Step:
    """The next step; `progressed` is when it last got further, and `outdated_before` how many were outdated then."""
    placed = _leaving(tuple(replicas), target, bounds.replicas)
    rollout = bounds.rollout(target)
    counted = fleets.observe(placed, target, now=now, min_ready=bounds.min_ready, stable=False)
    further = now if counted.old.live < outdated_before else max(progressed, counted.settled_at or progressed)
    fleet = msgspec.structs.replace(counted, progressed_at=further)
    verdict = engine.decide(rollout, fleet, progress=Progress(target), now=now)
    decision = guard(verdict.decision, fleet, shape=verdict.shape)
    refusal = verdict.refusal or decision
    return Step(
        because=refusal.because,
        start=decision.count if isinstance(decision, Start) else 0,
        stop=_chosen(placed, target, decision, bounds, now) if isinstance(decision, Stop) else (),
        done=isinstance(verdict.decision, Done) and not fleet.old.live,
        blocked=refusal.remedy if isinstance(refusal, Blocked) else "",
        until=decision.until if isinstance(decision, Hold | Wait) else None,
        progressed_at=further,
    )


def _leaving(replicas: tuple[Replica, ...], target: str, size: int) -> tuple[Replica, ...]:
    """The replicas, of which those beyond the desired number leave once nothing outdated is left."""
    if any(each.revision != target and not each.terminating and not each.dead for each in replicas):
        return tuple(msgspec.structs.replace(each, ordinal=None) for each in replicas)
    return tuple(
        msgspec.structs.replace(each, ordinal=None, leaving=each.ordinal is not None and each.ordinal >= size)
        for each in replicas
    )


def _chosen(
    replicas: tuple[Replica, ...], target: str, decision: Stop, bounds: Bounds, now: datetime
) -> tuple[str, ...]:
    return fleets.choose(
        replicas,
        target,
        side=decision.side,
        states=_STATES[decision.kind],
        count=decision.count,
        now=now,
        min_ready=bounds.min_ready,
    )
