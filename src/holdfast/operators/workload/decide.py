"""What is done for a Workload next: which replicas start, which stop, and why.

The course says which revision is rolled out (`course`), the situation what its
replicas are (`replicas`).  How the fleet gets from here to there is the engine's
matter (`kernel.rollout`), and every start and stop passes its guard; what comes of it
is written (`writes`) and told (`status`).  This module puts them together; it must
not know how many replicas may be down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.kernel import rollout as engine
from holdfast.kernel.fleet import Fleet
from holdfast.kernel.guard import guard
from holdfast.kernel.limits import Limits
from holdfast.kernel.outcomes import Failure, Outcome, Permanent, soonest, until
from holdfast.kernel.planning import WorkloadSpec, rollout_of
from holdfast.kernel.reasons import Because, count
from holdfast.kernel.rollout import Blocked, Hold, OnFailure, Progress, Rollout, Verdict, Wait
from holdfast.kinds import InvalidDocument
from holdfast.kinds.cloudless.rollouts import Rollout as Wish
from holdfast.kinds.cloudless.rollouts import RolloutStatus
from holdfast.meta import amounts, times
from holdfast.operators.workload import writes
from holdfast.operators.workload.course import Course, plot
from holdfast.operators.workload.observe import Budget, Unreadable, World, is_taken, service_name
from holdfast.operators.workload.reasons import Why
from holdfast.operators.workload.replicas import Situation, situation
from holdfast.operators.workload.status import Facts, obstructed, report
from holdfast.operators.workload.validate import duration, rollout_spec
from holdfast.runtime.decisions import Decision

PROMOTED: Final = "holdfast.dev/promoted"
"""The annotation ``<revision>:<steps>``: how many steps of a rollout somebody has approved."""

PROGRESS_DEADLINE: Final = "10m"

_PROMOTION: Final = re.compile(r"([^:]+):([0-9]{1,6})")


def decide(world: World | Unreadable, now: datetime) -> Decision:
    """What to write, and what to say."""
    if isinstance(world, Unreadable):
        raise Permanent(Why.INVALID_SPEC, world.problem)
    try:
        asked = rollout_spec(world.workload)
    except InvalidDocument as error:
        raise Permanent(Why.INVALID_SPEC, str(error)) from error
    course = plot(world)
    now_there = situation(world, course, now)
    judged = judge(world, asked, now_there)
    step = guard(judged.verdict.decision, judged.fleet, shape=judged.verdict.shape)
    facts = Facts(
        world=world,
        course=course,
        rollout=judged.rollout,
        fleet=judged.fleet,
        broken=now_there.broken,
        verdict=judged.verdict,
        decision=step,
    )
    status, notices = report(facts, now)
    return Decision(
        writes=(
            *writes.records(world, course),
            *writes.services(world, course),
            *writes.steps(world, course, now_there, step=step),
        ),
        status=status,
        notices=notices,
        outcome=_outcome(now_there, step, judged.verdict.refusal),
    )


def explain(world: World | Unreadable, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass that failed: what it would have been, and what stands in the way."""
    try:
        status = decide(world, now).status
    except Permanent:
        status = None
    return obstructed(world.object, failure, now, status=status)


# --- the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the engine was asked, and what it said."""

    rollout: Rollout
    fleet: Fleet
    verdict: Verdict

    @property
    def stands_still(self) -> bool:
        return self.verdict.refusal is not None or isinstance(self.verdict.decision, Hold)


def judge(world: World, asked: WorkloadSpec, there: Situation) -> Judged:
    """The engine's verdict.

    While it gets on, a rollout keeps the size that it has: replicas that just start do little, for
    which an autoscaler would take away those that work.  Where it stands still, it follows the spec.
    """
    size = _kept(world).size if _is_under_way(world, there.course) else None
    if size is not None and 0 < asked.replicas < size:
        judged = _judged_at(size, world, asked, there)
        if not judged.stands_still:
            return judged
    return _judged_at(asked.replicas, world, asked, there)


def _judged_at(size: int, world: World, asked: WorkloadSpec, there: Situation) -> Judged:
    rollout, counted = _rollout(size, world, asked, there.course), there.fleet()
    fleet = msgspec.structs.replace(counted, progressed_at=_progressed_at(world, rollout, there, fleet=counted))
    progress, refusal = _progress(world, there.course), _refusal(world, there.course)
    if refusal is None:
        verdict = engine.decide(rollout, fleet, progress=progress, now=there.now)
    else:
        verdict = engine.hold(rollout, fleet, refusal, progress=progress, now=there.now)
    return Judged(rollout=rollout, fleet=fleet, verdict=verdict)


