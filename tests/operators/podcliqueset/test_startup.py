"""Cliques start in the order that was asked for, and pods that wait say so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import SETS, Cluster, pods, simulated, until_available, workload

from holdfast.client.resources import PODS
from holdfast.operators.podcliqueset import labels

IN_ORDER = {"cliqueStartupType": "CliqueStartupTypeInOrder"}
EXPLICIT = {"cliqueStartupType": "CliqueStartupTypeExplicit", "after": {"pc-c": ["pc-a"], "pc-b": ["pc-c"]}}


async def ready_at(cluster: Cluster) -> dict[tuple[str, str], list[str]]:
    """When the pods of each clique became ready, the first one first; by clique and index in the group."""
    moments: dict[tuple[str, str], list[str]] = {}
    for pod in await pods(cluster):
        marks = pod["metadata"]["labels"]
        since = next(each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready")
        moments.setdefault((marks[labels.TEMPLATE], marks.get(labels.GROUP_INDEX, "")), []).append(since)
    return {part: sorted(times) for part, times in moments.items()}


BASE = [("pc-b", "0"), ("pc-b", "1"), ("pc-c", "0"), ("pc-c", "1")]


@pytest.mark.parametrize(
    ("manifest", "order"),
    [
        pytest.param(workload(**IN_ORDER), ("pc-a", "pc-b", "pc-c"), id="SO-1 in the order of the template"),
        pytest.param(workload(**EXPLICIT), ("pc-a", "pc-c", "pc-b"), id="SO-3 as each clique says"),
    ],
)
def test_cliques_start_one_after_the_other(manifest: Mapping[str, Any], order: tuple[str, ...]) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        moments = await ready_at(cluster)
        for first, then in pairwise(order):
            before = [times for (clique, _), times in moments.items() if clique == first]
            after = [times for (clique, _), times in moments.items() if clique == then]
            assert max(times[-1] for times in before) < min(times[0] for times in after), f"{first} before {then}"

    simulated(story)


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        pytest.param(IN_ORDER, ("pc-a", "pc-b", "pc-c"), id="SO-2 in order, where only minimums count"),
        pytest.param(EXPLICIT, ("pc-a", "pc-c", "pc-b"), id="SO-4 as each says, where only minimums count"),
    ],
)
def test_only_the_minimum_of_a_parent_is_waited_for_and_scaled_replicas_wait_for_their_own(
    settings: Mapping[str, Any], order: tuple[str, ...]
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, workload(strict=False, **settings))
        await cluster.settle()
        # One pod of pc-a never gets ready: one is enough.
        slow = next(pod for pod in await pods(cluster) if pod["metadata"]["labels"][labels.TEMPLATE] == "pc-a")
        never = {"metadata": {"annotations": {"sim.holdfast.dev/never-ready": "true"}}}
        await cluster.patch(PODS, slow["metadata"]["name"], never)
        await until_available(cluster)
        waits = {
            (pod["metadata"]["labels"][labels.TEMPLATE], pod["metadata"]["labels"].get(labels.GROUP_INDEX, "")): pod[
                "metadata"
            ]["annotations"].get("holdfast.dev/starts-after")
            for pod in await pods(cluster)
        }
        first, second, third = order
        assert waits[first, ""] is None
        assert waits[second, "0"] == "wl-0-pc-a:1"
        assert waits[third, "0"] == f"wl-0-sg-x-0-{second}:1"
        assert waits[second, "1"] is None, "a scaled replica is independent of the base gang"
        assert waits[third, "1"] == f"wl-0-sg-x-1-{second}:1"

    simulated(story)


def test_a_pod_that_waits_has_an_init_container_that_waits_on_any_cluster() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, workload(**IN_ORDER))
        await until_available(cluster)
        pod = next(pod for pod in await pods(cluster) if pod["metadata"]["labels"][labels.TEMPLATE] == "pc-b")
        waiter = pod["spec"]["initContainers"][-1]
        assert waiter["command"] == ["holdfast", "operator", "wait-for"]
        assert waiter["args"] == ["--podcliques=wl-0-pc-a:2"]
        assert {volume["name"] for volume in pod["spec"]["volumes"]} >= {"grove-initc-token", "grove-pod-info"}

    simulated(story)
