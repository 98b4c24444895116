from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.conditions import (
    MAX_MESSAGE,
    Common,
    Condition,
    Status,
    Transition,
    Verdict,
    aggregate,
    changed,
    current,
    evaluate,
    find,
    merge,
    mirror,
    summary,
)
from holdfast.kernel.reasons import NAMES_SHOWN, Reason, some
from holdfast.meta.times import TimeError

NOW = datetime(2025, 3, 1, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)

TYPES = st.sampled_from(["Ready", "Synced", "Degraded", "Progressing"])
STATUSES = st.sampled_from(list(Status))
VERDICTS = st.builds(Verdict, STATUSES, st.sampled_from(["Good", "Bad", "Slow"]), st.text(max_size=8))
TIMES = st.datetimes(
    min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.sampled_from([UTC, None])
).map(lambda moment: moment.replace(tzinfo=UTC))
CONDITIONS = st.builds(
    Condition,
    type=TYPES,
    status=STATUSES,
    reason=st.sampled_from(["Good", "Bad", ""]),
    message=st.text(max_size=8),
    observed_generation=st.none() | st.integers(min_value=1, max_value=9),
    last_transition_time=st.none() | TIMES.map(lambda moment: moment.replace(microsecond=0)),
)
CONDITION_LISTS = st.lists(CONDITIONS, unique_by=lambda condition: condition.type).map(tuple)
VERDICT_MAPS = st.dictionaries(TYPES, VERDICTS)
UNNAMED: st.SearchStrategy[Literal["drop", "keep"]] = st.sampled_from(("drop", "keep"))


def condition(type: str, status: Status, reason: str = "Because", message: str = "", **fields: Any) -> Condition:
    return Condition(type=type, status=status, reason=reason, message=message, **fields)


# --- reasons


def test_a_reason_is_its_code_and_knows_what_it_means() -> None:
    assert Common.NOT_REPORTED.value == "NotReported"
    assert f"{Common.NOT_REPORTED}" == "NotReported"
    assert Common("NotReported") is Common.NOT_REPORTED
    assert Common.NOT_REPORTED.meaning == "The condition is missing, so nothing is known about it."


def test_a_reason_without_a_sentence_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="Silent says nothing about itself"):

        class Undocumented(Reason):
            SILENT = "Silent"


@pytest.mark.parametrize("code", ["", "two words", "1st", "Trailing:", "x" * 1025])
def test_a_code_that_the_api_would_refuse_cannot_be_declared_or_given(code: str) -> None:
    with pytest.raises(ValueError, match="not a code the API accepts"):

        class Refused(Reason):
            MEMBER = code, "A sentence."

    with pytest.raises(ValueError, match="would be refused"):
        Verdict.true(code, "A sentence.")


# --- the wire


def test_a_condition_reads_and_writes_the_wire() -> None:
    wire = {
        "type": "Ready",
        "status": "False",
        "observedGeneration": 3,
        "lastTransitionTime": "2025-03-01T12:00:00Z",
        "reason": "Crashing",
        "message": "web-0 restarts.",
    }
    read = Condition.from_wire(wire)
    assert read == condition(
        "Ready", Status.FALSE, "Crashing", "web-0 restarts.", observed_generation=3, last_transition_time=NOW
    )
    assert read.to_wire() == wire


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        ({"type": "Ready"}, Status.UNKNOWN),
        ({"type": "Ready", "status": "Maybe"}, Status.UNKNOWN),
        ({"type": "Ready", "status": "True", "reason": None, "lastTransitionTime": None}, Status.TRUE),
    ],
)
def test_what_others_wrote_is_read_with_tolerance(wire: dict[str, Any], status: Status) -> None:
    assert Condition.from_wire(wire) == Condition(type="Ready", status=status)


@given(CONDITIONS)
def test_the_wire_loses_nothing(original: Condition) -> None:
    assert Condition.from_wire(original.to_wire()) == original


def test_a_reason_goes_to_the_wire_as_a_plain_string() -> None:
    assert type(condition("Ready", Status.TRUE, Common.ALL_MET).to_wire()["reason"]) is str


def test_find_returns_the_condition_of_a_type_or_nothing() -> None:
    ready = condition("Ready", Status.TRUE)
    assert find((condition("Synced", Status.TRUE), ready), "Ready") is ready
    assert find((ready,), "Synced") is None


# --- checks


