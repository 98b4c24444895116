"""Machines of libvirt: a machine is a domain and its volumes."""

from __future__ import annotations

import re
from typing import Any, Final

import libvirt

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import Change, Code, Description, Listed, Machine, Made, PowerOp, ProviderError, Task
from holdfast.providers.libvirt import xml
from holdfast.providers.libvirt.domains import POWER, addresses, domain_type, shut_down
from holdfast.providers.libvirt.tasks import CODES, Tasks, lookup
from holdfast.providers.libvirt.volumes import disk_info, grow, pool_named, root_of, root_size, volume_of

_KIB_PER_MIB: Final = 1024
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class Machines(Tasks):
    """Machines are created, deleted, started, stopped, changed and described."""

    async def create(self, machine: Machine) -> Made:
        if not _NAME.fullmatch(machine.name):
            raise ProviderError(Code.INVALID, f"{machine.name!r} is not a name of letters, digits, dots and dashes")
        if machine.imported_disk:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not import disks")
        if machine.user_data:
            # Meta data is left out: every machine has some, with its name.
            raise ProviderError(Code.UNSUPPORTED, "this provider gives no user data to guests")
        if machine.secure_boot or machine.tpm:
            raise ProviderError(Code.UNSUPPORTED, "this provider has no secure boot and no TPM")

        def work(connection: Any) -> Made:
            there = lookup(connection.lookupByName, machine.name)
            if there is not None:
                return Made(id=there.UUIDString())
            pool = pool_named(connection, machine.placement.datastore)
            disks = [(root_of(connection, pool, machine), "qcow2")] if machine.image or root_size(machine) else []
            for disk in machine.disks:
                if disk.name != "root":
                    size = disk.size_gib * GIB
                    disks.append((volume_of(pool, f"{machine.name}-{disk.name}.qcow2", size).path(), "qcow2"))
            made = connection.defineXML(xml.domain(machine, domain_type(connection), disks))
            return Made(id=made.UUIDString())

        return await self._do(work)

    async def delete(self, id: str) -> Task | None:
        def work(connection: Any) -> None:
            found = lookup(connection.lookupByUUIDString, id)
            if found is None:
                return
            prefix = f"{found.name()}-"
            disks = xml.read_domain(found.XMLDesc()).disks
            if found.isActive():
                found.destroy()
            flags = libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            for snapshot in found.listAllSnapshots():
                snapshot.delete(0)
            try:
                found.undefineFlags(flags | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
            except libvirt.libvirtError as error:
                if CODES.get(error.get_error_code()) not in (Code.UNSUPPORTED, Code.INVALID):
                    raise
                found.undefine()
            for disk in disks:
                volume = lookup(connection.storageVolLookupByPath, disk.path)
                if volume is not None and volume.name().startswith(prefix):
                    volume.delete(0)

        await self._do(work)
        return None

    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None:
        def work(connection: Any) -> None:
            found = connection.lookupByUUIDString(id)
            active = bool(found.isActive())
            if op == "On" and not active:
                found.create()
            elif op == "Off" and active:
                found.destroy()
            elif op == "Reboot":
                found.reboot()

        if op != "ShutdownGraceful":
            await self._do(work)
            return None
        if not await self._do(lambda connection: connection.lookupByUUIDString(id).isActive()):
            return None
        return self._begin(lambda connection: shut_down(connection.lookupByUUIDString(id), graceful_seconds))

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            name, domain = found.name(), xml.read_domain(found.XMLDesc())
            active = bool(found.isActive())
            for disk in change.disks:
                grow(connection, found, domain, disk.name, disk.size_gib * GIB)
            cpus, memory = change.cpus or domain.cpus, change.memory_mib or domain.memory_mib
            if (cpus, memory) == (domain.cpus, domain.memory_mib):
                return {}
            online = domain.cpus <= cpus <= domain.max_cpus and memory <= domain.max_memory_mib
            if active and not online:
                if not change.offline:
                    raise ProviderError(Code.CONFLICT, f"machine {name} must be off to be changed")
                shut_down(found, 60)
            for live in (True, False) if active and online else (False,):
                flag = libvirt.VIR_DOMAIN_AFFECT_LIVE if live else libvirt.VIR_DOMAIN_AFFECT_CONFIG
                if not live and cpus > domain.max_cpus:
                    found.setVcpusFlags(cpus, flag | libvirt.VIR_DOMAIN_VCPU_MAXIMUM)
                if not live and memory > domain.max_memory_mib:
                    found.setMemoryFlags(memory * _KIB_PER_MIB, flag | libvirt.VIR_DOMAIN_MEM_MAXIMUM)
                found.setVcpusFlags(cpus, flag)
                found.setMemoryFlags(memory * _KIB_PER_MIB, flag)
            if active and not online:
                found.create()
            return {}

        if change.offline:
            return self._begin(work)
        await self._do(work)
        return None

    async def describe(self, id: str) -> Description:
        def work(connection: Any) -> Description:
            found = lookup(connection.lookupByUUIDString, id)
            if found is None:
                return Description(exists=False)
            domain = xml.read_domain(found.XMLDesc())
            state = found.state()[0]
            ips = addresses(found)
            return Description(
                exists=True,
                power=POWER.get(state, "Unknown"),
                ips=ips,
                console_url=domain.console_url,
                cpus=domain.cpus,
                memory_mib=domain.memory_mib,
                disks=tuple(disk_info(connection, found, disk) for disk in domain.disks),
                host=connection.getHostname(),
                guest_ready=bool(ips) if found.isActive() else False,
                raw={"name": found.name(), **({"crashed": "true"} if state == libvirt.VIR_DOMAIN_CRASHED else {})},
            )

        return await self._do(work)

    async def machines(self) -> tuple[Listed, ...]:
        def work(connection: Any) -> tuple[Listed, ...]:
            listed = []
            for found in connection.listAllDomains():
                domain = xml.read_domain(found.XMLDesc())
                listed.append(
                    Listed(
                        id=found.UUIDString(),
                        name=found.name(),
                        power=POWER.get(found.state()[0], "Unknown"),
                        ips=addresses(found),
                        cpus=domain.cpus,
                        memory_mib=domain.memory_mib,
                        disks=tuple(disk_info(connection, found, disk) for disk in domain.disks),
                        host=connection.getHostname(),
                    )
                )
            return tuple(listed)

        return await self._do(work)
