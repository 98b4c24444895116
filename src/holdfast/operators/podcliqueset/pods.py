"""The pods of a PodClique as their owner sees them, and which of them goes first.

Pure.  This module must not know why a pod goes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from holdfast.client import pods
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.pod_render import GATE


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class _Gate(_Part, frozen=True):
    name: str = ""


class _Terminated(_Part, frozen=True):
    exit_code: int = 0


class _State(_Part, frozen=True):
    terminated: _Terminated | None = None


class _Container(pods.ContainerStatus, frozen=True, rename="camel", gc=False):
    started: bool | None = None
    state: _State = _State()
    last_state: _State = _State()

    @property
    def crashed(self) -> bool:
        """Its run before this one, or this one, ended badly."""
        return any(each.terminated is not None and each.terminated.exit_code for each in (self.state, self.last_state))


class _Spec(pods.PodSpec, frozen=True, rename="camel", gc=False):
    scheduling_gates: tuple[_Gate, ...] = ()


class _Status(pods.PodStatus, frozen=True, rename="camel", gc=False):
    container_statuses: tuple[_Container, ...] = ()


class Pod(pods.Pod, frozen=True, rename="camel", gc=False):
    """What a PodClique reads of one of its pods, beside what every owner does."""

    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def template_hash(self) -> str:
        return self.metadata.labels.get(labels.TEMPLATE_HASH, "")

    @property
    def index(self) -> int | None:
        return labels.index(self.metadata.labels, labels.POD_INDEX)

    @property
    def created_at(self) -> datetime:
        return times.parse(self.metadata.creation_timestamp or "")

    @property
    def scheduled(self) -> bool:
        return bool(self.spec.node_name)

    @property
    def gated(self) -> bool:
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)

    @property
    def unplaceable(self) -> bool:
        """A scheduler has said that there is no room for it."""
        condition = self.condition("PodScheduled")
        return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"

    @property
    def failing(self) -> bool:
        """Not ready, and not because it is still starting: a container of it ended badly, or has started long since."""
        if self.ready or not self.scheduled:
            return False
        return any(each.crashed or each.started for each in self.status.container_statuses)


_PHASES: Final = {"Pending": 0, "Unknown": 1}


def expendable(pod: Pod, *, wanted: str) -> tuple[bool, int, bool, bool, float, str]:
    """By what pods are sorted when there are too many: those that are missed least go first, the newest of equals."""
    return (
        pod.scheduled,
        _PHASES.get(pod.status.phase, 2),
        pod.ready,
        pod.template_hash == wanted,
        -pod.created_at.timestamp(),
        pod.name,
    )


def free_indices(pods: tuple[Pod, ...], count: int) -> tuple[int, ...]:
    """The `count` smallest indices that no active pod has."""
    taken = {pod.index for pod in pods if pod.active}
    found: list[int] = []
    index = 0
    while len(found) < count:
        if index not in taken:
            found.append(index)
        index += 1
    return tuple(found)
