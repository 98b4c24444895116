"""Changes of simulated machines: CPUs, memory and disks."""

from __future__ import annotations

import msgspec

from holdfast.meta.sizes import GIB, readable
from holdfast.providers.contract import (
    Change,
    Code,
    ProviderError,
    Task,
)
from holdfast.providers.simulated.inventory import Places
from holdfast.providers.simulated.records import DiskRecord, MachineRecord, TaskRecord


class Changes(Places):
    """Changes of machines."""

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        answer = await self._call("reconfigure", self._name(id))
        record = self._known(id)
        for disk in change.disks:
            there = record.disk(disk.name) if disk.name else None
            if there is not None and 0 < disk.size_gib * GIB < there.virtual_bytes:
                raise ProviderError(
                    Code.INVALID,
                    f"disk {disk.name} of {record.name} has {readable(there.virtual_bytes)}"
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
