"""Simulated nodes: registered at the start, kept alive by their Leases, silent or deleted where a fault says so.

A healthy node renews its Lease and writes nothing else.  One that is down
renews nothing, until it is up again and says so.  A node that a user deletes stays
deleted until the next start, like one whose kubelet was not restarted; a node that a
fault deleted comes back as a new one.  What happens to pods is in `agent`;
what becomes of a silent node in `nodes.lifecycle`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, LEASES, NODES, Resource
from holdfast.cluster.nodes.lifecycle import KUBELET, LEASE_NAMESPACE, Node
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.agent import NODE_LABEL
from holdfast.cluster.simulation.chaos import NodeDown, NodeFault, NodeGone
from holdfast.kernel.outcomes import Failure
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Environment
from holdfast.runtime.decisions import Create, Delete, Patch, Write
from holdfast.runtime.passes.execution import Executor

_log: Final = logging.getLogger("holdfast.cluster.nodes")

_AGAIN: Final = timedelta(seconds=1)
"""When what failed is tried again."""


GPU: Final = "nvidia.com/gpu"
"""The resource that GPUs are, and the beginning of the labels that describe them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Equal nodes, ``node-<first>`` and so on.

    extended   other resources of each: ``{"nvidia.com/gpu": "8"}``
    labels     other labels of each
    zones      over which they are spread
    heartbeat  how often each renews its Lease
    """

    count: int = 1
    first: int = 1
    cpu: str = "32"
    memory: str = "128Gi"
    pods: int = 250
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    region: str = "local"
    heartbeat: timedelta = timedelta(seconds=10)
    version: str = KUBELET

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"there cannot be {self.count} nodes; write 0 or more")
        if self.heartbeat <= timedelta(0):
            raise ValueError(f"heartbeat is {self.heartbeat}; it must be longer than zero")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"node-{number}" for number in range(self.first, self.first + self.count))

    @property
    def resources(self) -> dict[str, str]:
        """What each node has."""
        basic = {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": "1Ti", "pods": str(self.pods)}
        return {**basic, **self.extended}

    def with_gpus(self, number: int = 8) -> Fleet:
        """The same with so many GPUs each."""
        return replace(self, extended={**self.extended, GPU: str(number)}).discoverable()

    def discoverable(self) -> Fleet:
        """The same with the labels by which GPUs are discovered, where the nodes have some: they are H200."""
        number = self.extended.get(GPU, "0")
        if number == "0":
            return self
        labels = {f"{GPU}.product": "NVIDIA-H200", f"{GPU}.memory": "143771", f"{GPU}.count": number}
        return replace(self, labels={**labels, **self.labels})


# --- what a node says of itself


def manifest(fleet: Fleet, name: str, now: datetime) -> dict[str, Any]:
    """A node as it registers itself."""
    number, resources = _number(name), fleet.resources
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": fleet.region,
        "topology.kubernetes.io/zone": fleet.zones[(number - 1) % len(fleet.zones)],
        NODE_LABEL: "true",
        **fleet.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"sim://{name}"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions(now),
            "addresses": [
                {"type": "InternalIP", "address": _address(number)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _info(fleet, name),
        },
    }


def _info(fleet: Fleet, name: str) -> dict[str, str]:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "simulated",
        "osImage": "Holdfast simulated node",
        "containerRuntimeVersion": "sim://1.0.0",
        "kubeletVersion": fleet.version,
        "kubeProxyVersion": fleet.version,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _number(name: str) -> int:
    return int(name.removeprefix("node-"))


def _address(number: int) -> str:
    return f"172.18.{number // 256}.{number % 256}"


_PRESSURES: Final = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def conditions(now: datetime) -> list[dict[str, str]]:
    """The conditions of a healthy node."""
    stamp = times.format(now)
    said = [(type, "False", reason, message) for type, (reason, message) in _PRESSURES.items()]
    said.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    return [
        {
            "type": type,
            "status": status,
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
            "reason": reason,
            "message": message,
        }
        for type, status, reason, message in said
    ]


# --- what is to be done about one


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One node, as the API has it.

    registered  it has been there since this process began, so that a missing one was deleted by a user
    renewed     when its Lease was renewed last
    """

    name: str
    node: Object | None
    lease: Object | None
    renewed: datetime | None = None
    outages: tuple[NodeFault, ...] = ()
    registered: bool = False


def decide(world: World, now: datetime, *, fleet: Fleet) -> tuple[tuple[Write, ...], datetime | None]:
    """What a node writes now, and when to look again."""
    edges = [edge for outage in world.outages for edge in outage.edges(now)]
    holding = [outage for outage in world.outages if outage.holds(now)]
    if any(isinstance(outage, NodeGone) for outage in holding):
        return _vanish(world), min(edges, default=None)
    if any(isinstance(outage, NodeDown) for outage in holding):
        return (), min(edges, default=None)
    if world.node is None:
        if world.registered:
            return (), min(edges, default=None)
        create = Create(resource=NODES, manifest=manifest(fleet, world.name, now), because="the node registers itself")
        return (create,), min(edges, default=None)
    writes: list[Write] = []
    due = now if world.renewed is None else world.renewed + fleet.heartbeat
    if due <= now:
        writes.append(_renewal(world, world.node, now, fleet=fleet))
        due = now + fleet.heartbeat
    if not world.registered:
        writes += _equipment(world.node, fleet)
    if Node.of(world.node).ready != "True":
        writes.append(_recovery(world.node, now))
    return tuple(writes), min((*edges, due))


