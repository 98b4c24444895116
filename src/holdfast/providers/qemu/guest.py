"""One machine and its QEMU process: started, found again, asked, stopped.

The process holds a lock on a file in the machine's folder for as long as it lives, so there is never a second one, and
a provider that was killed knows whether the machine runs.  Its state comes from events of QEMU.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
from pathlib import Path
from typing import Any, Final

from holdfast.providers.contract import Code, ProviderError
from holdfast.providers.qemu import launch, tools
from holdfast.providers.qemu.qmp import Qmp, QmpError, ask_agent
from holdfast.providers.qemu.records import DiskRecord, MachineRecord, save
from holdfast.providers.qemu.tools import ImageInfo

log: Final = logging.getLogger(__name__)

PROGRAM: Final = "qemu-system-x86_64"
SETTLING: Final = 15.0
"""How long QEMU may need to open its sockets, or to end after it was asked to."""


class Guest:
    """A machine of this provider."""

    def __init__(self, record: MachineRecord, folder: Path) -> None:
        self.record = record
        self.folder = folder
        self.qmp: Qmp | None = None
        self.ips: tuple[str, ...] = ()
        self.ips_at = float("-inf")
        self.agent_open = False
        self.vnc = ""
        self.jobs: dict[str, asyncio.Event] = {}
        self.images: dict[str, tuple[object, ImageInfo]] = {}
        """What is known of its disks, which is asked again when a file was changed by another than its QEMU."""
        self._shut_down = False

    @property
    def running(self) -> bool:
        return self.qmp is not None and not self.qmp.closed.done()

    @property
    def power(self) -> str:
        """The state as the contract has it; a process that does not answer is neither on nor off."""
        return "On" if self.running else "Unknown" if self.alive() else "Off"

    def save(self) -> None:
        save(self.folder / launch.RECORD, self.record)

    async def image(self, disk: DiskRecord) -> ImageInfo:
        """The size and the origin of a disk."""
        path = self.folder / disk.file
        try:
            found = path.stat()
        except FileNotFoundError:
            raise ProviderError(Code.NOT_FOUND, f"there is no disk {disk.name}") from None
        stamp = (found.st_ino, self.running or found.st_mtime_ns)
        known = self.images.get(disk.name)
        if known is None or known[0] != stamp:
            known = self.images[disk.name] = (stamp, await tools.info(path, "qcow2"))
        return known[1]

    # --- the process -------------------------------------------------------------------

    def _locked(self) -> int | None:
        """A handle that holds the lock, or None while a process holds it."""
        handle = os.open(self.folder / launch.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    def alive(self) -> bool:
        """Whether a process of the machine exists."""
        handle = self._locked()
        if handle is None:
            return True
        os.close(handle)
        return False

    async def _until_gone(self, seconds: float) -> bool:
        """Wait for the end of the process; it has no parent here that could be asked."""
        for _ in range(max(1, int(seconds / 0.05))):
            if not self.alive():
                return True
            await asyncio.sleep(0.05)
        return not self.alive()

    async def start(self, acceleration: launch.Acceleration, resume: str = "") -> None:
        """Start the machine, unless it runs; `resume` is the memory snapshot from which it goes on."""
        if self.running:
            return
        if not await self._until_gone(0.5 if self.record.crashed else SETTLING / 5) and await self.attach():
            return
        handle = self._locked()
        if handle is None:
            raise ProviderError(Code.RETRYABLE, f"the last QEMU process of {self.record.name} has not ended yet")
        try:
            for name in (launch.QMP, launch.AGENT, launch.PID):
                (self.folder / name).unlink(missing_ok=True)
            line = launch.arguments(self.record, self.folder, acceleration, resume=resume)
            with (self.folder / launch.ERRORS).open("wb") as errors:
                # No pipes: the process that stays would keep them open.
                process = await asyncio.create_subprocess_exec(
                    PROGRAM,
                    *line,
                    cwd=self.folder,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                    pass_fds=(handle,),
                )
        finally:
            os.close(handle)
        if await process.wait() != 0:
            said = (self.folder / launch.ERRORS).read_text(errors="replace").splitlines()
            lines = [one for one in said if "warning" not in one]
            words = lines[-1].removeprefix(f"{PROGRAM}: ") if lines else f"status {process.returncode}"
            code = Code.QUOTA if "allocate memory" in words else Code.INTERNAL
            raise ProviderError(code, f"QEMU cannot start {self.record.name}: {words}")
        if not await self.attach():
            raise ProviderError(Code.INTERNAL, f"QEMU started {self.record.name} and ended at once")
        if self.record.crashed:
            self.record.crashed = ""
            self.save()

    async def attach(self) -> bool:
        """Connect to the process if there is one; False if there is none."""
        self._shut_down = False
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLING
        while True:
            if not self.alive():
                return False
            try:
                self.qmp = await Qmp.connect(self.folder / launch.QMP, self._event, max(0.1, deadline - loop.time()))
                break
            except (OSError, TimeoutError, QmpError):
                if loop.time() >= deadline:
                    words = f"the QEMU process of {self.record.name} does not answer"
                    raise ProviderError(Code.INTERNAL, words) from None
            await asyncio.sleep(0.1)  # nothing announces that its socket listens
        self.qmp.closed.add_done_callback(lambda _: self._ended())
        with contextlib.suppress(QmpError):
            found = await self.qmp.command("query-vnc")
            self.vnc = f"vnc://{found['host']}:{found['service']}" if found.get("enabled") else ""
        return True

    def _event(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "SHUTDOWN":
                self._shut_down = True
            case "GUEST_PANICKED":
                self.record.crashed = "the guest's kernel panicked"
            case "RESET":
                self.ips, self.agent_open = (), False
            case "VSERPORT_CHANGE" if data.get("id") == "agent-port":
                self.agent_open = bool(data.get("open"))
                self.ips_at = float("-inf")
            case "JOB_STATUS_CHANGE" if data.get("status") in ("concluded", "null"):
                job = self.jobs.get(str(data.get("id")))
                if job is not None:
                    job.set()
            case _:
                return

    def _ended(self) -> None:
        self.qmp, self.ips, self.agent_open, self.vnc = None, (), False, ""
        for job in self.jobs.values():
            job.set()
        if not self._shut_down and self.folder.is_dir():
            self.record.crashed = self.record.crashed or "QEMU ended unexpectedly"
        if self.record.crashed and self.folder.is_dir():
            log.warning("machine ended", extra={"fields": {"machine": self.record.name, "why": self.record.crashed}})
            with contextlib.suppress(OSError):
                self.save()

    async def stop(self, graceful_seconds: float = 0.0) -> None:
        """Stop the machine: ask the guest first if there is time for that, then end the process."""
        if not self.alive():
            return
        if self.qmp is None:
            with contextlib.suppress(ProviderError):
                await self.attach()
        qmp = self.qmp
        if qmp is not None and graceful_seconds > 0:
            with contextlib.suppress(QmpError, TimeoutError):
                await qmp.command("system_powerdown")
                await asyncio.wait({qmp.closed}, timeout=graceful_seconds)
        if qmp is not None and not qmp.closed.done():
            self._shut_down = True
            with contextlib.suppress(QmpError, TimeoutError):
                await qmp.command("quit", 5.0)
            await asyncio.wait({qmp.closed}, timeout=5)
        if not await self._until_gone(5):
            self._kill()
            if not await self._until_gone(SETTLING):
                raise ProviderError(Code.INTERNAL, f"the QEMU process of {self.record.name} cannot be ended")

    def _kill(self) -> None:
        """End the process; the number in the file is that of the process which holds the lock."""
        with contextlib.suppress(OSError, ValueError):
            number = int((self.folder / launch.PID).read_text())
            if self.alive():
                os.kill(number, signal.SIGKILL)

    async def close(self) -> None:
        """Leave the machine running."""
        if self.qmp is not None:
            self._shut_down = True
            await self.qmp.close()

    # --- questions ---------------------------------------------------------------------

    async def command(self, execute: str, timeout: float | None = 60.0, /, **arguments: Any) -> Any:
        if self.qmp is None:
            raise ProviderError(Code.CONFLICT, f"machine {self.record.name} does not run")
        try:
            return await self.qmp.command(execute, timeout, **arguments)
        except QmpError as error:
            if error.kind == "Closed":
                raise ProviderError(Code.CONFLICT, f"machine {self.record.name} stopped meanwhile") from None
            raise ProviderError(Code.INTERNAL, f"QEMU refused {execute} for {self.record.name}: {error}") from None
        except TimeoutError:
            raise ProviderError(Code.RETRYABLE, f"QEMU did not answer {execute} for {self.record.name}") from None

    async def agent(self, execute: str, timeout: float = 2.0, /, **arguments: Any) -> Any:
        """Ask the guest agent."""
        try:
            return await ask_agent(self.folder / launch.AGENT, execute, timeout, **arguments)
        except (QmpError, TimeoutError, OSError):
            raise ProviderError(
                Code.CONFLICT, f"the guest agent of machine {self.record.name} does not answer"
            ) from None

    async def addresses(self, now: float) -> tuple[str, ...]:
        """The addresses that the guest agent reports; asked again after a while, or if there are none yet."""
        if not self.running:
            return ()
        if now < self.ips_at + (30.0 if self.ips else 1.0):
            return self.ips
        self.ips_at = now
        with contextlib.suppress(ProviderError):
            found = await self.agent("guest-network-get-interfaces", 1.0)
            self.agent_open = True
            self.ips = tuple(
                address["ip-address"]
                for interface in found or ()
                if interface.get("name") != "lo"
                for address in interface.get("ip-addresses", ())
                if not address["ip-address"].startswith("fe80:")
            )
        return self.ips

    async def job(self, id: str, execute: str, **arguments: Any) -> None:
        """Run a job of QEMU to its end; one of the same name that runs already is waited for."""
        ended = self.jobs.setdefault(id, asyncio.Event())
        try:
            listed = {one["id"]: one for one in await self.command("query-jobs")}
            if id not in listed:
                await self.command(execute, job_id=id, **arguments)
            elif listed[id]["status"] == "concluded":
                ended.set()
            await ended.wait()
            listed = {one["id"]: one for one in await self.command("query-jobs", None)}
            error = listed.get(id, {}).get("error", "")
            if id in listed:
                await self.command("job-dismiss", id=id)
            if error:
                raise ProviderError(Code.INTERNAL, f"QEMU: {error}")
        finally:
            self.jobs.pop(id, None)
