"""Servers that are to go and cannot, because their node is down: whether they are let go by force.

A pod on a node that nobody hears of may still run, and write.  So it is taken away by force only where the
node is known to be off: its Node object is gone, or somebody tainted it as out of service.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from holdfast.client.objects import Meta
from holdfast.client.pods import Condition
from holdfast.client.resources import PODS
from holdfast.kernel.outcomes import Done, Outcome, soonest, until
from holdfast.kinds.rustfs.tenants import PodDeletionPolicy
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Delete, Notice

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

_EVER: Final = datetime.min.replace(tzinfo=UTC)

_FORCED: Final = {
    PodDeletionPolicy.FORCE_DELETE: "ForceDeletedPodOnDownNode",
    PodDeletionPolicy.DELETE_STATEFUL_SET_POD: "LonghornLikeForceDeletedPodOnDownNode",
    PodDeletionPolicy.DELETE_BOTH: "LonghornLikeForceDeletedPodOnDownNode",
}
"""The policies that let servers go by force, with what is told of it."""


class Taint(msgspec.Struct, frozen=True, rename="camel"):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(msgspec.Struct, frozen=True, rename="camel"):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        if self.key not in ("", taint.key) or self.effect not in ("", taint.effect):
            return False
        return self.operator == "Exists" or (self.key == taint.key and self.value == taint.value)


class NodeSpec(msgspec.Struct, frozen=True):
    taints: tuple[Taint, ...] = ()


class NodeStatus(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()


class Stranded(msgspec.Struct, frozen=True):
    """A pod that is being deleted on a node that is down; `node` is None where that no longer exists."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    node: Node | None = None

    def fenced_at(self) -> datetime | None:
        """Since when, or from when on, its node is known to be off for it; None: it is not."""
        if self.node is None:
            return _EVER
        moments = [self._until(taint) for taint in self.node.spec.taints if taint.key == OUT_OF_SERVICE]
        return min((moment for moment in moments if moment is not None), default=None)

    def _until(self, taint: Taint) -> datetime | None:
        """When a taint begins to count for it: at once, after a while, or never (None)."""
        added = times.parse(taint.time_added) if taint.time_added else _EVER
        tolerated = [each.toleration_seconds for each in self.spec.tolerations if each.tolerates(taint)]
        if not tolerated:
            return added
        seconds = [each for each in tolerated if each is not None]
        # A toleration without an end outlasts every other; of those that end, the last one counts.
        return None if len(seconds) < len(tolerated) else added + timedelta(seconds=max(seconds))


@dataclass(frozen=True, slots=True)
class Clearance:
    """What is done about stranded servers, what is told of it, and when to look again."""

    writes: tuple[Delete, ...] = ()
    notices: tuple[Notice, ...] = ()
    outcome: Outcome = field(default_factory=Done)


def clear(policy: PodDeletionPolicy | None, stranded: Iterable[Stranded], *, now: datetime) -> Clearance:
    """What a policy makes of servers whose node is down."""
    if policy is PodDeletionPolicy.DELETE:
        return Clearance(notices=tuple(map(_waiting, stranded)))
    forced = _FORCED.get(policy) if policy is not None else None
    if forced is None:
        return Clearance()
    writes, notices, waits = [], [], []
    for pod in stranded:
        fenced = pod.fenced_at()
        if fenced is not None and fenced <= now:
            writes.append(_force(pod))
            notices.append(_told("Warning", forced, pod, "was taken away by force"))
        else:
            notices.append(_told("Warning", "PodForceDeleteSkippedNodeNotFenced", pod, _HOW_TO_FENCE))
        if fenced is not None and fenced > now:
            waits.append(until(fenced, now=now, because=f"{pod.metadata.name} no longer tolerates its node's taint"))
    return Clearance(tuple(writes), tuple(notices), soonest(waits))


_HOW_TO_FENCE: Final = (
    f"may still run there; delete the Node, or taint it {OUT_OF_SERVICE}, once the machine is known to be off"
)


def _force(pod: Stranded) -> Delete:
    meta = pod.metadata
    return Delete(
        because=f"its node {pod.spec.node_name} is off",
        resource=PODS,
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        grace_seconds=0,
    )


def _waiting(pod: Stranded) -> Notice:
    """Its deletion is under way; with its grace, nothing is left to ask for."""
    return _told("Normal", "RequestedPodDeleteOnDownNode", pod, "is to go, and waits for its node to say that it has")


def _told(type: Literal["Normal", "Warning"], reason: str, pod: Stranded, what: str) -> Notice:
    message = f"Server {pod.metadata.name} on node {pod.spec.node_name}, which is down, {what}"
    return Notice(type=type, reason=reason, message=message)
