"""What a Workload's status says: counts, limits, where the rollout stands, and why.

Everything is derived from the facts of one pass.  What cannot be seen in the world
(when it began, how far it got, how low it went) is carried over from the status
before, and nothing else is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Verdict
from holdfast.kernel.fleet import Fleet
from holdfast.kernel.preview import Phase, phase_of
from holdfast.kernel.reasons import Because, Code, Reason, count
from holdfast.kernel.rollout import Blocked, Decision, Done, Hold, RollBack, Rollout, Start, Stop, Switch
from holdfast.kernel.rollout import Verdict as Ruling
from holdfast.kinds.cloudless.rollouts import RolloutStatus
from holdfast.kinds.cloudless.workloads import WorkloadStatus
from holdfast.meta import times
from holdfast.operators.workload.observe import World
from holdfast.operators.workload.render import labels
from holdfast.runtime.decisions import Notice


class Why(Reason):
    """Reasons of a Workload's conditions, beside the engine's own."""

    ENOUGH_AVAILABLE = "EnoughAvailable", "At least as many replicas are available as the floor needs."
    TOO_FEW_AVAILABLE = "TooFewAvailable", "Fewer replicas are available than the floor needs."
    ROLLING_OUT = "RollingOut", "Replicas of the wanted revision take the place of others."
    ROLLED_OUT = "RolledOut", "All replicas run the wanted revision and are available."
    REJECTED = "RevisionRejected", "The revision that the spec asks for was undone or failed, and is not rolled out."
    NOT_PAUSED = "NotPaused", "Nobody paused the rollout, and no step waits."
    NOT_BLOCKED = "NotBlocked", "Nothing keeps the rollout from going on."
    HEALTHY = "Healthy", "All replicas that run are ready."
    UNREADY_REPLICAS = "UnreadyReplicas", "Replicas that should serve are not ready."
    FLOOR_HELD = "FloorHeld", "Nothing was stopped that the floor needed."
    BELOW_FLOOR = "BelowFloor", "Replicas were lost, so fewer are available than the floor needs; none is stopped."


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one pass saw and decided."""

    world: World
    rollout: Rollout
    fleet: Fleet
    verdict: Ruling
    decision: Decision
    wanted: str
    target: str
    stable: str

    @property
    def complete(self) -> bool:
        return isinstance(self.verdict.decision, Done)

    @property
    def rejected(self) -> bool:
        return self.wanted != self.target


def report(facts: Facts, now: datetime) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    before = facts.world.workload.status or WorkloadStatus()
    fleet, limits = facts.fleet, facts.rollout.limits
    phase = phase_of(facts.verdict, fleet, rollout=facts.rollout, growing=fleet.live < limits.replicas)
    old = tuple(Condition.from_wire(msgspec.to_builtins(each)) for each in before.conditions)
    generation = facts.world.object.meta.generation
    new = conditions.merge(old, _verdicts(facts, phase), generation=generation, now=now, unnamed="drop")
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "phase": phase.value,
        # Surge is not counted, so that an autoscaler's average is over what was asked for.
        "replicas": min(fleet.live, limits.replicas),
        "readyReplicas": fleet.old.ready + fleet.new.ready,
        "availableReplicas": fleet.old.available + fleet.new.available,
        "unavailableReplicas": max(limits.replicas - fleet.old.available - fleet.new.available, 0),
        "updatedReplicas": fleet.new.live,
        "oldReplicas": fleet.old.live,
        "selector": ",".join(f"{name}={value}" for name, value in labels(facts.world.object.key.name).items()),
        "limits": _limits(facts),
        "currentRevision": facts.target if facts.complete else (before.current_revision or facts.stable),
        "updateRevision": facts.target,
        "rejectedRevision": facts.wanted if facts.rejected else None,
        "rollout": _rollout(facts, before, now),
        "conditions": [condition.to_wire() for condition in new],
    }
    kept = {field: value for field, value in status.items() if value not in (None, "")}
    return kept, (*_deeds(facts), *_news(old, new))


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


def _rollout(facts: Facts, before: WorkloadStatus, now: datetime) -> dict[str, Any]:
    """Where the rollout stands; its facts begin anew with another target."""
    same = before.update_revision == facts.target and before.rollout is not None
    kept = before.rollout if same and before.rollout is not None else RolloutStatus()
    progress, fleet = facts.verdict.progress, facts.fleet
    moment = times.format(now)
    step = progress.step + 1
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
        "lowestReady": _lowest(fleet, kept),
        "because": _because(_reason(facts)),
        "plan": _plan(facts),
    }
    return {field: value for field, value in shown.items() if value is not None}


def _lowest(fleet: Fleet, kept: RolloutStatus) -> int | None:
    """The fewest ready replicas since the rollout began; while the first ones come up there is nothing to lose."""
    if fleet.initial:
        return kept.lowest_ready
    ready = fleet.old.ready + fleet.new.ready
    return ready if kept.lowest_ready is None else min(kept.lowest_ready, ready)


def _progressed(facts: Facts) -> str | None:
    at = facts.fleet.progressed_at
    return None if facts.complete or at is None else times.format(at)


def _estimate(facts: Facts, kept: RolloutStatus, now: datetime) -> str | None:
    """When it ends if the rest takes as long, for each replica, as what is done took."""
    done, replicas = facts.fleet.new.available, facts.rollout.limits.replicas
    if facts.complete or kept.started_at is None or not 0 < done < replicas:
        return None
    if isinstance(facts.verdict.refusal or facts.decision, Hold | Blocked):
        return None
    taken = now - times.parse(kept.started_at)
    return times.format(now + taken * (replicas - done) / done)