def _vanish(world: World) -> tuple[Write, ...]:
    because = "chaos made the node vanish"
    there = ((NODES, world.node), (LEASES, world.lease))
    return tuple(
        Delete(resource=resource, key=obj.key, uid=obj.uid, because=because)
        for resource, obj in there
        if obj is not None and not obj.deleting
    )


def _renewal(world: World, node: Object, now: datetime, *, fleet: Fleet) -> Write:
    because = "the node says that it is there"
    renewed = times.format_micro(now)
    if world.lease is not None:
        patch = {"spec": {"renewTime": renewed}}
        return Patch(resource=LEASES, key=world.lease.key, uid=world.lease.uid, patch=patch, because=because)
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.meta.name, "uid": node.uid}
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": node.meta.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node.meta.name,
            "leaseDurationSeconds": max(1, round(4 * fleet.heartbeat.total_seconds())),
            "renewTime": renewed,
        },
    }
    return Create(resource=LEASES, manifest=lease, because=because)


class _Capacity(msgspec.Struct, frozen=True):
    capacity: dict[str, Any] = {}


class _Equipped(msgspec.Struct, frozen=True):
    status: _Capacity = _Capacity()


def _equipment(node: Object, fleet: Fleet) -> list[Write]:
    """What a node of an earlier start lacks of what the fleet has now."""
    because, writes = "the nodes have other resources since the last start", list[Write]()
    labels = {key: value for key, value in fleet.labels.items() if node.meta.labels.get(key) != value}
    if labels:
        patch: dict[str, Any] = {"metadata": {"labels": labels}}
        writes.append(Patch(resource=NODES, key=node.key, uid=node.uid, patch=patch, because=because))
    before, wanted = node.decode(_Equipped).status.capacity, fleet.resources
    if before != wanted:
        resources = {**dict.fromkeys(before), **wanted}
        patch = {"status": {"capacity": resources, "allocatable": resources}}
        status = Patch(
            resource=NODES, key=node.key, uid=node.uid, patch=patch, subresource="status", because=because, wave=1
        )
        writes.append(status)
    return writes


def _recovery(node: Object, now: datetime) -> Write:
    return Patch(
        resource=NODES,
        key=node.key,
        uid=node.uid,
        version=node.version,
        patch={"status": {"conditions": conditions(now)}},
        subresource="status",
        because="the node is well again",
    )


# --- all of them


@dataclass(frozen=True, slots=True)
class SimulatedNodes:
    """A component that keeps a fleet of nodes."""

    fleet: Fleet = Fleet()
    name: str = "simulated-nodes"

    @property
    def reads(self) -> tuple[Resource, ...]:
        return (NODES, LEASES, CONFIG_MAPS)

    async def run(self, environment: Environment) -> None:
        changed = asyncio.Event()
        stores = environment.stores
        stops = (
            stores.subscribe(NODES, lambda old, new: changed.set()),
            stores.subscribe(CONFIG_MAPS, _telling(changed)),
        )
        try:
            await stores.synced(*self.reads)
            await _Keeper(self.fleet, environment, changed).run()
        finally:
            for stop in stops:
                stop()


def _telling(changed: asyncio.Event) -> Callable[[Object | None, Object | None], None]:
    def change(old: Object | None, new: Object | None) -> None:
        seen = new or old
        if seen is not None and seen.key == chaos.PLACE:
            changed.set()

    return change


class _Keeper:
    """Looks at all nodes whenever one is due or something has changed."""

    def __init__(self, fleet: Fleet, environment: Environment, changed: asyncio.Event) -> None:
        self._fleet = fleet
        self._stores = environment.stores
        self._client = environment.client
        self._now = environment.now
        self._changed = changed
        self._registered: set[str] = set()
        self._renewed: dict[str, datetime] = {}

    async def run(self) -> None:
        while True:
            self._changed.clear()
            dues = await asyncio.gather(*(self._keep(name) for name in self._fleet.names))
            due = min((each for each in dues if each is not None), default=None)
            wait = None if due is None else max(0.0, (due - self._now()).total_seconds())
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass  # A node is due.

    async def _keep(self, name: str) -> datetime | None:
        now, world = self._now(), self._seen(name)
        writes, due = decide(world, now, fleet=self._fleet)
        try:
            await Executor(self._client).carry_out(writes)
        except Failure as failure:
            _log.info("node not kept", extra={"fields": {"node": name, "error": failure.message}})
            return now + _AGAIN
        if world.node is not None:
            self._registered.add(name)
        for write in writes:
            self._remember(name, write, now)
        return due

    def _seen(self, name: str) -> World:
        stores = self._stores
        return World(
            name=name,
            node=stores.get(NODES, Key("", name)),
            lease=stores.get(LEASES, Key(LEASE_NAMESPACE, name)),
            renewed=self._renewed.get(name),
            outages=chaos.faults_in(stores.get(CONFIG_MAPS, chaos.PLACE)).of(name),
            registered=name in self._registered,
        )

    def _remember(self, name: str, write: Write, now: datetime) -> None:
        match write:
            case Create(resource=resource) if resource == NODES:
                self._registered.add(name)
            case Delete(resource=resource) if resource == NODES:
                self._registered.discard(name)
                self._renewed.pop(name, None)
            case Create() | Patch() if write.resource == LEASES:
                self._renewed[name] = now
