"""What happens when something changes in the middle of an update, and what else went wrong elsewhere before."""

from __future__ import annotations

from typing import Any

from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GANGS,
    SETS,
    Cluster,
    changed,
    clique,
    filmed,
    group,
    pcs,
    pods,
    scale,
    simulated,
    status,
    until_available,
    until_updated,
    update,
    workload,
)

from holdfast.client.resources import PODS
from holdfast.operators.podcliqueset import labels

THREE = workload(replicas=3)


def trigger(pod: dict[str, Any]) -> str:
    env = pod["spec"]["containers"][0].get("env") or ()
    return next((each.get("value", "") for each in env if each["name"] == "UPDATE_TRIGGER"), "")


async def until_turn(cluster: Cluster, index: int) -> None:
    async def holds() -> bool:
        progress = (await status(cluster)).get("rollingUpdateProgress") or {}
        return bool((progress.get("currentlyUpdating") or {}).get("replicaIndex") == index)

    await cluster.until(holds, step=0.2)


async def by_replica(cluster: Cluster) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in await pods(cluster):
        found.setdefault(pod["metadata"]["labels"][labels.SET_INDEX], set()).add(pod["metadata"]["name"])
    return found


def test_400_another_template_in_the_middle_of_an_update_reaches_all_pods() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, THREE)
        await until_available(cluster)
        await update(cluster, changed(THREE, to="1"))
        await until_turn(cluster, 1)
        await update(cluster, changed(THREE, to="2"))
        await until_updated(cluster)
        assert {trigger(pod) for pod in await pods(cluster)} == {"2"}
        assert len(await pods(cluster)) == 30

    simulated(story)


def test_a_template_that_is_taken_back_midway_rolls_back_only_what_was_touched() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, THREE)
        steady = await until_available(cluster)
        before = await by_replica(cluster)
        await update(cluster, changed(THREE))
        await until_turn(cluster, 1)
        await update(cluster, THREE)
        final = await until_updated(cluster)
        after = await by_replica(cluster)
        assert {trigger(pod) for pod in await pods(cluster)} == {""}
        assert not before["0"] & after["0"], "what was updated is rolled back"
        assert before["2"] == after["2"], "what was not reached is left alone"
        assert final["currentGenerationHash"] == steady["currentGenerationHash"]

    simulated(story)


def test_a_pod_that_comes_back_before_its_replicas_turn_has_the_new_template_and_is_not_replaced_again() -> None:
    manifest = pcs("wl", clique("a", 2, annotations={"sim.holdfast.dev/ready-after": "5s"}), replicas=2)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await update(cluster, changed(manifest))
        await until_turn(cluster, 0)
        victim = next(pod for pod in await pods(cluster) if pod["metadata"]["labels"][labels.SET_INDEX] == "1")
        await cluster.delete(PODS, victim["metadata"]["name"])
        await cluster.advance(1)
        fresh = [pod["metadata"]["name"] for pod in await pods(cluster, "grove.io/podclique=wl-1-a") if trigger(pod)]
        assert len(fresh) == 1
        await until_updated(cluster)
        assert fresh[0] in (await by_replica(cluster))["1"]

    simulated(story)


def test_cliques_that_did_not_change_are_not_restarted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, THREE)
        await until_available(cluster)
        before = {pod["metadata"]["name"]: pod for pod in await pods(cluster)}
        await update(cluster, changed(THREE, "pc-a"))
        final = await until_updated(cluster)
        left = {pod["metadata"]["name"] for pod in await pods(cluster)} & set(before)
        assert {before[name]["metadata"]["labels"][labels.TEMPLATE] for name in left} == {"pc-b", "pc-c"}
        assert len(left) == 24
        assert final["updateProgress"]["updatedPodCliqueScalingGroupsCount"] == 3

    simulated(story)


def test_an_update_goes_on_where_it_was_when_the_operator_starts_anew() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, THREE)
        await until_available(cluster)
        async with filmed(cluster, SETS) as film:
            await update(cluster, changed(THREE))
            await until_turn(cluster, 1)
            await cluster.restart()
            await until_updated(cluster)
        turns = [(each.get("rollingUpdateProgress") or {}).get("currentlyUpdating") for each in film.statuses()]
        order = [turn["replicaIndex"] for turn in turns if turn is not None]
        assert sorted(order) == order

    simulated(story)


def test_316_a_gang_that_somebody_deletes_comes_back_and_nobody_stays_behind_its_gate() -> None:
    async def story(cluster: Cluster) -> None:
        manifest = workload()
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await cluster.delete(GANGS, "wl-0")
        victim = (await pods(cluster))[0]
        await cluster.delete(PODS, victim["metadata"]["name"])
        await cluster.advance(10)
        assert len((await cluster.get(GANGS, "wl-0"))["spec"]["podgroups"]) == 5
        assert not [pod for pod in await pods(cluster) if pod["spec"].get("schedulingGates")]
        assert (await until_available(cluster))["availableReplicas"] == 1

    simulated(story)


def test_gates_of_others_are_left_alone() -> None:
    manifest = pcs("wl", clique("a", spec={"podSpec": _gated()}))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await cluster.advance(5)
        (pod,) = await pods(cluster)
        assert pod["spec"]["schedulingGates"] == [{"name": "example.com/quota"}]

    simulated(story, nodes=1)


def _gated() -> dict[str, Any]:
    containers = [{"name": "main", "image": "nginx:1"}]
    return {"containers": containers, "schedulingGates": [{"name": "example.com/quota"}]}


def test_809_a_set_is_scaled_to_zero_and_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, workload())
        await until_available(cluster)
        await scale(cluster, SETS, "wl", 0)
        await cluster.advance(10)
        assert not await pods(cluster)
        assert (await status(cluster))["availableReplicas"] == 0
        await scale(cluster, SETS, "wl", 2)
        await until_available(cluster)
        assert len(await pods(cluster)) == 20

    simulated(story)


def test_423_the_end_of_many_cliques_is_a_cascade() -> None:
    cliques = [clique(f"c{index}") for index in range(20)]
    manifest = pcs("wl", *cliques, group("g", "c0", "c1"))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await cluster.delete(SETS, "wl")
        await cluster.advance(10)
        assert not await cluster.list(CLIQUES)
        assert not await cluster.list(PODS)
        assert not await cluster.list(GANGS)

    simulated(story)
