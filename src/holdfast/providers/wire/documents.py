"""The JSON in the `*_json` fields: what is written, and what is understood.

Keys are written with capitals, as VirtRigaud writes them; they are read in any case, so camelCase is understood too.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from holdfast.providers.contract import Change, Code, Disk, Image, Machine, Nic, Placement, ProviderError

T = TypeVar("T")

FREE = ("extraconfig",)
"""Maps whose keys are the user's."""


def _key(name: str) -> str:
    return name.replace("_", "")


class _Document(msgspec.Struct, kw_only=True, rename=_key):
    """JSON as it is read, after its keys were written small."""


class _DiskDefaults(_Document):
    type: str = ""
    size_gib: int = 0


class _Performance(_Document):
    cpu_hot_add_enabled: bool = False
    memory_hot_add_enabled: bool = False


class _Security(_Document):
    secure_boot: bool = False
    tpm_enabled: bool = False


class _Class(_Document):
    cpu: int = 0
    memory_mib: int = 0
    firmware: str = ""
    disk_defaults: _DiskDefaults | None = None
    extra_config: dict[str, str] = {}
    performance_profile: _Performance | None = None
    security_profile: _Security | None = None


class _Image(_Document):
    template_name: str = ""
    path: str = ""
    url: str = ""
    format: str = ""
    checksum: str = ""
    checksum_type: str = ""
    compress: bool = False
    compact: bool = False


class _Network(_Document):
    name: str = ""
    network_name: str = ""
    bridge: str = ""
    portgroup: str = ""
    vlan: int = 0
    model: str = ""
    mac_address: str = ""
    ip_policy: str = ""
    static_ip: str = ""
    prefix: int = 0
    gateway: str = ""
    dns: str = ""


class _Disk(_Document):
    size_gib: int = 0
    type: str = ""
    name: str = ""


class _Placement(_Document):
    datastore: str = ""
    storage_pod: str = ""
    cluster: str = ""
    folder: str = ""
    host: str = ""
    resource_pool: str = ""


class _Desired(_Document):
    """What a machine is to become: the class and disks of a creation, or the numbers alone."""

    cpu: int = 0
    memory_mib: int = 0
    # `class` is a word of Python; its key is set below.
    wanted: _Class | None = msgspec.field(default=None, name="class")
    disks: list[_Disk] = []


class _Customize(_Document):
    hostname: str = ""


# --- reading ---------------------------------------------------------------------------


