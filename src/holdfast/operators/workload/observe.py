"""The world of one Workload: its replicas, its revisions, and what else has a say in them.

`observe` reads and counts nothing: what the facts mean is for `decide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import (
    BUDGETS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from holdfast.kinds.cloudless import KINDS, Strategy, Workload
from holdfast.meta import hashing
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.operators.workload.containers import references
from holdfast.operators.workload.render import SWITCHED_FOR, Template, labels
from holdfast.runtime.controllers import Index, View

WORKLOADS: Final = Resource.of(KINDS[0])

_CONFIGS: Final = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class Record(msgspec.Struct, frozen=True):
    """A ControllerRevision: a template with the number that says how new it is."""

    name: str
    uid: str
    number: int
    template: Template


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """What a PodDisruptionBudget asks for."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object     the Workload as it came
    workload   the same, typed
    pods       its replicas, also those that have ended
    records    its revisions by name of the revision
    configs    fingerprints of the ConfigMaps and Secrets that are part of the revision; empty if one is missing
    draining   nodes that take no more pods
    budgets    disruption budgets that select its replicas
    service    the Service whose selector a BlueGreen rollout switches
    released   Services that were switched for it once, and are not any more
    """

    object: Object
    workload: Workload
    pods: tuple[Pod, ...] = ()
    records: Mapping[str, Record]
    configs: Mapping[str, str]
    draining: frozenset[str] = frozenset()
    budgets: tuple[Budget, ...] = ()
    service: Object | None = None
    released: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A Workload that is stored in a form that this release cannot read, as an older definition may have let in."""

    object: Object
    problem: str


def observe(view: View, key: Key) -> World | Unreadable | None:
    """The world of a Workload; None when it is gone, or going: then its replicas go with it."""
    obj = view.get(WORKLOADS, key)
    if obj is None or obj.deleting:
        return None
    try:
        workload = obj.decode(Workload)
    except msgspec.ValidationError as error:
        return Unreadable(object=obj, problem=str(error))
    pods = tuple(Pod.of(pod) for pod in view.owned(PODS, obj.uid) if is_controlled_by(pod, obj))
    service = view.get(SERVICES, Key(key.namespace, service_name(workload))) if switches(workload) else None
    switched = view.indexed(SERVICES, "switched-for", str(key))
    return World(
        object=obj,
        workload=workload,
        pods=pods,
        records={record.template.revision: record for record in _records(view, obj)},
        configs=dict(_fingerprints(view, obj, workload)),
        draining=frozenset(_draining(view, pods)),
        budgets=tuple(_budgets(view, obj, pods)),
        service=service,
        released=tuple(each for each in switched if service is None or each.uid != service.uid),
    )


def switches(workload: Workload) -> bool:
    """Whether traffic goes to one revision at a time."""
    return workload.spec.rollout is not None and workload.spec.rollout.strategy is Strategy.BLUE_GREEN


def service_name(workload: Workload) -> str:
    """The Service of a BlueGreen Workload: the one it names, or its own."""
    rollout = workload.spec.rollout
    named = rollout.blue_green.service if rollout is not None and rollout.blue_green is not None else None
    return named or workload.metadata.name or ""


def is_taken(world: World) -> bool:
    """Whether the Service of the Workload's name is somebody else's, and the spec does not name it either."""
    wish = world.workload.spec.rollout
    named = wish is not None and wish.blue_green is not None and wish.blue_green.service is not None
    return world.service is not None and not named and not is_controlled_by(world.service, world.object)


def is_controlled_by(obj: Object, owner: Object) -> bool:
    controller = obj.controller
    return controller is not None and controller.uid == owner.uid


def _records(view: View, owner: Object) -> Iterator[Record]:
    for obj in view.owned(CONTROLLER_REVISIONS, owner.uid):
        if is_controlled_by(obj, owner):
            kept = obj.decode(_Kept)
            yield Record(obj.key.name, obj.uid, kept.revision, kept.data)


class _Kept(msgspec.Struct):
    data: Template
    revision: int = 0


