"""Which changes of pods the controller of Workloads looks at at once: those that it decides by."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.operators.workload.worlds import Wire, ago, pod, web

from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS
from holdfast.operators.workload.observe import WORKLOADS, is_urgent
from holdfast.testing.snapshots import Snapshot

_, STARTING = pod("a", ready=False, phase="Pending", node="")
_, GOING = pod("a", going=True)
STARTING["status"]["containerStatuses"] = []


def changed(before: Wire, **parts: Any) -> Object:
    after = deepcopy(before)
    for part, fields in parts.items():
        after[part] |= fields
    return Object.of(PODS, after)


def waiting(reason: str) -> list[Wire]:
    return [{"name": "app", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}}]


@pytest.mark.parametrize(
    ("change", "urgent"),
    [
        pytest.param({"spec": {"nodeName": "n1"}}, False, id="scheduled"),
        pytest.param(
            {"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}, False, id="run"
        ),
        pytest.param(
            {"spec": {"nodeName": "n1"}, "status": {"containerStatuses": waiting("ContainerCreating")}},
            False,
            id="created",
        ),
        pytest.param(
            {"spec": {"nodeName": "n1"}, "status": {"containerStatuses": waiting("ImagePullBackOff")}},
            True,
            id="cannot start",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(seconds=1)}]}},
            True,
            id="ready",
        ),
        pytest.param({"status": {"phase": "Failed"}}, True, id="ended"),
        pytest.param({"metadata": {"deletionTimestamp": ago(seconds=1)}}, True, id="terminating"),
        pytest.param({"metadata": {"labels": {}}}, True, id="labels"),
        pytest.param({"metadata": {"ownerReferences": []}}, True, id="released"),
    ],
)
def test_where_a_pod_runs_and_how_it_starts_can_wait(change: dict[str, Wire], urgent: bool) -> None:
    view = Snapshot([(WORKLOADS, web())])
    assert is_urgent(Object.of(PODS, STARTING), changed(STARTING, **change), view) is urgent


@pytest.mark.parametrize(
    ("rollout", "urgent"),
    [
        ({}, False),
        ({"strategy": "RollingUpdate"}, False),
        ({"strategy": "BlueGreen"}, False),
        ({"strategy": "Recreate"}, True),
        ({"replacement": "onTermination"}, True),
    ],
)
def test_the_end_of_a_terminating_pod_can_wait_unless_the_rollout_waits_for_it(rollout: Wire, urgent: bool) -> None:
    assert is_urgent(Object.of(PODS, GOING), None, Snapshot([(WORKLOADS, web(rollout=rollout))])) is urgent


def test_a_pod_that_comes_or_goes_and_any_other_owned_object_is_urgent() -> None:
    view, serving = Snapshot([(WORKLOADS, web())]), Object.of(*pod("a"))
    revision = Object.of(CONTROLLER_REVISIONS, {"metadata": {"name": "r"}})
    assert is_urgent(None, serving, view)
    assert is_urgent(serving, None, view)
    assert is_urgent(revision, revision, view)
