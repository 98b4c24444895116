"""Simulated replicas: they start, become ready, crash, die and terminate in virtual time.

A `World` does what it is asked to do (`start`, `stop`, `drain`), and lets replicas change by themselves as time passes
(`advance`).  What happens to a replica is drawn from the seed and the name of the replica, so that a change in one
part of a rollout leaves the other replicas as they were.  The module must not know rollouts, decisions or the wall
clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count
from random import Random

import msgspec

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.fleet import Replica

RESTARTS = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=5), jitter=0.0)
"""How long a crashed replica waits before it starts again."""

SLOWNESS = 10
"""A slow replica takes this many times as long to be ready."""

LATE_CRASH = (5, 90)
"""A replica that crashes after it was ready does so within these seconds."""

LONG_AGO = timedelta(days=100 * 365)
"""How long the replicas that are there in the beginning have been ready: longer than any minReadySeconds."""

NOWHERE = 0
"""The node number of replicas that cannot be scheduled; nodes count from 1."""


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How the simulated replicas behave.

    ready_after  how long a replica takes to be ready, more or less `spread` of it
    slow         how likely it takes ten times as long
    crash        how likely a start of a replica ends in a crash, before it is ready or after
    death        how likely a crash is the last one; otherwise the replica starts again, later each time
    grace        how long a stopped replica takes to terminate
    nodes        over how many nodes the replicas are spread
    broken       revisions that are never ready
    """

    ready_after: timedelta = timedelta(seconds=8)
    spread: float = 0.25
    slow: float = 0.0
    crash: float = 0.0
    death: float = 0.25
    grace: timedelta = timedelta(seconds=3)
    nodes: int = 4
    broken: frozenset[str] = frozenset()


class Fate(msgspec.Struct, frozen=True):
    """What follows one start of a replica: when it is ready, when it crashes (None: never), whether for good."""

    ready_after: timedelta
    crash_after: timedelta | None
    dies: bool


def fate(behaviour: Behaviour, name: str, *, seed: int, attempt: int) -> Fate:
    """What happens after the `attempt`-th start of the replica `name`; the same seed gives the same result."""
    random = Random(f"{seed}:{name}:{attempt}")
    usual = behaviour.ready_after.total_seconds()
    delay = usual * random.uniform(1 - behaviour.spread, 1 + behaviour.spread)
    if random.random() < behaviour.slow:
        delay *= SLOWNESS
    crashes, late, dies = random.random() < behaviour.crash, random.random() < 0.5, random.random() < behaviour.death
    lasts = delay + random.uniform(*LATE_CRASH) if late else delay * random.uniform(0.1, 0.9)
    return Fate(_whole(delay), _whole(lasts) if crashes else None, dies)


class Event(StrEnum):
    """A change of a replica that the engine did not ask for."""

    READY = "ready"
    CRASHED = "crashed"
    DIED = "died"
    GONE = "gone"

    def __str__(self) -> str:
        return self.value


class Happening(msgspec.Struct, frozen=True):
    """An event of one replica."""

    event: Event
    replica: Replica


