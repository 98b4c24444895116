"""Deployments, ReplicaSets and their pods, as tests write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.client.resources import DEPLOYMENTS, PODS, Resource
from holdfast.testing.clusters import Cluster

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
LABELS = {"app": "web"}


def template(image: str = "nginx:1", **labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": {**LABELS, **labels}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def metadata(name: str, *, owner: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    made = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7", "generation": 1}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        made["ownerReferences"] = [{**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]
    return {**made, **more}


def deployment(
    name: str = "web",
    *,
    image: str = "nginx:1",
    meta: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """As a server has it, with its defaults."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, **(meta or {})),
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": LABELS},
            "template": template(image),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            **spec,
        },
        "status": dict(status or {}),
    }


def new_deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    """As a user writes it."""
    labels = {"app": name}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template()["spec"]},
            **spec,
        },
    }


def replica_set(
    name: str = "web-1",
    *,
    replicas: int = 3,
    image: str = "nginx:1",
    owner: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata(name, owner=owner, **{"labels": LABELS, **(meta or {})}),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": template(image, **({"pod-template-hash": name} if owner else {})),
            **spec,
        },
        "status": {"replicas": 0, **(status or {})},
    }


def pod(
    name: str,
    *,
    owner: Mapping[str, Any] | None = None,
    ready: str | None = None,
    phase: str = "Running",
    node: str = "n1",
    labels: Mapping[str, str] = LABELS,
    restarts: int = 0,
    created: str = "2030-01-01T10:00:00Z",
    meta: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A pod on a node; `ready` is since when."""
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(
            name, owner=owner, **{"labels": dict(labels), "creationTimestamp": created, **(meta or {})}
        ),
        "spec": {"nodeName": node, **(spec or {})},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
            **(status or {}),
        },
    }


GOING = {"deletionTimestamp": "2030-01-01T11:59:00Z"}
"""Metadata of what is on its way out."""


async def says(cluster: Cluster, resource: Resource, name: str, **status: Any) -> dict[str, Any]:
    """Wait until the status of an object says so; what is None is not there."""

    async def holds() -> bool:
        now = (await cluster.get(resource, name)).get("status") or {}
        return all(now.get(field) == value for field, value in status.items())

    await cluster.until(holds)
    return await cluster.get(resource, name)


async def to_image(cluster: Cluster, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})


async def carried_through(cluster: Cluster, image: str, replicas: int = 4) -> list[int]:
    """Report pods ready until all are of the image; returns how many were available at each moment."""
    available: list[int] = []

    async def finished() -> bool:
        status = (await cluster.get(DEPLOYMENTS, "web")).get("status", {})
        available.append(status.get("availableReplicas", 0))
        pods = await cluster.list(PODS)
        for each in pods:
            if "deletionTimestamp" not in each["metadata"] and each["status"]["phase"] == "Pending":
                await cluster.report(each["metadata"]["name"])
        images = [each["spec"]["containers"][0]["image"] for each in pods]
        return images == [image] * replicas and status.get("updatedReplicas") == replicas == available[-1]

    await cluster.until(finished, step=1)
    return available


async def rolled_out(cluster: Cluster) -> None:
    """One pod, and then another one of the next template in its place."""
    await cluster.create(DEPLOYMENTS, new_deployment(replicas=1))
    await carried_through(cluster, "nginx:1", replicas=1)
    await to_image(cluster, "nginx:2")
    await carried_through(cluster, "nginx:2", replicas=1)
