"""What the controller does next for a Workload: which replicas it starts and stops, and why.

revisions   which revision is rolled out
replicas    the pods, as the engine sees them
stepping    the engine's next step, within the floor and the ceiling
writes      the step, as writes
status      what the Workload reports
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.kernel.decisions import Blocked, Hold
from holdfast.kernel.fleet import Replica
from holdfast.kernel.limits import InvalidLimits, Limits
from holdfast.kernel.outcomes import Failure, Permanent, soonest, until
from holdfast.kernel.planning import WorkloadSpec, rollout_of
from holdfast.kernel.reasons import Because, Code, count
from holdfast.kernel.rollout import OnFailure, Progress, Rollout
from holdfast.kernel.stepping import Situation, Step, progressed, step
from holdfast.kinds import InvalidDocument
from holdfast.kinds.cloudless.rollouts import RolloutStatus
from holdfast.meta import times
from holdfast.operators.workload import writes
from holdfast.operators.workload.conditions import Facts
from holdfast.operators.workload.observe import World, is_taken, service_name
from holdfast.operators.workload.problems import problems
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.replicas import Replicas, replicas
from holdfast.operators.workload.revisions import PROMOTED, Revisions, choose
from holdfast.operators.workload.status import INVALID, report
from holdfast.operators.workload.validate import PROGRESS_DEADLINE, duration, rollout_spec
from holdfast.runtime.decisions import Decision

_PROMOTION: Final = re.compile(r"([^:]+):([0-9]{1,6})")


def decide(world: World, now: datetime) -> Decision:
    """What to write, and what to report."""
    facts = assess(world, now)
    status, notices = report(facts, now)
    waits = [facts.step.outcome()]
    if facts.replicas.replace_at is not None:
        because = "a replica that ended soon after its start is replaced then"
        waits.append(until(facts.replicas.replace_at, now=now, because=because))
    if facts.problems.look_at is not None:
        because = "a readiness probe that has not succeeded by then is reported as failing"
        waits.append(until(facts.problems.look_at, now=now, because=because))
    return Decision(
        rehearse=tuple(writes.rehearsals(facts)),
        writes=tuple(writes.all_of(facts)),
        status=status,
        notices=notices,
        outcome=soonest(waits),
    )


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a reconciliation that failed: what it would have been, and what failed."""
    if failure.reason == WorkloadReason.INVALID_SPEC:
        return INVALID.status(world.object, failure, now)
    return report(assess(world, now), now, failure)[0]


def assess(world: World, now: datetime) -> Facts:
    """The facts of one reconciliation; raises `Permanent` for an invalid spec."""
    try:
        asked = rollout_spec(world.workload)
    except InvalidDocument as error:
        raise Permanent(WorkloadReason.INVALID_SPEC, str(error)) from error
    revisions = choose(world)
    found = replicas(world, stable=None if revisions.stable is None else revisions.stable.revision, now=now)
    taken = _next_step(world, asked, revisions, found, now)
    limits = taken.rollout.limits
    floor = _drain_floor(taken) if world.keeps_budget else limits.floor
    warnings = (*_size_warnings(asked, limits), *_drain_warnings(world, taken, floor))
    return Facts(
        world=world,
        asked=asked,
        revisions=revisions,
        replicas=found,
        problems=problems(world, target=revisions.target.revision, now=now),
        step=taken,
        limits=msgspec.structs.replace(limits, warnings=(*limits.warnings, *warnings)),
        drain_floor=floor,
    )


# --- the engine's next step


def _next_step(world: World, asked: WorkloadSpec, revisions: Revisions, found: Replicas, now: datetime) -> Step:
    """The next step.

    While it progresses, a rollout keeps the size that it has: new replicas do little work at first, and an autoscaler
    would stop the replicas that do it.  A rollout that waits follows the spec.
    """
    size = _kept(world, revisions).size
    if size is not None and 0 < asked.replicas < size:
        # With this size, the shares of the spec may be more than there can be; and anyone may write a status.
        with contextlib.suppress(InvalidLimits):
            taken = _step_at(size, world, asked, revisions, found, now)
            if taken.refusal is None and not isinstance(taken.verdict.decision, Hold):
                return taken
    return _step_at(asked.replicas, world, asked, revisions, found, now)


def _step_at(
    size: int, world: World, asked: WorkloadSpec, revisions: Revisions, found: Replicas, now: datetime
) -> Step:
    kept = _kept(world, revisions)
    situation = Situation(
        rollout=_rollout(size, world, asked, revisions),
        replicas=found.all,
        now=now,
        progress=Progress(revisions.target.revision, max((kept.step or 1) - 1, 0), times.read(kept.reached_at)),
        min_ready=timedelta(seconds=world.rollout.min_ready_seconds or 0),
        stable=None if revisions.other is None else revisions.other.revision,
        serving=revisions.serving,
    )
    if not situation.rollout.paused and not revisions.settled:
        situation = situation.since(_progressed_at(world, kept, situation))
    return step(situation, refusal=_refusal(world, revisions))


