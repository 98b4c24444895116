"""The facts of one reconciliation of a graph: what each component asks for, what it has, and what is applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.kernel import children
from holdfast.kernel.children import Desired, Keep, Observed
from holdfast.kernel.outcomes import Permanent
from holdfast.kinds.nvidia.deployments import GraphComponent
from holdfast.operators.deploymentrequest.graphs import render
from holdfast.operators.deploymentrequest.graphs.components import minimum, replicas, scales_itself
from holdfast.operators.deploymentrequest.graphs.observe import Adapter, Gang, Part, World
from holdfast.operators.deploymentrequest.graphs.reasons import GraphReason
from holdfast.operators.deploymentrequest.graphs.restarts import Restarts, restarts
from holdfast.operators.deploymentrequest.graphs.validate import problems


@dataclass(frozen=True, kw_only=True)
class ComponentFacts:
    """A component, and the PodClique or scaling group that runs it; `gang` is the PodCliqueSet of that."""

    component: GraphComponent
    gang: Gang | None
    part: Part | None
    adapter: Adapter | None = None

    @property
    def name(self) -> str:
        return self.component.name

    @property
    def wanted(self) -> int:
        """The replicas that there should be; a scaling adapter can ask for none, or for minAvailable or more."""
        if self.adapter is not None:
            return max(self.adapter.replicas, minimum(self.component)) if self.adapter.replicas else 0
        if self.part is not None and scales_itself(self.component):
            return self.part.spec.replicas
        return replicas(self.component)

    @property
    def floor(self) -> int:
        """The replicas that must be available."""
        return min(minimum(self.component), self.wanted)

    @property
    def ready(self) -> int:
        return 0 if self.part is None else self.part.ready

    @property
    def available(self) -> int:
        return 0 if self.part is None else self.part.available

    @property
    def updated(self) -> bool:
        """All its replicas have the template of the PodCliqueSet."""
        return self.gang is not None and self.part is not None and self.gang.has(self.part)

    @property
    def settled(self) -> bool:
        """It has exactly the replicas that there should be, all of them updated and ready."""
        part = self.part
        if part is None or not self.updated:
            return False
        counts = (part.spec.replicas, part.status.replicas or 0, part.status.updated_replicas or 0, part.ready)
        return all(number == self.wanted for number in counts)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """
    current     the PodCliqueSet that has the cliques of the spec; None before there is one
    outgoing    PodCliqueSets with other cliques, which `current` replaces
    components  the components of the spec, in their order
    manifest    the PodCliqueSet as it should be
    """

    world: World
    current: Gang | None
    outgoing: tuple[Gang, ...]
    components: tuple[ComponentFacts, ...]
    restarts: Restarts
    manifest: Mapping[str, Any]

    @property
    def desired(self) -> Desired:
        # It is deleted when its successor is ready, and not because another one is wanted.
        return Desired(self.manifest, prune=False, wave=1)

    @cached_property
    def applied(self) -> bool:
        """Whether the PodCliqueSet is as it should be."""
        if self.current is None:
            return False
        have = Observed.of(self.current.object.wire())
        return all(isinstance(step, Keep) for step in children.diff([self.desired], [have], owner=self._owner))

    @property
    def _owner(self) -> dict[str, Any]:
        return self.world.object.wire()

    @cached_property
    def template_changes(self) -> bool:
        """Whether the PodCliqueSet is about to get other pod templates."""
        if self.current is None:
            return False
        have = self.current.spec["template"]["cliques"]
        wanted = self.manifest["spec"]["template"]["cliques"]
        return not self.applied and any(children.differences(list(map(_pods, have)), list(map(_pods, wanted))))

    @property
    def settled(self) -> bool:
        """Everything is as the spec says."""
        return self.complete and not self.outgoing

    @property
    def complete(self) -> bool:
        """The PodCliqueSet is as the spec says, and all its components are ready."""
        return self.applied and all(each.settled for each in self.components)

    @property
    def serving(self) -> bool:
        """Every component has the replicas available that it needs, in whichever PodCliqueSet."""
        return all(self.available(each) >= each.floor for each in self.components)

    def available(self, each: ComponentFacts) -> int:
        others = (gang.parts.get(each.name) for gang in self.outgoing)
        return each.available + sum(part.available for part in others if part is not None)


def _pods(clique: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("name", "labels", "annotations")
    return {name: clique.get(name) for name in fields} | {"podSpec": clique["spec"].get("podSpec")}


def assess(world: World) -> Facts:
    """The facts of one reconciliation; raises `Permanent` for an invalid spec."""
    graph = world.graph
    found = problems(graph)
    if found:
        raise Permanent(GraphReason.INVALID, "; ".join(map(str, found)))
    wanted = render.layout(render.pod_clique_set(graph, restarts={})["spec"])
    current = next((gang for gang in world.gangs if render.layout(gang.spec) == wanted), None)
    components = tuple(
        ComponentFacts(
            component=each,
            gang=current,
            part=None if current is None else current.parts.get(each.name),
            adapter=None if each.scaling_adapter is None else world.adapters.get(each.name),
        )
        for each in graph.spec.components
    )
    restarted = restarts(graph, current, {each.name: each.settled for each in components})
    if current is not None:
        manifest = render.pod_clique_set(graph, restarts=restarted.ids, name=current.name)
    else:
        manifest = render.pod_clique_set(graph, restarts=restarted.ids)
        if any(gang.name == manifest["metadata"]["name"] for gang in world.gangs):
            manifest = render.pod_clique_set(graph, restarts=restarted.ids, named_by_layout=True)
    return Facts(
        world=world,
        current=current,
        outgoing=tuple(gang for gang in world.gangs if gang is not current),
        components=components,
        restarts=restarted,
        manifest=manifest,
    )
