"""The machine that a VirtualMachine asks for, in the words of the contract with providers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.kinds.virtrigaud.classes import VMClassSpec
from holdfast.kinds.virtrigaud.devices import DiskSpec, VMNetworkRef
from holdfast.kinds.virtrigaud.images import VMImageSpec
from holdfast.kinds.virtrigaud.machines import Placement as Placed
from holdfast.kinds.virtrigaud.networks import VMNetworkAttachment
from holdfast.kinds.virtrigaud.providers import Provider, ProviderType
from holdfast.meta.quantities import Quantity
from holdfast.meta.sizes import MIB, whole_gib
from holdfast.operators.virtualmachine.machines.guest_data import meta_data, user_data
from holdfast.operators.virtualmachine.machines.observe import World
from holdfast.operators.virtualmachine.placement.demand import chosen
from holdfast.providers.contract import Disk, Image, Machine, Nic, Placement

ROOT: Final = "root"
"""The name of the disk that a machine starts from."""

_CHOSEN: Final = ("cluster", "host", "datastore", "folder", "resource_pool")
"""The places of a machine that a policy chooses."""


@dataclass(frozen=True, slots=True)
class Size:
    """Processors and memory."""

    cpus: int
    memory_mib: int

    def __str__(self) -> str:
        return f"{self.cpus} CPUs, {self.memory_mib} MiB"


def size(world: World) -> Size:
    """The size that the class gives, with what the machine overrides."""
    assert world.vm_class is not None, "the class was found"
    spec, own = world.vm_class[1].spec, world.machine.spec.resources
    return Size(
        cpus=own.cpu if own and own.cpu else spec.cpu,
        memory_mib=own.memory_mib if own and own.memory_mib else mib(spec.memory),
    )


def mib(quantity: str | int | float) -> int:
    return max(Quantity.parse(quantity).to_int() // MIB, 1)


def gib(quantity: str | int | float) -> int:
    """A size in whole GiB, rounded up."""
    return whole_gib(Quantity.parse(quantity).to_int())


def machine(world: World) -> Machine:
    """The machine to create; raises `guest_data.MissingKey`."""
    assert world.vm_class is not None, "what it refers to was found"
    assert world.provider is not None, "what it refers to was found"
    vm_class, spec, wanted = world.vm_class[1].spec, world.machine.spec, size(world)
    performance, security = vm_class.performance_profile, vm_class.security_profile
    return Machine(
        name=world.name_on_provider,
        cpus=wanted.cpus,
        memory_mib=wanted.memory_mib,
        firmware="UEFI" if vm_class.firmware == "EFI" else vm_class.firmware or "BIOS",
        image=_image(world),
        imported_disk=spec.imported_disk.disk_id if spec.imported_disk else "",
        disks=(*_root(vm_class), *(disk(each) for each in spec.disks if each.name != ROOT)),
        nics=tuple(_nics(world)),
        user_data=user_data(world),
        meta_data=meta_data(world),
        placement=_placement(_asked(world), world.provider[1]),
        tags=spec.tags,
        cpu_hot_add=bool(performance and performance.cpu_hot_add_enabled),
        memory_hot_add=bool(performance and performance.memory_hot_add_enabled),
        secure_boot=bool(security and security.secure_boot),
        tpm=bool(security and security.tpm_enabled),
        extra=dict(vm_class.extra_config),
    )


def disk(spec: DiskSpec) -> Disk:
    return Disk(name=spec.name, size_gib=spec.size_gib, type=spec.type.value if spec.type else "")


def _root(vm_class: VMClassSpec) -> Iterator[Disk]:
    """The size and the type of the first disk, where the class gives them."""
    defaults = vm_class.disk_defaults
    if defaults is None or (defaults.size is None and defaults.size_gib is None):
        return
    size = gib(defaults.size) if defaults.size_gib is None and defaults.size is not None else defaults.size_gib
    yield Disk(name=ROOT, size_gib=size or 0, type=defaults.type.value if defaults.type else "")


def _asked(world: World) -> Placed | None:
    """Where the policy of the machine chose, or else where its spec says."""
    found = chosen(world.machine)
    if world.machine.spec.placement_ref is None or found is None:
        return world.machine.spec.placement
    places = {name: getattr(found, name) for name in _CHOSEN}
    return msgspec.structs.replace(world.machine.spec.placement or Placed(), **places)


def _placement(own: Placed | None, provider: Provider) -> Placement:
    """Where the machine is placed: as it says, and where it says nothing, as the provider does."""
    own, other = own or Placed(), provider.spec.defaults
    return Placement(
        datastore=own.datastore or (other and other.datastore) or "",
        storage_pod=own.storage_pod or (other and other.storage_pod) or "",
        cluster=own.cluster or (other and other.cluster) or "",
        folder=own.folder or (other and other.folder) or "",
        host=own.host or "",
        resource_pool=own.resource_pool or (other and other.resource_pool) or "",
    )


# --- networks


def _nics(world: World) -> Iterator[Nic]:
    assert world.provider is not None, "what it refers to was found"
    for card in world.machine.spec.networks:
        yield nic(card, world.networks.get(card.name), world.provider[1])


def nic(card: VMNetworkRef, joined: VMNetworkAttachment | None, provider: Provider) -> Nic:
    """A card, with what its network is on the kind of the provider."""
    given = _given(joined, provider)
    allocation = joined.spec.ip_allocation if joined else None
    static = allocation.static_config if allocation else None
    address, _, prefix = (static.address if static else "").partition("/")
    chosen = card.ip_address or address
    dns = allocation.dns_config if allocation else None
    return Nic(
        name=card.name,
        mac=card.mac_address or "",
        ip_policy="Static" if chosen else (allocation.type.value if allocation and allocation.type else "DHCP"),
        static_ip=chosen,
        prefix=card.prefix or (int(prefix) if prefix and not card.ip_address else 0),
        gateway=card.gateway or (static.gateway if static and static.gateway else ""),
        dns=card.dns or ",".join(dns.servers if dns else ()),
        **given,
    )


def _given(joined: VMNetworkAttachment | None, provider: Provider) -> dict[str, Any]:
    default = provider.spec.defaults.network if provider.spec.defaults and provider.spec.defaults.network else ""
    if joined is None:
        return {"network": default}
    network = joined.spec.network
    match provider.spec.type:
        case ProviderType.VSPHERE if network.vsphere:
            vlan = network.vsphere.vlan.vlan_id if network.vsphere.vlan else None
            return {
                "portgroup": network.vsphere.portgroup or "",
                "vlan": vlan or 0,
                "model": network.vsphere.adapter_type or "",
            }
        case ProviderType.PROXMOX if network.proxmox:
            return {
                "bridge": network.proxmox.bridge or "",
                "vlan": network.proxmox.vlan_tag or 0,
                "model": network.proxmox.model or "",
            }
        case _ if network.libvirt:
            return {
                "network": network.libvirt.network_name or "",
                "bridge": network.libvirt.bridge.name if network.libvirt.bridge else "",
                "model": network.libvirt.model or "",
            }
        case _ if network.vsphere:
            return {"portgroup": network.vsphere.portgroup or "", "network": default}
        case _:
            return {"network": default}


# --- images


def _image(world: World) -> Image | None:
    """The prepared image where the provider has one, or else the source."""
    if world.image is None or world.provider is None:
        return None
    source = source_of(world.image[1].spec, world.provider[1].spec.type)
    prepared = world.image_on_provider
    if prepared is not None and prepared.available and (prepared.id or prepared.path):
        format = source.format if source else ""
        return Image(template=prepared.id or "", path=prepared.path or "", format=format)
    return source


def source_of(spec: VMImageSpec, type: ProviderType) -> Image | None:
    """Where an image comes from on a kind of provider, and how it is kept; None where it names no source for it."""
    found = _source(spec, type)
    if found is None or spec.prepare is None:
        return found
    wanted, storage = spec.prepare.optimization, spec.prepare.storage
    compress = (wanted and wanted.enable_compression) or (storage and storage.compression)
    return msgspec.structs.replace(found, compress=bool(compress), compact=bool(wanted and wanted.remove_unused_space))


def _source(spec: VMImageSpec, type: ProviderType) -> Image | None:
    source = spec.source
    own: Image | None = None
    match type:
        case ProviderType.VSPHERE:
            own = _vsphere(spec)
        case ProviderType.PROXMOX:
            own = _proxmox(spec)
        case ProviderType.LIBVIRT | ProviderType.QEMU | ProviderType.FIRECRACKER:
            own = _libvirt(spec)
        case ProviderType.SIMULATED | ProviderType.MOCK:
            own = _libvirt(spec) or _vsphere(spec) or _proxmox(spec)
    if own is not None:
        return own
    if source.http is not None:
        return Image(
            url=source.http.url, checksum=source.http.checksum or "", checksum_type=source.http.checksum_type or ""
        )
    if source.registry is not None:
        format = source.registry.format.value if source.registry.format else ""
        return Image(url=f"docker://{source.registry.image}", format=format)
    return None


def _vsphere(spec: VMImageSpec) -> Image | None:
    given = spec.source.vsphere
    if given is None:
        return None
    library = given.content_library
    return Image(
        template=given.template_name or (f"{library.library}/{library.item}" if library else ""),
        url="" if given.template_name or library else given.ova_url or "",
        checksum=given.checksum or "",
        checksum_type=given.checksum_type or "",
    )


def _proxmox(spec: VMImageSpec) -> Image | None:
    given = spec.source.proxmox
    if given is None:
        return None
    return Image(template=given.template_name or str(given.template_id or ""), format=given.format or "")


def _libvirt(spec: VMImageSpec) -> Image | None:
    given = spec.source.libvirt
    if given is None:
        return None
    return Image(
        path="" if given.url else given.path or "",
        url=given.url or "",
        format=given.format.value if given.format else "",
        checksum=given.checksum or "",
        checksum_type=given.checksum_type or "",
    )


def needs_import(source: Image) -> bool:
    """Whether an image must be brought to a provider; templates and paths are there already."""
    return bool(source.url)
