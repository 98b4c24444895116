"""The contract between the operator and a hypervisor: the calls, their values, their errors.

`Hypervisor` has two kinds of implementations: the hypervisors themselves (`simulated`, `qemu`, `libvirt`), and the
client that speaks to one over gRPC.  The operator cannot tell them apart, so its tests run without sockets.

Calls answer soon.  What takes long is a task: the call returns its `Task`, and `task` says how far it is and when
to look again.  Every call may be repeated: a provider that is asked twice for the same thing does it once.
This module must not know gRPC, the kinds, or the operator.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Protocol, Self, runtime_checkable

import msgspec


class Code(StrEnum):
    """What went wrong with a call, and so what helps."""

    NOT_FOUND = "NotFound"
    INVALID = "InvalidArgument"
    RETRYABLE = "Unavailable"
    UNAUTHORIZED = "Unauthorized"
    QUOTA = "QuotaExceeded"
    CONFLICT = "Conflict"
    UNSUPPORTED = "Unsupported"
    INTERNAL = "Internal"


class ProviderError(Exception):
    """A call that failed: a code for machines, a sentence without secrets for people."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    @property
    def transient(self) -> bool:
        return self.code is Code.RETRYABLE


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value of the contract."""


# --- what a machine is to be -----------------------------------------------------------


class Disk(_Value, frozen=True):
    name: str
    size_gib: int = 0
    type: str = ""


class Nic(_Value, frozen=True):
    name: str
    network: str = ""
    bridge: str = ""
    portgroup: str = ""
    vlan: int = 0
    model: str = ""
    mac: str = ""
    ip_policy: str = ""
    static_ip: str = ""
    prefix: int = 0
    gateway: str = ""
    dns: str = ""


class Image(_Value, frozen=True):
    """Where the first disk comes from: a prepared image or template, a path, or a URL."""

    template: str = ""
    path: str = ""
    url: str = ""
    format: str = ""
    checksum: str = ""
    checksum_type: str = ""
    compress: bool = False
    """Whether the provider keeps it compressed."""
    compact: bool = False
    """Whether the provider gives back space that it does not use."""


class Placement(_Value, frozen=True):
    datastore: str = ""
    storage_pod: str = ""
    cluster: str = ""
    folder: str = ""
    host: str = ""
    resource_pool: str = ""


class Machine(_Value, frozen=True):
    """A machine that is to exist.  Its name is unique within the provider: asked again, the same machine is meant."""

    name: str
    cpus: int = 1
    memory_mib: int = 512
    firmware: str = ""
    image: Image | None = None
    imported_disk: str = ""
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    user_data: bytes = b""
    meta_data: bytes = b""
    placement: Placement = Placement()
    tags: tuple[str, ...] = ()
    cpu_hot_add: bool = False
    memory_hot_add: bool = False
    secure_boot: bool = False
    tpm: bool = False
    extra: dict[str, str] = {}


class Change(_Value, frozen=True):
    """What is to become of a machine's resources; None and empty leave as they are."""

    cpus: int | None = None
    memory_mib: int | None = None
    disks: tuple[Disk, ...] = ()
    offline: bool = False
    """Whether the machine may be stopped for it."""


# --- what there is ---------------------------------------------------------------------


class Task(_Value, frozen=True):
    id: str


class Stage(_Value, frozen=True):
    """What a task that does several things one after the other does now.

    The stages of an image are `downloading`, `importing`, `converting` and `optimizing`, where there are such; those
    of a clone are the disks that are copied, by name.  An export has the stages `exporting` and `transferring` (to the
    storage), and an import `transferring` (from there), `converting` and `importing`.
    """

    name: str
    number: int = 1
    """Which it is, from 1 on."""
    count: int = 1
    """How many there are."""
    done_bytes: int | None = None
    total_bytes: int | None = None


class TaskState(_Value, frozen=True):
    """How far a task is.  `error` is empty unless it failed; `again_after` is in how many seconds to look again.

    `result` has what became known at the end: `checksum` and `size_bytes` of an export, import or image, `path` of an
    image or import, `size_bytes` and `parent` of a snapshot.  `lost` says that the provider does not know the task (any
    more), and so not what came of it; a task that failed with `Code.NOT_FOUND` is not lost.
    """

    done: bool = False
    error: str = ""
    code: Code | None = None
    percentage: int | None = None
    done_bytes: int | None = None
    total_bytes: int | None = None
    again_after: float | None = None
    stage: Stage | None = None
    result: dict[str, str] = {}
    lost: bool = False

    @classmethod
    def unknown(cls, message: str) -> Self:
        """The state of a task that the provider does not know."""
        return cls(done=True, error=message, code=Code.NOT_FOUND, lost=True)


class Description(_Value, frozen=True):
    """A machine as it is.  `power` is "On", "Off" or another word of the hypervisor's; `raw` are its own details."""

    exists: bool
    power: str = ""
    ips: tuple[str, ...] = ()
    console_url: str = ""
    cpus: int | None = None
    memory_mib: int | None = None
    disks: tuple[DiskInfo, ...] = ()
    host: str = ""
    guest_ready: bool | None = None
    again_after: float | None = None
    """In how many seconds something of this is about to change, such as the addresses of a guest that boots."""
    raw: dict[str, str] = {}


class DiskInfo(_Value, frozen=True):
    id: str
    format: str = ""
    virtual_bytes: int = 0
    actual_bytes: int = 0
    path: str = ""
    bootable: bool = False
    snapshots: tuple[str, ...] = ()
    backing_file: str = ""


