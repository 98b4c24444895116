"""The libvirt provider: domains and volumes of one connection.

The binding blocks, so its calls run in threads.  Volumes that the provider makes have the name of their machine before
them, and only those are deleted with it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import libvirt

from holdfast.providers.contract import (
    Capabilities,
    Change,
    Code,
    Datastore,
    Description,
    DiskInfo,
    Host,
    Image,
    Inventory,
    Listed,
    Machine,
    Made,
    PowerOp,
    Prepared,
    ProviderError,
    Task,
    TaskState,
    Transfer,
    Transferred,
)
from holdfast.providers.libvirt import xml

log: Final = logging.getLogger(__name__)
T = TypeVar("T")

GIB: Final = 1 << 30
KIB_PER_MIB: Final = 1024
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")

_CODES: Final[dict[int, Code]] = {
    **dict.fromkeys(
        (
            libvirt.VIR_ERR_NO_DOMAIN,
            libvirt.VIR_ERR_NO_STORAGE_VOL,
            libvirt.VIR_ERR_NO_STORAGE_POOL,
            libvirt.VIR_ERR_NO_DOMAIN_SNAPSHOT,
            libvirt.VIR_ERR_NO_NETWORK,
        ),
        Code.NOT_FOUND,
    ),
    **dict.fromkeys((libvirt.VIR_ERR_AUTH_FAILED, libvirt.VIR_ERR_ACCESS_DENIED), Code.UNAUTHORIZED),
    **dict.fromkeys(
        (
            libvirt.VIR_ERR_NO_SUPPORT,
            libvirt.VIR_ERR_OPERATION_UNSUPPORTED,
            libvirt.VIR_ERR_CONFIG_UNSUPPORTED,
            libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED,
        ),
        Code.UNSUPPORTED,
    ),
    **dict.fromkeys((libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_DOM_EXIST), Code.CONFLICT),
    **dict.fromkeys((libvirt.VIR_ERR_INVALID_ARG, libvirt.VIR_ERR_XML_ERROR, libvirt.VIR_ERR_XML_DETAIL), Code.INVALID),
    **dict.fromkeys(
        (
            libvirt.VIR_ERR_RPC,
            libvirt.VIR_ERR_NO_CONNECT,
            libvirt.VIR_ERR_OPERATION_TIMEOUT,
            libvirt.VIR_ERR_INVALID_CONN,
        ),
        Code.RETRYABLE,
    ),
    libvirt.VIR_ERR_NO_MEMORY: Code.QUOTA,
}

_POWER: Final = {
    libvirt.VIR_DOMAIN_RUNNING: "On",
    libvirt.VIR_DOMAIN_BLOCKED: "On",
    libvirt.VIR_DOMAIN_PAUSED: "Paused",
    libvirt.VIR_DOMAIN_SHUTDOWN: "On",
    libvirt.VIR_DOMAIN_SHUTOFF: "Off",
    libvirt.VIR_DOMAIN_CRASHED: "Off",
    libvirt.VIR_DOMAIN_PMSUSPENDED: "Suspended",
}


def error_of(error: libvirt.libvirtError) -> ProviderError:
    code = _CODES.get(error.get_error_code(), Code.INTERNAL)
    return ProviderError(code, f"libvirt: {error.get_error_message() or error}")


class Libvirt:
    """A `Hypervisor` of one libvirt connection."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._connection: Any = None
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="libvirt")
        self._numbers = itertools.count(1)
        self._tasks: dict[str, tuple[asyncio.Task[None], dict[str, str]]] = {}
        libvirt.registerErrorHandler(lambda *_: None, None)  # it would print every error

    async def _do(self, work: Callable[[Any], T]) -> T:
        """Run a piece of work with the connection, in a thread."""

        def run() -> T:
            try:
                if self._connection is None or not self._connection.isAlive():
                    self._connection = libvirt.open(self._uri)
                return work(self._connection)
            except libvirt.libvirtError as error:
                raise error_of(error) from None

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _begin(self, work: Callable[[Any], dict[str, str]]) -> Task:
        """A task for work that may take long.  Tasks are in memory: after a restart the call is repeated."""
        id = f"task-{next(self._numbers)}"
        result: dict[str, str] = {}

        async def perform() -> None:
            result.update(await self._do(work))

        self._tasks[id] = (asyncio.create_task(perform()), result)
        return Task(id=id)

    async def task(self, task: Task) -> TaskState:
        found = self._tasks.get(task.id)
        if found is None:
            return TaskState.unknown(f"task {task.id} is not known")
        running, result = found
        if not running.done():
            return TaskState(again_after=1.0)
        error = running.exception()
        if isinstance(error, ProviderError):
            return TaskState(done=True, error=error.message, code=error.code)
        if error is not None:
            log.error("task failed by a defect", exc_info=error)
            return TaskState(done=True, error="a defect of the provider; its log has the details", code=Code.INTERNAL)
        return TaskState(done=True, percentage=100, result=result)

    async def cancel(self, task: Task) -> None:
        """Calls of libvirt cannot be cancelled; the task goes on to its end."""

    # --- the provider ------------------------------------------------------------------

    async def validate(self) -> None:
        await self._do(lambda connection: connection.getVersion())

    async def capabilities(self) -> Capabilities:
        version = await self._do(lambda connection: connection.getLibVersion())
        return Capabilities(
            version=f"libvirt/{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}",
            reconfigure_online=True,
            disk_expansion_online=True,
            snapshots=True,
            memory_snapshots=True,
            linked_clones=True,
            disk_types=("thin",),
            network_types=("network", "bridge"),
            inventory=True,
        )

    async def inventory(self) -> Inventory:
        def work(connection: Any) -> Inventory:
            _, memory, cpus, *_ = connection.getInfo()
            name = connection.getHostname()
            domains = [(one.UUIDString(), xml.read_domain(one.XMLDesc())) for one in connection.listAllDomains()]
            pools = [(pool.name(), pool.info()) for pool in connection.listAllStoragePools() if pool.isActive()]
            host = Host(
                name=name,
                cpus=cpus,
                cpus_used=sum(domain.cpus for _, domain in domains),
                memory_mib=memory,
                memory_mib_used=sum(domain.memory_mib for _, domain in domains),
                datastores=tuple(pool for pool, _ in pools),
                networks=tuple(network.name() for network in connection.listAllNetworks()),
                machines=tuple(id for id, _ in domains),
            )
            stores = tuple(
                Datastore(name=pool, total_bytes=info[1], free_bytes=info[3], hosts=(name,)) for pool, info in pools
            )
            return Inventory(hosts=(host,), datastores=stores)

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
                        power=_POWER.get(found.state()[0], "Unknown"),
                        ips=_addresses(found),
                        cpus=domain.cpus,
                        memory_mib=domain.memory_mib,
                        disks=tuple(_disk(connection, found, disk) for disk in domain.disks),
                        host=connection.getHostname(),
                    )
                )
            return tuple(listed)

        return await self._do(work)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        for running, _ in self._tasks.values():
            running.cancel()
        if connection is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, connection.close)
        self._threads.shutdown(wait=False)

    # --- machines ----------------------------------------------------------------------

    async def create(self, machine: Machine) -> Made:
        if not _NAME.fullmatch(machine.name):
            raise ProviderError(Code.INVALID, f"{machine.name!r} is not a name of letters, digits, dots and dashes")
        if machine.imported_disk:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not import disks")
        if machine.user_data or machine.meta_data:
            raise ProviderError(Code.UNSUPPORTED, "this provider has no cloud-init; use an image that needs none")
        if machine.secure_boot or machine.tpm:
            raise ProviderError(Code.UNSUPPORTED, "this provider has no secure boot and no TPM")

        def work(connection: Any) -> Made:
            there = _lookup(connection.lookupByName, machine.name)
            if there is not None:
                return Made(id=there.UUIDString())
            pool = _pool(connection, machine.placement.datastore)
            disks = [(_root(connection, pool, machine), "qcow2")] if machine.image or _root_size(machine) else []
            for disk in machine.disks:
                if disk.name != "root":
                    size = disk.size_gib * GIB
                    disks.append((_volume(pool, f"{machine.name}-{disk.name}.qcow2", size).path(), "qcow2"))
            made = connection.defineXML(xml.domain(machine, _type(connection), disks))
            return Made(id=made.UUIDString())

        return await self._do(work)

    async def delete(self, id: str) -> Task | None:
        def work(connection: Any) -> None:
            found = _lookup(connection.lookupByUUIDString, id)
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
                if _CODES.get(error.get_error_code()) not in (Code.UNSUPPORTED, Code.INVALID):
                    raise
                found.undefine()
            for disk in disks:
                volume = _lookup(connection.storageVolLookupByPath, disk.path)
                if volume is not None and volume.name().startswith(prefix):
                    volume.delete(0)

        await self._do(work)
        return None

    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            active = bool(found.isActive())
            match op:
                case "On" if not active:
                    found.create()
                case "Off" if active:
                    found.destroy()
                case "Reboot":
                    found.reboot()
                case _:
                    pass
            return {}

        if op != "ShutdownGraceful":
            await self._do(work)
            return None
        if not await self._do(lambda connection: connection.lookupByUUIDString(id).isActive()):
            return None
        return self._begin(lambda connection: _shut_down(connection.lookupByUUIDString(id), graceful_seconds))

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            name, domain = found.name(), xml.read_domain(found.XMLDesc())
            active = bool(found.isActive())
            for disk in change.disks:
                _grow(connection, found, domain, disk.name, disk.size_gib * GIB)
            cpus, memory = change.cpus or domain.cpus, change.memory_mib or domain.memory_mib
            if (cpus, memory) == (domain.cpus, domain.memory_mib):
                return {}
            online = domain.cpus <= cpus <= domain.max_cpus and memory <= domain.max_memory_mib
            if active and not online:
                if not change.offline:
                    raise ProviderError(Code.CONFLICT, f"machine {name} must be off to be changed")
                _shut_down(found, 60)
            for live in (True, False) if active and online else (False,):
                flag = libvirt.VIR_DOMAIN_AFFECT_LIVE if live else libvirt.VIR_DOMAIN_AFFECT_CONFIG
                if not live and cpus > domain.max_cpus:
                    found.setVcpusFlags(cpus, flag | libvirt.VIR_DOMAIN_VCPU_MAXIMUM)
                if not live and memory > domain.max_memory_mib:
                    found.setMemoryFlags(memory * KIB_PER_MIB, flag | libvirt.VIR_DOMAIN_MEM_MAXIMUM)
                found.setVcpusFlags(cpus, flag)
                found.setMemoryFlags(memory * KIB_PER_MIB, flag)
            if active and not online:
                found.create()
            return {}

        if change.offline:
            return self._begin(work)
        await self._do(work)
        return None

    async def describe(self, id: str) -> Description:
        def work(connection: Any) -> Description:
            found = _lookup(connection.lookupByUUIDString, id)
            if found is None:
                return Description(exists=False)
            domain = xml.read_domain(found.XMLDesc())
            state = found.state()[0]
            ips = _addresses(found)
            return Description(
                exists=True,
                power=_POWER.get(state, "Unknown"),
                ips=ips,
                console_url=domain.console_url,
                cpus=domain.cpus,
                memory_mib=domain.memory_mib,
                disks=tuple(_disk(connection, found, disk) for disk in domain.disks),
                host=connection.getHostname(),
                guest_ready=bool(ips) if found.isActive() else False,
                raw={"name": found.name(), **({"crashed": "true"} if state == libvirt.VIR_DOMAIN_CRASHED else {})},
            )

        return await self._do(work)

    # --- snapshots and clones ----------------------------------------------------------

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        if quiesce:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not quiesce guests")

        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            current = found.snapshotCurrent().getName() if found.hasCurrentSnapshot() else ""
            with_memory = memory and bool(found.isActive())
            flags = 0 if with_memory or not found.isActive() else libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY
            found.snapshotCreateXML(xml.snapshot(name, description, memory=with_memory), flags)
            return {"parent": current}

        there = await self._do(
            lambda connection: _lookup(connection.lookupByUUIDString(id).snapshotLookupByName, name) is not None
        )
        return Made(id=name) if there else Made(id=name, task=self._begin(work))

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = _lookup(connection.lookupByUUIDString, id)
            taken = _lookup(found.snapshotLookupByName, snapshot) if found is not None else None
            if taken is not None:
                taken.delete(0)
            return {}

        return self._begin(work)

    async def revert(self, id: str, snapshot: str) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            taken = found.snapshotLookupByName(snapshot)
            found.revertToSnapshot(taken, libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE)
            return {}

        await self._do(lambda connection: connection.lookupByUUIDString(id).snapshotLookupByName(snapshot))
        return self._begin(work)

    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made:
        if instant or snapshot:
            what = "instant clones" if instant else "clones of snapshots"
            raise ProviderError(Code.UNSUPPORTED, f"this provider does not support {what}")

        def check(connection: Any) -> tuple[str, str]:
            source = connection.lookupByUUIDString(id)
            there = _lookup(connection.lookupByName, target.name)
            if there is not None:
                if _cloned_from(there) != id:
                    raise ProviderError(
                        Code.CONFLICT, f"machine {target.name} exists and is no clone of {source.name()}"
                    )
                return there.UUIDString(), ""
            if source.isActive():
                raise ProviderError(Code.CONFLICT, f"machine {source.name()} must be off to be cloned")
            return "", source.name()

        def work(connection: Any) -> Made:
            source = connection.lookupByUUIDString(id)
            disks = []
            for number, disk in enumerate(xml.read_domain(source.XMLDesc()).disks):
                volume = connection.storageVolLookupByPath(disk.path)
                pool = volume.storagePoolLookupByVolume()
                name = f"{target.name}-{'root' if number == 0 else f'disk{number}'}.qcow2"
                size = volume.info()[1]
                if linked:
                    made = _volume(pool, name, size, backing=disk.path, form=xml.volume_format(volume.XMLDesc()))
                else:
                    made = _lookup(pool.storageVolLookupByName, name)
                    made = made or pool.createXMLFrom(xml.volume(name, size), volume, 0)
                disks.append((made.path(), "qcow2"))
            made = connection.defineXML(xml.domain(target, _type(connection), disks, description=f"clone of {id}"))
            return Made(id=made.UUIDString())

        there, _ = await self._do(check)
        return Made(id=there) if there else await self._do(work)

    # --- images and disks --------------------------------------------------------------

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        """Images are volumes of a pool; one that is not there is not fetched."""
        if image.url:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not fetch images; put a volume into a pool")

        def work(connection: Any) -> Prepared:
            pool = _pool(connection, storage_hint)
            volume = _image(connection, pool, image)
            return Prepared(id=volume.name(), path=volume.path())

        return await self._do(work)

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        def work(connection: Any) -> DiskInfo:
            found = connection.lookupByUUIDString(id)
            for one in xml.read_domain(found.XMLDesc()).disks:
                if disk in ("", one.path, one.target, _disk_name(found.name(), one.path)):
                    return _disk(connection, found, one)
            raise ProviderError(Code.NOT_FOUND, f"machine {found.name()} has no disk {disk or 'at all'}")

        return await self._do(work)

    async def export_disk(self, transfer: Transfer) -> Transferred:
        raise ProviderError(Code.UNSUPPORTED, "this provider does not export disks")

    async def delete_export(self, transfer: Transfer) -> None:
        raise ProviderError(Code.UNSUPPORTED, "this provider does not export disks")

    async def import_disk(self, transfer: Transfer) -> Transferred:
        raise ProviderError(Code.UNSUPPORTED, "this provider does not import disks")

    async def delete_disk(self, id: str) -> None:
        raise ProviderError(Code.UNSUPPORTED, "this provider does not import disks")