def _progressed_at(world: World, kept: RolloutStatus, situation: Situation) -> datetime:
    status = world.workload.status
    before, began = times.read(kept.progressed_at), times.read(kept.step_started_at)
    # That a step began is progress too, unless its time is still to come since the clock was set back.
    if before is not None and began is not None and began <= situation.now:
        before = max(before, began)
    return progressed(situation, before=before, old_before=None if status is None else status.old_replicas)


def _rollout(size: int, world: World, asked: WorkloadSpec, revisions: Revisions) -> Rollout:
    """What the engine is asked for."""
    spec = world.rollout
    partition = 0 if revisions.returning else asked.rollout.partition
    strategy = msgspec.structs.replace(asked.rollout, partition=partition)
    rollout = rollout_of(
        msgspec.structs.replace(asked, replicas=size, rollout=strategy),
        other_floors=[budget.floor(size) for budget in world.budgets],
    )
    return msgspec.structs.replace(
        rollout,
        target=revisions.target.revision,
        pause=timedelta() if revisions.returning else rollout.pause,
        count_terminating=spec.replacement == "onTermination",
        deadline=duration(spec.progress_deadline or PROGRESS_DEADLINE),
        on_failure=OnFailure(spec.on_failure or "hold"),
        paused=bool(spec.paused) and not revisions.rejected,
        approved=len(rollout.steps) if revisions.returning else _approved(world, revisions),
    )


def _approved(world: World, revisions: Revisions) -> int:
    promotion = _PROMOTION.fullmatch(world.object.meta.annotations.get(PROMOTED, ""))
    return int(promotion[2]) if promotion is not None and promotion[1] == revisions.target.revision else 0


def _refusal(world: World, revisions: Revisions) -> Blocked | None:
    """Why the rollout must not continue, beside the engine's own reasons."""
    if revisions.held:
        message = f"{', '.join(revisions.missing)} not found, so the new revision cannot be rolled out"
        remedy = "create what is missing, or remove the reference from the spec"
        return Blocked(Because(WorkloadReason.CONFIGURATION_MISSING, message), remedy)
    if is_taken(world):
        name = service_name(world.workload)
        message = f"the Service {name} is not owned by this Workload, and the spec does not name it"
        remedy = f"delete the Service, or write blueGreen: {{service: {name}}} to have it switched"
        return Blocked(Because(WorkloadReason.SERVICE_TAKEN, message), remedy)
    return None


def _kept(world: World, revisions: Revisions) -> RolloutStatus:
    """The facts of this rollout that the status keeps; none when it has just begun."""
    status = world.workload.status
    same = status is not None and status.update_revision == revisions.target.revision
    return (status.rollout if status is not None and same else None) or RolloutStatus()


# --- drains, and what is announced about the limits


def _drain_floor(taken: Step) -> int:
    """What the disruption budget keeps.

    Replicas on a cordoned node are replaced before they are evicted.  A rollout that waits for a person, or that keeps
    replicas at another revision, does not replace them: then the budget allows one eviction at a time.
    """
    limits = taken.rollout.limits
    waiting = taken.complete or _waits_for_a_person(taken)
    if waiting and any(map(_must_move, taken.situation.replicas)):
        return min(limits.drain_floor, max(limits.replicas - 1, 0))
    return limits.drain_floor


def _waits_for_a_person(taken: Step) -> bool:
    """Whether it is paused, needs an approval or a deletion, or is blocked for a reason that is not the engine's.

    A rollout that missed its deadline is not among them: it starts no replica in place of one that a drain evicts.
    """
    said = taken.verdict.refusal or taken.verdict.decision
    if isinstance(said, Blocked):
        return not isinstance(said.because.code, Code)
    return isinstance(said, Hold) and said.until is None


def _must_move(replica: Replica) -> bool:
    return replica.leaving and replica.ready_since is not None and not replica.terminating


def _drain_warnings(world: World, taken: Step, floor: int) -> list[Because]:
    """The announcement of a disruption budget that keeps fewer replicas than the floor."""
    limits = taken.rollout.limits
    if floor >= limits.floor:
        return []
    left = f"so {floor:,} of {count(limits.replicas)} stay available, {limits.floor - floor:,} fewer than the floor"
    if limits.feasible:
        cause = f"replicas on {', '.join(sorted(world.cordoned))} are not replaced before a drain evicts them"
        way = f"the rollout waits ({taken.because.code}); to avoid this, let it continue, or uncordon the node"
    else:
        cause = f"all {count(limits.replicas)} must stay available and maxSurge is 0"
        way = f"to avoid this, set maxSurge to 1 or more, or minAvailable to {floor:,} or less"
    message = f"{cause}: a drain of a node may evict one replica at a time, {left}; {way}"
    return [Because(Code.FLOOR_LOWERED, message)]


def _size_warnings(asked: WorkloadSpec, limits: Limits) -> list[Because]:
    """The announcement of a rollout that keeps more replicas than the spec asks for."""
    if limits.replicas == asked.replicas:
        return []
    message = (
        f"the spec asks for {count(asked.replicas)}, and {limits.replicas:,} are kept while the rollout progresses, "
        "because replicas that have just started mislead an autoscaler; pause the rollout to scale down at once"
    )
    return [Because(WorkloadReason.SHRINK_HELD, message)]
