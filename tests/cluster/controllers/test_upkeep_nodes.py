"""Claims, and the pods of a node that is lost, whatever fails meanwhile: the contract of all controllers."""

from __future__ import annotations

import pytest

from holdfast.client.resources import CLAIMS, NODES, PODS, VOLUMES
from holdfast.cluster.controllers import claims
from holdfast.cluster.controllers.podgc import PodCollector
from holdfast.cluster.nodes import evictions, lifecycle
from holdfast.cluster.nodes.lifecycle import NodeSettings
from holdfast.meta import times
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look

POD = {"containers": [{"name": "c", "image": "i"}]}


async def _claims_come_and_go(cluster: Cluster) -> None:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await cluster.create(
        VOLUMES,
        {
            "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"}},
        },
    )

    async def seen() -> bool:
        return bool((await cluster.get(VOLUMES, "v"))["status"]["phase"] == "Available")

    await cluster.until(seen)  # a claim that is there first need not wait for a volume that is not
    for name, more in (("made", {"storageClassName": "fast"}), ("found", {}), ("going", {"storageClassName": "fast"})):
        await cluster.create(CLAIMS, {"metadata": {"name": name}, "spec": asked | more})

    async def bound() -> bool:
        return all(each["status"]["phase"] == "Bound" for each in await cluster.list(CLAIMS))

    await cluster.until(bound)
    await cluster.delete(CLAIMS, "going")


async def _node_is_lost(cluster: Cluster) -> None:
    for name in ("n1", "n2"):
        await cluster.create(NODES, {"metadata": {"name": name}})
        heard = times.format(cluster.now()) if name == "n1" else "2031-01-01T00:00:00Z"
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heard, "lastTransitionTime": heard}
        await cluster.patch(NODES, name, {"status": {"conditions": [ready]}}, subresource="status")
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        await cluster.create(PODS, {"metadata": {"name": name}, "spec": {"nodeName": node, **POD}})
        await cluster.report(name)
    await cluster.advance(400)
    await cluster.delete(NODES, "n1")


SETTINGS = NodeSettings()
NAMED_BY_UID = frozenset({"name", "volumeName", "hostPath"})
"""Volumes that are made are named for the UID of their claim, which no two runs have in common."""

SCENARIOS = (
    Scenario(
        name="claims come and go", controllers=claims.controllers(), story=_claims_come_and_go, ignored=NAMED_BY_UID
    ),
    Scenario(
        name="a node is lost",
        controllers=(lifecycle.controller(SETTINGS), evictions.controller(SETTINGS)),
        components=lambda: [PodCollector()],
        story=_node_is_lost,
    ),
)


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_end_is_the_same(scenario: Scenario, faults: str) -> None:
    check(scenario, faults)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_second_look_writes_nothing(scenario: Scenario) -> None:
    check_second_look(scenario)
