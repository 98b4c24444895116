"""What objects wait for, kind by kind: one object in, sentences out."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.views.waits import waits


def pod(*, node: str = "n", phase: str = "Pending", **status: Any) -> dict[str, Any]:
    spec = {"nodeName": node} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec, "status": {"phase": phase, **status}}


def container(name: str = "main", *, ready: bool = False, **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "state": state}


def kept(kind: str, api_version: str = "apps/v1", *, spec: Any = None, **status: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec or {"replicas": 3}, "status": status}


def condition(type: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": type, "status": status, "reason": reason, "message": message}


BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 5m"}
GATED = pod(node="") | {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}}
READINESS = pod(phase="Running", containerStatuses=[container(ready=True, running={})])
READINESS["spec"]["readinessGates"] = [{"conditionType": "Registered"}]


@pytest.mark.parametrize(
    ("obj", "sentences"),
    [
        # Pods.
        (pod(phase="Running", containerStatuses=[container(ready=True, running={})]), []),
        (pod(phase="Succeeded"), []),
        (pod(node=""), ["a node: no scheduler has tried to place it yet"]),
        (
            pod(node="", conditions=[condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are free")]),
            ["a node (Unschedulable: 0/3 nodes are free)"],
        ),
        (GATED, ["its scheduling gates: a, b"]),
        (pod(), ["its node, which has not reported the state of its containers yet"]),
        (
            pod(containerStatuses=[container(waiting=BACK_OFF), container("side", ready=True, running={})]),
            ["container main to be ready (CrashLoopBackOff: back-off 5m)"],
        ),
        (
            pod(phase="Running", containerStatuses=[container(running={})]),
            ["container main to be ready (it runs, and its readiness probe does not succeed)"],
        ),
        (
            pod(containerStatuses=[container(terminated={"exitCode": 3})]),
            ["container main to be ready (ended with exit code 3)"],
        ),
        (
            pod(
                initContainerStatuses=[container("done", ready=True), container("next", waiting={"reason": "Pulling"})],
                containerStatuses=[container(waiting={"reason": "PodInitializing"})],
            ),
            ["init container next (Pulling)"],
        ),
        (READINESS, ["the readiness gate Registered"]),
        (
            pod(phase="Failed", reason="Evicted", message="out of memory"),
            ["nothing: it has failed (Evicted: out of memory)"],
        ),
        (
            pod(phase="Failed", containerStatuses=[container(terminated={"exitCode": 3})]),
            ["nothing: it has failed (main ended with exit code 3)"],
        ),
        # What keeps pods.
        (kept("Deployment", replicas=3, updatedReplicas=3, availableReplicas=3), []),
        (kept("Deployment", replicas=3, updatedReplicas=1), ["2 of 3 replicas to be updated"]),
        (kept("Deployment", replicas=4, updatedReplicas=3, availableReplicas=3), ["1 old replicas to end"]),
        (
            kept(
                "Deployment",
                replicas=3,
                updatedReplicas=3,
                availableReplicas=1,
                conditions=[condition("Progressing", "False", "ProgressDeadlineExceeded", "it is late")],
            ),
            ["2 of 3 updated replicas to be available (ProgressDeadlineExceeded: it is late)"],
        ),
        (
            kept("Deployment", spec={"replicas": 0, "paused": True}),
            ["a user to resume it: spec.paused is true"],
        ),
        (kept("ReplicaSet", readyReplicas=1), ["2 of 3 replicas to be ready"]),
        (kept("StatefulSet", readyReplicas=3, currentRevision="a", updateRevision="a"), []),
        (kept("StatefulSet", readyReplicas=2), ["1 of 3 replicas to be ready"]),
        (
            kept("StatefulSet", readyReplicas=3, currentRevision="a", updateRevision="b", updatedReplicas=1),
            ["2 of 3 replicas to be updated"],
        ),
        (
            kept(
                "StatefulSet",
                spec={"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
                readyReplicas=3,
                currentRevision="a",
                updateRevision="b",
                updatedReplicas=1,
            ),
            [],
        ),
        (kept("Job", "batch/v1", spec={"completions": 5}, succeeded=2), ["3 of 5 completions"]),
        (kept("Job", "batch/v1", conditions=[condition("Complete", "True")]), []),
        (
            kept("Job", "batch/v1", conditions=[condition("Failed", "True", "BackoffLimitExceeded", "too often")]),
            ["nothing: it has failed (BackoffLimitExceeded: too often)"],
        ),
        (kept("Job", "batch/v1", spec={"suspend": True}), ["a user to resume it: spec.suspend is true"]),
        # Nodes and the rest.
        (kept("Node", "v1", conditions=[condition("Ready", "True")]), []),
        (
            kept("Node", "v1", conditions=[condition("Ready", "Unknown", "NodeStatusUnknown", "it stopped reporting")]),
            ["its kubelet to report that it is ready (NodeStatusUnknown: it stopped reporting)"],
        ),
        (
            kept("Node", "v1", spec={"unschedulable": True}, conditions=[condition("Ready", "True")]),
            ["a user to uncordon it: no pods are scheduled to it"],
        ),
        (
            kept("Node", "v1", conditions=[condition("Ready", "True"), condition("DiskPressure", "True", "Full")]),
            ["an end of DiskPressure (Full)"],
        ),
        (kept("PersistentVolumeClaim", "v1", phase="Pending"), ["a volume"]),
        # Any kind.
        (kept("Workload", "cloudless.io/v1", conditions=[condition("Ready", "True")]), []),
        (
            kept(
                "Workload",
                "cloudless.io/v1",
                conditions=[condition("Degraded", "False"), condition("Ready", "False", "Waits")],
            ),
            ["Ready, which is False (Waits)"],
        ),
        (kept("ConfigMap", "v1"), []),
    ],
)
def test_what_it_waits_for(obj: dict[str, Any], sentences: list[str]) -> None:
    assert list(waits(obj)) == sentences


@pytest.mark.parametrize(
    ("kind", "metadata", "sentence"),
    [
        ("ConfigMap", {"finalizers": ["a/b", "c"]}, "its deletion: a/b, c must be removed first"),
        ("ConfigMap", {}, "its deletion"),
        ("Pod", {"deletionGracePeriodSeconds": 30}, "its deletion: its containers have 30 seconds to end"),
    ],
)
def test_what_is_on_its_way_out_says_what_holds_it(kind: str, metadata: dict[str, Any], sentence: str) -> None:
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z", **metadata}}
    assert waits(obj)[0] == sentence


def test_a_controller_that_lags_behind_is_waited_for() -> None:
    obj = kept("Workload", "cloudless.io/v1", observedGeneration=2) | {"metadata": {"generation": 3}}
    assert waits(obj) == ("its controller, which has observed generation 2, not 3 yet",)
