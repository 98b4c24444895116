"""The Events of a page."""

from __future__ import annotations

from holdfast.views.pages.events import events


def test_events_of_both_forms_are_listed_with_the_latest_first() -> None:
    core = {
        "metadata": {"name": "a"},
        "type": "Warning",
        "reason": "Failed",
        "message": "it broke",
        "count": 3,
        "firstTimestamp": "2025-01-01T10:00:00Z",
        "lastTimestamp": "2025-01-01T11:00:00Z",
        "source": {"component": "holdfast"},
    }
    series = {
        "metadata": {"name": "b"},
        "type": "Normal",
        "note": "started",
        "eventTime": "2025-01-01T10:30:00Z",
        "series": {"count": 2, "lastObservedTime": "2025-01-01T11:30:00Z"},
        "reportingComponent": "holdfast",
    }
    found = events([core, series, {}])
    assert [(each.id, each.message, each.count, each.warning, each.by) for each in found] == [
        ("b", "started", 2, False, "holdfast"),
        ("a", "it broke", 3, True, "holdfast"),
        ("", "", 1, False, ""),
    ]
