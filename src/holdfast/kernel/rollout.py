"""The rollout engine: what a fleet needs next, as a pure function.

One rule serves every strategy, scale, drain and abort.  In this order:

1. remove dead replicas, and unready ones that are surplus: it costs nothing;
2. start missing replicas, as far as the ceiling leaves room;
3. stop surplus replicas, at most `available - floor`;
4. otherwise wait, and name the replicas that are waited for.

A strategy is a list of steps (`strategies`), each a shape for this rule and a
gate.  `decide` always returns a decision and never changes anything; it must
not know clocks, objects or APIs.  The same function drives operators, previews,
simulations and the proof.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from holdfast.kernel.decisions import (
    Blocked,
    Decision,
    Done,
    Hold,
    Kind,
    Refusal,
    RollBack,
    Start,
    Stop,
    Switch,
    Wait,
)
from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.limits import Limits
from holdfast.kernel.reasons import Because, Code, count
from holdfast.kernel.strategies import Approval, Deletions, Gate, NoneAlive, Old, Pause, Step, Switched

__all__ = [
    "Blocked",
    "Decision",
    "Done",
    "Hold",
    "Kind",
    "OnFailure",
    "Progress",
    "Refusal",
    "RollBack",
    "Rollout",
    "Shape",
    "Start",
    "Stop",
    "Switch",
    "Verdict",
    "Wait",
    "decide",
    "hold",
]


class OnFailure(StrEnum):
    """What a missed progress deadline leads to."""

    HOLD = "hold"
    ABORT = "abort"
    ROLL_BACK = "rollBack"


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: limits, steps and options.

    target             the desired revision; progress towards another one does not count
    pause              between batches, after the last replica became available
    ordered            one replica after another, by ordinal
    count_terminating  terminating replicas count towards the ceiling
    deadline           how long the rollout may make no progress; closed gates and pauses do not count
    approved           how many steps of this target a user has promoted
    at_most            cap on new replicas, set by a group in lockstep
    unready_at_a_time  how many old replicas that are not ready are replaced at a time; None: all of them at once
    """

    limits: Limits
    target: str = ""
    steps: tuple[Step, ...] = (Step(),)
    pause: timedelta = timedelta()
    ordered: bool = False
    count_terminating: bool = False
    deadline: timedelta | None = None
    on_failure: OnFailure = OnFailure.HOLD
    paused: bool = False
    approved: int = 0
    at_most: int | None = None
    unready_at_a_time: int | None = None


class Progress(msgspec.Struct, frozen=True):
    """The facts of a rollout that cannot be observed: the operator keeps them in the status of the object.

    target      the revision that the rollout was going to
    step        index of the current step; earlier ones are never revisited
    reached_at  when its shape was first reached, while its gate is closed
    """

    target: str = ""
    step: int = 0
    reached_at: datetime | None = None


class Shape(msgspec.Struct, frozen=True):
    """A step in numbers: the desired replicas of each side, and the bounds that hold meanwhile.

    count_terminating  terminating replicas count towards the ceiling
    """

    new: int
    old: int
    floor: int
    ceiling: int
    count_terminating: bool = False

    def occupied(self, fleet: Fleet) -> int:
        """How many replicas count towards the ceiling."""
        going = fleet.old.terminating + fleet.new.terminating if self.count_terminating else 0
        return fleet.live + going


class Verdict(msgspec.Struct, frozen=True):
    """A decision, the facts to keep, and the bounds that hold for it.

    refusal  why the rollout must not go on; meanwhile only lost replicas are replaced, and the fleet is scaled
    """

    decision: Decision
    progress: Progress
    shape: Shape
    refusal: Refusal | None = None


def decide(rollout: Rollout, fleet: Fleet, *, progress: Progress, now: datetime) -> Verdict:
    """What to do next with `fleet`, and why."""
    begun = _resumed(rollout, fleet, progress)
    index, reached_at = begun.step, begun.reached_at
    while True:
        step = rollout.steps[index]
        refusal: Refusal | None = _refusal(rollout, fleet, step)
        if refusal is not None:
            return _held(rollout, fleet, refusal, Progress(rollout.target, index, reached_at), now)
        shape = _shape(rollout, fleet, step)
        decision = _converge(rollout, fleet, shape, now)
        if decision is None:
            decision = _behind(rollout, step, shape)
        if decision is None:
            reached_at = reached_at or now
            decision = _gate(rollout, fleet, step.gate, index, reached_at, now)
        if decision is not None or index + 1 == len(rollout.steps):
            break
        index, reached_at = index + 1, None
    here = Progress(rollout.target, index, reached_at)
    if decision is None:
        return Verdict(_done(fleet), here, shape)
    if index == begun.step:
        refusal = _overdue(rollout, fleet, decision, now)
        if refusal is not None:
            return _held(rollout, fleet, refusal, here, now)
    return Verdict(decision, here, shape)


