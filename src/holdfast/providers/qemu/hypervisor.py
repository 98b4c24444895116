"""The QEMU provider: machines in folders, tasks with a journal.

A folder of data has `books.json` (tasks, images, imported disks), `images/`, `disks/`, and for every host a folder with
one folder for each machine.  A task is written to the books before it begins, and what it does may be done again, so a
provider that was killed goes on where it was.  Machines run on without it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import hashlib
import logging
import os
import re
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from holdfast.providers.contract import (
    Capabilities,
    Change,
    Code,
    Datastore,
    Description,
    Disk,
    DiskInfo,
    Host,
    Image,
    Inventory,
    Listed,
    Machine,
    Made,
    Placement,
    PowerOp,
    Prepared,
    ProviderError,
    Task,
    TaskState,
    Transfer,
    Transferred,
)
from holdfast.providers.qemu import launch, seed, tools
from holdfast.providers.qemu.guest import PROGRAM, Guest
from holdfast.providers.qemu.records import (
    Books,
    Dimm,
    DiskRecord,
    Hardware,
    ImageRecord,
    ImportRecord,
    MachineRecord,
    SnapshotRecord,
    TaskRecord,
    load,
    save,
)
from holdfast.providers.staging import HostPolicy, Staging, part, sha256

log: Final = logging.getLogger(__name__)

GIB: Final = 1 << 30
MIB: Final = 1 << 20
TASKS_KEPT: Final = 500
HOT_FACTOR: Final = 4
"""How many times its CPUs and memory a machine may have that can be grown while it runs."""
MOST_CPUS: Final = 64
FORMATS: Final = ("qcow2", "raw", "vmdk")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_CHECKSUMS: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


class Qemu:
    """A `Hypervisor` of QEMU processes on this machine.  `open` makes one."""

    def __init__(
        self,
        data: Path,
        *,
        hosts: Mapping[str, Path] | None = None,
        image_folders: tuple[Path, ...] = (),
        storage: Path | None = None,
        hosts_allowed: tuple[str, ...] = (),
        acceleration: launch.Acceleration | None = None,
    ) -> None:
        self._data = data
        self._hosts = dict(hosts or {"local": data / "hosts" / "local"})
        self._staging = Staging(storage, hosts=HostPolicy(hosts_allowed))
        self._image_folders = (data / "images", *image_folders)
        self._acceleration = acceleration
        self._version = ""
        self._books = Books()
        self._guests: dict[str, Guest] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, str] = {}
        self._progress: dict[str, tuple[int, int, float]] = {}
        self._watched: dict[str, tuple[Path, int, int]] = {}
        self._transfers: dict[str, Transfer] = {}
        self._lock = -1

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

    # --- tasks -------------------------------------------------------------------------

    def _write(self) -> None:
        save(self._data / "books.json", self._books)

    def _number(self, kind: str) -> str:
        self._books.number += 1
        return f"{kind}-{self._books.number}"

    def _submit(self, call: str, subject: str, args: dict[str, Any] | None = None) -> Task:
        """Note a task and begin it, after those of the same subject."""
        args = args or {}
        last = self._books.tasks.get(self._last.get(subject, ""))
        if last is not None and not last.done and last.call == call and last.args == args:
            return Task(id=last.id)
        record = TaskRecord(id=self._number("task"), call=call, subject=subject, args=args)
        self._books.tasks[record.id] = record
        finished = [id for id, task in self._books.tasks.items() if task.done]
        for id in finished[: max(0, len(finished) - TASKS_KEPT)]:
            del self._books.tasks[id]
        self._write()
        self._go(record)
        return Task(id=record.id)

    def _go(self, record: TaskRecord) -> None:
        before = self._running.get(self._last.get(record.subject, ""))
        self._last[record.subject] = record.id
        self._running[record.id] = asyncio.create_task(self._perform(record, before))

    async def _perform(self, record: TaskRecord, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
            effect: Callable[[TaskRecord], Awaitable[dict[str, str] | None]] = getattr(self, f"_do_{record.call}")
            record.result = await effect(record) or {}
        except ProviderError as error:
            record.error, record.code = error.message, error.code
        except asyncio.CancelledError:
            if self._lock < 0:
                return  # the provider ends; the next one goes on
            record.error, record.code = "cancelled", Code.CONFLICT
        except Exception:
            log.exception("task failed by a defect", extra={"fields": {"task": record.id, "call": record.call}})
            record.error, record.code = "a defect of the provider; its log has the details", Code.INTERNAL
        if record.error:
            with contextlib.suppress(ProviderError, OSError):
                await self._undo(record)
        record.done = True
        record.args = {}
        self._write()
        self._running.pop(record.id, None)
        self._progress.pop(record.id, None)
        self._watched.pop(record.id, None)
        self._transfers.pop(record.id, None)
        if self._last.get(record.subject) == record.id:
            del self._last[record.subject]

    async def _undo(self, record: TaskRecord) -> None:
        """Remove what a task that failed has made."""
        match record.call:
            case "create" | "clone":
                guest = self._guests.get(record.subject)
                if guest is not None and guest.record.creating:
                    self._return_import(guest)
                    await self._remove(guest)
            case "prepare_image":
                image = self._books.images.pop(record.subject, None)
                if image is not None:
                    _discard(self._data / "images" / image.file)
            case "import_disk":
                if self._books.imports.pop(record.subject, None) is not None:
                    _discard(self._data / "disks" / f"{record.subject}.qcow2")

    def _report(self, task: str, total: int) -> Callable[[float], None]:
        """A function that takes percentages of a whole."""
        began = asyncio.get_running_loop().time()
        self._progress[task] = (0, total, began)
        return lambda percent: self._progress.__setitem__(task, (int(total * percent / 100), total, began))

    async def task(self, task: Task) -> TaskState:
        record = self._books.tasks.get(task.id)
        if record is None:
            return TaskState(done=True, error=f"task {task.id} is not known", code=Code.NOT_FOUND)
        if record.done:
            return TaskState(
                done=True,
                error=record.error,
                code=record.code,
                percentage=None if record.error else 100,
                result=record.result,
            )
        done, total, began = self._progress.get(task.id, (0, 0, 0.0))
        if task.id in self._watched:
            path, before, total = self._watched[task.id]
            with contextlib.suppress(OSError):
                done = min(total, max(0, path.stat().st_blocks * 512 - before))
        again = 0.5
        if done and total:
            rate = done / max(asyncio.get_running_loop().time() - began, 0.1)
            again = min(30.0, max(0.2, (total - done) / rate)) if began else 0.5
        return TaskState(
            percentage=min(99, 100 * done // total) if total else None,
            done_bytes=done if total else None,
            total_bytes=total or None,
            again_after=again,
        )

    async def cancel(self, task: Task) -> None:
        running = self._running.get(task.id)
        if running is not None:
            running.cancel()
            await asyncio.wait({running})

    # --- the provider ------------------------------------------------------------------

    async def validate(self) -> None:
        if shutil.which(PROGRAM) is None or shutil.which("qemu-img") is None:
            raise ProviderError(Code.INVALID, f"{PROGRAM} or qemu-img is not installed on this host")
        if not os.access(self._data, os.W_OK):
            raise ProviderError(Code.INVALID, f"the folder {self._data} cannot be written")

    async def capabilities(self) -> Capabilities:
        assert self._acceleration is not None
        return Capabilities(
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
            export_backends=self._staging.backends,
            import_backends=self._staging.backends,
            transfer_modes=("relay",),
            inventory=True,
            guest_commands=True,
        )

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
                    machines=tuple(guest.record.id for guest in guests),
                )
            )
            stores.append(Datastore(name=name, total_bytes=usage.total, free_bytes=usage.free, hosts=(name,)))
        return Inventory(hosts=tuple(hosts), datastores=tuple(stores))

    async def machines(self) -> tuple[Listed, ...]:
        return tuple(
            [
                Listed(
                    id=guest.record.id,
                    name=guest.record.name,
                    power=guest.power,
                    ips=guest.ips,
                    cpus=guest.record.hardware.all_cpus,
                    memory_mib=guest.record.hardware.all_memory_mib,
                    disks=await self._disks(guest),
                    host=guest.record.host,
                )
                for guest in list(self._guests.values())
                if not guest.record.creating
            ]
        )

    async def execute(self, id: str, command: tuple[str, ...], timeout_seconds: int = 60) -> None:
        guest = self._guest(id)
        name = guest.record.name
        if not command:
            raise ProviderError(Code.INVALID, f"there is no command to run in machine {name}")
        words = {"path": command[0], "arg": list(command[1:]), "capture-output": True}
        started = await guest.agent("guest-exec", 5.0, **words)
        try:
            async with asyncio.timeout(timeout_seconds):
                while not (state := await guest.agent("guest-exec-status", 5.0, pid=started["pid"]))["exited"]:
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise ProviderError(
                Code.CONFLICT, f"{command[0]} in machine {name} has not ended after {timeout_seconds} s"
            ) from None
        if state.get("exitcode", 0) or state.get("signal"):
            printed = b"".join(base64.b64decode(state.get(key, "")) for key in ("out-data", "err-data"))
            said = printed.decode(errors="replace").strip()[-500:]
            ended = f"status {state.get('exitcode')}" if "exitcode" in state else f"signal {state.get('signal')}"
            raise ProviderError(Code.CONFLICT, f"{command[0]} in machine {name} ended with {ended}: {said}")

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

    def _guest(self, id: str) -> Guest:
        guest = self._guests.get(id)
        if guest is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {id} does not exist")
        return guest

    def _named(self, name: str) -> Guest | None:
        return next((guest for guest in self._guests.values() if guest.record.name == name), None)

    # --- machines ----------------------------------------------------------------------

    async def create(self, machine: Machine) -> Made:
        there = self._named(machine.name)
        if there is not None:
            return Made(id=there.record.id, task=self._making(there))
        _check_names(machine)
        if machine.secure_boot or machine.tpm:
            raise ProviderError(Code.UNSUPPORTED, "this provider has no secure boot and no TPM")
        root = next((disk for disk in machine.disks if disk.name == "root"), Disk(name="root"))
        args: dict[str, Any] = {"root_bytes": root.size_gib * GIB}
        kernel = ""
        imported = machine.imported_disk
        if not imported and machine.image is not None:
            imported = self._import_at(machine.image.path)
        if imported:
            self._take_import(imported, machine.name)
            args["import"] = imported
        elif machine.image is not None:
            image = await self._image_for(machine.image)
            if isinstance(image, Path):
                kernel = str(image)
            else:
                args["image"] = image
        elif not root.size_gib:
            raise ProviderError(Code.INVALID, f"machine {machine.name} has no image, no imported disk and no disk root")
        disks = []
        if imported or "image" in args or root.size_gib:
            disks.append(DiskRecord(name="root", file="root.qcow2", bootable=not kernel))
        others = [disk for disk in machine.disks if disk.name != "root"]
        disks += [DiskRecord(name=disk.name, file=f"{disk.name}.qcow2") for disk in others]
        args["sizes"] = {disk.name: disk.size_gib * GIB for disk in others}
        guest = self._make(machine, disks, kernel=kernel)
        return Made(id=guest.record.id, task=self._submit("create", guest.record.id, args))

    def _making(self, guest: Guest) -> Task | None:
        opened = [one.id for one in self._books.tasks.values() if one.subject == guest.record.id and not one.done]
        return Task(id=opened[0]) if guest.record.creating and opened else None

    def _make(self, machine: Machine, disks: list[DiskRecord], **more: Any) -> Guest:
        """The folder and the record of a machine that is being made."""
        host = self._host_for(machine.placement)
        id = f"vm-{uuid.uuid4().hex[:12]}"
        folder = self._hosts[host] / id
        folder.mkdir(mode=0o700)
        hot_cpus = min(MOST_CPUS, machine.cpus * HOT_FACTOR) if machine.cpu_hot_add else machine.cpus
        record = MachineRecord(
            id=id,
            name=machine.name,
            uuid=str(uuid.uuid4()),
            host=host,
            hardware=Hardware(
                cpus=machine.cpus,
                max_cpus=max(hot_cpus, machine.cpus),
                memory_mib=machine.memory_mib,
                max_memory_mib=machine.memory_mib * HOT_FACTOR if machine.memory_hot_add else 0,
            ),
            cpu_hot_add=machine.cpu_hot_add,
            memory_hot_add=machine.memory_hot_add,
            firmware=machine.firmware,
            disks=disks,
            nics=machine.nics,
            tags=machine.tags,
            **more,
        )
        try:
            launch.arguments(record, folder, launch.TCG)  # what cannot be started is refused now
            record.seed = self._write_seed(machine, record, folder)
            guest = Guest(record, folder)
            guest.save()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._guests[id] = guest
        return guest

    @staticmethod
    def _write_seed(machine: Machine, record: MachineRecord, folder: Path) -> bool:
        """The disk for cloud-init, if there is anything to say to it."""
        network = _network_config(machine, record)
        if not (machine.user_data or machine.meta_data or network):
            return False
        hostname = machine.extra.get("hostname", machine.name)
        meta = machine.meta_data or f"instance-id: {record.id}\nlocal-hostname: {hostname}\n".encode()
        files = {"user-data": machine.user_data or b"#cloud-config\n{}\n", "meta-data": meta}
        if network:
            files["network-config"] = network
        path = folder / launch.SEED
        path.touch(0o600)
        path.write_bytes(seed.iso(files))
        return True

    def _host_for(self, placement: Placement) -> str:
        if placement.host:
            if placement.host not in self._hosts:
                raise ProviderError(
                    Code.INVALID, f"host {placement.host} does not exist: there are {', '.join(self._hosts)}"
                )
            return placement.host
        if placement.datastore and placement.datastore in self._hosts:
            return placement.datastore
        used = dict.fromkeys(self._hosts, 0)
        for guest in self._guests.values():
            used[guest.record.host] += guest.record.hardware.all_memory_mib
        return min(used, key=lambda name: used[name])

    async def _do_create(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        record, args = guest.record, task.args
        root = guest.folder / "root.qcow2"
        backing = []
        if "import" in args:
            source = self._data / "disks" / f"{args['import']}.qcow2"
            if not root.exists():
                await asyncio.to_thread(shutil.move, source, part(root))
                part(root).rename(root)
            self._books.imports[args["import"]].machine = record.id
            self._write()
        elif "image" in args:
            image = await self._image_ready(args["image"])
            base = self._data / "images" / image.file
            backing.append(image.file)
            await tools.create(root, max(args["root_bytes"], image.virtual_bytes), backing=base)
        elif args["root_bytes"]:
            await tools.create(root, args["root_bytes"])
        if root.exists() and args["root_bytes"] > (await tools.info(root, "qcow2")).virtual_size:
            await tools.run("resize", "-q", "-f", "qcow2", root, str(args["root_bytes"]))
        for name, size in args["sizes"].items():
            await tools.create(guest.folder / f"{name}.qcow2", size)
        await self._finish(guest, backing)

    async def _finish(self, guest: Guest, backing: list[str]) -> None:
        """What new machines and clones have in common at the end."""
        if guest.record.firmware.lower() in ("uefi", "efi") and not (guest.folder / "nvram.qcow2").exists():
            _, variables = launch.ovmf()
            await tools.convert(variables, guest.folder / "nvram.qcow2", source_format="raw")
        guest.record.backing = backing
        guest.record.creating = False
        guest.save()

    async def delete(self, id: str) -> Task | None:
        if id not in self._guests:
            return None
        for task in [one for one in self._books.tasks.values() if one.subject == id and not one.done]:
            if task.call == "delete":
                return Task(id=task.id)
            await self.cancel(Task(id=task.id))
        return self._submit("delete", id)

    async def _do_delete(self, task: TaskRecord) -> None:
        guest = self._guests.get(task.subject)
        if guest is not None:
            await guest.stop()
            await self._remove(guest)
        for id in [one.id for one in self._books.imports.values() if one.machine == task.subject]:
            del self._books.imports[id]

    async def _remove(self, guest: Guest) -> None:
        gone = guest.folder.with_name(f".{guest.folder.name}")
        with contextlib.suppress(FileNotFoundError):
            guest.folder.rename(gone)
        await asyncio.to_thread(shutil.rmtree, gone, ignore_errors=True)
        self._guests.pop(guest.record.id, None)

    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None:
        guest = self._guest(id)
        idle = id not in self._last
        if idle and op != "Reboot" and guest.running == (op == "On") and (op == "On" or not guest.alive()):
            return None
        if idle and op == "Reboot" and not guest.running:
            raise ProviderError(Code.CONFLICT, f"machine {guest.record.name} is off and cannot be rebooted")
        return self._submit("power", id, {"op": op, "seconds": graceful_seconds})

    async def _do_power(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        match task.args["op"]:
            case "On":
                await self._start(guest)
            case "Off":
                await guest.stop()
            case "ShutdownGraceful":
                await guest.stop(float(task.args["seconds"]))
            case "Reboot":
                await guest.command("system_reset")

    async def _start(self, guest: Guest, resume: str = "") -> None:
        assert self._acceleration is not None
        if not guest.running and not guest.alive() and not resume:
            hardware = guest.record.hardware
            if hardware.dimms or hardware.hot_cpus:
                # What was added while it ran is there from the start now.
                hardware.cpus, hardware.hot_cpus = hardware.all_cpus, []
                hardware.memory_mib, hardware.dimms = hardware.all_memory_mib, []
                hardware.max_cpus = max(hardware.max_cpus, hardware.cpus)
                guest.save()
        await guest.start(self._acceleration, resume)

    async def describe(self, id: str) -> Description:
        guest = self._guests.get(id)
        if guest is None:
            return Description(exists=False)
        ips = await guest.addresses(asyncio.get_running_loop().time())
        record = guest.record
        raw = {"name": record.name, "uuid": record.uuid, "folder": str(guest.folder)}
        if record.crashed and not guest.running:
            raw["crashed"] = record.crashed
        return Description(
            exists=True,
            power=guest.power,
            ips=ips,
            console_url=guest.vnc,
            cpus=record.hardware.all_cpus,
            memory_mib=record.hardware.all_memory_mib,
            disks=await self._disks(guest),
            host=record.host,
            guest_ready=guest.agent_open and guest.running,
            again_after=1.0 if guest.running and not ips else None,
            raw=raw,
        )

    async def _disks(self, guest: Guest) -> tuple[DiskInfo, ...]:
        found = []
        for disk in guest.record.disks:
            with contextlib.suppress(ProviderError):
                found.append(await self._disk_info(guest, disk))
        return tuple(found)

    async def _disk_info(self, guest: Guest, disk: DiskRecord) -> DiskInfo:
        path = guest.folder / disk.file
        image = await guest.image(disk)
        return DiskInfo(
            id=f"{guest.record.id}/{disk.name}",
            format="qcow2",
            virtual_bytes=image.virtual_size,
            actual_bytes=_allocated(path),
            path=str(path),
            bootable=disk.bootable,
            snapshots=tuple(one.id for one in guest.record.snapshots),
            backing_file=Path(image.backing_filename).name,
        )

    # --- changes -----------------------------------------------------------------------

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        guest = self._guest(id)
        sizes = {disk.id.rpartition("/")[2]: disk.virtual_bytes for disk in await self._disks(guest)}
        for disk in change.disks:
            _check_name(disk.name, f"disk of machine {guest.record.name}")
            if 0 < disk.size_gib * GIB < sizes.get(disk.name, 0):
                raise ProviderError(
                    Code.INVALID,
                    f"disk {disk.name} of {guest.record.name} has {sizes[disk.name] / GIB:g} GiB"
                    f" and cannot be shrunk to {disk.size_gib} GiB",
                )
        hardware = guest.record.hardware
        if (
            id not in self._last
            and change.cpus in (None, hardware.all_cpus)
            and change.memory_mib in (None, hardware.all_memory_mib)
            and all(sizes.get(disk.name, -1) >= disk.size_gib * GIB for disk in change.disks)
        ):
            return None
        offline = guest.running and _offline_only(guest.record, change)
        if offline and not change.offline:
            raise ProviderError(Code.CONFLICT, f"machine {guest.record.name} must be off to be changed: {offline}")
        return self._submit("reconfigure", id, {"change": msgspec.to_builtins(change)})

    async def _do_reconfigure(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        change = msgspec.convert(task.args["change"], Change)
        record = guest.record
        for disk in change.disks:
            await self._grow(guest, disk)
        cpus = change.cpus or record.hardware.all_cpus
        memory = change.memory_mib or record.hardware.all_memory_mib
        if (cpus, memory) == (record.hardware.all_cpus, record.hardware.all_memory_mib):
            return
        restart = guest.running and bool(_offline_only(record, change))
        if restart and not change.offline:
            raise ProviderError(Code.CONFLICT, f"machine {record.name} must be off to be changed")
        if restart:
            await guest.stop(60.0)
        if guest.running:
            await self._plug(guest, cpus, memory)
        else:
            hardware = record.hardware
            hardware.cpus, hardware.hot_cpus, hardware.memory_mib, hardware.dimms = cpus, [], memory, []
            hardware.max_cpus = max(cpus, min(MOST_CPUS, cpus * HOT_FACTOR) if record.cpu_hot_add else cpus)
            hardware.max_memory_mib = memory * HOT_FACTOR if record.memory_hot_add else 0
            guest.save()
        if restart:
            await self._start(guest)

    async def _grow(self, guest: Guest, disk: Disk) -> None:
        size = disk.size_gib * GIB
        there = next((one for one in guest.record.disks if one.name == disk.name), None)
        if there is None:
            there = DiskRecord(name=disk.name, file=f"{disk.name}.qcow2")
            await tools.create(guest.folder / there.file, size)
            if guest.running:
                nodes = await guest.command("query-named-block-nodes", flat=True)
                if not any(one.get("node-name") == launch.node(there) for one in nodes):
                    await guest.command("blockdev-add", 60.0, **launch.block(there, guest.folder))
                blocks = await guest.command("query-block")
                if not any(
                    one.get("qdev", "").startswith(f"/machine/peripheral/{launch.device(there)}/") for one in blocks
                ):
                    await guest.command(
                        "device_add", driver="virtio-blk-pci", drive=launch.node(there), id=launch.device(there)
                    )
            guest.record.disks.append(there)
            guest.save()
            return
        path = guest.folder / there.file
        if (await tools.info(path, "qcow2")).virtual_size >= size:
            return
        guest.images.clear()
        if guest.running:
            await guest.command("block_resize", node_name=launch.node(there), size=size)
        else:
            await tools.run("resize", "-q", "-f", "qcow2", path, str(size))

    async def _plug(self, guest: Guest, cpus: int, memory: int) -> None:
        """Add CPUs and memory to a running machine."""
        record = guest.record
        hardware = record.hardware
        slots = sorted(await guest.command("query-hotpluggable-cpus"), key=lambda one: one["props"]["socket-id"])
        missing = cpus - sum("qom-path" in one for one in slots)
        for slot in [one for one in slots if "qom-path" not in one][: max(0, missing)]:
            name = f"cpu-{slot['props']['socket-id']}"
            await guest.command("device_add", driver=slot["type"], id=name, **slot["props"])
        slots = await guest.command("query-hotpluggable-cpus")
        hardware.hot_cpus = [
            {"driver": one["type"], "props": {"id": f"cpu-{one['props']['socket-id']}", **one["props"]}}
            for one in sorted(slots, key=lambda one: one["props"]["socket-id"])
            if "qom-path" in one and one["props"]["socket-id"] >= hardware.cpus
        ]
        devices = await guest.command("query-memory-devices")
        hardware.dimms = [Dimm(id=one["data"]["id"], mib=one["data"]["size"] // MIB) for one in devices]
        more = memory - hardware.all_memory_mib
        if more > 0:
            dimm = Dimm(id=f"dimm{len(hardware.dimms)}", mib=more)
            backends = {one.get("id") for one in await guest.command("query-memdev")}
            if f"ram-{dimm.id}" not in backends:
                await guest.command("object-add", qom_type="memory-backend-ram", id=f"ram-{dimm.id}", size=more * MIB)
            await guest.command("device_add", driver="pc-dimm", id=dimm.id, memdev=f"ram-{dimm.id}")
            hardware.dimms.append(dimm)
        guest.save()

    # --- snapshots ---------------------------------------------------------------------

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        guest = self._guest(id)
        there = guest.record.snapshot(name)
        if there is not None:
            return Made(id=there.id)
        for task in self._books.tasks.values():
            if not task.done and task.subject == id and task.call == "snapshot" and task.args["name"] == name:
                return Made(id=task.args["id"], task=Task(id=task.id))
        if not guest.record.disks:
            raise ProviderError(Code.CONFLICT, f"machine {guest.record.name} has no disk that could hold a snapshot")
        if memory and guest.record.firmware.lower() in ("uefi", "efi"):
            raise ProviderError(Code.UNSUPPORTED, "snapshots with memory are not possible with UEFI")
        if quiesce and guest.running:
            await guest.agent("guest-ping")
        taken = self._number("snap")
        args = {"id": taken, "name": name, "memory": memory, "quiesce": quiesce, "description": description}
        return Made(id=taken, task=self._submit("snapshot", id, args))

    async def _do_snapshot(self, task: TaskRecord) -> dict[str, str]:
        guest = self._guest(task.subject)
        record, args = guest.record, task.args
        there = record.snapshot(args["id"])
        if there is None:
            memory = args["memory"] and guest.running
            if args["quiesce"] and guest.running:
                with contextlib.suppress(ProviderError):
                    await guest.agent("guest-fsfreeze-thaw", 10)  # an attempt before may have left it frozen
                await guest.agent("guest-fsfreeze-freeze", 30)
            try:
                before = sum(_allocated(guest.folder / disk.file) for disk in record.disks)
                await self._take(guest, args["id"], memory=memory, task=task.id)
                after = sum(_allocated(guest.folder / disk.file) for disk in record.disks)
            finally:
                if args["quiesce"] and guest.running:
                    await guest.agent("guest-fsfreeze-thaw", 30)
            there = SnapshotRecord(
                id=args["id"],
                name=args["name"],
                description=args["description"],
                memory=memory,
                parent=record.current,
                size_bytes=max(0, after - before),
                hardware=msgspec.convert(msgspec.to_builtins(record.hardware), Hardware),
                disks=list(record.disks),
            )
            record.snapshots.append(there)
            record.current = there.id
            guest.save()
        return {"size_bytes": str(there.size_bytes), "parent": there.parent}

    async def _take(self, guest: Guest, tag: str, *, memory: bool, task: str = "") -> None:
        """Take an internal snapshot of all disks, with memory or without; nothing if it is there."""
        disks = guest.record.disks
        if all([tag in (await tools.info(guest.folder / disk.file, "qcow2")).tags() for disk in disks]):
            return
        if memory:
            first = guest.folder / disks[0].file
            self._watched[task] = (first, _allocated(first), guest.record.hardware.all_memory_mib * MIB)
            nodes = [launch.node(disk) for disk in disks]
            await guest.job(f"snapshot-{tag}", "snapshot-save", tag=tag, vmstate=nodes[0], devices=nodes)
        elif guest.running:
            actions = [
                {"type": "blockdev-snapshot-internal-sync", "data": {"device": launch.node(disk), "name": tag}}
                for disk in disks
            ]
            await guest.command("transaction", actions=actions)
        else:
            for disk in disks:
                path = guest.folder / disk.file
                if tag not in (await tools.info(path, "qcow2")).tags():
                    await tools.run("snapshot", "-q", "-c", tag, path)

    async def _drop(self, guest: Guest, tag: str, disks: list[DiskRecord]) -> None:
        for disk in disks:
            path = guest.folder / disk.file
            if not path.exists() or tag not in (await tools.info(path, "qcow2")).tags():
                continue
            if guest.running:
                await guest.command("blockdev-snapshot-delete-internal-sync", device=launch.node(disk), name=tag)
            else:
                await tools.run("snapshot", "-q", "-d", tag, path)

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        guest = self._guests.get(id)
        if guest is None or (guest.record.snapshot(snapshot) is None and id not in self._last):
            return None
        return self._submit("delete_snapshot", id, {"id": snapshot})

    async def _do_delete_snapshot(self, task: TaskRecord) -> None:
        guest = self._guests.get(task.subject)
        gone = guest.record.snapshot(task.args["id"]) if guest else None
        if guest is None or gone is None:
            return
        await self._drop(guest, gone.id, gone.disks)
        guest.record.snapshots.remove(gone)
        for child in guest.record.snapshots:
            if child.parent == gone.id:
                child.parent = gone.parent
        if guest.record.current == gone.id:
            guest.record.current = gone.parent
        guest.save()

    async def revert(self, id: str, snapshot: str) -> Task | None:
        guest = self._guest(id)
        if guest.record.snapshot(snapshot) is None and id not in self._last:
            raise ProviderError(Code.NOT_FOUND, f"machine {guest.record.name} has no snapshot {snapshot}")
        return self._submit("revert", id, {"id": snapshot})

    async def _do_revert(self, task: TaskRecord) -> None:
        guest = self._guest(task.subject)
        record = guest.record
        taken = record.snapshot(task.args["id"])
        if taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {task.args['id']}")
        await guest.stop()
        guest.images.clear()
        later = [disk for disk in record.disks if all(disk.name != one.name for one in taken.disks)]
        record.disks = list(taken.disks)
        record.hardware = msgspec.convert(msgspec.to_builtins(taken.hardware), Hardware)
        record.current, record.crashed = taken.id, ""
        guest.save()
        for disk in later:
            _discard(guest.folder / disk.file)
        if taken.memory:
            await self._start(guest, resume=taken.id)
        else:
            for disk in record.disks:
                await tools.run("snapshot", "-q", "-a", taken.id, guest.folder / disk.file)

    # --- clones ------------------------------------------------------------------------

    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made:
        if instant:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not support instant clones")
        source = self._guest(id)
        there = self._named(target.name)
        if there is not None:
            if there.record.cloned_from != id:
                raise ProviderError(
                    Code.CONFLICT, f"machine {target.name} exists and is no clone of {source.record.name}"
                )
            return Made(id=there.record.id, task=self._making(there))
        _check_names(target)
        taken = source.record.snapshot(snapshot) if snapshot else None
        if snapshot and taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {source.record.name} has no snapshot {snapshot}")
        disks = list(taken.disks if taken else source.record.disks)
        if linked:
            for disk in disks[:1]:
                if not (await tools.info(source.folder / disk.file, "qcow2")).backing_filename:
                    raise ProviderError(
                        Code.CONFLICT,
                        f"disk {disk.name} of {source.record.name} has no image that a linked clone could share;"
                        " make a full clone",
                    )
        copied = {disk.name for disk in disks}
        added = [disk for disk in target.disks if disk.name not in copied and disk.name != "root"]
        guest = self._make(
            target,
            disks + [DiskRecord(name=disk.name, file=f"{disk.name}.qcow2") for disk in added],
            kernel=source.record.kernel,
            cloned_from=id,
        )
        args = {
            "source": id,
            "snapshot": taken.id if taken else "",
            "linked": linked,
            "disks": [disk.name for disk in disks],
            "sizes": {disk.name: disk.size_gib * GIB for disk in target.disks},
        }
        return Made(id=guest.record.id, task=self._submit("clone", guest.record.id, args))

    async def _do_clone(self, task: TaskRecord) -> None:
        guest, source, args = self._guest(task.subject), self._guest(task.args["source"]), task.args
        files = {disk.name: disk.file for disk in guest.record.disks}
        backing: list[str] = []
        async with self._still(source, args["snapshot"], task.id) as tag:
            total = sum(
                [(await tools.info(source.folder / files[name], "qcow2")).actual_size for name in args["disks"]]
            )
            report = self._report(task.id, total)
            for number, name in enumerate(args["disks"]):
                target = guest.folder / files[name]
                base = (await tools.info(source.folder / files[name], "qcow2")).full_backing_filename
                shared = Path(base) if args["linked"] and base else None
                if shared is not None:
                    backing.append(shared.name)
                if target.exists():
                    continue
                await tools.convert(
                    source.folder / files[name],
                    target,
                    snapshot=tag,
                    backing=shared,
                    on_progress=_share(report, number, len(args["disks"])),
                )
        for name, size in args["sizes"].items():
            path = guest.folder / files.get(name, f"{name}.qcow2")
            if not path.exists() and size:
                await tools.create(path, size)
            elif path.exists() and size > (await tools.info(path, "qcow2")).virtual_size:
                await tools.run("resize", "-q", "-f", "qcow2", path, str(size))
        await self._finish(guest, backing)

    @contextlib.asynccontextmanager
    async def _still(self, guest: Guest, snapshot: str, task: str) -> AsyncIterator[str]:
        """The name of a snapshot from which disks can be read while the machine runs; empty if it does not."""
        if snapshot or not guest.running:
            yield snapshot
            return
        tag = f"copy-{task}"
        await self._take(guest, tag, memory=False)
        try:
            yield tag
        finally:
            await self._drop(guest, tag, guest.record.disks)

    # --- images ------------------------------------------------------------------------

    def _import_at(self, path: str) -> str:
        """The imported disk at a path, which is how a caller that knows no imported disks names one."""
        return next((id for id in self._books.imports if path and path in (id, str(self._disk_path(id)))), "")

    def _disk_path(self, id: str) -> Path:
        return self._data / "disks" / f"{id}.qcow2"

    async def _image_for(self, image: Image) -> str | Path:
        """The prepared image of a machine, or the folder of its kernel."""
        if image.template:
            prepared = [one for one in self._books.images.values() if image.template in (one.id, one.name)]
            if prepared:
                return prepared[-1].id
            for folder in self._image_folders:
                if _NAME.fullmatch(image.template) and (folder / image.template / "vmlinuz").is_file():
                    return folder / image.template
                for found in sorted(folder.glob(f"{image.template}.*")) if _NAME.fullmatch(image.template) else ():
                    if found.suffix in (".qcow2", ".img", ".raw", ".vmdk"):
                        return await self._implicit(Image(path=str(found)))
            raise ProviderError(Code.NOT_FOUND, f"there is no image or template {image.template}")
        if image.path:
            known = next((one.id for one in self._books.images.values() if image.path in (one.id, one.file)), "")
            if known:
                return known
            path = self._allowed(image.path)
            if (path / "vmlinuz").is_file():
                return path
        return await self._implicit(image)

    async def _implicit(self, image: Image) -> str:
        """Prepare an image that no VMImage has prepared, once for each of its versions."""
        version = image.checksum
        if image.path:
            found = self._allowed(image.path).stat()
            version = f"{found.st_mtime_ns}-{found.st_size}"
        key = hashlib.sha256(f"{image.url} {image.path} {version}".encode()).hexdigest()[:16]
        return (await self.prepare_image(image, f"auto-{key}")).id

    def _allowed(self, path: str) -> Path:
        found = Path(path)
        for folder in self._image_folders:
            whole = (folder / found).resolve()
            if whole.is_relative_to(folder.resolve()) and whole.exists():
                return whole
        raise ProviderError(Code.NOT_FOUND, f"there is no image {path} in the folders of images of this provider")

    async def _image_ready(self, id: str) -> ImageRecord:
        running = self._running.get(self._last.get(id, ""))
        if running is not None:
            await asyncio.wait({running})
        image = self._books.images.get(id)
        if image is None or not image.ready:
            failed = [one for one in self._books.tasks.values() if one.subject == id and one.error]
            why = failed[-1].error if failed else "it was not prepared"
            raise ProviderError(failed[-1].code or Code.INTERNAL if failed else Code.NOT_FOUND, f"image {id}: {why}")
        return image

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        source = image.url or image.path or image.template
        there = [one for one in self._books.images.values() if one.name == name]
        for one in there:
            if (one.source, one.checksum) == (source, image.checksum):
                last = self._last.get(one.id)
                return Prepared(id=one.id, path=one.file, task=Task(id=last) if last else None)
        if image.template and not image.url and not image.path:
            found = await self._image_for(image)
            return Prepared(id=image.template, path=str(found))
        if image.url:
            if urlsplit(image.url).scheme not in ("http", "https"):
                raise ProviderError(Code.INVALID, f"the image {image.url} is not at a URL of http or https")
            self._staging.hosts.check(image.url)
        if image.path:
            path = self._allowed(image.path)
            if (path / "vmlinuz").is_file():
                return Prepared(id=str(path), path=str(path))
        elif not image.url:
            raise ProviderError(Code.INVALID, f"image {name} has no template, path or URL")
        id = self._number("image")
        record = ImageRecord(id=id, name=name, source=source, checksum=image.checksum, file=f"{id}.qcow2")
        self._books.images[id] = record
        task = self._submit("prepare_image", id, {"image": msgspec.to_builtins(image)})
        return Prepared(id=id, path=record.file, task=task)

    async def _do_prepare_image(self, task: TaskRecord) -> dict[str, str]:
        record = self._books.images[task.subject]
        image = msgspec.convert(task.args["image"], Image)
        target = self._data / "images" / record.file
        source = target.with_suffix(".download")
        try:
            if image.url:
                await self._download(image.url, source, task.id)
            else:
                source = self._allowed(image.path)
            checksum = await asyncio.to_thread(_checksum, source, image.checksum_type, image.checksum)
            if image.checksum and checksum != image.checksum.lower().rpartition(":")[2]:
                raise ProviderError(
                    Code.INVALID, f"image {record.name} has the checksum {checksum}, expected {image.checksum}"
                )
            found = await tools.probe(source)
            if not target.exists():
                report = self._report(task.id, source.stat().st_size)
                await tools.convert(source, target, source_format=found.format, on_progress=report)
        finally:
            target.with_suffix(".download").unlink(missing_ok=True)
        record.virtual_bytes, record.ready = found.virtual_size, True
        used = {name for guest in self._guests.values() for name in guest.record.backing}
        for old in [one for one in self._books.images.values() if one.name == record.name and one.id != record.id]:
            del self._books.images[old.id]
            if old.file not in used:
                _discard(self._data / "images" / old.file)
        self._write()
        return {"path": record.file, "size_bytes": str(found.virtual_size), "checksum": checksum}

    async def _download(self, url: str, target: Path, task: str) -> None:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_read=60)) as session,
                session.get(url) as response,
            ):
                self._staging.hosts.check(str(response.url))  # it may have been redirected
                if response.status >= 400:
                    code = Code.NOT_FOUND if response.status in (404, 410) else Code.RETRYABLE
                    raise ProviderError(code, f"{url} answers with status {response.status}")
                total = response.content_length or 0
                report = self._report(task, total)
                done = 0
                with target.open("wb") as file:
                    async for block in response.content.iter_chunked(MIB):
                        await asyncio.to_thread(file.write, block)
                        done += len(block)
                        if total:
                            report(100 * done / total)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(Code.RETRYABLE, f"{url} cannot be fetched: {type(error).__name__}") from None

    # --- disks -------------------------------------------------------------------------

    def _disk_of(self, guest: Guest, disk: str, snapshot: str) -> tuple[DiskRecord, SnapshotRecord | None]:
        taken = guest.record.snapshot(snapshot) if snapshot else None
        if snapshot and taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {guest.record.name} has no snapshot {snapshot}")
        for one in taken.disks if taken else guest.record.disks:
            if disk in ("", one.name, f"{guest.record.id}/{one.name}"):
                return one, taken
        raise ProviderError(Code.NOT_FOUND, f"machine {guest.record.name} has no disk {disk or 'at all'}")

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        guest = self._guest(id)
        found, _ = self._disk_of(guest, disk, snapshot)
        return await self._disk_info(guest, found)

    async def export_disk(self, transfer: Transfer) -> Transferred:
        guest = self._guest(transfer.machine)
        disk, taken = self._disk_of(guest, transfer.disk, transfer.snapshot)
        _check_format(transfer.format)
        self._staging.path(transfer) or self._staging.bucket(transfer)
        size = (await tools.info(guest.folder / disk.file, "qcow2")).actual_size
        public = msgspec.structs.replace(transfer, credentials={})
        args = {"transfer": msgspec.to_builtins(public), "disk": disk.name, "snapshot": taken.id if taken else ""}
        args["secret"] = bool(transfer.credentials)
        task = self._submit("export_disk", transfer.machine, args)
        if transfer.credentials:
            self._transfers[task.id] = transfer
        return Transferred(id=f"export-{task.id}", path=transfer.url, task=task, size_bytes=size)

    def _transfer(self, task: TaskRecord) -> Transfer:
        """The transfer of a task with its credentials, which are nowhere but in memory."""
        if task.id in self._transfers:
            return self._transfers[task.id]
        if task.args.get("secret"):
            raise ProviderError(Code.RETRYABLE, "the provider was restarted and has no credentials for this any more")
        return msgspec.convert(task.args["transfer"], Transfer)

    async def _do_export_disk(self, task: TaskRecord) -> dict[str, str]:
        guest, transfer = self._guest(task.subject), self._transfer(task)
        disk, _ = self._disk_of(guest, task.args["disk"], task.args["snapshot"])
        source = guest.folder / disk.file
        size = (await tools.info(source, "qcow2")).actual_size
        target = self._staging.path(transfer)
        remote = target is None
        if target is None:
            target = self._data / "disks" / f"{task.id}.export"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            async with self._still(guest, task.args["snapshot"], task.id) as tag:
                report = self._report(task.id, size)
                await tools.convert(
                    source,
                    target,
                    format=transfer.format or "qcow2",
                    snapshot=tag,
                    compress=transfer.compress,
                    on_progress=(lambda percent: report(percent / 2)) if remote else report,
                )
            checksum = await asyncio.to_thread(sha256, target)
            written = target.stat().st_size
            if remote:
                await self._staging.put(transfer, target, lambda done: report(50 + 50 * done / max(written, 1)))
        finally:
            if remote:
                target.unlink(missing_ok=True)
        return {"checksum": checksum, "size_bytes": str(written)}

    async def delete_export(self, transfer: Transfer) -> None:
        await self._staging.remove(transfer)

    async def import_disk(self, transfer: Transfer) -> Transferred:
        name = transfer.target_name or transfer.url
        _check_format(transfer.format)
        source = f"{transfer.url} {transfer.expected_checksum}"
        there = next((one for one in self._books.imports.values() if one.name == name), None)
        if there is not None:
            if there.source != source:
                raise ProviderError(Code.CONFLICT, f"disk {there.id} exists by the name {name} and came from elsewhere")
            last = self._last.get(there.id)
            return Transferred(
                id=there.id,
                path=str(self._disk_path(there.id)),
                task=Task(id=last) if last else None,
                size_bytes=there.virtual_bytes,
                checksum=there.checksum,
            )
        path = self._staging.path(transfer)
        if path is not None and not path.is_file():
            raise ProviderError(Code.NOT_FOUND, f"there is no disk at {transfer.url}")
        id = self._number("disk")
        self._books.imports[id] = ImportRecord(id=id, name=name, source=source)
        public = msgspec.structs.replace(transfer, credentials={})
        args = {"transfer": msgspec.to_builtins(public), "secret": bool(transfer.credentials)}
        task = self._submit("import_disk", id, args)
        if transfer.credentials:
            self._transfers[task.id] = transfer
        return Transferred(id=id, path=str(self._disk_path(id)), task=task)

    async def _do_import_disk(self, task: TaskRecord) -> dict[str, str]:
        record, transfer = self._books.imports[task.subject], self._transfer(task)
        target = self._disk_path(record.id)
        source = self._staging.path(transfer)
        fetched = target.with_suffix(".import")
        try:
            if source is None:
                await self._staging.get(transfer, fetched)
                source = fetched
            if not source.is_file():
                raise ProviderError(Code.NOT_FOUND, f"there is no disk at {transfer.url}")
            checksum = await asyncio.to_thread(sha256, source)
            if transfer.verify_checksum and transfer.expected_checksum and checksum != transfer.expected_checksum:
                raise ProviderError(
                    Code.INVALID,
                    f"the disk at {transfer.url} has the checksum {checksum}, expected {transfer.expected_checksum}",
                )
            found = await tools.probe(source)
            if transfer.format and found.format != transfer.format:
                raise ProviderError(
                    Code.INVALID, f"the disk at {transfer.url} has the format {found.format}, not {transfer.format}"
                )
            if not target.exists():
                report = self._report(task.id, source.stat().st_size)
                await tools.convert(source, target, source_format=found.format, on_progress=report)
        finally:
            fetched.unlink(missing_ok=True)
        record.checksum, record.virtual_bytes, record.ready = checksum, found.virtual_size, True
        self._write()
        return {"checksum": checksum, "size_bytes": str(found.virtual_size), "path": str(target)}

    def _take_import(self, id: str, machine: str) -> None:
        record = self._books.imports.get(id)
        if record is None:
            raise ProviderError(Code.NOT_FOUND, f"disk {id} does not exist")
        if record.machine:
            raise ProviderError(Code.CONFLICT, f"disk {id} belongs to machine {record.machine}")
        if not record.ready:
            raise ProviderError(Code.RETRYABLE, f"disk {id} is still being imported")

    def _return_import(self, guest: Guest) -> None:
        """Give the disk of a machine that could not be made back to the imported ones."""
        for record in self._books.imports.values():
            if record.machine == guest.record.id and (guest.folder / "root.qcow2").exists():
                (guest.folder / "root.qcow2").rename(self._disk_path(record.id))
                record.machine = ""

    async def delete_disk(self, id: str) -> None:
        record = self._books.imports.get(id)
        if record is None:
            if "/" in id and id.partition("/")[0] in self._guests:
                raise ProviderError(Code.CONFLICT, f"disk {id} belongs to a machine")
            return
        if record.machine in self._guests:
            raise ProviderError(Code.CONFLICT, f"disk {id} belongs to machine {record.machine}")
        if id in self._last:
            await self.cancel(Task(id=self._last[id]))
        self._books.imports.pop(id, None)
        self._write()
        _discard(self._disk_path(id))


# --- small helpers ---------------------------------------------------------------------


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


def _share(report: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    return lambda percent: report((100 * number + percent) / count)


def _discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    part(path).unlink(missing_ok=True)


def _allocated(path: Path) -> int:
    return path.stat().st_blocks * 512


def _memory_mib() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise ProviderError(Code.INVALID, f"{what}: {name!r} is not a name of letters, digits, dots and dashes")


def _check_names(machine: Machine) -> None:
    if not machine.name or len(machine.name) > 253 or any(not letter.isprintable() for letter in machine.name):
        raise ProviderError(Code.INVALID, "the machine has no usable name")
    for disk in machine.disks:
        _check_name(disk.name, f"disk of machine {machine.name}")
        if disk.name != "root" and not disk.size_gib:
            raise ProviderError(Code.INVALID, f"disk {disk.name} of machine {machine.name} has no size")


def _check_format(format: str) -> None:
    if format and format not in FORMATS:
        raise ProviderError(Code.UNSUPPORTED, f"format {format} is not one of {', '.join(FORMATS)}")


def _checksum(path: Path, kind: str, expected: str) -> str:
    algorithm = kind.lower().replace("-", "") or _CHECKSUMS.get(len(expected.rpartition(":")[2]), "sha256")
    if algorithm not in _CHECKSUMS.values():
        raise ProviderError(Code.INVALID, f"checksum type {kind} is not one of {', '.join(_CHECKSUMS.values())}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _offline_only(record: MachineRecord, change: Change) -> str:
    """Why a change cannot be made while the machine runs; empty if it can."""
    hardware = record.hardware
    if change.cpus is not None and change.cpus != hardware.all_cpus:
        if change.cpus < hardware.all_cpus:
            return "CPUs cannot be removed while it runs"
        if change.cpus > hardware.max_cpus:
            return f"it can have at most {hardware.max_cpus} CPUs until it is started again"
    if change.memory_mib is not None and change.memory_mib != hardware.all_memory_mib:
        if change.memory_mib < hardware.all_memory_mib:
            return "memory cannot be removed while it runs"
        if change.memory_mib > max(hardware.max_memory_mib, hardware.memory_mib):
            most = max(hardware.max_memory_mib, hardware.memory_mib)
            return f"it can have at most {most} MiB of memory until it is started again"
        if (change.memory_mib - hardware.all_memory_mib) % 128:
            return "memory is added in steps of 128 MiB while it runs"
    return ""


def _network_config(machine: Machine, record: MachineRecord) -> bytes:
    """The network configuration for cloud-init, version 2; empty if no interface has an address of its own."""
    nics = machine.nics
    if not any(nic.static_ip for nic in nics):
        return b""
    lines = ["version: 2", "ethernets:"]
    for number, nic in enumerate(nics):
        address = nic.mac or launch.mac(record, number)
        lines += [f"  nic{number}:", f'    match: {{macaddress: "{address}"}}']
        if nic.static_ip:
            lines.append(f"    addresses: [{nic.static_ip}/{nic.prefix or 24}]")
            if nic.gateway:
                lines.append(f"    routes: [{{to: default, via: {nic.gateway}}}]")
            names = [name.strip() for name in nic.dns.split(",") if name.strip()]
            if names:
                lines.append(f"    nameservers: {{addresses: [{', '.join(names)}]}}")
        else:
            lines.append("    dhcp4: true")
    return ("\n".join(lines) + "\n").encode()
