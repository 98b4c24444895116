"""The page of one object: trees, conditions, Events, revisions, progress, and what is never shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast.kernel.fleet import State
from holdfast.views import pages
from holdfast.views.pages import DiffLine
from holdfast.views.rollouts import Because, Floor, Past, Record, RolloutState, Standing
from holdfast.views.trees import NEW, OLD, Branch, Leaf, Tree

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)


def leaf(name: str, state: State = State.AVAILABLE, index: int = NEW) -> Leaf:
    return Leaf(
        name=name,
        index=index,
        state=state,
        ready="1/1",
        node="node-1",
        age=timedelta(minutes=1),
        restarts=0,
        why="" if state is State.AVAILABLE else "it fails",
    )


def standing(**fields: Any) -> Standing:
    usual: dict[str, Any] = {
        "name": "shop",
        "strategy": "Canary",
        "state": RolloutState.UNDER_WAY,
        "phase": "Progressing",
        "because": Because("Waiting", "waits for 1 replica"),
        "desired": 3,
        "ready": 3,
        "available": 3,
        "updated": 1,
        "floors": (Floor(ready=3, desired=3, floor=2, lowest=2),),
        "started": NOW - timedelta(minutes=5),
    }
    return Standing(**(usual | fields))


def test_a_tree_becomes_branches_with_counts_by_revision_and_state() -> None:
    inner = Branch(name="v2", index=NEW, children=(leaf("b", State.DEAD), leaf("c")))
    outer = Branch(name="v1", index=OLD, children=(leaf("a", index=OLD), inner))
    (made,) = pages.branches(Tree(standing=standing(), branches=(outer,), now=NOW, size=3))
    assert made.counts == {"new": {"available": 1, "dead": 1}, "old": {"available": 1}}
    assert [each.name for each in made.leaves] == ["a"]
    assert [(each.name, each.state, each.why) for each in made.branches[0].leaves] == [
        ("b", "dead", "it fails"),
        ("c", "available", ""),
    ]
    assert made.leaves[0].created == "2025-01-01T11:59:00Z"


def test_of_many_pods_some_are_counted_and_not_shown() -> None:
    branches = tuple(Branch(name=name, index=NEW, children=tuple(map(leaf, "abc"))) for name in "xy")
    made = pages.branches(Tree(standing=standing(), branches=branches, now=NOW, size=6), most=4)
    assert [(len(each.leaves), each.hidden) for each in made] == [(3, 0), (1, 2)]
    assert made[1].counts == {"new": {"available": 3}}


def test_bad_conditions_come_first() -> None:
    found = pages.conditions(
        {
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "True"},
                    {"type": "Progressing", "status": "False"},
                    {"type": "MinAvailableBreached", "status": "False"},
                    {"type": "Blocked", "status": "True", "reason": "NoRoom", "message": "full"},
                    {"type": "SLASatisfied", "status": "False"},
                    "text",
                    {},
                ]
            }
        }
    )
    assert [(each.type, each.bad) for each in found] == [
        ("Blocked", True),
        ("SLASatisfied", True),
        ("Ready", False),
        ("Progressing", False),
        ("MinAvailableBreached", False),
    ]


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
    found = pages.events([core, series, {}])
    assert [(each.id, each.message, each.count, each.warning, each.by) for each in found] == [
        ("b", "started", 2, False, "holdfast"),
        ("a", "it broke", 3, True, "holdfast"),
        ("", "", 1, False, ""),
    ]


def test_the_timeline_has_the_lowest_point() -> None:
    made = pages.timeline(standing(), [pages.Sample("2025-01-01T12:00:00Z", 3, 1, 3, 2)])
    assert (made.started, made.lowest, len(made.samples)) == ("2025-01-01T11:55:00Z", 2, 1)
    assert pages.timeline(None, ()) == pages.Timeline()


def past(number: int, image: str) -> Past:
    record = msgspec.convert({"revision": number, "data": {"spec": {"image": image, "port": 80}}}, Record)
    return Past(number=number, revision=f"r{number}", image=image, made=None, marks=(), change="", record=record)


def test_revisions_are_shown_newest_first_with_a_diff_to_the_one_before() -> None:
    def dump(value: Any) -> str:
        return "\n".join(f"{name}: {each}" for name, each in value["spec"].items())

    new, old = pages.revisions((past(1, "a:1"), past(2, "a:2")), dump=dump)
    assert (new.number, old.number, old.diff) == (2, 1, ())
    assert new.diff == (
        DiffLine("@", ""),
        DiffLine("-", "image: a:1"),
        DiffLine("+", "image: a:2"),
        DiffLine(" ", "port: 80"),
    )


def test_progress_is_read_in_every_form_that_statuses_have() -> None:
    migration = {
        "progress": {"percentage": 40, "transferredBytes": 3 << 30, "totalBytes": 8 << 30, "transferRate": 2048}
    }
    assert [(each.label, each.percent, each.words) for each in pages.bars({"status": migration})] == [
        ("Progress", 40.0, "3.0 GiB of 8.0 GiB, 2.0 KiB/s")
    ]
    profiling = {"profilingProgress": {"done": 3, "total": 12}}
    assert [(each.label, each.percent, each.words) for each in pages.bars({"status": profiling})] == [
        ("Profiling", 25.0, "3 of 12")
    ]
    operation = {"operation": {"type": "Create", "percentage": 7}}
    assert [(each.label, each.percent) for each in pages.bars({"status": operation})] == [("Create", 7.0)]
    assert not list(pages.bars({"status": {"progress": {"done": "x", "total": 0}, "updateProgress": 3}}))


def test_values_of_secrets_and_what_servers_keep_for_themselves_are_not_shown() -> None:
    wire = {
        "kind": "Secret",
        "metadata": {
            "name": "a",
            "managedFields": [{}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "secret", "b": "c"},
        },
        "data": {"password": "aHVudGVyMg=="},
        "stringData": {"token": "hunter2"},
    }
    shown = pages.presentable(wire)
    assert shown["metadata"] == {"name": "a", "annotations": {"b": "c"}}
    assert shown["data"] == {"password": "<hidden, 12 characters>"}
    assert "hunter2" not in str(shown)
