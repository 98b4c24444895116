"""Why replicas are not ready: the conditions, the reason and the message name the pod, the cause and the remedy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.operators.workload.worlds import (
    NOW,
    Placed,
    Wire,
    ago,
    condition,
    decided,
    pod,
    pods,
    record,
    said,
    seen,
    status,
    web,
)

from holdfast.client.resources import PODS
from holdfast.kernel.outcomes import Again, Permanent
from holdfast.operators.workload.decide import explain

KNOWN = [record("web:1", 1), record("web:2", 2)]
ROLLING = said("web:1", rolling="web:2", progressedAt=ago(seconds=5))
SURGE = {"minAvailable": 3, "maxSurge": 1}


def ill(name: str, image: str = "web:2", *, node: str = "n9", created: str = "", **told: Any) -> Placed:
    """A replica that is not ready, with what its container or its scheduler reports."""
    _, wire = pod(name, image, ready=False, phase="Pending", node=node, created=created)
    conditions = told.pop("conditions", [])
    wire["status"] = {"phase": "Pending", "conditions": conditions}
    if told:
        wire["status"]["containerStatuses"] = [{"name": "app", **told}]
    return PODS, wire


def waiting(reason: str, message: str = "") -> Wire:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: no cpu"}
CRASHED = {"lastState": {"terminated": {"exitCode": 3}}, "restartCount": 4}

LOGS = "read the logs of its last run (kubectl logs --previous)"

CAUSES: dict[str, tuple[Placed, str]] = {
    "ImagePullFailed": (
        ill("x", **waiting("ImagePullBackOff", "web:2 not found")),
        "pod x: container app: ImagePullBackOff: web:2 not found; correct the image or its pull secret",
    ),
    "CrashLoop": (
        ill("x", **waiting("CrashLoopBackOff"), **CRASHED),
        "pod x: container app crashes: exit code 3, 4 restarts; " + LOGS,
    ),
    "Unschedulable": (
        ill("x", node="", conditions=[UNSCHEDULABLE]),
        "pod x: cannot be scheduled: 0/3 nodes: no cpu; add capacity, or ask for less",
    ),
    "ProbeFailing": (
        ill("x", state={"running": {}}, started=True),
        "pod x: container app runs, and its readiness probe has not succeeded; see its logs and its probes",
    ),
    "PodConfigurationMissing": (
        ill("x", **waiting("CreateContainerConfigError", 'secret "key" not found')),
        'pod x: container app: CreateContainerConfigError: secret "key" not found; create what is missing',
    ),
}


def messages(says: Wire) -> dict[str, str]:
    return {each["type"]: each["message"] for each in says["conditions"]}


@pytest.mark.parametrize("reason", CAUSES)
def test_why_a_new_replica_is_not_ready_is_in_the_status_with_the_pod_the_cause_and_the_remedy(reason: str) -> None:
    placed, message = CAUSES[reason]
    decision = decided(web("web:2", status=ROLLING, rollout=SURGE), KNOWN, pods("web:1", 3), placed)
    says = status(decision)
    assert says["reason"] == reason
    assert messages(says)["Progressing"].endswith(message)
    assert (condition(decision, "Degraded"), messages(says)["Degraded"]) == (f"True {reason}", message)
    assert says["rollout"]["because"]["message"].endswith(message)


def test_too_few_available_replicas_say_what_is_wrong_with_the_others() -> None:
    placed, message = CAUSES["CrashLoop"]
    says = status(decided(web("web:2", status=said(rolling="web:2"), rollout=SURGE), KNOWN[1], placed))
    assert messages(says)["Available"] == f"0 of 4 replicas available, the floor is 3; {message}"


def test_a_missed_deadline_says_what_is_wrong_with_the_new_replicas() -> None:
    placed, message = CAUSES["ImagePullFailed"]
    stuck = said("web:1", rolling="web:2", step=1, stepStartedAt=ago(hours=1), progressedAt=ago(hours=1))
    decision = decided(web("web:2", status=stuck, rollout=SURGE), KNOWN, pods("web:1", 4), placed)
    says = status(decision)
    assert (says["phase"], says["reason"]) == ("Failed", "ImagePullFailed")
    assert condition(decision, "Degraded") == "True ProgressDeadlineExceeded"
    assert message in messages(says)["Degraded"]
    assert message in messages(says)["Blocked"]


def test_a_request_that_the_api_server_refuses_is_the_reason() -> None:
    world = seen(web(status=said("web:1")), KNOWN[0], pods("web:1", 3), CAUSES["CrashLoop"][0])
    says = explain(world, Permanent("Invalid", "creating Pod default/web-…: spec.containers[0].image: Required"), NOW)
    assert says["reason"] == "RequestRefused"
    assert says["rollout"]["because"] == {
        "code": "RequestRefused",
        "message": "creating Pod default/web-…: spec.containers[0].image: Required",
    }


def test_problems_of_the_revision_that_is_rolled_out_come_before_those_of_the_one_that_it_replaces() -> None:
    old = ill("a", "web:1", **waiting("ImagePullBackOff", "gone"))
    new = CAUSES["Unschedulable"][0]
    says = status(decided(web("web:2", status=ROLLING, rollout=SURGE), KNOWN, pods("web:1", 3), old, new))
    assert says["reason"] == "Unschedulable"


def test_a_probe_that_has_not_succeeded_yet_is_no_problem_of_a_replica_that_has_just_started() -> None:
    young = [ill(name, created=ago(seconds=10), state={"running": {}}, started=True) for name in "xy"]
    decision = decided(web("web:2", status=ROLLING, rollout=SURGE), KNOWN, pods("web:1", 3), young)
    assert status(decision)["reason"] == "WaitingForReady"
    assert condition(decision, "Degraded") == "False Healthy"
    because = "a readiness probe that has not succeeded by then is reported as failing"
    assert decision.outcome == Again(timedelta(seconds=20), because)


def test_replicas_that_are_starting_are_no_problem() -> None:
    starting = [ill(name, **waiting("ContainerCreating")) for name in "xy"]
    decision = decided(web("web:2", status=ROLLING, rollout=SURGE), KNOWN, pods("web:1", 3), starting)
    assert status(decision)["reason"] == "WaitingForReady"
    assert condition(decision, "Degraded") == "False Healthy"


def test_the_reason_of_a_healthy_workload_is_that_of_its_rollout() -> None:
    assert status(decided(web(status=said("web:1")), KNOWN[0], pods("web:1", 4)))["reason"] == "Completed"
