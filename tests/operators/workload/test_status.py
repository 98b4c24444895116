"""The status of a Workload: its phase, its conditions, where its rollout stands, and the Events about it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.operators.workload.worlds import (
    NOW,
    Placed,
    Wire,
    ago,
    condition,
    config,
    decided,
    deeds,
    notices,
    pod,
    pods,
    record,
    revision,
    said,
    seen,
    service,
    status,
    web,
)

from holdfast import kinds
from holdfast.kernel.outcomes import Failure, Permanent, Retry
from holdfast.kinds import crds
from holdfast.kinds.cloudless import Workload, WorkloadStatus
from holdfast.meta.patches import merge
from holdfast.meta.schemas import walk
from holdfast.meta.schemas.hints import problems
from holdfast.operators.workload import view
from holdfast.operators.workload.decide import explain
from holdfast.runtime.decisions import Decision, Patch
from holdfast.views.rollouts import RolloutState, marks

SURGE = {"minAvailable": 3, "maxSurge": 1}
KNOWN = [record("web:1", 1), record("web:2", 2)]
ROLLING = said("web:1", rolling="web:2", progressedAt=ago(seconds=5))
STUCK = said("web:1", rolling="web:2", step=1, stepStartedAt=ago(hours=1), progressedAt=ago(hours=1))
BLUE_GREEN = {"strategy": "BlueGreen", "minAvailable": 4}

SITUATIONS: dict[str, tuple[Wire, list[Placed]]] = {
    "new": (web(), []),
    "coming up": (web(status=said(rolling="web:1")), [KNOWN[0], *pods("web:1", 4, ready=False)]),
    "rolled out": (web(status=said("web:1")), [KNOWN[0], *pods("web:1", 4)]),
    "rolling": (web("web:2", status=ROLLING, rollout=SURGE), [*KNOWN, *pods("web:1", 4), *pods("web:2", 1)]),
    "paused": (web("web:2", status=ROLLING, rollout={"paused": True}), [*KNOWN, *pods("web:1", 4)]),
    "blocked": (
        web("web:2", status=ROLLING, rollout={"maxSurge": 0, "minAvailable": 4}),
        [*KNOWN, *pods("web:1", 4)],
    ),
    "late": (web("web:2", status=STUCK, rollout=SURGE), [*KNOWN, *pods("web:1", 3), *pods("web:2", 2, ready=False)]),
    "growing": (web(replicas=6, status=said("web:1")), [KNOWN[0], *pods("web:1", 4)]),
    "shrinking": (web(replicas=2, status=said("web:1")), [KNOWN[0], *pods("web:1", 4)]),
    "hurt": (web(status=said("web:1")), [KNOWN[0], *pods("web:1", 3), pod("x", ready=False, restarts=1)]),
    "badly hurt": (
        web(status=said("web:1", mostAvailable=4)),
        [KNOWN[0], *pods("web:1", 2), *pods("web:1", 2, ready=False)],
    ),
    "recreating": (
        web("web:2", status=said("web:1", rolling="web:2", step=2), rollout={"strategy": "Recreate"}),
        [*KNOWN, *pods("web:2", 4, ready=False)],
    ),
    "switched": (
        web("web:2", status=ROLLING, rollout=BLUE_GREEN),
        [*KNOWN, service(serving="web:1"), *pods("web:1", 4), *pods("web:2", 4)],
    ),
    "of none": (web(replicas=0, status=said("web:1")), [KNOWN[0]]),
}


@pytest.mark.parametrize(
    ("name", "phase", "others"),
    [
        ("new", "Initializing", {"Available": "False TooFewAvailable", "FloorHeld": "True StillGrowing"}),
        ("coming up", "ScalingUp", {"Completed": "False RollingOut", "Degraded": "False Healthy"}),
        ("rolled out", "Completed", {"Completed": "True RolledOut", "Progressing": "False RolledOut"}),
        ("rolling", "Updating", {"Completed": "False RollingOut", "Progressing": "True StoppingOld"}),
        ("paused", "Paused", {"Paused": "True Paused", "Progressing": "False Paused"}),
        ("blocked", "Paused", {"Blocked": "True NoDisruptionBudget", "Paused": "False NotPaused"}),
        ("late", "Failed", {"Blocked": "True ProgressDeadlineExceeded", "Degraded": "True ProgressDeadlineExceeded"}),
        ("growing", "ScalingUp", {"Completed": "False Scaling", "FloorHeld": "True StillGrowing"}),
        ("shrinking", "ScalingDown", {"Completed": "False Scaling", "Degraded": "False Healthy"}),
        ("hurt", "ScalingUp", {"Degraded": "True BrokenReplicas", "FloorHeld": "True FloorHeld"}),
        ("badly hurt", "ScalingUp", {"Degraded": "True TooFewAvailable", "FloorHeld": "False BelowFloor"}),
        ("recreating", "ScalingUp", {"FloorNotGuaranteed": "True FloorNotGuaranteed"}),
        ("switched", "Updating", {"Progressing": "True SwitchingTraffic"}),
        ("of none", "Completed", {"Available": "True EnoughAvailable"}),
    ],
)
def test_phase_and_conditions(name: str, phase: str, others: dict[str, str]) -> None:
    workload, placed = SITUATIONS[name]
    decision = decided(workload, placed)
    assert status(decision)["phase"] == phase
    assert {type: condition(decision, type) for type in others} == others


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_is_said_is_what_the_definition_knows(name: str) -> None:
    workload, placed = SITUATIONS[name]
    schema = crds.schema_of(WorkloadStatus)
    says = status(decided(workload, placed))
    assert list(problems(walk.compile(schema, resource=False), says)) == []
    assert not says.keys() - schema["properties"].keys()
    assert not says["rollout"].keys() - schema["properties"]["rollout"]["properties"].keys()
    assert not says["limits"].keys() - schema["properties"]["limits"]["properties"].keys()


@pytest.mark.parametrize("name", SITUATIONS)
def test_conditions_are_always_the_same_ones_in_the_same_order_of_this_generation(name: str) -> None:
    workload, placed = SITUATIONS[name]
    says = status(decided(workload, placed))["conditions"]
    types = ["Available", "Progressing", "Completed", "Paused", "Blocked", "Degraded", "FloorHeld"]
    assert [each["type"] for each in says][: len(types)] == types
    assert {each["observedGeneration"] for each in says} == {3}
    assert all(each["message"] for each in says)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_second_look_says_the_same(name: str) -> None:
    """A pass that changed nothing has nothing to say, to the object or to people."""
    workload, placed = SITUATIONS[name]
    first = status(decided(workload, placed))
    second = decided({**workload, "status": first}, placed)
    calm = {"step", "steps", "startedAt", "stepStartedAt", "because", "plan", "lowestReady"}
    assert {name: value for name, value in status(second)["rollout"].items() if name in calm} == {
        name: value for name, value in first["rollout"].items() if name in calm
    }
    if name not in ("new",):
        assert status(second)["phase"] == first["phase"]


# --- the rollout


def test_the_facts_of_a_rollout_begin_with_it_and_are_kept() -> None:
    there = [*KNOWN, *pods("web:1", 4)]
    began = status(decided(web("web:2", status=said("web:1", startedAt=ago(days=2), lowestReady=0)), there))["rollout"]
    assert (began["startedAt"], began["stepStartedAt"], began["lowestReady"]) == (ago(), ago(), 4)
    kept = said("web:1", rolling="web:2", step=1, startedAt=ago(minutes=4), stepStartedAt=ago(minutes=3), lowestReady=3)
    later = status(decided(web("web:2", status=kept, rollout=SURGE), there))["rollout"]
    assert (later["startedAt"], later["stepStartedAt"], later["lowestReady"]) == (ago(minutes=4), ago(minutes=3), 3)


def test_the_end_is_estimated_from_what_is_done() -> None:
    kept = said("web:1", rolling="web:2", startedAt=ago(seconds=30), progressedAt=ago(seconds=1))
    says = status(decided(web("web:2", status=kept, rollout=SURGE), KNOWN, pods("web:1", 3), pods("web:2", 1)))
    assert says["rollout"]["estimatedEnd"] == ago(seconds=-90)


def test_the_end_of_a_rollout_that_waits_is_not_estimated() -> None:
    kept = said("web:1", rolling="web:2", startedAt=ago(seconds=30))
    workload = web("web:2", status=kept, rollout={"paused": True})
    assert "estimatedEnd" not in status(decided(workload, KNOWN, pods("web:1", 3), pods("web:2", 1)))["rollout"]


def test_a_pause_says_when_it_ends() -> None:
    rollout = {"strategy": "Canary", "canary": {"steps": [{"weight": 25, "pauseDuration": "5m"}]}}
    kept = said("web:1", rolling="web:2", step=1, reachedAt=ago(minutes=1), progressedAt=ago(minutes=1))
    says = status(decided(web("web:2", status=kept, rollout=rollout), KNOWN, pods("web:1", 3), pods("web:2", 1)))
    assert says["rollout"]["pausedUntil"] == ago(minutes=-4)
    assert (says["rollout"]["step"], says["rollout"]["steps"]) == (1, 2)


def test_the_lowest_point_counts_what_is_lost_after_the_rollout_too() -> None:
    done = said("web:1", lowestReady=3, mostAvailable=4)
    assert status(decided(web(status=done), KNOWN[0], pods("web:1", 4)))["rollout"]["lowestReady"] == 3
    assert status(decided(web(status=done), KNOWN[0], pods("web:1", 1)))["rollout"]["lowestReady"] == 1


def test_another_floor_has_a_lowest_point_of_its_own() -> None:
    """Otherwise four of six replicas would look like a loss after the Workload was scaled up from four."""
    done = {**said("web:1", lowestReady=3, mostAvailable=4), "limits": {"floor": 3}}
    grown = status(decided(web(replicas=6, status=done), KNOWN[0], pods("web:1", 4)))
    assert "lowestReady" not in grown["rollout"]
    grown = status(decided(web(replicas=6, status=grown), KNOWN[0], pods("web:1", 6)))
    assert grown["rollout"]["lowestReady"] == 6


def test_replicas_that_never_were_available_are_not_lost() -> None:
    growing = said(rolling="web:1", mostAvailable=2)
    assert "lowestReady" not in status(decided(web(status=growing), KNOWN[0], pods("web:1", 1)))["rollout"]


def test_limits_are_told_with_what_was_changed_about_them() -> None:
    says = status(decided(web(status=said("web:1"), rollout={"minAvailable": 9}), KNOWN[0], pods("web:1", 4)))
    assert {
        name: says["limits"][name] for name in ("minAvailable", "maxSurge", "maxUnavailable", "floor", "maxLive")
    } == {
        "minAvailable": 4,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "floor": 4,
        "maxLive": 5,
    }
    assert [each["code"] for each in says["limits"]["warnings"]] == ["MinAvailableClamped", "SurgeDerived"]


def test_autoscalers_find_the_replicas_by_a_selector() -> None:
    assert status(decided(web()))["selector"] == "cloudless.io/workload=web"


def test_the_current_revision_changes_when_all_replicas_have() -> None:
    there = [*KNOWN, *pods("web:2", 4)]
    assert status(decided(web("web:2", status=ROLLING), there))["currentRevision"] == revision("web:2")
    midway = [*KNOWN, *pods("web:2", 3), *pods("web:1", 1)]
    assert status(decided(web("web:2", status=ROLLING), midway))["currentRevision"] == revision("web:1")


# --- Events


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("new", ["Normal StartingUpdated"]),
        ("rolling", ["Normal StoppingOld"]),
        ("paused", ["Normal Paused"]),
        ("blocked", ["Warning NoDisruptionBudget", "Warning FloorLowered"]),
        ("late", ["Warning ProgressDeadlineExceeded", "Warning ProgressDeadlineExceeded"]),
        ("badly hurt", ["Warning TooFewAvailable", "Warning BelowFloor"]),
        ("switched", ["Normal SwitchingTraffic"]),
        ("rolled out", ["Normal RolledOut"]),
    ],
)
def test_events_report_what_is_done_and_which_conditions_turned(name: str, reported: list[str]) -> None:
    workload, placed = SITUATIONS[name]
    assert list(notices(decided(workload, placed))) == reported


def test_a_condition_that_stays_is_reported_once() -> None:
    workload, placed = SITUATIONS["badly hurt"]
    first = status(decided(workload, placed))
    assert list(notices(decided({**workload, "status": first}, placed))) == []


def event_messages(decision: Decision) -> str:
    return "\n".join(each.message for each in decision.notices)


def test_events_of_a_rollout_name_the_new_and_the_old_revision() -> None:
    workload, placed = SITUATIONS["rolling"]
    assert f"Stopping 1 replica of the old revision {revision('web:1')}: " in event_messages(decided(workload, placed))


@pytest.mark.parametrize("image", ["web:2", "web:1"], ids=["rolled back", "undone"])
def test_events_of_a_rollback_call_neither_the_broken_revision_old_nor_the_restored_one_new(image: str) -> None:
    back = {"holdfast.dev/rejected-revision": f"{revision('web:2')}:{revision('web:1')}"}
    workload = web(image, status=said("web:2", rolling="web:1"), annotations=back, rollout=SURGE)
    starting = decided(workload, KNOWN, pods("web:1", 2), pods("web:2", 2))
    assert f"Starting 1 replica of the restored revision {revision('web:1')}: " in event_messages(starting)
    stopping = decided(workload, KNOWN, pods("web:1", 3), pods("web:2", 3, ready=False))
    assert f"Stopping 3 replicas of the rejected revision {revision('web:2')}: " in event_messages(stopping)
    waiting = decided(workload, KNOWN, pods("web:1", 2), pods("web:1", 3, ready=False))
    messages = [event_messages(each) for each in (starting, stopping, waiting)]
    messages += [status(each)["rollout"]["because"]["message"] for each in (starting, stopping, waiting)]
    assert not [each for each in messages if re.search(r"\b(old|new)\b", each)]


def test_a_switch_of_the_traffic_names_both_revisions() -> None:
    workload, placed = SITUATIONS["switched"]
    decision = decided(workload, placed)
    switch = f"Switching the traffic from revision {revision('web:1')} to the new revision {revision('web:2')}"
    assert switch in event_messages(decision)
    assert status(decision)["servingRevision"] == revision("web:1")


def test_the_serving_revision_is_told_before_during_and_after_a_switch_and_only_with_blue_green() -> None:
    there = [*KNOWN, *pods("web:2", 4)]
    done = web("web:2", status=said("web:2"), rollout=BLUE_GREEN)
    says = status(decided(done, there, service(serving="web:2")))
    assert says["servingRevision"] == revision("web:2")
    shown = kinds.decode({**done, "status": says})
    assert isinstance(shown, Workload)
    stands = view.standing(shown)
    assert (stands.serving, marks(stands, revision("web:2"))) == (revision("web:2"), ("current", "serving"))
    assert "servingRevision" not in status(decided(web("web:2", status=said("web:2")), there))


def test_a_floor_that_cannot_be_guaranteed_is_warned_of() -> None:
    decision = decided(web("web:2", status=said("web:1"), rollout={"strategy": "Recreate"}), KNOWN, pods("web:1", 4))
    assert "Warning FloorNotGuaranteed" in notices(decision)


def rejected_for_a_crash() -> tuple[Wire, list[Placed]]:
    """A revision that has just failed: the Workload with what the controller writes about it, and its replicas."""
    crashed = {"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    crashing = pod("web2-x", "web:2", ready=False)
    crashing[1]["status"]["containerStatuses"] = [{"name": "app", **crashed}]
    there = [*KNOWN, *pods("web:1", 3), crashing, pod("web2-y", "web:2", ready=False)]
    workload = web("web:2", status=STUCK, rollout={**SURGE, "onFailure": "rollBack"})
    (patch,) = [each for each in decided(workload, there).writes if isinstance(each, Patch)]
    return merge.apply(workload, patch.patch), there


def test_a_revision_that_failed_is_rejected_with_the_cause_the_pod_and_the_time() -> None:
    workload, there = rejected_for_a_crash()
    decision = decided(workload, there)
    why = status(decision)["rejection"]
    assert (why["revision"], why["reason"], why["pod"], why["time"]) == (
        revision("web:2"),
        "CrashLoop",
        "web2-x",
        ago(),
    )
    assert "no progress for 600 seconds" in why["message"]
    assert "pod web2-x: container app crashes" in why["message"]
    (event,) = [each for each in decision.notices if each.reason == "RevisionRejected"]
    assert (event.type, why["message"] in event.message) == ("Warning", True)


def test_the_cause_of_a_rejection_stays_when_the_rollback_is_done_and_is_announced_once() -> None:
    workload, _ = rejected_for_a_crash()
    there = [*KNOWN, *pods("web:1", 4)]
    first = status(decided(workload, there))
    later = decided({**workload, "status": first}, there)
    assert "RevisionRejected" not in {each.reason for each in later.notices if "is rejected" in each.message}
    assert status(later)["rejection"]["pod"] == "web2-x"
    assert "container app crashes" in status(later)["rollout"]["because"]["message"]
    next_spec = decided({**workload, "status": first, "spec": {**workload["spec"], "image": "web:3"}}, there)
    assert status(next_spec)["rejection"]["pod"] == "web2-x"
    retried = {**workload, "metadata": {**workload["metadata"], "annotations": {}}, "status": first}
    assert "rejection" not in status(decided(retried, there))


def test_a_cause_that_cannot_be_read_is_left_out() -> None:
    workload, there = rejected_for_a_crash()
    workload["metadata"]["annotations"]["holdfast.dev/rejection"] = "{"
    assert "rejection" not in status(decided(workload, there))


# --- a pass that failed


def test_a_request_that_is_refused_stands_in_the_way_and_the_rest_is_told_as_it_is() -> None:
    """A quota, say: the counts stay true while it lasts."""
    world = seen(web(status={**said("web:1"), "readyReplicas": 4}), KNOWN[0], pods("web:1", 3))
    says = explain(world, Retry("Forbidden", "creating Pod default/web-…: exceeded quota"), NOW)
    assert (says["readyReplicas"], says["phase"]) == (3, "ScalingUp")
    assert condition(says, "Blocked") == "True RequestRefused"
    assert condition(says, "Progressing") == "False RequestRefused"
    assert condition(says, "Available") == "True EnoughAvailable"


QUOTA = Retry("Forbidden", "creating Pod default/web-…: exceeded quota")


def phase_when_refused(workload: Wire, placed: list[Placed], failure: Failure, *, hours: float = 0) -> Any:
    """The phase and the state of the rollout when a request is refused, and was refused so long ago too."""
    says = explain(seen(workload, placed), failure, NOW)
    later = {**workload, "status": says}
    if hours:
        says = explain(seen(later, placed), failure, NOW + timedelta(hours=hours))
    shown = kinds.decode({**workload, "status": says})
    assert isinstance(shown, Workload)
    return says["phase"], view.standing(shown).state


@pytest.mark.parametrize("name", ["new", "coming up", "growing", "hurt"])
def test_a_workload_whose_pods_the_api_refuses_has_failed_when_its_deadline_has_passed(name: str) -> None:
    workload, placed = SITUATIONS[name]
    assert phase_when_refused(workload, placed, QUOTA)[1] is RolloutState.UNDER_WAY
    assert phase_when_refused(workload, placed, QUOTA, hours=1) == ("Failed", RolloutState.FAILED)


def test_a_workload_whose_pods_the_api_refuses_for_good_has_failed_at_once() -> None:
    invalid = Permanent("Invalid", "creating Pod default/web-…: spec.containers[0].image: Required value")
    assert phase_when_refused(*SITUATIONS["new"], invalid) == ("Failed", RolloutState.FAILED)


def test_a_missed_deadline_is_a_failure_also_while_replicas_are_started() -> None:
    first = said(rolling="web:1", step=1, stepStartedAt=ago(hours=1), progressedAt=ago(hours=1))
    decision = decided(web(status=first), KNOWN[0], pods("web:1", 2, ready=False))
    assert (status(decision)["phase"], any("start" in deed for deed in deeds(decision))) == ("Failed", True)


def test_secrets_are_nowhere_in_what_is_written_or_said() -> None:
    secret = config("key", secret=True, pin="czNjcjN0")
    spec: dict[str, Any] = {"envFrom": [{"secretRef": {"name": "key"}}]}
    decision = decided(web(**spec), secret)
    assert "czNjcjN0" not in repr(decision)
