"""Every way in which a pod can fail to be ready has its own reason, and the message of the reporting component."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.kernel.pod_problems import REMEDIES, PodReason, decode, diagnose, problem, read


def pod(name: str = "a", *, node: str = "n1", phase: str = "Running", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": node}, "status": {"phase": phase, **status}}


def container(**fields: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", **fields}]}


def condition(type: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message}


WAITING = {"reason": "CrashLoopBackOff", "message": "back-off 40s"}
ENDED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}

CASES: dict[str, tuple[dict[str, Any], PodReason, str]] = {
    "an image that cannot be pulled": (
        pod(**container(state={"waiting": {"reason": "ImagePullBackOff", "message": 'no such image "x"'}})),
        PodReason.IMAGE_PULL_FAILED,
        'container main: ImagePullBackOff: no such image "x"',
    ),
    "a missing ConfigMap": (
        pod(
            **container(
                state={"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}}
            )
        ),
        PodReason.CONFIGURATION_MISSING,
        'container main: CreateContainerConfigError: configmap "c" not found',
    ),
    "a crash loop, with the exit code": (
        pod(**container(state={"waiting": WAITING}, lastState=ENDED, restartCount=4)),
        PodReason.CRASH_LOOP,
        "container main crashes: OOMKilled, exit code 137, 4 restarts",
    ),
    "a container that ended": (
        pod(**container(state={"terminated": {"exitCode": 2, "message": "bad flag\n"}})),
        PodReason.CONTAINER_FAILED,
        "container main: exit code 2: bad flag",
    ),
    "a container that cannot be started": (
        pod(**container(state={"waiting": {"reason": "RunContainerError", "message": "no such file"}})),
        PodReason.CONTAINER_FAILED,
        "container main: RunContainerError: no such file",
    ),
    "a pod that failed for good": (
        pod(phase="Failed", reason="Evicted", message="The node was low on memory."),
        PodReason.POD_FAILED,
        "failed: Evicted: The node was low on memory.",
    ),
    "the scheduler's words": (
        pod(node="", phase="Pending", conditions=[condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")]),
        PodReason.UNSCHEDULABLE,
        "cannot be scheduled: 0/3 nodes",
    ),
    "a node that does not report": (
        pod(conditions=[condition("Ready", "False", "NodeNotReady")]),
        PodReason.NODE_LOST,
        "its node n1 does not report",
    ),
    "a readiness probe": (
        pod(**container(state={"running": {}}, started=True)),
        PodReason.PROBE_FAILING,
        "container main runs, and its readiness probe has not succeeded",
    ),
    "a startup probe": (
        pod(**container(state={"running": {}}, started=False)),
        PodReason.STARTING,
        "container main runs, and its startup probe has not succeeded yet",
    ),
    "scheduling gates": (
        {"metadata": {"name": "a"}, "spec": {"schedulingGates": [{"name": "gang"}]}, "status": {"phase": "Pending"}},
        PodReason.GATED,
        "has the scheduling gates gang",
    ),
    "an init container": (
        pod(phase="Pending", initContainerStatuses=[{"name": "wait", "state": ENDED}], **container()),
        PodReason.CONTAINER_FAILED,
        "init container wait (1 of 1): OOMKilled, exit code 137",
    ),
    "a pod that was only just made": (pod(node="", phase="Pending"), PodReason.STARTING, "is not scheduled yet"),
    "a pod that its node has not started": (
        pod(phase="Pending"),
        PodReason.STARTING,
        "its containers have not started yet",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pod_says_why_it_is_not_ready(case: str) -> None:
    wire, reason, message = CASES[case]
    found = problem(read(wire))
    assert found is not None
    assert (found.reason, found.message) == (reason, message)


@pytest.mark.parametrize(
    "wire", [pod(conditions=[condition("Ready", "True")]), pod(phase="Succeeded")], ids=["ready", "ended well"]
)
def test_a_pod_that_is_well_has_no_problem(wire: dict[str, Any]) -> None:
    assert problem(read(wire)) is None


def test_of_several_containers_the_gravest_problem_counts() -> None:
    statuses = [{"name": "a", "state": {"running": {}}}, {"name": "b", "state": {"waiting": WAITING}}]
    found = problem(read(pod(containerStatuses=statuses)))
    assert found is not None
    assert found.reason is PodReason.CRASH_LOOP


def test_of_many_pods_the_gravest_problem_is_told_with_one_that_has_it_and_what_to_do() -> None:
    pulls = [pod(name, **container(state={"waiting": {"reason": "ErrImagePull"}})) for name in ("c", "b")]
    found = diagnose(map(read, [pod("a", node="", phase="Pending"), *pulls, pod("z", phase="Succeeded")]))
    assert str(found) == ("pod b (and 1 more): container main: ErrImagePull; correct the image or its pull secret")
    assert diagnose([]) is None


def test_every_problem_that_does_not_pass_has_a_remedy() -> None:
    assert set(PodReason) - REMEDIES.keys() == {PodReason.STARTING, PodReason.GATED, PodReason.TERMINATING}


DELETED = "2030-01-01T12:00:00Z"


@pytest.mark.parametrize(
    ("lost", "reason", "message"),
    [
        ((), PodReason.TERMINATING, f"is being deleted since {DELETED}"),
        (("n2",), PodReason.TERMINATING, f"is being deleted since {DELETED}"),
        (("n1",), PodReason.NODE_LOST, f"is being deleted since {DELETED}, and its node n1 does not report"),
    ],
)
def test_a_pod_that_is_being_deleted_is_a_problem_where_its_node_does_not_report(
    lost: tuple[str, ...], reason: PodReason, message: str
) -> None:
    wire = pod(conditions=[condition("Ready", "False")], **container(state=ENDED))
    wire["metadata"]["deletionTimestamp"] = DELETED
    found = problem(read(wire), lost=lost)
    assert found is not None
    assert (found.reason, found.message) == (reason, message)
    assert found.passes is (reason is PodReason.TERMINATING)


def test_a_node_that_is_known_not_to_report_explains_its_pods_where_they_do_not_say_so() -> None:
    found = diagnose([read(pod(conditions=[condition("Ready", "False")]))], lost={"n1"})
    assert str(found) == (
        "pod a: its node n1 does not report; bring the node back, or delete it once it is known to be off"
    )


@pytest.mark.parametrize("raw", [b'{"status": 5}', b'{"status": {"containerStatuses": [3]}}', b'{"spec": []}'])
def test_a_pod_in_an_odd_form_is_starting_and_raises_nothing(raw: bytes) -> None:
    found = problem(decode(raw))
    assert found is not None
    assert found.passes
