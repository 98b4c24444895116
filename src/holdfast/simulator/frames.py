"""The result of a simulation: a frame for every change, and an outcome in numbers.

Values, and the tally that counts them; nothing here decides or prints.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec

from holdfast.kernel.fleet import Fleet, Replica
from holdfast.kernel.preview import Phase
from holdfast.kernel.reasons import Because, Reason
from holdfast.kernel.rollout import Blocked, Decision, Done, Hold, Shape, Start, Stop, Wait
from holdfast.simulator.replicas import Event, Happening

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
"""When every simulation begins; its times are only ever compared with each other."""


class Actor(StrEnum):
    """What caused a change: a decision of the engine, an event in the cluster, or a user."""

    ENGINE = "engine"
    CLUSTER = "cluster"
    USER = "user"

    def __str__(self) -> str:
        return self.value


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet after one change, and the engine's last decision.

    what       the change in a few words: ``start 2 v2``, ``1 ready``, ``scale 8``
    decision   the last decision, with its reason
    revisions  every revision that was a target, oldest first
    serving    the one that gets the traffic, where only one does
    """

    at: timedelta
    actor: Actor
    what: str
    decision: Decision
    phase: Phase
    shape: Shape
    fleet: Fleet
    replicas: tuple[Replica, ...]
    revisions: tuple[str, ...]
    target: str
    serving: str | None
    desired: int
    min_ready: timedelta

    @property
    def now(self) -> datetime:
        return BEGIN + self.at


class Ending(StrEnum):
    """How a simulation ended."""

    COMPLETED = "completed"
    WITHDRAWN = "withdrawn"
    BLOCKED = "blocked"
    WAITING = "waiting for a user"
    STUCK = "stuck"
    OUT_OF_TIME = "out of time"
    SPINNING = "spinning"

    def __str__(self) -> str:
        return self.value


class Waited(msgspec.Struct, frozen=True):
    """How often, and how long in all, a reason made the rollout wait; `message` is the last one."""

    code: Reason
    times: int
    time: timedelta
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A simulation in numbers.

    There is an outcome only if the engine itself never broke a promise.

    guaranteed    whether the strategy keeps a floor at all
    lowest_ready  the fewest replicas that were ready and served
    dips, below   how often, and how long in all, crashes and deletions took them below the floor
    """

    ending: Ending
    because: Because
    remedy: str
    warnings: tuple[Because, ...]
    seed: int
    revision: str
    rejected: tuple[str, ...]
    duration: timedelta
    replicas: int
    floor: int
    guaranteed: bool
    ceiling: int
    lowest_ready: int
    most_live: int
    final_ready: int
    starts: int
    stops: int
    crashes: int
    deaths: int
    dips: int
    below: timedelta
    waits: tuple[Waited, ...]

    @property
    def good(self) -> bool:
        """Whether the rollout ended and needs no action of a user."""
        return self.ending in (Ending.COMPLETED, Ending.WITHDRAWN)


class Run(msgspec.Struct, frozen=True):
    """All frames of a simulation, and its outcome."""

    frames: tuple[Frame, ...]
    outcome: Outcome


class InvariantBroken(AssertionError):
    """The engine broke a promise; `frames` lead up to it."""

    def __init__(self, promise: str, why: str, *, seed: int, frames: Iterable[Frame]) -> None:
        self.promise = promise
        self.frames = tuple(frames)
        log = "\n".join(f"{int(frame.at.total_seconds()):>6}s  {frame.what}" for frame in self.frames)
        super().__init__(f"{promise}: {why} (seed {seed}). What led to it:\n{log}")


class Tally:
    """Counts a simulation as it goes."""

    def __init__(self, fleet: Fleet) -> None:
        self.lowest_ready = fleet.ready
        self.most_live = self.ceiling = fleet.live
        self.starts = self.stops = self.crashes = self.deaths = self.dips = 0
        self.below = timedelta()
        self._dipped = False
        self._waits: dict[Reason, Waited] = {}
        self._waiting_for: Reason | None = None

    @property
    def waits(self) -> tuple[Waited, ...]:
        """Longest first."""
        return tuple(sorted(self._waits.values(), key=lambda waited: waited.time, reverse=True))

    def decided(self, decision: Decision) -> None:
        match decision:
            case Start(count=number):
                self.starts += number
            case Stop(count=number):
                self.stops += number
        code = decision.because.code if isinstance(decision, Wait | Hold | Blocked) else None
        if code is not None:
            known = self._waits.get(code, Waited(code, 0, timedelta(), ""))
            self._waits[code] = msgspec.structs.replace(
                known, times=known.times + (code is not self._waiting_for), message=decision.because.message
            )
        if not isinstance(decision, Done):
            self._waiting_for = code

    def passed(self, time: timedelta, decision: Decision) -> None:
        if self._dipped:
            self.below += time
        known = self._waits.get(decision.because.code)
        if known is not None:
            self._waits[known.code] = msgspec.structs.replace(known, time=known.time + time)

    def happened(self, happenings: Iterable[Happening], *, before: Fleet, after: Fleet, floor: int) -> None:
        """Count events that the engine did not cause; a dip below the floor here is not its doing."""
        events = [happening.event for happening in happenings]
        crashes, deaths = events.count(Event.CRASHED), events.count(Event.DIED)
        self.crashes += crashes + deaths
        self.deaths += deaths
        if after.ready < floor <= before.ready:
            self.dips += 1
            self._dipped = True

    def seen(self, fleet: Fleet, shape: Shape) -> None:
        self.lowest_ready = min(self.lowest_ready, fleet.ready)
        self.most_live = max(self.most_live, fleet.live)
        self.ceiling = max(self.ceiling, shape.ceiling)
        if fleet.ready >= shape.floor:
            self._dipped = False