# --- with the binding ------------------------------------------------------------------


def _lookup(look: Callable[..., Any], *arguments: Any) -> Any:
    """What a function finds, or None if it does not exist."""
    try:
        return look(*arguments)
    except libvirt.libvirtError as error:
        if _CODES.get(error.get_error_code()) in (Code.NOT_FOUND, Code.INVALID):
            return None
        raise


def _type(connection: Any) -> str:
    """The type of domains of a connection."""
    if connection.getType() == "TEST":
        return "test"
    return "kvm" if "<domain type='kvm'" in connection.getCapabilities() else "qemu"


def _pool(connection: Any, name: str) -> Any:
    if name:
        found = _lookup(connection.storagePoolLookupByName, name)
        if found is None:
            raise ProviderError(Code.INVALID, f"storage pool {name} does not exist")
        return found
    pools = [pool for pool in connection.listAllStoragePools() if pool.isActive()]
    if not pools:
        raise ProviderError(Code.INVALID, "there is no active storage pool")
    return max(pools, key=lambda pool: (pool.name() == "default", pool.info()[3]))


def _volume(pool: Any, name: str, size: int, *, backing: str = "", form: str = "qcow2") -> Any:
    """A volume by its name, made if it does not exist."""
    there = _lookup(pool.storageVolLookupByName, name)
    if there is not None:
        return there
    if size > pool.info()[3]:
        raise ProviderError(Code.QUOTA, f"storage pool {pool.name()} has {pool.info()[3] // GIB} GiB left")
    return pool.createXML(xml.volume(name, size, backing=backing, backing_format=form), 0)


