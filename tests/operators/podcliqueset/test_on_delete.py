"""With OnDelete nobody but people replaces pods; what comes back is of the new template."""

from __future__ import annotations

from typing import Any

from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    SETS,
    Cluster,
    changed,
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

ON_DELETE = {"type": "OnDelete"}
MANIFEST = workload(strict=False, strategy=ON_DELETE)


async def begin(cluster: Cluster, manifest: dict[str, Any]) -> set[str]:
    await cluster.create(SETS, manifest)
    await until_available(cluster)
    return await names(cluster)


async def names(cluster: Cluster) -> set[str]:
    return {pod["metadata"]["name"] for pod in await pods(cluster)}


async def some(cluster: Cluster, clique: str) -> list[dict[str, Any]]:
    return [pod for pod in await pods(cluster) if pod["metadata"]["labels"][labels.TEMPLATE] == clique]


def is_new(pod: dict[str, Any]) -> bool:
    env = pod["spec"]["containers"][0].get("env") or ()
    return any(each["name"] == "UPDATE_TRIGGER" for each in env)


async def untouched(cluster: Cluster, before: set[str]) -> None:
    """The update has begun and ended, and no pod went."""
    await cluster.advance(60)
    assert await names(cluster) == before
    progress = (await status(cluster))["rollingUpdateProgress"]
    assert progress["updateStartedAt"] == progress["updateEndedAt"]
    assert "currentlyUpdating" not in progress


async def replaced(cluster: Cluster, *pods: dict[str, Any]) -> None:
    for pod in pods:
        await cluster.delete(PODS, pod["metadata"]["name"])
    await cluster.advance(10)


def test_od_1_nothing_is_deleted_and_the_update_has_ended() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, MANIFEST)
        await update(cluster, changed(MANIFEST))
        await untouched(cluster, before)
        assert (await status(cluster))["updatedReplicas"] == 0

    simulated(story)


def test_od_2_and_5_a_pod_that_somebody_deletes_comes_back_new_in_cliques_and_in_groups() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, MANIFEST)
        await update(cluster, changed(MANIFEST))
        await untouched(cluster, before)
        for clique, parent in (("pc-a", "wl-0-pc-a"), ("pc-c", "wl-0-sg-x-0-pc-c")):
            victim = next(
                pod for pod in await some(cluster, clique) if pod["metadata"]["labels"][labels.CLIQUE] == parent
            )
            await replaced(cluster, victim)
            assert (await cluster.get(CLIQUES, parent))["status"]["updatedReplicas"] == 1
            assert sum(map(is_new, await some(cluster, clique))) == 1
        assert len(before & await names(cluster)) == 8

    simulated(story)


def test_od_3_and_4_what_shrinks_loses_outdated_pods_first() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster, MANIFEST)
        await update(cluster, changed(MANIFEST))
        await cluster.advance(5)
        await replaced(cluster, (await some(cluster, "pc-a"))[0])
        await scale(cluster, CLIQUES, "wl-0-pc-a", 1)
        await cluster.advance(5)
        assert [is_new(pod) for pod in await some(cluster, "pc-a")] == [True]
        await scale(cluster, GROUPS, "wl-0-sg-x", 1)
        await cluster.advance(5)
        marks = {pod["metadata"]["labels"].get(labels.GROUP_INDEX) for pod in await some(cluster, "pc-c")}
        assert marks == {"0"}

    simulated(story)


def test_od_6_and_7_updated_replicas_grow_as_people_delete_pods() -> None:
    async def story(cluster: Cluster) -> None:
        manifest = workload(strict=False, strategy=ON_DELETE, replicas=2)
        before = await begin(cluster, manifest)
        await update(cluster, changed(manifest))
        await untouched(cluster, before)
        first = [pod for pod in await pods(cluster) if pod["metadata"]["labels"][labels.SET_INDEX] == "0"]
        await replaced(cluster, *first[:4])
        assert (await status(cluster))["updatedReplicas"] == 0
        await replaced(cluster, *first[4:])
        assert (await status(cluster))["updatedReplicas"] == 1
        await replaced(cluster, *(pod for pod in await pods(cluster) if not is_new(pod)))
        final = await status(cluster)
        assert final["updatedReplicas"] == 2
        assert final["updateProgress"]["updatedPodCliquesCount"] == 2

    simulated(story)


def test_od_8_healthy_pods_stay_where_they_are_while_others_are_moved_elsewhere() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, MANIFEST)
        moved = changed(MANIFEST)
        for each in moved["spec"]["template"]["cliques"]:
            terms = [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-1"]}]}
            ]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            each["spec"]["podSpec"]["affinity"] = {"nodeAffinity": required}
        await update(cluster, moved)
        await untouched(cluster, before)
        await replaced(cluster, *(pod for pod in await pods(cluster) if pod["spec"]["nodeName"] == "node-1"))
        now = await pods(cluster)
        assert len(now) == 10
        assert "node-1" not in {pod["spec"]["nodeName"] for pod in now}
        assert len(before & {pod["metadata"]["name"] for pod in now}) >= 7

    simulated(story)


def test_od_9_from_on_delete_to_rolling_and_back() -> None:
    async def story(cluster: Cluster) -> None:
        before = await begin(cluster, MANIFEST)
        await update(cluster, changed(MANIFEST, "pc-a"))
        await untouched(cluster, before)
        await cluster.patch(SETS, "wl", {"spec": {"updateStrategy": {"type": "RollingRecreate"}}})
        await until_updated(cluster)
        assert all(is_new(pod) for pod in await some(cluster, "pc-a")), "what was left behind is rolled out now"
        await update(cluster, changed(MANIFEST, "pc-a", "pc-b"))
        await until_updated(cluster)
        assert all(is_new(pod) for pod in await some(cluster, "pc-b"))
        await cluster.patch(SETS, "wl", {"spec": {"updateStrategy": {"type": "OnDelete"}}})
        await cluster.settle()
        now = await names(cluster)
        await update(cluster, changed(MANIFEST))
        await untouched(cluster, now)

    simulated(story)


def test_an_update_that_runs_is_left_to_people_when_the_strategy_changes() -> None:
    async def story(cluster: Cluster) -> None:
        manifest = workload(replicas=2)
        await begin(cluster, manifest)
        await update(cluster, changed(manifest))

        async def running() -> bool:
            return "currentlyUpdating" in (await status(cluster)).get("rollingUpdateProgress", {})

        await cluster.until(running, step=0.1)
        await cluster.patch(SETS, "wl", {"spec": {"updateStrategy": ON_DELETE}})
        await cluster.advance(20)
        now = await names(cluster)
        await cluster.advance(60)
        assert await names(cluster) == now
        assert "updateEndedAt" in (await status(cluster))["rollingUpdateProgress"]
        assert (await status(cluster))["availableReplicas"] == 2

    simulated(story)