def _paused_until(decision: Decision) -> str | None:
    return times.format(decision.until) if isinstance(decision, Hold) and decision.until is not None else None


def _reason(facts: Facts) -> Because:
    """Why it does what it does: a refusal says more than what is done meanwhile."""
    return (facts.verdict.refusal or facts.decision).because


def _plan(facts: Facts) -> str:
    fleet, replicas = facts.fleet, facts.rollout.limits.replicas
    if facts.complete:
        return f"all {count(replicas)} run revision {facts.target}"
    left = max(replicas - fleet.new.available, 0)
    return f"{count(left)} to replace or start, {count(fleet.old.live)} of other revisions to stop"


def _because(because: Because) -> dict[str, str]:
    return {"code": because.code.value, "message": because.message}


# --- conditions

_PAUSES: Final = frozenset({Code.PAUSED, Code.BATCH_PAUSE, Code.STEP_PAUSE, Code.APPROVAL_NEEDED, Code.DELETION_NEEDED})


def _verdicts(facts: Facts, phase: Phase) -> dict[str, Verdict]:
    verdicts = {
        "Available": _available(facts),
        "Progressing": _progressing(facts),
        "Completed": _completed(facts),
        "Paused": _paused(facts),
        "Blocked": _blocked(facts),
        "Degraded": _degraded(facts),
        "FloorHeld": _floor_held(facts),
    }
    warning = next((each for each in facts.rollout.limits.warnings if each.code is Code.FLOOR_NOT_GUARANTEED), None)
    if warning is not None:
        verdicts["FloorNotGuaranteed"] = Verdict.true(warning.code, warning.message)
    return verdicts


def _available(facts: Facts) -> Verdict:
    floor, available = facts.rollout.limits.floor, facts.fleet.available
    if available >= floor:
        return Verdict.true(Why.ENOUGH_AVAILABLE, _against_floor(facts))
    return Verdict.false(Why.TOO_FEW_AVAILABLE, _against_floor(facts))


def _against_floor(facts: Facts) -> str:
    limits = facts.rollout.limits
    return f"{facts.fleet.available:,} of {count(limits.replicas)} available, the floor is {limits.floor:,}"


def _progressing(facts: Facts) -> Verdict:
    because = _reason(facts)
    if facts.complete:
        return Verdict.false(Why.ROLLED_OUT, because.message)
    if facts.verdict.refusal is not None:
        return Verdict.false(because.code, because.message)
    return Verdict.true(because.code, because.message)


def _completed(facts: Facts) -> Verdict:
    if facts.rejected:
        message = (
            f"revision {facts.wanted} was rejected, so {facts.target} is kept; "
            "change the spec, or retry the rollout to have it after all"
        )
        return Verdict.false(Why.REJECTED, message)
    if facts.complete:
        return Verdict.true(Why.ROLLED_OUT, _reason(facts).message)
    return Verdict.false(Why.ROLLING_OUT, _reason(facts).message)


def _paused(facts: Facts) -> Verdict:
    because = _reason(facts)
    if because.code in _PAUSES:
        return Verdict.true(because.code, because.message)
    return Verdict.false(Why.NOT_PAUSED, "nobody paused the rollout and no step waits")


def _blocked(facts: Facts) -> Verdict:
    said = facts.verdict.refusal or facts.decision
    if isinstance(said, Blocked):
        return Verdict.true(said.because.code, f"{said.because.message}; {said.remedy}")
    return Verdict.false(Why.NOT_BLOCKED, "nothing keeps the rollout from going on")


def _degraded(facts: Facts) -> Verdict:
    fleet = facts.fleet
    broken = fleet.old.dead + fleet.new.dead
    if isinstance(facts.verdict.refusal, RollBack):
        return Verdict.true(facts.verdict.refusal.because.code, facts.verdict.refusal.because.message)
    if fleet.available < facts.rollout.limits.floor and not fleet.initial:
        return Verdict.true(
            Why.TOO_FEW_AVAILABLE, f"{fleet.available:,} available, the floor is {facts.rollout.limits.floor:,}"
        )
    if broken or (facts.complete is False and fleet.old.unready and not fleet.initial):
        unready = fleet.old.unready + fleet.new.unready
        return Verdict.true(Why.UNREADY_REPLICAS, f"{count(unready)} not ready, {broken:,} failed for good")
    return Verdict.false(Why.HEALTHY, "all replicas that should serve are ready")


def _floor_held(facts: Facts) -> Verdict:
    floor, available = facts.verdict.shape.floor, facts.fleet.available
    if available >= floor or facts.fleet.initial:
        return Verdict.true(Why.FLOOR_HELD, f"{available:,} available, the floor is {floor:,}")
    return Verdict.false(Why.BELOW_FLOOR, f"{available:,} available, the floor is {floor:,}; nothing is stopped")


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


_BAD: Final = {"Blocked": "True", "Degraded": "True", "FloorHeld": "False", "Available": "False"}
_TOLD: Final = ("Completed", "Paused", "Blocked", "Degraded", "FloorHeld", "FloorNotGuaranteed")


def _news(old: tuple[Condition, ...], new: tuple[Condition, ...]) -> tuple[Notice, ...]:
    """Conditions that turned, those that people wait for."""
    notices = []
    for transition in conditions.changed(old, new):
        now = transition.new
        if now is None or transition.type not in _TOLD:
            continue
        bad = _BAD.get(transition.type) == now.status.value or transition.type == "FloorNotGuaranteed"
        good = transition.type in ("Completed", "Paused") and now.status.value == "True"
        if bad or good:
            kind: Literal["Normal", "Warning"] = "Warning" if bad else "Normal"
            notices.append(Notice(type=kind, reason=str(now.reason), message=now.message))
    return tuple(notices)