def hold(rollout: Rollout, fleet: Fleet, refusal: Refusal, *, progress: Progress, now: datetime) -> Verdict:
    """The verdict on a rollout that an operator or a group refuses to continue."""
    return _held(rollout, fleet, refusal, _resumed(rollout, fleet, progress), now)


def _resumed(rollout: Rollout, fleet: Fleet, progress: Progress) -> Progress:
    """The facts to continue from.

    The steps may have changed since the facts were written.  A pause or an
    approval that was passed stays passed.  Whether traffic was switched is read
    from the fleet, so that old replicas are not stopped while they serve.
    """
    if progress.target != rollout.target:
        return Progress(rollout.target)
    index = min(progress.step, len(rollout.steps) - 1)
    if fleet.active is Side.OLD:
        for earlier, step in enumerate(rollout.steps[:index]):
            if isinstance(step.gate, Switched):
                return Progress(rollout.target, earlier)
    return progress if index == progress.step else Progress(rollout.target, index, progress.reached_at)


def _shape(rollout: Rollout, fleet: Fleet, step: Step) -> Shape:
    limits, new, old = rollout.limits, fleet.new, fleet.old
    replicas = limits.replicas
    wanted = replicas if fleet.initial else step.new(replicas)
    if rollout.at_most is not None and step.old in _PACED and not fleet.initial:
        wanted = min(wanted, rollout.at_most)
    # New replicas are never replaced by old ones, also where a step desires fewer new ones than there are.
    wanted = max(wanted, min(new.live, replicas))
    floor = limits.floor if step.floor else 0
    match step.old:
        case Old.REST:
            return _bounded(rollout, fleet, step, floor, wanted, replicas - wanted)
        case Old.NONE:
            return _bounded(rollout, fleet, step, floor, wanted, 0)
        case Old.SERVE:
            # The serving side keeps its size, and is brought back to its floor unless the switch is due.
            keep = min(old.live, replicas)
            due = isinstance(step.gate, Switched) and new.available >= wanted
            if fleet.active is Side.OLD and fleet.stable and not due:
                keep = max(keep, floor)
            return _bounded(rollout, fleet, step, floor, wanted, keep)
        case Old.LIVING:
            keep = min(old.live, replicas - min(new.live, replicas))
            return _bounded(rollout, fleet, step, floor, replicas - keep, keep)


def _held_shape(rollout: Rollout, fleet: Fleet, step: Step) -> Shape:
    """The shape that keeps the fleet as it is: only lost replicas are replaced, and the fleet is scaled."""
    limits, new, old = rollout.limits, fleet.new, fleet.old
    replicas = limits.replicas
    keep = min(new.live, replicas)
    if fleet.initial:
        wanted = (replicas, 0)
    elif step.old is Old.SERVE:
        rest = min(old.live, replicas)
        wanted = (replicas, rest) if fleet.active is Side.NEW else (keep, max(rest, limits.floor))
    elif step.old is Old.NONE and step.floor:
        # No old replica is started any more: missing replicas are started from the new revision.
        rest = min(old.live, replicas)
        wanted = (max(keep, replicas - rest), rest)
    else:
        wanted = (keep, max(replicas - keep, min(old.live, limits.ceiling - keep)))
    return _bounded(rollout, fleet, step, limits.floor, *wanted)


def _bounded(rollout: Rollout, fleet: Fleet, step: Step, floor: int, new: int, old: int) -> Shape:
    """The shape of `new` and `old` replicas with its bounds, as far as old replicas can be started at all."""
    replicas = rollout.limits.replicas
    if old > fleet.old.live and not fleet.stable:
        # Without a stable revision no old replica can be started: missing ones are started new.
        new, old = min(replicas, new + old - fleet.old.live), fleet.old.live
    ceiling = 2 * replicas if step.old is Old.SERVE else rollout.limits.ceiling
    # An ordinal is in use until its replica is gone.
    return Shape(new, old, floor, ceiling, rollout.count_terminating or rollout.ordered)


