"""Pods as a simulated node reads and reports them.

A run of a container is a value: not begun, going on, or over.  It is read from the
pod's own status and written there, so a node remembers nothing.  The API keeps whole
seconds only; the identifier of a container, which is the node's to choose, says to
the microsecond when its run began.  This module must not know what happens next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.client.objects import Meta
from holdfast.client.pods import ReadinessGate
from holdfast.cluster.pod_status import ContainerStatus, PodStatus, Terminated, Waiting
from holdfast.meta import times

_SCHEME: Final = "sim://"
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


# --- what is asked for


class ContainerSpec(_Part, frozen=True):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    readiness_probe: dict[str, Any] | None = None
    startup_probe: dict[str, Any] | None = None

    @property
    def sidecar(self) -> bool:
        """Of an init container: it runs on beside the others."""
        return self.restart_policy == "Always"

    @property
    def probed(self) -> bool:
        """Whether it is asked if it is ready, so that running and being ready are two things."""
        return self.readiness_probe is not None or self.startup_probe is not None


class PodSpec(_Part, frozen=True):
    node_name: str = ""
    runtime_class_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    host_network: bool = False
    containers: tuple[ContainerSpec, ...] = ()
    init_containers: tuple[ContainerSpec, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()


class Pod(_Part, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """As a kubelet names it in messages."""
        return f"{self.metadata.name}_{self.metadata.namespace}({self.metadata.uid})"

    @property
    def job(self) -> bool:
        """Whether it is there to end."""
        return any(owner.kind == "Job" and owner.controller for owner in self.metadata.owner_references)


# --- runs


@dataclass(frozen=True, slots=True)
class Idle:
    """Not begun, and why not yet."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """Going on."""

    since: datetime
    image: str
    ready: bool = False


@dataclass(frozen=True, slots=True)
class Over:
    """At its end."""

    since: datetime
    at: datetime
    code: int
    reason: str

    @classmethod
    def ended(cls, run: Live, at: datetime, code: int) -> Over:
        return cls(run.since, at, code, "Error" if code else "Completed")


Run: TypeAlias = Idle | Live | Over


@dataclass(frozen=True, slots=True)
class Container:
    """A container's present run, how often it was begun again, and how the run before ended."""

    run: Run = Idle()
    restarts: int = 0
    last: Over | None = None


# --- from the status


def reported(statuses: Iterable[ContainerStatus]) -> dict[str, Container]:
    return {status.name: _container(status) for status in statuses}


def _container(status: ContainerStatus) -> Container:
    state, before = status.state, status.last_state.terminated
    last = None if before is None else _over(before)
    if state.running is not None:
        since = _began(status.container_id, state.running.started_at)
        return Container(Live(since, status.image, status.ready), status.restart_count, last)
    if state.terminated is not None:
        return Container(_over(state.terminated), status.restart_count, last)
    if last is not None:
        return Container(last, status.restart_count)
    waiting = state.waiting or Waiting("ContainerCreating")
    return Container(Idle(waiting.reason, waiting.message), status.restart_count)


def _over(terminated: Terminated) -> Over:
    since = _began(terminated.container_id, terminated.started_at)
    return Over(since, max(since, _moment(terminated.finished_at)), terminated.exit_code, terminated.reason)


def _began(container_id: str, started_at: str | None) -> datetime:
    stamp, _, _ = container_id.removeprefix(_SCHEME).partition("/")
    return _moment(stamp if container_id.startswith(_SCHEME) else started_at)


def _moment(stamp: str | None) -> datetime:
    """A time as it was reported.  Reports of others may leave it open, as of what could not even be started."""
    return times.parse_micro(stamp) if stamp else _LONG_AGO


# --- to the status


def report(
    spec: ContainerSpec, container: Container, pod: Pod, *, waiting: Mapping[str, str] | None = None, init: bool = False
) -> dict[str, Any]:
    """The status of a container; `waiting` says why one that is over will be begun again."""
    run, last = container.run, container.last
    status: dict[str, Any] = {"name": spec.name, "image": spec.image, "imageID": "", "restartCount": container.restarts}
    match run:
        case Idle(reason, message):
            state: dict[str, Any] = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Live(since, image):
            state = {"running": {"startedAt": times.format(since)}}
            status |= {"image": image, "imageID": _image_id(image), "containerID": _container_id(since, pod, spec)}
        case Over(since) if waiting is not None:
            state, last = {"waiting": dict(waiting)}, run
            status |= {"imageID": _image_id(spec.image), "containerID": _container_id(since, pod, spec)}
        case Over(since):
            state = {"terminated": _terminated(run, pod, spec)}
            status |= {"imageID": _image_id(spec.image), "containerID": _container_id(since, pod, spec)}
    done = init and not spec.sidecar
    status["state"] = state
    status["lastState"] = {} if last is None else {"terminated": _terminated(last, pod, spec)}
    status["ready"] = isinstance(run, Over) and run.code == 0 if done else isinstance(run, Live) and run.ready
    status["started"] = isinstance(run, Live)
    return status


def _terminated(over: Over, pod: Pod, spec: ContainerSpec) -> dict[str, Any]:
    return {
        "exitCode": over.code,
        "reason": over.reason,
        "startedAt": times.format(over.since),
        "finishedAt": times.format(over.at),
        "containerID": _container_id(over.since, pod, spec),
    }


def _container_id(since: datetime, pod: Pod, spec: ContainerSpec) -> str:
    return f"{_SCHEME}{times.format_micro(since)}/{pod.metadata.uid}/{spec.name}"


def _image_id(image: str) -> str:
    name, _, digest = image.partition("@")
    return f"{name}@{digest or 'sha256:' + sha256(image.encode()).hexdigest()}"
