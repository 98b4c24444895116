"""Nodes and pods to place, as tests write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import NODES, PODS
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster, Node


def node_wire(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    ready: str = "True",
    extended: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def node(name: str, **how: Any) -> Node:
    return Node.of(Object.of(NODES, node_wire(name, **how)))


def pod_wire(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    owner: str = "",
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app:1", "resources": {"requests": dict(requests or {})}}]
    wire: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "spec": {"containers": containers, **spec},
        "status": dict(status or {"phase": "Pending"}),
    }
    wire["metadata"].update(metadata or {})
    if owner:
        wire["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    return wire


def pod(name: str = "pod", **how: Any) -> Claim:
    return Claim.of(Object.of(PODS, pod_wire(name, **how)))


def cluster(nodes: Iterable[Node] = (), placed: Mapping[str, Iterable[Claim]] | None = None) -> Cluster:
    """A cluster of nodes, with pods in their places, by node."""
    made = Cluster()
    for each in nodes:
        made.put_node(each)
    for name, claims in (placed or {}).items():
        for claim in claims:
            made.put(claim, name)
    return made
