"""Clones of simulated machines."""

from __future__ import annotations

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import (
    Code,
    Machine,
    Made,
    ProviderError,
)
from holdfast.providers.simulated.machines import Machines
from holdfast.providers.simulated.records import DiskRecord, TaskRecord


class Clones(Machines):
    """Clones of machines."""

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
        stages = tuple((disk.name, disk.virtual_bytes) for disk in disks) if size else ()
        record = self._reserve(target, disks, cloned_from=id)
        seconds = self.latencies.create + self.latencies.copying(size)
        if linked:
            seconds = self.latencies.linked_clone
        if instant:
            seconds = self.latencies.instant_clone
        task = await self._start(
            "clone",
            target.name,
            record.id,
            seconds,
            total_bytes=size,
            stages=stages,
            disks=target.disks,
            args={"instant": instant},
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
