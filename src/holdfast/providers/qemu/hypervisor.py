"""The QEMU provider: machines in folders, tasks with a journal.

A folder of data has `books.json` (tasks, images, imported disks), `images/`, `disks/`, and for every host a folder with
one folder for each machine.  A task is written to the books before it begins, and what it does may be done again, so a
provider that was killed goes on where it was.  Machines run on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
from pathlib import Path
from typing import Any, Final

from holdfast.meta.sizes import MIB
from holdfast.providers.contract import (
    Capabilities,
    Code,
    Datastore,
    Host,
    Inventory,
    ProviderError,
)
from holdfast.providers.qemu import launch, tools
from holdfast.providers.qemu.changes import Changes
from holdfast.providers.qemu.checks import FORMATS
from holdfast.providers.qemu.clones import Clones
from holdfast.providers.qemu.exports import Exports
from holdfast.providers.qemu.guest import PROGRAM, Guest
from holdfast.providers.qemu.records import (
    Books,
    MachineRecord,
    load,
)

log: Final = logging.getLogger(__name__)


class Qemu(Changes, Clones, Exports):
    """A `Hypervisor` of QEMU processes on this machine.  `open` makes one."""

    @classmethod
    async def open(cls, data: Path, **settings: Any) -> Qemu:
        """Open a folder of machines: find those that run, and go on with what was under way."""
        qemu = cls(data.absolute(), **settings)
        await qemu._open()
        return qemu

    async def _open(self) -> None:
        if shutil.which(PROGRAM) is None or shutil.which("qemu-img") is None:
            raise ProviderError(
                Code.INVALID, f"{PROGRAM} and qemu-img are needed: install qemu-system-x86 and qemu-utils"
            )
        for folder in (self._data, self._data / "images", self._data / "disks", *self._hosts.values()):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(self._data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ProviderError(Code.RETRYABLE, f"another provider serves the folder {self._data}") from None
        if self._acceleration is None:
            self._acceleration = await probe()
        self._version = (await tools.run("--version", program=PROGRAM)).decode().splitlines()[0].split()[3]
        self._books = load(self._data / "books.json", Books) or Books()
        for name, folder in self._hosts.items():
            await self._find(name, folder)
        await asyncio.gather(*map(self._attach, self._guests.values()))
        self._sweep()
        opened = [task for task in self._books.tasks.values() if not task.done]
        for task in sorted(opened, key=lambda task: int(task.id.rpartition("-")[2])):
            self._go(task)
        log.info(
            "machines found",
            extra={
                "fields": {
                    "machines": len(self._guests),
                    "running": sum(guest.running for guest in self._guests.values()),
                    "tasks": len(opened),
                    "acceleration": self._acceleration.accel,
                }
            },
        )

    async def _find(self, host: str, folder: Path) -> None:
        busy = {task.subject for task in self._books.tasks.values() if not task.done}
        for found in sorted(folder.iterdir()):
            record = load(found / launch.RECORD, MachineRecord) if found.is_dir() else None
            if record is None or found.name.startswith(".") or (record.creating and record.id not in busy):
                # It was being made when the provider ended, and the caller has no answer; or it was being removed.
                await asyncio.to_thread(shutil.rmtree, found, ignore_errors=True)
                continue
            record.host = host
            self._guests[record.id] = Guest(record, found)

    @staticmethod
    async def _attach(guest: Guest) -> None:
        try:
            await guest.attach()
        except ProviderError as error:
            fields = {"machine": guest.record.name, "error": error.message}
            log.error("machine does not answer", extra={"fields": fields})

    def _sweep(self) -> None:
        """Remove files of images and disks that no record has."""
        known = {one.file for one in self._books.images.values()} | {f"{id}.qcow2" for id in self._books.imports}
        known |= {name for guest in self._guests.values() for name in guest.record.backing}
        opened = {task.subject for task in self._books.tasks.values() if not task.done}
        for folder, pattern in ((self._data / "images", "image-*"), (self._data / "disks", "*-*")):
            for path in folder.glob(pattern):
                if path.name not in known and path.name.partition(".")[0] not in opened:
                    path.unlink(missing_ok=True)

    async def close(self) -> None:
        """End the provider; machines run on, and tasks are continued by the next one."""
        lock, self._lock = self._lock, -1
        for running in list(self._running.values()):
            running.cancel()
        if self._running:
            await asyncio.wait(set(self._running.values()))
        for guest in self._guests.values():
            await guest.close()
        if lock >= 0:
            os.close(lock)

    async def validate(self) -> None:
        if shutil.which(PROGRAM) is None or shutil.which("qemu-img") is None:
            raise ProviderError(Code.INVALID, f"{PROGRAM} or qemu-img is not installed on this host")
        if not os.access(self._data, os.W_OK):
            raise ProviderError(Code.INVALID, f"the folder {self._data} cannot be written")

    async def capabilities(self) -> Capabilities:
        assert self._acceleration is not None
        found = Capabilities(
            version=f"qemu/{self._version} ({self._acceleration.accel})",
            reconfigure_online=True,
            disk_expansion_online=True,
            snapshots=True,
            memory_snapshots=True,
            quiesce=True,
            linked_clones=True,
            instant_clones=False,
            image_import=True,
            disk_types=("thin",),
            network_types=("user", "bridge"),
            disk_export=True,
            disk_import=True,
            export_formats=FORMATS,
            import_formats=FORMATS,
            export_compression=True,
            inventory=True,
            guest_commands=True,
        )
        return self._staging.able(found)

    async def inventory(self) -> Inventory:
        hosts, stores = [], []
        for name, folder in self._hosts.items():
            guests = [guest for guest in self._guests.values() if guest.record.host == name]
            usage = shutil.disk_usage(folder)
            hosts.append(
                Host(
                    name=name,
                    cpus=os.cpu_count() or 1,
                    cpus_used=sum(guest.record.hardware.all_cpus for guest in guests),
                    memory_mib=_memory_mib(),
                    memory_mib_used=sum(guest.record.hardware.all_memory_mib for guest in guests),
                    datastores=(name,),
                    networks=("user",),
                    features=("kvm",) if self._acceleration and self._acceleration.accel == "kvm" else (),
                    machines=tuple(guest.record.id for guest in guests),
                )
            )
            stores.append(Datastore(name=name, total_bytes=usage.total, free_bytes=usage.free, hosts=(name,)))
        return Inventory(hosts=tuple(hosts), datastores=tuple(stores))


async def probe() -> launch.Acceleration:
    """How machines are run here: with KVM if QEMU can start one with it."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        arguments = ["-machine", "pc,accel=kvm", "-cpu", "host", "-nodefaults", "-display", "none", "-qmp", "stdio"]
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            async with asyncio.timeout(5):
                await process.communicate(b'{"execute":"qmp_capabilities"}{"execute":"quit"}')
        if process.returncode is None:
            process.kill()
            await process.wait()
        if process.returncode == 0:
            return launch.KVM
        log.warning("KVM is there and does not work; machines are emulated, which is slow")
    return launch.TCG


def _memory_mib() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