def _image(connection: Any, pool: Any, image: Image) -> Any:
    for name in (image.template, f"{image.template}.qcow2", f"{image.template}.img") if image.template else ():
        found = _lookup(pool.storageVolLookupByName, name)
        if found is not None:
            return found
    found = _lookup(connection.storageVolLookupByPath, image.path) if image.path else None
    if found is None:
        raise ProviderError(Code.NOT_FOUND, f"there is no volume {image.template or image.path or image.url}")
    return found


def _root_size(machine: Machine) -> int:
    return next((disk.size_gib * GIB for disk in machine.disks if disk.name == "root"), 0)


def _root(connection: Any, pool: Any, machine: Machine) -> str:
    name, size = f"{machine.name}-root.qcow2", _root_size(machine)
    if machine.image is None:
        return str(_volume(pool, name, size).path())
    image = _image(connection, pool, machine.image)
    size = max(size, image.info()[1])
    form = xml.volume_format(image.XMLDesc())
    return str(_volume(pool, name, size, backing=image.path(), form=form).path())


def _addresses(domain: Any) -> tuple[str, ...]:
    """The addresses that the agent or the leases of the networks know."""
    if not domain.isActive():
        return ()
    for source in (
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT,
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE,
    ):
        try:
            found = domain.interfaceAddresses(source) or {}
        except libvirt.libvirtError:
            continue
        ips = tuple(
            address["addr"]
            for name, interface in found.items()
            if name != "lo"
            for address in interface.get("addrs") or ()
            if not address["addr"].startswith("fe80:")
        )
        if ips:
            return ips
    return ()


