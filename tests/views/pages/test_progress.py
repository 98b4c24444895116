"""The progress of a page."""

from __future__ import annotations

from holdfast.views.pages.progress import bars


def test_progress_is_read_in_every_form_that_statuses_have() -> None:
    migration = {
        "progress": {"percentage": 40, "transferredBytes": 3 << 30, "totalBytes": 8 << 30, "transferRate": 2048}
    }
    assert [(each.label, each.percent, each.words) for each in bars({"status": migration})] == [
        ("Progress", 40.0, "3.0 GiB of 8.0 GiB, 2.0 KiB/s")
    ]
    profiling = {"profilingProgress": {"done": 3, "total": 12}}
    assert [(each.label, each.percent, each.words) for each in bars({"status": profiling})] == [
        ("Profiling", 25.0, "3 of 12")
    ]
    operation = {"operation": {"type": "Create", "percentage": 7}}
    assert [(each.label, each.percent) for each in bars({"status": operation})] == [("Create", 7.0)]
    assert not list(bars({"status": {"progress": {"done": "x", "total": 0}, "updateProgress": 3}}))
