"""DynamoGraphDeployments as tests write them, and a cluster of simulated nodes to play their stories on."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.cluster.assembly import Cluster as Parts
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.kinds import grove, grove_scheduler
from holdfast.kinds.nvidia import adapters, deployments, models
from holdfast.operators.deploymentrequest.adapters.controller import CONTROLLERS as ADAPTER_CONTROLLERS
from holdfast.operators.deploymentrequest.graphs.controller import CONTROLLERS
from holdfast.operators.deploymentrequest.graphs.resources import CLIQUES, GRAPHS, GROUPS, SETS
from holdfast.operators.deploymentrequest.models.controller import CONTROLLERS as MODEL_CONTROLLERS
from holdfast.operators.podcliqueset.controller import CONTROLLERS as GANG_CONTROLLERS
from holdfast.runtime.controllers import Component
from holdfast.testing.clusters import Cluster, play

__all__ = ["CLIQUES", "CONTROLLERS", "GANG_CONTROLLERS", "GRAPHS", "GROUPS", "KINDS", "SETS", "Cluster"]

T = TypeVar("T")
KINDS = (*grove.KINDS, *grove_scheduler.KINDS, deployments.KIND, models.KIND, adapters.KIND)
QUICK = {"sim.holdfast.dev/ready-after": "1s", "sim.holdfast.dev/stop-after": "1s"}


def component(
    name: str, type: str | None = "worker", replicas: int | None = None, *, gpus: int = 0, **more: Any
) -> dict[str, Any]:
    main: dict[str, Any] = {"name": "main", "image": "engine:1"}
    if gpus:
        main["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    main |= more.pop("main", {})
    template = {"metadata": {"annotations": QUICK}, "spec": {"containers": [main], **more.pop("spec", {})}}
    made: dict[str, Any] = {"name": name, "podTemplate": template, **more}
    if type is not None:
        made["type"] = type
    if replicas is not None:
        made["replicas"] = replicas
    return made


def graph(*components: dict[str, Any], name: str = "chat", annotations: Any = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"components": list(components), **spec}}


def disaggregated(**more: Any) -> dict[str, Any]:
    """A frontend, two prefill workers, and three decode workers of which two must be available."""
    return graph(
        component("Frontend", "frontend", 1),
        component("prefill", "prefill", 2),
        component("decode", "decode", 3, minAvailable=2),
        **more,
    )


def with_image(manifest: Mapping[str, Any], image: str, *names: str) -> dict[str, Any]:
    """The manifest with another image of these components, or of all."""
    made = copy.deepcopy(dict(manifest))
    for each in made["spec"]["components"]:
        if not names or each["name"] in names:
            each["podTemplate"]["spec"]["containers"][0]["image"] = image
    return made


def simulated(story: Callable[[Cluster], Awaitable[T]], *, nodes: int = 2, gpus: int = 8, memory: str = "128Gi") -> T:
    """Play a story on simulated nodes, with everything that a cluster has."""
    parts = Parts(nodes=nodes)
    components: list[Component] = [each for each in parts.components() if not isinstance(each, SimulatedNodes)]
    components.append(SimulatedNodes(Fleet(count=nodes, memory=memory, extended={"nvidia.com/gpu": str(gpus)})))
    controllers = (*parts.controllers(), *GANG_CONTROLLERS, *CONTROLLERS, *MODEL_CONTROLLERS, *ADAPTER_CONTROLLERS)
    return play(story, controllers=controllers, components=components, kinds=KINDS)


async def status(cluster: Cluster, name: str = "chat") -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(GRAPHS, name)).get("status") or {}
    return found


async def until_ready(cluster: Cluster, name: str = "chat", *, within: float = 300) -> dict[str, Any]:
    """Wait until the graph is as its spec says."""

    async def ready() -> bool:
        obj = await cluster.get(GRAPHS, name)
        now = obj.get("status") or {}
        return now.get("state") == "successful" and now.get("observedGeneration") == obj["metadata"]["generation"]

    await cluster.until(ready, within=within)
    return await status(cluster, name)


async def update(cluster: Cluster, manifest: Mapping[str, Any]) -> None:
    await cluster.patch(GRAPHS, manifest["metadata"]["name"], {"spec": manifest["spec"]})


def condition(obj: Mapping[str, Any], type: str = "Ready") -> tuple[str, str]:
    """The status and the reason of a condition of a status."""
    found = obj.get("conditions") or ()
    return next(((each["status"], each["reason"]) for each in found if each["type"] == type), ("", ""))


def message(obj: Mapping[str, Any], type: str = "Ready") -> str:
    return next((str(each["message"]) for each in obj.get("conditions") or () if each["type"] == type), "")
