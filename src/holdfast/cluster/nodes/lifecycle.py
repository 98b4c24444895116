"""The node lifecycle: marks nodes that are silent, and taints nodes by their conditions.

A node is heard from when it renews its Lease in ``kube-node-lease`` or reports its
conditions.  One that was not heard from for long enough is marked Unknown, and the
taints of a node follow from its conditions:

    Ready False    node.kubernetes.io/not-ready      NoSchedule, NoExecute
    Ready Unknown  node.kubernetes.io/unreachable    NoSchedule, NoExecute
    a pressure     node.kubernetes.io/…-pressure     NoSchedule
    cordoned       node.kubernetes.io/unschedulable  NoSchedule

If no node at all is ready, it is more likely that this process is cut off than that all
nodes failed together; then none gets a NoExecute taint, and no pod is evicted.
Unlike Kubernetes, nodes are tainted as soon as they are lost and not one in ten
seconds: the clusters that this is for are small.

What becomes of their pods is decided in `evictions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Condition
from holdfast.client.resources import LEASES, NODES
from holdfast.cluster.nodes.suspension import Suspension
from holdfast.kernel.outcomes import Done, until
from holdfast.meta import times
from holdfast.meta.nodes import NO_EXECUTE, NO_SCHEDULE, NodeSpec, Taint
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import Decision, Notice, Patch

LEASE_NAMESPACE: Final = "kube-node-lease"
KUBELET: Final = "v1.33.0"
"""The version of Kubernetes that nodes of ours behave like."""
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that a node itself reports, and that are Unknown when it is silent."""

_TAINT_OF: Final[Mapping[tuple[str, str], str]] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS: Final = frozenset(
    {(key, NO_SCHEDULE) for key in (*_TAINT_OF.values(), UNSCHEDULABLE)}
    | {(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)}
)
"""The taints that are kept here; others are left alone."""


_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """
    grace     how long a node may be silent before it is Unknown
    startup   how long a new node has to be heard from for the first time
    patience  the longest that a pod stays on a node in trouble, whatever it tolerates; None: as it says
    """

    grace: timedelta = timedelta(seconds=40)
    startup: timedelta = timedelta(seconds=60)
    patience: timedelta | None = None


class _NodeCondition(Condition, frozen=True, rename="camel", gc=False):
    last_heartbeat_time: str | None = None


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    conditions: tuple[_NodeCondition, ...] = ()


