"""How the rollout of a graph is shown: its state, and its components with their replicas and pods as a tree.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.pods import Pod as ServingPod
from holdfast.client.resources import PODS
from holdfast.kinds.nvidia.deployments import (
    ComponentStatus,
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    GraphComponent,
)
from holdfast.meta.selectors import LabelSelector
from holdfast.operators.deploymentrequest.graphs import names
from holdfast.operators.deploymentrequest.graphs.components import is_group, minimum, nodes, pod_spec, replicas
from holdfast.operators.deploymentrequest.graphs.environment import FRONTEND, PORTS
from holdfast.operators.deploymentrequest.graphs.observe import Clique
from holdfast.operators.deploymentrequest.graphs.render import target_port
from holdfast.operators.deploymentrequest.graphs.resources import CLIQUES
from holdfast.operators.deploymentrequest.graphs.status import READY
from holdfast.operators.rollouts import (
    Headline,
    Observed,
    Wire,
    generation_seen,
    is_current,
    left_alone,
    message_of,
    status_of,
)
from holdfast.views.overview import Counted
from holdfast.views.rollouts import Floor, RolloutState, Standing, condition, floor_warnings, moment, said
from holdfast.views.trees import NEW, OLD, Branch, Leaf, Pod, Tree, leaves

_RUNNING: Final = ("Pending", "InProgress")


class Graph:
    """A graph, and the pods and PodCliques of its components."""

    def __init__(self, observed: Observed) -> None:
        self.object = observed.object
        self.graph = observed.object.decode(DynamoGraphDeployment)
        self._view = observed.view

    @property
    def name(self) -> str:
        return self.object.key.name

    @property
    def status(self) -> DynamoGraphDeploymentStatus:
        return self.graph.status or DynamoGraphDeploymentStatus()

    def reported(self, component: GraphComponent) -> ComponentStatus:
        return self.status.components.get(component.name) or ComponentStatus(component_kind="PodClique")

    def pods(self, component: GraphComponent) -> tuple[Object, ...]:
        marks = {"matchLabels": names.of_component(self.name, component.name)}
        namespace = self.object.key.namespace
        return self._view.list(PODS, namespace=namespace, labels=LabelSelector.from_object(marks))

    def cliques(self, component: GraphComponent) -> tuple[Object, ...]:
        marks = {"matchLabels": names.of_component(self.name, component.name)}
        namespace = self.object.key.namespace
        return self._view.list(CLIQUES, namespace=namespace, labels=LabelSelector.from_object(marks))

    def endpoints(self) -> Iterator[str]:
        """The addresses of the frontends that are ready."""
        for component in self.graph.spec.components:
            if component.type == FRONTEND:
                port = target_port(component, *PORTS[FRONTEND])
                for pod in map(ServingPod.of, self.pods(component)):
                    if pod.ready and pod.active and pod.status.pod_ip:
                        yield f"http://{pod.status.pod_ip}:{port}"


def fresh(obj: Object) -> bool:
    status = obj.decode(DynamoGraphDeployment).status
    return generation_seen(obj, None if status is None else status.observed_generation)


# --- its state


def standing(observed: Observed) -> Standing:
    graph = Graph(observed)
    status, rolling = graph.status, graph.status.rolling_update
    components = graph.graph.spec.components
    made = Standing(
        name=graph.name,
        strategy="RollingUpdate",
        state=_state(graph) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=(status.state or "new").capitalize(),
        because=said(condition(status, READY)),
        desired=sum(_wanted(graph, each) for each in components),
        ready=sum(_available(graph, each) for each in components),
        available=sum(_available(graph, each) for each in components),
        updated=sum(graph.reported(each).updated_replicas or 0 for each in components),
        floors=tuple(_floor(graph, each) for each in components),
        started=None if rolling is None else moment(rolling.start_time),
        ended=None if rolling is None else moment(rolling.end_time),
        warnings=floor_warnings(status),
        facts=tuple(_facts(graph)),
        more={
            "components": {each.name: _component_json(graph, each) for each in components},
            "endpoints": list(graph.endpoints()),
        },
    )
    return left_alone(observed.object, made)


def _wanted(graph: Graph, component: GraphComponent) -> int:
    if component.scaling_adapter is not None or component.replicas is None:
        return graph.reported(component).replicas or replicas(component)
    return replicas(component)


def _available(graph: Graph, component: GraphComponent) -> int:
    return graph.reported(component).available_replicas or 0


def _state(graph: Graph) -> RolloutState:
    status = graph.status
    if status.state == "failed":
        return RolloutState.BLOCKED
    return RolloutState.COMPLETED if status.state == "successful" else RolloutState.UNDER_WAY


def _floor(graph: Graph, component: GraphComponent) -> Floor:
    """The floor that the PodClique keeps; minAvailable where it spans several nodes or says nothing."""
    wanted = _wanted(graph, component)
    if not is_group(component):
        for each in graph.cliques(component):
            reported = each.decode(Clique).status.floor
            if reported is not None and not each.deleting:
                return Floor.reported(reported, desired=wanted, name=component.name)
    floor = min(minimum(component), wanted)
    return Floor(name=component.name, ready=_available(graph, component), desired=wanted, floor=floor)


def _facts(graph: Graph) -> Iterator[str]:
    rolling, restart = graph.status.rolling_update, graph.status.restart
    if rolling is not None and rolling.phase in _RUNNING:
        total = len(graph.graph.spec.components)
        yield f"{len(rolling.updated_components)} of {total} components updated"
    if restart is not None and restart.phase == "Restarting":
        yield f"restarting {', '.join(restart.in_progress)}"
    found = list(graph.endpoints())
    if found:
        yield f"serves at {', '.join(found[:3])}{' and more' if len(found) > 3 else ''}"


def _component_json(graph: Graph, component: GraphComponent) -> dict[str, Any]:
    reported = graph.reported(component)
    return {
        "type": component.type,
        "replicas": _wanted(graph, component),
        "readyReplicas": reported.ready_replicas,
        "availableReplicas": reported.available_replicas,
        "updatedReplicas": reported.updated_replicas,
    }


# --- the tree


def tree(observed: Observed, now: datetime) -> Tree:
    """The components, in the order of the spec, each with its pods; one on several nodes with its replicas first."""
    graph = Graph(observed)
    components = graph.graph.spec.components
    return Tree(
        standing=standing(observed),
        branches=tuple(_branch(graph, each, now) for each in components),
        now=now,
        size=sum(_wanted(graph, each) * nodes(each) for each in components),
    )


def _branch(graph: Graph, component: GraphComponent, now: datetime) -> Branch:
    pods = [each.decode(Pod) for each in graph.pods(component)]
    wanted = {each.key.name: each.meta.labels.get(names.TEMPLATE_HASH) for each in graph.cliques(component)}
    reported = graph.reported(component)
    done = (reported.available_replicas or 0) >= _wanted(graph, component) and all(_is_new(p, wanted) for p in pods)
    floor = _floor(graph, component)
    return Branch(
        name=component.name,
        index=NEW if all(_is_new(pod, wanted) for pod in pods) else OLD,
        marks=(component.type,) if component.type else (),
        note=f"floor {floor.floor}",
        images=_images(component, [pod for pod in pods if not _is_new(pod, wanted)]),
        prefix=f"{graph.name}-0-{component.name.lower()}-",
        urgent=not done,
        children=tuple(_children(component, pods, wanted, now)),
    )


def _children(
    component: GraphComponent, pods: Sequence[Pod], wanted: Mapping[str, str | None], now: datetime
) -> Iterator[Branch | Leaf]:
    def index(pod: Pod) -> int:
        return NEW if _is_new(pod, wanted) else OLD

    if not is_group(component):
        yield from leaves(pods, index=index, now=now)
        return
    grouped: dict[str, list[Pod]] = {}
    for pod in pods:
        grouped.setdefault(pod.metadata.labels.get(names.GROUP_INDEX, "?"), []).append(pod)
    for number in sorted(grouped, key=lambda text: (len(text), text)):
        found = grouped[number]
        yield Branch(
            name=f"replica {number}",
            index=NEW if all(_is_new(pod, wanted) for pod in found) else OLD,
            note=f"{len(found)} of {nodes(component)} pods",
            children=leaves(found, index=index, now=now),
        )


def _is_new(pod: Pod, wanted: Mapping[str, str | None]) -> bool:
    """Whether a pod has the template of its PodClique; a pod without a PodClique is old."""
    clique = pod.metadata.labels.get(names.CLIQUE, "")
    return clique in wanted and pod.metadata.labels.get(names.TEMPLATE_HASH) == wanted[clique]


def _images(component: GraphComponent, old: Sequence[Pod]) -> tuple[str, ...]:
    wanted = tuple(str(each.get("image", "")) for each in pod_spec(component).get("containers") or ())
    before = next((pod.images for pod in old), ())
    changed = next(((one, other) for one, other in zip(before, wanted, strict=False) if one != other), None)
    return changed or wanted[:1]


# --- in one line


def counts(wire: Wire) -> Counted:
    """The replicas of all components, from the object alone."""
    found = [each for each in (status_of(wire).get("components") or {}).values() if isinstance(each, Mapping)]
    ready, there, updated = (
        sum(each.get(field) or 0 for each in found) for field in ("availableReplicas", "replicas", "updatedReplicas")
    )
    wanted = sum(each.get("replicas") or 1 for each in wire["spec"].get("components") or ())
    return ready, max(wanted, there), updated


def headline(wire: Wire) -> Headline:
    status = status_of(wire)
    state = status.get("state") or "new"
    return Headline(state.capitalize(), message_of(wire, READY), is_current(wire) and state == "successful")
