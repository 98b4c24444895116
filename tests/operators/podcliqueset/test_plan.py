"""The plan of a PodCliqueSet: one for each part that changes, made by the functions that the controllers run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    SETS,
    Cluster,
    changed,
    clique,
    filmed,
    is_ready,
    pcs,
    pods,
    simulated,
    until_available,
    until_updated,
    update,
    workload,
)
from tests.operators.podcliqueset.worlds import the_set

from holdfast.client.resources import BUDGETS, NODES, PODS
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.cliques.observe import ORPHANS, OTHERS_BUDGETS
from holdfast.operators.podcliqueset.plan import outlook
from holdfast.operators.rollouts import Refusal
from holdfast.testing.snapshots import Snapshot
from holdfast.views.plans import PlanSummary

NOW = datetime(2040, 1, 1, tzinfo=UTC)


async def planned(cluster: Cluster, manifest: Mapping[str, Any]) -> PlanSummary:
    """The plan as if the manifest were applied now."""
    view = Snapshot(indexes=(OTHERS_BUDGETS, ORPHANS))
    for resource in (SETS, CLIQUES, GROUPS, PODS, BUDGETS, NODES):
        for each in await cluster.list(resource):
            view.put(resource, each)
    name = manifest["metadata"]["name"]
    have = await cluster.get(SETS, name)
    view.put(SETS, {**have, "spec": {**have["spec"], **manifest["spec"]}})
    made = outlook(view, Key("default", name), NOW)
    assert isinstance(made, PlanSummary)
    return made


def test_the_plan_goes_as_low_in_each_part_as_the_update_then_does() -> None:
    manifest = workload(replicas=2)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        plan = await planned(cluster, changed(manifest, "pc-a"))
        assert {part.name: (part.min_available, part.lowest_ready) for part in plan.parts} == {
            "wl-0-pc-a": (2, 1),
            "wl-1-pc-a": (2, 1),
        }
        assert all([warning.code.value for warning in part.warnings] == ["FloorLowered"] for part in plan.parts)
        ready = {pod["metadata"]["name"]: clique_of(pod) for pod in await pods(cluster) if is_ready(pod)}
        lowest = {part.name: part.min_available for part in plan.parts}
        async with filmed(cluster, PODS) as film:
            await update(cluster, changed(manifest, "pc-a"))
            await until_updated(cluster)
        for event, pod in film.frames:
            ready.pop(pod["metadata"]["name"], None)
            if event != "Deleted" and is_ready(pod) and "deletionTimestamp" not in pod["metadata"]:
                ready[pod["metadata"]["name"]] = clique_of(pod)
            lowest = {name: min(least, [*ready.values()].count(name)) for name, least in lowest.items()}
        assert lowest == {part.name: part.lowest_ready for part in plan.parts}

    simulated(story)


def clique_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"].get(labels.CLIQUE, ""))


def test_the_plan_of_a_scaling_group_counts_its_replicas_and_the_order_of_the_set_is_said() -> None:
    manifest = workload(replicas=2)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        plan = await planned(cluster, changed(manifest, "pc-c"))
        assert [(part.name, part.desired, part.lowest_ready) for part in plan.parts] == [
            ("wl-0-sg-x", 2, 1),
            ("wl-1-sg-x", 2, 1),
        ]
        assert "one after another, in the order 0, 1" in plan.notes[0]
        assert [names for _, names in plan.alike] == [("wl-0-sg-x", "wl-1-sg-x")]

    simulated(story)


def test_the_plan_of_a_set_that_does_not_change_has_no_parts_and_one_of_more_replicas_creates_theirs() -> None:
    manifest = workload()

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        assert (await planned(cluster, manifest)).parts == ()
        larger = await planned(cluster, {**manifest, "spec": {**manifest["spec"], "replicas": 2}})
        assert [(part.name, part.current, part.desired) for part in larger.parts] == [
            ("wl-1-pc-a", 0, 2),
            ("wl-1-sg-x", 0, 2),
        ]
        assert not any(part.warnings for part in larger.parts), "nothing is replaced, so no floor is lowered"
        smaller = await planned(cluster, {**manifest, "spec": {**manifest["spec"], "replicas": 0}})
        assert smaller.notes[-1] == "1 replica of the set deleted: 0"

    simulated(story)


def test_with_on_delete_the_plan_replaces_nothing_and_says_who_deletes_the_pods() -> None:
    manifest = workload(strategy={"type": "OnDelete"})

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        plan = await planned(cluster, changed(manifest, "pc-a"))
        assert plan.parts == ()
        assert "pods of wl-0-pc-a get the new template when you delete them" in plan.notes[-1]

    simulated(story)


def test_a_set_that_cannot_be_carried_out_has_no_plan_but_a_reason() -> None:
    cycle = clique("a", after=["b"]), clique("b", after=["a"])
    made = the_set(pcs("wl", *cycle, cliqueStartupType="CliqueStartupTypeExplicit"))
    found = outlook(Snapshot([(SETS, made)], indexes=(OTHERS_BUDGETS, ORPHANS)), Key("default", "wl"), NOW)
    assert isinstance(found, Refusal)
    assert "in a cycle" in found.message