def _rollout(size: int, world: World, asked: WorkloadSpec, course: Course) -> Rollout:
    """What the engine is asked for."""
    wish = world.workload.spec.rollout or Wish()
    # What is returned to has been tried out: no part of the fleet stays behind, and every gate is open.
    partition = 0 if course.returning else asked.rollout.partition
    manners = msgspec.structs.replace(asked.rollout, partition=partition)
    plan = rollout_of(
        msgspec.structs.replace(asked, replicas=size, rollout=manners),
        other_floors=[_floor_of(budget, size) for budget in world.budgets],
    )
    return msgspec.structs.replace(
        plan,
        limits=_warned(plan.limits, asked.replicas),
        target=course.target.revision,
        pause=timedelta() if course.returning else plan.pause,
        count_terminating=wish.replacement == "onTermination",
        deadline=duration(wish.progress_deadline or PROGRESS_DEADLINE),
        on_failure=OnFailure(wish.on_failure or "hold"),
        paused=bool(wish.paused) and not course.rejected,
        approved=len(plan.steps) if course.returning else _approved(world, course),
    )


def _warned(limits: Limits, asked: int) -> Limits:
    """The limits, with a word on it where more replicas are kept than are asked for."""
    if limits.replicas == asked:
        return limits
    message = (
        f"{count(asked)} asked for, and {limits.replicas:,} kept while the rollout gets on, "
        "because new ones would mislead an autoscaler; pause the rollout to shrink at once"
    )
    return msgspec.structs.replace(limits, warnings=(*limits.warnings, Because(Why.SHRINK_HELD, message)))


def _floor_of(budget: Budget, replicas: int) -> int:
    """How many replicas a disruption budget keeps; both of its percentages round up, as Kubernetes' do."""
    if budget.min_available is not None:
        return amounts.resolve(budget.min_available, replicas, round="up")
    if budget.max_unavailable is not None:
        return max(replicas - amounts.resolve(budget.max_unavailable, replicas, round="up"), 0)
    return 0


def _approved(world: World, course: Course) -> int:
    promotion = _PROMOTION.fullmatch(world.object.meta.annotations.get(PROMOTED, ""))
    return int(promotion[2]) if promotion is not None and promotion[1] == course.target.revision else 0


def _refusal(world: World, course: Course) -> Blocked | None:
    """Why the rollout must not go on, beside the engine's own reasons."""
    if course.held:
        message = f"{', '.join(course.missing)} not found, so the wanted revision cannot be rolled out"
        return Blocked(Because(Why.CONFIGURATION_MISSING, message), "create what is missing, or do not refer to it")
    if is_taken(world):
        name = service_name(world.workload)
        message = f"the Service {name} is not this Workload's, and nobody asked for it to be switched"
        return Blocked(Because(Why.SERVICE_TAKEN, message), f"delete it, or write blueGreen: {{service: {name}}}")
    return None


# --- facts that were kept with the object


def _kept(world: World) -> RolloutStatus:
    status = world.workload.status
    return status.rollout if status is not None and status.rollout is not None else RolloutStatus()


def _is_under_way(world: World, course: Course) -> bool:
    """Whether what was kept is of this rollout."""
    status = world.workload.status
    return status is not None and status.update_revision == course.target.revision


def _progress(world: World, course: Course) -> Progress:
    kept = _kept(world)
    if not _is_under_way(world, course):
        return Progress(course.target.revision)
    reached_at = times.parse(kept.reached_at) if kept.reached_at else None
    return Progress(course.target.revision, max((kept.step or 1) - 1, 0), reached_at)


def _progressed_at(world: World, rollout: Rollout, there: Situation, *, fleet: Fleet) -> datetime | None:
    """When the rollout last got further: it began, a step passed, a new replica came, an old one went.

    That a replica is ready again after a restart is no progress, or what crashes for ever would never be late.
    """
    status, kept = world.workload.status, _kept(world)
    if rollout.paused or there.course.settled:
        return None
    if status is None or not _is_under_way(world, there.course) or kept.progressed_at is None:
        return there.now
    if status.old_replicas is not None and fleet.old.live < status.old_replicas:
        return there.now
    moments = [times.parse(text) for text in (kept.progressed_at, kept.step_started_at) if text is not None]
    for replica in there.replicas:
        if replica.ready_since is not None and replica.revision == rollout.target:
            available_at = replica.ready_since + there.min_ready
            if moments[0] < available_at <= there.now and not there.pods[replica.id].restarts:
                moments.append(available_at)
    return max(moments)


def _outcome(there: Situation, step: engine.Decision, refusal: engine.Refusal | None) -> Outcome:
    """When to look again if nothing happens; what was written will be seen."""
    moments = [
        (each.until, each.because.message)
        for each in (step, refusal)
        if isinstance(each, Hold | Wait) and each.until is not None
    ]
    if there.revive_at is not None:
        moments.append((there.revive_at, "a replica that ended as soon as it started is replaced then"))
    return soonest(until(moment, now=there.now, because=because) for moment, because in moments)
