"""Rollouts in words: what each status comes to, and what each revision changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.kinds.cloudless import Workload
from holdfast.kinds.model import Condition, FloorStatus, Status
from holdfast.operators.workload import view
from holdfast.views import rollouts
from holdfast.views.rollouts import Floor, Record, RolloutState

NOON = "2025-01-01T12:00:00Z"
LABEL = view.REVISION


def workload(status: dict[str, Any] | None = None, **rollout: Any) -> Workload:
    wire: dict[str, Any] = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "shop", "generation": 2},
        "spec": {"image": "shop:2", "replicas": 4, "rollout": rollout},
    }
    return msgspec.convert(wire | ({"status": status} if status is not None else {}), Workload)


def status(phase: str = "Updating", code: str = "WaitingForReady", **fields: Any) -> dict[str, Any]:
    return {
        "phase": phase,
        "updateRevision": "new",
        "currentRevision": "old",
        "readyReplicas": 3,
        "updatedReplicas": 1,
        "oldReplicas": 3,
        "limits": {"floor": 3, "maxLive": 5},
        "rollout": {"step": 1, "steps": 1, "because": {"code": code, "message": "it says so"}},
        **fields,
    }


def condition(type: str, reason: str, message: str = "it says so; change it") -> dict[str, Any]:
    return {"type": type, "status": "True", "reason": reason, "message": message, "lastTransitionTime": NOON}


def blocked(reason: str) -> dict[str, Any]:
    return {"conditions": [condition("Blocked", reason)]}


STATES = {
    "not reconciled yet": (None, RolloutState.UNSEEN),
    "replicas come up": (status(), RolloutState.UNDER_WAY),
    "all are there": (status("Completed", "Completed"), RolloutState.COMPLETED),
    "paused by a user": (status("Paused", "Paused"), RolloutState.WAITING),
    "a step waits for approval": (status("Paused", "ApprovalNeeded"), RolloutState.WAITING),
    "old replicas have to be deleted": (status("Paused", "DeletionNeeded"), RolloutState.WAITING),
    "a step waits for its time": (status("Paused", "StepPause"), RolloutState.UNDER_WAY),
    "nothing may be replaced": (
        status("Paused", "NoDisruptionBudget", **blocked("NoDisruptionBudget")),
        RolloutState.BLOCKED,
    ),
    "replicas at the floor come back": (status("Updating", "AtFloor", **blocked("AtFloor")), RolloutState.UNDER_WAY),
    "the operator tries again": (status(**blocked("RequestRefused")), RolloutState.UNDER_WAY),
    "it is late": (
        status("Failed", "ProgressDeadlineExceeded", **blocked("ProgressDeadlineExceeded")),
        RolloutState.FAILED,
    ),
    "it is late and a lost replica is replaced": (status("Updating", "ProgressDeadlineExceeded"), RolloutState.FAILED),
    "it is about to go back": (status("Failed", "RollingBack"), RolloutState.RETURNING),
    "it goes back": (status(rejectedRevision="bad"), RolloutState.RETURNING),
    "it is back": (status("Failed", "RevisionRejected", rejectedRevision="bad"), RolloutState.REJECTED),
}


@pytest.mark.parametrize("case", STATES)
def test_every_status_has_one_state(case: str) -> None:
    reported, state = STATES[case]
    assert view.standing(workload(reported)).state is state


def test_a_status_that_does_not_answer_what_is_asked_now_comes_to_nothing() -> None:
    standing = view.standing(workload(status("Completed", "Completed")), seen=False)
    assert standing.state is RolloutState.UNSEEN
    assert rollouts.line(standing) == "shop: the operator has not observed the latest change yet"
    nothing = view.standing(workload())
    assert rollouts.line(nothing) == "shop: it has no status yet; is its operator running?"


def test_a_floor_says_by_how_much_it_is_lowered_and_how_low_it_went() -> None:
    reported = FloorStatus(required=2, available=3, lowest=1, lowered=1)
    floor = Floor.reported(reported, name="leader", desired=3)
    assert floor.words == "leader 3 ready (floor 2, lowered by 1, lowest 1)"
    assert Floor.reported(None, desired=3).words == "0 ready (floor 0)"


def test_a_lowered_floor_is_a_warning_with_the_message_of_its_condition() -> None:
    lowered = Condition(
        type="FloorLowered",
        status="True",
        reason="FloorLowered",
        message="one below minAvailable",
        last_transition_time=NOON,
    )
    assert rollouts.floor_warnings(Status(conditions=(lowered,))) == ("one below minAvailable",)
    assert rollouts.floor_warnings(Status()) == ()


def test_a_state_is_final_where_only_a_user_can_change_it() -> None:
    assert {state for state in RolloutState if state.final} == {
        RolloutState.BLOCKED,
        RolloutState.COMPLETED,
        RolloutState.FAILED,
        RolloutState.REJECTED,
    }


def test_a_line_has_the_counts_and_the_reason() -> None:
    assert rollouts.line(view.standing(workload(status()))) == (
        "shop: Updating: 1 of 4 updated, 3 ready (floor 3), 3 old: it says so (WaitingForReady)"
    )


FLOORS: dict[str, tuple[tuple[int, ...], str]] = {
    "one by one": ((2, 1), "part-0 2 ready (floor 1), part-1 1 ready (floor 1)"),
    "all at once": ((1, 1, 1, 1), "all 4 floors held"),
    "those that do not hold": ((1, 0, 1, 1), "below their floors: part-1 0 ready (floor 1)"),
    "not too many of them": (
        (0, 0, 0, 0, 0),
        "below their floors: part-0 0 ready (floor 1), part-1 0 ready (floor 1), part-2 0 ready (floor 1) and 2 more",
    ),
}


@pytest.mark.parametrize("case", FLOORS)
def test_a_line_tells_of_floors(case: str) -> None:
    ready, said = FLOORS[case]
    floors = tuple(Floor(name=f"part-{n}", ready=each, desired=2, floor=1) for n, each in enumerate(ready))
    standing = msgspec.structs.replace(view.standing(workload(status())), floors=floors, old=None)
    assert rollouts.line(standing) == f"shop: Updating: 1 of 4 updated, {said}: it says so (WaitingForReady)"
    assert [each["name"] for each in rollouts.to_json(standing)["floors"]] == [each.name for each in floors]


def test_a_line_of_a_blocked_rollout_has_the_remedy() -> None:
    reported = status("Paused", "NoDisruptionBudget", **blocked("NoDisruptionBudget"))
    assert rollouts.line(view.standing(workload(reported))).endswith("it says so (NoDisruptionBudget); change it")


def test_what_keeps_the_operator_from_doing_anything_is_told_before_what_it_does() -> None:
    standing = view.standing(workload(status(**blocked("RequestRefused"))))
    assert (standing.because.code, standing.because.message) == ("RequestRefused", "it says so; change it")


def test_the_end_is_told_in_a_sentence() -> None:
    done = view.standing(workload(status("Completed", "Completed") | {"readyReplicas": 4}))
    assert rollouts.ending(done) == "shop: revision new is rolled out: 4 of 4 replicas ready"
    back = view.standing(workload(status("Failed", "RevisionRejected", rejectedRevision="bad")))
    assert rollouts.ending(back) == "shop: revision bad was rejected; new is back"


def test_a_rollout_is_late_a_deadline_and_a_pause_after_it_got_further_last() -> None:
    reported = status()
    reported["rollout"]["progressedAt"] = NOON
    standing = view.standing(workload(reported, progressDeadline="10m", pauseDuration="30s"))
    assert rollouts.to_json(standing)["lateAt"] == "2025-01-01T12:10:30Z"


# History.


def record(number: int, name: str, **data: Any) -> Record:
    wire: dict[str, Any] = {
        "metadata": {"name": f"shop-{name}", "creationTimestamp": NOON, "labels": {LABEL: name}},
        "data": {"spec": {"image": "shop:1"}, **data},
        "revision": number,
    }
    return msgspec.convert(wire, Record)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another image": ({"spec": {"image": "shop:2"}}, "image shop:1 → shop:2"),
    "another environment, whose values stay where they are": (
        {"spec": {"image": "shop:1", "env": {"PASSWORD": "x"}}},
        "env",
    ),
    "a restart": ({"restartedAt": NOON}, "restart"),
    "another configuration": ({"configs": {"Secret/a": "2"}}, "content of Secret/a"),
    "nothing": ({"configs": {"Secret/a": "1"}}, "the same again"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_revision_says_what_it_changed(case: str) -> None:
    data, said = CHANGES[case]
    before = record(1, "a", configs={"Secret/a": "1"})
    after = record(2, "b", **({"configs": {"Secret/a": "1"}} | data))
    assert rollouts.change(before, after) == said


def test_a_history_is_in_the_order_of_its_numbers_and_marks_what_matters() -> None:
    standing = view.standing(workload(status()))
    past = rollouts.history(
        standing, (record(3, "new"), record(1, "old"), record(2, "bad")), label=LABEL, refused="bad"
    )
    rows = rollouts.history_rows(past, age=lambda moment: "5m")
    assert [row[:2] + row[4:5] for row in rows] == [
        ["REVISION", "NAME", "STATE"],
        ["1", "old", "current"],
        ["2", "bad", "rejected"],
        ["3", "new", "target"],
    ]
    assert rollouts.history_json(past)[0] == {
        "number": 1,
        "revision": "old",
        "image": "shop:1",
        "createdAt": NOON,
        "marks": ["current"],
        "change": "first known",
        "rejection": None,
    }


def test_what_somebody_wrote_about_a_change_is_told_instead() -> None:
    kept = record(1, "a")
    kept.metadata.annotations[rollouts.CAUSE] = "because of Tuesday"
    (past,) = rollouts.history(view.standing(workload(status())), (kept,), label=LABEL)
    assert past.change == "because of Tuesday"
