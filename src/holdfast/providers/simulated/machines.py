"""Simulated machines: created, described, deleted."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import (
    Code,
    Description,
    Disk,
    Listed,
    Machine,
    Made,
    ProviderError,
    Task,
)
from holdfast.providers.simulated.images import Images
from holdfast.providers.simulated.inventory import Places
from holdfast.providers.simulated.power import Power
from holdfast.providers.simulated.records import DiskRecord, MachineRecord, TaskRecord
from holdfast.providers.simulated.world import host_for


class Machines(Places, Images, Power):
    """The machines of the world."""

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

    async def _do_create(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        record.reserved = False
        self._save(record)

    async def _undo_create(self, task: TaskRecord) -> None:
        machine = self._machines.get(task.subject)
        if machine is not None and machine.reserved:
            for disk in machine.disks:
                if disk.label:
                    self._save(disk)
            self._forget(machine)

    _undo_clone = _undo_create

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
