"""What nodes and users do to pods in tests of operators that have neither scheduler nor nodes."""

from __future__ import annotations

from contextlib import suppress

from holdfast.client.resources import NODES, PODS
from holdfast.meta.errors import TooManyRequests
from holdfast.meta.objects import Key
from holdfast.testing.clusters import Cluster


async def run_pods(cluster: Cluster) -> None:
    """Be the scheduler and the node of all pods: pods without gates run and are ready, deleted ones end."""
    for pod in await cluster.list(PODS):
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            await cluster.delete(PODS, meta["name"], grace_seconds=0)
        elif not pod["spec"].get("schedulingGates") and "nodeName" not in pod["spec"]:
            target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
            await cluster.client.post(PODS, Key(meta["namespace"], meta["name"]), "binding", body)
            await cluster.report(meta["name"])


async def drain(cluster: Cluster, node: str, *, within: float = 300) -> None:
    """Cordon a node and evict its pods, as `kubectl drain` does: again every five seconds while budgets refuse."""
    await cluster.patch(NODES, node, {"spec": {"unschedulable": True}})

    async def empty() -> bool:
        there = [each for each in await cluster.list(PODS) if each["spec"].get("nodeName") == node]
        for each in there:
            if "deletionTimestamp" not in each["metadata"]:
                key = Key("default", each["metadata"]["name"])
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": key.name}}
                with suppress(TooManyRequests):
                    await cluster.client.post(PODS, key, "eviction", body)
        return not there

    await cluster.until(empty, step=5, within=within)
