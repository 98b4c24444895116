"""The XML of domains, volumes and snapshots: written and read.  Pure."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

import msgspec

from holdfast.providers.contract import Machine, Nic


class DomainDisk(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    target: str
    format: str = ""


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """What the XML of a domain says."""

    cpus: int = 0
    max_cpus: int = 0
    memory_mib: int = 0
    max_memory_mib: int = 0
    disks: tuple[DomainDisk, ...] = ()
    console_url: str = ""


_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "KiB": 1, "k": 1, "MiB": 1024, "M": 1024, "GiB": 1 << 20, "G": 1 << 20}


def _mib(element: Tree.Element | None) -> int:
    if element is None:
        return 0
    return int(float(element.text or 0) * _KIB.get(element.get("unit", "KiB"), 1)) // 1024


def read_domain(text: str) -> Domain:
    root = Tree.fromstring(text)
    vcpu = root.find("vcpu")
    most = int(vcpu.text or 0) if vcpu is not None else 0
    disks = []
    for disk in root.findall("devices/disk[@device='disk']"):
        source, target, driver = disk.find("source"), disk.find("target"), disk.find("driver")
        path = "" if source is None else source.get("file") or source.get("dev") or source.get("volume") or ""
        name = "" if target is None else target.get("dev", "")
        disks.append(DomainDisk(path=path, target=name, format="" if driver is None else driver.get("type", "") or ""))
    graphics = root.find("devices/graphics[@type='vnc']")
    port = graphics.get("port", "-1") if graphics is not None else "-1"
    listen = (graphics.get("listen") if graphics is not None else "") or "127.0.0.1"
    return Domain(
        cpus=int(vcpu.get("current", most)) if vcpu is not None else 0,
        max_cpus=most,
        memory_mib=_mib(root.find("currentMemory")) or _mib(root.find("memory")),
        max_memory_mib=_mib(root.find("memory")),
        disks=tuple(disks),
        console_url=f"vnc://{listen}:{port}" if port not in ("-1", "") else "",
    )


def _child(parent: Tree.Element, tag: str, text: str = "", **attributes: str) -> Tree.Element:
    element = Tree.SubElement(parent, tag, attributes)
    if text:
        element.text = text
    return element


def domain(machine: Machine, type: str, disks: list[tuple[str, str]], *, description: str = "") -> str:
    """A domain with disks by path and format."""
    root = Tree.Element("domain", type=type)
    _child(root, "name", machine.name)
    if description:
        _child(root, "description", description)
    growth = 4
    most = machine.memory_mib * (growth if machine.memory_hot_add else 1)
    _child(root, "memory", str(most), unit="MiB")
    _child(root, "currentMemory", str(machine.memory_mib), unit="MiB")
    cpus = machine.cpus * (growth if machine.cpu_hot_add else 1)
    _child(root, "vcpu", str(cpus), current=str(machine.cpus))
    os = _child(root, "os", **({"firmware": "efi"} if machine.firmware.lower() in ("uefi", "efi") else {}))
    _child(os, "type", "hvm")
    _child(os, "boot", dev="hd")
    features = _child(root, "features")
    _child(features, "acpi")
    devices = _child(root, "devices")
    for number, (path, form) in enumerate(disks):
        devices.append(_disk(path, f"vd{chr(ord('a') + number)}", form))
    for nic in machine.nics or (Nic(name="default", network="default"),):
        _interface(devices, nic)
    channel = _child(devices, "channel", type="unix")
    _child(channel, "target", type="virtio", name="org.qemu.guest_agent.0")
    _child(devices, "console", type="pty")
    _child(devices, "graphics", type="vnc", port="-1", autoport="yes", listen="127.0.0.1")
    return Tree.tostring(root, encoding="unicode")


def disk(path: str, target: str) -> str:
    """A disk that is attached to a domain."""
    return Tree.tostring(_disk(path, target, "qcow2"), encoding="unicode")


def _disk(path: str, target: str, form: str) -> Tree.Element:
    root = Tree.Element("disk", type="file", device="disk")
    _child(root, "driver", name="qemu", type=form)
    _child(root, "source", file=path)
    _child(root, "target", dev=target, bus="virtio")
    return root


def _interface(devices: Tree.Element, nic: Nic) -> None:
    bridged = bool(nic.bridge)
    interface = _child(devices, "interface", type="bridge" if bridged else "network")
    source = {"bridge": nic.bridge} if bridged else {"network": nic.network or "default"}
    _child(interface, "source", **source)
    if nic.mac:
        _child(interface, "mac", address=nic.mac)
    if nic.vlan:
        _child(_child(interface, "vlan"), "tag", id=str(nic.vlan))
    _child(interface, "model", type=nic.model or "virtio")


def volume(name: str, size: int, *, format: str = "qcow2", backing: str = "", backing_format: str = "qcow2") -> str:
    root = Tree.Element("volume")
    _child(root, "name", name)
    _child(root, "capacity", str(size), unit="bytes")
    _child(root, "allocation", "0", unit="bytes")
    target = _child(root, "target")
    _child(target, "format", type=format)
    if backing:
        store = _child(root, "backingStore")
        _child(store, "path", backing)
        _child(store, "format", type=backing_format)
    return Tree.tostring(root, encoding="unicode")


def snapshot(name: str, description: str, *, memory: bool) -> str:
    root = Tree.Element("domainsnapshot")
    _child(root, "name", name)
    if description:
        _child(root, "description", description)
    if not memory:
        _child(root, "memory", snapshot="no")
    return Tree.tostring(root, encoding="unicode")


def volume_format(text: str) -> str:
    found = Tree.fromstring(text).find("target/format")
    return found.get("type", "raw") if found is not None else "raw"


def backing(text: str) -> str:
    return Tree.fromstring(text).findtext("backingStore/path") or ""