def _disk_name(machine: str, path: str) -> str:
    return path.rpartition("/")[2].removeprefix(f"{machine}-").removesuffix(".qcow2")


def _disk(connection: Any, domain: Any, disk: xml.DomainDisk) -> DiskInfo:
    volume = _lookup(connection.storageVolLookupByPath, disk.path)
    _, size, actual = volume.info() if volume is not None else (0, 0, 0)
    return DiskInfo(
        id=disk.path or disk.target,
        format=disk.format,
        virtual_bytes=size,
        actual_bytes=actual,
        path=disk.path,
        bootable=disk.target == "vda",
        snapshots=tuple(one.getName() for one in domain.listAllSnapshots()),
        backing_file=xml.backing(volume.XMLDesc()) if volume is not None else "",
    )


def _grow(connection: Any, found: Any, domain: xml.Domain, name: str, size: int) -> None:
    machine = found.name()
    for disk in domain.disks:
        if name in (_disk_name(machine, disk.path), disk.target):
            volume = connection.storageVolLookupByPath(disk.path)
            there = volume.info()[1]
            if size < there:
                raise ProviderError(Code.INVALID, f"disk {name} of {machine} cannot be shrunk to {size // GIB} GiB")
            if size > there and found.isActive():
                found.blockResize(disk.target, size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)
            elif size > there:
                volume.resize(size)
            return
    pool = _pool(connection, "")
    volume = _volume(pool, f"{machine}-{name}.qcow2", size)
    used = {disk.target for disk in domain.disks}
    target = next(letter for letter in (f"vd{chr(code)}" for code in range(97, 123)) if letter not in used)
    device = (
        f"<disk type='file' device='disk'><driver name='qemu' type='qcow2'/>"
        f"<source file='{volume.path()}'/><target dev='{target}' bus='virtio'/></disk>"
    )
    flags = libvirt.VIR_DOMAIN_AFFECT_CONFIG | (libvirt.VIR_DOMAIN_AFFECT_LIVE if found.isActive() else 0)
    found.attachDeviceFlags(device, flags)


def _shut_down(domain: Any, seconds: float) -> dict[str, str]:
    """Ask the guest to shut down; switch it off if it has not after a while.  Runs in a thread."""
    import time

    if domain.isActive():
        domain.shutdown()
    ending = time.monotonic() + seconds
    while domain.isActive() and time.monotonic() < ending:
        time.sleep(0.2)
    if domain.isActive():
        domain.destroy()
    return {}


def _cloned_from(domain: Any) -> str:
    try:
        text = domain.metadata(libvirt.VIR_DOMAIN_METADATA_DESCRIPTION, None)
    except libvirt.libvirtError:
        return ""
    return str(text).removeprefix("clone of ")
