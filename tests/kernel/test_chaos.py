"""Beyond the walk: larger fleets, every manner at once, and everything changed midway.

Seeded, so that a failure can be replayed by its number.  What is checked is
written from the promises of `docs/engine.md` and shares no arithmetic with the
engine.  In every run the world is chaotic for a while and then kind; the
rollout must end, or say what the user has to do.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

import msgspec
import pytest

from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.groups import Role, decide_group
from holdfast.kernel.limits import Limits
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import (
    Blocked,
    Decision,
    Done,
    Hold,
    Kind,
    Progress,
    Rollout,
    Start,
    Stop,
    Switch,
    Verdict,
    decide,
)
from holdfast.kernel.strategies import (
    CanaryStep,
    Old,
    Step,
    Switched,
    blue_green,
    canary,
    on_delete,
    recreate,
    rolling_update,
)
from holdfast.testing.explore import NOW

SECOND = timedelta(seconds=1)
replace = msgspec.structs.replace


def any_limits(random: Random) -> Limits:
    replicas = random.choice([0, 1, 1, 2, 3, 4, 5, 8, 13, 30])
    floor = random.randint(0, replicas)
    return Limits(replicas, floor, floor, random.choice([0, 0, 1, 1, 2, replicas]))


def any_steps(random: Random) -> tuple[Step, ...]:
    match random.randrange(6):
        case 0:
            return rolling_update()
        case 1:
            return rolling_update(partition=random.randint(0, 9))
        case 2:
            return recreate()
        case 3:
            pause, delay = random.choice([None, SECOND]), random.choice([timedelta(), SECOND])
            return blue_green(pause=pause, approval=random.random() < 0.3, delay=delay)
        case 4:
            return canary(tuple(any_canary_step(random) for _ in range(random.randint(1, 4))))
        case _:
            return on_delete()


def any_canary_step(random: Random) -> CanaryStep:
    approval, pause = random.random() < 0.4, random.choice([None, SECOND])
    if random.random() < 0.3:
        return CanaryStep(replicas=random.randint(0, 9), approval=approval, pause=pause)
    return CanaryStep(weight=random.choice([0, 10, 50, 100]), approval=approval, pause=pause)


class World:
    """One rollout and its fleet: it carries out decisions, recovers, and fails."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lingers = random.random() < 0.5
        self.settles = random.random() < 0.4
        self.rollout = Rollout(
            limits=any_limits(random),
            target="0",
            steps=any_steps(random),
            pause=random.choice([timedelta(), timedelta(), SECOND]),
            ordered=random.random() < 0.3,
            count_terminating=random.random() < 0.4,
        )
        replicas = self.rollout.limits.replicas
        current = random.choice([replicas, replicas, 0, random.randint(0, replicas + 3)])
        self.fleet = Fleet(old=Pool(available=current), stable=current > 0)
        self.progress, self.now = Progress(), NOW
        self.route()

    @property
    def switches(self) -> bool:
        return any(isinstance(step.gate, Switched) for step in self.rollout.steps)

    def route(self) -> None:
        """Traffic follows the strategy: one side gets it only where it is switched."""
        if not self.switches:
            self.fleet = replace(self.fleet, traffic=None)
        elif self.fleet.traffic is None:
            self.fleet = replace(self.fleet, traffic=0 if self.fleet.old.live else 100)

    def change(self, side: Side, **counts: int) -> None:
        pool = self.fleet.pool(side)
        changed = {name: getattr(pool, name) + number for name, number in counts.items()}
        assert min(changed.values()) >= 0, f"there are not so many: {counts} of {pool}"
        self.fleet = replace(self.fleet, **{side.value: replace(pool, **changed)})

    # What the engine does.

    def obey(self, verdict: Verdict) -> bool:
        """Carry a verdict out, and hold it to the promises; whether anything changed."""
        before, facts, decision = self.fleet, self.progress, verdict.decision
        self.progress = verdict.progress
        limits, step = self.rollout.limits, self.rollout.steps[verdict.progress.step]
        match decision:
            case Start(side=side, count=number):
                assert number > 0
                assert side is Side.NEW or before.stable, "P2: starts what there is no revision for"
                self.change(side, unready=number)
                counted = self.rollout.count_terminating or self.rollout.ordered
                going = before.old.terminating + before.new.terminating if counted else 0
                most = 2 * limits.replicas if step.old is Old.SERVE else limits.replicas + limits.surge
                assert self.fleet.live + going <= most, f"P2: {self.fleet.live + going} live of {most}"
            case Stop():
                self.stop(decision)
                least = min(before.ready, limits.floor if step.floor or self.rollout.paused else 0)
                assert self.fleet.ready >= least, f"P1: {self.fleet.ready} ready of {least}"
            case Switch(traffic=traffic):
                self.fleet = replace(before, traffic=traffic)
                assert self.fleet.ready >= min(before.ready, limits.floor), "P1: switched to too few"
        return (before, facts) != (self.fleet, self.progress)

    def stop(self, decision: Stop) -> None:
        side, number = decision.side, decision.count
        assert number > 0
        going = number if self.lingers else 0
        if decision.kind is Kind.DEAD:
            self.change(side, dead=-number)
        elif decision.kind is Kind.UNREADY:
            self.change(side, unready=-number, terminating=going)
        else:
            settling = min(self.fleet.pool(side).settling, number)
            self.change(side, settling=-settling, available=settling - number, terminating=going)

    # What a rollout may count on.

    def help(self, decision: Decision) -> bool:
        """One replica gets further, time passes, or a user approves; returns whether anything changed."""
        ready = {"settling": 1} if self.settles else {"available": 1}
        moves = [
            (side, move)
            for side in Side
            for state, move in (
                ("unready", {"unready": -1, **ready}),
                ("settling", {"settling": -1, "available": 1}),
                ("terminating", {"terminating": -1}),
            )
            # An old replica that is not ready may never be again.
            if getattr(self.fleet.pool(side), state) and (side, state) != (Side.OLD, "unready")
        ]
        if moves:
            side, move = self.random.choice(moves)
            self.change(side, **move)
            if side is Side.NEW and "available" in move:
                self.fleet = replace(self.fleet, settled_at=self.now)
            return True
        if not isinstance(decision, Hold) or self.rollout.paused:
            return False
        if decision.until is not None:
            self.now = decision.until
        elif decision.because.code is Code.APPROVAL_NEEDED:
            self.rollout = replace(self.rollout, approved=self.progress.step + 1)
        else:
            return False
        return True

    # What is not planned.

    def disturb(self) -> None:
        random, fleet = self.random, self.fleet
        side = random.choice(list(Side))
        pool = fleet.pool(side)
        match random.randrange(12):
            case 0 | 1 | 2 if pool.available:
                self.change(side, available=-1, unready=1)
            case 3 if pool.unready:
                self.change(side, unready=-1, dead=1)
            case 4 if pool.available:
                self.change(side, available=-1)
            case 5 if fleet.old.unready:
                self.change(Side.OLD, unready=-1, available=1)
            case 6:
                self.rollout = replace(self.rollout, paused=not self.rollout.paused)
            case 7:
                self.rollout = replace(self.rollout, limits=any_limits(random))
            case 8:
                self.rollout = replace(self.rollout, steps=any_steps(random))
                self.route()
            case 9:
                self.supersede()
            case 10 if fleet.stable:
                self.turn_back()
            case 11:
                manner = random.choice(["ordered", "count_terminating"])
                self.rollout = replace(self.rollout, **{manner: not getattr(self.rollout, manner)})

    def aim(self, fleet: Fleet, *, approved: int) -> None:
        target = str(int(self.rollout.target) + 1)
        self.fleet, self.rollout = fleet, replace(self.rollout, target=target, approved=approved)

    def supersede(self) -> None:
        """Another revision arrives: all is old now, and what gets no traffic gives nothing."""
        fleet = self.fleet
        old, new = (
            pool if fleet.active in (None, side) else Pool(pool.live, terminating=pool.terminating, dead=pool.dead)
            for side, pool in ((Side.OLD, fleet.old), (Side.NEW, fleet.new))
        )
        merged = Pool(*(sum(pair) for pair in zip(*map(msgspec.structs.astuple, (old, new)), strict=True)))
        stable = fleet.traffic is not None or self.random.random() < 0.8
        self.aim(Fleet(old=merged, stable=stable, traffic=None if fleet.traffic is None else 0), approved=0)

    def turn_back(self) -> None:
        """Abort: what was old is wanted again, and every gate is open."""
        fleet = self.fleet
        traffic = None if fleet.traffic is None else 100 - fleet.traffic
        self.aim(Fleet(old=fleet.new, new=fleet.old, traffic=traffic), approved=len(self.rollout.steps))

    # What must be true in the end.

    def check_end(self, verdict: Verdict) -> None:
        if not isinstance(verdict.decision, Done):
            return
        fleet, replicas = self.fleet, self.rollout.limits.replicas
        wanted = self.rollout.steps[-1].new(replicas)
        assert fleet.live == replicas, f"P4: {fleet.live} of {replicas}"
        assert fleet.new.available >= wanted, f"P4: {fleet.new.available} new of {wanted}"
        assert fleet.old.live <= replicas - wanted, f"P4: {fleet.old.live} old left"
        assert fleet.traffic in (None, 100), "P4: done without traffic"


