"""Drains: the disruption budget of a Workload, and what is reported when the floor is broken all the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.pods import drain
from tests.operators.workload.stages import SLOW, Wire, Witness, because, change, images, operator, reaches, staged
from tests.operators.workload.stages import workload as workload_of
from tests.operators.workload.worlds import (
    NOW,
    Placed,
    ago,
    budget,
    condition,
    decided,
    deeds,
    kept_budget,
    node,
    notices,
    pod,
    pods,
    record,
    said,
    service,
    status,
    web,
)

from holdfast import kinds
from holdfast.client.resources import EVENTS, NODES, PODS
from holdfast.cluster.controllers import budgets
from holdfast.cluster.simulation.nodes import Fleet
from holdfast.kinds.cloudless import Workload
from holdfast.meta.objects import Key
from holdfast.operators.workload import view
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.plan import outlook
from holdfast.testing.clusters import Cluster
from holdfast.testing.snapshots import Snapshot
from holdfast.views.plans import PlanView

V1 = said("web:1", mostAvailable=4)
TO_V2 = said("web:1", rolling="web:2", progressedAt=ago(minutes=1))
HISTORY = [record("web:1", 1), record("web:2", 2)]
LATE = said("web:1", rolling="web:2", progressedAt=ago(hours=1))
NO_SURGE = {"minAvailable": 4, "maxSurge": 0}


# --- the budget


@pytest.mark.parametrize(
    ("rollout", "others", "kept"),
    [
        pytest.param({"minAvailable": 3}, [], "create web-floor 3", id="the floor"),
        pytest.param({}, [], "create web-floor 3", id="the default floor"),
        pytest.param({"minAvailable": 4}, [], "create web-floor 4", id="all replicas, where surge replaces them first"),
        pytest.param(NO_SURGE, [], "create web-floor 3", id="all but one, where a drain could not end"),
        pytest.param({"strategy": "Recreate"}, [], "create web-floor 3", id="also for Recreate"),
        pytest.param({"minAvailable": "0%"}, [], "", id="none without a floor"),
        pytest.param({"minAvailable": 0}, [], "create web-floor 3", id="the derived floor where the minimum is 0"),
        pytest.param({"disruptionBudget": "Unmanaged"}, [], "", id="none where it is switched off"),
        pytest.param({}, [budget(minAvailable=1)], "", id="none where another budget selects the replicas"),
        pytest.param(
            {},
            [budget("web-floor", minAvailable=3, selector={"matchLabels": {"app": "x"}})],
            "",
            id="a budget of its name with another owner stays",
        ),
        pytest.param(
            {"disruptionBudget": "Unmanaged"},
            [budget("web-floor", owned=True)],
            "delete web-floor",
            id="deleted when switched off",
        ),
        pytest.param(
            {},
            [budget("web-floor", owned=True), budget(minAvailable=2)],
            "delete web-floor",
            id="deleted when another budget comes",
        ),
        pytest.param({}, [budget("web-floor", owned=True, minAvailable=1)], "patch web-floor 3", id="corrected"),
        pytest.param(
            {},
            [budget("web-floor", owned=True, minAvailable=3, unhealthyPodEvictionPolicy="AlwaysAllow")],
            "",
            id="as it should be",
        ),
    ],
)
def test_the_controller_keeps_one_budget_for_the_floor(rollout: Wire, others: list[Placed], kept: str) -> None:
    decision = decided(web(status=V1, rollout=rollout), record("web:1"), pods("web:1", 4), others)
    assert kept_budget(decision) == kept


def test_the_budget_of_a_switched_workload_selects_the_revision_that_serves() -> None:
    """The replicas of the other revision serve nothing: they must not make up for those that do."""
    rollout = {"strategy": "BlueGreen", "minAvailable": 4, "blueGreen": {"autoPromote": False}}
    workload = web("web:2", status=TO_V2, rollout=rollout)
    decision = decided(workload, HISTORY, service(serving="web:1"), pods("web:1", 4), pods("web:2", 4))
    assert kept_budget(decision) == "create web-floor 4 of web:1"
    decision = decided(workload, HISTORY, service(serving="web:2"), pods("web:1", 4), pods("web:2", 4))
    assert kept_budget(decision) == "create web-floor 4 of web:2"


# --- stopping replicas while a node is cordoned

CORDONED = node("n3", cordoned=True)


def test_ready_replicas_are_evicted_while_a_node_of_the_replicas_is_cordoned() -> None:
    workload = web("web:2", status=TO_V2, rollout={"minAvailable": 3, "maxSurge": 1})
    there = [*HISTORY, *pods("web:1", 4), *pods("web:2", 1)]
    assert deeds(decided(workload, there)) == ["stop web1-0"]
    assert deeds(decided(workload, there, CORDONED)) == ["evict web1-3"]


@pytest.mark.parametrize(
    ("rollout", "others", "does"),
    [
        pytest.param({"minAvailable": 3}, [pod("late", "web:1", ready=False)], ["stop late"], id="not ready"),
        pytest.param(
            {"strategy": "Recreate"}, [], ["stop web1-3", "stop web1-0", "stop web1-1", "stop web1-2"], id="no floor"
        ),
        pytest.param(
            {"minAvailable": 3},
            [budget("a", minAvailable=1), budget("b", minAvailable=1)],
            ["stop web1-3"],
            id="two budgets, for which the API server refuses evictions",
        ),
    ],
)
def test_others_are_deleted_then_too(rollout: Wire, others: list[Placed], does: list[str]) -> None:
    decision = decided(web("web:2", status=TO_V2, rollout=rollout), HISTORY, pods("web:1", 4), CORDONED, others)
    assert deeds(decision) == does


# --- exceptions


def warning(decision: Any) -> str:
    warnings = status(decision)["limits"].get("warnings", ())
    return next((each["message"] for each in warnings if each["code"] == "FloorLowered"), "")


def test_a_budget_below_the_floor_is_announced_before_any_drain() -> None:
    decision = decided(web(status=V1, rollout=NO_SURGE), record("web:1"), pods("web:1", 4))
    assert condition(decision, "FloorLowered") == "True FloorLowered"
    assert "Warning FloorLowered" in notices(decision)
    assert warning(decision) == (
        "all 4 replicas must stay available and maxSurge is 0: a drain of a node may evict one replica at a time, "
        "so 3 of 4 replicas stay available, 1 fewer than the floor; "
        "to avoid this, set maxSurge to 1 or more, or minAvailable to 3 or less"
    )


@pytest.mark.parametrize("others", [[budget(minAvailable=4)], [budget("other", minAvailable=4)]])
def test_it_is_not_announced_where_another_budget_decides(others: list[Placed]) -> None:
    decision = decided(web(status=V1, rollout=NO_SURGE), record("web:1"), pods("web:1", 4), others)
    assert warning(decision) == ""
    switched_off = web(status=V1, rollout={**NO_SURGE, "disruptionBudget": "Unmanaged"})
    assert warning(decided(switched_off, record("web:1"), pods("web:1", 4))) == ""


def test_a_replica_that_an_announced_drain_evicts_does_not_break_the_floor() -> None:
    workload = web(status=V1, rollout=NO_SURGE)
    decision = decided(workload, record("web:1"), pods("web:1", 3))
    assert condition(decision, "FloorHeld") == "True FloorHeld"
    decision = decided(workload, record("web:1"), pods("web:1", 2))
    assert condition(decision, "FloorHeld") == "False BelowFloor"


FULL = {"minAvailable": 4, "maxSurge": 1}
GATE = {"strategy": "Canary", "canary": {"steps": [{"replicas": 1, "manual": True}]}}


@pytest.mark.parametrize(
    ("workload", "there", "kept"),
    [
        pytest.param(
            web(status=V1, rollout=FULL), pods("web:1", 4), "create web-floor 4", id="replaced before they go"
        ),
        pytest.param(
            web(status=V1, rollout={**FULL, "paused": True}), pods("web:1", 4), "create web-floor 3", id="paused"
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={**FULL, **GATE}),
            [*pods("web:2", 1), *pods("web:1", 3, created=ago(hours=3)), pod("last", node="n3")],
            "create web-floor 4",
            id="a step that gets further",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={**FULL, **GATE}),
            [*pods("web:2", 1), pod("a", node="n0"), pod("b", node="n1"), pod("c", node="n3")],
            "create web-floor 3",
            id="a step that waits for approval",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={**FULL, "strategy": "OnDelete"}),
            pods("web:1", 4),
            "create web-floor 3",
            id="OnDelete",
        ),
        pytest.param(
            web("web:2", status=TO_V2, rollout={**FULL, "partition": 4}),
            pods("web:1", 4),
            "create web-floor 3",
            id="partition",
        ),
        pytest.param(
            web("web:2", status=V1, rollout=FULL, envFrom=[{"configMapRef": {"name": "app"}}]),
            pods("web:1", 4),
            "create web-floor 3",
            id="a ConfigMap that is missing",
        ),
        pytest.param(
            web("web:2", status=LATE, rollout=FULL),
            [*pods("web:1", 4), pod("new", "web:2", ready=False)],
            "create web-floor 4",
            id="a missed deadline, which replaces nothing",
        ),
    ],
)
def test_a_drain_ends_although_the_rollout_waits(workload: Wire, there: list[Placed], kept: str) -> None:
    decision = decided(workload, HISTORY, there, CORDONED)
    assert kept_budget(decision) == kept
    assert ("n3" in warning(decision)) == (kept == "create web-floor 3")
    assert kept_budget(decided(workload, HISTORY, there)) == "create web-floor 4"


def test_the_view_shows_the_exception_and_the_lowest_point() -> None:
    workload = web(status=said("web:1", mostAvailable=4, lowestReady=2), rollout=NO_SURGE)
    decision = decided(workload, record("web:1"), pods("web:1", 4))
    decoded = kinds.decode(workload | {"status": status(decision)})
    assert isinstance(decoded, Workload)
    shown = view.standing(decoded)
    (floor,) = shown.floors
    assert (floor.ready, floor.floor, floor.lowered, floor.lowest) == (4, 3, 1, 2)
    assert shown.warnings == (warning(decision),)


def test_the_plan_shows_the_exception() -> None:
    workload = web("web:2", status=V1, rollout=NO_SURGE)
    world = Snapshot([(WORKLOADS, workload), *HISTORY, *pods("web:1", 4)], indexes=CONTROLLERS[0].indexes)
    plan = outlook(world, Key("default", "web"), NOW)
    assert isinstance(plan, PlanView)
    assert [each.code for each in plan.warnings] == ["FloorLowered"]


# --- whole drains


async def events(cluster: Cluster) -> list[str]:
    return [f"{each['type']} {each['reason']}" for each in await cluster.list(EVENTS)]


@pytest.mark.parametrize(
    ("rollout", "lowest", "announced"),
    [
        pytest.param({"minAvailable": 5}, 5, False, id="5 of 6"),
        pytest.param({"minAvailable": 6}, 6, False, id="6 of 6 with derived surge"),
        pytest.param({"minAvailable": 6, "maxSurge": 0}, 5, True, id="6 of 6 without surge"),
        pytest.param({"minAvailable": 6, "paused": True}, 5, True, id="6 of 6 while the rollout is paused"),
        pytest.param({"minAvailable": 6, "strategy": "OnDelete"}, 5, True, id="6 of 6 that only deletions replace"),
        pytest.param({"minAvailable": 6, "strategy": "BlueGreen"}, 6, False, id="6 of 6 behind a Service"),
    ],
)
@pytest.mark.parametrize("rolling", [False, True])
def test_a_drain_of_the_node_with_all_replicas_keeps_the_floor_and_ends(
    rollout: Wire, lowest: int, announced: bool, rolling: bool
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.patch(NODES, "node-2", {"spec": {"unschedulable": True}})
        async with Witness(cluster, floor=lowest).watching() as witness, operator(cluster, witness.client):
            running = {**rollout, "paused": False}
            await cluster.create(WORKLOADS, workload_of(replicas=6, rollout=running))
            await reaches(cluster, "Completed")
            await cluster.patch(NODES, "node-2", {"spec": {"unschedulable": False}})
            await change(cluster, rollout=rollout)
            await cluster.settle()
            witness.begin()
            if rolling:
                await change(cluster, image="web:2")
                await cluster.advance(2)
            await drain(cluster, "node-1")
            assert (await cluster.get(WORKLOADS, "web"))["status"]["rollout"]["lowestReady"] >= lowest
            await change(cluster, rollout={"paused": False, "maxSurge": 1})
            await reaches(cluster, "Completed")
            assert witness.lowest >= lowest
            assert witness.breaches == []
            found = await events(cluster)
            assert ("Warning FloorLowered" in found) == announced
            # An exception that lasts as long as the drain is over before the last replacement is ready.
            assert "Warning BelowFloor" not in found or (announced and "maxSurge" not in rollout)
        assert {each["spec"]["nodeName"] for each in await cluster.list(PODS)} == {"node-2"}

    staged(story, defaults=SLOW, nodes=Fleet(count=2), controllers=[budgets.CONTROLLER])


def test_pods_that_another_client_deletes_below_the_floor_are_reported() -> None:
    """A drain took a Workload with a floor of 5 of 6 to no ready replica, and no Event said so."""

    async def story(cluster: Cluster) -> None:
        async with operator(cluster):
            await cluster.create(WORKLOADS, workload_of(replicas=6, rollout={"minAvailable": 5}))
            await reaches(cluster, "Completed")
            assert "Warning BelowFloor" not in await events(cluster)
            for each in await cluster.list(PODS):
                await cluster.delete(PODS, each["metadata"]["name"])
            await cluster.settle()
            said = (await cluster.get(WORKLOADS, "web"))["status"]
            assert condition(said, "FloorHeld") == "False BelowFloor"
            assert condition(said, "Degraded") == "True TooFewAvailable"
            said = await reaches(cluster, "Completed")
            assert (condition(said, "FloorHeld"), said["rollout"]["lowestReady"]) == ("True FloorHeld", 0)
            assert "Warning BelowFloor" in await events(cluster)
            # The next rollout has a lowest point of its own.
            await change(cluster, image="web:2")
            assert (await reaches(cluster, "Completed"))["rollout"]["lowestReady"] == 5

    staged(story, defaults=SLOW)


def test_a_recreate_rollout_breaks_no_floor_that_it_declared() -> None:
    async def story(cluster: Cluster) -> None:
        async with operator(cluster):
            await cluster.create(WORKLOADS, workload_of(replicas=4, rollout={"strategy": "Recreate"}))
            await reaches(cluster, "Completed")
            await change(cluster, image="web:2")
            said = await reaches(cluster, "Completed")
            assert said["rollout"]["lowestReady"] == 0
            assert await images(cluster) == ["web:2"] * 4
            found = await events(cluster)
            assert "Warning FloorNotGuaranteed" in found
            assert "Warning BelowFloor" not in found
            for each in await cluster.list(PODS):
                await cluster.delete(PODS, each["metadata"]["name"])
            await because(cluster, "Completed")
            assert "Warning BelowFloor" in await events(cluster)

    staged(story, defaults=SLOW)
