"""What a Workload's status says: counts, limits, where the rollout stands, and why.

Everything is derived from the facts of one pass.  What cannot be seen in the world
(when it began, how far it got, how low it went) is carried over from the status
before, and nothing else is.  What the conditions say is in `verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from holdfast.client.objects import Object
from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.preview import Phase, phase_of
from holdfast.kernel.reasons import Because, count
from holdfast.kernel.rollout import Blocked, Decision, Hold, RollBack, Start, Stop, Switch
from holdfast.kinds.cloudless.rollouts import RolloutStatus
from holdfast.meta import times
from holdfast.operators.workload.reasons import Why
from holdfast.operators.workload.render import labels
from holdfast.operators.workload.verdicts import Facts, verdicts
from holdfast.runtime.decisions import Notice

__all__ = ["Facts", "obstructed", "report"]


def report(facts: Facts, now: datetime) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    fleet, limits, before = facts.fleet, facts.rollout.limits, facts.before
    available = fleet.old.available + fleet.new.available
    old = tuple(Condition.from_wire(msgspec.to_builtins(each)) for each in before.conditions)
    generation = facts.world.object.meta.generation
    new = conditions.merge(old, verdicts(facts), generation=generation, now=now, unnamed="drop")
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "phase": _phase(facts).value,
        # Surge is not counted, so that an autoscaler's average is over what was asked for.
        "replicas": min(fleet.live, limits.replicas),
        "readyReplicas": facts.ready,
        "availableReplicas": available,
        "unavailableReplicas": max(limits.replicas - available, 0),
        "updatedReplicas": fleet.new.live,
        "oldReplicas": fleet.old.live,
        "selector": ",".join(f"{name}={value}" for name, value in labels(facts.world.object.key.name).items()),
        "limits": _limits(facts),
        "currentRevision": _current(facts),
        "updateRevision": facts.target,
        "rejectedRevision": facts.course.wanted if facts.course.rejected else None,
        "rollout": _rollout(facts, now),
        "conditions": [condition.to_wire() for condition in new],
    }
    kept = {field: value for field, value in status.items() if value is not None}
    return kept, (*_deeds(facts), *_news(old, new))


def obstructed(obj: Object, failure: Failure, now: datetime, *, status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The status of a pass that failed: as decided, or else as it was, with what stands in the way."""
    said: Mapping[str, Any] = status if status is not None else obj.wire().get("status") or {}
    reason = Why.INVALID_SPEC if failure.reason == Why.INVALID_SPEC else Why.REQUEST_REFUSED
    found = {"Progressing": Verdict.false(reason, failure.message), "Blocked": Verdict.true(reason, failure.message)}
    old = tuple(map(Condition.from_wire, said.get("conditions") or ()))
    kept = {each.type: Verdict(each.status, each.reason, each.message) for each in old} | found
    new = conditions.merge(old, kept, generation=obj.meta.generation, now=now, unnamed="drop")
    phase = Phase.FAILED if reason is Why.INVALID_SPEC else said.get("phase", Phase.INITIALIZING)
    return {
        **said,
        "observedGeneration": obj.meta.generation,
        "phase": str(phase),
        "conditions": [each.to_wire() for each in new],
    }


def _phase(facts: Facts) -> Phase:
    """The word for it.  What was rolled out before is not updated any more, only brought back to its size."""
    fleet = facts.fleet
    if facts.complete:
        return Phase.FAILED if facts.course.rejected else Phase.COMPLETED
    if facts.first and not fleet.live and facts.verdict.refusal is None:
        return Phase.INITIALIZING
    growing = fleet.live < facts.rollout.limits.replicas or (facts.course.settled and not fleet.old.live)
    return phase_of(facts.verdict, fleet, rollout=facts.rollout, growing=growing)


def _current(facts: Facts) -> str | None:
    """The last revision that was rolled out completely; with a partition, that is still the old one."""
    if facts.complete and not facts.fleet.old.live:
        return facts.target
    return facts.target if facts.course.settled else facts.stable


def _limits(facts: Facts) -> dict[str, Any]:
    limits = facts.rollout.limits
    shown: dict[str, Any] = {
        "minAvailable": limits.min_available,
        "maxSurge": limits.surge,
        "maxUnavailable": limits.max_unavailable,
        "floor": facts.verdict.shape.floor,
        "maxLive": facts.verdict.shape.ceiling,
    }
    if limits.warnings:
        shown["warnings"] = [_because(warning) for warning in limits.warnings]
    return shown


