"""Leader election by a Lease: one of several processes works, and the others wait.

`step` is the whole protocol: a pure function of what is known and what just happened,
that says what is to be done.  `elections` does it.

A holder stops by its own clock: `until` is counted from when the renewal was *sent*.
The others take over by theirs: a lease is over when its record has stood unchanged
for its whole duration since they first *saw* it.  Clocks are never compared, so skew
does not matter, and the one has stopped `duration - deadline` before another begins.
Writes name the version they follow, so whatever is lost, late or sent by a process
that slept for an hour, two never hold one lease, unless a user deletes it.

    Following ── the lease is free, ours, or over; our write was accepted ──> Leading
    Leading   ── not renewed in time, or another's name stands in it ───────> Following

Nothing here knows how a Lease is read or written, nor what is done while leading.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, assert_never

import msgspec

from holdfast.client.objects import Object
from holdfast.meta import times

SPREAD: Final = 0.2
"""By how much a wait is drawn out at most, so that contenders do not come together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The seconds of a lease.

    duration  how long the others leave an unchanged record alone
    deadline  how long after a renewal its holder goes on without another one
    retry     how often a renewal is tried, and the lease looked at
    """

    duration: int = 15
    deadline: float = 10
    retry: float = 2

    def __post_init__(self) -> None:
        if not self.duration > self.deadline > self.retry * (1 + SPREAD) > 0:
            raise ValueError(
                f"a lease of {self.duration} s, with a deadline of {self.deadline} s and tried every {self.retry} s, "
                "cannot be kept safely; make each much shorter than the one before, as 15, 10 and 2 are"
            )

    @property
    def patience(self) -> float:
        """How long one request may take, so that there is time for another one."""
        return self.deadline / 2


TERMS: Final = Terms()


# --- what is known


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """What a Lease says."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A Lease at one version; without a version it does not exist any more."""

    spec: Spec
    version: str

    @classmethod
    def of(cls, lease: Object) -> Record:
        return cls(lease.decode(_Lease).spec, lease.version)

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""


class _Lease(msgspec.Struct):
    spec: Spec = Spec()


@dataclass(frozen=True, slots=True)
class Seen:
    """A record, and when we saw it first, by our clock."""

    record: Record
    since: float


@dataclass(frozen=True, slots=True)
class Following:
    """Another process leads, or none does."""

    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Leading:
    """The lease is ours, `until` then by our clock."""

    record: Record
    until: float

    def holds(self, at: float) -> bool:
        return at < self.until


State: TypeAlias = Following | Leading


# --- what happens, and what is to be done


@dataclass(frozen=True, slots=True)
class Waited:
    """The time is over."""


@dataclass(frozen=True, slots=True)
class Found:
    """The lease is so; None if there is none."""

    record: Record | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Our write is what the lease says now; it was sent at that time."""

    record: Record
    sent: float


@dataclass(frozen=True, slots=True)
class Refused:
    """Our write met a lease that is not as we thought: another process wrote it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request failed; if it was a write, it may have been done or not."""


Happening: TypeAlias = Waited | Found | Accepted | Refused | Failed


@dataclass(frozen=True, slots=True)
class Look:
    """Read the lease."""


@dataclass(frozen=True, slots=True)
class Put:
    """Write the lease, if it is still at this version; without one, if there is still none."""

    spec: Spec
    version: str


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


Action: TypeAlias = Look | Put | Wait


# --- the protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A process that asks for the lease.  No two may ever share an identity: it says whose the lease is."""

    identity: str
    terms: Terms = TERMS

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("a contender needs an identity: an empty one means that no process holds the lease")


def step(state: State, happened: Happening, *, me: Contender, at: float, now: datetime) -> tuple[State, Action]:
    """What is known after something happened, and what to do next.

    `at` is our clock, in seconds, that only ever goes forward; `now` is the time of day, written for people to read.
    """
    retry = Wait(me.terms.retry)
    match state, happened:
        case _, Accepted(record, sent):
            ours = Leading(record, sent + me.terms.deadline)
            return (ours if ours.holds(at) else Following(Seen(record, at))), retry
        case Leading(record), _ if not state.holds(at):
            return Following(Seen(record, at)), retry
        case Leading(record), Waited():
            return state, Put(_renewed(record, me, now), record.version)
        case Leading(), Refused():
            return state, Look()
        case Leading(record, until), Found(None):
            # Processes that saw our record honour it although it is gone, so there is time to write it again.
            return Leading(Record(record.spec, ""), until), retry
        case Leading(_, until), Found(Record() as record):
            ours = Leading(record, until)
            return (ours if record.holder == me.identity else Following(Seen(record, at))), retry
        case Leading(), Failed():
            return state, retry
        case Following(), Waited():
            return state, Look()
        case Following(seen), Found(record):
            return _stood(seen, record, me=me, at=at, now=now)
        case Following(), Refused() | Failed():
            return state, retry
        case _:
            raise AssertionError(f"{happened} cannot happen to {state}")


def _stood(
    seen: Seen | None, record: Record | None, *, me: Contender, at: float, now: datetime
) -> tuple[State, Action]:
    """Decide on a lease that was just read: take it, or leave it to its holder."""
    seen = _seen(seen, record, at)
    if seen is None:
        return Following(), Put(_taken(None, me, now), "")
    left = _left(seen, me, at)
    if left > 0:
        return Following(seen), Wait(min(left, me.terms.retry))
    mine = seen.record.holder == me.identity
    spec = _renewed(seen.record, me, now) if mine else _taken(seen.record, me, now)
    return Following(seen), Put(spec, record.version if record else "")


def _seen(seen: Seen | None, record: Record | None, at: float) -> Seen | None:
    """What we have seen after a look at the lease.

    A deleted lease may have a holder that has not noticed, so it is honoured for its duration from then on.  This
    covers a deletion by mistake, and no more: a process that starts after the deletion cannot know, and takes it.
    """
    match seen, record:
        case Seen(Record(spec, version), since), None:
            return Seen(Record(spec, ""), at if version else since)
        case _, None:
            return None
        case Seen(Record(spec), since), Record() if record.spec == spec:
            return Seen(record, since)
        case _, Record():
            return Seen(record, at)
        case _:
            assert_never(record)


def _left(seen: Seen, me: Contender, at: float) -> float:
    """How long the lease is honoured; not at all while it exists and is ours or has no holder."""
    if seen.record.version and seen.record.holder in ("", me.identity):
        return 0
    return seen.since + max(seen.record.spec.lease_duration_seconds or 0, me.terms.duration) - at


def _taken(record: Record | None, me: Contender, now: datetime) -> Spec:
    when = times.format_micro(now)
    return Spec(
        holder_identity=me.identity,
        lease_duration_seconds=me.terms.duration,
        acquire_time=when,
        renew_time=when,
        lease_transitions=0 if record is None else (record.spec.lease_transitions or 0) + 1,
    )


def _renewed(record: Record, me: Contender, now: datetime) -> Spec:
    return msgspec.structs.replace(
        record.spec, lease_duration_seconds=me.terms.duration, renew_time=times.format_micro(now)
    )


def released(record: Record, now: datetime) -> Put:
    """Give the lease up, so that the next one need not wait until it is over."""
    when = times.format_micro(now)
    spec = msgspec.structs.replace(record.spec, holder_identity="", lease_duration_seconds=1, renew_time=when)
    return Put(spec, record.version)
