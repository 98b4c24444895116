"""Durations in Go's notation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta import durations
from holdfast.meta.durations import DurationError

HOUR = 3_600_000_000_000
SECOND = 1_000_000_000

READ = [
    ("0", 0),
    ("+0", 0),
    ("-0", 0),
    ("0s", 0),
    ("30s", 30 * SECOND),
    ("1h30m", HOUR * 3 // 2),
    ("1.5h", HOUR * 3 // 2),
    ("+5s", 5 * SECOND),
    ("-1m", -60 * SECOND),
    ("-.5s", -SECOND // 2),
    ("1.s", SECOND),
    ("100ms", 100_000_000),
    ("1us", 1_000),
    ("1µs", 1_000),
    ("1μs", 1_000),
    ("12ns", 12),
    ("1.9ns", 1),
    ("30m1h", HOUR * 3 // 2),
    ("1s1s", 2 * SECOND),
    ("0.000000001s", 1),
    ("2562047h47m16.854775807s", 2**63 - 1),
    ("-2562047h47m16.854775808s", -(2**63)),
]

WRITTEN = [
    (timedelta(0), "0s", "0s"),
    (timedelta(microseconds=1), "1µs", "1µs"),
    (timedelta(microseconds=1500), "1.5ms", "1.5ms"),
    (timedelta(milliseconds=100), "100ms", "100ms"),
    (timedelta(seconds=1), "1s", "1s"),
    (timedelta(seconds=1.5), "1.5s", "1.5s"),
    (timedelta(seconds=60), "1m0s", "1m"),
    (timedelta(minutes=90), "1h30m0s", "1h30m"),
    (timedelta(hours=2, seconds=5), "2h0m5s", "2h5s"),
    (timedelta(hours=1, milliseconds=5), "1h0m0.005s", "1h0.005s"),
    (timedelta(days=2), "48h0m0s", "48h"),
    (timedelta(minutes=-1), "-1m0s", "-1m"),
    (timedelta(milliseconds=-1), "-1ms", "-1ms"),
]


@pytest.mark.parametrize(("text", "nanoseconds"), READ, ids=[text for text, _ in READ])
def test_go_notation_is_read_exactly(text: str, nanoseconds: int) -> None:
    assert durations.parse_nanoseconds(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "microseconds"), [("1999ns", 1), ("-1999ns", -1), ("999ns", 0), ("1.5h", 5_400_000_000)]
)
def test_a_timedelta_drops_what_is_finer_than_a_microsecond(text: str, microseconds: int) -> None:
    assert durations.parse(text) == timedelta(microseconds=microseconds)


@pytest.mark.parametrize(("duration", "go", "short"), WRITTEN, ids=[go for _, go, _ in WRITTEN])
def test_a_duration_is_written_as_go_prints_it_and_shorter_for_people(duration: timedelta, go: str, short: str) -> None:
    assert durations.format(duration) == go
    assert durations.short(duration) == short


def test_nanoseconds_are_written_exactly() -> None:
    assert durations.format_nanoseconds(1) == "1ns"
    assert durations.format_nanoseconds(1_500) == "1.5µs"
    assert durations.format_nanoseconds(2**63 - 1) == "2562047h47m16.854775807s"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a duration"),
        ("-", "is not a duration"),
        ("s", "is not a duration"),
        (".s", "is not a duration"),
        ("--1s", "is not a duration"),
        ("PT30S", "is not a duration"),
        ("3", "no unit after '3'"),
        ("1h30", "no unit after '30'"),
        ("1.5.3s", "no unit after '1.5'"),
        ("1d", "the unknown unit 'd'"),
        ("1h 30m", "the unknown unit 'h '"),
        ("1S", "the unknown unit 'S'"),
        ("1h\n", r"the unknown unit 'h\\n'"),
    ],
)
def test_a_text_that_is_no_duration_is_refused_with_examples(text: str, problem: str) -> None:
    with pytest.raises(DurationError, match=f"{problem}.*'1h30m'"):
        durations.parse(text)


@pytest.mark.parametrize("text", ["2562048h", "9223372036854775808ns", "-9223372036854775809ns"])
def test_what_go_cannot_count_is_out_of_range(text: str) -> None:
    with pytest.raises(DurationError, match="out of range"):
        durations.parse_nanoseconds(text)


def test_an_endless_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(DurationError, match="too long"):
        durations.parse("1" * 10_000 + "s")


spans = st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000))


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_number_of_nanoseconds_round_trips(nanoseconds: int) -> None:
    assert durations.parse_nanoseconds(durations.format_nanoseconds(nanoseconds)) == nanoseconds


@given(spans)
def test_every_duration_round_trips_in_both_forms(duration: timedelta) -> None:
    assert durations.parse(durations.format(duration)) == duration
    assert durations.parse(durations.short(duration)) == duration
    assert len(durations.short(duration)) <= len(durations.format(duration))


@given(spans)
def test_the_opposite_is_written_with_the_opposite_sign(duration: timedelta) -> None:
    if duration > timedelta(0):
        assert durations.format(-duration) == "-" + durations.format(duration)
