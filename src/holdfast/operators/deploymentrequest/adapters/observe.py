"""The world of one DynamoGraphDeploymentScalingAdapter: the PodClique or scaling group of its component."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.client.objects import Object
from holdfast.kinds.nvidia.adapters import DynamoGraphDeploymentScalingAdapter
from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment
from holdfast.meta.objects import Key
from holdfast.operators.deploymentrequest.graphs.observe import Clique, Group, Part, owner_of_part
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, CLIQUES, GRAPHS, GROUPS
from holdfast.runtime.controllers import Index, View, Watch

_GRAPH: Final = "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    object: Object
    adapter: DynamoGraphDeploymentScalingAdapter
    part: Part | None


def observe(view: View, key: Key) -> World | None:
    obj = view.get(ADAPTERS, key)
    if obj is None or obj.deleting:
        return None
    adapter = obj.decode(DynamoGraphDeploymentScalingAdapter)
    return World(object=obj, adapter=adapter, part=_part(view, key.namespace, adapter))


def _part(view: View, namespace: str, adapter: DynamoGraphDeploymentScalingAdapter) -> Part | None:
    found = view.get(GRAPHS, Key(namespace, adapter.spec.dgd_ref.name))
    status = None if found is None else found.decode(DynamoGraphDeployment).status
    component = None if status is None else status.components.get(adapter.spec.dgd_ref.component_name)
    if component is None or not component.component_names:
        return None
    is_group = component.component_kind == "PodCliqueScalingGroup"
    part = view.get(GROUPS if is_group else CLIQUES, Key(namespace, component.component_names[0]))
    return None if part is None else part.decode(Group) if is_group else part.decode(Clique)


# --- which adapters are reconciled when another object changes


def _of(graph: Key, view: View) -> Iterable[Key]:
    return (each.key for each in view.indexed(ADAPTERS, _GRAPH, str(graph)))


def _of_part(part: Object, view: View) -> Iterable[Key]:
    return (key for graph in owner_of_part(part, view) for key in _of(graph, view))


def _graph(obj: Object) -> Iterable[str]:
    name = obj.decode(DynamoGraphDeploymentScalingAdapter).spec.dgd_ref.name
    return (str(Key(obj.key.namespace, name)),)


WATCHES: Final = (
    Watch(resource=GRAPHS, keys=lambda graph, view: _of(graph.key, view)),
    Watch(resource=CLIQUES, keys=_of_part),
    Watch(resource=GROUPS, keys=_of_part),
)
INDEXES: Final = (Index(resource=ADAPTERS, name=_GRAPH, values=_graph),)
