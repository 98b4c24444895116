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
from holdfast.operators.workload.render import REVISION, WORKLOAD, Template
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

    name: str = ""
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
    """

    object: Object
    workload: Workload
    pods: tuple[Pod, ...] = ()
    records: Mapping[str, Record]
    configs: Mapping[str, str]
    draining: frozenset[str] = frozenset()
    budgets: tuple[Budget, ...] = ()
    service: Object | None = None


def observe(view: View, key: Key) -> World | None:
    """The world of a Workload; None when it is gone, or going: then its replicas go with it."""
    obj = view.get(WORKLOADS, key)
    if obj is None or obj.deleting:
        return None
    workload = obj.decode(Workload)
    pods = tuple(Pod.of(pod) for pod in view.owned(PODS, obj.uid) if _is_ours(pod, obj))
    return World(
        object=obj,
        workload=workload,
        pods=pods,
        records={record.template.revision: record for record in _records(view, obj)},
        configs=dict(_fingerprints(view, obj, workload)),
        draining=frozenset(_draining(view, pods)),
        budgets=tuple(_budgets(view, obj)),
        service=view.get(SERVICES, Key(key.namespace, service_name(workload))) if switches(workload) else None,
    )


def switches(workload: Workload) -> bool:
    """Whether traffic goes to one revision at a time."""
    return workload.spec.rollout is not None and workload.spec.rollout.strategy is Strategy.BLUE_GREEN


def service_name(workload: Workload) -> str:
    """The Service of a BlueGreen Workload: the one it names, or its own."""
    rollout = workload.spec.rollout
    named = rollout.blue_green.service if rollout is not None and rollout.blue_green is not None else None
    return named or workload.metadata.name or ""


def _is_ours(obj: Object, owner: Object) -> bool:
    controller = obj.controller
    return controller is not None and controller.uid == owner.uid


def _records(view: View, owner: Object) -> Iterator[Record]:
    for obj in view.owned(CONTROLLER_REVISIONS, owner.uid):
        if _is_ours(obj, owner):
            kept = obj.decode(_Kept)
            yield Record(obj.key.name, obj.uid, kept.revision, kept.data)


class _Kept(msgspec.Struct):
    data: Template
    revision: int = 0


def _fingerprints(view: View, owner: Object, workload: Workload) -> Iterator[tuple[str, str]]:
    for kind, name, counts in references(workload.spec):
        if counts:
            found = view.get(_CONFIGS[kind], Key(owner.key.namespace, name))
            # Salted, because the fingerprint of a short secret could be guessed.
            yield f"{kind}/{name}", "" if found is None else hashing.short_hash([owner.uid, _content(found)])


def _content(obj: Object) -> Mapping[str, Any]:
    wire = obj.wire()
    return {field: wire[field] for field in ("data", "binaryData") if wire.get(field)}


class _NodeSpec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _Node(msgspec.Struct):
    spec: _NodeSpec = _NodeSpec()


def _draining(view: View, pods: Iterable[Pod]) -> Iterator[str]:
    for name in {pod.spec.node_name for pod in pods} - {""}:
        node = view.get(NODES, Key("", name))
        if node is not None and node.decode(_Node).spec.unschedulable:
            yield name


class _BudgetSpec(Budget, frozen=True, rename="camel"):
    selector: dict[str, Any] | None = None


class _Budget(msgspec.Struct):
    spec: _BudgetSpec = _BudgetSpec()


def _budgets(view: View, owner: Object) -> Iterator[Budget]:
    labels = owner.meta.labels | {WORKLOAD: owner.key.name}
    for obj in view.list(BUDGETS, namespace=owner.key.namespace):
        spec = obj.decode(_Budget).spec
        if spec.selector is not None and LabelSelector.from_object(spec.selector).matches(labels):
            yield Budget(obj.key.name, spec.min_available, spec.max_unavailable)


# --- whose world changes when something else does


def _mentions(obj: Object) -> Iterable[str]:
    """What a Workload refers to by name, as `mentioned` spells it."""
    workload, namespace = obj.decode(Workload), obj.key.namespace
    names = {f"{kind}/{namespace}/{name}" for kind, name, _ in references(workload.spec)}
    return names | ({f"Service/{namespace}/{service_name(workload)}"} if switches(workload) else set())


def mentioned(obj: Object, view: View) -> Iterable[Key]:
    """The Workloads that refer to a ConfigMap, Secret or Service."""
    name = f"{obj.resource.kind}/{obj.key.namespace}/{obj.key.name}"
    return [workload.key for workload in view.indexed(WORKLOADS, "mentions", name)]


def on_node(obj: Object, view: View) -> Iterable[Key]:
    """The Workloads that have replicas on a node."""
    pods = view.indexed(PODS, "node", obj.key.name)
    return {Key(pod.meta.namespace, pod.meta.labels[WORKLOAD]) for pod in pods}


def beside(obj: Object, view: View) -> Iterable[Key]:
    """The Workloads in the namespace of a disruption budget, which may select their replicas."""
    return [workload.key for workload in view.list(WORKLOADS, namespace=obj.key.namespace)]


def _node_of(obj: Object) -> Iterable[str]:
    if WORKLOAD not in obj.meta.labels or REVISION not in obj.meta.labels:
        return ()
    node = Pod.of(obj).spec.node_name
    return (node,) if node else ()


INDEXES: Final = (
    Index(resource=WORKLOADS, name="mentions", values=_mentions),
    Index(resource=PODS, name="node", values=_node_of),
)
