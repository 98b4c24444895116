"""An event that another clock says is still to come counts from when it was first seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast.runtime.passes.sightings import Sightings

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def test_a_time_that_has_come_counts_as_it_is_said() -> None:
    assert Sightings().at(NOW)("a", NOW - HOUR) == NOW - HOUR


def test_a_time_that_is_still_to_come_counts_from_the_first_sighting_also_when_it_has_come() -> None:
    sightings = Sightings()
    for later in (timedelta(), SECOND, HOUR, 2 * HOUR):
        assert sightings.at(NOW + later)("a", NOW + HOUR) == NOW


def test_what_happens_anew_is_seen_anew() -> None:
    sightings = Sightings()
    sightings.at(NOW)("a", NOW + HOUR)
    assert sightings.at(NOW + SECOND)("a", NOW + HOUR + SECOND) == NOW + SECOND
    assert sightings.at(NOW + SECOND)("b", NOW + HOUR) == NOW + SECOND


def test_after_our_clock_was_set_back_a_sighting_is_not_still_to_come() -> None:
    sightings = Sightings()
    sightings.at(NOW)("a", NOW + HOUR)
    assert sightings.at(NOW - HOUR)("a", NOW + HOUR) == NOW - HOUR


def test_only_times_that_differ_are_corrected_also_when_they_have_come() -> None:
    events = [("a", NOW + HOUR), ("b", NOW - HOUR), ("c", None)]
    sightings = Sightings()
    assert sightings.at(NOW).corrected(events) == {"a": NOW}
    assert sightings.at(NOW + 2 * HOUR).corrected(events) == {"a": NOW}
