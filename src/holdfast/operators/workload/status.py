"""The status of a Workload: counts, limits, where the rollout stands, and the Events that follow from it.

Everything is derived from the facts of one reconciliation.  What the objects do not show (when the rollout began, how
far it got, how few replicas were available) is carried over from the status as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.conditions import find
from holdfast.kernel.decisions import Blocked, Decision, Hold, Start, Stop, Switch
from holdfast.kernel.fleet import Side
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.kernel.preview import Phase, phase_of
from holdfast.kernel.reasons import Because, Code, count
from holdfast.kinds.cloudless.rollouts import Rejection
from holdfast.meta import times
from holdfast.operators.workload.conditions import Facts, verdicts
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.render import labels
from holdfast.operators.workload.revisions import rejection
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import INVALID_SPEC, Announced, Invalid, present

INVALID: Final = Invalid(
    conditions={"Progressing": False, "Blocked": True}, fields={"phase": Phase.FAILED.value, "reason": INVALID_SPEC}
)
"""What the status says of a Workload whose spec is invalid."""

ANNOUNCED: Final[Announced] = {
    ("Completed", "True"): "Normal",
    ("Paused", "True"): "Normal",
    ("Blocked", "True"): "Warning",
    ("Degraded", "True"): "Warning",
    ("FloorHeld", "False"): "Warning",
    ("FloorLowered", "True"): "Warning",
    ("FloorNotGuaranteed", "True"): "Warning",
}
"""The conditions that become Events when they turn so."""


def report(facts: Facts, now: datetime, failure: Failure | None = None) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events; `failure` is the request that the API server refused, if it did."""
    fleet, replicas = facts.fleet, facts.limits.replicas
    why = rejection(facts.world.object)
    refused = None if failure is None else Because(WorkloadReason.REQUEST_REFUSED, failure.message)
    available = fleet.old.available + fleet.new.available
    fields = {
        "phase": (Phase.FAILED if _is_late(facts, failure, now) else _phase(facts)).value,
        "reason": (facts.reason if refused is None else refused.code).value,
        # Surge is not counted, so that an autoscaler's average is over the replicas that the spec asks for.
        "replicas": min(fleet.live, replicas),
        "readyReplicas": fleet.old.ready + fleet.new.ready,
        "availableReplicas": available,
        "unavailableReplicas": max(replicas - available, 0),
        "updatedReplicas": fleet.new.live,
        "oldReplicas": fleet.old.live,
        "selector": ",".join(f"{name}={value}" for name, value in labels(facts.world.object.key.name).items()),
        "limits": _limits(facts),
        "currentRevision": _current(facts),
        "updateRevision": facts.target,
        "servingRevision": facts.revisions.serving,
        "rejectedRevision": facts.revisions.wanted if facts.revisions.rejected else None,
        "rejection": None if why is None else present(msgspec.to_builtins(why)),
        "rollout": _rollout(facts, now, because=refused or facts.because),
    }
    said, turned = status.report(
        facts.world.object, verdicts(facts, failure), now=now, fields=fields, announced=ANNOUNCED
    )
    return said, (*_actions(facts), *_rejections(facts, why), *turned)


def _rejections(facts: Facts, why: Rejection | None) -> Iterator[Notice]:
    """The Event about a revision that has just been rejected."""
    if why is not None and why != facts.before.rejection:
        automatic = why.reason not in (WorkloadReason.ABORTED, WorkloadReason.UNDONE)
        message = f"Revision {why.revision} is rejected ({why.reason}): {why.message}"
        yield Notice(type="Warning" if automatic else "Normal", reason=WorkloadReason.REJECTED.value, message=message)


def _is_late(facts: Facts, failure: Failure | None, now: datetime) -> bool:
    """Whether it missed its deadline, also while it starts replicas, or a refused request keeps it from going on.

    A request that is refused for good fails it at once; any other when it has been refused for the whole deadline.
    """
    blocked, deadline = facts.step.blocked, facts.step.rollout.deadline
    if facts.step.complete:
        return False
    if isinstance(failure, Permanent) or (blocked and blocked.because.code is Code.PROGRESS_DEADLINE_EXCEEDED):
        return True
    if failure is None or deadline is None:
        return False
    before = find(status.prior_conditions(facts.world.object), "Blocked")
    since = before.last_transition_time if before and before.reason == WorkloadReason.REQUEST_REFUSED else None
    return since is not None and now >= since + deadline


