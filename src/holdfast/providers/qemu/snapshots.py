"""Snapshots: inside the qcow2 files of a machine, with its memory or without."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import msgspec

from holdfast.meta.sizes import MIB
from holdfast.providers.contract import (
    Code,
    Made,
    ProviderError,
    Task,
)
from holdfast.providers.qemu import launch, tools
from holdfast.providers.qemu.files import allocated, discard
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.power import Power
from holdfast.providers.qemu.records import (
    DiskRecord,
    Hardware,
    SnapshotRecord,
    TaskRecord,
)


class Snapshots(Power):
    """The snapshots of machines."""

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        guest = self._guest(id)
        there = guest.record.snapshot(name)
        if there is not None:
            return Made(id=there.id)
        for task in self._books.tasks.values():
            if not task.done and task.subject == id and task.call == "snapshot" and task.args["name"] == name:
                return Made(id=task.args["id"], task=Task(id=task.id))
        if not guest.record.disks:
            raise ProviderError(Code.CONFLICT, f"machine {guest.record.name} has no disk that could hold a snapshot")
        if memory and guest.record.firmware.lower() in ("uefi", "efi"):
            raise ProviderError(Code.UNSUPPORTED, "snapshots with memory are not possible with UEFI")
        if quiesce and guest.running:
            await guest.agent("guest-ping")
        taken = self._number("snap")
        args = {"id": taken, "name": name, "memory": memory, "quiesce": quiesce, "description": description}
        return Made(id=taken, task=self._submit("snapshot", id, args))

    async def _do_snapshot(self, task: TaskRecord) -> dict[str, str]:
        guest = self._guest(task.subject)
        record, args = guest.record, task.args
        there = record.snapshot(args["id"])
        if there is None:
            memory = args["memory"] and guest.running
            if args["quiesce"] and guest.running:
                with contextlib.suppress(ProviderError):
                    await guest.agent("guest-fsfreeze-thaw", 10)  # an attempt before may have left it frozen
                await guest.agent("guest-fsfreeze-freeze", 30)
            try:
                before = sum(allocated(guest.folder / disk.file) for disk in record.disks)
                await self._take(guest, args["id"], memory=memory, task=task.id)
                after = sum(allocated(guest.folder / disk.file) for disk in record.disks)
            finally:
                if args["quiesce"] and guest.running:
                    await guest.agent("guest-fsfreeze-thaw", 30)
            there = SnapshotRecord(
                id=args["id"],
                name=args["name"],
                description=args["description"],
                memory=memory,
                parent=record.current,
                size_bytes=max(0, after - before),
                hardware=msgspec.convert(msgspec.to_builtins(record.hardware), Hardware),
                disks=list(record.disks),
            )
            record.snapshots.append(there)
            record.current = there.id
            guest.save()
        return {"size_bytes": str(there.size_bytes), "parent": there.parent}

    async def _take(self, guest: Guest, tag: str, *, memory: bool, task: str = "") -> None:
        """Take an internal snapshot of all disks, with memory or without; nothing if it is there."""
        disks = guest.record.disks
        if all([tag in (await tools.info(guest.folder / disk.file, "qcow2")).tags() for disk in disks]):
            return
        if memory:
            first = guest.folder / disks[0].file
            self._watched[task] = (first, allocated(first), guest.record.hardware.all_memory_mib * MIB)
            nodes = [launch.node(disk) for disk in disks]
            await guest.job(f"snapshot-{tag}", "snapshot-save", tag=tag, vmstate=nodes[0], devices=nodes)
        elif guest.running:
            actions = [
                {"type": "blockdev-snapshot-internal-sync", "data": {"device": launch.node(disk), "name": tag}}
                for disk in disks
            ]
            await guest.command("transaction", actions=actions)
        else:
            for disk in disks:
                path = guest.folder / disk.file
                if tag not in (await tools.info(path, "qcow2")).tags():
                    await tools.run("snapshot", "-q", "-c", tag, path)

    async def _drop(self, guest: Guest, tag: str, disks: list[DiskRecord]) -> None:
        for disk in disks:
            path = guest.folder / disk.file
            if not path.exists() or tag not in (await tools.info(path, "qcow2")).tags():
                continue
            if guest.running:
                await guest.command("blockdev-snapshot-delete-internal-sync", device=launch.node(disk), name=tag)
            else:
                await tools.run("snapshot", "-q", "-d", tag, path)

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        guest = self._guests.get(id)
        if guest is None or (guest.record.snapshot(snapshot) is None and id not in self._last):
            return None
        return self._submit("delete_snapshot", id, {"id": snapshot})

    async def _do_delete_snapshot(self, task: TaskRecord) -> None:
        guest = self._guests.get(task.subject)
        gone = guest.record.snapshot(task.args["id"]) if guest else None
        if guest is None or gone is None:
            return
        await self._drop(guest, gone.id, gone.disks)
        guest.record.snapshots.remove(gone)
        for child in guest.record.snapshots:
            if child.parent == gone.id:
                child.parent = gone.parent
        if guest.record.current == gone.id:
            guest.record.current = gone.parent
        guest.save()

    async def revert(self, id: str, snapshot: str) -> Task | None:
        guest = self._guest(id)
        if guest.record.snapshot(snapshot) is None and id not in self._last:
            raise ProviderError(Code.NOT_FOUND, f"machine {guest.record.name} has no snapshot {snapshot}")
        return self._submit("revert", id, {"id": snapshot})

    async def _do_revert(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        record = guest.record
        taken = record.snapshot(task.args["id"])
        if taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {task.args['id']}")
        await guest.stop()
        guest.images.clear()
        later = [disk for disk in record.disks if all(disk.name != one.name for one in taken.disks)]
        record.disks = list(taken.disks)
        record.hardware = msgspec.convert(msgspec.to_builtins(taken.hardware), Hardware)
        record.current, record.crashed = taken.id, ""
        guest.save()
        for disk in later:
            discard(guest.folder / disk.file)
        if taken.memory:
            await self._start(guest, resume=taken.id)
        else:
            for disk in record.disks:
                await tools.run("snapshot", "-q", "-a", taken.id, guest.folder / disk.file)

    @contextlib.asynccontextmanager
    async def _still(self, guest: Guest, snapshot: str, task: str) -> AsyncIterator[str]:
        """The name of a snapshot from which disks can be read while the machine runs; empty if it does not."""
        if snapshot or not guest.running:
            yield snapshot
            return
        tag = f"copy-{task}"
        await self._take(guest, tag, memory=False)
        try:
            yield tag
        finally:
            await self._drop(guest, tag, guest.record.disks)
