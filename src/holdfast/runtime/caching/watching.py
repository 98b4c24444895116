"""The watch as a state machine: what to request next, and what to change in the store.

`step` is pure: a state and what happened in, the next state, a change for the store
and the next question out.  It never forgets a deletion: whenever the thread of
versions is lost, everything is listed again, and the store finds the differences.

::

    Collecting  a streaming list comes in       ── its end ──▶ Watching, on the same stream
        │ the server does not offer it: from now on
    Listing     a list was asked for            ── listed ──▶ Watching, from its version
    Watching    changes come in                 ── ended ──▶ Watching again, from the last version
        │ the version is forgotten (410)        ──▶ Listing or Collecting
    Waiting     after a failure                 ── time has come ──▶ what failed, again

A stream that the server ends, or whose connection breaks, is normal, if another one
can be had at once.  Failures in a row wait longer and longer, until a stream says
something or has lived for a while.

Nothing here does I/O, reads a clock or draws random numbers; `reflectors` does.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from holdfast.client.objects import Object
from holdfast.client.protocols import Added, Bookmark, Deleted, Event, Modified, Unreachable
from holdfast.client.protocols import Listing as Listed
from holdfast.kernel.backoff import Backoff
from holdfast.meta.errors import (
    Forbidden,
    Gone,
    NotFound,
    ServiceUnavailable,
    StatusError,
    Timeout,
    TooManyRequests,
    Unauthorized,
)

STEADY: Final = timedelta(seconds=5)
"""A stream that lived for so long was no failure, even if it said nothing."""

FAILED: Final = Backoff(base=timedelta(milliseconds=500), cap=timedelta(seconds=30), jitter=0.5)
"""The wait after a failure that may pass by itself."""

REFUSED: Final = Backoff(base=timedelta(seconds=2), cap=timedelta(minutes=1), jitter=0.5)
"""The wait after a refusal that lasts until a user installs the kind or grants the permission."""


class Outdated(Exception):
    """A list is older than what has been seen."""

    def __init__(self, listed: int, seen: int) -> None:
        super().__init__(f"the list is of version {listed}, and version {seen} has been seen")


class Reason(Enum):
    """Why a watch was begun again; the values are the labels of the metric."""

    ENDED = "ended"
    """The server ended the stream, as it does every few minutes."""
    SILENT = "silent"
    """Nothing came for so long, not even a bookmark, that the connection is taken for dead."""
    EXPIRED = "expired"
    """The server has forgotten the version, so everything is listed again."""
    UNREACHABLE = "unreachable"
    """No answer came, or the connection broke."""
    FORBIDDEN = "forbidden"
    """Reading it is forbidden: the credentials or the role lack something."""
    MISSING = "missing"
    """The server does not serve such a resource, or not yet."""
    OUTDATED = "outdated"
    """A list was older than what had been seen, so it is asked for again."""
    REFUSED = "refused"
    """The server refused for another reason."""
    BROKEN = "broken"
    """Reading or keeping what came failed; this is a defect, and the log has it."""


class Setbacks(msgspec.Struct, frozen=True):
    """Failures in a row, and what is wrong now; nothing is, once the server answers again."""

    count: int = 0
    trouble: str = ""

    @property
    def eased(self) -> Setbacks:
        """The server answers; whether that lasts is still to be seen."""
        return Setbacks(self.count)


NONE: Final = Setbacks()


# --- states


class Listing(msgspec.Struct, frozen=True):
    """A list has been asked for."""

    setbacks: Setbacks = NONE


class Collecting(msgspec.Struct, frozen=True):
    """A streaming list is coming in."""

    setbacks: Setbacks = NONE


class Watching(msgspec.Struct, frozen=True):
    """Changes after a version are coming in; `collects` says how to begin again when it is forgotten."""

    version: str
    collects: bool
    setbacks: Setbacks = NONE


Active: TypeAlias = Listing | Collecting | Watching


class Waiting(msgspec.Struct, frozen=True):
    """Nothing is done until the time has come for `then`."""

    then: Active

    @property
    def setbacks(self) -> Setbacks:
        return self.then.setbacks


State: TypeAlias = Active | Waiting


# --- what happens: `Listed`, an `Event`, or one of these


class Opened(msgspec.Struct, frozen=True):
    """The server took up the stream that was asked for."""


class Ended(msgspec.Struct, frozen=True):
    """The stream ended; after silence, it was ended by us."""

    lived: timedelta = timedelta(0)
    silent: bool = False


class Failed(msgspec.Struct, frozen=True):
    """What was asked for failed, or the stream broke after it had lived for a while."""

    error: Exception
    lived: timedelta = timedelta(0)


class Due(msgspec.Struct, frozen=True):
    """The time of waiting is over."""


Input: TypeAlias = Listed | Event | Opened | Ended | Failed | Due


# --- what is asked for


class List(msgspec.Struct, frozen=True):
    """Ask for a list."""


class Collect(msgspec.Struct, frozen=True):
    """Ask for a streaming list; whatever was staged is forgotten."""


class Watch(msgspec.Struct, frozen=True):
    """Ask for the changes after a version."""

    since: str


class Wait(msgspec.Struct, frozen=True):
    """Ask for nothing, for so long."""

    delay: timedelta


Ask: TypeAlias = List | Collect | Watch | Wait


# --- what the store does


class Replace(msgspec.Struct, frozen=True):
    """The server has exactly these objects."""

    listed: Listed


class Stage(msgspec.Struct, frozen=True):
    """An object that belongs to the list that is coming in."""

    object: Object


class Unstage(msgspec.Struct, frozen=True):
    """An object went while the list was coming in."""

    object: Object


class Commit(msgspec.Struct, frozen=True):
    """The server has exactly what was staged."""

    version: str


class Put(msgspec.Struct, frozen=True):
    object: Object


class Remove(msgspec.Struct, frozen=True):
    object: Object


class Advance(msgspec.Struct, frozen=True):
    """Nothing else happened up to this version."""

    version: str


Change: TypeAlias = Replace | Stage | Unstage | Commit | Put | Remove | Advance


class Step(msgspec.Struct, frozen=True):
    """Where one input leads.  Without a new question, what was asked for goes on."""

    state: State
    change: Change | None = None
    ask: Ask | None = None
    reason: Reason | None = None
    """Why something is asked for again."""


def begin(*, collects: bool = True) -> Step:
    """The first step: a streaming list, unless the caller knows better."""
    return _enter(_beginning(collects, NONE))


def step(state: State, input: Input, *, spread: float = 0.0) -> Step:
    """What follows from an input; `spread` in [0, 1) shortens waits, so that many watches do not return at once."""
    match state, input:
        case Watching(), Added() | Modified() | Deleted() | Bookmark():
            return _follow(state, input)
        case Listing(setbacks), Listed(version=version):
            return _enter(Watching(version, collects=False, setbacks=setbacks), change=Replace(input))
        case Collecting(), Opened():
            return Step(state)
        case Collecting(), Added(obj) | Modified(obj):
            return Step(state, Stage(obj))
        case Collecting(), Deleted(obj):
            return Step(state, Unstage(obj))
        case Collecting(setbacks), Bookmark(version, initial=True):
            return Step(Watching(version, collects=True, setbacks=setbacks.eased), Commit(version))
        case Collecting(), Bookmark():
            return Step(state)
        case Watching(), Opened():
            return Step(replace(state, setbacks=state.setbacks.eased))
        case ((Listing() | Collecting() | Watching()), (Ended() | Failed())):
            return _again(state, input, spread)
        case Waiting(then), Due():
            return _enter(then)
        case _:
            raise RuntimeError(f"{type(input).__name__} cannot happen while {type(state).__name__}")


def _follow(state: Watching, event: Event) -> Step:
    match event:
        case Added(obj) | Modified(obj):
            return Step(Watching(obj.version, state.collects), Put(obj))
        case Deleted(obj):
            return Step(Watching(obj.version, state.collects), Remove(obj))
        case Bookmark(version):
            return Step(Watching(version, state.collects), Advance(version))
        case _:
            assert_never(event)


def _again(state: Active, input: Ended | Failed, spread: float) -> Step:
    """After a stream or a question has come to nothing: what to try next, and how soon."""
    reason = reason_of(input)
    setbacks = NONE if input.lived >= STEADY else state.setbacks
    if isinstance(state, Collecting) and (isinstance(input, Ended) or refuses_streaming(input.error)):
        # A list always works; it is asked for at once.
        return _enter(Listing(setbacks), reason=reason)
    broke_off = isinstance(state, Watching) and reason is Reason.UNREACHABLE and not setbacks.count
    failed = Setbacks(setbacks.count + 1, "" if broke_off else _trouble(input))
    then = _after(state, input, failed)
    if isinstance(input, Ended) or reason is Reason.EXPIRED or broke_off:
        # This is how watches go; only where it happens again and again at once is there anything to wait for.
        delay = FAILED.delay(setbacks.count, spread=spread)
    else:
        backoff = REFUSED if reason in (Reason.FORBIDDEN, Reason.MISSING) else FAILED
        delay = max(backoff.delay(failed.count, spread=spread), _asked_to_wait(input.error))
    if not delay:
        return _enter(then, reason=reason)
    return Step(Waiting(then), ask=Wait(delay), reason=reason)


def refuses_streaming(error: Exception) -> bool:
    """Whether the answer to a streaming list says that the server does not offer any.

    Some servers refuse the question; others accept it and send an error of their own, such as 500, in the stream.
    An answer that a plain list would get as well, such as a missing permission, says nothing about streaming.
    """
    general = (Unauthorized, Forbidden, NotFound, Gone, TooManyRequests, ServiceUnavailable, Timeout)
    return isinstance(error, StatusError) and not isinstance(error, general)


def _after(state: Active, input: Ended | Failed, setbacks: Setbacks) -> Active:
    """What to try next: the same, except that a watch whose version is not understood must begin with a list."""
    if isinstance(state, Watching) and isinstance(input, Failed) and not _resumable(input.error):
        return _beginning(state.collects, setbacks)
    return replace(state, setbacks=setbacks)


def _resumable(error: Exception) -> bool:
    """Whether a watch may go on from its version.

    A timeout is how a server answers a version that it has yet to reach; restored from a backup, it may not for long.
    """
    match error:
        case Unreachable() | Forbidden() | Unauthorized():
            return True
        case Timeout():
            return False
        case StatusError():
            return error.transient
        case _:
            return False


def _beginning(collects: bool, setbacks: Setbacks) -> Listing | Collecting:
    return Collecting(setbacks) if collects else Listing(setbacks)


def _enter(state: Active, *, change: Change | None = None, reason: Reason | None = None) -> Step:
    match state:
        case Listing():
            return Step(state, change, List(), reason)
        case Collecting():
            return Step(state, change, Collect(), reason)
        case Watching(version):
            return Step(state, change, Watch(version), reason)
        case _:
            assert_never(state)


def reason_of(input: Ended | Failed) -> Reason:
    """The one word for why something must be asked for again."""
    if isinstance(input, Ended):
        return Reason.SILENT if input.silent else Reason.ENDED
    match input.error:
        case Unreachable():
            return Reason.UNREACHABLE
        case Gone():
            return Reason.EXPIRED
        case Outdated():
            return Reason.OUTDATED
        case Forbidden() | Unauthorized():
            return Reason.FORBIDDEN
        case NotFound():
            return Reason.MISSING
        case StatusError():
            return Reason.REFUSED
        case _:
            return Reason.BROKEN


def _trouble(input: Ended | Failed) -> str:
    """What is wrong, for people; nothing is, where a stream merely ended or a version was forgotten."""
    if isinstance(input, Ended) or isinstance(input.error, Gone):
        return ""
    return f"{reason_of(input).value}: {input.error}"


def _asked_to_wait(error: Exception) -> timedelta:
    return timedelta(seconds=error.retry_after_seconds if isinstance(error, StatusError) else 0)
