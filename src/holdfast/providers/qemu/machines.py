"""Machines: made in a folder, described, deleted."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import uuid
from pathlib import Path
from typing import Any

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import (
    Code,
    Description,
    Disk,
    DiskInfo,
    Image,
    Listed,
    Machine,
    Made,
    Placement,
    ProviderError,
    Task,
)
from holdfast.providers.qemu import launch, seed, tools
from holdfast.providers.qemu.checks import check_names
from holdfast.providers.qemu.files import allocated
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.images import Images
from holdfast.providers.qemu.imports import Imports
from holdfast.providers.qemu.power import HOT_FACTOR, MOST_CPUS
from holdfast.providers.qemu.records import (
    DiskRecord,
    Hardware,
    MachineRecord,
    TaskRecord,
)
from holdfast.providers.staging import part


class Machines(Images, Imports):
    """The machines of the provider."""

    async def machines(self) -> tuple[Listed, ...]:
        return tuple(
            [
                Listed(
                    id=guest.record.id,
                    name=guest.record.name,
                    power=guest.power,
                    ips=guest.ips,
                    cpus=guest.record.hardware.all_cpus,
                    memory_mib=guest.record.hardware.all_memory_mib,
                    disks=await self._disks(guest),
                    host=guest.record.host,
                )
                for guest in list(self._guests.values())
                if not guest.record.creating
            ]
        )

    async def create(self, machine: Machine) -> Made:
        there = self._named(machine.name)
        if there is not None:
            return Made(id=there.record.id, task=self._making(there))
        check_names(machine)
        if machine.secure_boot or machine.tpm:
            raise ProviderError(Code.UNSUPPORTED, "this provider has no secure boot and no TPM")
        root = next((disk for disk in machine.disks if disk.name == "root"), Disk(name="root"))
        args: dict[str, Any] = {"root_bytes": root.size_gib * GIB}
        kernel = ""
        imported = machine.imported_disk
        if not imported and machine.image is not None:
            imported = self._import_at(machine.image.path)
        if imported:
            self._take_import(imported, machine.name)
            args["import"] = imported
        elif machine.image is not None:
            image = await self._image_for(machine.image)
            if isinstance(image, Path):
                kernel = str(image)
            else:
                args["image"] = image
        elif not root.size_gib:
            raise ProviderError(Code.INVALID, f"machine {machine.name} has no image, no imported disk and no disk root")
        if machine.extra.get("kernel"):
            kernel = str(await self._kernel(machine.extra["kernel"]))
        disks = []
        if imported or "image" in args or root.size_gib:
            disks.append(DiskRecord(name="root", file="root.qcow2", bootable=not kernel))
        others = [disk for disk in machine.disks if disk.name != "root"]
        disks += [DiskRecord(name=disk.name, file=f"{disk.name}.qcow2") for disk in others]
        args["sizes"] = {disk.name: disk.size_gib * GIB for disk in others}
        guest = self._make(machine, disks, kernel=kernel)
        return Made(id=guest.record.id, task=self._submit("create", guest.record.id, args))

    async def _kernel(self, name: str) -> Path:
        """The folder of images with the kernel that a class names: it is started, and the disk is its data."""
        found = await self._image_for(Image(template=name))
        if not isinstance(found, Path):
            raise ProviderError(Code.INVALID, f"extraConfig.kernel: the image {name} is no folder with a kernel")
        return found

    def _making(self, guest: Guest) -> Task | None:
        opened = [one.id for one in self._books.tasks.values() if one.subject == guest.record.id and not one.done]
        return Task(id=opened[0]) if guest.record.creating and opened else None

    def _make(self, machine: Machine, disks: list[DiskRecord], **more: Any) -> Guest:
        """The folder and the record of a machine that is being made."""
        host = self._host_for(machine.placement)
        id = f"vm-{uuid.uuid4().hex[:12]}"
        folder = self._hosts[host] / id
        folder.mkdir(mode=0o700)
        hot_cpus = min(MOST_CPUS, machine.cpus * HOT_FACTOR) if machine.cpu_hot_add else machine.cpus
        record = MachineRecord(
            id=id,
            name=machine.name,
            uuid=str(uuid.uuid4()),
            host=host,
            hardware=Hardware(
                cpus=machine.cpus,
                max_cpus=max(hot_cpus, machine.cpus),
                memory_mib=machine.memory_mib,
                max_memory_mib=machine.memory_mib * HOT_FACTOR if machine.memory_hot_add else 0,
            ),
            cpu_hot_add=machine.cpu_hot_add,
            memory_hot_add=machine.memory_hot_add,
            firmware=machine.firmware,
            disks=disks,
            nics=machine.nics,
            tags=machine.tags,
            **more,
        )
        try:
            launch.arguments(record, folder, launch.TCG)  # what cannot be started is refused now
            record.seed = self._write_seed(machine, record, folder)
            guest = Guest(record, folder)
            guest.save()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._guests[id] = guest
        return guest

    @staticmethod
    def _write_seed(machine: Machine, record: MachineRecord, folder: Path) -> bool:
        """The disk for cloud-init, if there is anything to say to it."""
        network = _network_config(machine, record)
        if not (machine.user_data or machine.meta_data or network):
            return False
        hostname = machine.extra.get("hostname", machine.name)
        meta = machine.meta_data or f"instance-id: {record.id}\nlocal-hostname: {hostname}\n".encode()
        files = {"user-data": machine.user_data or b"#cloud-config\n{}\n", "meta-data": meta}
        if network:
            files["network-config"] = network
        path = folder / launch.SEED
        path.touch(0o600)
        path.write_bytes(seed.iso(files))
        return True

    def _host_for(self, placement: Placement) -> str:
        if placement.host:
            if placement.host not in self._hosts:
                raise ProviderError(
                    Code.INVALID, f"host {placement.host} does not exist: there are {', '.join(self._hosts)}"
                )
            return placement.host
        if placement.datastore and placement.datastore in self._hosts:
            return placement.datastore
        used = dict.fromkeys(self._hosts, 0)
        for guest in self._guests.values():
            used[guest.record.host] += guest.record.hardware.all_memory_mib
        return min(used, key=lambda name: used[name])

    async def _do_create(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        record, args = guest.record, task.args
        root = guest.folder / "root.qcow2"
        backing = []
        if "import" in args:
            source = self._data / "disks" / f"{args['import']}.qcow2"
            if not root.exists():
                await asyncio.to_thread(shutil.move, source, part(root))
                part(root).rename(root)
            self._books.imports[args["import"]].machine = record.id
            self._write()
        elif "image" in args:
            image = await self._image_ready(args["image"])
            base = self._data / "images" / image.file
            backing.append(image.file)
            await tools.create(root, max(args["root_bytes"], image.virtual_bytes), backing=base)
        elif args["root_bytes"]:
            await tools.create(root, args["root_bytes"])
        if root.exists() and args["root_bytes"] > (await tools.info(root, "qcow2")).virtual_size:
            await tools.run("resize", "-q", "-f", "qcow2", root, str(args["root_bytes"]))
        for name, size in args["sizes"].items():
            await tools.create(guest.folder / f"{name}.qcow2", size)
        await self._finish(guest, backing)

    async def _undo_create(self, task: TaskRecord) -> None:
        guest = self._guests.get(task.subject)
        if guest is not None and guest.record.creating:
            self._return_import(guest)
            await self._remove(guest)

    _undo_clone = _undo_create

    async def _finish(self, guest: Guest, backing: list[str]) -> None:
        """What new machines and clones have in common at the end."""
        if guest.record.firmware.lower() in ("uefi", "efi") and not (guest.folder / "nvram.qcow2").exists():
            _, variables = launch.ovmf()
            await tools.convert(variables, guest.folder / "nvram.qcow2", source_format="raw")
        guest.record.backing = backing
        guest.record.creating = False
        guest.save()

    async def delete(self, id: str) -> Task | None:
        if id not in self._guests:
            return None
        for task in [one for one in self._books.tasks.values() if one.subject == id and not one.done]:
            if task.call == "delete":
                return Task(id=task.id)
            await self.cancel(Task(id=task.id))
        return self._submit("delete", id)

    async def _do_delete(self, task: TaskRecord) -> None:
        guest = self._guests.get(task.subject)
        if guest is not None:
            await guest.stop()
            await self._remove(guest)
        for id in [one.id for one in self._books.imports.values() if one.machine == task.subject]:
            del self._books.imports[id]

    async def _remove(self, guest: Guest) -> None:
        gone = guest.folder.with_name(f".{guest.folder.name}")
        with contextlib.suppress(FileNotFoundError):
            guest.folder.rename(gone)
        await asyncio.to_thread(shutil.rmtree, gone, ignore_errors=True)
        self._guests.pop(guest.record.id, None)

    async def describe(self, id: str) -> Description:
        guest = self._guests.get(id)
        if guest is None:
            return Description(exists=False)
        ips = await guest.addresses(asyncio.get_running_loop().time())
        record = guest.record
        raw = {"name": record.name, "uuid": record.uuid, "folder": str(guest.folder)}
        if record.crashed and not guest.running:
            raw["crashed"] = record.crashed
        return Description(
            exists=True,
            power=guest.power,
            ips=ips,
            console_url=guest.vnc,
            cpus=record.hardware.all_cpus,
            memory_mib=record.hardware.all_memory_mib,
            disks=await self._disks(guest),
            host=record.host,
            guest_ready=guest.agent_open and guest.running,
            again_after=1.0 if guest.running and not ips else None,
            raw=raw,
        )

    async def _disks(self, guest: Guest) -> tuple[DiskInfo, ...]:
        found = []
        for disk in guest.record.disks:
            with contextlib.suppress(ProviderError):
                found.append(await self._disk_info(guest, disk))
        return tuple(found)

    async def _disk_info(self, guest: Guest, disk: DiskRecord) -> DiskInfo:
        path = guest.folder / disk.file
        image = await guest.image(disk)
        return DiskInfo(
            id=f"{guest.record.id}/{disk.name}",
            format="qcow2",
            virtual_bytes=image.virtual_size,
            actual_bytes=allocated(path),
            path=str(path),
            bootable=disk.bootable,
            snapshots=tuple(one.id for one in guest.record.snapshots),
            backing_file=Path(image.backing_filename).name,
        )


def _network_config(machine: Machine, record: MachineRecord) -> bytes:
    """The network configuration for cloud-init, version 2; empty if no interface has an address of its own."""
    nics = machine.nics
    if not any(nic.static_ip for nic in nics):
        return b""
    lines = ["version: 2", "ethernets:"]
    for number, nic in enumerate(nics):
        address = nic.mac or launch.mac(record, number)
        lines += [f"  nic{number}:", f'    match: {{macaddress: "{address}"}}']
        if nic.static_ip:
            lines.append(f"    addresses: [{nic.static_ip}/{nic.prefix or 24}]")
            if nic.gateway:
                lines.append(f"    routes: [{{to: default, via: {nic.gateway}}}]")
            names = [name.strip() for name in nic.dns.split(",") if name.strip()]
            if names:
                lines.append(f"    nameservers: {{addresses: [{', '.join(names)}]}}")
        else:
            lines.append("    dhcp4: true")
    return ("\n".join(lines) + "\n").encode()
