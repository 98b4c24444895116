"""Preview: the plan of a rollout, made by the engine that will run it.

`preview` applies the decisions of `decide` to a simulated fleet in which every
start succeeds and every wait ends, and records the steps.  Rounds that repeat
are counted instead of listed, so that the plan for ten thousand replicas is as
short as the plan for ten.  It is also as quick: once the rounds repeat, those
that must be equal are skipped at once (`_stride`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.limits import Limits
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import (
    Blocked,
    Decision,
    Done,
    Hold,
    Kind,
    Progress,
    RollBack,
    Rollout,
    Shape,
    Start,
    Stop,
    Switch,
    Verdict,
    Wait,
    decide,
)
from holdfast.kernel.strategies import Old

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When a preview begins; its times are only ever compared with each other."""


class Phase(StrEnum):
    """The phase of a rollout, in one word."""

    INITIALIZING = "Initializing"
    SCALING_UP = "ScalingUp"
    UPDATING = "Updating"
    SCALING_DOWN = "ScalingDown"
    PAUSED = "Paused"
    COMPLETED = "Completed"
    FAILED = "Failed"


class Action(StrEnum):
    """What a planned step does."""

    START = "start"
    STOP = "stop"
    SWITCH = "switch"
    WAIT = "wait"


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a plan.

    Consecutive steps with the same `round` are done one after another, and that
    `repeat` times over.  `wait` is how long a timed wait lasts; other waits last
    until the replicas are ready, or gone.
    """

    phase: Phase
    action: Action
    count: int
    because: Because
    side: Side | None = None
    wait: timedelta | None = None
    round: int = 0
    repeat: int = 1

    def same(self, other: PlanStep) -> bool:
        """Whether this is the same thing done again; the sentences may count differently."""
        return (self.phase, self.action, self.count, self.side, self.wait, self.because.code) == (
            other.phase,
            other.action,
            other.count,
            other.side,
            other.wait,
            other.because.code,
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollout will do, if nothing fails."""

    limits: Limits
    steps: tuple[PlanStep, ...]
    lowest_ready: int
    most_live: int
    final: Fleet
    end: Decision
    duration: timedelta

    @property
    def blocked(self) -> Blocked | None:
        return self.end if isinstance(self.end, Blocked) else None


def preview(rollout: Rollout, fleet: Fleet, *, progress: Progress | None = None, approve: bool = True) -> Plan:
    """The plan from `fleet` to the end of `rollout`.

    `approve` assumes that a user promotes every step that waits for approval;
    the wait is in the plan all the same.  The plan of a paused rollout only
    replaces lost replicas and scales.
    """
    return _Preview(rollout, fleet, progress or Progress(rollout.target), approve).run()


class _Round:
    """Steps up to a wait, how often they were done in a row, and the fleet after the last few times."""

    def __init__(self, steps: list[PlanStep], *ends: tuple[Fleet, int, datetime]) -> None:
        self.steps = steps
        self.times = len(ends)
        self.ends = list(ends)

    def repeats(self, steps: list[PlanStep]) -> bool:
        return len(self.steps) == len(steps) and all(a.same(b) for a, b in zip(self.steps, steps, strict=True))


