"""What a simulated hypervisor remembers: machines, images, disks of their own, tasks."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.providers.contract import Code, Disk, DiskInfo, Nic


class DiskRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A disk.  `files` are its contents, by path: enough to see that what was written is there."""

    id: str
    name: str
    virtual_bytes: int
    type: str = "thin"
    datastore: str = ""
    format: str = "qcow2"
    bootable: bool = False
    backing: str = ""
    files: dict[str, str] = {}
    label: str = ""
    """The name by which it was imported."""
    source: str = ""
    """Where an imported disk came from: its URL and checksum, so that the same import is done once."""

    @property
    def actual_bytes(self) -> int:
        return self.virtual_bytes if self.type.startswith(("thick", "eager")) else self.virtual_bytes // 8

    def info(self, snapshots: tuple[str, ...] = ()) -> DiskInfo:
        return DiskInfo(
            id=self.id,
            format=self.format,
            virtual_bytes=self.virtual_bytes,
            actual_bytes=self.actual_bytes,
            path=f"[{self.datastore}] {self.id}.{self.format}",
            bootable=self.bootable,
            snapshots=snapshots,
            backing_file=self.backing,
        )

    def copy(self, id: str, **changes: Any) -> DiskRecord:
        return msgspec.structs.replace(self, id=id, files=dict(self.files), **changes)


class SnapshotRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    description: str = ""
    memory: bool = False
    parent: str = ""
    size_bytes: int = 0
    power: str = "Off"
    cpus: int = 1
    memory_mib: int = 512
    disks: list[DiskRecord] = []


class MachineRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    number: int
    host: str
    cpus: int
    memory_mib: int
    power: str = "Off"
    powered_at: float = 0.0
    crashed: bool = False
    reserved: bool = True
    """Whether it is still being made."""
    cpu_hot_add: bool = False
    memory_hot_add: bool = False
    disks: list[DiskRecord] = []
    nics: tuple[Nic, ...] = ()
    tags: tuple[str, ...] = ()
    snapshots: list[SnapshotRecord] = []
    current: str = ""
    """The snapshot that it was last taken or reverted to."""
    cloned_from: str = ""

    def snapshot(self, id: str) -> SnapshotRecord | None:
        return next((one for one in self.snapshots if id in (one.id, one.name)), None)

    def disk(self, id: str) -> DiskRecord | None:
        """A disk by id or name; without one, the first."""
        return next((disk for disk in self.disks if not id or id in (disk.id, disk.name)), None)


class ImageRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    virtual_bytes: int
    checksum: str = ""
    source: str = ""
    ready: bool = False


class TaskRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A task: what it will do at its end, and how it ended."""

    id: str
    call: str
    name: str
    """The name of what it is for, by which faults are chosen."""
    subject: str
    """The id of what it is for; tasks of one subject run one after the other."""
    start: float
    end: float
    disks: tuple[Disk, ...] = ()
    args: dict[str, Any] = {}
    total_bytes: int = 0
    stages: tuple[tuple[str, int], ...] = ()
    """What it does one after the other, with the weight of each: bytes, where the sum is `total_bytes`."""
    fails: str = ""
    fails_with: Code | None = None
    done: bool = False
    error: str = ""
    code: Code | None = None
    result: dict[str, str] = {}