def test_the_first_check_that_objects_wins() -> None:
    def too_small(size: int) -> Verdict | None:
        return Verdict.false("TooSmall", "Grow.") if size < 5 else None

    def odd(size: int) -> Verdict | None:
        return Verdict.unknown("Odd", "Hm.") if size % 2 else None

    fine = Verdict.true("Fine", "All is well.")
    assert evaluate((too_small, odd), 3, otherwise=fine).reason == "TooSmall"
    assert evaluate((odd, too_small), 3, otherwise=fine).reason == "Odd"
    assert evaluate((too_small, odd), 6, otherwise=fine) is fine
    assert evaluate((), 6, otherwise=fine) is fine


# --- merge


def merged(old: tuple[Condition, ...], *verdicts: tuple[str, Verdict], now: datetime = LATER) -> tuple[Condition, ...]:
    return merge(old, dict(verdicts), generation=2, now=now, unnamed="drop")


def test_a_new_condition_starts_now() -> None:
    assert merged((), ("Ready", Verdict.true("Good", "Yes."))) == (
        condition("Ready", Status.TRUE, "Good", "Yes.", observed_generation=2, last_transition_time=LATER),
    )


@pytest.mark.parametrize(
    ("verdict", "since"),
    [
        (Verdict.true("Good", "Yes."), NOW),
        (Verdict.true("Better", "Yes."), NOW),
        (Verdict.true("Good", "Yes, again."), NOW),
        (Verdict.false("Bad", "No."), LATER),
        (Verdict.unknown("Silent", "Who knows."), LATER),
    ],
)
def test_only_a_change_of_status_moves_the_transition_time(verdict: Verdict, since: datetime) -> None:
    old = condition("Ready", Status.TRUE, "Good", "Yes.", observed_generation=1, last_transition_time=NOW)
    (new,) = merged((old,), ("Ready", verdict))
    assert new.last_transition_time == since
    assert (new.reason, new.message, new.observed_generation) == (verdict.reason, verdict.message, 2)