class _Preview:
    """The simulated fleet of one preview, and the steps so far."""

    def __init__(self, rollout: Rollout, fleet: Fleet, progress: Progress, approve: bool) -> None:
        self.rollout = rollout
        self.fleet = fleet
        self.progress = progress
        self.approve = approve
        self.now = EPOCH
        self.growing = fleet.live < rollout.limits.replicas
        self.lowest = fleet.ready
        self.highest = fleet.live
        self.rounds: list[_Round] = []
        self.open: list[PlanStep] = []
        self.made_room = False

    def run(self) -> Plan:
        while True:
            verdict = decide(self.rollout, self.fleet, progress=self.progress, now=self.now)
            self.progress = verdict.progress
            if self.made_room and not isinstance(verdict.decision, Start):
                # A wait for replicas to go ends a round, unless it made room for a start.
                self._close_round(verdict.shape)
                continue
            if self._ends(verdict):
                return self._plan(verdict.decision)
            self.made_room = False
            if self._advance(verdict):
                self.made_room = verdict.decision.because.code is Code.WAITING_FOR_TERMINATION
                if not self.made_room:
                    self._close_round(verdict.shape)

    def _ends(self, verdict: Verdict) -> bool:
        decision = verdict.decision
        if isinstance(decision, Blocked | Done | RollBack):
            return True
        if isinstance(decision, Hold) and decision.until is None:
            return self.rollout.paused or not self.approve or decision.because.code is Code.DELETION_NEEDED
        return isinstance(decision, Wait) and not self._can_settle()

    def _can_settle(self) -> bool:
        pools = (self.fleet.old, self.fleet.new)
        return any(pool.unready or pool.settling or pool.terminating for pool in pools)

    def _advance(self, verdict: Verdict) -> bool:
        """Carry the decision out; True when it ends a round."""
        fleet = self.fleet
        phase = phase_of(verdict, fleet, rollout=self.rollout, growing=self.growing)
        match verdict.decision:
            case Start(side=side, count=number, because=because):
                self._note(phase, Action.START, number, because, side=side)
                self.fleet = _with(fleet, side, unready=fleet.pool(side).unready + number)
            case Stop(side=side, kind=kind, count=number, because=because):
                self._note(phase, Action.STOP, number, because, side=side)
                self.fleet = _stopped(fleet, side, kind, number)
            case Switch(traffic=traffic, because=because):
                self._note(phase, Action.SWITCH, fleet.new.available, because, side=Side.NEW)
                self.fleet = msgspec.structs.replace(fleet, traffic=traffic)
            case Wait(side=side, count=number, because=because):
                self._note(phase, Action.WAIT, number, because, side=side)
                self._settle()
                return True
            case Hold(until=until, because=because):
                pause = None if until is None else until - self.now
                self._note(phase, Action.WAIT, 0, because, wait=pause)
                self.now = until or self.now
                if until is None:
                    self.rollout = msgspec.structs.replace(self.rollout, approved=verdict.progress.step + 1)
            case Blocked() | RollBack() | Done():
                raise AssertionError("the end of a plan is not carried out")
        self.lowest = min(self.lowest, self.fleet.ready)
        self.highest = max(self.highest, self.fleet.live)
        return False

    def _settle(self) -> None:
        """End a wait: replicas that were started are available, those that were stopped are gone."""
        fleet = self.fleet
        self.growing = fleet.live < self.rollout.limits.replicas
        self.fleet = msgspec.structs.replace(
            fleet,
            old=Pool(available=fleet.old.live),
            new=Pool(available=fleet.new.live),
            settled_at=self.now,
            settles_at=None,
        )

    def _note(
        self,
        phase: Phase,
        action: Action,
        number: int,
        because: Because,
        *,
        side: Side | None = None,
        wait: timedelta | None = None,
    ) -> None:
        self.open.append(PlanStep(phase=phase, action=action, count=number, because=because, side=side, wait=wait))

    def _close_round(self, shape: Shape) -> None:
        """Record the steps up to this wait as a round, and skip the rounds that repeat it."""
        self.rounds.append(_Round(self.open, (self.fleet, self.progress.step, self.now)))
        self.open, self.made_room = [], False
        if self._fold(1) or self._fold(2):
            self._stride(shape)

    def _fold(self, size: int) -> bool:
        """Count the last `size` rounds as a repetition of those before them, if they are equal."""
        earlier, latest = self.rounds[-2 * size : -size], self.rounds[-size:]
        steps, ends = _joined(latest), latest[-1].ends
        if not earlier or any(each.times > 1 for each in latest):
            return False
        if earlier[-1].repeats(steps):
            earlier[-1].times += 1
            earlier[-1].ends += ends
            del self.rounds[-size:]
            return True
        # Two rounds that take turns are one.
        if size == len(earlier) == 2 and earlier[0].times == earlier[1].times == 1:
            turns = _Round(_joined(earlier), *earlier[1].ends, *ends)
            if turns.repeats(steps):
                self.rounds[-4:] = [turns]
                return True
        return False

    def _stride(self, shape: Shape) -> None:
        """Skip rounds that must be equal to the last two.

        Three rounds that change the counts by the same amounts are followed by
        equal ones, as long as no count comes near a number that the rule
        compares it with.
        """
        last = self.rounds[-1]
        if len(last.ends) < 3:
            return
        (first, began, _), (second, _, then), (third, step, now) = last.ends[-3:]
        old, new = moved = _moved(second, third)
        if began != step or moved == (0, 0) or moved != _moved(first, second):
            return
        replicas = self.rollout.limits.replicas
        margin = 2 * sum(each.count for each in last.steps if each.action is not Action.WAIT) + 2
        ways = (
            (third.old.live, old, (shape.old, replicas)),
            (third.new.live, new, (shape.new, replicas)),
            (third.live, old + new, (shape.floor, replicas, shape.ceiling)),
        )
        distances = [
            (abs(bound - at), abs(speed))
            for at, speed, bounds in ways
            for bound in bounds
            if speed and (bound - at) * speed >= 0
        ]
        strides = min(((distance - margin) // speed for distance, speed in distances), default=0)
        if strides <= 0:
            return
        self.now = now + strides * (now - then)
        self.fleet = msgspec.structs.replace(
            third,
            old=Pool(available=third.old.live + strides * old),
            new=Pool(available=third.new.live + strides * new),
            settled_at=self.now,
        )
        last.times += strides
        last.ends = [(self.fleet, step, self.now)]

    def _plan(self, end: Decision) -> Plan:
        if self.open:
            self.rounds.append(_Round(self.open, (self.fleet, self.progress.step, self.now)))
        steps = [
            msgspec.structs.replace(step, round=index, repeat=each.times)
            for index, each in enumerate(self.rounds)
            for step in each.steps
        ]
        return Plan(
            limits=self.rollout.limits,
            steps=tuple(steps),
            lowest_ready=self.lowest,
            most_live=self.highest,
            final=self.fleet,
            end=end,
            duration=self.now - EPOCH,
        )


def phase_of(verdict: Verdict, fleet: Fleet, *, rollout: Rollout, growing: bool = False) -> Phase:
    """The phase that a verdict puts the rollout in.  `growing`: the fleet has not reached its new size yet."""
    match verdict.decision:
        case Done():
            return Phase.COMPLETED
        case Blocked(because=Because(code=Code.PROGRESS_DEADLINE_EXCEEDED)) | RollBack():
            return Phase.FAILED
        case Blocked() | Hold():
            return Phase.PAUSED
        case Stop(because=Because(code=Code.SCALING_DOWN | Code.DRAINING)):
            return Phase.SCALING_DOWN
        case Stop() | Wait() if not rollout.steps[verdict.progress.step].floor:
            return Phase.SCALING_DOWN
        case Stop() | Switch():
            return Phase.UPDATING
        case Start() | Wait():
            beside = rollout.steps[verdict.progress.step].old in (Old.NONE, Old.SERVE)
            return Phase.SCALING_UP if growing or beside or fleet.initial else Phase.UPDATING


def _joined(rounds: list[_Round]) -> list[PlanStep]:
    return [step for each in rounds for step in each.steps]


def _moved(before: Fleet, after: Fleet) -> tuple[int, int]:
    """By how many old and new replicas the fleet changed."""
    return after.old.live - before.old.live, after.new.live - before.new.live


def _with(fleet: Fleet, side: Side, **counts: int) -> Fleet:
    return msgspec.structs.replace(fleet, **{side.value: msgspec.structs.replace(fleet.pool(side), **counts)})


def _stopped(fleet: Fleet, side: Side, kind: Kind, number: int) -> Fleet:
    """The fleet after a stop: replicas terminate until the next wait ends; dead ones are gone at once."""
    pool = fleet.pool(side)
    if kind is Kind.DEAD:
        return _with(fleet, side, dead=pool.dead - number)
    going = pool.terminating + number
    if kind is Kind.UNREADY:
        return _with(fleet, side, unready=pool.unready - number, terminating=going)
    settling = min(pool.settling, number)
    available = pool.available - number + settling
    return _with(fleet, side, settling=pool.settling - settling, available=available, terminating=going)
