"""Volumes of libvirt: pools, images, and the disks of domains.  Runs in threads.

Volumes that the provider makes have the name of their machine before them, and only those are deleted with it.
"""

from __future__ import annotations

from typing import Any

import libvirt

from holdfast.meta.sizes import GIB, readable
from holdfast.providers.contract import Code, DiskInfo, Image, Machine, ProviderError
from holdfast.providers.libvirt import xml
from holdfast.providers.libvirt.tasks import lookup


def pool_named(connection: Any, name: str) -> Any:
    """A storage pool by its name; without one, `default` or the active pool with the most space left."""
    if name:
        found = lookup(connection.storagePoolLookupByName, name)
        if found is None:
            raise ProviderError(Code.INVALID, f"storage pool {name} does not exist")
        return found
    pools = [pool for pool in connection.listAllStoragePools() if pool.isActive()]
    if not pools:
        raise ProviderError(Code.INVALID, "there is no active storage pool")
    return max(pools, key=lambda pool: (pool.name() == "default", pool.info()[3]))


def volume_of(pool: Any, name: str, size: int, *, backing: str = "", form: str = "qcow2") -> Any:
    """A volume by its name, made if it does not exist."""
    there = lookup(pool.storageVolLookupByName, name)
    if there is not None:
        return there
    if size > pool.info()[3]:
        raise ProviderError(Code.QUOTA, f"storage pool {pool.name()} has {readable(pool.info()[3])} left")
    return pool.createXML(xml.volume(name, size, backing=backing, backing_format=form), 0)


def image_of(connection: Any, pool: Any, image: Image) -> Any:
    """The volume of an image, by its name in the pool, for which the suffix may be left out, or by its path."""
    name = image.template or ("" if "/" in image.path else image.path)
    for each in (name, f"{name}.qcow2", f"{name}.img") if name else ():
        found = lookup(pool.storageVolLookupByName, each)
        if found is not None:
            return found
    found = lookup(connection.storageVolLookupByPath, image.path) if "/" in image.path else None
    if found is None:
        where = f" in storage pool {pool.name()}" if name else ""
        raise ProviderError(Code.NOT_FOUND, f"there is no volume {name or image.path or image.url}{where}")
    return found


def root_size(machine: Machine) -> int:
    return next((disk.size_gib * GIB for disk in machine.disks if disk.name == "root"), 0)


def root_of(connection: Any, pool: Any, machine: Machine) -> str:
    """The path of the disk that a machine starts from: empty, or on top of the image."""
    name, size = f"{machine.name}-root.qcow2", root_size(machine)
    if machine.image is None:
        return str(volume_of(pool, name, size).path())
    image = image_of(connection, pool, machine.image)
    size = max(size, image.info()[1])
    form = xml.volume_format(image.XMLDesc())
    return str(volume_of(pool, name, size, backing=image.path(), form=form).path())


def disk_name(machine: str, path: str) -> str:
    return path.rpartition("/")[2].removeprefix(f"{machine}-").removesuffix(".qcow2")


def disk_info(connection: Any, domain: Any, disk: xml.DomainDisk) -> DiskInfo:
    volume = lookup(connection.storageVolLookupByPath, disk.path)
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


def grow(connection: Any, found: Any, domain: xml.Domain, name: str, size: int) -> None:
    """Give a disk of a domain this size; a disk that the domain does not have is added."""
    machine = found.name()
    for disk in domain.disks:
        if name in (disk_name(machine, disk.path), disk.target):
            volume = connection.storageVolLookupByPath(disk.path)
            there = volume.info()[1]
            if size < there:
                raise ProviderError(Code.INVALID, f"disk {name} of {machine} cannot be shrunk to {readable(size)}")
            if size > there and found.isActive():
                found.blockResize(disk.target, size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)
            elif size > there:
                volume.resize(size)
            return
    pool = pool_named(connection, "")
    volume = volume_of(pool, f"{machine}-{name}.qcow2", size)
    used = {disk.target for disk in domain.disks}
    target = next(letter for letter in (f"vd{chr(code)}" for code in range(97, 123)) if letter not in used)
    flags = libvirt.VIR_DOMAIN_AFFECT_CONFIG | (libvirt.VIR_DOMAIN_AFFECT_LIVE if found.isActive() else 0)
    found.attachDeviceFlags(xml.disk(volume.path(), target), flags)
