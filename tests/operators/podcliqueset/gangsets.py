"""PodCliqueSets as tests write them, and a cluster of simulated nodes to play their stories on."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.client.protocols import Added, Deleted, Modified
from holdfast.client.resources import EVENTS, NODES, PODS, Resource
from holdfast.cluster.assembly import Cluster as Parts
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.kinds import grove, grove_scheduler
from holdfast.operators.podcliqueset.controller import CONTROLLERS
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS, SETS
from holdfast.runtime.controllers import Component
from holdfast.testing.clusters import Cluster, play

__all__ = ["CLIQUES", "GANGS", "GROUPS", "SETS", "Cluster"]

T = TypeVar("T")
KINDS = (*grove.KINDS, *grove_scheduler.KINDS)


def clique(
    name: str,
    replicas: int = 1,
    *,
    minimum: int | None = None,
    after: Iterable[str] = (),
    annotations: Mapping[str, str] | None = None,
    memory: str = "",
    **more: Any,
) -> dict[str, Any]:
    """A clique; `memory` is what each of its pods asks for."""
    container: dict[str, Any] = {"name": "main", "image": "nginx:1"}
    if memory:
        container["resources"] = {"requests": {"memory": memory}}
    spec: dict[str, Any] = {"roleName": f"role-{name}", "replicas": replicas, "podSpec": {"containers": [container]}}
    if minimum is not None:
        spec["minAvailable"] = minimum
    if after:
        spec["startsAfter"] = list(after)
    spec |= more.pop("spec", {})
    made = {"name": name, "spec": spec, **more}
    return made | ({"annotations": dict(annotations)} if annotations else {})


def group(name: str, *cliques: str, replicas: int = 1, minimum: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "cliqueNames": list(cliques), "replicas": replicas, "minAvailable": minimum, **more}


def pcs(
    name: str = "web",
    *parts: dict[str, Any],
    replicas: int = 1,
    strategy: Mapping[str, Any] | None = None,
    **template: Any,
) -> dict[str, Any]:
    """A PodCliqueSet of these cliques and groups."""
    cliques = [part for part in parts if "spec" in part]
    groups = [part for part in parts if "cliqueNames" in part]
    spec: dict[str, Any] = {"replicas": replicas, "template": {"cliques": cliques, **template}}
    if groups:
        spec["template"]["podCliqueScalingGroups"] = groups
    if strategy:
        spec["updateStrategy"] = dict(strategy)
    return {"metadata": {"name": name}, "spec": spec}


def workload(
    name: str = "wl", *, strict: bool = True, replicas: int = 1, memory: str = "", **more: Any
) -> dict[str, Any]:
    """Ten pods a replica: pc-a twice, and twice a group of pc-b and three of pc-c; strict ones need all of them."""

    def least(number: int) -> int:
        return number if strict else 1

    # A time of their own, so that every story has the same moments.
    ready = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}
    sizes = {"pc-a": 2, "pc-b": 1, "pc-c": 3}
    after = more.pop("after", {})
    cliques = [
        clique(each, size, minimum=least(size), memory=memory, annotations=ready, after=after.get(each, ()))
        for each, size in sizes.items()
    ]
    return pcs(name, *cliques, group("sg-x", "pc-b", "pc-c", replicas=2, minimum=least(2)), replicas=replicas, **more)


def changed(manifest: Mapping[str, Any], *cliques: str, to: str = "1") -> dict[str, Any]:
    """The manifest with another template of these cliques, or of all."""
    made = copy.deepcopy(dict(manifest))
    for each in made["spec"]["template"]["cliques"]:
        if not cliques or each["name"] in cliques:
            each["spec"]["podSpec"]["containers"][0]["env"] = [{"name": "UPDATE_TRIGGER", "value": to}]
    return made


# --- stories


def simulated(story: Callable[[Cluster], Awaitable[T]], *, nodes: int = 4, memory: str = "128Gi") -> T:
    """Play a story on simulated nodes, with everything that a cluster has."""
    parts = Parts(nodes=nodes)
    components: list[Component] = [each for each in parts.components() if not isinstance(each, SimulatedNodes)]
    components.append(SimulatedNodes(Fleet(count=nodes, memory=memory)))
    return play(story, controllers=(*parts.controllers(), *CONTROLLERS), components=components, kinds=KINDS)


def condition(obj: Mapping[str, Any], type: str) -> tuple[str, str]:
    """The status and the reason of a condition; empty where there is none."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return next(((each["status"], each["reason"]) for each in found if each["type"] == type), ("", ""))


