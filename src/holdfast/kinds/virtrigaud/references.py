"""The words that every kind of this group uses: its name, and how it names other objects.

This module must not know any kind.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from holdfast.kinds.model import Group, Model, api

GROUP: Final = Group("infra.virtrigaud.io", "v1beta1")

_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_IPV4_OCTET: Final = r"(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
_IPV4: Final = rf"({_IPV4_OCTET}\.){{3}}{_IPV4_OCTET}"

ObjectName = Annotated[str, api(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""The name of any object.  Dots are legal in Kubernetes names, so a reference must be able to hold them."""

MachineName = Annotated[str, api(max_length=253, pattern=_LABEL)]
"""The name of a machine yet to be made: no dots, because guests take it as their host name."""

Namespace = Annotated[str, api(max_length=63, pattern=_LABEL)]

DeviceName = Annotated[str, api(max_length=63, pattern=_LABEL)]
"""The name of a disk or network card within its machine."""

Inventory = Annotated[str, api(max_length=255)]
"""The name of something in a hypervisor's own inventory: a datastore, a folder, a cluster."""

StorageClassName = Annotated[str, api(max_length=253)]

IPv4 = Annotated[str, api(pattern=rf"^{_IPV4}$")]

OptionalIPv4 = Annotated[str, api(pattern=rf"^$|^{_IPV4}$")]
"""An IPv4 address; manifests in use also write ``""`` to say "none, ask DHCP"."""

CIDR = Annotated[str, api(pattern=rf"^{_IPV4}/([0-9]|[1-2][0-9]|3[0-2])$")]

MACAddress = Annotated[str, api(pattern=r"^([0-9A-Fa-f]{2}[:-]){5}([0-9A-Fa-f]{2})$")]

ContainerImage = Annotated[
    str,
    api(pattern=r"^([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-zA-Z0-9._/-]+(:[a-zA-Z0-9._-]+)?(@[a-zA-Z0-9]+:[a-fA-F0-9]{64})?$"),
]
"""A container image by tag, by digest or by both; its registry may name a port."""

Tags = Annotated[dict[str, str], api(max_length=50)]

Message = Annotated[str, api("The state in a sentence.")]

Environment = Literal["dev", "staging", "prod", "test", "qa", "uat"]


class DiskType(StrEnum):
    """How a disk is provisioned, or what it is stored on."""

    THIN = "thin"
    THICK = "thick"
    EAGER_ZEROED_THICK = "eagerzeroedthick"
    SSD = "ssd"
    HDD = "hdd"
    NVME = "nvme"


class LocalObjectReference(Model):
    """An object in the same namespace, by name."""

    name: Annotated[ObjectName, api("Name of the object.")]


class ObjectRef(Model):
    """An object by name, in this or another namespace."""

    name: Annotated[ObjectName, api("Name of the object.")]
    namespace: Annotated[Namespace, api("Namespace of the object; its referrer's when unset.")] | None = None
