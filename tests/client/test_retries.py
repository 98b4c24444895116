"""What is sent again, and when: by table."""

from __future__ import annotations

import pytest

from holdfast.client import retries
from holdfast.client.protocols import Unreachable, Unsent, Untrusted
from holdfast.client.retries import Policy
from holdfast.meta.errors import Cause, Conflict, Details, InternalError, StatusError, from_status

POLICY = Policy(attempts=5, base=0.1, cap=1.0, longest=30.0)


def answered(code: int, after: int = 0, *, causes: tuple[Cause, ...] = ()) -> StatusError:
    error = from_status({}, code)
    error.details = Details(retry_after_seconds=after, causes=causes)
    return error


BUDGET = (Cause(reason="DisruptionBudget"),)

SAFE = [
    # error, read again, written again
    (Unsent("connection refused"), True, True),
    (Unreachable("connection reset"), True, False),
    (Untrusted("certificate has expired"), False, False),
    (answered(429, after=1), True, True),
    (answered(429), True, False),
    (answered(429, after=10, causes=BUDGET), False, False),
    (answered(503, after=1), True, True),
    (answered(503), True, False),
    (answered(500, after=1), True, False),
    (answered(500), False, False),
    (answered(502), True, False),
    (answered(504), True, False),
    (answered(504, after=1), True, False),
    (answered(408), True, False),
    (answered(401), False, False),
    (answered(403), False, False),
    (answered(404), False, False),
    (answered(409), False, False),
    (answered(410), False, False),
    (answered(422), False, False),
    (Conflict.of("pods", "p"), False, False),
    (InternalError.of("a defect"), False, False),
]


@pytest.mark.parametrize(("error", "read", "written"), SAFE, ids=repr)
def test_only_what_is_safe_is_sent_again(error: StatusError | Unreachable, read: bool, written: bool) -> None:
    def again(method: str) -> bool:
        return retries.wait(error, 1, method=method, policy=POLICY, spread=0.0) is not None

    assert again("GET") is read
    assert {again(method) for method in ("POST", "PATCH", "PUT", "DELETE")} == {written}


def wait(error: StatusError | Unreachable, attempt: int, spread: float = 0.0) -> float | None:
    return retries.wait(error, attempt, method="GET", policy=POLICY, spread=spread)


def test_waits_double_up_to_the_cap_and_end_after_the_last_attempt() -> None:
    lost = Unreachable("connection reset")
    assert [wait(lost, attempt) for attempt in range(1, 6)] == [0.1, 0.2, 0.4, 0.8, None]
    patient = Policy(attempts=9, base=0.1, cap=1.0)
    assert retries.wait(lost, 8, method="GET", policy=patient, spread=0.0) == 1.0


def test_the_spread_of_a_guess_shortens_it_to_no_less_than_a_half() -> None:
    assert wait(Unreachable("reset"), 1, spread=0.999) == pytest.approx(0.05, rel=0.01)


def test_a_server_is_never_asked_before_the_time_that_it_named() -> None:
    assert wait(answered(429, after=7), 1) == 7
    assert 7 < (wait(answered(429, after=7), 1, spread=0.5) or 0) <= 7 + POLICY.base


def test_who_is_told_to_wait_for_longer_than_is_bearable_gets_the_error_instead() -> None:
    assert wait(answered(429, after=30), 1) == 30
    assert wait(answered(429, after=31), 1) is None


DATE = "Tue, 01 Jan 2030 00:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"Retry-After": "5"}, 5),
        ({"retry-after": " 5 "}, 5),
        ({"Retry-After": "0"}, 1),
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "soon"}, 0),
        ({"Retry-After": "Tue, 01 Jan 2030 00:00:20 GMT", "Date": DATE}, 20),
        ({"Retry-After": "Tue, 01 Jan 2030 01:00:20 +0100", "Date": DATE}, 20),
        ({"Retry-After": "Mon, 31 Dec 2029 23:59:00 GMT", "Date": DATE}, 1),
        ({"Retry-After": "Tue, 01 Jan 2030 00:00:20 GMT"}, 0),
        ({"Retry-After": "Tue, 01 Jan 2030 00:00:20 -0000", "Date": DATE}, 0),
    ],
)
def test_what_retry_after_asks_for_is_read_by_the_server_s_own_clock(headers: dict[str, str], seconds: int) -> None:
    assert retries.retry_after(headers) == seconds