class Listed(_Value, frozen=True):
    """A machine in a list."""

    id: str
    name: str
    power: str = ""
    ips: tuple[str, ...] = ()
    cpus: int = 0
    memory_mib: int = 0
    disks: tuple[DiskInfo, ...] = ()
    host: str = ""


class Taint(_Value, frozen=True):
    """What keeps machines off a host that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Gpu(_Value, frozen=True):
    """Graphics processors of one type that a host can pass through to machines."""

    type: str = ""
    count: int = 0
    memory_mib: int = 0


class Host(_Value, frozen=True):
    """A host of a hypervisor, with what it has and what is taken.

    `cpu_overcommit` is how many virtual processors it gives for each of its own; 0: it has no limit.  `features` are
    words such as ``secure-boot``, ``tpm`` and ``numa``; `isolation` and `trust` are levels of a VMPlacementPolicy.
    """

    name: str
    cluster: str = ""
    zone: str = ""
    region: str = ""
    labels: dict[str, str] = {}
    cpus: int = 0
    cpus_used: int = 0
    memory_mib: int = 0
    memory_mib_used: int = 0
    datastores: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    maintenance: bool = False
    features: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    cpu_overcommit: float = 0.0
    security_groups: tuple[str, ...] = ()
    isolation: str = ""
    trust: str = ""


class Datastore(_Value, frozen=True):
    name: str
    total_bytes: int = 0
    free_bytes: int = 0
    hosts: tuple[str, ...] = ()
    encrypted: bool = False


class ResourcePool(_Value, frozen=True):
    """A resource pool; without a cluster, hosts of every cluster draw from it."""

    name: str
    cluster: str = ""


class Inventory(_Value, frozen=True):
    """The hosts and datastores, for placement; both are empty where a provider does not report them."""

    hosts: tuple[Host, ...] = ()
    datastores: tuple[Datastore, ...] = ()
    folders: tuple[str, ...] = ()
    resource_pools: tuple[ResourcePool, ...] = ()


class Capabilities(_Value, frozen=True):
    version: str = ""
    reconfigure_online: bool = False
    disk_expansion_online: bool = False
    snapshots: bool = False
    memory_snapshots: bool = False
    quiesce: bool = False
    linked_clones: bool = False
    instant_clones: bool = False
    image_import: bool = False
    disk_types: tuple[str, ...] = ()
    network_types: tuple[str, ...] = ()
    disk_export: bool = False
    disk_import: bool = False
    export_formats: tuple[str, ...] = ()
    import_formats: tuple[str, ...] = ()
    export_compression: bool = False
    export_backends: tuple[str, ...] = ()
    import_backends: tuple[str, ...] = ()
    transfer_modes: tuple[str, ...] = ()
    inventory: bool = False
    guest_commands: bool = False
    """Whether the hypervisor is a `GuestCommands`, too."""


# --- answers ---------------------------------------------------------------------------


class Made(_Value, frozen=True):
    """Something that exists, or will when its task is done."""

    id: str
    task: Task | None = None


class Prepared(_Value, frozen=True):
    id: str = ""
    path: str = ""
    task: Task | None = None


class Transfer(_Value, frozen=True):
    """A disk to export or import, and the store it passes through."""

    url: str
    machine: str = ""
    disk: str = ""
    snapshot: str = ""
    format: str = ""
    compress: bool = False
    credentials: dict[str, str] = {}
    backend: str = ""
    mode: str = ""
    options_json: str = ""
    storage_hint: str = ""
    target_name: str = ""
    verify_checksum: bool = False
    expected_checksum: str = ""


class Transferred(_Value, frozen=True):
    id: str
    path: str = ""
    task: Task | None = None
    size_bytes: int = 0
    checksum: str = ""


PowerOp = Literal["On", "Off", "Reboot", "ShutdownGraceful"]


class Hypervisor(Protocol):
    """The calls to a hypervisor; they raise `ProviderError`.

    A machine is made off, and `power` starts it.  Calls for one machine are done one after the other, in the order in
    which they came.  What is deleted twice is deleted: it is no error.  A machine that is reverted runs afterwards if
    the snapshot has its memory, and is off otherwise.
    """

    async def validate(self) -> None: ...
    async def capabilities(self) -> Capabilities: ...
    async def inventory(self) -> Inventory: ...
    async def machines(self) -> tuple[Listed, ...]: ...

    async def create(self, machine: Machine) -> Made: ...
    async def delete(self, id: str) -> Task | None: ...
    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None: ...
    async def reconfigure(self, id: str, change: Change) -> Task | None: ...
    async def describe(self, id: str) -> Description: ...
    async def task(self, task: Task) -> TaskState: ...
    async def cancel(self, task: Task) -> None: ...

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made: ...
    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None: ...
    async def revert(self, id: str, snapshot: str) -> Task | None: ...
    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made: ...

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared: ...
    async def export_disk(self, transfer: Transfer) -> Transferred: ...
    async def delete_export(self, transfer: Transfer) -> None:
        """Delete what an export has put into the storage; one that is under way is cancelled."""
        ...

    async def import_disk(self, transfer: Transfer) -> Transferred: ...
    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo: ...

    async def delete_disk(self, id: str) -> None:
        """Delete a disk that no machine has, by its id or the name that it was imported by; an import is cancelled."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class GuestCommands(Protocol):
    """What some hypervisors can do besides: run a command in a guest."""

    async def execute(self, id: str, command: tuple[str, ...], timeout_seconds: int = 60) -> None:
        """Run a command to its end; one that fails is a `Code.CONFLICT` with what it printed."""
        ...
