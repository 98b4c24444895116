"""Virtual machines on an embedded cluster with simulated hypervisors, as the tests tell of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from holdfast.kinds import virtrigaud
from holdfast.operators.virtualmachine.connections import Target
from holdfast.operators.virtualmachine.controller import controllers
from holdfast.operators.virtualmachine.machines.calls import Fetch
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    CLONES,
    IMAGES,
    MACHINES,
    MIGRATIONS,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SETS,
    SNAPSHOTS,
)
from holdfast.providers.contract import Hypervisor
from holdfast.providers.simulated import INSTANT, Fault, Latencies, Simulated, World
from holdfast.runtime.controllers import Controller
from holdfast.testing.clusters import Cluster, play

T = TypeVar("T")
Wire = dict[str, Any]

_READ = (MACHINES, PROVIDERS, CLASSES, IMAGES, NETWORKS, SNAPSHOTS, SETS, CLONES, MIGRATIONS, POLICIES)
KINDS = tuple(kind for kind in virtrigaud.KINDS if kind.plural in {each.plural for each in _READ})
"""The kinds that the controllers read."""

__all__ = [
    "CLASSES", "CLONES", "IMAGES", "INSTANT", "KINDS", "MACHINES", "MIGRATIONS", "NETWORKS", "POLICIES", "PROVIDERS",
    "SETS", "SNAPSHOTS", "Fault", "Latencies",
]  # fmt: skip


class Hypervisors:
    """A simulated hypervisor for each address, on the clock of the loop that asks; each run has its own."""

    def __init__(
        self,
        *,
        latencies: Latencies | None = None,
        faults: Sequence[Fault] = (),
        seed: int = 1,
        world: World | None = None,
        make: Callable[..., Simulated] = Simulated,
        **more: Any,
    ) -> None:
        self._latencies, self._faults, self._seed = latencies, faults, seed
        self._world, self._make, self._more = world, make, more
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Simulated]] = WeakKeyDictionary()

    def __call__(self, target: Target) -> Hypervisor:
        return self.at(target.address)

    def at(self, address: str = "sim:9443") -> Simulated:
        loop = asyncio.get_running_loop()
        made = self._made.setdefault(loop, {})
        if address not in made:
            made[address] = self._make(
                self._world or World.of(hosts=4, cpus=1024, memory_gib=16384),
                clock=loop.time,
                seed=self._seed,
                latencies=self._latencies,
                faults=self._faults,
                **self._more,
            )
        return made[address]


async def no_guest(url: str, seconds: float) -> int:
    raise OSError("no guest answers")


def operator(hypervisors: Hypervisors, *, fetch: Fetch = no_guest) -> tuple[Controller[Any], ...]:
    return controllers(connect=hypervisors, fetch=fetch)


def play_story(story: Callable[[Cluster], Awaitable[T]], hypervisors: Hypervisors | None = None, **more: Any) -> T:
    """Play a story with the operator."""
    return play(story, controllers=operator(hypervisors or Hypervisors(), **more), kinds=KINDS)


# --- objects


def provider(name: str = "sim", *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Wire:
    metadata: Wire = {"name": name}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "metadata": metadata,
        "spec": {"type": "simulated", "endpoint": f"grpc://{name}:9443", "runtime": {"image": "holdfast"}, **spec},
    }


def vm_class(name: str = "small", *, cpu: int = 2, memory: str = "4Gi", **spec: Any) -> Wire:
    return {"metadata": {"name": name}, "spec": {"cpu": cpu, "memory": memory, **spec}}


HOT: Wire = {"performanceProfile": {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True}}


def image(name: str = "ubuntu", *, source: Wire | None = None, **spec: Any) -> Wire:
    return {
        "metadata": {"name": name},
        "spec": {"source": source or {"libvirt": {"path": "/images/ubuntu.qcow2"}}, **spec},
    }


def machine(
    name: str = "web",
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Wire:
    metadata: Wire = {"name": name}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if labels:
        metadata["labels"] = dict(labels)
    root = {} if "importedDisk" in spec else {"imageRef": {"name": "ubuntu"}}
    return {
        "metadata": metadata,
        "spec": {"providerRef": {"name": "sim"}, "classRef": {"name": "small"}, **root, **spec},
    }


def policy(name: str = "spread", **spec: Any) -> Wire:
    return {"metadata": {"name": name}, "spec": spec}


async def prepare(cluster: Cluster, **of_class: Any) -> None:
    """A provider, a class and an image."""
    await cluster.create(PROVIDERS, provider())
    await cluster.create(CLASSES, vm_class(**of_class))
    await cluster.create(IMAGES, image())
    await cluster.until(lambda: is_ready(cluster, PROVIDERS, "sim"))


async def created(cluster: Cluster, name: str = "web", **spec: Any) -> Wire:
    """A machine that has become what its spec asks for."""
    await cluster.create(MACHINES, machine(name, **spec))
    return await reaches(cluster, "Stopped" if str(spec.get("powerState", "On")).startswith("Off") else "Running", name)


# --- what came of them


async def status_of(cluster: Cluster, name: str = "web", resource: Any = MACHINES) -> Wire:
    status: Wire = (await cluster.get(resource, name)).get("status") or {}
    return status


def condition(status: Mapping[str, Any], type: str) -> Wire:
    return next((dict(each) for each in status.get("conditions", ()) if each["type"] == type), {})


def answer(status: Mapping[str, Any], type: str) -> tuple[str, str]:
    """The status and the reason of a condition."""
    found = condition(status, type)
    return found.get("status", ""), found.get("reason", "")


async def is_ready(cluster: Cluster, resource: Any, name: str) -> bool:
    found = await cluster.get(resource, name)
    status = found.get("status") or {}
    return answer(status, "Ready")[0] == "True" and status.get("observedGeneration") == found["metadata"]["generation"]


async def reaches(cluster: Cluster, phase: str, name: str = "web", *, within: float = 600) -> Wire:
    """Wait until a machine of its current generation is in a phase and ready, unless it is to fail."""

    async def holds() -> bool:
        found = await cluster.get(MACHINES, name)
        status = found.get("status") or {}
        return bool(
            status.get("phase") == phase
            and status.get("observedGeneration") == found["metadata"]["generation"]
            and (phase not in ("Running", "Stopped") or answer(status, "Ready")[0] == "True")
        )

    await cluster.until(holds, within=within, step=0.25)
    return await status_of(cluster, name)


async def because(cluster: Cluster, reason: str, name: str = "web", *, type: str = "Ready", within: float = 60) -> Wire:
    """Wait until a condition of a machine has a reason."""

    async def holds() -> bool:
        return answer(await status_of(cluster, name), type)[1] == reason

    await cluster.until(holds, within=within)
    return await status_of(cluster, name)
