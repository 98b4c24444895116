"""The update of a part of a PodCliqueSet: what the engine is asked for, and what the status keeps of its answer.

A part is a PodClique, whose replicas are pods, or a scaling group, whose replicas are
sets of PodCliques.  The engine (`kernel.stepping`) decides every start and every stop of
both.  Pure.  This module must not know how a replica is started or stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from holdfast.kernel import floors
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.floors import Floor
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.reasons import Because
from holdfast.kernel.rollout import Rollout
from holdfast.kernel.stepping import Step
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.kinds.model import FloorStatus
from holdfast.meta import durations
from holdfast.runtime.status import wire

UNREADY_AT_A_TIME: Final = 4
"""Of the replicas that run and are not ready, an update replaces one in this many at a time."""

_LONGEST: Final = 2**31
"""Seconds; a longer time can be written where no schema was checked, and cannot be computed with."""

# --- what the engine is asked for


def limits_of(replicas: int, minimum: int, bounds: RollingUpdate | None) -> Limits:
    """The limits of a part: one replica may be down and none may surge, unless the user set other bounds.

    Where minAvailable needs all replicas and none may surge, the floor is lowered by one, which is among the warnings.
    """
    surge, unavailable = (0, 1) if bounds is None else (bounds.max_surge, bounds.max_unavailable)
    if surge is None and unavailable is None:
        unavailable = 1
    minimum = min(minimum, replicas)
    return resolve(replicas, max_surge=surge, max_unavailable=unavailable, min_available=minimum, may_lower=True)


def rollout_of(limits: Limits, bounds: RollingUpdate | None, *, target: str, replacing: bool) -> Rollout:
    """The rolling update of a part; `replacing` while replicas of an earlier template are replaced."""
    gently = replacing and bounds is None
    return Rollout(
        limits=limits,
        target=target,
        deadline=durations.parse(bounds.progress_deadline) if bounds is not None and bounds.progress_deadline else None,
        unready_at_a_time=max(1, ceil(limits.replicas / UNREADY_AT_A_TIME)) if gently else None,
    )


def min_ready(bounds: RollingUpdate | None) -> timedelta:
    """How long a replica must be ready to be available."""
    return timedelta(seconds=min(bounds.min_ready_seconds or 0, _LONGEST) if bounds is not None else 0)


# --- what the status keeps


class Progress(Protocol):
    """The progress of an update in a status."""

    @property
    def update_ended_at(self) -> str | None: ...


P = TypeVar("P", bound=Progress)


@dataclass(frozen=True, kw_only=True)
class Update(Generic[P]):
    """The next step of a part, and its update.

    step      what the engine decided
    progress  the running or last update; None before the first one
    because   what the update does or waits for, or why none is running
    began     the update begins in this pass
    """

    step: Step
    progress: P | None
    because: Because
    began: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        """The replicas to stop now; none in the pass that begins the update: it is recorded first, to be continued."""
        return () if self.began else self.step.stops

    @property
    def running(self) -> bool:
        return self.progress is not None and self.progress.update_ended_at is None

    @property
    def verdict(self) -> Verdict:
        """The condition `UpdateInProgress`: what the update does, waits for, or needs to go on."""
        blocked = self.step.blocked
        message = self.because.message + (f"; {blocked.remedy}" if self.running and blocked is not None else "")
        return (Verdict.true if self.running else Verdict.false)(self.because.code, message)


def is_over(step: Step, *, unschedulable: int) -> bool:
    """Whether every replica has the wanted template and is available.

    Replicas that cannot be scheduled are not waited for while minAvailable others are available.
    """
    fleet, limits = step.fleet, step.rollout.limits
    return step.complete or (
        not fleet.old.live
        and fleet.new.live == limits.replicas
        and 0 < fleet.new.unready == unschedulable
        and fleet.new.available >= limits.min_available
    )


def floor_of(
    before: FloorStatus | None, update: Update[P], *, available: int, again: bool = False
) -> tuple[dict[str, Any], dict[str, Verdict]]:
    """`status.floor` of a part, and the conditions about it; `again` where the part was deleted and grows again.

    The floor is minAvailable.  Where the update has to lower it, it is lowered from the start of the update until
    minAvailable replicas are available again.
    """
    limits, known = update.step.rollout.limits, None if before is None or again else _known(before)
    lowered = update.running or (known is not None and known.lowered > 0 and available < limits.min_available)
    promised = msgspec.structs.replace(
        limits,
        floor=min(limits.floor, limits.min_available) if lowered else limits.min_available,
        warnings=limits.warnings if lowered else (),
    )
    floor = floors.observed(known, limits=promised, available=available, afresh=update.began)
    return wire(floor), floors.verdicts(floor, promised)


def _known(before: FloorStatus) -> Floor:
    return Floor(
        required=before.required or 0,
        available=before.available or 0,
        most=before.most or 0,
        lowest=before.lowest,
        lowered=before.lowered or 0,
    )