class Node(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What its life depends on."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @classmethod
    def of(cls, obj: Object) -> Node:
        return obj.decode(cls)

    def condition(self, type: str) -> _NodeCondition | None:
        return next((each for each in self.status.conditions if each.type == type), None)

    @property
    def ready(self) -> str:
        """True, False, Unknown, or nothing if it was never said."""
        condition = self.condition("Ready")
        return "" if condition is None else condition.status

    @property
    def driving(self) -> tuple[Taint, ...]:
        """The taints that drive pods from it."""
        return tuple(taint for taint in self.spec.taints if taint.effect == NO_EXECUTE)


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    renew_time: str | None = None


class _Lease(msgspec.Struct, frozen=True, gc=False):
    spec: _LeaseSpec = _LeaseSpec()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A node, when its lease was renewed, whether any node is ready, and since when this process has listened.

    Silence before that says nothing about a node.
    """

    node: Object
    renewed: datetime | None = None
    any_ready: bool = True
    listening: datetime | None = None


# --- observe


def observe(view: View, key: Key, *, suspension: Suspension) -> World | None:
    node = view.get(NODES, key)
    if node is None or node.deleting:
        return None
    lease = view.get(LEASES, Key(LEASE_NAMESPACE, key.name))
    renewed = None if lease is None else lease.decode(_Lease).spec.renew_time
    return World(
        node=node,
        renewed=times.parse_micro(renewed) if renewed else None,
        any_ready=bool(view.indexed(NODES, BY_READINESS.name, "True")),
        listening=suspension.since,
    )


def _node_of_lease(lease: Object, view: View) -> Iterable[Key]:
    return (Key("", lease.meta.name),) if lease.meta.namespace == LEASE_NAMESPACE else ()


def _nodes_in_trouble(node: Object, view: View) -> Iterator[Key]:
    """When the last node is lost, or the first is back, all others are to be looked at again."""
    if len(view.indexed(NODES, BY_READINESS.name, "True")) <= 1:
        for state in ("False", "Unknown"):
            yield from (each.key for each in view.indexed(NODES, BY_READINESS.name, state))


BY_READINESS: Final = Index(resource=NODES, name="lifecycle-ready", values=lambda node: (Node.of(node).ready,))


# --- decide


def decide(world: World, now: datetime, *, settings: NodeSettings) -> Decision:
    """Conditions first; taints follow from them in the pass that their change brings."""
    node = Node.of(world.node)
    deadline = _deadline(node, world, settings)
    if now >= deadline and (silent := _silenced(node, now)) is not None:
        status = {**(world.node.wire().get("status") or {}), "conditions": silent}
        return Decision(status=status, notices=_notices(node))
    taints = _taints(node, now, any_ready=world.any_ready)
    writes: tuple[Patch, ...] = ()
    if taints != node.spec.taints:
        patch = Patch(
            resource=NODES,
            key=world.node.key,
            patch={"spec": {"taints": [taint.wire() for taint in taints] or None}},
            uid=world.node.uid,
            version=world.node.version,
            because="the taints of a node follow from its conditions",
        )
        writes = (patch,)
    waits = now < deadline and node.ready != "Unknown"
    because = f"the node must be heard from within {settings.grace.total_seconds():g} s"
    return Decision(writes=writes, outcome=until(deadline, now=now, because=because) if waits else Done())


def _deadline(node: Node, world: World, settings: NodeSettings) -> datetime:
    """When a node counts as silent, if it is not heard from before."""
    said = [condition.last_heartbeat_time for condition in node.status.conditions if condition.type == "Ready"]
    heard = [*(times.parse(each) for each in said if each), *_given(world.renewed)]
    if heard:
        return max((*heard, *_given(world.listening))) + settings.grace
    created = node.metadata.creation_timestamp
    begun = (*_given(times.parse(created) if created else None), *_given(world.listening))
    return max(begun, default=_LONG_AGO) + settings.startup


def _given(instant: datetime | None) -> tuple[datetime, ...]:
    return () if instant is None else (instant,)


def _silenced(node: Node, now: datetime) -> list[dict[str, Any]] | None:
    """The conditions of a node that is silent; None if they say so already."""
    conditions = [_unknown(each, now) if each.type in REPORTED else _wire(each) for each in node.status.conditions]
    there = {each.type for each in node.status.conditions}
    conditions += [_never_reported(type, node, now) for type in REPORTED if type not in there]
    return conditions if conditions != [_wire(each) for each in node.status.conditions] else None


def _unknown(condition: _NodeCondition, now: datetime) -> dict[str, Any]:
    if condition.status == "Unknown":
        return _wire(condition)
    return _wire(condition) | {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": times.format(now),
    }


def _never_reported(type: str, node: Node, now: datetime) -> dict[str, Any]:
    return {
        "type": type,
        "status": "Unknown",
        "lastHeartbeatTime": node.metadata.creation_timestamp,
        "lastTransitionTime": times.format(now),
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
    }


def _wire(condition: _NodeCondition) -> dict[str, Any]:
    wire: dict[str, Any] = msgspec.to_builtins(condition)
    return {name: value for name, value in wire.items() if value not in (None, "")}


def _notices(node: Node) -> tuple[Notice, ...]:
    if node.ready != "True":
        return ()
    return (Notice(reason="NodeNotReady", message=f"Node {node.metadata.name} status is now: NodeNotReady"),)


def _taints(node: Node, now: datetime, *, any_ready: bool) -> tuple[Taint, ...]:
    """The taints that a node should have: others' as they are, and ours, those that it has before new ones."""
    wanted = dict.fromkeys(_wanted(node, any_ready=any_ready))
    kept = tuple(_stamped(taint, now) for taint in node.spec.taints if taint.mark not in _OURS or taint.mark in wanted)
    there = {taint.mark for taint in kept}
    stamp = times.format(now)
    return (*kept, *(Taint(key, "", effect, stamp) for key, effect in wanted if (key, effect) not in there))


def _wanted(node: Node, *, any_ready: bool) -> Iterator[tuple[str, str]]:
    for condition in node.status.conditions:
        key = _TAINT_OF.get((condition.type, condition.status))
        if key is not None:
            yield key, NO_SCHEDULE
            if condition.type == "Ready" and any_ready:
                yield key, NO_EXECUTE
    if node.spec.unschedulable:
        yield UNSCHEDULABLE, NO_SCHEDULE


def _stamped(taint: Taint, now: datetime) -> Taint:
    """Pods tolerate a taint from the moment it was added, so one that drives them must say when that was."""
    if taint.effect != NO_EXECUTE or taint.time_added is not None:
        return taint
    return msgspec.structs.replace(taint, time_added=times.format(now))


def controller(settings: NodeSettings, suspension: Suspension | None = None) -> Controller[World]:
    """Marks nodes that are silent while this process listens: always, unless `suspension` says since when."""
    return Controller(
        name="node-lifecycle",
        resource=NODES,
        watches=(Watch(resource=LEASES, keys=_node_of_lease), Watch(resource=NODES, keys=_nodes_in_trouble)),
        indexes=(BY_READINESS,),
        observe=partial(observe, suspension=suspension or Suspension()),
        decide=partial(decide, settings=settings),
    )
