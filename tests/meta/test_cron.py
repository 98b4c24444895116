"""Cron schedules: what they mean, in every field, and over changes of the clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from holdfast.meta import cron, times

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return times.parse(f"{text}Z")


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("30 2 * * *", "2025-01-15T02:30:00", "2025-01-16T02:30:00"),
        ("30 2 * * *", "2025-01-15T02:29:59", "2025-01-15T02:30:00"),
        ("*/15 * * * *", "2025-01-15T10:16:00", "2025-01-15T10:30:00"),
        ("5-7,50 9 * * *", "2025-01-15T09:07:00", "2025-01-15T09:50:00"),
        ("0 0 1 1 *", "2025-01-01T00:00:00", "2026-01-01T00:00:00"),
        ("0 0 29 2 *", "2025-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 9 * * mon-fri", "2025-01-17T09:00:00", "2025-01-20T09:00:00"),
        ("0 9 * * 7", "2025-01-17T09:00:00", "2025-01-19T09:00:00"),
        ("0 0 13 * fri", "2025-01-13T00:00:00", "2025-01-17T00:00:00"),
        ("0 0 31 * *", "2025-01-31T00:00:00", "2025-03-31T00:00:00"),
        ("0 12 * dec SUN", "2025-01-01T00:00:00", "2025-12-07T12:00:00"),
        ("@daily", "2025-01-15T10:00:00", "2025-01-16T00:00:00"),
        ("@every 6h", "2025-01-15T10:00:00", "2025-01-15T16:00:00"),
    ],
)
def test_the_next_time_of_a_schedule(schedule: str, after: str, due: str) -> None:
    assert cron.parse(schedule).next(at(after), UTC) == at(due)


@pytest.mark.parametrize("schedule", ["*/7 3-5 * * *", "0 0 13 * fri", "15 2 1,15 * *", "@every 45m", "0 * * * *"])
@pytest.mark.parametrize("zone", [UTC, BERLIN], ids=str)
def test_the_latest_time_is_the_last_of_the_next_ones(schedule: str, zone: ZoneInfo) -> None:
    found, after = cron.parse(schedule), at("2025-03-28T00:00:00")
    until = after + timedelta(days=4, minutes=13)
    due = [after]
    while (step := found.next(due[-1], zone)) is not None and step <= until:
        due.append(step)
    assert found.latest(after, until, zone) == (due[-1] if len(due) > 1 else None)


def test_a_time_of_day_is_meant_in_its_zone() -> None:
    nightly = cron.parse("0 2 * * *")
    assert nightly.next(at("2025-01-15T00:00:00"), BERLIN) == at("2025-01-15T01:00:00")
    assert nightly.next(at("2025-07-15T00:00:00"), BERLIN) == at("2025-07-16T00:00:00")


def test_a_time_that_the_clocks_skip_is_due_by_as_much_later() -> None:
    assert cron.parse("30 2 * * *").next(at("2025-03-29T12:00:00"), BERLIN) == at("2025-03-30T01:30:00")


def test_a_time_that_comes_twice_is_due_once_unless_it_is_due_every_hour() -> None:
    nightly, hourly = cron.parse("30 2 * * *"), cron.parse("30 * * * *")
    assert nightly.next(at("2025-10-25T12:00:00"), BERLIN) == at("2025-10-26T00:30:00")
    assert nightly.next(at("2025-10-26T00:30:00"), BERLIN) == at("2025-10-27T01:30:00")
    assert hourly.next(at("2025-10-26T00:30:00"), BERLIN) == at("2025-10-26T01:30:00")


def test_a_day_that_never_comes_is_never_due() -> None:
    assert cron.parse("0 0 30 2 *").next(at("2025-01-01T00:00:00"), UTC) is None


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("* * * *", "4 fields"),
        ("0 0 * * * *", "6 fields"),
        ("60 * * * *", "minute"),
        ("0 5-3 * * *", "hour"),
        ("0 0 0 * *", "day of the month"),
        ("0 0 * foo *", "is not a number"),
        ("*/0 * * * *", "step"),
        ("@reboot", "is not a schedule"),
        ("@every soon", "is not a schedule"),
        ("@every 1ms", "shortest"),
    ],
)
def test_what_is_not_a_schedule_says_why(schedule: str, said: str) -> None:
    with pytest.raises(cron.CronError, match=said):
        cron.parse(schedule)
