"""What is done for a Workload in each situation: which replicas start, which stop, and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.operators.workload.worlds import (
    NOW,
    Placed,
    Wire,
    ago,
    budget,
    code,
    condition,
    decided,
    deeds,
    node,
    pod,
    pods,
    record,
    revision,
    said,
    status,
    web,
)

from holdfast.kernel.outcomes import Again, Done

SURGE = {"minAvailable": 3, "maxSurge": 1}
V1 = said("web:1")
TO_V2 = said("web:1", rolling="web:2", progressedAt=ago(minutes=1))
HISTORY = [record("web:1", 1), record("web:2", 2)]


def check(workload: Wire, *others: Placed | list[Placed], does: list[str], because: str) -> None:
    decision = decided(workload, *others)
    assert (deeds(decision), code(decision)) == (does, because)


# --- from nothing, and from one revision to the next


@pytest.mark.parametrize(
    ("workload", "others", "does", "because"),
    [
        pytest.param(web(), [], ["record web:1 as 1", "start 4 of web:1"], "StartingUpdated", id="new"),
        pytest.param(web(replicas=0), [], ["record web:1 as 1"], "Completed", id="new, of none"),
        pytest.param(
            web(status=said(rolling="web:1")),
            [record("web:1"), *pods("web:1", 4, ready=False)],
            [],
            "WaitingForReady",
            id="the first ones are coming",
        ),
        pytest.param(web(status=V1), [record("web:1"), *pods("web:1", 4)], [], "Completed", id="nothing to do"),
        pytest.param(
            web("web:2", status=V1, rollout=SURGE),
            [record("web:1"), *pods("web:1", 4)],
            ["record web:2 as 2", "start 1 of web:2"],
            "StartingUpdated",
            id="an update surges first",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout=SURGE),
            [*HISTORY, *pods("web:1", 4), *pods("web:2", 1, ready=False)],
            ["stop web1-0"],
            "StoppingOld",
            id="and stops what the floor does not need",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"minAvailable": 4, "maxSurge": 1}),
            [*HISTORY, *pods("web:1", 4), *pods("web:2", 1, ready=False)],
            [],
            "WaitingForReady",
            id="but waits where the floor needs all",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"minAvailable": 4, "maxSurge": 1}),
            [*HISTORY, *pods("web:1", 4), *pods("web:2", 1)],
            ["stop web1-0"],
            "StoppingOld",
            id="until a new one is available",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"minAvailable": 4, "maxSurge": 1, "minReadySeconds": 30}),
            [*HISTORY, *pods("web:1", 4), *pods("web:2", 1, ready=ago(seconds=10))],
            [],
            "WaitingForAvailable",
            id="which it is after minReadySeconds",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"pauseDuration": "1m", **SURGE}),
            [*HISTORY, *pods("web:1", 3), *pods("web:2", 1, ready=ago(seconds=10))],
            ["start 1 of web:2"],
            "StartingUpdated",
            id="room is used at once",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"pauseDuration": "1m", **SURGE}),
            [*HISTORY, *pods("web:1", 3), *pods("web:2", 2, ready=ago(seconds=10))],
            [],
            "BatchPause",
            id="between batches it pauses",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"replacement": "onTermination", "maxSurge": 0}),
            [*HISTORY, *pods("web:1", 3), pod("leaving", "web:1", going=True)],
            [],
            "WaitingForTermination",
            id="what is going keeps its place, if that is asked",
        ),
        pytest.param(
            web("web:2", status=V1, rollout={"maxSurge": 0, "minAvailable": 4}),
            [record("web:1"), *pods("web:1", 4)],
            ["record web:2 as 2"],
            "NoDisruptionBudget",
            id="blocked before anything is touched",
        ),
        pytest.param(
            web("web:2", status=V1, rollout={"strategy": "Recreate"}),
            [record("web:1"), *pods("web:1", 2)],
            ["record web:2 as 2", "stop web1-0", "stop web1-1"],
            "StoppingOld",
            id="Recreate stops all first",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"strategy": "Recreate"}),
            [*HISTORY, pod("leaving", "web:1", going=True)],
            [],
            "WaitingForTermination",
            id="and starts none before the last one has gone",
        ),
        pytest.param(
            web("web:2", status=V1, rollout={"strategy": "OnDelete"}),
            [record("web:1"), *pods("web:1", 4)],
            ["record web:2 as 2"],
            "DeletionNeeded",
            id="OnDelete stops nothing",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"strategy": "OnDelete"}),
            [*HISTORY, *pods("web:1", 3)],
            ["start 1 of web:2"],
            "StartingUpdated",
            id="and replaces what a user deleted",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"partition": 3}),
            [*HISTORY, *pods("web:1", 3), *pods("web:2", 1)],
            [],
            "Completed",
            id="a partition stays behind",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={"partition": 3}),
            [*HISTORY, *pods("web:1", 2), *pods("web:2", 1)],
            ["start 1 of web:1"],
            "StartingStable",
            id="and what is lost of it comes back as it was",
        ),
    ],
)
def test_a_rollout(workload: Wire, others: list[Placed], does: list[str], because: str) -> None:
    check(workload, others, does=does, because=because)


def test_a_partition_is_complete_and_yet_the_revision_before_stays_the_stable_one() -> None:
    workload = web("web:2", status=TO_V2, rollout={"partition": 3})
    says = status(decided(workload, HISTORY, pods("web:1", 3), pods("web:2", 1)))
    assert (says["phase"], says["currentRevision"], says["updateRevision"]) == (
        "Completed",
        revision("web:1"),
        revision("web:2"),
    )


# --- canary

CANARY = {
    "strategy": "Canary",
    "canary": {"steps": [{"weight": 25, "manual": True}, {"replicas": 2, "pauseDuration": "5m"}]},
}


@pytest.mark.parametrize(
    ("step", "new", "promoted", "reached", "does", "because"),
    [
        pytest.param(1, 0, "", None, ["start 1 of web:2"], "StartingUpdated", id="the first step"),
        pytest.param(1, 1, "", ago(days=3), [], "ApprovalNeeded", id="waits for approval, for ever"),
        pytest.param(1, 1, "web:1", ago(days=3), [], "ApprovalNeeded", id="of this revision"),
        pytest.param(1, 1, "web:2", ago(days=3), ["start 1 of web:2"], "StartingUpdated", id="promoted"),
        pytest.param(2, 2, "web:2", ago(minutes=4), [], "StepPause", id="a step that ends by itself"),
        pytest.param(2, 2, "web:2", ago(minutes=5), ["start 1 of web:2"], "StartingUpdated", id="has ended"),
    ],
)
def test_a_canary_goes_step_by_step(
    step: int, new: int, promoted: str, reached: str | None, does: list[str], because: str
) -> None:
    facts: Wire = {"step": step, "stepStartedAt": ago(minutes=9), "progressedAt": ago(minutes=9)}
    kept = said("web:1", rolling="web:2", **facts, **({"reachedAt": reached} if reached else {}))
    annotations = {"holdfast.dev/promoted": f"{revision(promoted)}:1"} if promoted else {}
    workload = web("web:2", status=kept, rollout={"maxSurge": 1, **CANARY}, annotations=annotations)
    check(workload, HISTORY, pods("web:1", 4 - new), pods("web:2", new), does=does, because=because)


@pytest.mark.parametrize("text", ["", ":", "x:1", f"{revision('web:2')}:", f"{revision('web:2')}:two", "²:²"])
def test_what_is_no_promotion_promotes_nothing(text: str) -> None:
    kept = said("web:1", rolling="web:2", step=1, reachedAt=ago(minutes=1), progressedAt=ago(minutes=1))
    workload = web("web:2", status=kept, rollout=CANARY, annotations={"holdfast.dev/promoted": text})
    check(workload, HISTORY, pods("web:1", 3), pods("web:2", 1), does=[], because="ApprovalNeeded")


def test_the_time_at_a_closed_gate_does_not_count_for_the_deadline() -> None:
    facts = {"step": 2, "stepStartedAt": ago(seconds=5), "progressedAt": ago(days=2)}
    workload = web("web:2", status=said("web:1", rolling="web:2", **facts), rollout={"maxSurge": 1, **CANARY})
    new = [*pods("web:2", 1, ready=ago(days=2)), *pods("web:2", 1, ready=False)]
    check(workload, HISTORY, pods("web:1", 3), new, does=["stop web1-0"], because="StoppingOld")


# --- sizes


@pytest.mark.parametrize(
    ("replicas", "others", "does", "because"),
    [
        (6, pods("web:1", 4), ["start 2 of web:1"], "StartingUpdated"),
        (2, pods("web:1", 4), ["stop web1-0", "stop web1-1"], "ScalingDown"),
        (0, pods("web:1", 2), ["stop web1-0", "stop web1-1"], "ScalingDown"),
        pytest.param(
            2,
            [pod("a", ready=False), pod("b"), pod("c"), pod("d", ready=False)],
            ["stop a", "stop d"],
            "RemovingUnready",
            id="the unready go first",
        ),
        pytest.param(
            1,
            [pod("a", created=ago(hours=3)), pod("b", created=ago(hours=1)), pod("c", created=ago(hours=2))],
            ["stop b", "stop c"],
            "ScalingDown",
            id="then the newest",
        ),
        pytest.param(
            2,
            [pod("a", node="n1"), pod("b", node="n2"), pod("c", node="n2")],
            ["stop b"],
            "ScalingDown",
            id="then those of the most crowded node",
        ),
    ],
)
def test_a_size_is_followed(replicas: int, others: list[Placed], does: list[str], because: str) -> None:
    workload = web(replicas=replicas, status=V1, rollout={"minAvailable": min(replicas, 1)})
    check(workload, record("web:1"), others, does=does, because=because)


def test_a_smaller_fleet_loses_old_replicas_before_any_is_replaced() -> None:
    workload = web("web:2", replicas=2, status=V1, rollout={"minAvailable": 2, "maxSurge": 1})
    check(
        workload,
        record("web:1"),
        pods("web:1", 5),
        does=["record web:2 as 2", "stop web1-0", "stop web1-1", "stop web1-2"],
        because="ScalingDown",
    )


ROLLING: dict[str, Any] = {"progressedAt": ago(seconds=5), "size": 6}


@pytest.mark.parametrize(
    ("replicas", "rollout", "size", "because"),
    [
        pytest.param(3, SURGE, 6, "StartingUpdated", id="it gets on, and keeps its size"),
        pytest.param(8, SURGE, 8, "StartingUpdated", id="to grow is no matter"),
        pytest.param(0, SURGE, 0, "ScalingDown", id="none at all is followed at once"),
        pytest.param(3, {**SURGE, "paused": True}, 3, "Paused", id="it stands still, and follows"),
        pytest.param(3, CANARY, 3, "ScalingDown", id="also at a closed gate"),
    ],
)
def test_a_rollout_that_gets_on_is_not_shrunk(replicas: int, rollout: dict[str, Any], size: int, because: str) -> None:
    """New replicas do little yet, for which an autoscaler would take away those that work."""
    workload = web("web:2", replicas=replicas, rollout=rollout, status=said("web:1", rolling="web:2", **ROLLING))
    decision = decided(workload, HISTORY, pods("web:1", 4), pods("web:2", 2))
    assert (code(decision), status(decision)["rollout"]["size"]) == (because, size)
    warned = [each["code"] for each in status(decision)["limits"].get("warnings", [])]
    assert ("ShrinkHeld" in warned) == (size == 6)


@pytest.mark.parametrize("size", [10**30, 2**31, 2**31 - 1])
def test_a_size_in_the_status_that_no_rollout_can_have_is_no_reason_to_fail(size: int) -> None:
    rollout = {**SURGE, "maxSurge": "200%"}
    told = said("web:1", rolling="web:2", progressedAt=ago(seconds=5), size=size)
    decision = decided(web("web:2", replicas=3, rollout=rollout, status=told), HISTORY, pods("web:1", 4))
    assert status(decision)["rollout"]["size"] == 3


def test_surge_is_not_counted_among_the_replicas() -> None:
    says = status(decided(web("web:2", status=TO_V2, rollout=SURGE), HISTORY, pods("web:1", 4), pods("web:2", 1)))
    assert (says["replicas"], says["readyReplicas"], says["updatedReplicas"], says["oldReplicas"]) == (4, 5, 1, 4)


# --- losses


@pytest.mark.parametrize(
    ("others", "does", "because"),
    [
        ([*pods("web:1", 3)], ["start 1 of web:1"], "StartingUpdated"),
        ([*pods("web:1", 3), pod("x", ready=False, phase="Failed")], ["stop x"], "ReplacingDead"),
        ([*pods("web:1", 3), pod("x", ready=False, phase="Succeeded")], ["stop x"], "ReplacingDead"),
        ([*pods("web:1", 3), pod("x", ready=False, restarts=4)], ["stop x"], "ReplacingDead"),
        ([*pods("web:1", 3), pod("x", ready=False, restarts=3)], [], "WaitingForReady"),
        ([*pods("web:1", 3), pod("x", restarts=4)], [], "Completed"),
        ([*pods("web:1", 3), pod("x", going=True)], ["start 1 of web:1"], "StartingUpdated"),
        pytest.param(
            [*pods("web:1", 3), pod("x", labels={})],
            ["release x", "start 1 of web:1"],
            "StartingUpdated",
            id="a replica that lost its labels is released",
        ),
    ],
)
def test_what_is_lost_is_replaced_at_once(others: list[Placed], does: list[str], because: str) -> None:
    policy = {"policy": "OnFailure", "maxRetries": 3}
    base = said()
    base |= {
        "currentRevision": revision("web:1", restartPolicy=policy),
        "updateRevision": revision("web:1", restartPolicy=policy),
    }
    same = [_relabelled(each, revision("web:1", restartPolicy=policy)) for each in others]
    workload = web(status=base, restartPolicy=policy, rollout=SURGE)
    decision = decided(workload, record("web:1", restartPolicy=policy), same)
    renamed = [each.replace(revision("web:1", restartPolicy=policy), "web:1") for each in deeds(decision)]
    assert (renamed, code(decision)) == (does, because)


def _relabelled(placed: Placed, name: str) -> Placed:
    _, wire = placed
    if wire["metadata"]["labels"]:
        wire["metadata"]["labels"]["cloudless.io/revision"] = name
    return placed


def test_a_replica_that_ends_as_soon_as_it_starts_is_not_replaced_all_the_time() -> None:
    ended = pod("x", ready=False, phase="Failed", created=ago(seconds=3))
    decision = decided(web(status=V1), record("web:1"), pods("web:1", 3), ended)
    assert (deeds(decision), decision.outcome) == (
        [],
        Again(timedelta(seconds=7), "a replica that ended soon after its start is replaced then"),
    )
    assert condition(decision, "Degraded") == "True PodFailed"
    later = decided(web(status=V1), record("web:1"), pods("web:1", 3), ended, now=NOW + timedelta(seconds=7))
    assert deeds(later) == ["stop x"]


def test_the_wait_before_that_can_be_chosen() -> None:
    ended = pod("x", ready=False, phase="Failed", created=ago(seconds=3))
    decision = decided(web(restartPolicy={"backoff": "1m"}), ended)
    assert decision.outcome == Again(
        timedelta(seconds=57), "a replica that ended soon after its start is replaced then"
    )


# --- a minimum of 0


@pytest.mark.parametrize(
    ("replicas", "rollout", "floor"),
    [
        (5, {"minAvailable": 0}, 4),
        (5, {"minAvailable": 0, "maxUnavailable": 2}, 3),
        (5, {"minAvailable": 0, "maxUnavailable": "40%"}, 3),
        (1, {"minAvailable": 0}, 1),
        (5, {"minAvailable": "0%"}, 0),
    ],
    ids=["all but one", "what maxUnavailable leaves", "or its percentage", "one of one", "none, where that is meant"],
)
def test_a_minimum_of_0_is_derived_so_no_update_stops_all_replicas_unasked(
    replicas: int, rollout: dict[str, Any], floor: int
) -> None:
    there = [record("web:1"), record("web:2", 2), *pods("web:1", replicas)]
    decision = decided(web("web:2", replicas=replicas, status=said("web:1"), rollout=rollout), there)
    assert status(decision)["limits"]["floor"] == floor
    assert sum(deed.startswith("stop ") for deed in deeds(decision)) <= replicas - floor


# --- nodes that are drained


def test_replicas_of_a_drained_node_are_replaced_before_they_go() -> None:
    drained = [node("n0", cordoned=True), node("n1"), node("n2"), node("n3")]
    workload = web(status=V1, rollout={"minAvailable": 4, "maxSurge": 1})
    check(workload, record("web:1"), drained, pods("web:1", 4), does=["start 1 of web:1"], because="StartingUpdated")
    there = [*pods("web:1", 4), pod("fresh", node="n1")]
    check(workload, record("web:1"), drained, there, does=["evict web1-0"], because="StoppingOld")


def test_without_surge_they_go_as_far_as_the_floor_allows() -> None:
    workload = web(status=V1, rollout={"minAvailable": 3, "maxSurge": 0})
    drained = node("n0", cordoned=True)
    check(workload, record("web:1"), drained, pods("web:1", 4), does=["evict web1-0"], because="StoppingOld")


def test_in_a_rollout_they_go_first() -> None:
    workload = web("web:2", status=TO_V2, rollout={"minAvailable": 3, "maxSurge": 0})
    drained = node("n2", cordoned=True)
    check(workload, HISTORY, drained, pods("web:1", 4), does=["evict web1-2"], because="StoppingOld")


# --- budgets


@pytest.mark.parametrize(
    ("given", "floor"),
    [
        ([], 2),
        ([budget(minAvailable=3)], 3),
        ([budget(minAvailable=1)], 2),
        ([budget(minAvailable="60%")], 3),
        ([budget(maxUnavailable=1)], 3),
        ([budget(maxUnavailable="30%")], 2),
        ([budget(minAvailable=9)], 4),
        ([budget("a", minAvailable=3), budget("b", maxUnavailable=0)], 4),
        ([budget(minAvailable=4, selector={"matchLabels": {"app": "other"}})], 2),
        ([budget(minAvailable=4, selector={"matchLabels": {"app": "shop"}})], 4),
        ([budget(minAvailable=4, selector={})], 4),
        ([budget()], 2),
    ],
)
def test_the_strictest_of_all_floors_holds(given: list[Placed], floor: int) -> None:
    workload = web(status=V1, rollout={"minAvailable": 2}, labels={"app": "shop"})
    assert status(decided(workload, record("web:1"), pods("web:1", 4), given))["limits"]["floor"] == floor


def test_a_budget_is_kept_although_the_spec_would_stop_more() -> None:
    workload = web("web:2", status=TO_V2, rollout={"minAvailable": 1, "maxSurge": 0})
    strict = budget(minAvailable=3)
    check(workload, HISTORY, strict, pods("web:1", 4), does=["stop web1-0"], because="StoppingOld")
    check(workload, HISTORY, strict, pods("web:1", 3), does=["start 1 of web:2"], because="StartingUpdated")


def test_a_budget_that_recreate_cannot_keep_is_warned_of() -> None:
    workload = web("web:2", status=V1, rollout={"strategy": "Recreate", "minAvailable": "0%"})
    decision = decided(workload, record("web:1"), budget(minAvailable=3), pods("web:1", 4))
    assert condition(decision, "FloorNotGuaranteed") == "True FloorNotGuaranteed"


# --- pauses and deadlines


def test_a_paused_rollout_replaces_what_is_lost_and_nothing_else() -> None:
    workload = web("web:2", status=TO_V2, rollout={"paused": True, **SURGE})
    check(workload, HISTORY, pods("web:1", 3), pods("web:2", 1), does=[], because="Paused")
    check(workload, HISTORY, pods("web:1", 2), pods("web:2", 1), does=["start 1 of web:1"], because="Paused")


def test_a_rollout_that_is_resumed_is_not_late() -> None:
    """The time of a pause does not count: the deadline begins anew."""
    waiting = [*pods("web:1", 3), *pods("web:2", 1, ready=False), *pods("web:2", 1, ready=ago(days=9))]
    paused = web("web:2", status=said("web:1", rolling="web:2", progressedAt=ago(days=9)), rollout={"paused": True})
    said_so = status(decided(paused, HISTORY, waiting))
    assert "progressedAt" not in said_so["rollout"]
    resumed = decided(web("web:2", status=said_so), HISTORY, waiting)
    assert condition(resumed, "Degraded") == "False Healthy"
    assert status(resumed)["rollout"]["progressedAt"] == "2030-01-01T12:00:00Z"


LATE = said("web:1", rolling="web:2", progressedAt=ago(minutes=10))


@pytest.mark.parametrize(
    ("on_failure", "does", "because", "phase"),
    [
        (None, [], "ProgressDeadlineExceeded", "Failed"),
        ("hold", [], "ProgressDeadlineExceeded", "Failed"),
        ("abort", ["reject web:2"], "Aborting", "Failed"),
        ("rollBack", ["reject web:2"], "RollingBack", "Failed"),
    ],
)
def test_a_rollout_that_is_late(on_failure: str | None, does: list[str], because: str, phase: str) -> None:
    rollout: dict[str, Any] = {**SURGE, **({"onFailure": on_failure} if on_failure else {})}
    broken = [*pods("web:1", 3), *pods("web:2", 2, ready=False)]
    decision = decided(web("web:2", status=LATE, rollout=rollout), HISTORY, broken)
    assert (deeds(decision), code(decision), status(decision)["phase"]) == (does, because, phase)
    assert condition(decision, "Degraded") == "True ProgressDeadlineExceeded"


@pytest.mark.parametrize(
    ("kept", "there"),
    [
        pytest.param(said("web:1", rolling="web:2", progressedAt=ago(minutes=9)), [], id="the deadline is to come"),
        pytest.param({**LATE, "oldReplicas": 4}, [], id="an old one went"),
        pytest.param(LATE, pods("web:2", 1, ready=ago(minutes=9)), id="a new one came"),
        pytest.param(
            said("web:1", rolling="web:2", progressedAt=ago(days=1), stepStartedAt=ago(minutes=1)),
            [],
            id="a step began",
        ),
        pytest.param(said("web:1", rolling="web:3", progressedAt=ago(days=1)), [], id="it began"),
    ],
)
def test_a_rollout_that_gets_further_is_not_late(kept: Wire, there: list[Placed]) -> None:
    waiting = [*pods("web:1", 3), *pods("web:2", 2, ready=False)]
    decision = decided(web("web:2", status=kept, rollout=SURGE), HISTORY, waiting, there)
    assert condition(decision, "Degraded") == "False Healthy"
    assert isinstance(decision.outcome, Again | Done)


def test_ready_again_after_a_crash_is_no_progress() -> None:
    crashing = pod("x", "web:2", ready=ago(seconds=5), restarts=7)
    decision = decided(
        web("web:2", status=LATE, rollout={"minAvailable": 4, "maxSurge": 2}),
        HISTORY,
        pods("web:1", 4),
        crashing,
        pods("web:2", 1, ready=False),
    )
    assert condition(decision, "Degraded") == "True ProgressDeadlineExceeded"


def test_a_fleet_that_was_complete_is_never_late() -> None:
    kept = {**V1, "rollout": {"progressedAt": ago(days=1)}}
    decision = decided(web(status=kept), record("web:1"), pods("web:1", 3), pods("web:1", 1, ready=False))
    assert (code(decision), status(decision)["phase"]) == ("WaitingForReady", "ScalingUp")
    assert decision.outcome == Done()


def test_the_deadline_can_be_chosen_and_is_looked_at_in_time() -> None:
    kept = said("web:1", rolling="web:2", progressedAt=ago(seconds=10))
    workload = web("web:2", status=kept, rollout={"progressDeadline": "30s", "minAvailable": 4, "maxSurge": 1})
    decision = decided(workload, HISTORY, pods("web:1", 4), pods("web:2", 1, ready=False))
    assert isinstance(decision.outcome, Again)
    assert decision.outcome.after == timedelta(seconds=20)


# --- at the floor


def test_at_its_floor_a_workload_loses_no_ready_replica_whatever_is_asked() -> None:
    """Two of four are lost; the other two are of an old revision, and the ceiling is used up by one that waits."""
    kept = said("web:1", rolling="web:2", progressedAt=ago(minutes=1), mostAvailable=4)
    workload = web("web:2", status=kept, rollout={"minAvailable": 3, "maxSurge": 0})
    there = [*pods("web:1", 2), *pods("web:2", 2, ready=False)]
    decision = decided(workload, HISTORY, there)
    assert (deeds(decision), code(decision)) == ([], "WaitingForReady")
    assert condition(decision, "FloorHeld") == "False BelowFloor"
    assert condition(decision, "Degraded") == "True TooFewAvailable"
