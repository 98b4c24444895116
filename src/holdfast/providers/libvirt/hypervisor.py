"""The libvirt provider: domains and volumes of one connection."""

from __future__ import annotations

from typing import Any

from holdfast.providers.contract import (
    Capabilities,
    Code,
    Datastore,
    DiskInfo,
    Host,
    Image,
    Inventory,
    Prepared,
    ProviderError,
    Transfer,
    Transferred,
)
from holdfast.providers.libvirt import xml
from holdfast.providers.libvirt.clones import Clones
from holdfast.providers.libvirt.machines import Machines
from holdfast.providers.libvirt.snapshots import Snapshots
from holdfast.providers.libvirt.volumes import disk_info, disk_name, image_of, pool_named


class Libvirt(Machines, Snapshots, Clones):
    """A `Hypervisor` of one libvirt connection."""

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

    # --- images and disks --------------------------------------------------------------

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        """Images are volumes of a pool; one that is not there is not fetched."""
        if image.url:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not fetch images; put a volume into a pool")

        def work(connection: Any) -> Prepared:
            pool = pool_named(connection, storage_hint)
            volume = image_of(connection, pool, image)
            return Prepared(id=volume.name(), path=volume.path())

        return await self._do(work)

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        def work(connection: Any) -> DiskInfo:
            found = connection.lookupByUUIDString(id)
            for one in xml.read_domain(found.XMLDesc()).disks:
                if disk in ("", one.path, one.target, disk_name(found.name(), one.path)):
                    return disk_info(connection, found, one)
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