def run(worlds: list[World], random: Random) -> None:
    """Failures, then recovery; no wait may last for ever without a reason."""

    def judge() -> list[Verdict]:
        if len(worlds) == 1:
            world = worlds[0]
            return [decide(world.rollout, world.fleet, progress=world.progress, now=world.now)]
        roles = {str(n): Role(world.rollout, world.fleet, world.progress) for n, world in enumerate(worlds)}
        return list(decide_group(roles, now=max(world.now for world in worlds)).values())

    for _ in range(random.randint(0, 60)):
        world, verdict = random.choice(list(zip(worlds, judge(), strict=True)))
        match random.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                world.obey(verdict)
            case 5 | 6 | 7:
                world.progress = verdict.progress
                world.help(verdict.decision)
            case _:
                world.disturb()
    for world in worlds:
        world.rollout = replace(world.rollout, paused=False)
    for _ in range(5_000):
        verdicts = judge()
        pairs = zip(worlds, verdicts, strict=True)
        if not any(world.obey(verdict) or world.help(verdict.decision) for world, verdict in pairs):
            break
    else:
        pytest.fail(f"turns in circles: {verdicts}")
    said = [verdict.decision for verdict in verdicts]
    waits_for_a_user = any(isinstance(each, Blocked) or each.because.code is Code.DELETION_NEEDED for each in said)
    assert waits_for_a_user or all(isinstance(each, Done) for each in said), f"P3: {said}"
    for world, verdict in zip(worlds, verdicts, strict=True):
        world.check_end(verdict)
        blocked = isinstance(verdict.decision, Blocked)
        assert not (blocked and world.rollout.limits.feasible), f"P3: blocked although feasible: {verdict}"


@pytest.mark.parametrize("start", range(0, 4_000, 500))
def test_one_rollout_keeps_its_promises_whatever_changes_midway(start: int) -> None:
    for seed in range(start, start + 500):
        random = Random(seed)
        try:
            run([World(random)], random)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("start", range(0, 1_200, 400))
def test_groups_of_two_and_three_keep_theirs(start: int) -> None:
    for seed in range(start, start + 400):
        random = Random(seed)
        try:
            run([World(random) for _ in range(2 + seed % 2)], random)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
