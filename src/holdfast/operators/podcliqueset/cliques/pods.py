"""The pods of a PodClique, and in which order surplus ones are stopped.  Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from holdfast.client import pods
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.cliques.render import GATE


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
        """Its last run, or the one before, ended with an error."""
        return any(each.terminated is not None and each.terminated.exit_code for each in (self.state, self.last_state))


class _Spec(pods.PodSpec, frozen=True, rename="camel", gc=False):
    scheduling_gates: tuple[_Gate, ...] = ()


class _Status(pods.PodStatus, frozen=True, rename="camel", gc=False):
    container_statuses: tuple[_Container, ...] = ()


class Pod(pods.Pod, frozen=True, rename="camel"):
    """A pod, as far as its PodClique reads it."""

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
    def unschedulable(self) -> bool:
        """The scheduler reports that it finds no node for it."""
        condition = self.condition("PodScheduled")
        return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"

    @property
    def failing(self) -> bool:
        """Scheduled and not ready, and not starting either: a container ended with an error, or has started."""
        if self.ready or not self.scheduled:
            return False
        return any(each.crashed or each.started for each in self.status.container_statuses)


_PHASES: Final = {"Pending": 0, "Unknown": 1}


def expendable(pod: Pod, *, wanted: str) -> tuple[bool, int, bool, bool, float, str]:
    """The order in which surplus pods are stopped: those not ready first, then outdated ones, then the newest."""
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
