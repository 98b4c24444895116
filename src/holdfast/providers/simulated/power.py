"""The power of simulated machines, and what runs in their guests."""

from __future__ import annotations

from holdfast.providers.contract import (
    Code,
    PowerOp,
    ProviderError,
    Task,
)
from holdfast.providers.simulated.records import MachineRecord, TaskRecord
from holdfast.providers.simulated.tasks import Tasks
from holdfast.providers.simulated.world import any_match


class Power(Tasks):
    """The power of machines."""

    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None:
        answer = await self._call("power", self._name(id))
        record = self._known(id)
        is_on = record.power == "On"
        task = None
        if not self._idle(id) or op == "Reboot" or is_on != (op == "On"):
            seconds = {
                "On": self.latencies.power_on,
                "Off": self.latencies.power_off,
                "Reboot": self.latencies.power_off + self.latencies.power_on,
                "ShutdownGraceful": float(graceful_seconds)
                if any_match(self.world.stubborn, record.name)
                else min(self.latencies.shutdown, graceful_seconds),
            }[op]
            task = await self._start("power", record.name, id, seconds, args={"op": op})
        answer()
        return task

    async def _do_power(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        if task.args["op"] == "Reboot" and record.power != "On":
            raise ProviderError(Code.CONFLICT, f"machine {record.name} is off and cannot be rebooted")
        self._set_power(record, "On" if task.args["op"] in ("On", "Reboot") else "Off", task.end)
        self._save(record)

    def _set_power(self, record: MachineRecord, power: str, at: float) -> None:
        record.power, record.powered_at, record.crashed = power, at, False

    def _boots_for(self, record: MachineRecord) -> float | None:
        """For how long the guest still starts; None where it does not."""
        if record.power != "On" or self._booted(record) or any_match(self.world.no_agent, record.name):
            return None
        return record.powered_at + self.latencies.boot - self._now()

    def _booted(self, record: MachineRecord) -> bool:
        return record.power == "On" and self._now() >= record.powered_at + self.latencies.boot

    def _ips(self, record: MachineRecord) -> tuple[str, ...]:
        if not self._booted(record) or any_match(self.world.no_agent, record.name):
            return ()
        number = record.number
        own = f"10.{64 + number // 62500 % 128}.{number // 250 % 250}.{number % 250 + 1}"
        return tuple(nic.static_ip or own for nic in record.nics) or (own,)

    async def execute(self, id: str, command: tuple[str, ...], timeout_seconds: int = 60) -> None:
        answer = await self._call("execute", self._name(id))
        record = self._known(id)
        self._can(self.answers.guest_commands, "commands in guests")
        if not self._booted(record) or any_match(self.world.no_agent, record.name):
            raise ProviderError(Code.CONFLICT, f"the guest agent of machine {record.name} does not answer")
        self.commands.append((record.name, command))
        answer()
