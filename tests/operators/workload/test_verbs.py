"""What people do to a rollout: pause, resume, promote, abort, retry, undo, restart; and Services that are switched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.operators.workload.stages import (
    Wire,
    annotate,
    because,
    change,
    images,
    operated,
    reaches,
    workload,
)
from tests.places import ROOT

from holdfast.client.resources import (
    CONTROLLER_REVISIONS,
    DEFINITIONS,
    ENDPOINTS,
    EVENTS,
    NAMESPACES,
    PODS,
    SERVICES,
)
from holdfast.cluster.controllers import endpoints
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.cluster.simulation.nodes import Fleet
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster

MANIFESTS = ROOT.parent / "shared" / "manifests" / "cloudless"
EXAMPLES = ROOT / "examples" / "workloads"

SMALL: Wire = {"minAvailable": 3, "maxSurge": 1}
REJECTED = "holdfast.dev/rejected-revision"


async def begun(cluster: Cluster, **rollout: Any) -> None:
    """Four replicas that are rolled out."""
    await cluster.create(WORKLOADS, workload(replicas=4, rollout={**SMALL, **rollout}))
    await reaches(cluster, "Completed")


def test_pause_and_resume() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await change(cluster, image="web:2", rollout={"paused": True})
        await reaches(cluster, "Paused")
        await cluster.advance(900)
        assert await images(cluster) == ["web:1"] * 4
        await change(cluster, rollout={"paused": None})
        await reaches(cluster, "Completed", within=60)
        assert await images(cluster) == ["web:2"] * 4

    operated(story)


def test_a_workload_that_is_paused_as_a_whole_is_left_alone() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await annotate(cluster, "holdfast.dev/paused", "true")
        await change(cluster, image="web:2", replicas=1)
        await cluster.delete(PODS, (await cluster.list(PODS))[0]["metadata"]["name"])
        await cluster.advance(60)
        assert await images(cluster) == ["web:1"] * 3
        await annotate(cluster, "holdfast.dev/paused", None)
        await reaches(cluster, "Completed")
        assert await images(cluster) == ["web:2"]

    operated(story)


def test_promote_step_by_step() -> None:
    steps = [{"replicas": 1, "manual": True}, {"weight": 50, "manual": True}, {"weight": 75, "pauseDuration": "20s"}]

    async def story(cluster: Cluster) -> None:
        await begun(cluster, strategy="Canary", canary={"steps": steps})
        await change(cluster, image="web:2")
        said = await because(cluster, "ApprovalNeeded")
        assert (said["rollout"]["step"], said["rollout"]["steps"], said["updatedReplicas"]) == (1, 4, 1)
        await annotate(cluster, "holdfast.dev/promoted", f"{said['updateRevision']}:1")

        async def second() -> bool:
            status = (await cluster.get(WORKLOADS, "web"))["status"]["rollout"]
            return bool(status["step"] == 2 and status["because"]["code"] == "ApprovalNeeded")

        await cluster.until(second)
        assert (await images(cluster)).count("web:2") == 2
        await annotate(cluster, "holdfast.dev/promoted", f"{said['updateRevision']}:2")
        said = await because(cluster, "StepPause")
        assert (said["rollout"]["step"], said["updatedReplicas"], "pausedUntil" in said["rollout"]) == (3, 3, True)
        await reaches(cluster, "Completed", within=40)
        assert await images(cluster) == ["web:2"] * 4

    operated(story)


def test_an_undo_survives_that_the_spec_is_applied_again_and_ends_with_a_retry() -> None:
    """As GitOps does, all the time."""

    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await change(cluster, image="web:2")
        bad = (await reaches(cluster, "Completed"))["currentRevision"]
        await annotate(cluster, REJECTED, bad)
        said = await because(cluster, "RevisionRejected")
        assert (said["phase"], said["rejectedRevision"]) == ("Failed", bad)
        assert await images(cluster) == ["web:1"] * 4
        await change(cluster, image="web:2")
        await cluster.advance(60)
        assert await images(cluster) == ["web:1"] * 4
        await annotate(cluster, REJECTED, None)
        await reaches(cluster, "Completed")
        assert await images(cluster) == ["web:2"] * 4

    operated(story)


def test_an_undo_to_a_certain_revision() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        first = (await cluster.get(WORKLOADS, "web"))["status"]["currentRevision"]
        for image in ("web:2", "web:3"):
            await change(cluster, image=image)
            last = (await reaches(cluster, "Completed"))["currentRevision"]
        await annotate(cluster, REJECTED, f"{last}:{first}")
        await because(cluster, "RevisionRejected")
        assert await images(cluster) == ["web:1"] * 4

    operated(story)


def test_a_restart_replaces_every_replica_above_the_floor() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        before = {pod["metadata"]["name"] for pod in await cluster.list(PODS)}
        await annotate(cluster, "holdfast.dev/restarted-at", "2030-01-01T00:00:10Z")

        async def replaced() -> bool:
            return before.isdisjoint({pod["metadata"]["name"] for pod in await cluster.list(PODS)})

        await cluster.until(replaced)
        said = await reaches(cluster, "Completed")
        assert (said["rollout"]["lowestReady"], await images(cluster)) == (3, ["web:1"] * 4)

    operated(story)


def test_on_delete_replaces_what_a_user_deletes() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster, strategy="OnDelete")
        await change(cluster, image="web:2")
        await because(cluster, "DeletionNeeded")
        for pod in await cluster.list(PODS):
            await cluster.delete(PODS, pod["metadata"]["name"])
            await cluster.advance(5)
        await reaches(cluster, "Completed")
        assert await images(cluster) == ["web:2"] * 4

    operated(story)


def test_the_history_is_kept_as_long_as_asked() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster, revisionHistoryLimit=2)
        for number in range(2, 7):
            await change(cluster, image=f"web:{number}")
            await reaches(cluster, "Completed")
        # A revision stays while one of its pods is terminating.
        await cluster.advance(60)
        kept = await cluster.list(CONTROLLER_REVISIONS)
        found = sorted((each["revision"], each["data"]["spec"]["image"]) for each in kept)
        assert found == [(4, "web:4"), (5, "web:5"), (6, "web:6")]

    operated(story)


# --- traffic

BLUE_GREEN: Wire = {"strategy": "BlueGreen", "blueGreen": {"scaleDownDelay": "60s"}}


async def addresses(cluster: Cluster, name: str = "web") -> int:
    found = await cluster.find(ENDPOINTS, name)
    return sum(len(subset.get("addresses", ())) for subset in (found or {}).get("subsets", ()))


def test_a_service_always_has_as_many_addresses_as_the_floor_needs() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(
            WORKLOADS, workload(replicas=4, rollout={**SMALL, **BLUE_GREEN}, ports=[{"containerPort": 80}])
        )
        await reaches(cluster, "Completed")
        await cluster.settle()
        assert await addresses(cluster) == 4
        await change(cluster, image="web:2")
        fewest = 4

        async def done() -> bool:
            nonlocal fewest
            fewest = min(fewest, await addresses(cluster))
            status = (await cluster.get(WORKLOADS, "web"))["status"]
            return bool(status["phase"] == "Completed" and status["updatedReplicas"] == 4)

        await cluster.until(done, step=0.1)
        assert fewest == 4

    operated(story, controllers=[endpoints.CONTROLLER])


def test_an_undo_within_the_delay_is_a_switch_and_starts_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(WORKLOADS, workload(replicas=4, rollout={**SMALL, **BLUE_GREEN}))
        first = (await reaches(cluster, "Completed"))["currentRevision"]
        blue = {pod["metadata"]["name"] for pod in await cluster.list(PODS)}
        await change(cluster, image="web:2")
        said = await because(cluster, "StepPause")
        selected = (await cluster.get(SERVICES, "web"))["spec"]["selector"]
        assert selected["cloudless.io/revision"] == said["updateRevision"] != first
        began = cluster.loop.time()
        await annotate(cluster, REJECTED, said["updateRevision"])
        await cluster.settle()
        selected = (await cluster.get(SERVICES, "web"))["spec"]["selector"]
        assert (selected["cloudless.io/revision"], cluster.loop.time()) == (first, began)
        await because(cluster, "RevisionRejected")
        await cluster.advance(1)
        assert {pod["metadata"]["name"] for pod in await cluster.list(PODS)} == blue

    operated(story)


def test_a_service_of_ones_own_is_bound_switched_and_released() -> None:
    async def story(cluster: Cluster) -> None:
        spec = {"selector": {"app": "shop"}, "ports": [{"port": 80}]}
        await cluster.create(SERVICES, {"metadata": {"name": "front"}, "spec": spec})
        rollout = {**SMALL, "strategy": "BlueGreen", "blueGreen": {"service": "front", "scaleDownDelay": "0s"}}
        await cluster.create(WORKLOADS, workload(replicas=4, rollout=rollout, metadata={"labels": {"app": "shop"}}))
        for image in ("web:1", "web:2"):
            await change(cluster, image=image)
            said = await reaches(cluster, "Completed")
            assert (await cluster.get(SERVICES, "front"))["spec"]["selector"] == {
                "app": "shop",
                "cloudless.io/workload": "web",
                "cloudless.io/revision": said["currentRevision"],
            }
        await change(cluster, rollout={"strategy": "RollingUpdate", "blueGreen": None})
        await cluster.settle()
        front = await cluster.get(SERVICES, "front")
        assert front["spec"]["selector"] == {"app": "shop", "cloudless.io/workload": "web"}
        assert "ownerReferences" not in front["metadata"]
        assert await cluster.find(SERVICES, "web") is None

    operated(story)


# --- what cannot be


def test_a_spec_that_slipped_in_is_told_and_its_replicas_are_kept() -> None:
    """The definition of an earlier release let it in."""

    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        definition = await cluster.get(DEFINITIONS, "workloads.cloudless.io")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        schema["properties"]["rollout"].pop("x-kubernetes-validations")
        schema["properties"]["image"] = {"x-kubernetes-preserve-unknown-fields": True}
        await cluster.patch(DEFINITIONS, "workloads.cloudless.io", {"spec": definition["spec"]})
        await change(cluster, image="web:2", rollout={"maxSurge": 0, "maxUnavailable": 0})
        said = await reaches(cluster, "Failed")
        blocked = next(each for each in said["conditions"] if each["type"] == "Blocked")
        assert (blocked["reason"], blocked["observedGeneration"]) == ("InvalidSpec", 2)
        assert blocked["message"].startswith("spec.rollout.maxSurge: maxSurge and maxUnavailable cannot both be 0")
        await change(cluster, image=5, rollout=None)
        await cluster.settle()
        said = (await cluster.get(WORKLOADS, "web"))["status"]
        blocked = next(each for each in said["conditions"] if each["type"] == "Blocked")
        assert (blocked["status"], blocked["observedGeneration"]) == ("True", 3)
        assert await images(cluster) == ["web:1"] * 4
        await change(cluster, image="web:2")
        await reaches(cluster, "Completed")
        reported = [event for event in await cluster.list(EVENTS) if event["reason"] == "InvalidSpec"]
        assert len(reported) == 2
        assert {event["type"] for event in reported} == {"Warning"}

    operated(story)


def test_a_status_that_is_lost_comes_back() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await change(cluster, image="web:2", rollout={"progressDeadline": "20s", "onFailure": "rollBack"})
        before = await reaches(cluster, "Completed")
        await cluster.patch(WORKLOADS, "web", {"status": None}, subresource="status")
        after = await reaches(cluster, "Completed")
        assert after["currentRevision"] == before["currentRevision"]
        # Lost midway, it still knows where to return to.
        await change(cluster, image="web:broken")
        await because(cluster, "WaitingForReady")
        await cluster.patch(WORKLOADS, "web", {"status": None}, subresource="status")
        await because(cluster, "RevisionRejected")
        assert await images(cluster) == ["web:2"] * 4

    operated(story)


def test_an_automatic_rollback_leaves_the_cause_in_the_status_and_in_a_warning() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await change(cluster, image="web:broken", rollout={"progressDeadline": "50s", "onFailure": "rollBack"})
        said = await because(cluster, "RevisionRejected")
        why = said["rejection"]
        assert why["revision"] == said["rejectedRevision"]
        assert f"pod {why['pod']}" in said["rollout"]["because"]["message"]

        async def deleted() -> bool:
            return why["pod"] not in {pod["metadata"]["name"] for pod in await cluster.list(PODS)}

        await cluster.until(deleted)
        assert (await cluster.get(WORKLOADS, "web"))["status"]["rejection"] == why
        events = [event for event in await cluster.list(EVENTS) if event["reason"] == "RevisionRejected"]
        assert [event["type"] for event in events if why["pod"] in event["message"]] == ["Warning"]
        await annotate(cluster, REJECTED, None)
        said = await because(cluster, "WaitingForReady")
        assert "rejection" not in said

    operated(story)


def test_a_workload_of_another_namespace_and_a_long_name_is_deleted_with_all_it_made() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
        name = f"{'very-' * 20}long.name"
        made = workload(name=name, replicas=2, rollout={}, metadata={"namespace": "shop"})
        await cluster.create(WORKLOADS, made)
        await reaches(cluster, "Completed", name=name, namespace="shop")
        await cluster.patch(WORKLOADS, name, {"spec": {"image": "web:2"}}, namespace="shop")
        await reaches(cluster, "Completed", name=name, namespace="shop")
        await cluster.advance(60)
        assert len(await cluster.list(PODS, namespace="shop")) == 2
        await cluster.delete(WORKLOADS, name, "shop")
        await cluster.advance(60)
        assert await cluster.list(PODS, namespace="shop") == []
        assert await cluster.list(CONTROLLER_REVISIONS, namespace="shop") == []

    operated(story, components=[GarbageCollector()])


def test_a_workload_that_was_orphaned_and_made_again_is_not_held_up_by_what_it_left() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await cluster.delete(WORKLOADS, "web", propagation="Orphan")
        await cluster.advance(5)
        assert len(await cluster.list(PODS)) == 4
        await begun(cluster)
        assert len(await cluster.list(CONTROLLER_REVISIONS)) == 2

    operated(story, components=[GarbageCollector()])


def test_a_workload_that_only_crashes_is_not_restarted_without_end() -> None:
    async def story(cluster: Cluster) -> None:
        never = {"policy": "Never"}
        annotations = {"sim.holdfast.dev/crash-after": "100ms"}
        await cluster.create(
            WORKLOADS, workload(replicas=1, rollout={}, metadata={"annotations": annotations}, restartPolicy=never)
        )
        before = cluster.server.store.revision
        await cluster.advance(100)
        # Ten pods, each made, placed, started, ended and removed, and what is said of it.
        assert cluster.server.store.revision - before < 10 * 20

    operated(story)


# --- manifests


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_rolled_out(path: Path) -> None:
    _applied(path)


@pytest.mark.skipif(not MANIFESTS.exists(), reason="the manifests of others are not here")
@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_manifests_of_others_are_rolled_out(path: Path) -> None:
    _applied(path)


def _spelled(value: Any) -> Any:
    """The manifest with the group and the spelling that an API can have; one was written for a tool without."""
    match value:
        case dict():
            return {re.sub(r"_([a-z])", lambda m: m[1].upper(), key): _spelled(each) for key, each in value.items()}
        case list():
            return [_spelled(each) for each in value]
        case "cloudless/v1":
            return "cloudless.io/v1"
        case _:
            return value


def _applied(path: Path) -> None:
    (manifest,) = (_spelled(each) for each in yaml.safe_load_all(path.read_text()) if each["kind"] == "Workload")
    placement = manifest["spec"].get("placement", {})
    labels = {**placement.get("nodeSelector", {})}
    regions = placement.get("regions") or ["local"]
    zones = tuple(placement.get("zones") or ("zone-a", "zone-b", "zone-c"))

    async def story(cluster: Cluster) -> None:
        namespace = manifest["metadata"].get("namespace", "default")
        if namespace != "default":
            await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
        await cluster.apply(WORKLOADS, manifest)
        name = manifest["metadata"]["name"]
        said = await reaches(cluster, "Completed", name=name, namespace=namespace)
        assert said["readyReplicas"] == manifest["spec"].get("replicas", 1)

    operated(story, nodes=Fleet(count=12, labels=labels, region=regions[0], zones=zones))
