"""A PodClique claims its pods by their labels, as a ReplicaSet does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GANGS,
    SETS,
    Cluster,
    clique,
    pcs,
    pods,
    simulated,
    until_available,
)

from holdfast.client.resources import PODS
from holdfast.operators.podcliqueset import labels

READY = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}
MANIFEST = pcs("wl", clique("a", 2, annotations=READY))


def owner(pod: dict[str, Any]) -> str | None:
    references = pod["metadata"].get("ownerReferences") or ()
    return next((each["name"] for each in references), None)


@pytest.mark.parametrize("label", [labels.CLIQUE, labels.SET_INDEX, labels.PART_OF, labels.GANG])
def test_a_pod_whose_selector_label_was_removed_is_released_and_replaced(label: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster)
        first = (await pods(cluster))[0]["metadata"]["name"]
        await cluster.patch(PODS, first, {"metadata": {"labels": {label: None}}})
        await cluster.advance(30)
        found = {pod["metadata"]["name"]: owner(pod) for pod in await pods(cluster)}
        assert found.pop(first) is None, "it is released, and not deleted"
        assert list(found.values()) == ["wl-0-a", "wl-0-a"], "it is replaced"
        (listed,) = (await cluster.get(GANGS, "wl-0"))["spec"]["podgroups"]
        assert {each["name"] for each in listed["podReferences"]} == set(found)
        assert (await cluster.get(CLIQUES, "wl-0-a"))["status"]["readyReplicas"] == 2

    simulated(story)


def test_removed_labels_do_not_count_towards_the_floor() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster)
        for pod in await pods(cluster):
            await cluster.patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": {labels.SET_INDEX: None}}})
        await cluster.settle()
        found = (await cluster.get(CLIQUES, "wl-0-a"))["status"]
        assert found["readyReplicas"] == 0
        assert found["floor"].get("available", 0) == 0

    simulated(story)


def test_an_orphan_with_the_labels_of_a_clique_is_adopted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster)
        first = (await pods(cluster))[0]["metadata"]["name"]
        marks = (await cluster.get(PODS, first))["metadata"]["labels"]
        await cluster.patch(PODS, first, {"metadata": {"labels": {labels.SET_INDEX: None}}})
        await cluster.advance(30)
        assert len(await pods(cluster)) == 3
        await cluster.patch(PODS, first, {"metadata": {"labels": marks}})
        await cluster.advance(30)
        found = [owner(pod) for pod in await pods(cluster)]
        assert found == ["wl-0-a", "wl-0-a"], "it is adopted, and the surplus pod is stopped"

    simulated(story)
