"""Instants: what is read, what is written, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta import times
from holdfast.meta.times import TimeError

TEN = datetime(2025, 1, 15, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2025-01-15T10:00:00Z",
        "2025-01-15T10:00:00.999999999Z",
        "2025-01-15T11:30:00+01:30",
        "2025-01-15T00:00:00-10:00",
        "2025-01-15T10:00:00-00:00",
    ],
)
def test_a_time_is_read_in_utc_and_whole_seconds(text: str) -> None:
    assert times.parse(text) == TEN
    assert times.parse(text).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2025-01-15T10:00:00Z", 0),
        ("2025-01-15T10:00:00.5Z", 500_000),
        ("2025-01-15T10:00:00.000001Z", 1),
        ("2025-01-15T10:00:00.1234567Z", 123_456),
    ],
)
def test_a_micro_time_keeps_six_digits(text: str, microsecond: int) -> None:
    assert times.parse_micro(text) == TEN.replace(microsecond=microsecond)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2025-01-15",
        "2025-01-15T10:00:00",
        "2025-01-15 10:00:00Z",
        "2025-01-15t10:00:00z",
        "2025-01-15T10:00Z",
        "2025-01-15T10:00:00.Z",
        "2025-01-15T10:00:00Z\n",
        "2025-13-15T10:00:00Z",
        "2025-02-30T10:00:00Z",
        "2025-01-15T24:00:00Z",
        "2025-01-15T10:00:60Z",
        "2025-01-15T10:00:00+01:60",
        "2025-01-15T10:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "٢٠٢٥-01-15T10:00:00Z",
        "1736935200",
    ],
)
def test_a_text_that_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(TimeError, match="2025-01-15T10:00:00Z"):
        times.parse(text)


def test_times_are_written_in_utc() -> None:
    instant = TEN.replace(microsecond=5).astimezone(timezone(timedelta(hours=5)))
    assert times.format(instant) == "2025-01-15T10:00:00Z"
    assert times.format_micro(instant) == "2025-01-15T10:00:00.000005Z"
    assert times.format_micro(TEN) == "2025-01-15T10:00:00.000000Z"
    assert times.format(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


def test_a_datetime_without_a_zone_is_refused() -> None:
    naive = TEN.replace(tzinfo=None)
    for use in (times.format, times.format_micro, times.truncate):
        with pytest.raises(TimeError, match="no time zone"):
            use(naive)


zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
instants = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)


@given(instants)
def test_what_is_written_is_read_back(instant: datetime) -> None:
    assert times.parse(times.format(instant)) == times.truncate(instant)
    assert times.parse_micro(times.format_micro(instant)) == instant


@given(instants)
def test_truncating_twice_is_truncating_once(instant: datetime) -> None:
    once = times.truncate(instant)
    assert times.truncate(once) == once
    assert timedelta(0) <= instant - once < timedelta(seconds=1)


@given(instants)
def test_python_writes_what_we_can_read(instant: datetime) -> None:
    assert times.parse_micro(instant.isoformat()) == instant


@given(instants, instants)
def test_written_times_sort_as_the_instants_do(one: datetime, other: datetime) -> None:
    assert (times.format_micro(one) < times.format_micro(other)) == (one < other)