def _held(rollout: Rollout, fleet: Fleet, refusal: Refusal, progress: Progress, now: datetime) -> Verdict:
    """The verdict on a rollout that must not go on: lost replicas are replaced, and the fleet is scaled."""
    shape = _held_shape(rollout, fleet, rollout.steps[progress.step])
    action = None if isinstance(refusal, RollBack) else _converge(rollout, fleet, shape, now)
    return Verdict(action if isinstance(action, Start | Stop) else refusal, progress, shape, refusal)


def _refusal(rollout: Rollout, fleet: Fleet, step: Step) -> Hold | Blocked | None:
    """Why the rollout must not go on at all."""
    limits = rollout.limits
    if rollout.paused:
        return Hold(None, Because(Code.PAUSED, "the rollout is paused; resume it to go on"))
    if (
        not limits.feasible
        and step.floor
        and step.old in (Old.REST, Old.NONE)
        and fleet.active is None
        and fleet.old.ready > 0
        and fleet.new.live < step.new(limits.replicas)
    ):
        return Blocked(
            Because(
                Code.NO_DISRUPTION_BUDGET,
                f"all {count(limits.replicas)} must stay available and no surge is allowed, "
                "so no ready replica can be replaced",
            ),
            f"set {'maxSurge to 1 or more, or ' if limits.can_surge else ''}"
            f"minAvailable to {limits.replicas - 1:,} or less (maxUnavailable to 1 or more)",
        )
    return None


def _overdue(rollout: Rollout, fleet: Fleet, decision: Decision, now: datetime) -> Blocked | RollBack | None:
    """What takes the place of `decision` when the progress deadline is missed; None when it is not."""
    due = _due(rollout, fleet)
    if rollout.deadline is None or due is None or now < due:
        return None
    if isinstance(decision, Hold | Switch) or decision.because.code is Code.WAITING_FOR_ROLES:
        # A closed gate, a switch that happens now and slower roles are no delay of this rollout.
        return None
    if isinstance(decision, Stop) and fleet.new.live and fleet.new.available == fleet.new.live:
        # All new replicas are available, so the next old one can go; that they became so may have gone unseen
        # where the clocks of nodes are behind.
        return None
    seconds = int(rollout.deadline.total_seconds())
    late = f"no progress for {count(seconds, 'second')}; {_situation(fleet)}"
    if rollout.on_failure is OnFailure.HOLD or not fleet.stable:
        return Blocked(
            Because(Code.PROGRESS_DEADLINE_EXCEEDED, late),
            "see why the new replicas are not ready and apply a corrected revision, or undo the rollout",
        )
    final = rollout.on_failure is OnFailure.ROLL_BACK
    return RollBack(final, Because(Code.ROLLING_BACK if final else Code.ABORTING, late))


def _converge(rollout: Rollout, fleet: Fleet, shape: Shape, now: datetime) -> Decision | None:
    """The rule: the next action or wait on the way to `shape`; None when the fleet has that shape."""
    return (
        _remove_useless(rollout, fleet, shape)
        or _start_missing(rollout, fleet, shape)
        or _stop_surplus(rollout, fleet, shape, now)
        or _wait(rollout, fleet, shape)
    )


def _remove_useless(rollout: Rollout, fleet: Fleet, shape: Shape) -> Stop | None:
    """Remove dead replicas, and unready ones beyond the desired number."""
    for side, pool, wanted in ((Side.OLD, fleet.old, shape.old), (Side.NEW, fleet.new, shape.new)):
        if pool.dead:
            message = f"{count(pool.dead)} failed for good or never scheduled"
            return Stop(side, Kind.DEAD, pool.dead, Because(Code.REPLACING_DEAD, message))
        useless = min(pool.unready, pool.live - wanted)
        if side is Side.OLD and rollout.unready_at_a_time is not None:
            # A replica is being replaced until its successor is ready: while it terminates, and while it is missing.
            empty = shape.new + shape.old - fleet.live
            replacing = fleet.new.unready + max(fleet.old.terminating + fleet.new.terminating, empty)
            useless = min(useless, rollout.unready_at_a_time - replacing)
        if useless > 0:
            message = f"{count(useless)} of the {side} revision surplus and not ready"
            return Stop(side, Kind.UNREADY, useless, Because(Code.REMOVING_UNREADY, message))
    return None


