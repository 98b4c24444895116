"""StatefulSets and Jobs tried by force: whatever fails on the way, the end is the same."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.resources import JOBS, NODES, STATEFUL_SETS
from holdfast.cluster import simulation
from holdfast.cluster.controllers import jobs, statefulsets
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look

LABELS = {"app": "db"}


async def _node(cluster: Cluster) -> None:
    room = {"cpu": "8", "memory": "8Gi", "pods": "50"}
    await cluster.create(NODES, {"metadata": {"name": "node-1", "labels": {simulation.NODE_LABEL: "true"}}})
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": room, "capacity": room, "conditions": ready}
    await cluster.patch(NODES, "node-1", {"status": status}, subresource="status")


def _set(image: str = "db:1") -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": wanted}
    return {
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}},
            "volumeClaimTemplates": [claim],
        },
    }


async def _rolled(cluster: Cluster) -> None:
    await _node(cluster)

    async def ready(revision: str = "") -> bool:
        status = (await cluster.get(STATEFUL_SETS, "db")).get("status", {})
        complete = status.get("currentRevision") == status.get("updateRevision") != revision
        return bool(complete and status.get("readyReplicas") == 2 and status.get("updatedReplicas", 2) == 2)

    await cluster.create(STATEFUL_SETS, _set())
    await cluster.until(ready)
    before = (await cluster.get(STATEFUL_SETS, "db"))["status"]["currentRevision"]
    containers = [{"name": "c", "image": "db:2"}]
    await cluster.patch(STATEFUL_SETS, "db", {"spec": {"template": {"spec": {"containers": containers}}}})
    await cluster.until(lambda: ready(before))
    await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})


async def _worked(cluster: Cluster) -> None:
    await _node(cluster)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"completions": 2, "parallelism": 1, "completionMode": "Indexed", "template": template}
    await cluster.create(JOBS, {"metadata": {"name": "work"}, "spec": spec})

    async def complete() -> bool:
        conditions = (await cluster.get(JOBS, "work")).get("status", {}).get("conditions", ())
        return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)

    await cluster.until(complete)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="a stateful set is rolled and shrunk",
            controllers=(statefulsets.CONTROLLER, simulation.controller()),
            components=lambda: [Scheduler()],
            story=_rolled,
            deleted=(STATEFUL_SETS, "db"),
            patience=60,
        ),
        Scenario(
            name="a job runs to its end",
            controllers=(jobs.CONTROLLER, simulation.controller()),
            components=lambda: [Scheduler()],
            story=_worked,
            deleted=(JOBS, "work"),
            patience=60,
        ),
    )
}


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_whatever_fails_on_the_way_the_end_is_the_same(scenario: str, faults: str) -> None:
    check(SCENARIOS[scenario], faults)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_second_look_writes_nothing(scenario: str) -> None:
    check_second_look(SCENARIOS[scenario])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_made_for_them_goes_with_them(scenario: str) -> None:
    check_deletion(SCENARIOS[scenario], components=lambda: [GarbageCollector()])
