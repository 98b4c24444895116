"""Clones: full copies of disks, or files that share the image of their source."""

from __future__ import annotations

from pathlib import Path

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import (
    Code,
    Machine,
    Made,
    ProviderError,
    Stage,
)
from holdfast.providers.qemu import tools
from holdfast.providers.qemu.checks import check_names
from holdfast.providers.qemu.machines import Machines
from holdfast.providers.qemu.records import (
    DiskRecord,
    TaskRecord,
)
from holdfast.providers.qemu.snapshots import Snapshots


class Clones(Machines, Snapshots):
    """Clones of machines."""

    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made:
        if instant:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not support instant clones")
        source = self._guest(id)
        there = self._named(target.name)
        if there is not None:
            if there.record.cloned_from != id:
                raise ProviderError(
                    Code.CONFLICT, f"machine {target.name} exists and is no clone of {source.record.name}"
                )
            return Made(id=there.record.id, task=self._making(there))
        check_names(target)
        taken = source.record.snapshot(snapshot) if snapshot else None
        if snapshot and taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {source.record.name} has no snapshot {snapshot}")
        disks = list(taken.disks if taken else source.record.disks)
        if linked:
            for disk in disks[:1]:
                if not (await tools.info(source.folder / disk.file, "qcow2")).backing_filename:
                    raise ProviderError(
                        Code.CONFLICT,
                        f"disk {disk.name} of {source.record.name} has no image that a linked clone could share;"
                        " make a full clone",
                    )
        copied = {disk.name for disk in disks}
        added = [disk for disk in target.disks if disk.name not in copied and disk.name != "root"]
        guest = self._make(
            target,
            disks + [DiskRecord(name=disk.name, file=f"{disk.name}.qcow2") for disk in added],
            kernel=source.record.kernel,
            cloned_from=id,
        )
        args = {
            "source": id,
            "snapshot": taken.id if taken else "",
            "linked": linked,
            "disks": [disk.name for disk in disks],
            "sizes": {disk.name: disk.size_gib * GIB for disk in target.disks},
        }
        return Made(id=guest.record.id, task=self._submit("clone", guest.record.id, args))

    async def _do_clone(self, task: TaskRecord) -> None:
        guest, source, args = self._guest(task.subject), self._guest(task.args["source"]), task.args
        files = {disk.name: disk.file for disk in guest.record.disks}
        backing: list[str] = []
        async with self._still(source, args["snapshot"], task.id) as tag:
            total = sum(
                [(await tools.info(source.folder / files[name], "qcow2")).actual_size for name in args["disks"]]
            )
            whole = self._report(task.id, total)
            for number, name in enumerate(args["disks"]):
                target = guest.folder / files[name]
                base = (await tools.info(source.folder / files[name], "qcow2")).full_backing_filename
                shared = Path(base) if args["linked"] and base else None
                if shared is not None:
                    backing.append(shared.name)
                if target.exists():
                    continue
                size = (await tools.info(source.folder / files[name], "qcow2")).actual_size
                stage = Stage(name=name, number=number + 1, count=len(args["disks"]), total_bytes=size)
                await tools.convert(
                    source.folder / files[name],
                    target,
                    snapshot=tag,
                    backing=shared,
                    on_progress=self._stage(task.id, stage, whole),
                )
        for name, size in args["sizes"].items():
            path = guest.folder / files.get(name, f"{name}.qcow2")
            if not path.exists() and size:
                await tools.create(path, size)
            elif path.exists() and size > (await tools.info(path, "qcow2")).virtual_size:
                await tools.run("resize", "-q", "-f", "qcow2", path, str(size))
        await self._finish(guest, backing)
