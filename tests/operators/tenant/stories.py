"""Tenants on an embedded cluster, as the tests tell of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.client.resources import PODS, STATEFUL_SETS
from holdfast.cluster.assembly import Cluster as Parts
from holdfast.kinds import grove_scheduler
from holdfast.kinds.rustfs import KINDS
from holdfast.operators.tenant.admin import Connect, connect
from holdfast.operators.tenant.controller import controllers
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.render import Settings
from holdfast.testing.clusters import Cluster, play

T = TypeVar("T")

IMAGE = "rustfs/rustfs:1.0.0-beta.10"
NEWER = "rustfs/rustfs:1.0.0-beta.11"
NEWEST = "rustfs/rustfs:1.0.0-rc.1"


def pool(name: str = "pool-0", servers: int = 4, volumes: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "servers": servers, "persistence": {"volumesPerServer": volumes}, **more}


def tenant(
    name: str = "store", *pools: dict[str, Any], annotations: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "rustfs.com/v1alpha1",
        "kind": "Tenant",
        "metadata": metadata,
        "spec": {"pools": list(pools or (pool(),)), **spec},
    }


def play_story(
    story: Callable[[Cluster], Awaitable[T]],
    *,
    nodes: int = 4,
    connect: Connect = connect,
    operated: bool = True,
    seed: int = 1,
) -> T:
    """Play a story on a cluster with nodes and, unless the story brings its own, the operator."""
    parts = Parts(nodes=nodes)

    async def on_nodes(cluster: Cluster) -> T:
        for resource, manifest in parts.default_objects():
            await cluster.create(resource, manifest)
        return await story(cluster)

    return play(
        on_nodes,
        controllers=(*parts.controllers(), *(controllers(Settings(), connect=connect) if operated else ())),
        components=parts.components(),
        kinds=(*KINDS, *grove_scheduler.KINDS),
        seed=seed,
    )


async def status_of(cluster: Cluster, name: str = "store") -> dict[str, Any]:
    status: dict[str, Any] = (await cluster.get(TENANTS, name)).get("status") or {}
    return status


async def reaches(cluster: Cluster, state: str, name: str = "store", *, within: float = 600) -> dict[str, Any]:
    """Wait until a Tenant of its current generation is in a state."""

    async def holds() -> bool:
        found = await cluster.get(TENANTS, name)
        status = found.get("status") or {}
        return bool(
            status.get("currentState") == state and status["observedGeneration"] == found["metadata"]["generation"]
        )

    await cluster.until(holds, within=within)
    return await status_of(cluster, name)


def condition(status: Mapping[str, Any], type: str) -> dict[str, Any] | None:
    return next((dict(each) for each in status.get("conditions", ()) if each["type"] == type), None)


def answer(status: Mapping[str, Any], type: str) -> tuple[str, str] | None:
    """The status and the reason of a condition."""
    found = condition(status, type)
    return None if found is None else (found["status"], found["reason"])


def states(status: Mapping[str, Any]) -> list[str]:
    return [each["state"] for each in status.get("pools", ())]


async def servers(cluster: Cluster, name: str = "store", *, pool: str = "") -> list[dict[str, Any]]:
    return await cluster.list(PODS, f"rustfs.tenant={name}" + (f",rustfs.pool={pool}" if pool else ""))


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") != "Failed"


def images(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


async def to_image(cluster: Cluster, image: str, name: str = "store", **annotations: str | None) -> None:
    """Have a Tenant run another image; annotations reach its servers, for simulated nodes."""
    marks = {f"sim.holdfast.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    await cluster.patch(TENANTS, name, {"metadata": {"annotations": marks}, "spec": {"image": image}})


async def strategy(cluster: Cluster, name: str = "store-pool-0") -> dict[str, Any]:
    """The update strategy of a StatefulSet."""
    found: dict[str, Any] = (await cluster.get(STATEFUL_SETS, name))["spec"]["updateStrategy"]
    return found
