"""Every kind of every operator has a row and a page, also where its objects are new, foreign or nonsense."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml
from tests.operators import toy
from tests.places import ROOT

from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS, Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.operators.operator import load
from holdfast.operators.rollouts import Case, Observed
from holdfast.operators.shown import ShownKind, Surroundings, page, refusal
from holdfast.views.overview import Health, Row
from holdfast.views.pages import Page

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
KINDS = {each.name: each for operator in (*load(), toy.OPERATOR) for each in operator.shown_kinds()}


class Nothing:
    """A view of a cluster that has only one object."""

    def __init__(self, obj: Object) -> None:
        self._object = obj

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._object if (resource, key) == (self._object.resource, self._object.key) else None

    def list(
        self, resource: Resource, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> tuple[Object, ...]:
        return (self._object,) if resource == self._object.resource else ()

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        return ()

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        return ()


def dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False)


def shown(kind: ShownKind, wire: dict[str, Any]) -> tuple[Row, Page]:
    obj = Object.of(kind.resource, wire)
    return kind.row(obj), page(kind, Observed(obj, Nothing(obj)), Surroundings(dump=dump), NOW)


def examples() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    kinds = {(each.resource.api_version, each.resource.kind): each.name for each in KINDS.values()}
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            name = kinds.get((document.get("apiVersion"), document.get("kind"))) if document else None
            if name is not None:
                meta = {
                    "namespace": "default",
                    "uid": "1",
                    "generation": 1,
                    "creationTimestamp": "2025-01-01T00:00:00Z",
                }
                found.setdefault(name, []).append({**document, "metadata": meta | document["metadata"]})
    return found


EXAMPLES = examples()


def test_the_kinds_of_all_systems_are_shown() -> None:
    groups = {each.resource.group for each in KINDS.values()}
    assert groups >= {"cloudless.io", "grove.io", "rustfs.com", "infra.virtrigaud.io", "nvidia.com", "toy.example.com"}
    assert {"vmmigrations.infra.virtrigaud.io", "podgangs.scheduler.grove.io"} <= KINDS.keys()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_that_was_just_created_has_a_row_and_a_page(name: str) -> None:
    for wire in EXAMPLES[name]:
        row, made = shown(KINDS[name], wire)
        assert row.health is not Health.TROUBLE, row
        assert row.because
        assert msgspec.json.decode(msgspec.json.encode(made), type=Page) == made
        assert "kind: " in made.yaml


BROKEN: tuple[Any, ...] = (
    {},
    {"spec": None},
    {"spec": [], "status": []},
    {"spec": {"replicas": "many", "pools": [None]}, "status": {"phase": 1, "conditions": {"a": 1}, "pools": ["x"]}},
    {"spec": {}, "status": {"observedGeneration": "x", "components": {"a": None}, "profilingResults": {"pareto": [1]}}},
)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_nonsense_has_a_row_and_a_page(name: str) -> None:
    for each in BROKEN:
        wire = {"metadata": {"name": "a", "namespace": "b", "uid": "1"}, **each}
        row, made = shown(KINDS[name], wire)
        assert (row.name, made.head.row.name) == ("a", "a")


@pytest.mark.parametrize("name", sorted(name for name, kind in KINDS.items() if kind.rollout is not None))
def test_every_interface_says_why_a_verb_changes_nothing_of_an_object_that_cannot_be_read(name: str) -> None:
    rollout = KINDS[name].rollout
    assert rollout is not None
    for each in BROKEN:
        wire = {"metadata": {"name": "a", "namespace": "b", "uid": "1"}, **each}
        case = Case(object=Object.of(KINDS[name].resource, wire), records=(), now=NOW)
        assert all(isinstance(refusal(rollout, verb, case), str) for verb in rollout.verbs)


def test_a_new_operator_appears_by_itself() -> None:
    wire = {
        "metadata": {"name": "north", "namespace": "default", "generation": 1, "uid": "1"},
        "spec": {"image": "light:1", "replicas": 2},
        "status": {"observedGeneration": 1, "phase": "Ready", "message": "it shines", "ready": 2, "updated": 2},
    }
    row, made = shown(KINDS["beacons.toy.example.com"], wire)
    assert (row.kind, row.phase, row.health, row.because) == ("Beacon", "Ready", Health.GOOD, "it shines")
    assert [each.name for each in made.verbs] == ["pause", "resume"]
    assert [each.title for each in made.tables] == ["Images"]


def test_a_workload_is_in_trouble_where_its_revision_was_rejected() -> None:
    wire = {
        "metadata": {"name": "shop", "namespace": "default", "generation": 2, "uid": "1"},
        "spec": {"image": "shop:2", "replicas": 3},
        "status": {
            "observedGeneration": 2,
            "phase": "Completed",
            "readyReplicas": 3,
            "rejectedRevision": "abc",
            "limits": {"floor": 2, "maxLive": 4},
            "rollout": {"because": {"code": "Rejected", "message": "abc was rejected"}, "lowestReady": 2},
        },
    }
    row, _ = shown(KINDS["workloads.cloudless.io"], wire)
    assert (row.health, row.because) == (Health.TROUBLE, "abc was rejected")
    assert row.floor is not None
    assert (row.floor.ready, row.floor.floor, row.floor.desired, row.floor.lowest) == (3, 2, 3, 2)


def test_a_migration_refers_to_its_machines_and_shows_how_far_it_is() -> None:
    kind = KINDS["vmmigrations.infra.virtrigaud.io"]
    wire = {
        "metadata": {"name": "move", "namespace": "default", "uid": "1"},
        "spec": {
            "source": {"vmRef": {"name": "db"}},
            "target": {"providerRef": {"name": "west", "namespace": "infra"}},
        },
        "status": {"phase": "Transferring", "targetVMRef": {"name": "db-west"}, "progress": {"percentage": 40}},
    }
    _, made = shown(kind, wire)
    links = [
        (link.relation, link.kind, link.namespace, link.name) for _, link in kind.links(Object.of(kind.resource, wire))
    ]
    assert links == [
        ("source", "VirtualMachine", "default", "db"),
        ("target", "VirtualMachine", "default", "db-west"),
        ("new provider", "Provider", "infra", "west"),
    ]
    assert [each.percent for each in made.bars] == [40.0]


def test_a_request_shows_the_front_with_the_chosen_point() -> None:
    def candidate(x: float, y: float, gpus: int) -> dict[str, Any]:
        engines = [{"role": "decode", "replicas": 2, "tensorParallel": 1, "batch": 8}]
        figures = {"tokensPerSecondPerUser": x, "tokensPerSecondPerGpu": y, "predictedTtft": 210.0, "predictedItl": 9.8}
        return {"config": {"engines": engines}, "totalGpus": gpus, "slaMet": True, **figures}

    best, other = candidate(50, 900, 8), candidate(20, 1200, 4)
    results = {"selectedConfig": {"kind": "x"}, "candidates": [best], "pareto": [best, other], "why": "the fewest GPUs"}
    wire = {"metadata": {"name": "a", "uid": "1"}, "spec": {"model": "m"}, "status": {"profilingResults": results}}
    _, made = shown(KINDS["dynamographdeploymentrequests.nvidia.com"], wire)
    (chart,) = made.charts
    assert [(each.x, each.y, each.chosen, each.front) for each in chart.points] == [
        (20, 1200, False, True),
        (50, 900, True, True),
    ]
    assert chart.points[1].label == "2 x decode tp 1, batch 8; 8 GPUs, ttft 210 ms, itl 9.8 ms"


def test_pods_and_revisions_are_no_kinds_of_the_overview() -> None:
    assert {PODS.group_resource, CONTROLLER_REVISIONS.group_resource}.isdisjoint(KINDS)


def test_a_provider_whose_process_starts_on_demand_is_idle_and_not_in_trouble() -> None:
    kind = KINDS["providers.infra.virtrigaud.io"]
    wire = {"metadata": {"name": "qemu", "namespace": "default"}, "spec": {"type": "qemu"}}
    condition = {"type": "Ready", "status": "False", "reason": "StartsOnDemand", "message": "it starts later"}
    idle, _ = shown(kind, {**wire, "status": {"conditions": [condition]}})
    lost, _ = shown(kind, {**wire, "status": {"conditions": [{**condition, "reason": "NotConnected"}]}})
    assert (idle.phase, idle.health) == ("Idle", Health.GOOD)
    assert (lost.phase, lost.health) == ("NotReady", Health.PROGRESSING)


def test_an_image_that_no_machine_uses_is_not_in_progress() -> None:
    kind = KINDS["vmimages.infra.virtrigaud.io"]
    wire = {"metadata": {"name": "debian", "namespace": "default"}, "spec": {}}
    condition = {"type": "Ready", "status": "False", "reason": "NotUsed", "message": "no machine uses it"}
    unused, _ = shown(kind, {**wire, "status": {"phase": "Ready", "conditions": [condition]}})
    waits, _ = shown(kind, {**wire, "status": {"conditions": [{**condition, "reason": "Importing"}]}})
    assert (unused.phase, unused.health) == ("Unused", Health.GOOD)
    assert waits.health is Health.PROGRESSING
