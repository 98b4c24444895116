"""Kinds without a field for it are paused by an annotation, which every controller obeys."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.cli.operator import selection
from holdfast.client.objects import Object
from holdfast.meta.patches import merge
from holdfast.operators import pausing
from holdfast.operators.rollouts import Already, Case, Change, RolloutKind
from holdfast.runtime.controllers import is_paused

PAUSED_BY_ANNOTATION = [each for each in selection.rollout_kinds() if each.verbs.get("resume") is pausing.resume]
SPECS = {
    "VirtualMachine": {"providerRef": {"name": "sim"}, "classRef": {"name": "small"}},
    "VMMigration": {"source": {"vmRef": {"name": "web"}}, "target": {"name": "x", "providerRef": {"name": "far"}}},
    "PodCliqueSet": {
        "template": {"cliques": [{"name": "a", "spec": {"roleName": "a", "podSpec": {"containers": []}}}]}
    },
    "DynamoGraphDeployment": {"components": []},
    "DynamoGraphDeploymentRequest": {"model": "Qwen/Qwen3-32B"},
}


def case(obj: Object) -> Case:
    return Case(object=obj, now=datetime(2026, 1, 1, tzinfo=UTC))


def after(obj: Object, change: Change) -> Object:
    return Object.of(obj.resource, merge.apply(obj.wire(), change.patch))


@pytest.mark.parametrize("kind", PAUSED_BY_ANNOTATION, ids=lambda kind: kind.resource.kind)
def test_a_kind_is_paused_and_resumed_once(kind: RolloutKind) -> None:
    manifest = {
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": SPECS[kind.resource.kind],
    }
    obj = Object.of(kind.resource, manifest)
    assert kind.verbs["resume"](case(obj)) == Already("not paused")
    paused = kind.verbs["pause"](case(obj))
    assert isinstance(paused, Change)
    held = after(obj, paused)
    assert is_paused(held)
    assert kind.verbs["pause"](case(held)) == Already("already paused")
    resumed = kind.verbs["resume"](case(held))
    assert isinstance(resumed, Change)
    assert not is_paused(after(held, resumed))


def test_every_kind_that_is_paused_by_the_annotation_is_tested() -> None:
    assert {kind.resource.kind for kind in PAUSED_BY_ANNOTATION} == SPECS.keys()
