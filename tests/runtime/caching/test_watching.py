"""The watch's state machine: every state, everything that can happen in it, and what follows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.runtime.sources import obj

from holdfast.client.protocols import Added, Bookmark, Deleted, Modified, Unreachable
from holdfast.client.protocols import Listing as Listed
from holdfast.meta.errors import (
    BadRequest,
    Details,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    NotFound,
    ServiceUnavailable,
    StatusError,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from holdfast.runtime.caching import watching
from holdfast.runtime.caching.watching import (
    FAILED,
    REFUSED,
    STEADY,
    Advance,
    Collect,
    Collecting,
    Commit,
    Due,
    Ended,
    Failed,
    Input,
    List,
    Listing,
    Opened,
    Put,
    Reason,
    Remove,
    Replace,
    Setbacks,
    Stage,
    State,
    Step,
    Unstage,
    Wait,
    Waiting,
    Watch,
    Watching,
    begin,
    step,
)

POD = obj("a", 7)
LISTED = Listed((POD,), "9")
TWICE = Setbacks(2, "unreachable: away")
AWAY = Unreachable("away")
STALE = Watching("5", collects=True)
TROUBLED = Watching("5", collects=True, setbacks=Setbacks(1))

HAPPENINGS: dict[str, tuple[State, Input, Step]] = {
    "a list is kept, and watched from its version": (
        Listing(),
        LISTED,
        Step(Watching("9", collects=False), Replace(LISTED), Watch("9")),
    ),
    "a list alone does not make up for failures: the watch after it must last": (
        Listing(TWICE),
        LISTED,
        Step(Watching("9", collects=False, setbacks=TWICE), Replace(LISTED), Watch("9")),
    ),
    "a streaming list is staged": (Collecting(), Added(POD), Step(Collecting(), Stage(POD))),
    "a change while a list streams in is staged": (Collecting(), Modified(POD), Step(Collecting(), Stage(POD))),
    "a deletion while a list streams in is staged": (Collecting(), Deleted(POD), Step(Collecting(), Unstage(POD))),
    "a bookmark within a streaming list ends nothing": (Collecting(), Bookmark("8"), Step(Collecting())),
    "the end of a streaming list is where the watch begins, on the same stream": (
        Collecting(TWICE),
        Bookmark("9", initial=True),
        Step(Watching("9", collects=True, setbacks=Setbacks(2)), Commit("9")),
    ),
    "a server that takes up a streaming list has yet to send it": (
        Collecting(TWICE),
        Opened(),
        Step(Collecting(TWICE)),
    ),
    "a stream that is taken up ends the trouble, and not yet the count": (
        Watching("5", collects=True, setbacks=TWICE),
        Opened(),
        Step(Watching("5", collects=True, setbacks=Setbacks(2))),
    ),
    "an addition is put": (STALE, Added(POD), Step(Watching("7", collects=True), Put(POD))),
    "a change is put": (STALE, Modified(POD), Step(Watching("7", collects=True), Put(POD))),
    "a deletion is removed, at its version": (STALE, Deleted(POD), Step(Watching("7", collects=True), Remove(POD))),
    "a bookmark moves the version": (STALE, Bookmark("8"), Step(Watching("8", collects=True), Advance("8"))),
    "whatever comes makes up for failures": (
        Watching("5", collects=False, setbacks=TWICE),
        Bookmark("8"),
        Step(Watching("8", collects=False), Advance("8")),
    ),
    "waiting ends with what failed": (
        Waiting(Watching("5", collects=True, setbacks=TWICE)),
        Due(),
        Step(Watching("5", collects=True, setbacks=TWICE), ask=Watch("5")),
    ),
    "waiting for a list ends with it": (Waiting(Listing(TWICE)), Due(), Step(Listing(TWICE), ask=List())),
    "a stream that ends is normal, and goes on from the last version": (
        STALE,
        Ended(timedelta(minutes=5)),
        Step(Watching("5", collects=True, setbacks=Setbacks(1)), ask=Watch("5"), reason=Reason.ENDED),
    ),
    "a silent stream is given up and goes on from the last version": (
        STALE,
        Ended(timedelta(minutes=2), silent=True),
        Step(Watching("5", collects=True, setbacks=Setbacks(1)), ask=Watch("5"), reason=Reason.SILENT),
    ),
    "a stream that ends at once, again and again, is not a hot loop": (
        Watching("5", collects=True, setbacks=Setbacks(2)),
        Ended(),
        Step(
            Waiting(Watching("5", collects=True, setbacks=Setbacks(3))), ask=Wait(FAILED.delay(2)), reason=Reason.ENDED
        ),
    ),
    "a stream that lived for a while makes up for failures, even if it said nothing": (
        Watching("5", collects=True, setbacks=TWICE),
        Ended(STEADY),
        Step(Watching("5", collects=True, setbacks=Setbacks(1)), ask=Watch("5"), reason=Reason.ENDED),
    ),
    "a forgotten version is listed again, at once, as the server offers it": (
        STALE,
        Failed(Expired.of(5, 9)),
        Step(Collecting(Setbacks(1)), ask=Collect(), reason=Reason.EXPIRED),
    ),
    "a server without streaming lists is asked for a plain one": (
        Watching("5", collects=False),
        Failed(Gone("gone")),
        Step(Listing(Setbacks(1)), ask=List(), reason=Reason.EXPIRED),
    ),
    "versions that are forgotten again and again are not a hot loop": (
        Watching("5", collects=True, setbacks=Setbacks(1)),
        Failed(Expired.of(5, 9)),
        Step(Waiting(Collecting(Setbacks(2))), ask=Wait(FAILED.delay(1)), reason=Reason.EXPIRED),
    ),
    "a broken connection goes on from the last version, and is no trouble": (
        STALE,
        Failed(AWAY, timedelta(minutes=1)),
        Step(Watching("5", collects=True, setbacks=Setbacks(1)), ask=Watch("5"), reason=Reason.UNREACHABLE),
    ),
    "that there is no connection after it is": (
        Watching("5", collects=True, setbacks=Setbacks(1)),
        Failed(AWAY),
        Step(
            Waiting(Watching("5", collects=True, setbacks=Setbacks(2, "unreachable: away"))),
            ask=Wait(FAILED.delay(2)),
            reason=Reason.UNREACHABLE,
        ),
    ),
    "failures in a row wait longer": (
        Listing(TWICE),
        Failed(AWAY),
        Step(Waiting(Listing(Setbacks(3, "unreachable: away"))), ask=Wait(FAILED.delay(3)), reason=Reason.UNREACHABLE),
    ),
    "a server that refuses streaming lists is never asked for one again": (
        Collecting(),
        Failed(Invalid("sendInitialEvents is forbidden")),
        Step(Listing(), ask=List(), reason=Reason.REFUSED),
    ),
    "a server that does not understand streaming lists is never asked for one again": (
        Collecting(),
        Failed(BadRequest("what?")),
        Step(Listing(), ask=List(), reason=Reason.REFUSED),
    ),
    "a server whose streaming list is an error of its own is never asked for one again": (
        Collecting(),
        Failed(InternalError("a watch stream was requested, and RequestWatchProgress is disabled")),
        Step(Listing(), ask=List(), reason=Reason.REFUSED),
    ),
    "a missing permission says nothing about streaming lists": (
        Collecting(),
        Failed(Forbidden("pods")),
        Step(Waiting(Collecting(Setbacks(1, "forbidden: pods"))), ask=Wait(REFUSED.delay(1)), reason=Reason.FORBIDDEN),
    ),
    "a server that breaks off its streaming list is asked for a plain one": (
        Collecting(),
        Ended(timedelta(seconds=1)),
        Step(Listing(), ask=List(), reason=Reason.ENDED),
    ),
    "a streaming list that fails for another reason is asked for again": (
        Collecting(),
        Failed(AWAY),
        Step(
            Waiting(Collecting(Setbacks(1, "unreachable: away"))), ask=Wait(FAILED.delay(1)), reason=Reason.UNREACHABLE
        ),
    ),
}


@pytest.mark.parametrize(("state", "input", "expected"), HAPPENINGS.values(), ids=HAPPENINGS)
def test_what_follows(state: State, input: Input, expected: Step) -> None:
    assert step(state, input) == expected


def test_a_watch_begins_with_a_streaming_list_unless_the_caller_knows_better() -> None:
    assert begin() == Step(Collecting(), ask=Collect())
    assert begin(collects=False) == Step(Listing(), ask=List())


FORBIDDEN = Forbidden("pods is forbidden")
MISSING = NotFound("the server could not find the requested resource")

ERRORS: dict[str, tuple[Exception, Reason, bool]] = {
    "no answer": (AWAY, Reason.UNREACHABLE, True),
    "an overloaded server": (TooManyRequests("slow down"), Reason.REFUSED, True),
    "a server in trouble": (InternalError("ouch"), Reason.REFUSED, True),
    "a server that starts": (ServiceUnavailable("starting"), Reason.REFUSED, True),
    "a role that lacks a rule": (FORBIDDEN, Reason.FORBIDDEN, True),
    "credentials that ran out": (Unauthorized("Unauthorized"), Reason.FORBIDDEN, True),
    "a version from the future": (Timeout("Too large resource version"), Reason.REFUSED, False),
    "a version that is not understood": (Invalid("resourceVersion"), Reason.REFUSED, False),
    "a kind that is gone": (MISSING, Reason.MISSING, False),
    "an answer of another kind": (StatusError("teapot", code=418), Reason.REFUSED, False),
    "a list from the past": (watching.Outdated(7, 9), Reason.OUTDATED, False),
    "a defect": (KeyError("oops"), Reason.BROKEN, False),
}


@pytest.mark.parametrize(("error", "reason", "resumes"), ERRORS.values(), ids=ERRORS)
def test_a_watch_goes_on_from_its_version_only_where_the_version_is_not_in_doubt(
    error: Exception, reason: Reason, resumes: bool
) -> None:
    came = step(TROUBLED, Failed(error))
    assert came.reason is reason
    assert isinstance(came.state, Waiting)
    assert isinstance(came.state.then, Watching if resumes else Collecting)
    assert came.state.setbacks.trouble == f"{reason.value}: {error}"


@pytest.mark.parametrize("error", [FORBIDDEN, MISSING], ids=["forbidden", "missing"])
def test_what_a_user_must_fix_is_asked_for_slowly_and_for_ever(error: Exception) -> None:
    state: State = Listing(Setbacks(1000, "missing: still"))
    assert step(state, Failed(error)).ask == Wait(REFUSED.cap)


def test_the_server_says_how_long_to_wait_at_least() -> None:
    busy = TooManyRequests("slow down", details=Details(retry_after_seconds=17))
    assert step(STALE, Failed(busy)).ask == Wait(timedelta(seconds=17))


def test_waits_are_spread() -> None:
    assert step(TROUBLED, Failed(AWAY), spread=0.5).ask == Wait(FAILED.delay(2, spread=0.5))
    assert FAILED.delay(2, spread=0.5) < FAILED.delay(2)


@pytest.mark.parametrize(
    ("state", "input"),
    [(Listing(), Added(POD)), (Waiting(Listing()), Ended()), (STALE, Due()), (STALE, LISTED), (Collecting(), LISTED)],
    ids=str,
)
def test_what_cannot_happen_is_a_defect_and_says_so(state: State, input: Input) -> None:
    with pytest.raises(RuntimeError, match=f"{type(input).__name__} cannot happen while {type(state).__name__}"):
        step(state, input)


def test_every_reason_says_what_it_means() -> None:
    assert {watching.reason_of(Ended()), watching.reason_of(Ended(silent=True))} == {Reason.ENDED, Reason.SILENT}
    assert {watching.reason_of(Failed(error)) for error, _, _ in ERRORS.values()} | {
        Reason.ENDED,
        Reason.SILENT,
        Reason.EXPIRED,
    } == set(Reason)