def message(obj: Mapping[str, Any], type: str) -> str:
    """The message of a condition."""
    return next((str(each["message"]) for each in obj["status"]["conditions"] if each["type"] == type), "")


async def events(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Type, reason and object of each Event."""
    return [(each["type"], each["reason"], each["involvedObject"]["name"]) for each in await cluster.list(EVENTS)]


async def status(cluster: Cluster, name: str = "wl") -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(SETS, name)).get("status") or {}
    return found


async def until_available(cluster: Cluster, name: str = "wl", *, within: float = 120) -> dict[str, Any]:
    async def available() -> bool:
        obj = await cluster.get(SETS, name)
        now = obj.get("status") or {}
        return (
            now.get("availableReplicas") == obj["spec"].get("replicas", 0)
            and now.get("observedGeneration") == obj["metadata"]["generation"]
        )

    await cluster.until(available, within=within)
    return await status(cluster, name)


async def until_updated(cluster: Cluster, name: str = "wl", *, within: float = 300) -> dict[str, Any]:
    async def updated() -> bool:
        obj = await cluster.get(SETS, name)
        now = obj.get("status") or {}
        progress = now.get("rollingUpdateProgress") or {}
        return (
            now.get("updatedReplicas") == obj["spec"].get("replicas", 0)
            and "updateEndedAt" in progress
            and now.get("observedGeneration") == obj["metadata"]["generation"]
        )

    await cluster.until(updated, within=within)
    return await status(cluster, name)


async def update(cluster: Cluster, manifest: Mapping[str, Any]) -> None:
    """Ask for what the manifest says now."""
    patch = {"spec": {"template": {"cliques": manifest["spec"]["template"]["cliques"]}}}
    await cluster.patch(SETS, manifest["metadata"]["name"], patch)


async def pods(cluster: Cluster, labels: str = "") -> list[dict[str, Any]]:
    """Pods that are not on their way out."""
    return [pod for pod in await cluster.list(PODS, labels) if "deletionTimestamp" not in pod["metadata"]]


async def scale(cluster: Cluster, resource: Any, name: str, replicas: int) -> None:
    await cluster.patch(resource, name, {"spec": {"replicas": replicas}}, subresource="scale")


async def cordon(cluster: Cluster, *, off: bool = False) -> None:
    for node in await cluster.list(NODES):
        await cluster.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": None if off else True}})


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


# --- what was seen on the way


@dataclass
class Film:
    """Every version of objects of a resource, in order; what was deleted is marked."""

    frames: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def statuses(self) -> Iterator[dict[str, Any]]:
        """Each different status, one after the other."""
        last: dict[str, Any] = {}
        for _, obj in self.frames:
            now = obj.get("status") or {}
            if now != last:
                yield now
            last = now


@asynccontextmanager
async def filmed(cluster: Cluster, resource: Resource) -> AsyncIterator[Film]:
    """Watch a resource from now on."""
    film = Film()
    begun = asyncio.Event()

    async def watch() -> None:
        listed = await cluster.client.list(resource)
        begun.set()
        async with cluster.client.watch(resource, since=listed.version) as events:
            async for event in events:
                if isinstance(event, Added | Modified | Deleted):
                    film.frames.append((type(event).__name__, event.object.wire()))

    watching = asyncio.create_task(watch())
    await begun.wait()
    try:
        yield film
        await cluster.settle()
    finally:
        watching.cancel()


def down_at_once(film: Film, present: Iterable[Mapping[str, Any]], *by: str) -> tuple[int, int]:
    """How many were down together at the worst moment: parts, told apart by these labels, and pods of one part."""

    def part(pod: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(pod["metadata"]["labels"].get(label, "") for label in by)

    state = {pod["metadata"]["name"]: (part(pod), is_ready(pod)) for pod in present}
    wanted = Counter(kind for kind, _ in state.values())
    parts, pods = 0, 0
    for event, pod in film.frames:
        state[pod["metadata"]["name"]] = (
            part(pod),
            event != "Deleted" and is_ready(pod) and "deletionTimestamp" not in pod["metadata"],
        )
        ready = Counter(kind for kind, is_up in state.values() if is_up)
        down = [number - ready[kind] for kind, number in wanted.items() if ready[kind] < number]
        parts, pods = max(parts, len(down)), max(pods, *down, 0)
    return parts, pods