def _start_missing(rollout: Rollout, fleet: Fleet, shape: Shape) -> Start | None:
    """Start missing replicas, new before old, as far as the ceiling leaves room."""
    room = shape.ceiling - shape.occupied(fleet)
    if rollout.ordered:
        # An old replica that never becomes ready must not keep the new ones from starting.
        moving = fleet.new.unready + fleet.new.settling
        room = min(room, fleet.gaps + (0 if moving else 1))
    if room <= 0:
        return None
    missing = min(room, shape.new - fleet.new.live)
    if missing > 0:
        message = f"room for {count(missing)}: {fleet.live:,} live, at most {shape.ceiling:,} may"
        return Start(Side.NEW, missing, Because(Code.STARTING_UPDATED, message))
    missing = min(room, shape.old - fleet.old.live) if fleet.stable else 0
    if missing > 0:
        message = f"{count(missing)} of the stable revision missing: {fleet.old.live:,} of {shape.old:,} live"
        return Start(Side.OLD, missing, Because(Code.STARTING_STABLE, message))
    return None


def _stop_surplus(rollout: Rollout, fleet: Fleet, shape: Shape, now: datetime) -> Stop | Hold | None:
    """Stop ready replicas beyond the desired number, at most `available - floor` of those that serve."""
    active, budget = fleet.active, fleet.available - shape.floor
    for side, pool, wanted in ((Side.OLD, fleet.old, shape.old), (Side.NEW, fleet.new, shape.new)):
        surplus = min(pool.ready, pool.live - wanted)
        if surplus <= 0:
            continue
        if active is not None and side is not active:
            message = f"{count(surplus)} without traffic no longer needed"
            return Stop(side, Kind.READY, surplus, Because(Code.DRAINING, message))
        allowed = min(surplus, budget)
        if allowed <= 0:
            continue
        replicas = rollout.limits.replicas
        if rollout.ordered:
            if fleet.old.terminating or fleet.new.terminating:
                continue
            allowed = 1
        if fleet.live > shape.ceiling or pool.live > replicas:
            message = f"{fleet.live:,} live, {replicas:,} desired; {fleet.available:,} available"
            return Stop(side, Kind.READY, min(allowed, fleet.live - replicas), Because(Code.SCALING_DOWN, message))
        if _settling(rollout, fleet):
            continue
        hold = _batch_pause(rollout, fleet, now)
        if hold is not None:
            return hold
        # A batch is at most as large as maxUnavailable or the surge.
        allowed = min(allowed, max(1, replicas - shape.floor, rollout.limits.surge))
        message = f"{fleet.available:,} available, the floor needs {shape.floor:,}"
        return Stop(side, Kind.READY, allowed, Because(Code.STOPPING_OLD, message))
    return None


def _wait(rollout: Rollout, fleet: Fleet, shape: Shape) -> Wait | None:
    new, old = fleet.new, fleet.old
    if new.unready:
        ready = f"{count(new.unready)} of the new revision not ready yet ({new.ready:,} of {shape.new:,} are)"
        return _waiting(rollout, fleet, Side.NEW, new.unready, Because(Code.WAITING_FOR_READY, ready))
    if new.settling:
        message = f"{count(new.settling)} of the new revision ready, but not yet for minReadySeconds"
        return _waiting(rollout, fleet, Side.NEW, new.settling, Because(Code.WAITING_FOR_AVAILABLE, message))
    short = max(0, shape.new - new.live) + (max(0, shape.old - old.live) if fleet.stable else 0)
    counted = shape.count_terminating or rollout.unready_at_a_time is not None
    going = old.terminating + new.terminating if counted else 0
    if going and (short or (rollout.ordered and (old.live > shape.old or new.live > shape.new))):
        message = (
            f"{count(going)} still terminating; {'no other is started' if short else 'no other is stopped'} before"
        )
        return _waiting(rollout, fleet, Side.OLD, going, Because(Code.WAITING_FOR_TERMINATION, message))
    if short:
        return _waiting(rollout, fleet, Side.OLD, short, _at_floor(fleet, shape))
    if old.live > shape.old:
        return _waiting(rollout, fleet, Side.OLD, old.live - shape.old, _at_floor(fleet, shape))
    if new.live > shape.new:
        return _waiting(rollout, fleet, Side.NEW, new.live - shape.new, _at_floor(fleet, shape))
    return None


