"""Migrations as they are shown and steered: the state, the tables, the tree, the verbs, and figures for metrics."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.operators.metrics import RolloutMetrics
from holdfast.operators.rollouts import Already, Case, Change, Observed, Refusal
from holdfast.operators.virtualmachine.migrations.verbs import ROLLOUT
from holdfast.operators.virtualmachine.resources import MACHINES, MIGRATIONS
from holdfast.operators.virtualmachine.verbs import power, release
from holdfast.views.rollouts import RolloutState

NOW = datetime(2030, 1, 1, 0, 2, tzinfo=UTC)
SINCE = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
Wire = dict[str, Any]


class View:
    """The objects of a test."""

    def __init__(self, *objects: Object) -> None:
        self.objects = objects

    def get(self, resource: Resource, key: Key) -> Object | None:
        return next((each for each in self.objects if (each.resource, each.key) == (resource, key)), None)

    def list(self, resource: Resource, **_: Any) -> tuple[Object, ...]:
        return tuple(each for each in self.objects if each.resource == resource)

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        return ()

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        return ()


def migration(**status: Any) -> Object:
    ready = "True" if status.get("completionTime") else "False"
    condition = {"type": "Ready", "status": ready, "reason": "Exporting", "message": "the disk is exported", **SINCE}
    metadata = {"name": "move", "namespace": "default", "uid": "1-2-3", "generation": 1}
    return Object.of(
        MIGRATIONS,
        {
            "apiVersion": MIGRATIONS.api_version,
            "kind": MIGRATIONS.kind,
            "metadata": metadata,
            "spec": {
                "source": {"vmRef": {"name": "web"}},
                "target": {"name": "moved", "providerRef": {"name": "far"}},
                "options": {"timeout": "1h"},
            },
            "status": {"observedGeneration": 1, "conditions": [condition], **status},
        },
    )


EXPORTING: Wire = {
    "phase": "Exporting",
    "startTime": "2030-01-01T00:00:00Z",
    "taskRef": "task-7",
    "progress": {
        "currentPhase": "Exporting",
        "percentage": 31,
        "totalBytes": 4 << 30,
        "transferredBytes": 3 << 29,
        "transferRate": 50 << 20,
        "eta": "2m40s",
        "phaseStartTime": "2030-01-01T00:01:00Z",
        "updateTime": "2030-01-01T00:01:50Z",
    },
    "diskInfo": {"sourceDiskID": "disk-1", "sourceFormat": "qcow2", "sourceSize": str(20 << 30)},
    "storageInfo": {"url": "pvc://claim/export.qcow2"},
}


def test_the_state_has_the_percentage_the_rate_the_time_left_and_the_deadline() -> None:
    found = ROLLOUT.standing(Observed(migration(**EXPORTING), View()))
    assert (found.state, found.phase, found.ready) == (RolloutState.UNDER_WAY, "Exporting", 0)
    assert found.because.message == "the disk is exported (31 %, 2m40s left)"
    assert found.facts == ("31 %, 50.0 MiB/s, 2m40s left",)
    assert found.due == datetime(2030, 1, 1, 1, 0, tzinfo=UTC)
    assert found.expected == datetime(2030, 1, 1, 0, 4, 30, tzinfo=UTC)
    assert found.more["task"] == "task-7"


def test_a_migration_that_is_complete_or_has_failed_says_so() -> None:
    done = migration(phase="Ready", completionTime="2030-01-01T00:01:00Z")
    assert ROLLOUT.standing(Observed(done, View())).state is RolloutState.COMPLETED
    failed = {"count": 2, "time": "2030-01-01T00:01:00Z", "reason": "QuotaExceeded", "message": "no room"}
    found = ROLLOUT.standing(Observed(migration(phase="Failed", failed=failed), View()))
    assert (found.state, found.facts) == (RolloutState.FAILED, ("failed 2 times",))
    assert ROLLOUT.standing(Observed(migration(), View())).phase == "Pending"


def test_the_tables_show_the_progress_and_the_disk_at_both_ends() -> None:
    wire = migration(**EXPORTING).wire()
    progress, disk = (table.rows(wire, lambda time: "50s") for table in ROLLOUT.tables)
    assert progress[1] == ["Exporting", "31", "1.5 GiB of 4.0 GiB", "50.0 MiB/s", "2m40s", "50s"]
    assert disk[1:] == [
        ["source", "disk-1", "qcow2", "20.0 GiB", "-"],
        ["storage", "pvc://claim/export.qcow2", "-", "-", "-"],
        ["target", "-", "-", "-", "-"],
    ]
    assert ROLLOUT.headline(wire).because == "31 %: the disk is exported"


def test_the_tree_has_both_machines() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", **SINCE}
    status = {"id": "vm-1", "message": "the machine runs", "conditions": [ready], "placement": {"host": "host-1"}}
    web = Object.of(
        MACHINES,
        {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.kind,
            "metadata": {"name": "web", "namespace": "default", "creationTimestamp": "2030-01-01T00:00:00Z"},
            "spec": {"providerRef": {"name": "sim"}, "classRef": {"name": "small"}, "imageRef": {"name": "ubuntu"}},
            "status": status,
        },
    )
    tree = ROLLOUT.tree(Observed(migration(**EXPORTING), View(web)), NOW)
    source, target = tree.branches
    assert (source.name, target.name, target.children) == ("source web", "target moved", ())
    assert [(leaf.name, leaf.ready, leaf.node) for leaf in source.leaves] == [("vm-1", "1/1", "host-1")]


def test_a_migration_is_paused_and_resumed_and_other_verbs_say_what_to_do_instead() -> None:
    case = Case(object=migration(**EXPORTING), now=NOW)
    paused = ROLLOUT.answer("pause", case)
    assert isinstance(paused, Change)
    assert paused.notes == ("a task of a provider that is under way goes on",)
    for verb, hint in (("abort", "delete the VMMigration"), ("retry", "correct the spec"), ("undo", "'status'")):
        refused = ROLLOUT.answer(verb, case)
        assert isinstance(refused, Refusal)
        assert hint in refused.hint


def test_metrics_have_the_bytes_and_count_how_migrations_end() -> None:
    view, registry = View(migration(**EXPORTING)), CollectorRegistry()
    registry.register(RolloutMetrics((ROLLOUT,), view, lambda: NOW))
    text = generate_latest(registry).decode()
    named = 'kind="VMMigration",name="move",namespace="default"'
    figures = dict(re.findall(rf'^holdfast_rollout_figure{{figure="(\w+)",{named}}} (.*)$', text, re.MULTILINE))
    assert float(figures["transferredBytes"]) == 3 << 29
    assert float(figures["bytesPerSecond"]) == 50 << 20
    view.objects = (migration(phase="Failed"),)
    generate_latest(registry)
    times = {"startTime": "2030-01-01T00:00:00Z", "completionTime": "2030-01-01T00:01:00Z"}
    view.objects = (migration(phase="Ready", **times),)
    text = generate_latest(registry).decode()
    for result in ("failed", "completed"):
        assert f'holdfast_rollouts_finished_total{{kind="VMMigration",result="{result}"}} 1.0' in text
    assert 'holdfast_rollout_duration_seconds_sum{kind="VMMigration"} 60.0' in text


def test_a_machine_that_a_migration_keeps_off_is_started_only_after_it_was_released() -> None:
    metadata = {"name": "web", "namespace": "default", "annotations": {"virtrigaud.io/migration-hold": "move/1-2-3/1"}}
    spec = {"providerRef": {"name": "sim"}, "classRef": {"name": "small"}, "imageRef": {"name": "ubuntu"}}
    web = Object.of(
        MACHINES,
        {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "metadata": metadata, "spec": spec},
    )
    refused = power(web, "on")
    assert isinstance(refused, Refusal)
    assert "VMMigration move keeps the machine off" in refused.message
    assert "holdfast vm release web" in refused.hint
    released = release(web, "")
    assert isinstance(released, Change)
    assert released.patch == {"metadata": {"annotations": {"virtrigaud.io/migration-hold": None}}}
    free = Object.of(MACHINES, {**web.wire(), "metadata": {"name": "web", "namespace": "default"}})
    assert isinstance(release(free, ""), Already)
    assert isinstance(power(free, "on"), Change)
