"""The fleet as a decision sees it: two pools of replicas, counted by state.

`observe` counts replicas into a `Fleet`, and `choose` names the replicas that a
decision stops.  Between the two the engine works on numbers alone, so its state
space is small enough to be walked completely.

*New* is the target revision; *old* is everything that must be replaced: earlier
revisions, revisions that were superseded before they were complete, replicas on
nodes that are being drained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

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
    crowding     how many replicas share its node; among those of one age, the most crowded is stopped first
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
    crowding: int = 0
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
    """Count `replicas` from the point of view of the revision `target`.

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
    counts: dict[tuple[Side, State], int] = {}
    settled_at: datetime | None = None
    settles_at: datetime | None = None
    ordinals: set[int] = set()
    for replica, side, state in _counted(replicas, target, now=now, min_ready=min_ready, size=size, serving=serving):
        counts[side, state] = counts.get((side, state), 0) + 1
        if replica.ordinal is not None and state is not State.DEAD:
            ordinals.add(replica.ordinal)
        if replica.ready_since is None:
            continue
        steady = replica.ready_since + min_ready
        if state is State.SETTLING and (settles_at is None or steady < settles_at):
            settles_at = steady
        if state is State.AVAILABLE and side is Side.NEW and (settled_at is None or steady > settled_at):
            settled_at = steady

    def pool(side: Side) -> Pool:
        return Pool(**{state.value: counts.get((side, state), 0) for state in State})

    return Fleet(
        old=pool(Side.OLD),
        new=pool(Side.NEW),
        stable=stable,
        traffic=None if serving is None or _both_serve(replicas, target, serving, size) else 100 * (serving == target),
        gaps=max(ordinals, default=-1) + 1 - len(ordinals),
        settled_at=settled_at,
        settles_at=settles_at,
        progressed_at=progressed_at,
    )


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
    """The `count` replicas of `side` in one of `states` that are stopped first, by id.

    Those that must leave whatever their revision come first.  Replicas of
    superseded revisions come before those of the stable one, so that soon only
    two revisions are left; then the worse state, the lower cost, the higher
    ordinal, the younger one, the one that shares its node with more.
    """

    def rank(counted: tuple[Replica, Side, State]) -> tuple[bool, bool, int, int, int, float, int, str]:
        replica, _, state = counted
        return (
            not replica.leaves(size),
            replica.revision == stable,
            _BADNESS[state],
            replica.cost,
            -replica.ordinal if replica.ordinal is not None else 0,
            -replica.created_at.timestamp(),
            -replica.crowding,
            replica.id,
        )

    counted = _counted(tuple(replicas), target, now=now, min_ready=min_ready, size=size, serving=serving)
    candidates = sorted((each for each in counted if each[1] is side and each[2] in states), key=rank)
    return tuple(replica.id for replica, _, _ in candidates[:count])


def _counted(
    replicas: tuple[Replica, ...],
    target: str,
    *,
    now: datetime,
    min_ready: timedelta,
    size: int | None,
    serving: str | None,
) -> Iterator[tuple[Replica, Side, State]]:
    """Each replica with the side and the state that it counts for."""
    # Where only one side serves, `Fleet.active` says which; on a side that serves, idle replicas count as unready.
    mixed = serving is not None and (serving != target or _both_serve(replicas, target, serving, size))
    for replica in replicas:
        side, state = replica.side(target, size=size), replica.state(min_ready=min_ready, now=now)
        if mixed and side is Side.OLD and replica.revision != serving and state in _READY:
            state = State.UNREADY
        yield replica, side, state


def _both_serve(replicas: Iterable[Replica], target: str, serving: str | None, size: int | None) -> bool:
    """Whether replicas of the target get the traffic and some of them must leave."""
    return serving == target and any(each.revision == target and each.leaves(size) for each in replicas)


_READY = frozenset({State.SETTLING, State.AVAILABLE})
_BADNESS = {state: index for index, state in enumerate(State)}
