"""Clones of domains of libvirt that are off."""

from __future__ import annotations

from typing import Any

import libvirt

from holdfast.providers.contract import Code, Machine, Made, ProviderError
from holdfast.providers.libvirt import xml
from holdfast.providers.libvirt.domains import domain_type
from holdfast.providers.libvirt.tasks import Tasks, lookup
from holdfast.providers.libvirt.volumes import volume_of


class Clones(Tasks):
    """Machines are cloned; the description of a clone names its source."""

    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made:
        if instant or snapshot:
            what = "instant clones" if instant else "clones of snapshots"
            raise ProviderError(Code.UNSUPPORTED, f"this provider does not support {what}")

        def work(connection: Any) -> Made:
            source = connection.lookupByUUIDString(id)
            there = lookup(connection.lookupByName, target.name)
            if there is not None and _cloned_from(there) != id:
                raise ProviderError(Code.CONFLICT, f"machine {target.name} exists and is no clone of {source.name()}")
            if there is not None:
                return Made(id=there.UUIDString())
            if source.isActive():
                raise ProviderError(Code.CONFLICT, f"machine {source.name()} must be off to be cloned")
            disks = []
            for number, disk in enumerate(xml.read_domain(source.XMLDesc()).disks):
                volume = connection.storageVolLookupByPath(disk.path)
                pool = volume.storagePoolLookupByVolume()
                name = f"{target.name}-{'root' if number == 0 else f'disk{number}'}.qcow2"
                size = volume.info()[1]
                if linked:
                    made = volume_of(pool, name, size, backing=disk.path, form=xml.volume_format(volume.XMLDesc()))
                else:
                    made = lookup(pool.storageVolLookupByName, name)
                    made = made or pool.createXMLFrom(xml.volume(name, size), volume, 0)
                disks.append((made.path(), "qcow2"))
            made = connection.defineXML(
                xml.domain(target, domain_type(connection), disks, description=f"clone of {id}")
            )
            return Made(id=made.UUIDString())

        return await self._do(work)


def _cloned_from(domain: Any) -> str:
    try:
        text = domain.metadata(libvirt.VIR_DOMAIN_METADATA_DESCRIPTION, None)
    except libvirt.libvirtError:
        return ""
    return str(text).removeprefix("clone of ")