class World:
    """The simulated replicas by name, and the events that are still to come."""

    def __init__(self, behaviour: Behaviour, *, seed: int, now: datetime) -> None:
        self.behaviour = behaviour
        self.now = now
        self._seed = seed
        self._bodies: dict[str, Replica] = {}
        self._snapshot: tuple[Replica, ...] | None = None
        self._lives: dict[str, int] = {}
        self._attempts: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._crowds = dict.fromkeys(range(1, behaviour.nodes + 1), 0)
        self._numbers: dict[str, Iterator[int]] = {}
        self._order = count()
        self._pending: list[tuple[datetime, int, str, int, Event, bool]] = []

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All of them; the same tuple as long as nothing has changed."""
        if self._snapshot is None:
            self._snapshot = tuple(self._bodies.values())
        return self._snapshot

    @property
    def next_at(self) -> datetime | None:
        """When the next event is due; None: there is none."""
        self._forget_stale()
        return self._pending[0][0] if self._pending else None

    @property
    def hopeful(self) -> bool:
        """Whether a replica that starts or terminates still has an event to come: then waiting makes sense."""
        return any(
            self._lives.get(name) == life and (event is Event.GONE or self._bodies[name].ready_since is None)
            for _, _, name, life, event, _ in self._pending
        )

    # What it is asked to do.

    def found(self, revision: str, number: int, *, ordered: bool = False, broken: int = 0) -> None:
        """Create the replicas that exist at the beginning; the last `broken` of them never become ready."""
        for index in range(number):
            replica = self._new(revision, ordinal=index if ordered else None)
            if index >= number - broken:
                continue
            self._put(msgspec.structs.replace(replica, ready_since=self.now - LONG_AGO))
            chance = fate(self.behaviour, replica.id, seed=self._seed, attempt=0)
            if chance.crash_after is not None:
                self._later(chance.crash_after, replica.id, Event.CRASHED, dies=chance.dies)

    def start(self, revision: str, number: int, *, ordered: bool = False) -> None:
        for _ in range(number):
            replica = self._new(revision, ordinal=self._free_ordinal() if ordered else None)
            self._attempt(replica.id, after=timedelta())

    def stop(self, names: Iterable[str]) -> None:
        """Stop replicas: dead ones are gone at once, live ones after the grace period."""
        for name in names:
            replica = self._bodies[name]
            if replica.terminating:
                continue
            self._lives[name] += 1
            if replica.dead:
                self._remove(name)
                continue
            self._put(msgspec.structs.replace(replica, terminating=True))
            self._later(self.behaviour.grace, name, Event.GONE)

    def crash(self, names: Iterable[str], *, dies: bool = False) -> tuple[Happening, ...]:
        return tuple(self._crash(name, dies=dies) for name in names)

    def drain(self, node: int) -> int:
        """Drain a node: nothing is scheduled to it any more, and its replicas must leave; returns how many."""
        self._crowds.pop(node, None)
        leaving = [name for name, place in self._nodes.items() if place == node]
        for name in leaving:
            self._put(msgspec.structs.replace(self._bodies[name], leaving=True))
        return len(leaving)

    # What happens by itself.

    def advance(self, to: datetime) -> tuple[Happening, ...]:
        """Let time pass until `to`; returns the events in order."""
        happened = []
        while (moment := self.next_at) is not None and moment <= to:
            _, _, name, _, event, dies = heapq.heappop(self._pending)
            self.now = moment
            happened.append(self._happen(name, event, dies=dies))
        self.now = to
        return tuple(happened)

    def _happen(self, name: str, event: Event, *, dies: bool) -> Happening:
        replica = self._bodies[name]
        match event:
            case Event.READY:
                return Happening(event, self._put(msgspec.structs.replace(replica, ready_since=self.now)))
            case Event.GONE:
                self._remove(name)
                return Happening(event, replica)
            case Event.CRASHED | Event.DIED:
                return self._crash(name, dies=dies)

    def _crash(self, name: str, *, dies: bool) -> Happening:
        replica = self._put(msgspec.structs.replace(self._bodies[name], ready_since=None, dead=dies))
        self._lives[name] += 1
        if dies:
            return Happening(Event.DIED, replica)
        self._attempts[name] += 1
        self._attempt(name, after=RESTARTS.delay(self._attempts[name]))
        return Happening(Event.CRASHED, replica)

    def _new(self, revision: str, *, ordinal: int | None) -> Replica:
        name = f"{revision}-{next(self._numbers.setdefault(revision, count()))}"
        replica = self._put(Replica(id=name, revision=revision, created_at=self.now, ordinal=ordinal))
        self._lives[name] = self._attempts[name] = 0
        node = self._nodes[name] = min(self._crowds, key=self._crowds.__getitem__, default=NOWHERE)
        if node in self._crowds:
            self._crowds[node] += 1
        return replica

    def _put(self, replica: Replica) -> Replica:
        self._bodies[replica.id] = replica
        self._snapshot = None
        return replica

    def _remove(self, name: str) -> None:
        self._snapshot = None
        node = self._nodes[name]
        if node in self._crowds:
            self._crowds[node] -= 1
        for table in (self._bodies, self._lives, self._attempts, self._nodes):
            del table[name]

    def _attempt(self, name: str, *, after: timedelta) -> None:
        """Schedule the events of the replica's next start, which begins `after` a while."""
        if self._bodies[name].revision in self.behaviour.broken:
            return
        chance = fate(self.behaviour, name, seed=self._seed, attempt=self._attempts[name])
        if chance.crash_after is None or chance.crash_after > chance.ready_after:
            self._later(after + chance.ready_after, name, Event.READY)
        if chance.crash_after is not None:
            self._later(after + chance.crash_after, name, Event.CRASHED, dies=chance.dies)

    def _later(self, delay: timedelta, name: str, event: Event, *, dies: bool = False) -> None:
        entry = (self.now + delay, next(self._order), name, self._lives[name], event, dies)
        heapq.heappush(self._pending, entry)

    def _forget_stale(self) -> None:
        """Drop events that were scheduled before the replica crashed or was stopped."""
        while self._pending and self._lives.get(self._pending[0][2]) != self._pending[0][3]:
            heapq.heappop(self._pending)

    def _free_ordinal(self) -> int:
        taken = {replica.ordinal for replica in self._bodies.values() if not replica.dead}
        return next(ordinal for ordinal in count() if ordinal not in taken)


def _whole(seconds: float) -> timedelta:
    """Times are whole seconds, as Kubernetes writes them; everything takes at least one."""
    return timedelta(seconds=max(1, round(seconds)))
