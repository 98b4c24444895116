"""Pods on unhealthy nodes: not ready while their node is unreachable, and evicted by its taints.

A pod that does not tolerate a ``NoExecute`` taint of its node is deleted at once; one
that tolerates it for a while, when that while is over, counted from the moment the
taint was added or the pod came, whichever is later.  The API server has every pod
tolerate ``not-ready`` and ``unreachable`` for 300 s, unless it has tolerations of its own.

Deletion is all that is done here: a pod of a node that is silent stays until its
node is back to end it, or is deleted itself (`podgc`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import PatchType
from holdfast.client.resources import NODES, PODS
from holdfast.cluster.nodes.lifecycle import NOT_READY, UNREACHABLE, Node, NodeSettings
from holdfast.kernel.outcomes import Done, Outcome, until
from holdfast.meta import times
from holdfast.meta.nodes import Taint, Toleration, tolerating
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import Decision, Delete, Notice, Patch, Write

BY_NODE: Final = Index(resource=PODS, name="eviction-node", values=lambda pod: _nodes(pod))


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()


class _Placed(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


@dataclass(frozen=True, slots=True)
class World:
    """A pod, and the node that it is on."""

    pod: Object
    node: Node


# --- observe


def observe(view: View, key: Key) -> World | None:
    pod = view.get(PODS, key)
    if pod is None or pod.deleting:
        return None
    name = pod.decode(_Placed).spec.node_name
    obj = view.get(NODES, Key("", name)) if name else None
    if obj is None:
        return None
    node = Node.of(obj)
    return World(pod, node) if _troubled(node) else None


def _troubled(node: Node) -> bool:
    return bool(node.driving) or node.ready == "Unknown"


def _nodes(pod: Object) -> tuple[str, ...]:
    name = pod.decode(_Placed).spec.node_name
    return (name,) if name else ()


def _pods_on(node: Object, view: View) -> Iterable[Key]:
    """A healthy node brings none of its pods, so heartbeats cost nothing."""
    if not _troubled(Node.of(node)):
        return ()
    return (pod.key for pod in view.indexed(PODS, BY_NODE.name, node.meta.name))


# --- decide


def decide(world: World, now: datetime, *, settings: NodeSettings) -> Decision:
    obj, pod = world.pod, Pod.of(world.pod)
    if pod.finished:
        return Decision()
    writes: list[Write] = []
    notices: list[Notice] = []
    if world.node.ready == "Unknown" and pod.ready:
        because = "the node is unreachable, so the pod cannot be known to be ready"
        writes.append(condition_patch(obj, now, type="Ready", status="False", because=because))
        notices.append(Notice(type="Warning", reason="NodeNotReady", message="Node is not ready"))
    leaves = leaving(world, settings)
    outcome: Outcome = Done()
    if leaves is not None and leaves <= now:
        disrupted = condition_patch(
            obj,
            now,
            type="DisruptionTarget",
            status="True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            because="its owner is to know that the pod did not fail",
        )
        gone = Delete(resource=PODS, key=obj.key, uid=obj.uid, wave=1, because="its node drives it away")
        writes += [disrupted, gone]
        notices.append(Notice(reason="TaintManagerEviction", message=f"Marking for deletion Pod {obj.key}"))
    elif leaves is not None:
        outcome = until(leaves, now=now, because="it tolerates the taints of its node until then")
    return Decision(writes=tuple(writes), notices=tuple(notices), outcome=outcome)


def leaving(world: World, settings: NodeSettings) -> datetime | None:
    """When a pod must leave its node; None if it may stay for good, or if that is not known yet."""
    tolerations = world.pod.decode(_Placed).spec.tolerations
    came = _came(Pod.of(world.pod))
    deadlines = (_until(taint, tolerations, came, settings) for taint in world.node.driving)
    return min((each for each in deadlines if each is not None), default=None)


def _until(
    taint: Taint, tolerations: Iterable[Toleration], came: datetime | None, settings: NodeSettings
) -> datetime | None:
    if taint.time_added is None:
        return None  # it is stamped soon
    since = max(filter(None, (times.parse(taint.time_added), came)))
    tolerated = tolerating(taint, tolerations)
    if tolerated is None:
        return since
    seconds = tolerated.toleration_seconds
    while_ = None if seconds is None else timedelta(seconds=min(max(seconds, 0), 2**31))
    if settings.patience is not None and taint.key in (NOT_READY, UNREACHABLE):
        while_ = settings.patience if while_ is None else min(while_, settings.patience)
    return None if while_ is None else since + while_


def _came(pod: Pod) -> datetime | None:
    """When a pod was placed."""
    placed = pod.condition("PodScheduled")
    since = placed.last_transition_time if placed is not None and placed.status == "True" else None
    return times.parse(since) if since else None


def condition_patch(
    pod: Object, now: datetime, *, type: str, status: str, because: str, reason: str = "", message: str = ""
) -> Patch:
    """Set one condition of a pod and leave the others alone."""
    condition = {"type": type, "status": status, "lastTransitionTime": times.format(now)}
    condition |= {name: value for name, value in (("reason", reason), ("message", message)) if value}
    return Patch(
        resource=PODS,
        key=pod.key,
        patch={"status": {"conditions": [condition]}},
        uid=pod.uid,
        type=PatchType.STRATEGIC,
        subresource="status",
        because=because,
    )


def controller(settings: NodeSettings) -> Controller[World]:
    return Controller(
        name="taint-eviction",
        resource=PODS,
        watches=(Watch(resource=NODES, keys=_pods_on),),
        indexes=(BY_NODE,),
        observe=observe,
        decide=partial(decide, settings=settings),
    )
