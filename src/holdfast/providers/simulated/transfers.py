"""Disks of simulated machines, and their export and import."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from holdfast.providers.contract import (
    Code,
    DiskInfo,
    ProviderError,
    Task,
    Transfer,
    Transferred,
)
from holdfast.providers.simulated.inventory import Places
from holdfast.providers.simulated.records import DiskRecord, MachineRecord, TaskRecord


class ExportedDisk(msgspec.Struct, kw_only=True, tag="simulated-disk", omit_defaults=True):
    """What an exported disk is as a file."""

    virtual_bytes: int
    format: str
    files: dict[str, str] = {}


class Transfers(Places):
    """The disks of the world, and their way from one hypervisor to another."""

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        answer = await self._call("disk", self._name(id))
        record = self._known(id)
        found = self._disk_of(record, disk, snapshot)
        answer()
        return found.info(tuple(one.id for one in record.snapshots))

    async def delete_disk(self, id: str) -> None:
        answer = await self._call("delete_disk", id)
        id = next((one.id for one in self._disks.values() if one.label == id), id)
        for machine in self._machines.values():
            if any(disk.id == id for disk in machine.disks):
                raise ProviderError(Code.CONFLICT, f"disk {id} belongs to machine {machine.name}")
        for task in [self._tasks[one] for one in self._open.get(id, [])]:
            task.error, task.code = "cancelled", Code.CONFLICT
            self._close(task)
        if self._disks.pop(id, None) is not None:
            self._journal.remove("disk", id)
        answer()

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
            stages=(("exporting", 6), ("transferring", 4)),
            args={"id": export, "url": transfer.url, **_public(transfer)},
        )
        answer()
        return Transferred(id=export, task=task, size_bytes=size, checksum="" if task else self._sums.pop(export, ""))

    async def _do_export_disk(self, task: TaskRecord) -> dict[str, str]:
        transfer = self._transfer(task, task.args["id"])
        record = self._known(task.subject)
        disk = self._disk_of(record, transfer.disk, transfer.snapshot)
        exported = ExportedDisk(virtual_bytes=disk.virtual_bytes, format=transfer.format or "qcow2", files=disk.files)
        data = msgspec.json.encode(exported)
        await self.store.write(transfer, data)
        checksum = self._sums[task.args["id"]] = _sha256(data)
        return {"checksum": checksum, "size_bytes": str(disk.actual_bytes)}

    def _transfer(self, task: TaskRecord, id: str) -> Transfer:
        """The transfer of a task with its credentials, which are nowhere but in memory."""
        transfer = self._transfers.pop(id, None)
        if transfer is not None:
            return transfer
        if task.args.get("secret"):
            raise ProviderError(Code.RETRYABLE, "the provider was restarted and has no credentials for this any more")
        return msgspec.convert(task.args["transfer"], Transfer)

    async def delete_export(self, transfer: Transfer) -> None:
        answer = await self._call("delete_export", self._name(transfer.machine))
        for task in [self._tasks[id] for ids in self._open.values() for id in ids]:
            if task.call == "export_disk" and task.args["url"] == transfer.url:
                task.error, task.code = "cancelled", Code.CONFLICT
                self._close(task)
        await self.store.remove(transfer)
        answer()

    async def import_disk(self, transfer: Transfer) -> Transferred:
        name = transfer.target_name or transfer.url
        answer = await self._call("import_disk", name)
        self._can(self.answers.disk_import, "the import of disks")
        self._format(transfer.format, self.answers.import_formats)
        source = f"{transfer.url} {transfer.expected_checksum}"
        there = self._imported(name, source)
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
        converted = (("converting", 2),) if exported.format != disk.format else ()
        task = await self._start(
            "import_disk",
            name,
            disk.id,
            self.latencies.copying(disk.actual_bytes),
            total_bytes=disk.actual_bytes,
            stages=(("transferring", 4), *converted, ("importing", 4)),
            args=_public(transfer),
        )
        answer()
        return Transferred(
            id=disk.id,
            path=disk.info().path,
            task=task,
            size_bytes=disk.virtual_bytes,
            checksum="" if task else _sha256(data),
        )

    def _imported(self, name: str, source: str) -> DiskRecord | None:
        """The disk that was imported by a name before."""
        attached = (disk for machine in self._machines.values() for disk in machine.disks)
        there = next((one for one in (*self._disks.values(), *attached) if one.label == name), None)
        if there is not None and there.source != source:
            raise ProviderError(Code.CONFLICT, f"disk {there.id} exists by the name {name} and came from elsewhere")
        return there

    async def _do_import_disk(self, task: TaskRecord) -> dict[str, str]:
        transfer = self._transfer(task, task.subject)
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

    async def _undo_import_disk(self, task: TaskRecord) -> None:
        self._disks.pop(task.subject, None)
        self._journal.remove("disk", task.subject)


def _public(transfer: Transfer) -> dict[str, Any]:
    """A transfer as the journal has it: without its credentials."""
    public = msgspec.structs.replace(transfer, credentials={})
    return {"transfer": msgspec.to_builtins(public), "secret": bool(transfer.credentials)}


def _exported(data: bytes, url: str) -> ExportedDisk:
    try:
        return msgspec.json.decode(data, type=ExportedDisk)
    except msgspec.DecodeError:
        raise ProviderError(Code.INVALID, f"what is at {url} is no disk of a simulated hypervisor") from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