def _rollout(facts: Facts, now: datetime) -> dict[str, Any]:
    """Where the rollout stands; its facts begin anew with another target."""
    before = facts.before
    same = before.update_revision == facts.target and before.rollout is not None
    kept = before.rollout if same and before.rollout is not None else RolloutStatus()
    progress, moment = facts.verdict.progress, times.format(now)
    step, under_way = progress.step + 1, facts.stable is not None and not facts.complete
    shown: dict[str, Any] = {
        "step": step,
        "steps": len(facts.rollout.steps),
        "startedAt": kept.started_at or moment,
        "stepStartedAt": kept.step_started_at if kept.step == step and kept.step_started_at else moment,
        "reachedAt": None if facts.complete or progress.reached_at is None else times.format(progress.reached_at),
        "lastBatchAt": moment if isinstance(facts.decision, Start | Stop | Switch) else kept.last_batch_at,
        "progressedAt": _progressed(facts),
        "estimatedEnd": _estimate(facts, kept, now),
        "pausedUntil": _paused_until(facts.decision),
        "size": facts.rollout.limits.replicas if under_way else None,
        "mostAvailable": facts.most_available,
        "lowestReady": _lowest(facts, kept),
        "because": _because(facts.because),
        "plan": _plan(facts),
    }
    return {field: value for field, value in shown.items() if value is not None}


def _lowest(facts: Facts, kept: RolloutStatus) -> int | None:
    """The fewest ready replicas while it lasted; while the first ones come up there is nothing to lose."""
    if facts.first or (facts.course.settled and not facts.fleet.old.live):
        return kept.lowest_ready
    return facts.ready if kept.lowest_ready is None else min(kept.lowest_ready, facts.ready)


def _progressed(facts: Facts) -> str | None:
    at = facts.fleet.progressed_at
    return None if facts.complete or at is None else times.format(at)


def _estimate(facts: Facts, kept: RolloutStatus, now: datetime) -> str | None:
    """When it ends if the rest takes as long, for each replica, as what is done took."""
    done, replicas = facts.fleet.new.available, facts.rollout.limits.replicas
    if facts.complete or facts.course.settled or kept.started_at is None or not 0 < done < replicas:
        return None
    if isinstance(facts.verdict.refusal or facts.decision, Hold | Blocked):
        return None
    taken = now - times.parse(kept.started_at)
    return times.format(now + taken * (replicas - done) / done)


def _paused_until(decision: Decision) -> str | None:
    return times.format(decision.until) if isinstance(decision, Hold) and decision.until is not None else None


def _plan(facts: Facts) -> str:
    fleet, replicas = facts.fleet, facts.rollout.limits.replicas
    if facts.complete:
        kept = f", {count(fleet.old.live)} stay as they are" if fleet.old.live else ""
        return f"{count(fleet.new.live)} run revision {facts.target}{kept}"
    left = max(replicas - fleet.new.available, 0)
    return f"{count(left)} to replace or start, {count(fleet.old.live)} of other revisions to stop"


def _because(because: Because) -> dict[str, str]:
    return {"code": because.code.value, "message": because.message}


# --- news


def _deeds(facts: Facts) -> tuple[Notice, ...]:
    """What is done in this pass, for people who read events."""
    match facts.decision:
        case Start(side=side, count=number, because=because):
            message = f"Starting {count(number)} of the {side} revision: {because.message}"
            return (Notice(reason=because.code.value, message=message),)
        case Stop(side=side, count=number, because=because):
            message = f"Stopping {count(number)} of the {side} revision: {because.message}"
            return (Notice(reason=because.code.value, message=message),)
        case Switch(because=because):
            return (Notice(reason=because.code.value, message=f"Traffic goes to revision {facts.target}"),)
        case RollBack(because=because):
            message = f"Revision {facts.target} is rejected: {because.message}"
            return (Notice(type="Warning", reason=because.code.value, message=message),)
        case _:
            return ()


_TOLD: Final[Mapping[tuple[str, str], Literal["Normal", "Warning"]]] = {
    ("Completed", "True"): "Normal",
    ("Paused", "True"): "Normal",
    ("Blocked", "True"): "Warning",
    ("Degraded", "True"): "Warning",
    ("FloorHeld", "False"): "Warning",
    ("FloorNotGuaranteed", "True"): "Warning",
}
"""Conditions that are told when they turn so, and how."""


def _news(old: tuple[Condition, ...], new: tuple[Condition, ...]) -> tuple[Notice, ...]:
    """Conditions that turned, those that people wait for."""
    turned = (transition.new for transition in conditions.changed(old, new) if transition.new is not None)
    return tuple(
        Notice(type=_TOLD[each.type, each.status.value], reason=str(each.reason), message=each.message)
        for each in turned
        if (each.type, each.status.value) in _TOLD
    )
