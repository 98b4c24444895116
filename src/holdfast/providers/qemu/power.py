"""Machines that are started and stopped, and commands in their guests."""

from __future__ import annotations

import asyncio
import base64
from typing import Final

from holdfast.providers.contract import (
    Code,
    PowerOp,
    ProviderError,
    Task,
)
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.records import (
    TaskRecord,
)
from holdfast.providers.qemu.tasks import Tasks

HOT_FACTOR: Final = 4
"""How many times its CPUs and memory a machine may have that can be grown while it runs."""
MOST_CPUS: Final = 64


class Power(Tasks):
    """The power of machines."""

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
                    await asyncio.sleep(0.2)  # the agent has no event for the end of a command
        except TimeoutError:
            raise ProviderError(
                Code.CONFLICT, f"{command[0]} in machine {name} has not ended after {timeout_seconds} s"
            ) from None
        if state.get("exitcode", 0) or state.get("signal"):
            printed = b"".join(base64.b64decode(state.get(key, "")) for key in ("out-data", "err-data"))
            said = printed.decode(errors="replace").strip()[-500:]
            ended = f"status {state.get('exitcode')}" if "exitcode" in state else f"signal {state.get('signal')}"
            raise ProviderError(Code.CONFLICT, f"{command[0]} in machine {name} ended with {ended}: {said}")
