"""The simulated hypervisor.

A call checks its arguments and makes a task, with an end on the clock; the effect of a task is applied by the first
call at or after its end.  So nothing runs between calls, and a test that moves its clock sees what a real hypervisor
would show at that time.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from holdfast.providers.contract import (
    Capabilities,
    Change,
    Code,
    Datastore,
    Description,
    Disk,
    DiskInfo,
    Host,
    Image,
    Inventory,
    Listed,
    Machine,
    Made,
    Placement,
    PowerOp,
    Prepared,
    ProviderError,
    Task,
    TaskState,
    Transfer,
    Transferred,
)
from holdfast.providers.simulated.journal import Journal
from holdfast.providers.simulated.records import DiskRecord, ImageRecord, MachineRecord, SnapshotRecord, TaskRecord
from holdfast.providers.simulated.world import GIB, Fault, Latencies, World, any_match, chance, host_for

CAPABILITIES: Final = Capabilities(
    version="simulated/1",
    reconfigure_online=True,
    disk_expansion_online=True,
    snapshots=True,
    memory_snapshots=True,
    quiesce=True,
    linked_clones=True,
    instant_clones=True,
    image_import=True,
    disk_types=("thin", "thick"),
    network_types=("bridge", "user"),
    disk_export=True,
    disk_import=True,
    export_formats=("qcow2", "raw", "vmdk"),
    import_formats=("qcow2", "raw", "vmdk"),
    export_compression=True,
    export_backends=("pvc", "nfs", "s3"),
    import_backends=("pvc", "nfs", "s3"),
    transfer_modes=("relay", "direct"),
    inventory=True,
    guest_commands=True,
)

IMAGE_BYTES: Final = 2 * GIB
TASKS_KEPT: Final = 10_000


class Store(Protocol):
    """Where exported disks are put: the storage of migrations."""

    async def write(self, transfer: Transfer, data: bytes) -> None: ...
    async def read(self, transfer: Transfer) -> bytes | None: ...
    async def remove(self, transfer: Transfer) -> None: ...


class MemoryStore:
    """A store that several simulated hypervisors share in one process."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def write(self, transfer: Transfer, data: bytes) -> None:
        self.files[transfer.url] = data

    async def read(self, transfer: Transfer) -> bytes | None:
        return self.files.get(transfer.url)

    async def remove(self, transfer: Transfer) -> None:
        self.files.pop(transfer.url, None)


class ExportedDisk(msgspec.Struct, kw_only=True, tag="simulated-disk", omit_defaults=True):
    """What an exported disk is as a file."""

    virtual_bytes: int
    format: str
    files: dict[str, str] = {}