def _small(value: Any) -> Any:
    """JSON with its keys written small, and without what is null."""
    if isinstance(value, dict):
        return {
            key.lower(): inner if key.lower() in FREE else _small(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_small(inner) for inner in value]
    return value


def _read(field: str, text: str, type: type[T], empty: str = "{}") -> T:
    try:
        value = msgspec.json.decode(text or empty)
        return msgspec.convert(_small(value) if value is not None else msgspec.json.decode(empty), type)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ProviderError(Code.INVALID, f"{field} cannot be read: {error}") from None


def read_image(text: str, field: str = "image_json") -> Image | None:
    read = _read(field, text, _Image)
    image = Image(
        template=read.template_name,
        path=read.path,
        url=read.url,
        format=read.format,
        checksum=read.checksum,
        checksum_type=read.checksum_type,
        compress=read.compress,
        compact=read.compact,
    )
    return None if image == Image() else image


def _nics(text: str) -> tuple[Nic, ...]:
    return tuple(
        Nic(
            name=one.name or f"net{number}",
            network=one.network_name,
            bridge=one.bridge,
            portgroup=one.portgroup,
            vlan=one.vlan,
            model=one.model,
            mac=one.mac_address,
            ip_policy=one.ip_policy,
            static_ip=one.static_ip,
            prefix=one.prefix,
            gateway=one.gateway,
            dns=one.dns,
        )
        for number, one in enumerate(_read("networks_json", text, list[_Network], "[]"))
    )


def _disks(found: list[_Disk]) -> tuple[Disk, ...]:
    return tuple(
        Disk(name=one.name or f"disk{number}", size_gib=one.size_gib, type=one.type) for number, one in enumerate(found)
    )


def read_machine(
    *,
    name: str,
    class_json: str = "",
    image_json: str = "",
    networks_json: str = "",
    disks_json: str = "",
    placement_json: str = "",
    customize_json: str = "",
    user_data: bytes = b"",
    meta_data: bytes = b"",
    tags: tuple[str, ...] = (),
    imported_disk: str = "",
) -> Machine:
    """A machine from the fields of a request.  The defaults of a class for disks are those of the first one."""
    wanted = _read("class_json", class_json, _Class)
    placed = _read("placement_json", placement_json, _Placement)
    disks = _disks(_read("disks_json", disks_json, list[_Disk], "[]"))
    defaults = wanted.disk_defaults
    if defaults and defaults.size_gib and not any(disk.name == "root" for disk in disks):
        disks = (Disk(name="root", size_gib=defaults.size_gib, type=defaults.type), *disks)
    hostname = _read("customize_json", customize_json, _Customize).hostname
    performance = wanted.performance_profile or _Performance()
    security = wanted.security_profile or _Security()
    return Machine(
        name=name,
        cpus=wanted.cpu or 1,
        memory_mib=wanted.memory_mib or 512,
        firmware=wanted.firmware,
        image=None if imported_disk else read_image(image_json),
        imported_disk=imported_disk,
        disks=disks,
        nics=_nics(networks_json),
        user_data=user_data,
        meta_data=meta_data,
        placement=Placement(
            datastore=placed.datastore,
            storage_pod=placed.storage_pod,
            cluster=placed.cluster,
            folder=placed.folder,
            host=placed.host,
            resource_pool=placed.resource_pool,
        ),
        tags=tags,
        cpu_hot_add=performance.cpu_hot_add_enabled,
        memory_hot_add=performance.memory_hot_add_enabled,
        secure_boot=security.secure_boot,
        tpm=security.tpm_enabled,
        extra={**wanted.extra_config, **({"hostname": hostname} if hostname else {})},
    )


def read_change(text: str, *, offline: bool) -> Change:
    read = _read("desired_json", text, _Desired)
    wanted = read.wanted or _Class()
    return Change(
        cpus=wanted.cpu or read.cpu or None,
        memory_mib=wanted.memory_mib or read.memory_mib or None,
        disks=_disks(read.disks),
        offline=offline,
    )


def read_raw(text: str) -> dict[str, str]:
    """The details that a provider reports, as words."""
    try:
        value = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    if not isinstance(value, dict):
        return {}
    return {key: one if isinstance(one, str) else msgspec.json.encode(one).decode() for key, one in value.items()}


# --- writing ---------------------------------------------------------------------------


def _write(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def write_class(machine: Machine) -> str:
    root = next((disk for disk in machine.disks if disk.name == "root"), None)
    return _write(
        {
            "CPU": machine.cpus,
            "MemoryMiB": machine.memory_mib,
            "Firmware": machine.firmware,
            "DiskDefaults": {"Type": root.type, "SizeGiB": root.size_gib} if root else None,
            "GuestToolsPolicy": "",
            "ExtraConfig": {key: value for key, value in machine.extra.items() if key != "hostname"},
            "PerformanceProfile": {
                "CPUHotAddEnabled": machine.cpu_hot_add,
                "MemoryHotAddEnabled": machine.memory_hot_add,
            },
            "SecurityProfile": {"SecureBoot": machine.secure_boot, "TPMEnabled": machine.tpm},
        }
    )


def write_image(image: Image) -> str:
    return _write(
        {
            "TemplateName": image.template,
            "Path": image.path,
            "URL": image.url,
            "Format": image.format,
            "Checksum": image.checksum,
            "ChecksumType": image.checksum_type,
            **({"Compress": True} if image.compress else {}),
            **({"Compact": True} if image.compact else {}),
        }
    )


def write_nics(nics: tuple[Nic, ...]) -> str:
    return _write(
        [
            {
                "Name": nic.name,
                "Portgroup": nic.portgroup,
                "NetworkName": nic.network,
                "Bridge": nic.bridge,
                "VLAN": nic.vlan,
                "Model": nic.model,
                "MacAddress": nic.mac,
                "IPPolicy": nic.ip_policy,
                "StaticIP": nic.static_ip,
                "Prefix": nic.prefix,
                "Gateway": nic.gateway,
                "DNS": nic.dns,
            }
            for nic in nics
        ]
    )


def _disk_documents(disks: tuple[Disk, ...]) -> list[dict[str, Any]]:
    return [{"SizeGiB": disk.size_gib, "Type": disk.type, "Name": disk.name} for disk in disks]


def write_disks(disks: tuple[Disk, ...]) -> str:
    """The disks besides the first, whose size is in the class."""
    return _write(_disk_documents(tuple(disk for disk in disks if disk.name != "root")))


def write_placement(placement: Placement) -> str:
    return _write(
        {
            "Datastore": placement.datastore,
            "StoragePod": placement.storage_pod,
            "Cluster": placement.cluster,
            "Folder": placement.folder,
            "Host": placement.host,
            "ResourcePool": placement.resource_pool,
        }
    )


def write_customization(machine: Machine) -> str:
    hostname = machine.extra.get("hostname", "")
    return _write({"Hostname": hostname}) if hostname else ""


def write_change(change: Change) -> str:
    return _write(
        {
            "Class": {"CPU": change.cpus or 0, "MemoryMiB": change.memory_mib or 0},
            "Disks": _disk_documents(change.disks),
        }
    )


def write_raw(raw: dict[str, str]) -> str:
    return _write(raw)
