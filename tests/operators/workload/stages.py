"""Whole clusters for Workloads: simulated nodes on virtual time, and a witness who sees every replica that is lost.

The operator runs in a process of its own, so that it can be killed while the cluster lives on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Client, Deleted
from holdfast.client.resources import CONFIG_MAPS, PODS, Resource
from holdfast.cluster import simulation
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.behaviours import Defaults
from holdfast.cluster.simulation.chaos import Fault as Trouble
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.kinds.cloudless import KINDS
from holdfast.meta.objects import Key
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.runtime.controllers import Component, Controller
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.clusters import Cluster, connected, play
from holdfast.testing.faults import Crash, Fault, Faulty

T = TypeVar("T")
Wire = dict[str, Any]
Story = Callable[[Cluster], Awaitable[T]]

SLOW = Defaults(ready=(timedelta(seconds=1), timedelta(seconds=4)), stop=(timedelta(seconds=1), timedelta(seconds=3)))
"""Replicas that take their time to come and to go."""


def staged(
    story: Story[T],
    *,
    nodes: Fleet | None = None,
    defaults: Defaults | None = None,
    controllers: Sequence[Controller[Any]] = (),
    components: Sequence[Component] = (),
) -> T:
    """Play a story on a cluster of simulated nodes, without the operator."""
    return play(
        story,
        controllers=[simulation.controller(defaults), *controllers],
        components=[SimulatedNodes(nodes or Fleet(count=4)), Scheduler(), *components],
        kinds=KINDS,
    )


def operated(story: Story[T], **stage: Any) -> T:
    """The same, with the operator."""

    async def played(cluster: Cluster) -> T:
        async with operator(cluster):
            return await story(cluster)

    return staged(played, **stage)


@asynccontextmanager
async def operator(cluster: Cluster, client: Client | None = None) -> AsyncIterator[None]:
    """The operator at work, until the end, when it is killed."""
    manager = Manager(
        client or connected(cluster.server), controllers=CONTROLLERS, now=cluster.now, settings=Settings(), seed=1
    )
    working = asyncio.create_task(manager.run())
    try:
        await manager.working.wait()
        yield
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


@asynccontextmanager
async def mortal(cluster: Cluster, *, every: int, seen: set[str]) -> AsyncIterator[Callable[[], int]]:
    """An operator that dies with every n-th write and is replaced by another one; gives how many have died.

    What it deletes is `seen` by its UID.
    """
    deaths = 0

    async def lives() -> None:
        nonlocal deaths
        while True:
            fault = Crash(every)
            async with operator(cluster, Seen(connected(cluster.server), fault, seen=seen)):
                await fault.dead.wait()
            deaths += 1
            await asyncio.sleep(0.2)  # Virtual time until the next one starts.

    living = asyncio.create_task(lives())
    try:
        yield lambda: deaths
    finally:
        living.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await living


class Seen(Faulty):
    """A client that reports what it deletes or evicts."""

    def __init__(self, client: Client, fault: Fault, *, seen: set[str]) -> None:
        super().__init__(client, fault)
        self._seen = seen

    async def delete(self, resource: Resource, key: Key, *, uid: str = "", **options: Any) -> Object | None:
        self._seen.add(uid)
        return await super().delete(resource, key, uid=uid, **options)

    async def post(self, resource: Resource, key: Key, subresource: str, body: Mapping[str, Any]) -> bytes:
        if subresource == "eviction":
            self._seen.add(body["deleteOptions"]["preconditions"]["uid"])
        return await super().post(resource, key, subresource, body)


class Writes(Fault):
    """No fault: counts writes by resource."""

    def __init__(self) -> None:
        super().__init__()
        self.by_resource: dict[Resource, int] = {}

    async def after_write(self, resource: Resource) -> None:
        await super().after_write(resource)
        self.by_resource[resource] = self.by_resource.get(resource, 0) + 1


class Witness:
    """Follows the replicas of a cluster, event by event, and counts those that serve.

    ours      UIDs of what the operator deleted
    lowest    the fewest since the last `begin`
    started   replicas that were made since then
    breaches  what the operator stopped while no more served than the floor needs
    """

    def __init__(self, cluster: Cluster, floor: int) -> None:
        self._cluster = cluster
        self._floor = floor
        self._pods: dict[Key, Object] = {}
        self.ours: set[str] = set()
        self.lowest = 0
        self.highest = 0
        self.started = 0
        self.events = 0
        self.breaches: list[str] = []

    def begin(self) -> None:
        self.lowest, self.highest = self.serving, len(self._live)
        self.started = self.events = 0

    @property
    def client(self) -> Client:
        """A client for the operator that is watched."""
        return Seen(connected(self._cluster.server), Fault(), seen=self.ours)

    @property
    def serving(self) -> int:
        return sum(map(_serves, self._pods.values()))

    @property
    def _live(self) -> list[Object]:
        return [pod for pod in self._pods.values() if not pod.deleting]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Witness]:
        task = asyncio.create_task(self._watch())
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        async with self._cluster.client.watch(PODS, initial=True) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                self._see(event.object, gone=isinstance(event, Deleted))

    def _see(self, pod: Object, *, gone: bool) -> None:
        before, served = self._pods.get(pod.key), self.serving
        if gone:
            self._pods.pop(pod.key, None)
        else:
            self._pods[pod.key] = pod
        stopped = before is not None and _serves(before) and (gone or pod.deleting) and pod.uid in self.ours
        if stopped and served <= self._floor:
            self.breaches.append(f"{pod.key.name} was stopped while {served} served")
        self.events += 1
        self.started += before is None
        self.lowest = min(self.lowest, self.serving)
        self.highest = max(self.highest, len(self._live))


def _serves(pod: Object) -> bool:
    """Whether a pod serves; one that failed does not, though its node is gone and cannot take back that it is ready."""
    read = Pod.of(pod)
    return read.active and read.ready


# --- what people do


def workload(image: str = "web:1", *, name: str = "web", replicas: int = 10, **more: Any) -> Wire:
    rollout = {"minAvailable": 8, "maxSurge": 2} if "rollout" not in more else more.pop("rollout")
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"image": image, "replicas": replicas, "rollout": rollout, **more}}


async def phase(cluster: Cluster, name: str = "web", namespace: str = "default") -> str:
    """The phase, once the spec as it is now has been seen."""
    found = await cluster.get(WORKLOADS, name, namespace)
    status = found.get("status") or {}
    return str(status.get("phase", "")) if status.get("observedGeneration") == found["metadata"]["generation"] else ""


async def reaches(
    cluster: Cluster, wanted: str, *, name: str = "web", namespace: str = "default", within: float = 600.0
) -> Wire:
    """Wait for a phase; returns the status."""

    async def there() -> bool:
        return await phase(cluster, name, namespace) == wanted

    await cluster.until(there, within=within)
    found: Wire = (await cluster.get(WORKLOADS, name, namespace))["status"]
    return found


async def because(cluster: Cluster, code: str, *, within: float = 600.0) -> Wire:
    """Wait until the rollout says why; returns the status."""

    async def says() -> bool:
        status = (await cluster.get(WORKLOADS, "web")).get("status") or {}
        return bool(status.get("rollout", {}).get("because", {}).get("code") == code)

    await cluster.until(says, within=within)
    found: Wire = (await cluster.get(WORKLOADS, "web"))["status"]
    return found


async def change(cluster: Cluster, **spec: Any) -> None:
    await cluster.patch(WORKLOADS, "web", {"spec": spec})


async def annotate(cluster: Cluster, name: str, value: str | None) -> None:
    await cluster.patch(WORKLOADS, "web", {"metadata": {"annotations": {name: value}}})


async def trouble(cluster: Cluster, **faults: Trouble) -> None:
    """Make trouble, in addition to what there is."""
    data = {name: chaos.written(fault) for name, fault in faults.items()}
    if await cluster.find(CONFIG_MAPS, chaos.PLACE.name, chaos.PLACE.namespace) is None:
        metadata = {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}
        await cluster.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
    else:
        await cluster.patch(CONFIG_MAPS, chaos.PLACE.name, {"data": data}, namespace=chaos.PLACE.namespace)


async def images(cluster: Cluster) -> list[str]:
    """The images of the replicas that are not on their way out."""
    return sorted(
        pod["spec"]["containers"][0]["image"]
        for pod in await cluster.list(PODS)
        if "deletionTimestamp" not in pod["metadata"]
    )
