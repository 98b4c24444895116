"""Placing and simulating pods, tried by force: whatever fails on the way, the end is the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.fleets import node_wire

from holdfast.client.resources import NODES, PODS
from holdfast.cluster import simulation
from holdfast.cluster.scheduling import gang_status
from holdfast.cluster.scheduling.gangs import LABEL, POD_GANGS
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.cluster.simulation.behaviours import PREFIX
from holdfast.cluster.simulation.nodes import Fleet, manifest
from holdfast.kinds.grove_scheduler import POD_GANG
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look


def pod(name: str, *, labels: dict[str, str] | None = None, cpu: str = "1", **how: Any) -> dict[str, Any]:
    marks = {PREFIX + key.replace("_", "-"): how.pop(key) for key in ("run_for", "exit_code") if key in how}
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}, "annotations": marks}
    return {"metadata": metadata, "spec": {"containers": [container], **how}}


async def _a_gang_and_others_find_places(cluster: Cluster) -> None:
    await cluster.create(NODES, node_wire("n1", cpu="2"))
    await cluster.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name, labels={LABEL: "gang"}))
    references = [{"namespace": "default", "name": name} for name in ("a", "b")]
    group = {"name": "workers", "podReferences": references, "minReplicas": 2}
    await cluster.create(POD_GANGS, {"metadata": {"name": "gang"}, "spec": {"podgroups": [group]}})
    await cluster.advance(5)
    await cluster.create(PODS, pod("late"))
    await cluster.advance(5)
    await cluster.create(NODES, node_wire("n2", cpu="1"))
    await cluster.advance(30)
    assert {each["metadata"]["name"] for each in await cluster.list(PODS) if each["spec"].get("nodeName")} == {
        "a",
        "b",
        "late",
    }


async def _pods_live_and_end(cluster: Cluster) -> None:
    await cluster.create(NODES, manifest(Fleet(), "node-1", cluster.now()))
    await cluster.create(PODS, pod("runs"))
    await cluster.create(PODS, pod("succeeds", restartPolicy="Never", run_for="3s"))
    await cluster.create(PODS, pod("fails", restartPolicy="Never", run_for="3s", exit_code="3"))
    await cluster.create(PODS, pod("goes"))
    await cluster.advance(10)
    await cluster.delete(PODS, "goes")
    await cluster.advance(10)


SCENARIOS = (
    Scenario(
        name="a gang and others find places",
        controllers=(gang_status.CONTROLLER,),
        components=lambda: [Scheduler()],
        kinds=(POD_GANG,),
        story=_a_gang_and_others_find_places,
        patience=400,
    ),
    Scenario(
        name="pods live and end",
        controllers=(simulation.controller(),),
        components=lambda: [Scheduler()],
        story=_pods_live_and_end,
    ),
)


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_end_is_the_same(scenario: Scenario, faults: str) -> None:
    check(scenario, faults)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_second_look_writes_nothing(scenario: Scenario) -> None:
    check_second_look(scenario)
