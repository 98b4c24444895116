"""The command line of a QEMU process.  Pure: what a machine is, as arguments.

QEMU is started in the folder of its machine, so that sockets have short names there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.providers.contract import Code, Nic, ProviderError
from holdfast.providers.qemu.records import DiskRecord, MachineRecord

QMP: Final = "qmp.sock"
AGENT: Final = "agent.sock"
LOCK: Final = "lock"
PID: Final = "pid"
SERIAL: Final = "serial.log"
ERRORS: Final = "qemu.log"
SEED: Final = "seed.iso"
RECORD: Final = "machine.json"

OVMF: Final = (
    (Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/OVMF/OVMF_VARS_4M.fd")),
    (Path("/usr/share/OVMF/OVMF_CODE.fd"), Path("/usr/share/OVMF/OVMF_VARS.fd")),
)

MODELS: Final = {"": "virtio-net-pci", "virtio": "virtio-net-pci", "e1000": "e1000", "rtl8139": "rtl8139"}


class Acceleration(msgspec.Struct, frozen=True):
    accel: str
    cpu: str


KVM: Final = Acceleration("kvm", "host")
TCG: Final = Acceleration("tcg", "max")


def node(disk: DiskRecord) -> str:
    """The name of a disk within QEMU."""
    return f"disk-{disk.name}"


def device(disk: DiskRecord) -> str:
    return f"dev-{disk.name}"


def mac(machine: MachineRecord, number: int) -> str:
    """An address that stays the same for a machine."""
    digits = machine.uuid.replace("-", "")
    return f"52:54:{number:02x}:{digits[0:2]}:{digits[2:4]}:{digits[4:6]}"


def _network(machine: MachineRecord, nic: Nic, number: int) -> list[str]:
    model = MODELS.get(nic.model.lower().removesuffix("-net-pci"))
    if model is None:
        raise ProviderError(Code.INVALID, f"network {nic.name}: model {nic.model} is not one of {', '.join(MODELS)}")
    backend = f"user,id=net{number}"
    if nic.bridge:
        if not all(letter.isalnum() or letter in "-_." for letter in nic.bridge):
            raise ProviderError(Code.INVALID, f"network {nic.name}: {nic.bridge!r} is not the name of a bridge")
        backend = f"bridge,id=net{number},br={nic.bridge}"
    address = nic.mac or mac(machine, number)
    return ["-netdev", backend, "-device", f"{model},netdev=net{number},mac={address},id=nic{number}"]


def block(disk: DiskRecord, folder: Path) -> dict[str, Any]:
    """A disk as QEMU opens it."""
    return {
        "driver": "qcow2",
        "node-name": node(disk),
        "discard": "unmap",
        "file": {"driver": "file", "filename": str(folder / disk.file)},
    }


def arguments(
    machine: MachineRecord, folder: Path, acceleration: Acceleration, *, resume: str = "", vnc: bool = True
) -> list[str]:
    """The arguments; `resume` is the memory snapshot from which it goes on."""
    hardware = machine.hardware
    memory = f"size={hardware.memory_mib}M"
    if hardware.max_memory_mib > hardware.memory_mib:
        memory += f",slots=16,maxmem={hardware.max_memory_mib}M"
    line = [
        "-name", f"guest={machine.name.replace(',', ',,')}",
        "-uuid", machine.uuid,
        "-machine", f"pc,accel={acceleration.accel}",
        "-cpu", acceleration.cpu,
        "-smp", f"cpus={hardware.cpus},maxcpus={hardware.max_cpus},sockets={hardware.max_cpus},cores=1,threads=1",
        "-m", memory,
        "-nodefaults", "-no-user-config", "-display", "none", "-daemonize", "-pidfile", PID,
        "-qmp", f"unix:{QMP},server=on,wait=off",
        "-chardev", f"file,id=serial,path={SERIAL},append=on", "-serial", "chardev:serial",
        "-device", "virtio-serial-pci,id=channels",
        "-chardev", f"socket,id=agent,path={AGENT},server=on,wait=off",
        "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0,id=agent-port",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip
    if vnc:
        line += ["-device", "VGA", "-vnc", "127.0.0.1:0,to=9999"]
    for dimm in hardware.dimms:
        line += ["-object", f"memory-backend-ram,id=ram-{dimm.id},size={dimm.mib}M"]
        line += ["-device", f"pc-dimm,id={dimm.id},memdev=ram-{dimm.id}"]
    for cpu in hardware.hot_cpus:
        line += ["-device", ",".join([str(cpu["driver"]), *(f"{key}={value}" for key, value in cpu["props"].items())])]
    for index, disk in enumerate(machine.disks):
        line += ["-blockdev", msgspec.json.encode(block(disk, folder)).decode()]
        boot = ",bootindex=1" if index == 0 and not machine.kernel else ""
        line += ["-device", f"virtio-blk-pci,drive={node(disk)},id={device(disk)}{boot}"]
    if machine.seed:
        seed = {
            "driver": "raw",
            "node-name": "seed",
            "read-only": True,
            "file": {"driver": "file", "filename": str(folder / SEED)},
        }
        line += ["-blockdev", msgspec.json.encode(seed).decode(), "-device", "virtio-blk-pci,drive=seed,id=dev-seed"]
    for number, nic in enumerate(machine.nics or (Nic(name="default"),)):
        line += _network(machine, nic, number)
    if machine.kernel:
        kernel = Path(machine.kernel)
        line += ["-kernel", str(kernel / "vmlinuz"), "-initrd", str(kernel / "initrd")]
        command = kernel / "cmdline"
        if command.is_file():
            line += ["-append", command.read_text().strip()]
    elif machine.firmware.lower() in ("uefi", "efi"):
        code, _ = ovmf()
        line += ["-drive", f"if=pflash,format=raw,readonly=on,file={code}"]
        line += ["-drive", "if=pflash,format=qcow2,file=nvram.qcow2"]
    if resume:
        line += ["-loadvm", resume]
    return line


def ovmf() -> tuple[Path, Path]:
    for code, variables in OVMF:
        if code.is_file() and variables.is_file():
            return code, variables
    raise ProviderError(Code.UNSUPPORTED, "UEFI needs the package ovmf, which is not installed on this host")
