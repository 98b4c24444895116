"""Servers that are being deleted on a node that is down: whether their deletion is forced.

A pod on a node that does not report may still run and write.  So the controller deletes it by force only where
the machine is known to be off: its Node object is deleted, or tainted as out of service.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from holdfast.client.objects import Meta
from holdfast.client.resources import PODS
from holdfast.kernel.outcomes import Done, Outcome, soonest, until
from holdfast.kinds.rustfs.tenants import PodDeletionPolicy
from holdfast.meta import times
from holdfast.meta.nodes import Node, Taint, Toleration
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Delete, Notice

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)

_FORCED: Final = {
    PodDeletionPolicy.FORCE_DELETE: "ForceDeletedPodOnDownNode",
    PodDeletionPolicy.DELETE_STATEFUL_SET_POD: "LonghornLikeForceDeletedPodOnDownNode",
    PodDeletionPolicy.DELETE_BOTH: "LonghornLikeForceDeletedPodOnDownNode",
}
"""The policies that force deletions, with the reason of their Event."""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()


class PodOnDownNode(msgspec.Struct, frozen=True):
    """A pod that is being deleted on a node that is down; `node` is None where the Node is deleted."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    node: Node | None = None

    def fenced_at(self) -> datetime | None:
        """From when on the pod is known not to run; None: it may still run."""
        if self.node is None:
            return _ALWAYS
        moments = [self._effective_at(taint) for taint in self.node.spec.taints if taint.key == OUT_OF_SERVICE]
        return min((moment for moment in moments if moment is not None), default=None)

    def _effective_at(self, taint: Taint) -> datetime | None:
        """When the pod stops tolerating a taint; None: never."""
        added = times.parse(taint.time_added) if taint.time_added else _ALWAYS
        tolerated = [each.toleration_seconds for each in self.spec.tolerations if each.tolerates(taint)]
        if not tolerated:
            return added
        seconds = [each for each in tolerated if each is not None]
        # A toleration without an end outlasts every other; of those that end, the last one counts.
        return None if len(seconds) < len(tolerated) else added + timedelta(seconds=max(seconds))


@dataclass(frozen=True, slots=True)
class Deletions:
    """The pods to delete by force, the Events, and when to look again."""

    writes: tuple[Delete, ...] = ()
    notices: tuple[Notice, ...] = ()
    outcome: Outcome = field(default_factory=Done)


def deletions(policy: PodDeletionPolicy | None, pods: Iterable[PodOnDownNode], *, now: datetime) -> Deletions:
    """What a policy does about servers whose node is down."""
    if policy is PodDeletionPolicy.DELETE:
        return Deletions(notices=tuple(map(_waiting, pods)))
    forced = _FORCED.get(policy) if policy is not None else None
    if forced is None:
        return Deletions()
    writes, notices, waits = [], [], []
    for pod in pods:
        fenced = pod.fenced_at()
        if fenced is not None and fenced <= now:
            writes.append(_force(pod))
            notices.append(_notice("Warning", forced, pod, "is deleted by force"))
        else:
            notices.append(_notice("Warning", "PodForceDeleteSkippedNodeNotFenced", pod, _HOW_TO_FENCE))
        if fenced is not None and fenced > now:
            waits.append(until(fenced, now=now, because=f"{pod.metadata.name} stops tolerating its node's taint"))
    return Deletions(tuple(writes), tuple(notices), soonest(waits))


_HOW_TO_FENCE: Final = (
    f"may still run there; delete the Node, or taint it {OUT_OF_SERVICE}, once the machine is known to be off"
)


def _force(pod: PodOnDownNode) -> Delete:
    meta = pod.metadata
    return Delete(
        because=f"its node {pod.spec.node_name} is off",
        resource=PODS,
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        grace_seconds=0,
    )


def _waiting(pod: PodOnDownNode) -> Notice:
    """Its deletion, with its grace period, was requested already."""
    return _notice("Normal", "RequestedPodDeleteOnDownNode", pod, "is being deleted and waits for its node to report")


def _notice(type: Literal["Normal", "Warning"], reason: str, pod: PodOnDownNode, what: str) -> Notice:
    message = f"Server {pod.metadata.name} on node {pod.spec.node_name}, which is down, {what}"
    return Notice(type=type, reason=reason, message=message)