def _fingerprints(view: View, owner: Object, workload: Workload) -> Iterator[tuple[str, str]]:
    for reference in references(workload.spec):
        if not reference.part_of_revision:
            continue
        found = view.get(_CONFIGS[reference.kind], Key(owner.key.namespace, reference.name))
        if found is not None:
            # Records can be read by people who cannot read Secrets.  With the UID of the Secret, which they do not
            # know either, not even a short one can be guessed from its fingerprint.
            salt = found.uid if reference.kind == "Secret" else ""
            yield str(reference), hashing.short_hash([salt, _content(found)])
        elif not reference.optional:
            yield str(reference), ""


def _content(obj: Object) -> Mapping[str, Any]:
    wire = obj.wire()
    return {field: wire[field] for field in ("data", "binaryData") if wire.get(field)}


class _NodeSpec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _Node(msgspec.Struct):
    spec: _NodeSpec = _NodeSpec()


def _is_draining(node: Object) -> bool:
    return node.decode(_Node).spec.unschedulable


def _draining(view: View, pods: Iterable[Pod]) -> Iterator[str]:
    for name in {pod.spec.node_name for pod in pods} - {""}:
        node = view.get(NODES, Key("", name))
        if node is not None and _is_draining(node):
            yield name


class _BudgetSpec(Budget, frozen=True, rename="camel"):
    selector: dict[str, Any] | None = None


class _Budget(msgspec.Struct):
    spec: _BudgetSpec = _BudgetSpec()


def _budgets(view: View, owner: Object, pods: Iterable[Pod]) -> Iterator[Budget]:
    """Budgets that select a replica, or will select the next one."""
    worn = [{**owner.meta.labels, **labels(owner.key.name)}, *(pod.metadata.labels for pod in pods)]
    for obj in view.list(BUDGETS, namespace=owner.key.namespace):
        spec = obj.decode(_Budget).spec
        if spec.selector is not None and any(map(LabelSelector.from_object(spec.selector).matches, worn)):
            yield Budget(spec.min_available, spec.max_unavailable)


# --- whose world changes when something else does


def _mentions(obj: Object) -> Iterable[str]:
    """What a Workload refers to by name, as `mentioned` spells it."""
    try:
        workload, namespace = obj.decode(Workload), obj.key.namespace
    except msgspec.ValidationError:
        return ()
    names = {f"{reference.kind}/{namespace}/{reference.name}" for reference in references(workload.spec)}
    return names | ({f"Service/{namespace}/{service_name(workload)}"} if switches(workload) else set())


def mentioned(obj: Object, view: View) -> Iterable[Key]:
    """The Workloads that refer to a ConfigMap, Secret or Service."""
    name = f"{obj.resource.kind}/{obj.key.namespace}/{obj.key.name}"
    return [workload.key for workload in view.indexed(WORKLOADS, "mentions", name)]


def on_node(obj: Object, view: View) -> Iterable[Key]:
    """The Workloads that have replicas on a node that is drained; what else happens to nodes concerns nobody."""
    pods = view.indexed(PODS, "workload-node", obj.key.name) if _is_draining(obj) else ()
    return {Key(pod.key.namespace, pod.controller.name) for pod in pods if pod.controller is not None}


def beside(obj: Object, view: View) -> Iterable[Key]:
    """The Workloads in the namespace of a disruption budget, which may select their replicas."""
    return [workload.key for workload in view.list(WORKLOADS, namespace=obj.key.namespace)]


def _node_of(pod: Object) -> Iterable[str]:
    controller = pod.controller
    if controller is None or controller.kind != WORKLOADS.kind or controller.group != WORKLOADS.group:
        return ()
    node = Pod.of(pod).spec.node_name
    return (node,) if node else ()


def _switched_for(service: Object) -> Iterable[str]:
    name = service.meta.annotations.get(SWITCHED_FOR)
    return (str(Key(service.key.namespace, name)),) if name else ()


INDEXES: Final = (
    Index(resource=WORKLOADS, name="mentions", values=_mentions),
    Index(resource=PODS, name="workload-node", values=_node_of),
    Index(resource=SERVICES, name="switched-for", values=_switched_for),
)
