"""Pods as their owners see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.pods import Pod, from_template
from holdfast.client.resources import PODS

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


def pod(**status: Any) -> Pod:
    return Pod.of(Object.of(PODS, {"metadata": {"name": "a", "namespace": "default"}, "status": status}))


def ready_since(time: str, status: str = "True") -> Pod:
    return pod(phase="Running", conditions=[{"type": "Ready", "status": status, "lastTransitionTime": time}])


@pytest.mark.parametrize(("phase", "active"), [("Pending", True), ("Running", True), ("Failed", False)])
def test_a_pod_is_active_until_it_finishes(phase: str, active: bool) -> None:
    assert pod(phase=phase).active is active


def test_a_pod_that_is_being_deleted_is_not_active() -> None:
    wire = {"metadata": {"name": "a", "deletionTimestamp": "2030-01-01T11:00:00Z"}, "status": {"phase": "Running"}}
    assert not Pod.of(Object.of(PODS, wire)).active


@pytest.mark.parametrize(
    ("since", "min_ready", "available"),
    [
        ("2030-01-01T11:59:50Z", 10, True),
        ("2030-01-01T11:59:51Z", 10, False),
        ("2030-01-01T12:00:00Z", 0, True),
    ],
)
def test_a_pod_is_available_once_it_was_ready_for_long_enough(since: str, min_ready: int, available: bool) -> None:
    assert ready_since(since).available(timedelta(seconds=min_ready), NOW) is available


def test_a_pod_that_is_not_ready_has_no_time_at_which_it_is_available() -> None:
    assert ready_since("2030-01-01T11:00:00Z", status="False").available_at(timedelta(0)) is None


def test_a_pod_from_a_template_belongs_to_its_owner_and_keeps_the_labels_of_the_template() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    made = from_template(template, owner, labels={"hash": "1"})
    assert made["metadata"]["generateName"] == "web-"
    assert made["metadata"]["labels"] == {"app": "web", "hash": "1"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert made["spec"] == template["spec"]
