"""Why pods are not ready: each part names the pod, the cause and what to do, and its owners repeat the gravest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    SETS,
    Cluster,
    clique,
    condition,
    group,
    message,
    pcs,
    pods,
    scale,
    simulated,
    until_available,
    update,
)
from tests.operators.podcliqueset.test_floors import by_hand, made_ready
from tests.operators.podcliqueset.test_unreadable import open_schema

from holdfast.client.resources import NODES, PODS
from holdfast.meta.objects import Key

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}
CRASHING = {"sim.holdfast.dev/crash-after": "1s", "sim.holdfast.dev/exit-code": "3"}


def waiting(reason: str, said: str) -> dict[str, Any]:
    """The status of a container that waits for this."""
    return {"name": "main", "ready": False, "started": False, "state": {"waiting": {"reason": reason, "message": said}}}


@pytest.mark.parametrize(
    ("container", "reason", "words"),
    [
        (waiting("ImagePullBackOff", "no such image"), "ImagePullFailed", "correct the image"),
        (waiting("CreateContainerConfigError", 'secret "s" not found'), "PodConfigurationMissing", "create what is"),
        (
            {
                **waiting("CrashLoopBackOff", "back-off"),
                "restartCount": 4,
                "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
            },
            "CrashLoop",
            "exit code 3, 4 restarts",
        ),
    ],
)
def test_the_cause_of_a_pod_that_is_not_ready_is_named_by_clique_group_and_set(
    container: Mapping[str, Any], reason: str, words: str
) -> None:
    manifest = pcs("wl", clique("a"), group("g", "a"))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await made_ready(cluster)
        assert condition(await cluster.get(SETS, "wl"), "PodsReady") == ("True", "AllPodsReady")
        (name,) = [pod["metadata"]["name"] for pod in await pods(cluster)]
        await cluster.report(name, ready=False)
        await cluster.patch(PODS, name, {"status": {"containerStatuses": [container]}}, subresource="status")
        await cluster.advance(1)
        parts = (
            await cluster.get(CLIQUES, "wl-0-g-0-a"),
            await cluster.get(GROUPS, "wl-0-g"),
            await cluster.get(SETS, "wl"),
        )
        for each in parts:
            assert condition(each, "PodsReady") == ("False", reason)
            assert name in message(each, "PodsReady")
            assert words in message(each, "PodsReady")
        assert condition(parts[-1], "Blocked") == ("True", reason)
        for type in ("Ready", "Blocked", "Progressing"):
            assert name in message(parts[-1], type)

    by_hand(story)


def test_pods_beyond_the_minimum_that_cannot_be_scheduled_are_said_by_the_set_though_it_is_ready() -> None:
    manifest = pcs("wl", clique("a", 6, minimum=4, annotations=READY, memory="1Gi"))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await cluster.advance(5)
        found = await cluster.get(SETS, "wl")
        assert condition(found, "Ready")[0] == "True"
        assert condition(found, "PodsReady") == ("False", "Unschedulable")
        assert condition(found, "Progressing") == ("False", "Unschedulable")
        assert "not all pods are ready; wl-0-a: pod wl-0-a-" in message(found, "Progressing")
        assert condition(found, "Blocked") == ("False", "NotBlocked")
        await scale(cluster, CLIQUES, "wl-0-a", 4)
        await cluster.advance(5)
        assert condition(await cluster.get(SETS, "wl"), "PodsReady") == ("True", "AllPodsReady")
        assert condition(await cluster.get(SETS, "wl"), "Progressing") == ("False", "Settled")

    simulated(story, nodes=1, memory="4Gi")


def test_an_update_whose_new_pods_crash_blocks_the_set_and_names_the_pod() -> None:
    manifest = pcs("wl", clique("a", 3, minimum=2, annotations=READY))
    broken = pcs("wl", clique("a", 3, minimum=2, annotations=READY | CRASHING))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        await update(cluster, broken)
        await cluster.advance(120)
        found = await cluster.get(SETS, "wl")
        assert condition(found, "Ready")[0] == "True", "the floor holds"
        assert condition(found, "Blocked") == ("True", "CrashLoop")
        assert "exit code 3" in message(found, "Blocked")
        assert "kubectl logs --previous" in message(found, "Blocked")

    simulated(story)


def test_a_part_whose_pods_the_api_refuses_blocks_the_set_and_says_why() -> None:
    bad = clique("a", 2)
    bad["spec"]["podSpec"]["containers"] *= 2  # two containers of one name
    manifest = pcs("wl", clique("b"), bad)

    async def story(cluster: Cluster) -> None:
        for resource in (SETS, CLIQUES):
            await open_schema(cluster, resource)
        await cluster.create(SETS, manifest)
        await made_ready(cluster)
        found = await cluster.get(SETS, "wl")
        assert condition(found, "Blocked")[0] == "True"
        assert "wl-0-a: creating Pod" in message(found, "Blocked")
        assert "Duplicate value" in message(found, "Blocked")
        assert condition(found, "PodsReady")[0] == "False"
        assert "Duplicate value" in message(await cluster.get(CLIQUES, "wl-0-a"), "PodsReady")

    by_hand(story)


def test_a_pod_that_is_terminating_on_a_dead_node_is_named() -> None:
    manifest = pcs("wl", clique("a", 2))

    async def story(cluster: Cluster) -> None:
        dead = {"metadata": {"name": "n9"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        await cluster.create(NODES, dead)
        await cluster.create(SETS, manifest)
        await cluster.settle()
        (first, *_) = sorted(pod["metadata"]["name"] for pod in await pods(cluster))
        target = {"apiVersion": "v1", "kind": "Node", "name": "n9"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": first}, "target": target}
        await cluster.client.post(PODS, Key("default", first), "binding", body)
        await cluster.report(first, ready=False)
        await cluster.delete(PODS, first)
        await cluster.advance(1)
        assert condition(await cluster.get(SETS, "wl"), "PodsReady") == ("False", "NodeLost")
        assert f"{first}: is being deleted since" in message(await cluster.get(SETS, "wl"), "PodsReady")

    by_hand(story)
