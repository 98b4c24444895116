"""What the provider keeps of machines, images, disks and tasks, in files that are replaced as a whole."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.providers.contract import Code, Nic

T = TypeVar("T")


class DiskRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A disk of a machine; its file is `NAME.qcow2` in the folder of the machine, or where it was imported."""

    name: str
    file: str
    bootable: bool = False


class Dimm(msgspec.Struct, kw_only=True):
    """Memory that was added while the machine ran."""

    id: str
    mib: int


class Hardware(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a QEMU process is started with, and what was added since; a memory snapshot needs exactly this again."""

    cpus: int = 1
    max_cpus: int = 1
    hot_cpus: list[dict[str, Any]] = []
    memory_mib: int = 512
    max_memory_mib: int = 0
    dimms: list[Dimm] = []

    @property
    def all_cpus(self) -> int:
        return self.cpus + len(self.hot_cpus)

    @property
    def all_memory_mib(self) -> int:
        return self.memory_mib + sum(dimm.mib for dimm in self.dimms)


class SnapshotRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    description: str = ""
    memory: bool = False
    parent: str = ""
    size_bytes: int = 0
    hardware: Hardware = msgspec.field(default_factory=Hardware)
    disks: list[DiskRecord] = []


class MachineRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    uuid: str
    host: str
    hardware: Hardware
    creating: bool = True
    cpu_hot_add: bool = False
    memory_hot_add: bool = False
    firmware: str = ""
    disks: list[DiskRecord] = []
    nics: tuple[Nic, ...] = ()
    tags: tuple[str, ...] = ()
    kernel: str = ""
    """The folder of a kernel that is booted directly; empty if the first disk is booted."""
    seed: bool = False
    backing: list[str] = []
    """The images that its disks are overlays of."""
    snapshots: list[SnapshotRecord] = []
    current: str = ""
    cloned_from: str = ""
    crashed: str = ""

    def snapshot(self, id: str) -> SnapshotRecord | None:
        return next((one for one in self.snapshots if id in (one.id, one.name)), None)


class ImageRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A prepared image: `FILE` in the folder of images, qcow2, or a folder with a kernel."""

    id: str
    name: str
    source: str
    checksum: str = ""
    file: str = ""
    kernel: bool = False
    virtual_bytes: int = 0
    ready: bool = False


class ImportRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A disk that was imported, and the machine that has it."""

    id: str
    name: str
    source: str
    checksum: str = ""
    virtual_bytes: int = 0
    ready: bool = False
    machine: str = ""


class TaskRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A task: the intent before it is done, its outcome afterwards."""

    id: str
    call: str
    subject: str
    args: dict[str, Any] = {}
    done: bool = False
    error: str = ""
    code: Code | None = None
    result: dict[str, str] = {}


class Books(msgspec.Struct, kw_only=True):
    """Everything but the machines."""

    number: int = 0
    images: dict[str, ImageRecord] = {}
    imports: dict[str, ImportRecord] = {}
    tasks: dict[str, TaskRecord] = {}


def save(path: Path, value: msgspec.Struct) -> None:
    """Replace a file as a whole; it is on the disk when this returns."""
    fresh = path.with_name(path.name + ".new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, msgspec.json.encode(value))
        os.fsync(handle)
    finally:
        os.close(handle)
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(path: Path, type: type[T]) -> T | None:
    with contextlib.suppress(FileNotFoundError):
        return msgspec.json.decode(path.read_bytes(), type=type)
    return None
