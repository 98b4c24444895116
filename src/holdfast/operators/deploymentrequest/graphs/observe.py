"""The world of one DynamoGraphDeployment: its PodCliqueSets, the parts of each component, and where its workers are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Pod
from holdfast.client.resources import CONFIG_MAPS, PODS, SERVICES, Resource
from holdfast.kinds.grove.cliques import PodCliqueStatus
from holdfast.kinds.grove.groups import PodCliqueScalingGroupStatus
from holdfast.kinds.grove.sets import PodCliqueSet, PodCliqueSetStatus
from holdfast.kinds.model import Condition, Status
from holdfast.kinds.nvidia.adapters import DynamoGraphDeploymentScalingAdapter
from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.operators.deploymentrequest.graphs import names
from holdfast.operators.deploymentrequest.graphs.components import clique_name, is_group
from holdfast.operators.deploymentrequest.graphs.environment import WORKERS
from holdfast.operators.deploymentrequest.graphs.mocks import PROCESS, as_processes
from holdfast.operators.deploymentrequest.graphs.render import has_workers_file, set_name
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, CLIQUES, GRAPHS, GROUPS, SETS
from holdfast.runtime.controllers import View
from holdfast.runtime.references import References

RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)


# --- what is read of a PodCliqueSet and its parts


class _Sized(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 1
    min_available: int = 1


class Clique(msgspec.Struct, frozen=True):
    """A PodClique."""

    metadata: Meta = Meta()
    spec: _Sized = _Sized()
    status: PodCliqueStatus = PodCliqueStatus()

    @property
    def ready(self) -> int:
        return self.status.ready_replicas or 0

    @property
    def available(self) -> int:
        floor = self.status.floor
        return self.ready if floor is None or floor.available is None else floor.available

    @property
    def has_unscheduled(self) -> bool:
        """Pods of it exist that are not scheduled."""
        return (self.status.replicas or 0) > (self.status.scheduled_replicas or 0)


class Group(msgspec.Struct, frozen=True):
    """A PodCliqueScalingGroup."""

    metadata: Meta = Meta()
    spec: _Sized = _Sized()
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()

    @property
    def ready(self) -> int:
        return self.status.available_replicas or 0

    @property
    def available(self) -> int:
        return self.ready

    @property
    def has_unscheduled(self) -> bool:
        """The gravest problem of its pods is that no node has room for them, or only some replicas are scheduled."""
        about, scheduled = condition(self.status, "PodsReady"), self.status.scheduled_replicas or 0
        unschedulable = about is not None and about.status == "False" and about.reason == "Unschedulable"
        return unschedulable or 0 < scheduled < (self.status.replicas or 0)


Part = Clique | Group


@dataclass(frozen=True)
class Gang:
    """A PodCliqueSet of the graph, with the parts of the components that exist, by component."""

    object: Object
    parts: Mapping[str, Part] = field(default_factory=dict)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """Its spec, as the API has it."""
        found: dict[str, Any] = self.object.wire()["spec"]
        return found

    @property
    def name(self) -> str:
        return self.object.key.name

    @cached_property
    def status(self) -> PodCliqueSetStatus:
        return self.object.decode(PodCliqueSet).status or PodCliqueSetStatus()

    @property
    def fresh(self) -> bool:
        """Its status is about its current spec, and was not written by a pass that failed on the way."""
        return self.status.observed_generation == self.object.meta.generation and not self.status.last_errors

    @property
    def restarts(self) -> dict[str, str]:
        """The `restart.id` that the pods of each clique are given, by clique."""
        listed = self.spec["template"]["cliques"]
        return {each["name"]: (each.get("annotations") or {}).get(names.RESTART, "") for each in listed}

    def has(self, part: Part) -> bool:
        """Whether all replicas of a part have the template of the set."""
        wanted = self.status.current_generation_hash
        return (
            self.fresh
            and wanted is not None
            and is_fresh(part)
            and part.status.current_pod_clique_set_generation_hash == wanted
        )


def is_fresh(part: Part) -> bool:
    """Whether the status of a part is about its current spec."""
    return part.status.observed_generation == part.metadata.generation


def condition(status: Status, type: str) -> Condition | None:
    return next((each for each in status.conditions if each.type == type), None)


@dataclass(frozen=True, slots=True)
class Adapter:
    """A scaling adapter of the graph: the component, and the size that it asks for."""

    object: Object
    component: str
    replicas: int

    @classmethod
    def of(cls, obj: Object) -> Adapter:
        spec = obj.decode(DynamoGraphDeploymentScalingAdapter).spec
        return cls(obj, spec.dgd_ref.component_name, spec.replicas)


# --- the world


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object     the graph as it was read
    graph      the same, typed
    gangs      its PodCliqueSets that are not being deleted: one, or two while one replaces the other
    addresses  of the workers that are ready, by component; only where a frontend reads them from a file
    adapters   its scaling adapters, by component
    """

    object: Object
    graph: DynamoGraphDeployment
    gangs: tuple[Gang, ...] = ()
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    adapters: Mapping[str, Adapter] = field(default_factory=dict)

    @property
    def before(self) -> DynamoGraphDeploymentStatus:
        return self.graph.status or DynamoGraphDeploymentStatus()


