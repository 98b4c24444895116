"""The timeline of a page."""

from __future__ import annotations

from tests.views.pages.standings import standing

from holdfast.views.pages.timeline import Sample, Timeline, timeline


def test_the_timeline_has_the_lowest_point() -> None:
    made = timeline(standing(), [Sample("2025-01-01T12:00:00Z", 3, 1, 3, 2)])
    assert (made.started, made.lowest, len(made.samples)) == ("2025-01-01T11:55:00Z", 2, 1)
    assert timeline(None, ()) == Timeline()
