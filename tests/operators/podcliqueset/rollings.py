"""What stories about rolling updates ask: whether one runs, and whether all pods are new."""

from __future__ import annotations

from typing import Any

from tests.operators.podcliqueset.gangsets import Cluster, pods, status, workload

from holdfast.operators.podcliqueset import labels

WL1 = workload(replicas=2)
"""All of ten pods a replica are needed."""


async def is_running(cluster: Cluster) -> bool:
    progress = (await status(cluster)).get("rollingUpdateProgress") or {}
    return "currentlyUpdating" in progress


async def trigger(cluster: Cluster, pod: dict[str, Any]) -> str:
    env = pod["spec"]["containers"][0].get("env") or ()
    return next((each.get("value", "") for each in env if each["name"] == "UPDATE_TRIGGER"), "")


async def all_updated(cluster: Cluster, number: int, *cliques: str) -> None:
    """So many pods, all ready, and those of the cliques from the new template."""
    await cluster.settle()
    found = await pods(cluster)
    assert len(found) == number
    for pod in found:
        if not cliques or pod["metadata"]["labels"][labels.TEMPLATE] in cliques:
            assert await trigger(cluster, pod) == "1"
