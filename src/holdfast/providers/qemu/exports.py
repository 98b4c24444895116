"""Exported disks: written to the storage of migrations."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.providers.contract import (
    Code,
    DiskInfo,
    ProviderError,
    Stage,
    Task,
    Transfer,
    Transferred,
)
from holdfast.providers.qemu import tools
from holdfast.providers.qemu.checks import check_format
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.machines import Machines
from holdfast.providers.qemu.records import (
    DiskRecord,
    SnapshotRecord,
    TaskRecord,
)
from holdfast.providers.qemu.snapshots import Snapshots
from holdfast.providers.staging import sha256


class Exports(Machines, Snapshots):
    """The exports of disks."""

    def _disk_of(self, guest: Guest, disk: str, snapshot: str) -> tuple[DiskRecord, SnapshotRecord | None]:
        taken = guest.record.snapshot(snapshot) if snapshot else None
        if snapshot and taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {guest.record.name} has no snapshot {snapshot}")
        for one in taken.disks if taken else guest.record.disks:
            if disk in ("", one.name, f"{guest.record.id}/{one.name}"):
                return one, taken
        raise ProviderError(Code.NOT_FOUND, f"machine {guest.record.name} has no disk {disk or 'at all'}")

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        guest = self._guest(id)
        found, _ = self._disk_of(guest, disk, snapshot)
        return await self._disk_info(guest, found)

    async def _allocated(self, guest: Guest, disk: DiskRecord) -> int:
        """The bytes that an export has about, with those of the image that the disk is an overlay of."""
        found = await tools.info(guest.folder / disk.file, "qcow2")
        if not found.backing_filename:
            return found.actual_size
        below = await tools.info(guest.folder / found.backing_filename, "qcow2")
        return found.actual_size + below.actual_size

    async def export_disk(self, transfer: Transfer) -> Transferred:
        guest = self._guest(transfer.machine)
        disk, taken = self._disk_of(guest, transfer.disk, transfer.snapshot)
        check_format(transfer.format)
        self._staging.path(transfer) or self._staging.bucket(transfer)
        size = await self._allocated(guest, disk)
        public = msgspec.structs.replace(transfer, credentials={})
        args = {"transfer": msgspec.to_builtins(public), "disk": disk.name, "snapshot": taken.id if taken else ""}
        args["secret"] = bool(transfer.credentials)
        task = self._submit("export_disk", transfer.machine, args)
        if transfer.credentials:
            self._transfers[task.id] = transfer
        return Transferred(id=f"export-{task.id}", path=transfer.url, task=task, size_bytes=size)

    async def _do_export_disk(self, task: TaskRecord) -> dict[str, str]:
        guest, transfer = self._guest(task.subject), self._transfer(task)
        disk, _ = self._disk_of(guest, task.args["disk"], task.args["snapshot"])
        source = guest.folder / disk.file
        size = await self._allocated(guest, disk)
        target = self._staging.path(transfer)
        remote = target is None
        if target is None:
            target = self._data / "disks" / f"{task.id}.export"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            async with self._still(guest, task.args["snapshot"], task.id) as tag:
                report = self._report(task.id, size)
                await tools.convert(
                    source,
                    target,
                    format=transfer.format or "qcow2",
                    snapshot=tag,
                    compress=transfer.compress,
                    on_progress=self._stage(task.id, _stage("exporting", 1, size), report),
                )
            written = target.stat().st_size
            at = self._stage(task.id, _stage("transferring", 2, written), report)
            checksum = await asyncio.to_thread(sha256, target)
            if remote:
                await self._staging.put(transfer, target, lambda done: at(100 * done / max(written, 1)))
        finally:
            if remote:
                target.unlink(missing_ok=True)
        return {"checksum": checksum, "size_bytes": str(written)}

    async def delete_export(self, transfer: Transfer) -> None:
        for task in [self._books.tasks[id] for id in self._running]:
            if task.call == "export_disk" and task.args["transfer"]["url"] == transfer.url:
                await self.cancel(Task(id=task.id))
        await self._staging.remove(transfer)


def _stage(name: str, number: int, size: int) -> Stage:
    return Stage(name=name, number=number, count=2, total_bytes=size)
