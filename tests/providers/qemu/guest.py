"""A tiny guest: the distribution's cloud kernel, busybox, and an init of our own in an initramfs.

It mounts the disk `/dev/vda` (formatted at first), gets its address by DHCP, shuts down at the power button,
and answers a few commands of the guest agent, plus `test-write`, `test-read` and `test-seed`.  A guest that counts
adds one to a number in a file on the disk every second, and writes it to its console with a word that it made up at
its boot and has in memory alone.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

ROOTS = (Path("/"), Path("/var/cache/holdfast/kernel"))
"""Where a kernel is looked for: installed, or unpacked without its dependencies."""

MODULES = (
    "virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk", "failover",
    "net_failover", "virtio_net", "virtio_console", "button", "evdev", "cdrom", "isofs",
)  # fmt: skip
"""In the order in which they are loaded."""

INIT = r"""#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules); do insmod /lib/$module.ko; done
echo "guest: booting"
mkdir -p /data /seed
if [ -b /dev/vda ]; then
    mount -t ext2 /dev/vda /data 2>/dev/null || { mke2fs -L data /dev/vda >/dev/null; mount -t ext2 /dev/vda /data; }
fi
for disk in /dev/vd?; do mount -t iso9660 -o ro $disk /seed 2>/dev/null && break; done
ip link set lo up
if [ -d /sys/class/net/eth0 ]; then
    ip link set eth0 up
    udhcpc -i eth0 -q -n -t 5 -T 1 -s /udhcpc >/dev/null 2>&1
fi
(
    # A press of the power button is an event of type 1 and code 116 of an input device.
    for input in /dev/input/event*; do
        (
            while dd if=$input bs=24 count=1 2>/dev/null | hexdump -e '24/1 "%02x"' | grep -q '^.\{32\}0100740001'; do
                sync; umount /data; poweroff -f
            done
        ) &
    done
) &
echo "guest: ready"
if grep -q counting /proc/cmdline; then
    word=$(cat /proc/sys/kernel/random/uuid)
    while true; do
        count=$(( $(cat /data/count 2>/dev/null || echo 0) + 1 ))
        echo $count > /data/count; sync
        echo "guest: count $count word $word"
        sleep 1
    done &
fi
exec /agent
"""

UDHCPC = """#!/bin/sh
if [ "$1" = bound ]; then
    /bin/ip addr add $ip/24 dev eth0
    echo $ip > /address
fi
"""

AGENT = r"""#!/bin/sh
export PATH=/bin
for port in /sys/class/virtio-ports/*; do
    [ "$(cat $port/name)" = org.qemu.guest_agent.0 ] && device=/dev/${port##*/}
done
exec 3<>$device
while true; do
    IFS= read -r line <&3 || { usleep 100000; continue; }
    value=$(echo "$line" | sed -n 's/.*"value": *"\{0,1\}\([^"}]*\)"\{0,1\}.*/\1/p')
    case "$line" in
        *guest-sync*) answer=$(echo "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p') ;;
        *guest-ping*|*guest-fsfreeze-thaw*) answer='{}' ;;
        *guest-fsfreeze-freeze*) sync; answer=1 ;;
        *guest-network-get-interfaces*)
            address=$(cat /address 2>/dev/null)
            answer='[{"name":"lo","ip-addresses":[{"ip-address":"127.0.0.1","ip-address-type":"ipv4","prefix":8}]}'
            [ -n "$address" ] && answer="$answer"',{"name":"eth0","ip-addresses":[{"ip-address":"'$address'",
"ip-address-type":"ipv4","prefix":24}]}'
            answer="$answer]" ;;
        *guest-exec-status*) answer='{"exited":true,"exitcode":'$code',"out-data":"'$(echo "$out" | base64)'"}' ;;
        *guest-exec*)
            out=$($(echo "$line" | sed -n 's/.*"path": *"\([^"]*\)".*/\1/p') 2>&1); code=$?
            answer='{"pid":1}' ;;
        *test-write*) echo "$value" > /data/file; echo "$value" > /memory; sync; answer='{}' ;;
        *test-read*) answer='"'$(cat /data/file 2>/dev/null)'"' ;;
        *test-memory*) answer='"'$(cat /memory 2>/dev/null)'"' ;;
        *test-seed*) answer='"'$(head -n 1 /seed/user-data)'"' ;;
        *test-cpus*) answer=$(ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l) ;;
        *test-size*) answer=$(cat /sys/block/vda/size) ;;
        *) answer='{}' ;;
    esac
    echo "{\"return\": $answer}" | tr -d '\n' >&3
    echo >&3
done
"""


def kernel() -> tuple[Path, Path] | None:
    """The newest cloud kernel and its modules."""
    for root in ROOTS:
        for image in sorted(root.glob("boot/vmlinuz-*-cloud-amd64"), reverse=True):
            modules = root / "lib/modules" / image.name.removeprefix("vmlinuz-")
            if modules.is_dir():
                return image, modules
    return None


def no_qemu() -> str:
    """What is not installed that machines need; empty if they can run here."""
    absent = [program for program in ("qemu-system-x86_64", "qemu-img") if shutil.which(program) is None]
    return f"{absent[0]} is not installed" if absent else ""


def missing() -> str:
    """What is not installed; empty if the guest can be built and run here."""
    if no_qemu():
        return no_qemu()
    if shutil.which("busybox") is None:
        return "busybox is not installed"
    return "" if kernel() else "there is no cloud kernel: install linux-image-cloud-amd64"


def archive(files: dict[str, tuple[int, bytes]]) -> bytes:
    """A cpio archive (newc) of files by name, with their modes."""
    out = bytearray()

    def add(name: str, mode: int, data: bytes, inode: int) -> None:
        encoded = name.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        out.extend(b"070701" + b"".join(b"%08x" % field for field in fields) + encoded)
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    for inode, (name, (mode, data)) in enumerate(files.items(), 1):
        add(name, mode, data, inode)
    add("TRAILER!!!", 0, b"", 0)
    return bytes(out)


def build(folder: Path, *, counting: bool = False) -> None:
    """Write the guest as an image: a folder with a kernel, an initramfs and a command line."""
    found = kernel()
    assert found is not None
    image, modules = found
    folder.mkdir(parents=True, exist_ok=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    files: dict[str, tuple[int, bytes]] = dict.fromkeys(
        ("bin", "lib", "proc", "sys", "dev", "etc", "tmp"), (16877, b"")
    )
    files["bin/busybox"] = (0o100755, Path(busybox).read_bytes())
    for name in subprocess.check_output([busybox, "--list"], text=True).split():
        if name != "busybox":
            files[f"bin/{name}"] = (0o120777, b"busybox")
    for name in MODULES:
        (path,) = modules.rglob(f"{name}.ko")
        files[f"lib/{name}.ko"] = (0o100644, path.read_bytes())
    files["modules"] = (0o100644, "\n".join(MODULES).encode())
    for name, script in {"init": INIT, "agent": AGENT, "udhcpc": UDHCPC}.items():
        files[name] = (0o100755, script.encode())
    shutil.copyfile(image, folder / "vmlinuz")
    (folder / "initrd").write_bytes(gzip.compress(archive(files), 1))
    (folder / "cmdline").write_text(f"console=ttyS0 panic=-1 quiet{' counting' if counting else ''}")
