"""Drains: the disruption budget of each PodClique, and pods on cordoned nodes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    SETS,
    Cluster,
    changed,
    events,
    filmed,
    pods,
    simulated,
    until_available,
    until_updated,
    update,
)
from tests.operators.podcliqueset.test_bounded import READY, lowest_and_highest
from tests.operators.podcliqueset.worlds import (
    at,
    budget_writes,
    clique,
    created,
    decided,
    deleted,
    evicted,
    group,
    pcs,
    pod,
    stored,
    the_clique,
    the_set,
    touched,
)
from tests.operators.pods import drain

from holdfast.client.resources import BUDGETS, NODES, PODS
from holdfast.runtime.decisions import Create, Delete, Patch

SURGE = {"rollingUpdate": {"maxSurge": 1}}


def three(minimum: int | None = 2, **more: Any) -> Any:
    made = the_set(pcs("wl", clique("a", 3, minimum=minimum), **more))
    part = the_clique(made)
    return made, part, [pod(name, part, index=index, node=f"n{index}") for index, name in enumerate("abc")]


def node(name: str) -> Any:
    return NODES, {"metadata": {"name": name}, "spec": {"unschedulable": True}}


def budget(name: str, labels: dict[str, str], *, owner: Any = None, floor: int = 2) -> Any:
    spec = {
        "minAvailable": floor,
        "selector": {"matchLabels": labels},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return BUDGETS, stored(BUDGETS, {"metadata": {"name": name}, "spec": spec}, owner=owner)


# --- budgets


@pytest.mark.parametrize(
    ("minimum", "strategy", "floor"),
    [
        pytest.param(2, {}, 2, id="minAvailable"),
        pytest.param(1, {}, 2, id="all but one, since one may be down"),
        pytest.param(3, {}, 2, id="all but one, where all are needed and none may surge"),
        pytest.param(3, SURGE, 3, id="all, where one may surge"),
        pytest.param(1, {"rollingUpdate": {"maxUnavailable": 2}}, 1, id="the user's bounds"),
    ],
)
def test_a_budget_keeps_the_floor(minimum: int, strategy: dict[str, Any], floor: int) -> None:
    made, part, there = three(minimum, strategy=strategy)
    (write,) = budget_writes(decided(made, part, there))
    assert isinstance(write, Create)
    assert write.manifest["metadata"]["name"] == "wl-0-a"
    assert write.manifest["spec"]["minAvailable"] == floor
    assert write.manifest["spec"]["selector"] == {"matchLabels": {"grove.io/podclique": "wl-0-a"}}


def test_a_budget_is_patched_when_the_floor_changes_and_left_alone_otherwise() -> None:
    made, part, there = three()
    labels = {"grove.io/podclique": "wl-0-a"}
    assert budget_writes(decided(made, part, there, [budget("wl-0-a", labels, owner=part)])) == []
    (write,) = budget_writes(decided(made, part, there, [budget("wl-0-a", labels, owner=part, floor=1)]))
    assert isinstance(write, Patch)


@pytest.mark.parametrize(
    ("strategy", "others"),
    [
        pytest.param({}, [budget("theirs", {"app.kubernetes.io/part-of": "wl"})], id="another budget selects the pods"),
        pytest.param({"disruptionBudget": "Unmanaged"}, [], id="switched off"),
    ],
)
def test_no_budget_is_kept(strategy: dict[str, Any], others: list[Any]) -> None:
    made, part, there = three(strategy=strategy)
    assert budget_writes(decided(made, part, there, others)) == []
    ours = budget("wl-0-a", {"grove.io/podclique": "wl-0-a"}, owner=part)
    (write,) = budget_writes(decided(made, part, there, [*others, ours]))
    assert isinstance(write, Delete)


def test_a_clique_of_one_pod_has_no_budget() -> None:
    made = the_set(pcs("wl", clique("a")))
    part = the_clique(made)
    assert budget_writes(decided(made, part, [pod("a", part)])) == []


# --- cordoned nodes


def test_without_surge_a_cordon_moves_nothing() -> None:
    made, part, there = three()
    assert not touched(decided(made, part, there, [node("n0")]))


def test_with_surge_a_pod_is_started_before_one_on_a_cordoned_node_is_evicted() -> None:
    made, part, there = three(3, strategy=SURGE)
    first = decided(made, part, there, [node("n0")])
    assert (created(first), deleted(first), evicted(first)) == (1, [], [])
    there.append(pod("d", part, index=3, node="n3", created=1))
    then = decided(made, part, there, [node("n0")])
    assert (created(then), deleted(then), evicted(then)) == (0, [], ["a"])


def test_an_update_evicts_ready_pods_while_a_node_is_cordoned() -> None:
    made = the_set(pcs("wl", clique("a", 3, minimum=2)), turn=0)
    part = the_clique(made)
    part["status"] = {
        "updateProgress": {
            "updateStartedAt": at(1),
            "podTemplateHash": part["metadata"]["labels"]["grove.io/pod-template-hash"],
            "podCliqueSetGenerationHash": made["status"]["currentGenerationHash"],
        }
    }
    there = [pod(name, part, index=index, node=f"n{index}", outdated=True) for index, name in enumerate("abc")]
    assert (deleted(decided(made, part, there)), evicted(decided(made, part, there))) == (["a"], [])
    cordoned = decided(made, part, there, [node("n2")])
    assert (deleted(cordoned), evicted(cordoned)) == ([], ["a"])


# --- whole drains


@pytest.mark.parametrize(
    ("minimum", "strategy", "lowest"),
    [
        pytest.param(2, {}, 3, id="one may be down"),
        pytest.param(4, {}, 3, id="all are needed and none may surge"),
        pytest.param(4, SURGE, 4, id="all are needed and one may surge"),
    ],
)
@pytest.mark.parametrize("rolling", [False, True])
def test_a_drain_of_the_node_with_all_pods_keeps_the_floor_and_ends(
    minimum: int, strategy: dict[str, Any], lowest: int, rolling: bool
) -> None:
    manifest = pcs("wl", clique("a", 4, minimum=minimum, annotations=READY), strategy=strategy)

    async def story(cluster: Cluster) -> None:
        await cluster.patch(NODES, "node-2", {"spec": {"unschedulable": True}})
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await cluster.patch(NODES, "node-2", {"spec": {"unschedulable": None}})
        await cluster.settle()
        before = await pods(cluster)
        async with filmed(cluster, PODS) as film:
            if rolling:
                await update(cluster, changed(manifest))
                await cluster.advance(0.5)
            await drain(cluster, "node-1")
            await (until_updated if rolling else until_available)(cluster)
            await cluster.advance(10)
        assert lowest_and_highest(film, before)[0] == lowest
        now = await pods(cluster)
        assert {each["spec"]["nodeName"] for each in now} == {"node-2"}
        assert sorted(each["metadata"]["labels"]["grove.io/podclique-pod-index"] for each in now) == [
            "0",
            "1",
            "2",
            "3",
        ]
        if minimum < 4 or strategy:
            assert "BelowFloor" not in {reason for _, reason, _ in await events(cluster)}

    simulated(story, nodes=2)


def test_every_clique_of_more_than_one_pod_has_a_budget_which_goes_with_it() -> None:
    manifest = pcs("wl", clique("a", 2), clique("b", 2), clique("c"), group("g", "b", "c", replicas=2))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await cluster.settle()
        found = {each["metadata"]["name"]: each for each in await cluster.list(BUDGETS)}
        assert sorted(found) == ["wl-0-a", "wl-0-g-0-b", "wl-0-g-1-b"]
        assert {each["status"]["disruptionsAllowed"] for each in found.values()} == {1}
        await cluster.delete(BUDGETS, "wl-0-a")
        await cluster.settle()
        assert len(await cluster.list(BUDGETS)) == 3, "a budget that is deleted is created again"
        await cluster.patch(SETS, "wl", {"spec": {"updateStrategy": {"disruptionBudget": "Unmanaged"}}})
        await cluster.advance(5)
        assert await cluster.list(BUDGETS) == []
        await cluster.patch(SETS, "wl", {"spec": {"updateStrategy": {"disruptionBudget": "Managed"}}})
        await cluster.advance(5)
        assert len(await cluster.list(BUDGETS)) == 3
        await cluster.delete(SETS, "wl")
        await cluster.advance(10)
        assert not await cluster.list(CLIQUES)
        assert not await cluster.list(BUDGETS)

    simulated(story)