class Simulated:
    """A `Hypervisor` in memory.  `clock` is the time in seconds; what it returns may only grow."""

    def __init__(
        self,
        world: World | None = None,
        *,
        clock: Callable[[], float] = time.time,
        seed: int = 0,
        latencies: Latencies | None = None,
        faults: Sequence[Fault] = (),
        capabilities: Capabilities = CAPABILITIES,
        store: Store | None = None,
        journal: Path | None = None,
    ) -> None:
        self.world = world or World.of()
        self.latencies = latencies or Latencies()
        self.faults = list(faults)
        self.answers = capabilities
        self.store: Store = store or MemoryStore()
        self.calls: list[tuple[str, str]] = []
        """The calls so far, with the name of what they were for."""
        self.commands: list[tuple[str, tuple[str, ...]]] = []
        """The commands that were run in guests, with the names of the machines."""
        self._clock = clock
        self._seed = seed
        self._number = 0
        self._asked: dict[tuple[str, str], int] = {}
        self._used: dict[int, tuple[Fault, int]] = {}
        self._machines: dict[str, MachineRecord] = {}
        self._names: dict[str, str] = {}
        self._images: dict[str, ImageRecord] = {}
        self._disks: dict[str, DiskRecord] = {}
        self._tasks: dict[str, TaskRecord] = {}
        self._open: dict[str, list[str]] = {}
        self._due: list[tuple[float, int, str]] = []
        self._transfers: dict[str, Transfer] = {}
        """The transfers under way with their credentials, which the journal does not have."""
        self._sums: dict[str, str] = {}
        self._advancing = asyncio.Lock()
        self._journal = Journal(journal)
        self._recover()

    # --- what every call does ----------------------------------------------------------

    def _recover(self) -> None:
        for (kind, id), value in self._journal.records.items():
            match kind:
                case "machine":
                    machine = msgspec.convert(value, MachineRecord)
                    self._machines[id] = machine
                    self._names[machine.name] = id
                case "image":
                    self._images[id] = msgspec.convert(value, ImageRecord)
                case "disk":
                    self._disks[id] = msgspec.convert(value, DiskRecord)
                case "task":
                    self._enqueue(msgspec.convert(value, TaskRecord))
                case _:
                    continue
            self._number = max(self._number, int(id.rpartition("-")[2]))
        self._journal.records.clear()

    def _save(self, record: MachineRecord | ImageRecord | DiskRecord | TaskRecord) -> None:
        match record:
            case MachineRecord():
                self._machines[record.id] = record
                self._names[record.name] = record.id
                self._journal.write("machine", record.id, record)
            case ImageRecord():
                self._images[record.id] = record
                self._journal.write("image", record.id, record)
            case DiskRecord():
                self._disks[record.id] = record
                self._journal.write("disk", record.id, record)
            case TaskRecord():
                self._tasks[record.id] = record
                self._journal.write("task", record.id, record)

    def _forget(self, machine: MachineRecord) -> None:
        self._machines.pop(machine.id, None)
        if self._names.get(machine.name) == machine.id:
            del self._names[machine.name]
        self._journal.remove("machine", machine.id)

    def _next(self, kind: str) -> str:
        self._number += 1
        return f"{kind}-{self._number}"

    def _now(self) -> float:
        return self._clock()

    async def _call(self, call: str, name: str) -> Callable[[], None]:
        """Begin a call: wait its latency, fail if it is to fail, and apply what is due.

        The function that is returned fails a call whose answer is to be lost.
        """
        self.calls.append((call, name))
        if self.latencies.call:
            await asyncio.sleep(self.latencies.call)
        count = self._asked[call, name] = self._asked.get((call, name), 0) + 1
        self._fail(call, name, count, "before")
        await self._advance()
        return lambda: self._fail(call, name, count, "after")

    def _fail(self, call: str, name: str, count: int, when: str) -> None:
        fault = self._fault(call, name, count, when)
        if fault is not None:
            raise ProviderError(fault.code, fault.message)

    def _fault(self, call: str, name: str, count: int, when: str) -> Fault | None:
        for index, fault in enumerate(self.faults):
            if fault.when != when or not fault.matches(call, name):
                continue
            _, used = self._used.get(id(fault), (fault, 0))
            if fault.times is not None and used >= fault.times:
                continue
            if fault.rate < 1 and chance(self._seed, index, call, name, count, when) >= fault.rate:
                continue
            self._used[id(fault)] = fault, used + 1
            return fault
        return None

    async def _advance(self) -> None:
        """Apply the effects of the tasks whose end has come, in the order of their ends."""
        if not self._due or self._due[0][0] > self._now():
            return
        async with self._advancing:
            while self._due and self._due[0][0] <= self._now():
                record = self._tasks.get(heapq.heappop(self._due)[2])
                if record is not None and not record.done:
                    await self._finish(record)

    async def _finish(self, record: TaskRecord) -> None:
        try:
            if record.fails_with is not None:
                raise ProviderError(record.fails_with, record.fails)
            effect: Callable[[TaskRecord], Awaitable[dict[str, str] | None]] = getattr(self, f"_do_{record.call}")
            record.result = await effect(record) or {}
        except ProviderError as error:
            record.error, record.code = error.message, error.code
            await self._undo(record)
        self._close(record)

    def _close(self, record: TaskRecord) -> None:
        record.done = True
        waiting = self._open.get(record.subject, [])
        if record.id in waiting:
            waiting.remove(record.id)
        if not waiting:
            self._open.pop(record.subject, None)
        self._save(record)

    async def _undo(self, record: TaskRecord) -> None:
        """Remove what a failed task was to make."""
        if record.call in ("create", "clone"):
            machine = self._machines.get(record.subject)
            if machine is not None and machine.reserved:
                for disk in machine.disks:
                    if disk.label:
                        self._save(disk)
                self._forget(machine)
        elif record.call == "prepare_image":
            self._images.pop(record.subject, None)
            self._journal.remove("image", record.subject)
        elif record.call == "import_disk":
            self._disks.pop(record.subject, None)
            self._journal.remove("disk", record.subject)

    def _enqueue(self, record: TaskRecord) -> None:
        self._tasks[record.id] = record
        if not record.done:
            self._open.setdefault(record.subject, []).append(record.id)
            heapq.heappush(self._due, (record.end, int(record.id.rpartition("-")[2]), record.id))

    async def _start(
        self,
        call: str,
        name: str,
        subject: str,
        seconds: float,
        *,
        total_bytes: int = 0,
        disks: tuple[Disk, ...] = (),
        args: dict[str, Any] | None = None,
    ) -> Task | None:
        """A task for a subject, after those that it has; None if it is done at once."""
        args = args or {}
        before = [self._tasks[id] for id in self._open.get(subject, ())]
        if before and before[-1].call == call and before[-1].args == args:
            return Task(id=before[-1].id)
        if self.latencies.jitter:
            share = chance(self._seed, "jitter", call, name, self._asked.get((call, name), 0))
            seconds *= 1 + self.latencies.jitter * (2 * share - 1)
        start = max([self._now(), *(task.end for task in before)])
        fault = self._fault(call, name, self._asked.get((call, name), 0), "task")
        record = TaskRecord(
            id=self._next("task"),
            call=call,
            name=name,
            subject=subject,
            start=start,
            end=start + seconds,
            disks=disks,
            args=args,
            total_bytes=total_bytes,
            fails=fault.message if fault else "",
            fails_with=fault.code if fault else None,
        )
        self._enqueue(record)
        self._save(record)
        self._prune()
        await self._advance()
        if not record.done:
            return Task(id=record.id)
        del self._tasks[record.id]
        self._journal.remove("task", record.id)
        if record.code is not None:
            raise ProviderError(record.code, record.error)
        return None

    def _prune(self) -> None:
        """Forget the oldest tasks that are done, when there are many."""
        if len(self._tasks) > 2 * TASKS_KEPT:
            for id in [id for id, task in self._tasks.items() if task.done][:TASKS_KEPT]:
                del self._tasks[id]
                self._journal.remove("task", id)

    def _known(self, id: str) -> MachineRecord:
        machine = self._machines.get(id)
        if machine is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {id} does not exist")
        return machine

    def _name(self, id: str) -> str:
        machine = self._machines.get(id)
        return machine.name if machine else id

    def _idle(self, id: str) -> bool:
        return id not in self._open

    # --- the provider ------------------------------------------------------------------

    async def validate(self) -> None:
        (await self._call("validate", ""))()

    async def capabilities(self) -> Capabilities:
        (await self._call("capabilities", ""))()
        return self.answers

    async def inventory(self) -> Inventory:
        answer = await self._call("inventory", "")
        answer()
        return Inventory(hosts=tuple(self._hosts().values()), datastores=tuple(self._datastores().values()))

    def _hosts(self) -> dict[str, Host]:
        on: dict[str, list[MachineRecord]] = {}
        for machine in self._machines.values():
            on.setdefault(machine.host, []).append(machine)
        return {
            host.name: msgspec.structs.replace(
                host,
                cpus_used=host.cpus_used + sum(one.cpus for one in on.get(host.name, ())),
                memory_mib_used=host.memory_mib_used + sum(one.memory_mib for one in on.get(host.name, ())),
                machines=tuple(one.id for one in on.get(host.name, ())),
            )
            for host in self.world.hosts
        }

    def _datastores(self) -> dict[str, Datastore]:
        used: dict[str, int] = {}
        for disk in (*(disk for one in self._machines.values() for disk in one.disks), *self._disks.values()):
            used[disk.datastore] = used.get(disk.datastore, 0) + disk.actual_bytes
        return {
            one.name: msgspec.structs.replace(one, free_bytes=max(0, one.free_bytes - used.get(one.name, 0)))
            for one in self.world.datastores
        }

    async def machines(self) -> tuple[Listed, ...]:
        (await self._call("machines", ""))()
        return tuple(
            Listed(
                id=one.id,
                name=one.name,
                power=one.power,
                ips=self._ips(one),
                cpus=one.cpus,
                memory_mib=one.memory_mib,
                disks=tuple(disk.info() for disk in one.disks),
                host=one.host,
            )
            for one in self._machines.values()
            if not one.reserved
        )

    # --- machines ----------------------------------------------------------------------

    async def create(self, machine: Machine) -> Made:
        answer = await self._call("create", machine.name)
        if not machine.name:
            raise ProviderError(Code.INVALID, "the machine has no name")
        there = self._machines.get(self._names.get(machine.name, ""))
        if there is not None:
            answer()
            return Made(id=there.id, task=self._making(there))
        path = machine.image.path if machine.image else ""
        imported = next((disk.id for disk in self._disks.values() if path and path in (disk.id, disk.info().path)), "")
        if imported:
            machine = msgspec.structs.replace(machine, image=None, imported_disk=imported)
        disks = self._first_disks(machine)
        record = self._reserve(machine, disks)
        task = await self._start("create", machine.name, record.id, self.latencies.create)
        answer()
        return Made(id=record.id, task=task)

    def _making(self, machine: MachineRecord) -> Task | None:
        waiting = self._open.get(machine.id, ())
        return Task(id=waiting[0]) if machine.reserved and waiting else None

    def _first_disks(self, machine: Machine) -> list[DiskRecord]:
        """The disks that a new machine will have; an error if its image or imported disk does not exist."""
        root = next((disk for disk in machine.disks if disk.name == "root"), Disk(name="root"))
        others = [disk for disk in machine.disks if disk.name != "root"]
        first = []
        if machine.imported_disk:
            disk = self._disks.get(machine.imported_disk)
            if disk is None:
                raise ProviderError(Code.NOT_FOUND, f"disk {machine.imported_disk} does not exist")
            first = [disk.copy(disk.id, name="root", bootable=True)]
        elif machine.image is not None:
            size = max(self._image_bytes(machine.image), root.size_gib * GIB)
            first = [DiskRecord(id="", name="root", virtual_bytes=size, type=root.type or "thin", bootable=True)]
        elif root.size_gib:
            first = [DiskRecord(id="", name="root", virtual_bytes=root.size_gib * GIB, type=root.type or "thin")]
        return first + [
            DiskRecord(id="", name=disk.name, virtual_bytes=disk.size_gib * GIB, type=disk.type or "thin")
            for disk in others
        ]

    def _image_bytes(self, image: Image) -> int:
        if image.template:
            prepared = next((one for one in self._images.values() if image.template in (one.id, one.name)), None)
            if prepared is not None and not prepared.ready:
                raise ProviderError(Code.RETRYABLE, f"image {image.template} is still being prepared")
            if prepared is None and self.world.templates and image.template not in self.world.templates:
                raise ProviderError(Code.NOT_FOUND, f"template {image.template} does not exist")
            return prepared.virtual_bytes if prepared else IMAGE_BYTES
        if not image.path and not image.url:
            raise ProviderError(Code.INVALID, "the image has no template, path or URL")
        return IMAGE_BYTES

    def _reserve(self, machine: Machine, disks: list[DiskRecord], **more: Any) -> MachineRecord:
        """Choose a host and a datastore, and note the machine as one that is being made."""
        placement = self._known_place(machine.placement) if self.world.any_place else machine.placement
        host = host_for(
            self._hosts(),
            name=placement.host,
            cluster=placement.cluster,
            cpus=machine.cpus,
            memory_mib=machine.memory_mib,
            overcommit=self.world.cpu_overcommit,
        )
        if isinstance(host, str):
            raise ProviderError(Code.INVALID if "exist" in host else Code.QUOTA, host)
        datastore = self._datastore_for(host, placement.datastore, sum(disk.actual_bytes for disk in disks))
        id = self._next("vm")
        record = MachineRecord(
            id=id,
            name=machine.name,
            number=self._number,
            host=host.name,
            cpus=machine.cpus,
            memory_mib=machine.memory_mib,
            cpu_hot_add=machine.cpu_hot_add,
            memory_hot_add=machine.memory_hot_add,
            nics=machine.nics,
            tags=machine.tags,
            disks=[
                disk if disk.id else disk.copy(f"{id}-disk-{n}", datastore=datastore) for n, disk in enumerate(disks)
            ],
            **more,
        )
        if machine.imported_disk:
            self._disks.pop(machine.imported_disk, None)
        self._save(record)
        if machine.imported_disk:
            self._journal.remove("disk", machine.imported_disk)
        return record

    def _known_place(self, placement: Placement) -> Placement:
        """A placement without the names of places that do not exist."""
        hosts, clusters = {each.name for each in self.world.hosts}, {each.cluster for each in self.world.hosts}
        stores = {each.name for each in self.world.datastores}
        return msgspec.structs.replace(
            placement,
            host=placement.host if placement.host in hosts else "",
            cluster=placement.cluster if placement.cluster in clusters else "",
            datastore=placement.datastore if placement.datastore in stores else "",
        )

    def _datastore_for(self, host: Host | None, name: str, size: int) -> str:
        stores = self._datastores()
        if name and name not in stores:
            raise ProviderError(Code.INVALID, f"datastore {name} does not exist")
        names = [name] if name else list((host.datastores if host else ()) or stores)
        fitting = [stores[one] for one in names if one in stores and stores[one].free_bytes >= size]
        if fitting:
            return max(fitting, key=lambda one: one.free_bytes).name
        if not stores:
            return ""
        left = ", ".join(f"{one} has {stores[one].free_bytes // GIB} GiB left" for one in names if one in stores)
        raise ProviderError(Code.QUOTA, f"no datastore has {size / GIB:.1f} GiB: {left or 'the host has none'}")

    async def _do_create(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        record.reserved = False
        self._save(record)

    async def delete(self, id: str) -> Task | None:
        answer = await self._call("delete", self._name(id))
        task = None
        if id in self._machines:
            task = await self._start("delete", self._name(id), id, self.latencies.delete)
        answer()
        return task

    async def _do_delete(self, task: TaskRecord) -> None:
        record = self._machines.get(task.subject)
        if record is not None:
            self._forget(record)

    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None:
        answer = await self._call("power", self._name(id))
        record = self._known(id)
        is_on = record.power == "On"
        task = None
        if not self._idle(id) or op == "Reboot" or is_on != (op == "On"):
            seconds = {
                "On": self.latencies.power_on,
                "Off": self.latencies.power_off,
                "Reboot": self.latencies.power_off + self.latencies.power_on,
                "ShutdownGraceful": float(graceful_seconds)
                if any_match(self.world.stubborn, record.name)
                else min(self.latencies.shutdown, graceful_seconds),
            }[op]
            task = await self._start("power", record.name, id, seconds, args={"op": op})
        answer()
        return task

    async def _do_power(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        if task.args["op"] == "Reboot" and record.power != "On":
            raise ProviderError(Code.CONFLICT, f"machine {record.name} is off and cannot be rebooted")
        self._set_power(record, "On" if task.args["op"] in ("On", "Reboot") else "Off", task.end)
        self._save(record)

    def _set_power(self, record: MachineRecord, power: str, at: float) -> None:
        record.power, record.powered_at, record.crashed = power, at, False

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        answer = await self._call("reconfigure", self._name(id))
        record = self._known(id)
        for disk in change.disks:
            there = record.disk(disk.name) if disk.name else None
            if there is not None and 0 < disk.size_gib * GIB < there.virtual_bytes:
                raise ProviderError(
                    Code.INVALID,
                    f"disk {disk.name} of {record.name} has {there.virtual_bytes // GIB} GiB"
                    f" and cannot be shrunk to {disk.size_gib} GiB",
                )
        if self._idle(id) and self._as_wanted(record, change):
            answer()
            return None
        offline = record.power == "On" and self._offline_only(record, change)
        if offline and not change.offline:
            raise ProviderError(Code.CONFLICT, f"machine {record.name} must be off to be changed: {offline}")
        seconds = self.latencies.reconfigure
        if offline:
            seconds += self.latencies.shutdown + self.latencies.power_on
        task = await self._start("reconfigure", record.name, id, seconds, args={"change": msgspec.to_builtins(change)})
        answer()
        return task

    @staticmethod
    def _as_wanted(record: MachineRecord, change: Change) -> bool:
        sizes = {disk.name: disk.virtual_bytes for disk in record.disks}
        return (
            change.cpus in (None, record.cpus)
            and change.memory_mib in (None, record.memory_mib)
            and all(sizes.get(disk.name, -1) >= disk.size_gib * GIB for disk in change.disks)
        )

    def _offline_only(self, record: MachineRecord, change: Change) -> str:
        """Why a change cannot be made while the machine runs; empty if it can."""
        if change.cpus not in (None, record.cpus):
            if not (self.answers.reconfigure_online and record.cpu_hot_add):
                return "CPUs cannot be added while it runs"
            if change.cpus is not None and change.cpus < record.cpus:
                return "CPUs cannot be removed while it runs"
        if change.memory_mib not in (None, record.memory_mib):
            if not (self.answers.reconfigure_online and record.memory_hot_add):
                return "memory cannot be added while it runs"
            if change.memory_mib is not None and change.memory_mib < record.memory_mib:
                return "memory cannot be removed while it runs"
        if not self.answers.disk_expansion_online:
            sizes = {disk.name: disk.virtual_bytes for disk in record.disks}
            if any(disk.size_gib * GIB > sizes.get(disk.name, 0) for disk in change.disks):
                return "disks cannot be added or grown while it runs"
        return ""

    async def _do_reconfigure(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        change = msgspec.convert(task.args["change"], Change)
        host = self._hosts().get(record.host)
        cpus, memory = change.cpus or record.cpus, change.memory_mib or record.memory_mib
        if host is not None and host.memory_mib_used - record.memory_mib + memory > host.memory_mib:
            left = host.memory_mib - host.memory_mib_used
            raise ProviderError(Code.QUOTA, f"host {host.name} has {left} MiB of memory left")
        restarted = record.power == "On" and self._offline_only(record, change)
        for disk in change.disks:
            there = record.disk(disk.name)
            if there is None:
                size = disk.size_gib * GIB
                record.disks.append(
                    DiskRecord(
                        id=f"{record.id}-{self._next('disk')}",
                        name=disk.name,
                        virtual_bytes=size,
                        type=disk.type or "thin",
                        datastore=self._datastore_for(host, "", size // 8),
                    )
                )
            elif disk.size_gib * GIB > there.virtual_bytes:
                there.virtual_bytes = disk.size_gib * GIB
        record.cpus, record.memory_mib = cpus, memory
        if restarted:
            record.powered_at = task.end
        self._save(record)

    async def describe(self, id: str) -> Description:
        (await self._call("describe", self._name(id)))()
        record = self._machines.get(id)
        if record is None:
            return Description(exists=False)
        ips = self._ips(record)
        raw = {"name": record.name, "datastore": record.disks[0].datastore if record.disks else ""}
        if record.crashed:
            raw["crashed"] = "true"
        return Description(
            exists=True,
            power=record.power,
            ips=ips,
            console_url=f"vnc://127.0.0.1:{5900 + record.number}" if record.power == "On" else "",
            cpus=record.cpus,
            memory_mib=record.memory_mib,
            disks=tuple(disk.info(tuple(one.id for one in record.snapshots)) for disk in record.disks),
            host=record.host,
            guest_ready=self._booted(record),
            again_after=self._boots_for(record),
            raw=raw,
        )

    def _boots_for(self, record: MachineRecord) -> float | None:
        """For how long the guest still starts; None where it does not."""
        if record.power != "On" or self._booted(record) or any_match(self.world.no_agent, record.name):
            return None
        return record.powered_at + self.latencies.boot - self._now()

    def _booted(self, record: MachineRecord) -> bool:
        return record.power == "On" and self._now() >= record.powered_at + self.latencies.boot

    def _ips(self, record: MachineRecord) -> tuple[str, ...]:
        if not self._booted(record) or any_match(self.world.no_agent, record.name):
            return ()
        number = record.number
        own = f"10.{64 + number // 62500 % 128}.{number // 250 % 250}.{number % 250 + 1}"
        return tuple(nic.static_ip or own for nic in record.nics) or (own,)

    # --- tasks -------------------------------------------------------------------------

    async def task(self, task: Task) -> TaskState:
        (await self._call("task", self._tasks[task.id].name if task.id in self._tasks else ""))()
        record = self._tasks.get(task.id)
        if record is None:
            return TaskState(done=True, error=f"task {task.id} is not known", code=Code.NOT_FOUND)
        if record.done:
            return TaskState(
                done=True,
                error=record.error,
                code=record.code,
                percentage=None if record.error else 100,
                done_bytes=record.total_bytes or None,
                total_bytes=record.total_bytes or None,
                result=record.result,
            )
        now = self._now()
        share = min(1.0, max(0.0, (now - record.start) / max(record.end - record.start, 1e-9)))
        return TaskState(
            percentage=min(99, int(100 * share)),
            done_bytes=int(record.total_bytes * share) if record.total_bytes else None,
            total_bytes=record.total_bytes or None,
            again_after=max(0.001, record.end - now),
        )

    async def cancel(self, task: Task) -> None:
        (await self._call("cancel", self._tasks[task.id].name if task.id in self._tasks else ""))()
        record = self._tasks.get(task.id)
        if record is not None and not record.done:
            record.error, record.code = "cancelled", Code.CONFLICT
            await self._undo(record)
            self._close(record)

    # --- snapshots and clones ----------------------------------------------------------

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        answer = await self._call("snapshot", self._name(id))
        record = self._known(id)
        self._can(self.answers.snapshots, "snapshots")
        if memory:
            self._can(self.answers.memory_snapshots, "snapshots with memory")
        if quiesce:
            self._can(self.answers.quiesce, "quiesced snapshots")
            if record.power == "On" and any_match(self.world.no_agent, record.name):
                raise ProviderError(
                    Code.CONFLICT, f"machine {record.name} has no guest agent, so it cannot be quiesced"
                )
        there = record.snapshot(name)
        if there is not None:
            answer()
            return Made(id=there.id)
        size = record.memory_mib << 20 if memory and record.power == "On" else 0
        waiting = [self._tasks[one] for one in self._open.get(id, ())]
        same = next((one for one in waiting if one.call == "snapshot" and one.args["name"] == name), None)
        if same is not None:
            answer()
            return Made(id=same.args["id"], task=Task(id=same.id))
        snapshot = self._next("snap")
        task = await self._start(
            "snapshot",
            record.name,
            id,
            self.latencies.snapshot + self.latencies.copying(size),
            total_bytes=size,
            args={"id": snapshot, "name": name, "memory": memory, "description": description},
        )
        answer()
        return Made(id=snapshot, task=task)

    async def _do_snapshot(self, task: TaskRecord) -> dict[str, str]:
        record = self._known(task.subject)
        memory = task.args["memory"] and record.power == "On"
        taken = SnapshotRecord(
            id=task.args["id"],
            name=task.args["name"],
            description=task.args["description"],
            memory=memory,
            parent=record.current,
            size_bytes=(record.memory_mib << 20 if memory else 0) + (64 << 20),
            power="On" if memory else "Off",
            cpus=record.cpus,
            memory_mib=record.memory_mib,
            disks=[disk.copy(disk.id) for disk in record.disks],
        )
        record.snapshots.append(taken)
        record.current = taken.id
        self._save(record)
        return {"size_bytes": str(taken.size_bytes), "parent": taken.parent}

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        answer = await self._call("delete_snapshot", self._name(id))
        record = self._machines.get(id)
        task = None
        if record is not None and (record.snapshot(snapshot) is not None or not self._idle(id)):
            task = await self._start("delete_snapshot", record.name, id, self.latencies.snapshot, args={"id": snapshot})
        answer()
        return task

    async def _do_delete_snapshot(self, task: TaskRecord) -> None:
        record = self._machines.get(task.subject)
        gone = record.snapshot(task.args["id"]) if record else None
        if record is None or gone is None:
            return
        record.snapshots.remove(gone)
        for child in record.snapshots:
            if child.parent == gone.id:
                child.parent = gone.parent
        if record.current == gone.id:
            record.current = gone.parent
        self._save(record)

    async def revert(self, id: str, snapshot: str) -> Task | None:
        answer = await self._call("revert", self._name(id))
        record = self._known(id)
        if record.snapshot(snapshot) is None and self._idle(id):
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {snapshot}")
        task = await self._start("revert", record.name, id, self.latencies.revert, args={"id": snapshot})
        answer()
        return task

    async def _do_revert(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        taken = record.snapshot(task.args["id"])
        if taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {task.args['id']}")
        record.disks = [disk.copy(disk.id) for disk in taken.disks]
        record.cpus, record.memory_mib, record.current = taken.cpus, taken.memory_mib, taken.id
        self._set_power(record, taken.power, task.end - (self.latencies.boot if taken.memory else 0))
        self._save(record)

    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made:
        answer = await self._call("clone", target.name)
        if linked:
            self._can(self.answers.linked_clones, "linked clones")
        if instant:
            self._can(self.answers.instant_clones, "instant clones")
        source = self._known(id)
        there = self._machines.get(self._names.get(target.name, ""))
        if there is not None:
            if there.cloned_from != id:
                raise ProviderError(Code.CONFLICT, f"machine {target.name} exists and is no clone of {source.name}")
            answer()
            return Made(id=there.id, task=self._making(there))
        if snapshot and source.snapshot(snapshot) is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {source.name} has no snapshot {snapshot}")
        if instant and source.power != "On":
            raise ProviderError(Code.CONFLICT, f"machine {source.name} is off: an instant clone needs one that runs")
        taken = source.snapshot(snapshot) if snapshot else None
        disks = [
            disk.copy("", backing=disk.id if linked else "", label="", source="")
            for disk in (taken.disks if taken else source.disks)
        ]
        size = 0 if linked or instant else sum(disk.virtual_bytes for disk in disks)
        record = self._reserve(target, disks, cloned_from=id)
        seconds = self.latencies.create + self.latencies.copying(size)
        if linked:
            seconds = self.latencies.linked_clone
        if instant:
            seconds = self.latencies.instant_clone
        task = await self._start(
            "clone", target.name, record.id, seconds, total_bytes=size, disks=target.disks, args={"instant": instant}
        )
        answer()
        return Made(id=record.id, task=task)

    async def _do_clone(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        record.reserved = False
        if task.args["instant"]:
            self._set_power(record, "On", task.end - self.latencies.boot)
        for disk in task.disks:
            there = record.disk(disk.name)
            if there is None:
                size = disk.size_gib * GIB
                record.disks.append(
                    DiskRecord(id=f"{record.id}-{self._next('disk')}", name=disk.name, virtual_bytes=size)
                )
            else:
                there.virtual_bytes = max(there.virtual_bytes, disk.size_gib * GIB)
        self._save(record)

    @staticmethod
    def _can(ability: bool, what: str) -> None:
        if not ability:
            raise ProviderError(Code.UNSUPPORTED, f"this provider does not support {what}")

    # --- images and disks --------------------------------------------------------------

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        answer = await self._call("prepare_image", name)
        there = next((one for one in self._images.values() if one.name == name), None)
        source = image.url or image.path or image.template
        if there is not None and (there.source, there.checksum) == (source, image.checksum):
            answer()
            waiting = self._open.get(there.id, ())
            return Prepared(id=there.id, path=f"images/{there.id}", task=Task(id=waiting[0]) if waiting else None)
        if image.template and not image.url:
            self._image_bytes(image)
        elif not source:
            raise ProviderError(Code.INVALID, f"image {name} has no template, path or URL")
        self._can(self.answers.image_import or bool(image.template), "the import of images")
        record = ImageRecord(
            id=self._next("image"), name=name, virtual_bytes=IMAGE_BYTES, checksum=image.checksum, source=source
        )
        self._save(record)
        size = 0 if image.template else IMAGE_BYTES
        task = await self._start("prepare_image", name, record.id, self.latencies.copying(size), total_bytes=size)
        answer()
        return Prepared(id=record.id, path=f"images/{record.id}", task=task)

    async def _do_prepare_image(self, task: TaskRecord) -> dict[str, str]:
        record = self._images[task.subject]
        for other in [one for one in self._images.values() if one.name == record.name and one.id != record.id]:
            del self._images[other.id]
            self._journal.remove("image", other.id)
        record.ready = True
        self._save(record)
        return {"path": f"images/{record.id}", "size_bytes": str(record.virtual_bytes), "checksum": record.checksum}

    async def export_disk(self, transfer: Transfer) -> Transferred:
        answer = await self._call("export_disk", self._name(transfer.machine))
        self._can(self.answers.disk_export, "the export of disks")
        record = self._known(transfer.machine)
        disk = self._disk_of(record, transfer.disk, transfer.snapshot)
        self._format(transfer.format, self.answers.export_formats)
        waiting = [self._tasks[one] for one in self._open.get(record.id, ())]
        same = next((one for one in waiting if one.call == "export_disk" and one.args["url"] == transfer.url), None)
        size = disk.actual_bytes
        if same is not None:
            answer()
            return Transferred(id=same.args["id"], task=Task(id=same.id), size_bytes=size)
        export = self._next("export")
        self._transfers[export] = transfer
        task = await self._start(
            "export_disk",
            record.name,
            record.id,
            self.latencies.copying(size),
            total_bytes=size,
            args={
                "id": export,
                "url": transfer.url,
                "transfer": msgspec.to_builtins(msgspec.structs.replace(transfer, credentials={})),
            },
        )
        answer()
        return Transferred(id=export, task=task, size_bytes=size, checksum="" if task else self._sums.pop(export, ""))

    async def _do_export_disk(self, task: TaskRecord) -> dict[str, str]:
        transfer = self._transfers.pop(task.args["id"], None)
        if transfer is None:
            # Credentials are not in the journal: an export that a restart interrupts is asked for again.
            transfer = msgspec.convert(task.args["transfer"], Transfer)
        record = self._known(task.subject)
        disk = self._disk_of(record, transfer.disk, transfer.snapshot)
        exported = ExportedDisk(virtual_bytes=disk.virtual_bytes, format=transfer.format or "qcow2", files=disk.files)
        data = msgspec.json.encode(exported)
        await self.store.write(transfer, data)
        checksum = self._sums[task.args["id"]] = _sha256(data)
        return {"checksum": checksum, "size_bytes": str(disk.actual_bytes)}

    async def delete_export(self, transfer: Transfer) -> None:
        answer = await self._call("delete_export", self._name(transfer.machine))
        await self.store.remove(transfer)
        answer()

    async def import_disk(self, transfer: Transfer) -> Transferred:
        name = transfer.target_name or transfer.url
        answer = await self._call("import_disk", name)
        self._can(self.answers.disk_import, "the import of disks")
        self._format(transfer.format, self.answers.import_formats)
        source = f"{transfer.url} {transfer.expected_checksum}"
        attached = (disk for machine in self._machines.values() for disk in machine.disks)
        there = next((one for one in (*self._disks.values(), *attached) if one.label == name), None)
        if there is not None and there.source != source:
            raise ProviderError(Code.CONFLICT, f"disk {there.id} exists by the name {name} and came from elsewhere")
        if there is not None:
            answer()
            waiting = self._open.get(there.id, ())
            return Transferred(
                id=there.id,
                path=there.info().path,
                task=Task(id=waiting[0]) if waiting else None,
                size_bytes=there.virtual_bytes,
                checksum="" if waiting else transfer.expected_checksum,
            )
        data = await self.store.read(transfer)
        if data is None:
            raise ProviderError(Code.NOT_FOUND, f"there is no disk at {transfer.url}")
        exported = _exported(data, transfer.url)
        disk = DiskRecord(
            id=self._next("disk"),
            name=name,
            label=name,
            virtual_bytes=exported.virtual_bytes,
            format="qcow2",
            datastore=self._datastore_for(None, transfer.storage_hint, exported.virtual_bytes // 8),
            source=source,
        )
        self._save(disk)
        self._transfers[disk.id] = transfer
        task = await self._start(
            "import_disk",
            name,
            disk.id,
            self.latencies.copying(disk.actual_bytes),
            total_bytes=disk.actual_bytes,
            args={"transfer": msgspec.to_builtins(msgspec.structs.replace(transfer, credentials={}))},
        )
        answer()
        return Transferred(
            id=disk.id,
            path=disk.info().path,
            task=task,
            size_bytes=disk.virtual_bytes,
            checksum="" if task else _sha256(data),
        )

    async def _do_import_disk(self, task: TaskRecord) -> dict[str, str]:
        transfer = self._transfers.pop(task.subject, None)
        if transfer is None:
            transfer = msgspec.convert(task.args["transfer"], Transfer)
        disk = self._disks.get(task.subject)
        data = await self.store.read(transfer)
        if disk is None or data is None:
            raise ProviderError(Code.NOT_FOUND, f"there is no disk at {transfer.url}")
        checksum = _sha256(data)
        if transfer.verify_checksum and transfer.expected_checksum and checksum != transfer.expected_checksum:
            raise ProviderError(
                Code.INVALID,
                f"the disk at {transfer.url} has the checksum {checksum}, expected {transfer.expected_checksum}",
            )
        disk.files = _exported(data, transfer.url).files
        self._save(disk)
        return {"checksum": checksum, "size_bytes": str(disk.actual_bytes), "path": disk.info().path}

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        answer = await self._call("disk", self._name(id))
        record = self._known(id)
        found = self._disk_of(record, disk, snapshot)
        answer()
        return found.info(tuple(one.id for one in record.snapshots))

    async def delete_disk(self, id: str) -> None:
        answer = await self._call("delete_disk", id)
        for machine in self._machines.values():
            if any(disk.id == id for disk in machine.disks):
                raise ProviderError(Code.CONFLICT, f"disk {id} belongs to machine {machine.name}")
        for task in [self._tasks[one] for one in self._open.get(id, [])]:
            task.error, task.code = "cancelled", Code.CONFLICT
            self._close(task)
        if self._disks.pop(id, None) is not None:
            self._journal.remove("disk", id)
        answer()

    async def execute(self, id: str, command: tuple[str, ...], timeout_seconds: int = 60) -> None:
        answer = await self._call("execute", self._name(id))
        record = self._known(id)
        self._can(self.answers.guest_commands, "commands in guests")
        if not self._booted(record) or any_match(self.world.no_agent, record.name):
            raise ProviderError(Code.CONFLICT, f"the guest agent of machine {record.name} does not answer")
        self.commands.append((record.name, command))
        answer()

    async def close(self) -> None:
        self._journal.close()

    def _disk_of(self, record: MachineRecord, disk: str, snapshot: str) -> DiskRecord:
        disks = record.disks
        if snapshot:
            taken = record.snapshot(snapshot)
            if taken is None:
                raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {snapshot}")
            disks = taken.disks
        found = next((one for one in disks if not disk or disk in (one.id, one.name)), None)
        if found is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no disk {disk or 'at all'}")
        return found

    @staticmethod
    def _format(format: str, known: tuple[str, ...]) -> None:
        if format and format not in known:
            raise ProviderError(Code.UNSUPPORTED, f"format {format} is not one of {', '.join(known)}")

    # --- what happens behind the back of the operator, for tests -----------------------

    def named(self, name: str) -> str:
        """The id of a machine by its name; empty if there is none."""
        return self._names.get(name, "")

    def set_power(self, id: str, power: str) -> None:
        record = self._known(id)
        self._set_power(record, power, self._now())
        self._save(record)

    def set_resources(self, id: str, *, cpus: int | None = None, memory_mib: int | None = None) -> None:
        record = self._known(id)
        record.cpus, record.memory_mib = cpus or record.cpus, memory_mib or record.memory_mib
        self._save(record)

    def crash_guest(self, id: str) -> None:
        """The guest ends without being asked to."""
        self.set_power(id, "Off")
        self._known(id).crashed = True
        self._save(self._known(id))

    def remove(self, id: str) -> None:
        """The machine is deleted by another client."""
        self._forget(self._known(id))

    def write_file(self, id: str, path: str, text: str) -> None:
        """The guest writes a file to its first disk."""
        record = self._known(id)
        record.disks[0].files[path] = text
        self._save(record)

    def read_file(self, id: str, path: str) -> str | None:
        return self._known(id).disks[0].files.get(path)

    def set_maintenance(self, host: str, maintenance: bool) -> None:
        hosts = tuple(
            msgspec.structs.replace(one, maintenance=maintenance) if one.name == host else one
            for one in self.world.hosts
        )
        self.world = msgspec.structs.replace(self.world, hosts=hosts)

    def leftovers(self) -> tuple[str, ...]:
        """Everything that exists here besides images: ids of machines and disks, for a test that lists them."""
        return (*self._machines, *self._disks)


def _exported(data: bytes, url: str) -> ExportedDisk:
    try:
        return msgspec.json.decode(data, type=ExportedDisk)
    except msgspec.DecodeError:
        raise ProviderError(Code.INVALID, f"what is at {url} is no disk of a simulated hypervisor") from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