def _waiting(rollout: Rollout, fleet: Fleet, side: Side, number: int, because: Because) -> Wait:
    moments = [moment for moment in (fleet.settles_at, _due(rollout, fleet)) if moment is not None]
    return Wait(side, number, min(moments, default=None), because)


def _due(rollout: Rollout, fleet: Fleet) -> datetime | None:
    """When the progress deadline is missed; the pause between batches does not count."""
    if rollout.deadline is None or fleet.progressed_at is None:
        return None
    return fleet.progressed_at + rollout.pause + rollout.deadline


def _at_floor(fleet: Fleet, shape: Shape) -> Because:
    return Because(
        Code.AT_FLOOR,
        f"{fleet.available:,} available and the floor needs {shape.floor:,}; {_situation(fleet)}",
    )


def _settling(rollout: Rollout, fleet: Fleet) -> bool:
    """Whether new replicas must become available before the next stop."""
    return (rollout.ordered or bool(rollout.pause)) and bool(fleet.new.unready or fleet.new.settling)


def _batch_pause(rollout: Rollout, fleet: Fleet, now: datetime) -> Hold | None:
    if not rollout.pause or not fleet.new.live or fleet.settled_at is None:
        return None
    until = fleet.settled_at + rollout.pause
    if now >= until:
        return None
    seconds = int(rollout.pause.total_seconds())
    return Hold(until, Because(Code.BATCH_PAUSE, f"a pause of {count(seconds, 'second')} between batches"))


def _behind(rollout: Rollout, step: Step, shape: Shape) -> Wait | None:
    """The wait of a role whose group does not let it reach its step yet."""
    if step.old not in _PACED or shape.new >= step.new(rollout.limits.replicas):
        return None
    message = f"{shape.new:,} of the new revision available; the group's other roles have to catch up"
    return Wait(Side.NEW, 0, None, Because(Code.WAITING_FOR_ROLES, message))


def _gate(
    rollout: Rollout, fleet: Fleet, gate: Gate | None, index: int, reached_at: datetime, now: datetime
) -> Decision | None:
    """What a closed gate asks for; None when it is open."""
    if gate is None:
        return None
    approved = rollout.approved > index or fleet.initial
    match gate:
        case Switched():
            if fleet.traffic in (None, 100):
                return None
            message = f"{count(fleet.new.available)} of the new revision available; all traffic goes to them"
            return Switch(100, Because(Code.SWITCHING_TRAFFIC, message))
        case NoneAlive():
            going = fleet.old.live + fleet.old.terminating
            if not going:
                return None
            message = f"{count(going)} of the old revision not gone yet"
            return _waiting(rollout, fleet, Side.OLD, going, Because(Code.WAITING_FOR_TERMINATION, message))
        case Deletions():
            if not fleet.old.live:
                return None
            message = f"{count(fleet.old.live)} of the old revision left; delete them to have them replaced"
            return Hold(None, Because(Code.DELETION_NEEDED, message))
        case Pause(duration):
            until = reached_at + duration
            if approved or now >= until:
                return None
            seconds = int(duration.total_seconds())
            message = f"step {index + 1} of {len(rollout.steps)} pauses for {count(seconds, 'second')}"
            return Hold(until, Because(Code.STEP_PAUSE, message))
        case Approval():
            if approved:
                return None
            message = f"step {index + 1} of {len(rollout.steps)} waits for approval; promote the rollout to go on"
            return Hold(None, Because(Code.APPROVAL_NEEDED, message))


def _done(fleet: Fleet) -> Done:
    kept = f", {count(fleet.old.live)} kept at the old one" if fleet.old.live else ""
    message = f"{count(fleet.new.available)} of the desired revision available{kept}"
    return Done(Because(Code.COMPLETED, message))


def _situation(fleet: Fleet) -> str:
    new, old = fleet.new, fleet.old
    return f"new: {_brief(new)}; old: {_brief(old)}"


def _brief(pool: Pool) -> str:
    return f"{pool.available:,} of {pool.live:,} available"


_PACED = (Old.REST, Old.SERVE)
"""Where a group's cap on new replicas applies: only here an old replica runs in place of the one it holds back."""
