"""Snapshots on an embedded cluster with simulated hypervisors, as the tests describe them."""

from __future__ import annotations

from typing import Any

from tests.operators.virtualmachine.stories import SNAPSHOTS, Wire, answer, status_of

from holdfast.testing.clusters import Cluster


def snapshot(name: str = "before", *, machine: str = "web", **spec: Any) -> Wire:
    return {"metadata": {"name": name}, "spec": {"vmRef": {"name": machine}, **spec}}


async def in_phase(cluster: Cluster, phase: str, name: str = "before", *, within: float = 600) -> Wire:
    """Wait until a snapshot is in a phase."""

    async def holds() -> bool:
        found = await cluster.find(SNAPSHOTS, name)
        return found is not None and (found.get("status") or {}).get("phase") == phase

    await cluster.until(holds, within=within, step=0.25)
    return await status_of(cluster, name, SNAPSHOTS)


async def taken(cluster: Cluster, name: str = "before", **spec: Any) -> Wire:
    await cluster.create(SNAPSHOTS, snapshot(name, **spec))
    return await in_phase(cluster, "Ready", name)


async def gone(cluster: Cluster, name: str = "before", *, within: float = 600) -> None:
    async def holds() -> bool:
        return await cluster.find(SNAPSHOTS, name) is None

    await cluster.until(holds, within=within, step=0.5)


def reason(status: Wire, type: str = "Ready") -> tuple[str, str]:
    return answer(status, type)
