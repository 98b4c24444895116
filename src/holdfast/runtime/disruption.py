"""Disruption: the budgets that keep floors while nodes are drained, and the nodes that are.

An operator owns a PodDisruptionBudget for each of its floors, unless another budget
selects the same pods already: the eviction API refuses pods that two budgets select.
While a node of its pods is cordoned, an operator stops ready pods by eviction too, so
that one budget decides for the drain and for the rollout.  This module must not know
any kind of an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import PatchType
from holdfast.client.resources import BUDGETS, NODES, PODS, Resource
from holdfast.kernel.limits import Limits
from holdfast.meta import amounts
from holdfast.meta.nodes import Node
from holdfast.meta.objects import Key, owner_reference
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Index, View, Watch
from holdfast.runtime.decisions import Create, Delete, Evict, Patch, Write

# --- budgets


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """What a PodDisruptionBudget asks for."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: dict[str, Any] | None = None

    def floor(self, replicas: int) -> int:
        """How many of `replicas` it keeps; both percentages round up, as Kubernetes' do."""
        if self.min_available is not None:
            return amounts.resolve(self.min_available, replicas, round="up")
        if self.max_unavailable is not None:
            return max(replicas - amounts.resolve(self.max_unavailable, replicas, round="up"), 0)
        return 0


class _Budget(msgspec.Struct, frozen=True):
    spec: Budget = Budget()


def _is_ours(budget: Object, resource: Resource) -> bool:
    """Whether an object of a resource owns a budget: then it selects the pods of that object alone."""
    owner = budget.controller
    return owner is not None and (owner.kind, owner.group) == (resource.kind, resource.group)


def budgets_of_others(resource: Resource) -> Index:
    """Budgets by namespace, but for those that objects of a resource own: they select the pods of their owners."""

    def values(budget: Object) -> Iterable[str]:
        return () if _is_ours(budget, resource) else (budget.key.namespace,)

    return Index(resource=BUDGETS, name=f"not-of-{resource.plural}", values=values)


def foreign_budgets(
    view: View, owner: Object, pod_labels: Iterable[Mapping[str, str]], *, index: Index | None = None
) -> tuple[Budget, ...]:
    """The budgets of others that select pods with any of these labels in the namespace of `owner`.

    index  `budgets_of_others`, where many objects of the owner's resource have budgets of their own
    """
    worn, namespace = pod_labels, owner.key.namespace
    found = []
    for obj in (
        view.list(BUDGETS, namespace=namespace) if index is None else view.indexed(BUDGETS, index.name, namespace)
    ):
        budget = obj.decode(_Budget).spec
        if obj.is_controlled_by(owner.uid) or budget.selector is None:
            continue
        worn = worn if isinstance(worn, list) else list(worn)
        if any(map(LabelSelector.from_object(budget.selector).matches, worn)):
            found.append(budget)
    return tuple(found)


def is_reported(old: Object | None, new: Object | None) -> bool:
    """Whether an object is a budget of which only the status changed: with each pod, and no operator reads it."""
    return old is not None and new is not None and old.resource == BUDGETS and _asked(old) == _asked(new)


def _asked(budget: Object) -> tuple[object, ...]:
    meta = budget.meta
    return meta.uid, meta.generation, meta.labels, meta.owner_references, meta.deletion_timestamp


def own_budget(view: View, owner: Object, name: str) -> Object | None:
    """The budget of this name, whether it is the owner's or not."""
    return view.get(BUDGETS, Key(owner.key.namespace, name))


def budget_writes(
    owner: Object,
    existing: Object | None,
    *,
    name: str,
    selector: Mapping[str, str],
    limits: Limits,
    wanted: bool,
) -> Iterator[Write]:
    """Keep the budget of an owner's floor as it should be; one of that name that is not the owner's is left alone.

    wanted  whether there should be one: the user did not switch it off, and no other budget selects the pods
    """
    if existing is not None and not existing.is_controlled_by(owner.uid):
        return
    floor = limits.drain_floor
    if not wanted or floor <= 0:
        if existing is not None and not existing.deleting:
            yield Delete(because="no budget is needed", resource=BUDGETS, key=existing.key, uid=existing.uid)
        return
    spec = {
        "minAvailable": floor,
        "selector": {"matchLabels": dict(selector)},
        # A pod that is not ready serves no requests, so it must not keep a drain from ending.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    if existing is None:
        metadata = {
            "name": name,
            "namespace": owner.key.namespace,
            "labels": dict(selector),
            "ownerReferences": [owner_reference(owner.head())],
        }
        manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
        yield Create(because=f"a drain keeps {floor} available", resource=BUDGETS, manifest=manifest)
    elif not existing.deleting and (existing.wire().get("spec") or {}) != spec:
        patch = [{"op": "replace", "path": "/spec", "value": spec}]
        yield Patch(
            because=f"a drain keeps {floor} available",
            resource=BUDGETS,
            key=existing.key,
            patch=patch,
            uid=existing.uid,
            type=PatchType.JSON,
        )


def in_namespace_of_budget(resource: Resource) -> Watch:
    """Reconcile the objects of a resource beside which a budget changed, since it may select their pods.

    A budget that an object of the resource owns selects the pods of its owner only.
    """

    def keys(obj: Object, view: View) -> Iterable[Key]:
        if _is_ours(obj, resource):
            return ()
        return [each.key for each in view.list(resource, namespace=obj.key.namespace)]

    return Watch(resource=BUDGETS, keys=keys)


# --- nodes


def _is_cordoned(node: Object) -> bool:
    return node.decode(Node).spec.unschedulable


def cordoned(view: View, names: Iterable[str]) -> frozenset[str]:
    """Those of the named nodes that take no new pods."""
    found = ((name, view.get(NODES, Key("", name))) for name in set(names) - {""})
    return frozenset(name for name, node in found if node is not None and _is_cordoned(node))


def lost(view: View, names: Iterable[str]) -> frozenset[str]:
    """Those of the named nodes that do not report."""
    found = ((name, view.get(NODES, Key("", name))) for name in set(names) - {""})
    return frozenset(name for name, node in found if node is not None and not node.decode(Node).ready)


def _node_of(pod: Object) -> Iterable[str]:
    name = Pod.of(pod).spec.node_name if pod.controller is not None else ""
    return (name,) if name else ()


PODS_BY_NODE: Final = Index(resource=PODS, name="node", values=_node_of)
"""Pods that have a controller, by the name of their node."""


def on_changed_node(
    resource: Resource, *, owner: Callable[[Object], Key | None] | None = None, cordoned_only: bool = True
) -> Watch:
    """Reconcile those that have pods on a node that changed; `owner` finds them where they do not control pods."""

    def controlling(pod: Object) -> Key | None:
        found = pod.controller
        ours = found is not None and found.kind == resource.kind and found.group == resource.group
        return Key(pod.key.namespace, found.name) if found is not None and ours else None

    def keys(node: Object, view: View) -> Iterable[Key]:
        if cordoned_only and not _is_cordoned(node):
            return ()
        found = map(owner or controlling, view.indexed(PODS, PODS_BY_NODE.name, node.key.name))
        return {key for key in found if key is not None}

    return Watch(resource=NODES, keys=keys)


# --- stopping pods


def stop(meta: Meta, because: str, *, evict: bool, wave: int = 0) -> Delete | Evict:
    """Stop a pod: by eviction, which disruption budgets may refuse, or else by deletion."""
    key = Key(meta.namespace, meta.name)
    if evict:
        return Evict(because=because, key=key, uid=meta.uid, wave=wave)
    return Delete(because=because, resource=PODS, key=key, uid=meta.uid, wave=wave)