def test_times_are_whole_seconds_in_utc() -> None:
    odd_hour = datetime(2025, 3, 1, 14, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    (new,) = merged((), ("Ready", Verdict.true("Good", "")), now=odd_hour)
    assert new.last_transition_time == NOW
    assert new.to_wire()["lastTransitionTime"] == "2025-03-01T12:00:00Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(TimeError):
        merged((), ("Ready", Verdict.true("Good", "")), now=datetime(2025, 3, 1))


def test_declared_order_comes_first_and_kept_conditions_follow_by_name() -> None:
    old = tuple(condition(type, Status.TRUE) for type in ("Zonal", "Ready", "Alpha"))
    verdicts = {"Synced": Verdict.true("Good", ""), "Ready": Verdict.true("Good", "")}
    kept = merge(old, verdicts, generation=1, now=NOW, unnamed="keep")
    assert [each.type for each in kept] == ["Synced", "Ready", "Alpha", "Zonal"]
    assert kept[2:] == (old[2], old[0])
    dropped = merge(old, verdicts, generation=1, now=NOW, unnamed="drop")
    assert [each.type for each in dropped] == ["Synced", "Ready"]


def test_a_message_longer_than_the_api_takes_is_cut() -> None:
    (new,) = merged((), ("Ready", Verdict.false("Bad", "x" * (MAX_MESSAGE + 1))))
    assert len(new.message) == MAX_MESSAGE
    assert new.message.endswith("x…")


@given(CONDITION_LISTS, VERDICT_MAPS, TIMES, TIMES, UNNAMED)
def test_merging_again_changes_nothing(
    old: tuple[Condition, ...],
    verdicts: Mapping[str, Verdict],
    first: datetime,
    second: datetime,
    unnamed: Literal["drop", "keep"],
) -> None:
    once = merge(old, verdicts, generation=3, now=first, unnamed=unnamed)
    again = merge(once, verdicts, generation=3, now=second, unnamed=unnamed)
    assert again == once
    assert tuple(Condition.from_wire(each.to_wire()) for each in once) == once


@given(CONDITION_LISTS, VERDICT_MAPS, TIMES)
def test_a_transition_time_moves_exactly_when_the_status_does(
    old: tuple[Condition, ...], verdicts: Mapping[str, Verdict], now: datetime
) -> None:
    for new in merge(old, verdicts, generation=3, now=now, unnamed="drop"):
        before = find(old, new.type)
        stays = before is not None and before.status == new.status and before.last_transition_time is not None
        assert new.last_transition_time == (
            before.last_transition_time if before and stays else now.replace(microsecond=0)
        )
        assert new.observed_generation == 3


@given(CONDITION_LISTS, VERDICT_MAPS, UNNAMED, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_old_conditions(
    old: tuple[Condition, ...], verdicts: Mapping[str, Verdict], unnamed: Literal["drop", "keep"], random: Any
) -> None:
    shuffled = list(old)
    random.shuffle(shuffled)
    assert merge(shuffled, verdicts, generation=1, now=NOW, unnamed=unnamed) == merge(
        old, verdicts, generation=1, now=NOW, unnamed=unnamed
    )


# --- changes


def test_changes_of_status_and_reason_are_news_and_a_new_message_is_not() -> None:
    ready, synced, gone = (condition(type, Status.TRUE) for type in ("Ready", "Synced", "Gone"))
    failed, told, fresh = (
        replace(ready, status=Status.FALSE),
        replace(synced, message="4 left"),
        condition("Fresh", Status.TRUE),
    )
    assert changed((gone, ready, synced), (fresh, told, failed)) == (
        Transition(type="Fresh", old=None, new=fresh),
        Transition(type="Ready", old=ready, new=failed),
        Transition(type="Gone", old=gone, new=None),
    )
    assert changed((ready,), (replace(ready, reason="Other"),)) != ()


@given(CONDITION_LISTS)
def test_nothing_changed_between_equal_conditions(conditions: tuple[Condition, ...]) -> None:
    assert changed(conditions, conditions) == ()


# --- mirror and age


def test_a_mirrored_condition_keeps_status_reason_and_message() -> None:
    source = (condition("Available", Status.FALSE, "Crashing", "web-0 restarts."),)
    assert mirror(source, "Available", source="Deployment web") == Verdict.false("Crashing", "web-0 restarts.")


def test_a_missing_condition_mirrors_as_unknown_and_names_who_is_silent() -> None:
    assert mirror((), "Available", source="Deployment web") == Verdict.unknown(
        Common.NOT_REPORTED, "Deployment web does not report Available yet."
    )


@pytest.mark.parametrize("reason", ["", "not a code"])
def test_a_reason_that_cannot_be_passed_on_is_replaced(reason: str) -> None:
    source = (condition("Ready", Status.TRUE, reason, "Yes."),)
    assert mirror(source, "Ready", source="Pod web-0") == Verdict.true(Common.UNEXPLAINED, "Yes.")


@pytest.mark.parametrize(
    ("observed", "status"), [(None, Status.TRUE), (4, Status.TRUE), (5, Status.TRUE), (3, Status.UNKNOWN)]
)
def test_a_condition_of_an_earlier_generation_is_unknown(observed: int | None, status: Status) -> None:
    (seen,) = current((condition("Ready", Status.TRUE, observed_generation=observed),), generation=4)
    assert seen.status is status
    if status is Status.UNKNOWN:
        assert (seen.reason, seen.message) == (
            Common.OUTDATED,
            "Ready describes generation 3; the object is at 4.",
        )


# --- summary


READY = condition("Ready", Status.TRUE, "Serving", "3 of 3 serve.")
UNREADY = condition("Ready", Status.FALSE, "Crashing", "web-0 restarts.")
UNSYNCED = condition("Synced", Status.FALSE, "Refused", "The provider said no.")
DEGRADED = condition("Degraded", Status.TRUE, "DiskLost", "One disk is gone.")
HEALTHY = condition("Degraded", Status.FALSE, "Whole", "")


@pytest.mark.parametrize(
    ("conditions", "types", "expected"),
    [
        ((READY, HEALTHY), ("Ready", "Degraded"), Verdict.true(Common.ALL_MET, "As it should be: Ready, Degraded.")),
        ((UNREADY, HEALTHY), ("Ready", "Degraded"), Verdict.false("Crashing", "Ready: web-0 restarts.")),
        ((READY, DEGRADED), ("Ready", "Degraded"), Verdict.false("DiskLost", "Degraded: One disk is gone.")),
        (
            (UNREADY, UNSYNCED),
            ("Synced", "Ready"),
            Verdict.false(Common.SEVERAL_NOT_MET, "Synced: The provider said no.; Ready: web-0 restarts."),
        ),
        (
            (READY,),
            ("Ready", "Synced"),
            Verdict.unknown(Common.NOT_REPORTED, "Synced: The object does not report Synced yet."),
        ),
        (
            (UNREADY,),
            ("Synced", "Ready"),
            Verdict.false("Crashing", "Ready: web-0 restarts.; Synced: The object does not report Synced yet."),
        ),
        (
            (condition("Ready", Status.UNKNOWN, "Slow", ""),),
            ("Ready", "Synced"),
            Verdict.unknown(Common.SEVERAL_NOT_KNOWN, "Ready: Slow; Synced: The object does not report Synced yet."),
        ),
        ((READY, UNSYNCED), ("Ready",), Verdict.true(Common.ALL_MET, "As it should be: Ready.")),
    ],
)
def test_a_summary_puts_bad_before_unknown_before_good(
    conditions: tuple[Condition, ...], types: tuple[str, ...], expected: Verdict
) -> None:
    assert summary(conditions, types, negative={"Degraded"}) == expected


def test_a_summary_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="true of anything"):
        summary((READY,), ())


@given(CONDITION_LISTS, st.lists(TYPES, min_size=1, unique=True), st.sets(TYPES))
def test_a_summary_is_true_only_if_every_condition_is_as_it_should_be(
    conditions: tuple[Condition, ...], types: list[str], negative: set[str]
) -> None:
    verdict = summary(conditions, types, negative=negative)
    found = {type: find(conditions, type) for type in types}
    good = {type: Status.FALSE if type in negative else Status.TRUE for type in types}
    bad = {type: Status.TRUE if type in negative else Status.FALSE for type in types}
    all_good = all(each is not None and each.status == good[type] for type, each in found.items())
    any_bad = any(each is not None and each.status == bad[type] for type, each in found.items())
    assert (verdict.status is Status.TRUE) == all_good
    assert (verdict.status is Status.FALSE) == any_bad
    assert verdict == summary(tuple(reversed(conditions)), types, negative=negative)


# --- aggregate


def fleet(**states: Status | None) -> dict[str, tuple[Condition, ...]]:
    return {
        name: () if status is None else (condition("Ready", status, f"Is{status}"),) for name, status in states.items()
    }


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (fleet(b=Status.TRUE, a=Status.TRUE), Verdict.true(Common.ALL_MET, "all 2 Ready")),
        (fleet(b=Status.FALSE, a=Status.FALSE, c=Status.TRUE), Verdict.false("IsFalse", "2 of 3 not Ready: a, b")),
        (fleet(a=Status.TRUE, b=None), Verdict.unknown(Common.NOT_REPORTED, "1 of 2 not known to be Ready: b")),
        (
            fleet(a=Status.FALSE, b=None),
            Verdict.false("IsFalse", "1 of 2 not Ready: a; 1 of 2 not known to be Ready: b"),
        ),
        (
            fleet(a=Status.UNKNOWN, b=None),
            Verdict.unknown(Common.SEVERAL_NOT_KNOWN, "2 of 2 not known to be Ready: a, b"),
        ),
        ({}, Verdict.unknown(Common.NONE_EXIST, "There is no object that could be Ready.")),
    ],
)
def test_an_aggregate_counts_and_names(objects: dict[str, tuple[Condition, ...]], expected: Verdict) -> None:
    assert aggregate(objects, "Ready") == expected


