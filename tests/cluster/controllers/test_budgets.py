"""PodDisruptionBudgets: what their status says, and what evictions make of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.cluster.rollouts import GOING, LABELS, NOW, deployment, metadata, new_deployment, pod, replica_set, says

from holdfast.client.objects import Object
from holdfast.client.resources import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from holdfast.cluster.controllers import budgets, deployments, replicasets
from holdfast.cluster.controllers.budgets import CONTROLLER, Scalable, decide, observe
from holdfast.kernel.outcomes import Again, Done
from holdfast.kinds import by_name
from holdfast.meta.errors import TooManyRequests
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Decision
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look
from holdfast.testing.snapshots import Snapshot

READY = "2030-01-01T11:00:00Z"
STAMP = "2030-01-01T12:00:00Z"
RECENT = "2030-01-01T11:59:00Z"

Thing = tuple[Resource, dict[str, Any]]


def budget(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata("b", generation=3),
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
        "status": status or {},
    }


def stateful_set(replicas: int) -> dict[str, Any]:
    made = replica_set("db", replicas=replicas)
    return {**made, "kind": "StatefulSet"}


def pods_of(owner: dict[str, Any] | None, ready: int, unready: int = 0) -> list[Thing]:
    name = owner["metadata"]["name"] if owner else "bare"
    up = [pod(f"{name}-{number}", owner=owner, ready=READY) for number in range(ready)]
    down = [pod(f"{name}-{number}", owner=owner) for number in range(ready, ready + unready)]
    return [(PODS, each) for each in (*up, *down)]


def decided(wire: dict[str, Any], *things: Thing) -> Decision:
    world = observe(Snapshot([(BUDGETS, wire), *things]), Key("default", "b"))
    assert world is not None
    return decide(world, NOW)


def counts(decision: Decision) -> tuple[int, int, int, int]:
    status = decision.status
    assert status is not None
    return status["expectedPods"], status["desiredHealthy"], status["currentHealthy"], status["disruptionsAllowed"]


DB, WEB = stateful_set(5), replica_set("web-1", replicas=3)


@pytest.mark.parametrize(
    ("why", "spec", "things", "expected"),
    [
        ("a number of pods is counted among those there are", {"minAvailable": 2}, pods_of(DB, 3), (3, 2, 3, 1)),
        ("also where they have no controller", {"minAvailable": 1}, pods_of(None, 2), (2, 1, 2, 1)),
        ("those that are not ready do not count", {"minAvailable": 2}, pods_of(DB, 2, 1), (3, 2, 2, 0)),
        ("never less than none", {"minAvailable": 9}, pods_of(DB, 2), (2, 9, 2, 0)),
        ("none is allowed where none is expected", {"minAvailable": 0}, [], (0, 0, 0, 0)),
        ("a part is of what is wanted, rounded up", {"minAvailable": "50%"}, pods_of(DB, 3), (5, 3, 3, 0)),
        ("also of what may be missing", {"maxUnavailable": "30%"}, pods_of(DB, 5), (5, 3, 5, 2)),
        ("what may be missing is of what is wanted", {"maxUnavailable": 1}, pods_of(DB, 4), (5, 4, 4, 0)),
        ("more than all may be missing", {"maxUnavailable": 9}, pods_of(DB, 4), (5, 0, 4, 4)),
        ("several controllers add up", {"maxUnavailable": 1}, [*pods_of(DB, 5), *pods_of(WEB, 3)], (8, 7, 8, 1)),
        ("one that says nothing allows nothing", {}, pods_of(DB, 5), (0, 0, 5, 0)),
    ],
)
def test_what_a_budget_counts(
    why: str, spec: dict[str, Any], things: list[Thing], expected: tuple[int, int, int, int]
) -> None:
    owners: list[Thing] = [(STATEFUL_SETS, DB), (REPLICA_SETS, WEB)]
    assert counts(decided(budget(**spec), *owners, *things)) == expected, why


def test_pods_of_a_deployment_are_expected_as_it_is_scaled_whatever_its_replica_sets_are() -> None:
    above = deployment(replicas=4)
    one, two = (replica_set(f"web-{number}", replicas=number, owner=above) for number in (1, 2))
    owners: list[Thing] = [(DEPLOYMENTS, above), (REPLICA_SETS, one), (REPLICA_SETS, two)]
    decision = decided(budget(maxUnavailable=1), *owners, *pods_of(one, 1), *pods_of(two, 2))
    assert counts(decision) == (4, 3, 3, 0)


def test_pods_on_their_way_out_are_not_healthy() -> None:
    going = pod("db-1", owner=DB, ready=READY, meta=GOING)
    assert counts(decided(budget(minAvailable=1), *pods_of(DB, 1), (PODS, going))) == (2, 1, 1, 0)


@pytest.mark.parametrize(
    ("ready", "status", "reason"), [(3, "True", "SufficientPods"), (2, "False", "InsufficientPods")]
)
def test_the_condition_says_whether_a_pod_may_go(ready: int, status: str, reason: str) -> None:
    decision = decided(budget(minAvailable=2), *pods_of(DB, ready, 3 - ready))
    assert decision.status is not None
    assert decision.status["observedGeneration"] == 3
    assert decision.status["conditions"] == [
        {
            "type": "DisruptionAllowed",
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": STAMP,
            "observedGeneration": 3,
        }
    ]


def test_the_same_world_gives_the_same_status_later() -> None:
    first = decided(budget(minAvailable=2), *pods_of(DB, 3)).status
    world = observe(
        Snapshot([(BUDGETS, budget(minAvailable=2, status=dict(first or {}))), *pods_of(DB, 3)]), Key("default", "b")
    )
    assert world is not None
    assert decide(world, NOW + timedelta(hours=1)).status == first


# --- what cannot be computed


@pytest.mark.parametrize(
    ("why", "owner", "message"),
    [
        ("the controller is not there", stateful_set(3), 'found no controllers for pod "db-0"'),
        (
            "the controller cannot be scaled",
            {**stateful_set(3), "kind": "Job", "apiVersion": "batch/v1"},
            "jobs.batch does not implement the scale subresource",
        ),
    ],
)
def test_a_budget_that_cannot_be_counted_allows_nothing(why: str, owner: dict[str, Any], message: str) -> None:
    before = {
        "expectedPods": 3,
        "desiredHealthy": 2,
        "currentHealthy": 3,
        "disruptionsAllowed": 1,
        "observedGeneration": 2,
    }
    decision = decided(budget(maxUnavailable=1, status=before), *pods_of(owner, 2))
    assert counts(decision) == (3, 2, 3, 0), why
    assert decision.status is not None
    (condition,) = decision.status["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SyncFailed", message)
    assert condition["observedGeneration"] == 2, "the new generation has not been counted"
    assert [notice.reason for notice in decision.notices] == ["CalculateExpectedPodCountFailed"]


def test_pods_without_a_controller_are_reported_where_a_percentage_is_meant() -> None:
    decision = decided(budget(maxUnavailable=1), (STATEFUL_SETS, DB), *pods_of(DB, 2), *pods_of(None, 1))
    assert [(notice.type, notice.reason) for notice in decision.notices] == [("Warning", "UnmanagedPods")]
    assert decided(budget(minAvailable=1), *pods_of(None, 1)).notices == ()


def test_a_budget_without_pods_says_so() -> None:
    (notice,) = decided(budget(minAvailable=1)).notices
    assert (notice.type, notice.reason, notice.message) == ("Normal", "NoPods", "No matching pods found")


def test_a_kind_of_ours_that_can_be_scaled_counts_too() -> None:
    kind = by_name("PodClique")
    assert kind is not None
    scalable = Scalable.of(kind)
    assert scalable is not None
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata("gang"), "spec": {"replicas": 6}}
    world = budgets.controller([kind]).observe(
        Snapshot([(BUDGETS, budget(maxUnavailable=2)), (scalable.resource, owner), *pods_of(owner, 5)]),
        Key("default", "b"),
    )
    assert world is not None
    assert counts(decide(world, NOW)) == (6, 4, 5, 1)


# --- evicted pods


def test_an_evicted_pod_is_not_counted_while_it_may_still_go() -> None:
    wire = budget(minAvailable=1, status={"disruptedPods": {"db-0": RECENT, "gone": RECENT}})
    decision = decided(wire, *pods_of(DB, 3))
    assert counts(decision) == (3, 1, 2, 1)
    assert decision.status is not None
    assert decision.status["disruptedPods"] == {"db-0": RECENT}
    assert isinstance(decision.outcome, Again)
    assert decision.outcome.after == timedelta(seconds=60)


def test_an_evicted_pod_that_did_not_go_counts_again_and_is_told_of() -> None:
    wire = budget(minAvailable=1, status={"disruptedPods": {"db-0": "2030-01-01T11:57:59Z"}})
    decision = decided(wire, *pods_of(DB, 3))
    assert counts(decision) == (3, 1, 3, 2)
    assert decision.status is not None
    assert "disruptedPods" not in decision.status
    (notice,) = decision.notices
    assert notice.reason == "NotDeleted"
    assert notice.about is not None
    assert notice.about["metadata"]["name"] == "db-0"
    assert decision.outcome == Done()


# --- whom a change concerns


def test_a_pod_brings_the_budgets_that_select_it_and_an_owner_those_that_speak_of_a_part() -> None:
    part = {**budget(maxUnavailable=1), "metadata": metadata("part")}
    other = {**budget(minAvailable=1, selector={"matchLabels": {"app": "other"}}), "metadata": metadata("other")}
    view = Snapshot([(BUDGETS, budget(minAvailable=1)), (BUDGETS, part), (BUDGETS, other)])
    by_pod = [key.name for key in budgets.selecting(Object.of(PODS, pod("p")), view)]
    assert by_pod == ["b", "part"]
    assert [key.name for key in budgets.relative(Object.of(REPLICA_SETS, WEB), view)] == ["part"]


# --- on the embedded server

ALL = (CONTROLLER, deployments.CONTROLLER, replicasets.CONTROLLER)
GUARD = {"metadata": {"name": "guard"}, "spec": {"minAvailable": "75%", "selector": {"matchLabels": {"app": "web"}}}}


async def evicted(cluster: Cluster, name: str) -> None:
    await cluster.client.post(PODS, Key("default", name), "eviction", {"metadata": {"name": name}})


async def _guarded(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, new_deployment())
    await cluster.create(BUDGETS, GUARD)
    await says(cluster, DEPLOYMENTS, "web", replicas=4)
    await cluster.report_all()
    await says(cluster, BUDGETS, "guard", expectedPods=4, desiredHealthy=3, currentHealthy=4, disruptionsAllowed=1)


def test_one_eviction_is_allowed_and_the_next_only_when_the_pod_is_replaced() -> None:
    async def story(cluster: Cluster) -> None:
        await _guarded(cluster)
        first, second, *_ = [each["metadata"]["name"] for each in await cluster.list(PODS)]
        await evicted(cluster, first)
        await says(cluster, BUDGETS, "guard", currentHealthy=3, disruptionsAllowed=0, disruptedPods=None)
        with pytest.raises(TooManyRequests):
            await evicted(cluster, second)
        await says(cluster, DEPLOYMENTS, "web", replicas=4)
        await cluster.report_all()
        await says(cluster, BUDGETS, "guard", currentHealthy=4, disruptionsAllowed=1)
        await evicted(cluster, second)

    play(story, controllers=ALL)


def test_an_eviction_that_comes_to_nothing_is_forgotten_in_time() -> None:
    async def story(cluster: Cluster) -> None:
        await _guarded(cluster)
        name = (await cluster.list(PODS))[0]["metadata"]["name"]
        stamp = {"disruptedPods": {name: "2030-01-01T00:00:00Z"}, "disruptionsAllowed": 0}
        await cluster.patch(BUDGETS, "guard", {"status": stamp}, subresource="status")
        await says(cluster, BUDGETS, "guard", currentHealthy=3)
        await cluster.advance(150)
        await says(cluster, BUDGETS, "guard", currentHealthy=4, disruptedPods=None)

    play(story, controllers=ALL)


async def _counted(cluster: Cluster) -> None:
    await cluster.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": replica_set(replicas=2)["spec"]})
    await cluster.create(BUDGETS, GUARD)
    await says(cluster, REPLICA_SETS, "web", replicas=2)
    await cluster.report_all()
    await says(cluster, BUDGETS, "guard", expectedPods=2, currentHealthy=2)


SCENARIO = Scenario(name="a budget", controllers=(CONTROLLER, replicasets.CONTROLLER), story=_counted, patience=30)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)
