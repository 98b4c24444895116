"""Changes of machines: CPUs, memory and disks, while they run where that is possible."""

from __future__ import annotations

import msgspec

from holdfast.meta.sizes import GIB, MIB, readable
from holdfast.providers.contract import (
    Change,
    Code,
    Disk,
    ProviderError,
    Task,
)
from holdfast.providers.qemu import launch, tools
from holdfast.providers.qemu.checks import check_name
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.machines import Machines
from holdfast.providers.qemu.power import HOT_FACTOR, MOST_CPUS, Power
from holdfast.providers.qemu.records import (
    Dimm,
    DiskRecord,
    MachineRecord,
    TaskRecord,
)


class Changes(Machines, Power):
    """Changes of machines."""

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        guest = self._guest(id)
        sizes = {disk.id.rpartition("/")[2]: disk.virtual_bytes for disk in await self._disks(guest)}
        for disk in change.disks:
            check_name(disk.name, f"disk of machine {guest.record.name}")
            if 0 < disk.size_gib * GIB < sizes.get(disk.name, 0):
                raise ProviderError(
                    Code.INVALID,
                    f"disk {disk.name} of {guest.record.name} has {readable(sizes[disk.name])}"
                    f" and cannot be shrunk to {disk.size_gib} GiB",
                )
        hardware = guest.record.hardware
        if (
            id not in self._last
            and change.cpus in (None, hardware.all_cpus)
            and change.memory_mib in (None, hardware.all_memory_mib)
            and all(sizes.get(disk.name, -1) >= disk.size_gib * GIB for disk in change.disks)
        ):
            return None
        offline = guest.running and _offline_only(guest.record, change)
        if offline and not change.offline:
            raise ProviderError(Code.CONFLICT, f"machine {guest.record.name} must be off to be changed: {offline}")
        return self._submit("reconfigure", id, {"change": msgspec.to_builtins(change)})

    async def _do_reconfigure(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        change = msgspec.convert(task.args["change"], Change)
        record = guest.record
        for disk in change.disks:
            await self._grow(guest, disk)
        cpus = change.cpus or record.hardware.all_cpus
        memory = change.memory_mib or record.hardware.all_memory_mib
        if (cpus, memory) == (record.hardware.all_cpus, record.hardware.all_memory_mib):
            return
        restart = guest.running and bool(_offline_only(record, change))
        if restart and not change.offline:
            raise ProviderError(Code.CONFLICT, f"machine {record.name} must be off to be changed")
        if restart:
            await guest.stop(60.0)
        if guest.running:
            await self._plug(guest, cpus, memory)
        else:
            hardware = record.hardware
            hardware.cpus, hardware.hot_cpus, hardware.memory_mib, hardware.dimms = cpus, [], memory, []
            hardware.max_cpus = max(cpus, min(MOST_CPUS, cpus * HOT_FACTOR) if record.cpu_hot_add else cpus)
            hardware.max_memory_mib = memory * HOT_FACTOR if record.memory_hot_add else 0
            guest.save()
        if restart:
            await self._start(guest)

    async def _grow(self, guest: Guest, disk: Disk) -> None:
        size = disk.size_gib * GIB
        there = next((one for one in guest.record.disks if one.name == disk.name), None)
        if there is None:
            there = DiskRecord(name=disk.name, file=f"{disk.name}.qcow2")
            await tools.create(guest.folder / there.file, size)
            if guest.running:
                nodes = await guest.command("query-named-block-nodes", flat=True)
                if not any(one.get("node-name") == launch.node(there) for one in nodes):
                    await guest.command("blockdev-add", 60.0, **launch.block(there, guest.folder))
                blocks = await guest.command("query-block")
                if not any(
                    one.get("qdev", "").startswith(f"/machine/peripheral/{launch.device(there)}/") for one in blocks
                ):
                    await guest.command(
                        "device_add", driver="virtio-blk-pci", drive=launch.node(there), id=launch.device(there)
                    )
            guest.record.disks.append(there)
            guest.save()
            return
        path = guest.folder / there.file
        if (await tools.info(path, "qcow2")).virtual_size >= size:
            return
        guest.images.clear()
        if guest.running:
            await guest.command("block_resize", node_name=launch.node(there), size=size)
        else:
            await tools.run("resize", "-q", "-f", "qcow2", path, str(size))

    async def _plug(self, guest: Guest, cpus: int, memory: int) -> None:
        """Add CPUs and memory to a running machine."""
        record = guest.record
        hardware = record.hardware
        slots = sorted(await guest.command("query-hotpluggable-cpus"), key=lambda one: one["props"]["socket-id"])
        missing = cpus - sum("qom-path" in one for one in slots)
        for slot in [one for one in slots if "qom-path" not in one][: max(0, missing)]:
            name = f"cpu-{slot['props']['socket-id']}"
            await guest.command("device_add", driver=slot["type"], id=name, **slot["props"])
        slots = await guest.command("query-hotpluggable-cpus")
        hardware.hot_cpus = [
            {"driver": one["type"], "props": {"id": f"cpu-{one['props']['socket-id']}", **one["props"]}}
            for one in sorted(slots, key=lambda one: one["props"]["socket-id"])
            if "qom-path" in one and one["props"]["socket-id"] >= hardware.cpus
        ]
        devices = await guest.command("query-memory-devices")
        hardware.dimms = [Dimm(id=one["data"]["id"], mib=one["data"]["size"] // MIB) for one in devices]
        more = memory - hardware.all_memory_mib
        if more > 0:
            dimm = Dimm(id=f"dimm{len(hardware.dimms)}", mib=more)
            backends = {one.get("id") for one in await guest.command("query-memdev")}
            if f"ram-{dimm.id}" not in backends:
                await guest.command("object-add", qom_type="memory-backend-ram", id=f"ram-{dimm.id}", size=more * MIB)
            await guest.command("device_add", driver="pc-dimm", id=dimm.id, memdev=f"ram-{dimm.id}")
            hardware.dimms.append(dimm)
        guest.save()


def _offline_only(record: MachineRecord, change: Change) -> str:
    """Why a change cannot be made while the machine runs; empty if it can."""
    hardware = record.hardware
    if change.cpus is not None and change.cpus != hardware.all_cpus:
        if change.cpus < hardware.all_cpus:
            return "CPUs cannot be removed while it runs"
        if change.cpus > hardware.max_cpus:
            return f"it can have at most {hardware.max_cpus} CPUs until it is started again"
    if change.memory_mib is not None and change.memory_mib != hardware.all_memory_mib:
        if change.memory_mib < hardware.all_memory_mib:
            return "memory cannot be removed while it runs"
        if change.memory_mib > max(hardware.max_memory_mib, hardware.memory_mib):
            most = max(hardware.max_memory_mib, hardware.memory_mib)
            return f"it can have at most {most} MiB of memory until it is started again"
        if (change.memory_mib - hardware.all_memory_mib) % 128:
            return "memory is added in steps of 128 MiB while it runs"
    return ""