def test_an_aggregate_names_a_few_and_counts_the_rest() -> None:
    objects = {f"web-{number:03}": (UNREADY,) for number in range(200)}
    assert aggregate(objects, "Ready").message == (
        "200 of 200 not Ready: web-000, web-001, web-002, web-003, web-004 and 195 more"
    )


def test_different_reasons_become_a_reason_of_their_own() -> None:
    objects = {"a": (UNREADY,), "b": (replace(UNREADY, reason="Starved"),)}
    assert aggregate(objects, "Ready") == Verdict.false(Common.SEVERAL_NOT_MET, "2 of 2 not Ready: a, b")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ({"a": (DEGRADED,), "b": (HEALTHY,)}, Verdict.true("DiskLost", "1 of 2 Degraded: a")),
        ({"a": (HEALTHY,), "b": (HEALTHY,)}, Verdict.false(Common.ALL_MET, "none of 2 Degraded")),
        ({"a": (HEALTHY,), "b": ()}, Verdict.unknown(Common.NOT_REPORTED, "1 of 2 not known to be Degraded: b")),
    ],
)
def test_an_aggregate_of_a_negative_condition_keeps_its_polarity(
    objects: dict[str, tuple[Condition, ...]], expected: Verdict
) -> None:
    assert aggregate(objects, "Degraded", negative=True) == expected


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), st.none() | STATUSES, max_size=20))
def test_an_aggregate_is_stable_bounded_and_never_optimistic(states: dict[str, Status | None]) -> None:
    verdict = aggregate(fleet(**states), "Ready")
    assert verdict == aggregate(fleet(**dict(reversed(states.items()))), "Ready")
    assert (verdict.status is Status.TRUE) == (set(states.values()) == {Status.TRUE})
    assert (verdict.status is Status.FALSE) == (Status.FALSE in states.values())
    assert verdict.message.count(",") <= 2 * (NAMES_SHOWN - 1)


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b and 1 more")],
)
def test_a_sentence_names_the_first_few_and_counts_the_rest(names: list[str], text: str) -> None:
    assert some(iter(names), 2) == text