def _phase(facts: Facts) -> Phase:
    """The phase; a revision that was rolled out before is only scaled."""
    fleet, step = facts.fleet, facts.step
    if step.complete:
        return Phase.FAILED if facts.revisions.rejected else Phase.COMPLETED
    if facts.first and not fleet.live and step.refusal is None:
        return Phase.INITIALIZING
    growing = fleet.live < facts.limits.replicas or (facts.revisions.settled and not fleet.old.live)
    return phase_of(step.verdict, fleet, rollout=step.rollout, growing=growing)


def _current(facts: Facts) -> str | None:
    """The last revision that was rolled out completely; with a partition, that is still the old one."""
    if facts.revisions.settled or (facts.step.complete and not facts.fleet.old.live):
        return facts.target
    return None if facts.revisions.stable is None else facts.revisions.stable.revision


def _limits(facts: Facts) -> dict[str, Any]:
    limits, shape = facts.limits, facts.step.verdict.shape
    return present(
        {
            "minAvailable": limits.min_available,
            "maxSurge": limits.surge,
            "maxUnavailable": limits.max_unavailable,
            "floor": shape.floor,
            "maxLive": shape.ceiling,
            "warnings": [_because(warning) for warning in limits.warnings] or None,
        }
    )


def _rollout(facts: Facts, now: datetime, *, because: Because) -> dict[str, Any]:
    """Where the rollout stands."""
    kept, floor, complete = facts.kept, facts.floor, facts.step.complete
    progress, moment = facts.step.verdict.progress, times.format(now)
    step, decision = progress.step + 1, facts.step.decision
    progressed_at = None if complete else facts.fleet.progressed_at
    replacing = facts.revisions.stable is not None and not complete
    return present(
        {
            "step": step,
            "steps": len(facts.step.rollout.steps),
            "startedAt": kept.started_at or moment,
            "stepStartedAt": kept.step_started_at if kept.step == step and kept.step_started_at else moment,
            "reachedAt": None if complete else _written(progress.reached_at),
            "lastBatchAt": moment if isinstance(decision, Start | Stop | Switch) else kept.last_batch_at,
            "progressedAt": _written(progressed_at),
            "estimatedEnd": _estimate(facts, now),
            "pausedUntil": _written(decision.until) if isinstance(decision, Hold) else None,
            "size": facts.limits.replicas if replacing else None,
            "mostAvailable": floor.most,
            "lowestReady": floor.lowest,
            "because": _because(because),
            "plan": _plan(facts),
        }
    )


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else times.format(moment)


def _estimate(facts: Facts, now: datetime) -> str | None:
    """When the rollout ends if each remaining replica takes as long as those that are done."""
    done, replicas, started_at = facts.fleet.new.available, facts.limits.replicas, times.read(facts.kept.started_at)
    if facts.step.complete or facts.revisions.settled or started_at is None or not 0 < done < replicas:
        return None
    if isinstance(facts.step.refusal or facts.step.decision, Hold | Blocked):
        return None
    return times.format(now + (now - started_at) * (replicas - done) / done)


def _plan(facts: Facts) -> str:
    fleet = facts.fleet
    if facts.step.complete:
        kept = f", {count(fleet.old.live)} stay at other revisions" if fleet.old.live else ""
        return f"{count(fleet.new.live)} run revision {facts.target}{kept}"
    left = max(facts.limits.replicas - fleet.new.available, 0)
    return f"{count(left)} to replace or start, {count(fleet.old.live)} of other revisions to stop"


def _because(because: Because) -> dict[str, str]:
    return {"code": because.code.value, "message": because.message}


def _actions(facts: Facts) -> tuple[Notice, ...]:
    """The Event about what this reconciliation does."""
    decision: Decision = facts.step.decision
    reason = decision.because.code.value
    match decision:
        case Start(side=side, count=number, because=because):
            message = f"Starting {count(number)} of {facts.called(side)}: {facts.named(because.message)}"
        case Stop(side=side, count=number, because=because):
            message = f"Stopping {count(number)} of {facts.called(side)}: {facts.named(because.message)}"
        case Switch():
            message = f"Switching the traffic from revision {facts.revisions.serving} to {facts.called(Side.NEW)}"
        case _:
            return ()
    return (Notice(reason=reason, message=message),)
