"""The fleet as a decision sees it: two pools of replicas, counted by state.

`sort_out` sorts replicas by side and state.  What it returns is counted into a `Fleet`,
and names the replicas that a decision stops; `observe` and `choose` do that in one.
Between the two the engine works on numbers alone, so its state space is small enough to
be walked completely.

*New* is the target revision; *old* is everything that must be replaced: earlier
revisions, revisions that were superseded before they were complete, replicas on
nodes that are being drained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from heapq import nsmallest

import msgspec


class Side(StrEnum):
    """Replicas of the target revision, or those that it replaces."""

    OLD = "old"
    NEW = "new"


class State(StrEnum):
    """The state of a replica, from worst to best."""

    DEAD = "dead"
    UNREADY = "unready"
    SETTLING = "settling"
    AVAILABLE = "available"
    TERMINATING = "terminating"


_LIVE = (State.UNREADY, State.SETTLING, State.AVAILABLE)
_LATEST = datetime.max.replace(tzinfo=UTC)


class Pool(msgspec.Struct, frozen=True):
    """How many replicas of one side are in which state.

    unready      alive, and not ready (yet, or any more)
    settling     ready for less than minReadySeconds
    available    ready for at least that long
    terminating  asked to stop, not gone yet
    dead         failed for good, or outdated and never scheduled; occupies no place, waits to be removed
    """

    unready: int = 0
    settling: int = 0
    available: int = 0
    terminating: int = 0
    dead: int = 0

    @property
    def ready(self) -> int:
        return self.settling + self.available

    @property
    def live(self) -> int:
        return self.unready + self.settling + self.available


class Fleet(msgspec.Struct, frozen=True):
    """Everything that a decision depends on.

    stable         an old revision is known that replicas can be started from
    traffic        percentage of traffic that goes to the new side; None: every
                   ready replica serves, whichever revision it is
    gaps           ordered fleets: ordinals missing below the highest one
    settled_at     when the last new replica became available
    settles_at     when the next settling replica will become available
    progressed_at  when the rollout last made progress (a new replica available, an
                   old one gone, a step passed) or was resumed; None: no rollout
    """

    old: Pool = Pool()
    new: Pool = Pool()
    stable: bool = True
    traffic: int | None = None
    gaps: int = 0
    settled_at: datetime | None = None
    settles_at: datetime | None = None
    progressed_at: datetime | None = None

    @property
    def live(self) -> int:
        return self.old.live + self.new.live

    @property
    def ready(self) -> int:
        """Ready replicas that serve."""
        active = self.active
        return self.old.ready + self.new.ready if active is None else self.pool(active).ready

    @property
    def available(self) -> int:
        """Available replicas that serve."""
        active = self.active
        return self.old.available + self.new.available if active is None else self.pool(active).available

    @property
    def active(self) -> Side | None:
        """The side that receives traffic; None when both do."""
        if self.traffic is None:
            return None
        return Side.NEW if self.traffic >= 100 else Side.OLD

    @property
    def initial(self) -> bool:
        """Nothing ran before: no replica to protect and no revision to return to."""
        return not self.stable and self.old.live == 0

    def pool(self, side: Side) -> Pool:
        return self.new if side is Side.NEW else self.old


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One replica as an operator reads it from the world.

    ready_since  when it last became ready; None: it is not
    leaving      it must be replaced although its revision is right (its node is
                 drained, its restart was asked for)
    cost         among equals, the cheaper one is stopped first
    restarts     how often a container of it restarted
    node         where it runs; among those of one age, the one that shares its node with most is stopped first
    """

    id: str
    revision: str
    created_at: datetime
    ready_since: datetime | None = None
    terminating: bool = False
    dead: bool = False
    leaving: bool = False
    ordinal: int | None = None
    cost: int = 0
    node: str = ""
    restarts: int = 0

    def side(self, target: str, *, size: int | None = None) -> Side:
        return Side.NEW if self.revision == target and not self.leaves(size) else Side.OLD

    def leaves(self, size: int | None) -> bool:
        """Whether it must go whatever its revision: by itself, or as an ordinal beyond a fleet of `size`."""
        return self.leaving or (size is not None and self.ordinal is not None and self.ordinal >= size)

    def state(self, *, min_ready: timedelta, now: datetime) -> State:
        if self.terminating:
            return State.TERMINATING
        if self.dead:
            return State.DEAD
        if self.ready_since is None:
            return State.UNREADY
        # Without minReadySeconds, ready is available: the clock of the node is not compared with ours.
        return State.AVAILABLE if not min_ready or now >= self.ready_since + min_ready else State.SETTLING


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Replicas by side and state, from the point of view of a revision.

    by_state   of each side and state, the replicas that count for it, in their order
    traffic    as in `Fleet`
    min_ready  how long a replica must be ready to be available
    size       as in `sort_out`
    """

    by_state: Mapping[Side, Mapping[State, list[Replica]]]
    traffic: int | None
    min_ready: timedelta
    size: int | None

    def fleet(self, *, stable: bool = True, progressed_at: datetime | None = None) -> Fleet:
        """The replicas, counted; for `stable` and `progressed_at` see `Fleet`."""
        old, new = self.by_state[Side.OLD], self.by_state[Side.NEW]
        settled = _ready_since(new[State.AVAILABLE])
        settling = _ready_since((*old[State.SETTLING], *new[State.SETTLING]))
        present = (*_LIVE, State.TERMINATING)
        ordinals = {each.ordinal for side in (old, new) for state in present for each in side[state]} - {None}
        return Fleet(
            old=_counted(old),
            new=_counted(new),
            stable=stable,
            traffic=self.traffic,
            gaps=max((each for each in ordinals if each is not None), default=-1) + 1 - len(ordinals),
            settled_at=max(settled) + self.min_ready if settled else None,
            settles_at=min(settling) + self.min_ready if settling else None,
            progressed_at=progressed_at,
        )

    def first(self, count: int, *, side: Side, states: frozenset[State], stable: str | None = None) -> tuple[str, ...]:
        """The `count` replicas of `side` in one of `states` that are stopped first, by id.

        Those that must leave whatever their revision come first.  Replicas of
        superseded revisions come before those of the stable one, so that soon only
        two revisions are left; then the worse state, the lower cost, the higher
        ordinal, the younger one, the one that shares its node with more.
        """
        crowd = Counter(each.node for pool in self.by_state.values() for state in _LIVE for each in pool[state])
        ranks = (
            (
                not each.leaves(self.size),
                each.revision == stable,
                badness,
                each.cost,
                -each.ordinal if each.ordinal is not None else 0,
                _LATEST - each.created_at,
                -crowd[each.node],
                each.id,
            )
            for badness, state in enumerate(State)
            if state in states
            for each in self.by_state[side][state]
        )
        return tuple(rank[-1] for rank in nsmallest(count, ranks))


def _counted(pool: Mapping[State, list[Replica]]) -> Pool:
    return Pool(**{state.value: len(replicas) for state, replicas in pool.items()})


def _ready_since(replicas: Iterable[Replica]) -> list[datetime]:
    return [each.ready_since for each in replicas if each.ready_since is not None]


def sort_out(
    replicas: Iterable[Replica],
    target: str,
    *,
    now: datetime,
    min_ready: timedelta = timedelta(),
    size: int | None = None,
    serving: str | None = None,
) -> Sorted:
    """Sort `replicas` from the point of view of the revision `target`.

    `size` is the number of replicas desired of an ordered fleet, which shrinks
    from its end: ordinals beyond it must leave, whatever their revision.

    `serving` is the revision that receives the traffic, where only one does.
    While that is not the target, other ready replicas on the old side (of a
    third revision, or of the target but leaving) receive no traffic and count
    as unready: removing them costs nothing.  When replicas of the target that
    serve are leaving, both sides serve, and whatever else is left of older
    revisions counts as unready likewise.
    """
    replicas = tuple(replicas)
    both = serving == target and any(each.revision == target and each.leaves(size) for each in replicas)
    # Where only one side serves, `Fleet.active` says which; on a side that serves, idle replicas count as unready.
    mixed = serving is not None and (serving != target or both)
    old: dict[State, list[Replica]] = {state: [] for state in State}
    new: dict[State, list[Replica]] = {state: [] for state in State}
    dead, unready, settling, available, terminating = State
    # A pass sorts a thousand replicas that hardly changed, so this is `Replica.side` and `Replica.state` in one.
    for replica in replicas:
        side = new if replica.revision == target and not replica.leaving else old
        if side is new and size is not None and replica.leaves(size):
            side = old
        since = replica.ready_since
        if replica.terminating:
            state = terminating
        elif replica.dead:
            state = dead
        elif since is None or (mixed and side is old and replica.revision != serving):
            state = unready
        else:
            state = available if not min_ready or now >= since + min_ready else settling
        side[state].append(replica)
    traffic = None if serving is None or both else 100 * (serving == target)
    return Sorted(by_state={Side.OLD: old, Side.NEW: new}, traffic=traffic, min_ready=min_ready, size=size)


def observe(
    replicas: Iterable[Replica],
    target: str,
    *,
    now: datetime,
    min_ready: timedelta = timedelta(),
    size: int | None = None,
    stable: bool = True,
    serving: str | None = None,
    progressed_at: datetime | None = None,
) -> Fleet:
    """Count `replicas` from the point of view of the revision `target`, as `sort_out` sorts them."""
    found = sort_out(replicas, target, now=now, min_ready=min_ready, size=size, serving=serving)
    return found.fleet(stable=stable, progressed_at=progressed_at)


def choose(
    replicas: Iterable[Replica],
    target: str,
    *,
    side: Side,
    states: frozenset[State],
    count: int,
    now: datetime,
    min_ready: timedelta = timedelta(),
    size: int | None = None,
    stable: str | None = None,
    serving: str | None = None,
) -> tuple[str, ...]:
    """The `count` replicas of `side` in one of `states` that are stopped first, by id (`Sorted.first`)."""
    found = sort_out(replicas, target, now=now, min_ready=min_ready, size=size, serving=serving)
    return found.first(count, side=side, states=states, stable=stable)
