"""What is plugged into a machine: disks and network cards.

Machines, clones and migrations all describe them the same way.  This module
must not know where the network or the disk comes from.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from holdfast.kinds.model import Count, Model, Positive, api
from holdfast.kinds.virtrigaud.references import (
    DeviceName,
    DiskType,
    LocalObjectReference,
    MACAddress,
    ObjectRef,
    OptionalIPv4,
    StorageClassName,
)


class SCSIControllerSpec(Model):
    """The SCSI controller that a disk hangs on; vSphere alone has a choice."""

    controller: Annotated[Count, api("Bus number; the first free one when unset.", le=3)] | None = None
    shared_bus: (
        Annotated[
            Literal["noSharing", "virtualSharing", "physicalSharing"],
            api("Whether machines may share the bus, and across hosts.", default="noSharing"),
        ]
        | None
    ) = None
    controller_type: (
        Annotated[
            Literal["lsilogic", "buslogic", "lsilogic-sas", "pvscsi"],
            api("Controller that is emulated.", default="pvscsi"),
        ]
        | None
    ) = None


class DiskSpec(Model):
    """A disk beside the root disk."""

    name: Annotated[DeviceName, api("Name of the disk, unique in its machine.")]
    size_gib: Annotated[Positive, api("Size in GiB. A disk can grow and never shrinks.", le=65536)] = msgspec.field(
        name="sizeGiB"
    )
    type: Annotated[DiskType, api("How the disk is provisioned.", default="thin")] | None = None
    expand_policy: (
        Annotated[
            Literal["Online", "Offline"],
            api("Whether the disk may grow under a running machine.", default="Offline"),
        ]
        | None
    ) = None
    storage_class: Annotated[StorageClassName, api("Class of storage, where the provider has classes.")] | None = None
    scsi: Annotated[SCSIControllerSpec, api("Controller that the disk hangs on; vSphere only.")] | None = None


class ImportedDiskRef(Model):
    """A root disk that already exists on the provider, brought there by a migration, a clone or by hand."""

    disk_id: Annotated[str, api("The provider's own identifier of the disk.", min_length=1, max_length=253)] = (
        msgspec.field(name="diskID")
    )
    path: Annotated[str, api("Where the disk is stored; derived from diskID when unset.")] | None = None
    format: (
        Annotated[Literal["qcow2", "vmdk", "raw", "vdi", "vhdx"], api("Format of the disk.", default="qcow2")] | None
    ) = None
    source: (
        Annotated[Literal["migration", "clone", "import", "snapshot", "manual"], api("How the disk came here.")] | None
    ) = None
    migration_ref: Annotated[LocalObjectReference, api("The VMMigration that brought the disk.")] | None = None
    size_gib: Annotated[Positive, api("Size that the disk is expected to have, in GiB.")] | None = msgspec.field(
        name="sizeGiB", default=None
    )


class VMNetworkRef(Model):
    """A network card of a machine, and what it is plugged into."""

    name: Annotated[DeviceName, api("Name of the card, unique in its machine.")]
    network_ref: (
        Annotated[ObjectRef, api("The VMNetworkAttachment to join; the card of the image's template when unset.")]
        | None
    ) = None
    ip_address: Annotated[OptionalIPv4, api("Static IPv4 address; DHCP when unset or empty.")] | None = None
    prefix: Annotated[Positive, api("Length of the network prefix, such as 24.", le=32)] | None = None
    gateway: Annotated[OptionalIPv4, api("Default gateway of a static address.")] | None = None
    dns: Annotated[str, api("DNS servers of a static address, separated by commas.")] | None = None
    mac_address: Annotated[MACAddress, api("Hardware address; chosen by the provider when unset.")] | None = None


Networks = Annotated[tuple[VMNetworkRef, ...], api("Network cards, in order.", keys=("name",), max_length=10)]

Disks = Annotated[tuple[DiskSpec, ...], api("Disks beside the root disk.", keys=("name",), max_length=20)]
