"""Walk every state that a small fleet can reach, and check the promises in each.

The engine and the world take turns in every possible order.  The engine's move
is what `decide` says; the world's are: a replica becomes ready, settles,
crashes, dies, terminates; time passes; a user approves, pauses, resumes,
scales, aborts, or brings another revision.  What is checked (the numbers are
those of `docs/engine.md`):

P1   a stop never takes ready replicas below min(floor, ready before)
P2   live replicas stay within the ceiling, or are not raised when above it
P3   from every state the goal can be reached, even if no old replica ever
     recovers and nothing unplanned happens any more; or the verdict says what
     the user has to do: Blocked, paused, delete
P4   when the engine says Done, the fleet is what was asked for
P5   ... and it says nothing else from then on
P6   the same observation gives the same decision (asked twice in every eighth state)
P10  all of this whatever is asked for midway
P13  a fleet that replaces its unready old replicas a few at a time never has more of them under way

The checks are written from these sentences and share no arithmetic with the
engine, so that a weakened rule is caught rather than repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from holdfast.kernel.fleet import Fleet, Pool, Side
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
from holdfast.kernel.strategies import Old, Step

NOW = datetime(2025, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=1)

Decide = Callable[..., Verdict]


class World(msgspec.Struct, frozen=True):
    """A state: the fleet, the facts kept with it, and what is asked for.

    `size` and `paused` select among the configurations of the exploration;
    `pure` says that the old side holds nothing but the stable revision, so that
    an abort can turn back to it.
    """

    fleet: Fleet
    progress: Progress
    size: int
    paused: bool = False
    approved: int = 0
    pure: bool = True


class Breach(msgspec.Struct, frozen=True):
    """A promise that was broken, and where."""

    promise: str
    world: World
    decision: Decision | None
    why: str


class Report(msgspec.Struct):
    """What a walk saw."""

    states: int = 0
    decisions: int = 0
    blocked: int = 0
    goals: int = 0
    breaches: list[Breach] = []

    def add(self, other: Report) -> None:
        self.states += other.states
        self.decisions += other.decisions
        self.blocked += other.blocked
        self.goals += other.goals
        self.breaches += other.breaches


class Exploration(msgspec.Struct, kw_only=True):
    """One walk: the rollouts for each size, and which moves the world has.

    rollouts   what is asked for at each size the fleet can be scaled to
    old        how many replicas of the stable revision the walk begins with
    traffic    0 for strategies that switch traffic, None for the others
    crashes    ready replicas may turn unready, live ones may be lost
    remains    lost replicas leave remains to be removed
    settling   new replicas settle before they are available
    terminating  stopped replicas take their time to go, up to two of a side at once
    revisions  another revision may arrive at any moment
    interrupts pause, resume and abort at any moment
    """

    rollouts: tuple[Rollout, ...]
    old: int
    traffic: int | None = None
    crashes: bool = True
    remains: bool = False
    settling: bool = False
    terminating: bool = False
    revisions: bool = True
    interrupts: bool = False
    decide: Decide = decide

    def rollout(self, world: World) -> Rollout:
        rollout = self.rollouts[world.size]
        if world.paused == rollout.paused and world.approved == rollout.approved:
            return rollout
        return msgspec.structs.replace(rollout, paused=world.paused, approved=world.approved)


def explore(walk: Exploration, *, most: int = 5) -> Report:
    """Visit every reachable state; stop collecting after `most` breaches."""
    report = Report()
    first = World(
        Fleet(old=Pool(available=walk.old), stable=walk.old > 0, traffic=walk.traffic),
        Progress(),
        size=0,
    )
    seen: dict[World, int] = {first: 0}
    back: list[list[int]] = [[]]
    settled: list[int] = []
    frontier = [first]
    while frontier and len(report.breaches) < most:
        world = frontier.pop()
        index = seen[world]
        verdict = walk.decide(walk.rollout(world), world.fleet, progress=world.progress, now=NOW)
        report.decisions += 1
        after = _act(walk, world, verdict)
        report.breaches.extend(_check(walk, world, verdict, after))
        if index % 8 == 0:
            report.breaches.extend(_check_again(walk, world, verdict))
        if isinstance(verdict.decision, Blocked | Done) or _waits_for_a_user(verdict):
            settled.append(index)
            report.blocked += isinstance(verdict.decision, Blocked)
            report.goals += isinstance(verdict.decision, Done)
        helpful = [*_recoveries(walk, world, verdict)] if after is None else [after, *_recoveries(walk, world, verdict)]
        for number, successor in enumerate((*helpful, *_misfortunes(walk, world))):
            known = seen.get(successor)
            if known is None:
                known = seen[successor] = len(back)
                back.append([])
                frontier.append(successor)
            if number < len(helpful):
                back[known].append(index)
    report.states = len(seen)
    if not report.breaches:
        report.breaches.extend(_stranded(seen, back, settled))
    return report


def _waits_for_a_user(verdict: Verdict) -> bool:
    return verdict.decision.because.code in (Code.PAUSED, Code.DELETION_NEEDED)


def _stranded(seen: dict[World, int], back: list[list[int]], settled: list[int]) -> Iterator[Breach]:
    """P3: walk backwards from every settled state; what is not met cannot reach one."""
    met = bytearray(len(back))
    stack = list(settled)
    for index in stack:
        met[index] = 1
    while stack:
        for index in back[stack.pop()]:
            if not met[index]:
                met[index] = 1
                stack.append(index)
    for world, index in seen.items():
        if not met[index]:
            yield Breach("P3", world, None, "neither the goal nor a Blocked verdict can be reached from here")
            return


# What the engine does.


def _act(walk: Exploration, world: World, verdict: Verdict) -> World | None:
    """The world after the verdict was carried out; None when it asks for nothing."""
    fleet = world.fleet
    match verdict.decision:
        case Start(side=side, count=number):
            fleet = _changed(fleet, side, unready=number)
        case Stop(side=side, kind=kind, count=number):
            fleet = _stopped(walk, fleet, side, kind, number)
        case Switch(traffic=traffic):
            fleet = msgspec.structs.replace(fleet, traffic=traffic)
        case _:
            if verdict.progress == world.progress:
                return None
    # An approval that was used is dropped, so that it does not make two states of one.
    approved = world.approved if world.approved > verdict.progress.step else 0
    return msgspec.structs.replace(world, fleet=fleet, progress=verdict.progress, approved=approved)


def _stopped(walk: Exploration, fleet: Fleet, side: Side, kind: Kind, number: int) -> Fleet:
    pool = fleet.pool(side)
    if kind is Kind.DEAD:
        return _changed(fleet, side, dead=-number)
    # Two terminating replicas make all the differences that more of them would.
    going = min(number, 2 - min(2, pool.terminating)) if walk.terminating else 0
    if kind is Kind.UNREADY:
        return _changed(fleet, side, unready=-number, terminating=going)
    settling = min(pool.settling, number)
    return _changed(fleet, side, settling=-settling, available=settling - number, terminating=going)


def _changed(
    fleet: Fleet,
    side: Side,
    *,
    unready: int = 0,
    settling: int = 0,
    available: int = 0,
    terminating: int = 0,
    dead: int = 0,
) -> Fleet:
    old, new = fleet.old, fleet.new
    pool = new if side is Side.NEW else old
    changed = Pool(
        pool.unready + unready,
        pool.settling + settling,
        pool.available + available,
        pool.terminating + terminating,
        pool.dead + dead,
    )
    old, new = (old, changed) if side is Side.NEW else (changed, new)
    return Fleet(old, new, fleet.stable, fleet.traffic, fleet.gaps, fleet.settled_at, fleet.settles_at)


# What the world does.


def _recoveries(walk: Exploration, world: World, verdict: Verdict) -> Iterator[World]:
    """What a rollout may count on: new replicas get ready, stopped ones go, time passes, a user approves."""
    fleet, decision, progress = world.fleet, verdict.decision, verdict.progress
    for side, pool in ((Side.NEW, fleet.new), (Side.OLD, fleet.old)):
        for recovered in _recovered(walk, fleet, side, pool):
            yield msgspec.structs.replace(world, fleet=recovered)
    if not isinstance(decision, Hold) or world.paused:
        return
    if decision.until is None:
        yield msgspec.structs.replace(world, approved=progress.step + 1)
    else:
        # As if the step had been reached, and the batch had settled, long ago.
        long_ago = NOW - timedelta(days=1)
        yield msgspec.structs.replace(
            world,
            progress=msgspec.structs.replace(progress, reached_at=long_ago),
            fleet=msgspec.structs.replace(fleet, settled_at=long_ago),
        )


def _recovered(walk: Exploration, fleet: Fleet, side: Side, pool: Pool) -> Iterator[Fleet]:
    if pool.unready and side is Side.NEW:
        if walk.settling:
            yield _changed(fleet, side, unready=-1, settling=1)
        else:
            yield _settled(walk, _changed(fleet, side, unready=-1, available=1), side)
    if pool.settling:
        yield _settled(walk, _changed(fleet, side, settling=-1, available=1), side)
    if pool.terminating:
        yield _changed(fleet, side, terminating=-1)


def _misfortunes(walk: Exploration, world: World) -> Iterator[World]:
    """What is not planned: crashes, losses, late recoveries, another revision, pause, abort and scale."""
    fleet = world.fleet
    if fleet.old.unready:
        yield msgspec.structs.replace(world, fleet=_changed(fleet, Side.OLD, unready=-1, available=1))
    if walk.crashes:
        for side, pool in ((Side.NEW, fleet.new), (Side.OLD, fleet.old)):
            for worse in _worse(walk, fleet, side, pool):
                yield msgspec.structs.replace(world, fleet=worse)
    if walk.revisions and fleet.new.live + fleet.new.dead + fleet.new.terminating:
        yield _new_revision(world)
    if walk.interrupts:
        yield from _interrupts(walk, world)


def _worse(walk: Exploration, fleet: Fleet, side: Side, pool: Pool) -> Iterator[Fleet]:
    if pool.available:
        yield _changed(fleet, side, available=-1, unready=1)
    if walk.remains:
        if pool.unready and not pool.dead:
            yield _changed(fleet, side, unready=-1, dead=1)
    elif pool.unready:
        yield _changed(fleet, side, unready=-1)
    elif pool.available:
        yield _changed(fleet, side, available=-1)


def _settled(walk: Exploration, fleet: Fleet, side: Side) -> Fleet:
    if side is Side.NEW and walk.rollouts[0].pause:
        return msgspec.structs.replace(fleet, settled_at=NOW)
    return fleet


def _new_revision(world: World) -> World:
    """Another revision arrives: all that was new is now old, and what gets no traffic gives nothing."""
    fleet = world.fleet
    old, new = fleet.old, fleet.new
    if fleet.active is Side.NEW:
        old = Pool(unready=old.live, terminating=old.terminating, dead=old.dead)
    elif fleet.active is Side.OLD:
        new = Pool(unready=new.live, terminating=new.terminating, dead=new.dead)
    merged = Pool(*(getattr(old, name) + getattr(new, name) for name in Pool.__struct_fields__))
    return msgspec.structs.replace(
        world,
        fleet=Fleet(old=merged, stable=True, traffic=None if fleet.traffic is None else 0),
        progress=Progress(),
        approved=0,
        pure=False,
    )


def _interrupts(walk: Exploration, world: World) -> Iterator[World]:
    yield msgspec.structs.replace(world, paused=not world.paused)
    for size in range(len(walk.rollouts)):
        if size != world.size:
            yield msgspec.structs.replace(world, size=size)
    fleet = world.fleet
    if world.pure and fleet.stable:
        # Abort: the stable revision is wanted again, and what was new makes way.
        traffic = None if fleet.traffic is None else 100 - fleet.traffic
        yield msgspec.structs.replace(
            world,
            fleet=Fleet(old=fleet.new, new=fleet.old, stable=True, traffic=traffic),
            progress=Progress(),
            approved=len(walk.rollouts[0].steps),
        )


# What must hold.


def _check(walk: Exploration, world: World, verdict: Verdict, after: World | None) -> Iterable[Breach]:
    fleet, decision, rollout = world.fleet, verdict.decision, walk.rollout(world)
    step = rollout.steps[verdict.progress.step]
    if isinstance(decision, Stop) and after is not None:
        least = min(rollout.limits.floor if step.floor else 0, fleet.ready)
        if after.fleet.ready < least:
            yield Breach("P1", world, decision, f"{after.fleet.ready} ready, at least {least} must be")
        if decision.count < 1 or _negative(after.fleet):
            yield Breach("P1", world, decision, "stops what is not there")
        yield from _check_unready(rollout, step, world, decision)
    if isinstance(decision, Start) and after is not None:
        most = 2 * rollout.limits.replicas if step.old is Old.SERVE else rollout.limits.replicas + rollout.limits.surge
        counted = rollout.count_terminating or rollout.ordered
        live = after.fleet.live + (fleet.old.terminating + fleet.new.terminating if counted else 0)
        if live > most:
            yield Breach("P2", world, decision, f"{live} live, at most {most} may be")
        if decision.count < 1:
            yield Breach("P2", world, decision, "starts nothing")
    if isinstance(decision, Done):
        yield from _check_done(walk, world, verdict)


def _check_unready(rollout: Rollout, step: Step, world: World, stop: Stop) -> Iterable[Breach]:
    """P13: of a fleet that asks for it, no more unready old replicas are under replacement than it allows."""
    if rollout.unready_at_a_time is None or (stop.side, stop.kind) != (Side.OLD, Kind.UNREADY):
        return
    fleet = world.fleet
    empty = rollout.limits.replicas - fleet.live if step.floor else 0
    going = max(fleet.old.terminating + fleet.new.terminating, empty)
    if (replaced := stop.count + fleet.new.unready + going) > rollout.unready_at_a_time:
        yield Breach(
            "P13", world, stop, f"{replaced} are replaced at a time, at most {rollout.unready_at_a_time} may be"
        )


def _check_again(walk: Exploration, world: World, verdict: Verdict) -> Iterable[Breach]:
    again = walk.decide(walk.rollout(world), world.fleet, progress=world.progress, now=NOW)
    if again != verdict:
        yield Breach("P6", world, verdict.decision, f"asked again, it says {again}")


def _negative(fleet: Fleet) -> bool:
    return any(getattr(pool, name) < 0 for pool in (fleet.old, fleet.new) for name in Pool.__struct_fields__)


def _check_done(walk: Exploration, world: World, verdict: Verdict) -> Iterable[Breach]:
    fleet, rollout = world.fleet, walk.rollout(world)
    replicas = rollout.limits.replicas
    wanted = rollout.steps[-1].new(replicas)
    if fleet.new.available < wanted or fleet.live != replicas or fleet.old.live > replicas - wanted:
        yield Breach("P4", world, verdict.decision, f"done with {fleet.old} and {fleet.new} of {replicas} desired")
    later = walk.decide(rollout, fleet, progress=verdict.progress, now=LATER)
    if not isinstance(later.decision, Done):
        yield Breach("P5", world, verdict.decision, f"after Done it says {later.decision}")
