"""The clusters that are fuzzed: one for each operator, with everything that its controllers see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from tests.fuzz.passes import Place
from tests.operators.deploymentrequest.graphs import stories as graph_stories
from tests.operators.podcliqueset import gangsets
from tests.operators.tenant import stories
from tests.operators.workload import stages

from holdfast.client.resources import PODS, Resource
from holdfast.cluster.assembly import Cluster as Parts
from holdfast.kinds import cloudless, grove, grove_scheduler, rustfs
from holdfast.kinds.model import Kind
from holdfast.operators.deploymentrequest.graphs.resources import GRAPHS
from holdfast.operators.podcliqueset import controller as podcliqueset
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS, SETS
from holdfast.operators.tenant import controller as tenant
from holdfast.operators.tenant.admin import AdminError
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.workload import controller as workload
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.runtime.controllers import Controller
from holdfast.testing.clusters import Cluster, play

T = TypeVar("T")


def _unreachable(url: str, keys: Any) -> Any:
    """A store that cannot be reached."""
    raise AdminError("Unreachable", f"{url} cannot be reached")


@dataclass(frozen=True)
class Fuzzed:
    """
    controllers  what is put to the test
    made         the objects that a user creates
    settled      waits until they are as they should be
    mutated      the resources whose objects are mutated
    """

    controllers: tuple[Controller[Any], ...]
    kinds: tuple[Kind, ...]
    made: tuple[tuple[Resource, dict[str, Any]], ...]
    settled: Callable[[Cluster], Any]
    mutated: tuple[Resource, ...]


FUZZED = {
    "workload": Fuzzed(
        controllers=workload.CONTROLLERS,
        kinds=cloudless.KINDS,
        made=((WORKLOADS, stages.workload(replicas=2, ports=[{"containerPort": 80}])),),
        settled=lambda cluster: stages.reaches(cluster, "Completed"),
        mutated=(WORKLOADS, WORKLOADS, PODS),
    ),
    "podcliqueset": Fuzzed(
        controllers=podcliqueset.CONTROLLERS,
        kinds=(*grove.KINDS, *grove_scheduler.KINDS),
        made=(
            (
                SETS,
                gangsets.pcs("wl", gangsets.clique("a"), gangsets.clique("b"), gangsets.group("g", "b")),
            ),
        ),
        settled=gangsets.until_available,
        mutated=(SETS, CLIQUES, GROUPS, GANGS, PODS),
    ),
    "tenant": Fuzzed(
        controllers=tenant.controllers(connect=_unreachable),
        kinds=rustfs.KINDS,
        made=((TENANTS, stories.tenant("store", stories.pool(servers=2))),),
        settled=lambda cluster: stories.reaches(cluster, "Ready"),
        mutated=(TENANTS, PODS),
    ),
    "graphs": Fuzzed(
        controllers=(*podcliqueset.CONTROLLERS, *graph_stories.CONTROLLERS),
        kinds=graph_stories.KINDS,
        made=(
            (
                GRAPHS,
                graph_stories.graph(
                    graph_stories.component(
                        "Frontend", "frontend", 1, main={"ports": [{"name": "http", "containerPort": 80}]}
                    ),
                    graph_stories.component("decode", "decode", 1, multinode={"nodeCount": 2}, sharedMemorySize="1Gi"),
                ),
            ),
        ),
        settled=graph_stories.until_ready,
        mutated=(GRAPHS, GRAPHS, SETS, CLIQUES, GROUPS),
    ),
}


@cache
def place(name: str) -> Place:
    """The objects of an operator, as they are when it has done its work; with the controllers of the cluster."""
    fuzzed = FUZZED[name]

    async def story(cluster: Cluster) -> Place:
        for resource, manifest in fuzzed.made:
            await cluster.create(resource, manifest)
        await fuzzed.settled(cluster)
        await cluster.advance(30)
        return await Place.of(cluster, (*Parts(nodes=2).controllers(), *fuzzed.controllers), fuzzed.kinds)

    return on_cluster(name, story)


def on_cluster(name: str, story: Callable[[Cluster], Awaitable[T]]) -> T:
    """Play a story on a cluster with the operator and two simulated nodes."""
    fuzzed, parts = FUZZED[name], Parts(nodes=2)

    async def played(cluster: Cluster) -> T:
        for resource, manifest in parts.default_objects():
            await cluster.create(resource, manifest)
        return await story(cluster)

    kinds = tuple(dict.fromkeys((*fuzzed.kinds, *grove_scheduler.KINDS)))
    controllers = (*parts.controllers(), *fuzzed.controllers)
    return play(played, controllers=controllers, components=parts.components(), kinds=kinds)
