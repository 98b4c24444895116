"""The contract: whatever fails once, a Workload ends as it would have; looked at again, it needs nothing; it leaves
nothing behind."""

from __future__ import annotations

import pytest
from tests.operators.workload.stages import annotate, change, workload

from holdfast.client.resources import PODS
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.kinds.cloudless import KINDS
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Bounds, Scenario, check, check_bounds, check_deletion, check_second_look
from holdfast.testing.wakeups import check_wakeups


async def reported(cluster: Cluster) -> None:
    """Be the node of all pods: those that are pending become ready."""
    for pod in await cluster.list(PODS):
        if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Pending":
            await cluster.report(pod["metadata"]["name"])


async def comes_to(cluster: Cluster, code: str, image: str) -> None:
    """Report replicas ready as they come, until the rollout of the image says so."""

    async def done() -> bool:
        await reported(cluster)
        found = await cluster.get(WORKLOADS, "web")
        status = found.get("status") or {}
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        return current and bool(status["rollout"]["because"]["code"] == code)

    await cluster.until(done, step=1)
    assert image in [pod["spec"]["containers"][0]["image"] for pod in await cluster.list(PODS)]


async def rolled_out(cluster: Cluster) -> None:
    await cluster.create(WORKLOADS, workload(replicas=2, rollout={"minAvailable": 2}))
    await comes_to(cluster, "Completed", "web:1")
    await change(cluster, image="web:2")
    await comes_to(cluster, "Completed", "web:2")


async def switched(cluster: Cluster) -> None:
    rollout = {"strategy": "BlueGreen", "blueGreen": {"scaleDownDelay": "5s"}}
    await cluster.create(WORKLOADS, workload(replicas=1, rollout=rollout, ports=[{"containerPort": 80}]))
    await comes_to(cluster, "Completed", "web:1")
    await change(cluster, image="web:2")
    await comes_to(cluster, "Completed", "web:2")


async def promoted(cluster: Cluster) -> None:
    steps = [{"replicas": 1, "manual": True}, {"weight": 100, "pauseDuration": "5s"}]
    await cluster.create(WORKLOADS, workload(replicas=2, rollout={"strategy": "Canary", "canary": {"steps": steps}}))
    await comes_to(cluster, "Completed", "web:1")
    await change(cluster, image="web:2")
    await comes_to(cluster, "ApprovalNeeded", "web:2")
    target = (await cluster.get(WORKLOADS, "web"))["status"]["updateRevision"]
    await annotate(cluster, "holdfast.dev/promoted", f"{target}:1")
    await comes_to(cluster, "Completed", "web:2")


SCENARIOS = {
    story.__name__: Scenario(
        name=story.__name__,
        controllers=CONTROLLERS,
        kinds=KINDS,
        story=story,
        deleted=(WORKLOADS, "web"),
        patience=30,
    )
    for story in (rolled_out, switched, promoted)
}


async def changed_midway(cluster: Cluster) -> None:
    """Four replicas, of which three must be ready, and two images that take turns while each rolls out."""
    rollout = {"minAvailable": 3, "maxSurge": 1, "maxUnavailable": 1}
    await cluster.create(WORKLOADS, workload(replicas=4, rollout=rollout))
    await comes_to(cluster, "Completed", "web:1")
    for number in range(8):
        await change(cluster, image=f"web:{2 - number % 2}")
        for _ in range(4 + number):
            await reported(cluster)
            await cluster.advance(0.7)
    await comes_to(cluster, "Completed", "web:1")


MIDWAY = Scenario(
    name="the template changes midway",
    controllers=CONTROLLERS,
    kinds=KINDS,
    story=changed_midway,
    patience=30,
    bounds=Bounds(floor=3, ceiling=5),
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIOS["rolled_out"], faults)


@pytest.mark.parametrize("name", ["switched", "promoted"])
@pytest.mark.parametrize("faults", ["dying with any write", "stale reads", "changes out of order"])
def test_it_holds_behind_gates_too(faults: str, name: str) -> None:
    """What a gate waits for is kept with the object, and whether traffic was switched is read from the world."""
    check(SCENARIOS[name], faults)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_second_look_writes_nothing(name: str) -> None:
    check_second_look(SCENARIOS[name])


@pytest.mark.parametrize("name", SCENARIOS)
def test_deletion_leaves_nothing_behind(name: str) -> None:
    check_deletion(SCENARIOS[name], components=lambda: [GarbageCollector()])


def test_no_bound_is_broken_when_replies_are_lost_changes_are_late_and_the_template_changes_midway() -> None:
    check_bounds(MIDWAY, "replies lost and changes late")


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_a_workload_reads_wakes_it(name: str) -> None:
    check_wakeups(SCENARIOS[name])
