"""The overview: what any object says of itself, and which come first."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.views import overview
from holdfast.views.overview import FloorBar, Health, Row
from holdfast.views.rollouts import RolloutState

AT = "2025-01-01T12:00:00Z"


def wire(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    meta = {"name": "a", "namespace": "b", "creationTimestamp": AT, "generation": 1} | metadata
    return {"kind": "Thing", "metadata": meta, "spec": {"replicas": 3}} | ({} if status is None else {"status": status})


def stated(type: str, status: str, **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": type, "status": status, "lastTransitionTime": "2025-01-02T00:00:00Z", **more}]}


SEEN = {
    "without a status": (wire(), "New", Health.PROGRESSING, overview.NOT_REPORTED),
    "ready": (wire(stated("Ready", "True", message="all is well")), "Ready", Health.GOOD, "all is well"),
    "not ready": (
        wire(stated("Ready", "False", reason="Waits", message="2 of 3 pods")),
        "NotReady",
        Health.PROGRESSING,
        "2 of 3 pods",
    ),
    "failed by its phase": (wire({"phase": "Failed", "message": "gone"}), "Failed", Health.TROUBLE, "gone"),
    "blocked by a condition": (
        wire({"phase": "Pending", **stated("Blocked", "True", message="no room")}),
        "Pending",
        Health.TROUBLE,
        "no room",
    ),
    "with a phase alone": (wire({"phase": "Bound"}), "Bound", Health.GOOD, ""),
    "deleted, with a finalizer": (
        wire({"phase": "Ready"}, deletionTimestamp=AT, finalizers=["x/y"]),
        "Deleting",
        Health.PROGRESSING,
        "its deletion: x/y must be removed first",
    ),
    "changed, and not observed yet": (
        wire({"observedGeneration": 1, **stated("Ready", "True")}, generation=2),
        "Ready",
        Health.PROGRESSING,
        "its controller, which has observed generation 1, not 2 yet",
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_an_object_is_seen_by_its_phase_and_its_conditions(name: str) -> None:
    given, phase, health, because = SEEN[name]
    seen = overview.glance(given)
    assert (seen.phase, seen.health, seen.because) == (phase, health, because)


def test_a_floor_that_was_reached_and_is_broken_is_trouble() -> None:
    floor = {"required": 3, "available": 1, "lowest": 1}
    seen = overview.glance(wire({"floor": floor, **stated("Ready", "False", message="2 pods are lost")}))
    assert seen.health is Health.TROUBLE
    assert seen.floors == (FloorBar(ready=1, desired=3, floor=3, lowest=1),)


def test_a_floor_that_was_never_reached_is_no_trouble() -> None:
    seen = overview.glance(wire({"floor": {"required": 3, "available": 1}, **stated("Ready", "False")}))
    assert seen.health is Health.PROGRESSING


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": "none"},
        {"conditions": ["text", {"type": "Ready"}]},
        {"floor": {"required": "x"}},
        {"floor": [1]},
        {"phase": {"a": 1}},
        {"availableReplicas": True},
    ],
)
def test_a_status_of_wrong_types_is_no_error(status: dict[str, Any]) -> None:
    made = overview.row(wire(status), overview.glance(wire(status)), resource="things.example.com", kind="Thing")
    assert msgspec.json.decode(msgspec.json.encode(made), type=Row) == made


def test_a_row_shows_the_floor_with_the_fewest_to_spare() -> None:
    bars = (FloorBar(name="a", ready=4, desired=4, floor=3), FloorBar(name="b", ready=3, desired=4, floor=3, lowest=3))
    seen = overview.Glance(phase="Ready", health=Health.GOOD, floors=bars)
    made = overview.row(wire(), seen, resource="things.example.com", kind="Thing", owner="Set/x")
    assert made.floor == bars[1]
    assert (made.floors, made.id, made.owner) == (2, "things.example.com/b/a", "Set/x")


def test_troubles_come_first_and_are_counted() -> None:
    rows = [
        Row(id=name, kind="Thing", resource="things", name=name, phase="", health=health)
        for name, health in (("a", Health.GOOD), ("b", Health.PROGRESSING), ("c", Health.TROUBLE), ("d", Health.GOOD))
    ]
    assert [each.name for each in overview.ordered(rows)] == ["c", "b", "a", "d"]
    counted = overview.counts(rows)
    assert (counted.trouble, counted.progressing, counted.good, counted.total) == (1, 1, 2, 4)


def test_every_state_of_a_rollout_has_a_health() -> None:
    found = {state: overview.health_of_rollout(state) for state in RolloutState}
    trouble = {state for state, health in found.items() if health is Health.TROUBLE}
    assert trouble == {RolloutState.BLOCKED, RolloutState.FAILED, RolloutState.REJECTED, RolloutState.RETURNING}
    assert [state for state, health in found.items() if health is Health.GOOD] == [RolloutState.COMPLETED]