def observe(view: View, key: Key) -> World | None:
    """The world of a graph; None when it is gone or being deleted: then everything of it is garbage."""
    obj = view.get(GRAPHS, key)
    if obj is None or obj.deleting:
        return None
    graph = _graph(view, obj)
    owned = _controlled(view, SETS, obj)
    for each in owned:
        each.decode(PodCliqueSet)  # one that cannot be read is reported, and not changed
    return World(
        object=obj,
        graph=graph,
        gangs=tuple(Gang(each, _parts(view, each, graph)) for each in owned),
        addresses=_addresses(view, obj, graph) if has_workers_file(graph) else {},
        adapters={each.component: each for each in map(Adapter.of, _controlled(view, ADAPTERS, obj))},
    )


def _graph(view: View, obj: Object) -> DynamoGraphDeployment:
    """The graph; where the cluster runs pods as processes, its mock components run so."""
    graph = obj.decode(DynamoGraphDeployment)
    return graph if view.get(RUNTIME_CLASSES, Key("", PROCESS)) is None else as_processes(graph)


def _controlled(view: View, resource: Resource, owner: Object) -> list[Object]:
    """The objects of the graph that are not being deleted."""
    return [each for each in view.owned(resource, owner.uid) if each.is_controlled_by(owner.uid) and not each.deleting]


def _parts(view: View, pod_clique_set: Object, graph: DynamoGraphDeployment) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for component in graph.spec.components:
        name = names.part(pod_clique_set.key.name, clique_name(component))
        part = view.get(GROUPS if is_group(component) else CLIQUES, Key(pod_clique_set.key.namespace, name))
        if part is not None and not part.deleting and part.is_controlled_by(pod_clique_set.uid):
            found[component.name] = part.decode(Group) if is_group(component) else part.decode(Clique)
    return found


def _addresses(view: View, obj: Object, graph: DynamoGraphDeployment) -> dict[str, tuple[str, ...]]:
    return {
        component.name: tuple(
            pod.status.pod_ip
            for pod in map(Pod.of, _pods(view, obj, component.name))
            if pod.ready and pod.active and pod.status.pod_ip
        )
        for component in graph.spec.components
        if component.type in WORKERS
    }


def _pods(view: View, obj: Object, component: str) -> tuple[Object, ...]:
    wanted = {"matchLabels": names.of_component(obj.key.name, component)}
    return view.list(PODS, namespace=obj.key.namespace, labels=LabelSelector.from_object(wanted))


# --- which graphs are reconciled when another object changes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str]]:
    """The names of the objects of a graph, which others may have taken."""
    graph = obj.decode(DynamoGraphDeployment)
    yield SETS, set_name(graph)
    yield CONFIG_MAPS, names.workers(obj.key.name)
    yield from ((SERVICES, names.service(obj.key.name, each.name)) for each in graph.spec.components)


REFERENCES: Final = References(GRAPHS, _mentions)


def owner_of_part(part: Object, view: View) -> Iterable[Key]:
    """The graph of a PodClique or scaling group that a PodCliqueSet of the graph owns."""
    owner = part.controller
    if owner is None or owner.kind != SETS.kind:
        return
    pod_clique_set = view.get(SETS, Key(part.meta.namespace, owner.name))
    graph = None if pod_clique_set is None else pod_clique_set.controller
    if graph is not None and graph.kind == GRAPHS.kind:
        yield Key(part.meta.namespace, graph.name)


def owner_of_adapter(adapter: Object, view: View) -> Iterable[Key]:
    """The graph of a scaling adapter."""
    owner = adapter.controller
    return (Key(adapter.meta.namespace, owner.name),) if owner is not None and owner.kind == GRAPHS.kind else ()


def owner_of_worker(pod: Object, view: View) -> Iterable[Key]:
    """The graph of a worker, where a frontend reads the addresses of workers from a file."""
    graph = pod.meta.labels.get(names.GRAPH)
    if graph is None or pod.meta.labels.get(names.COMPONENT_TYPE) not in WORKERS:
        return
    for each in view.indexed(GRAPHS, BY_LABEL, f"{pod.meta.namespace}/{graph}"):
        if has_workers_file(_graph(view, each)):
            yield each.key


BY_LABEL: Final = "label"
"""The index of graphs by the value of the label that their objects have."""


def label_of(graph: Object) -> Iterable[str]:
    return (f"{graph.key.namespace}/{names.label(graph.key.name)}",)
