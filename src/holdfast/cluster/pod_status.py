"""The status of a pod as a node reads its own reports again.

Pure types, decoded from the wire: a simulated node and a process node remember nothing of a
pod beyond what they reported.  This module must not know how a node runs a container.
"""

from __future__ import annotations

import msgspec

from holdfast.client.pods import Condition


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of a status."""


class Running(_Part, frozen=True):
    started_at: str | None = None


class Waiting(_Part, frozen=True):
    reason: str = ""
    message: str = ""


class Terminated(_Part, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(default="", name="containerID")


class State(_Part, frozen=True):
    running: Running | None = None
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True):
    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: State = State()
    last_state: State = State()
    container_id: str = msgspec.field(default="", name="containerID")


class PodStatus(_Part, frozen=True):
    phase: str = "Pending"
    start_time: str | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
