"""Imported disks: disks of no machine, from which a machine is made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from holdfast.providers.contract import (
    Code,
    ProviderError,
    Stage,
    Task,
    Transfer,
    Transferred,
)
from holdfast.providers.qemu import tools
from holdfast.providers.qemu.checks import check_format
from holdfast.providers.qemu.files import discard
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.records import (
    ImportRecord,
    TaskRecord,
)
from holdfast.providers.qemu.tasks import Tasks
from holdfast.providers.staging import sha256


class Imports(Tasks):
    """The imported disks of the provider."""

    async def import_disk(self, transfer: Transfer) -> Transferred:
        name = transfer.target_name or transfer.url
        check_format(transfer.format)
        source = f"{transfer.url} {transfer.expected_checksum}"
        there = next((one for one in self._books.imports.values() if one.name == name), None)
        if there is not None:
            if there.source != source:
                raise ProviderError(Code.CONFLICT, f"disk {there.id} exists by the name {name} and came from elsewhere")
            last = self._last.get(there.id)
            return Transferred(
                id=there.id,
                path=str(self._disk_path(there.id)),
                task=Task(id=last) if last else None,
                size_bytes=there.virtual_bytes,
                checksum=there.checksum,
            )
        path = self._staging.path(transfer)
        if path is not None and not path.is_file():
            raise ProviderError(Code.NOT_FOUND, f"there is no disk at {transfer.url}")
        id = self._number("disk")
        self._books.imports[id] = ImportRecord(id=id, name=name, source=source)
        public = msgspec.structs.replace(transfer, credentials={})
        args = {"transfer": msgspec.to_builtins(public), "secret": bool(transfer.credentials)}
        task = self._submit("import_disk", id, args)
        if transfer.credentials:
            self._transfers[task.id] = transfer
        return Transferred(id=id, path=str(self._disk_path(id)), task=task)

    async def _do_import_disk(self, task: TaskRecord) -> dict[str, str]:
        record, transfer = self._books.imports[task.subject], self._transfer(task)
        target = self._disk_path(record.id)
        source = self._staging.path(transfer)
        fetched = target.with_suffix(".import")
        try:
            report = self._report(task.id, 100)
            self._stage(task.id, Stage(name="transferring", number=1, count=2), report)
            if source is None:
                await self._staging.get(transfer, fetched)
                source = fetched
            if not source.is_file():
                raise ProviderError(Code.NOT_FOUND, f"there is no disk at {transfer.url}")
            checksum = await asyncio.to_thread(sha256, source)
            if transfer.verify_checksum and transfer.expected_checksum and checksum != transfer.expected_checksum:
                raise ProviderError(
                    Code.INVALID,
                    f"the disk at {transfer.url} has the checksum {checksum}, expected {transfer.expected_checksum}",
                )
            found = await tools.probe(source)
            if transfer.format and found.format != transfer.format:
                raise ProviderError(
                    Code.INVALID, f"the disk at {transfer.url} has the format {found.format}, not {transfer.format}"
                )
            if not target.exists():
                size = source.stat().st_size
                name = "importing" if found.format == "qcow2" else "converting"
                at = self._stage(task.id, Stage(name=name, number=2, count=2, total_bytes=size), report)
                await tools.convert(source, target, source_format=found.format, on_progress=at)
        finally:
            fetched.unlink(missing_ok=True)
        record.checksum, record.virtual_bytes, record.ready = checksum, found.virtual_size, True
        self._write()
        return {"checksum": checksum, "size_bytes": str(found.virtual_size), "path": str(target)}

    async def _undo_import_disk(self, task: TaskRecord) -> None:
        if self._books.imports.pop(task.subject, None) is not None:
            discard(self._disk_path(task.subject))

    def _import_at(self, path: str) -> str:
        """The imported disk at a path, which is how a caller that knows no imported disks names one."""
        return next((id for id in self._books.imports if path and path in (id, str(self._disk_path(id)))), "")

    def _disk_path(self, id: str) -> Path:
        return self._data / "disks" / f"{id}.qcow2"

    def _take_import(self, id: str, machine: str) -> None:
        record = self._books.imports.get(id)
        if record is None:
            raise ProviderError(Code.NOT_FOUND, f"disk {id} does not exist")
        if record.machine:
            raise ProviderError(Code.CONFLICT, f"disk {id} belongs to machine {record.machine}")
        if not record.ready:
            raise ProviderError(Code.RETRYABLE, f"disk {id} is still being imported")

    def _return_import(self, guest: Guest) -> None:
        """Give the disk of a machine that could not be made back to the imported ones."""
        for record in self._books.imports.values():
            if record.machine == guest.record.id and (guest.folder / "root.qcow2").exists():
                (guest.folder / "root.qcow2").rename(self._disk_path(record.id))
                record.machine = ""

    async def delete_disk(self, id: str) -> None:
        id = next((one.id for one in self._books.imports.values() if one.name == id), id)
        record = self._books.imports.get(id)
        if record is None:
            if "/" in id and id.partition("/")[0] in self._guests:
                raise ProviderError(Code.CONFLICT, f"disk {id} belongs to a machine")
            return
        if record.machine in self._guests:
            raise ProviderError(Code.CONFLICT, f"disk {id} belongs to machine {record.machine}")
        if id in self._last:
            await self.cancel(Task(id=self._last[id]))
        self._books.imports.pop(id, None)
        self._write()
        discard(self._disk_path(id))
