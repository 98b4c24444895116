"""The facts of one pass over a VirtualMachine: the world, with what operations have brought about.

An operation is recorded in the status when its task begins, with what it brings about (`Operation.details`).  When
the task is done, that is true of the machine, also where the provider does not report it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec

from holdfast.kinds.virtrigaud.machines import Operation, OperationType, PowerState, VirtualMachinePhase
from holdfast.meta import times
from holdfast.operators.virtualmachine import names, pacing
from holdfast.operators.virtualmachine.machines import render
from holdfast.operators.virtualmachine.machines.observe import World, is_true
from holdfast.operators.virtualmachine.machines.render import Size
from holdfast.operators.virtualmachine.reasons import OF_CODE
from holdfast.providers.contract import Code, Description, ProviderError, TaskState

CPU: Final = "cpu"
MEMORY: Final = "memoryMiB"
DISK: Final = "disk/"
SNAPSHOT: Final = "snapshot"
REQUEST: Final = "request"
HOLD: Final = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    world    what is known
    now      the time
    done     the operations that ended well in this pass
    running  the operation whose task is under way, and how far it is
    failed   the operation that failed last and is tried again
    tried    whether it failed in this pass
    """

    world: World
    now: datetime
    done: tuple[Operation, ...] = ()
    running: tuple[Operation, TaskState] | None = None
    failed: Operation | None = None
    tried: bool = False

    @property
    def description(self) -> Description | None:
        return self.world.found.description

    @property
    def exists(self) -> bool:
        return self.description is not None and self.description.exists

    @property
    def power(self) -> PowerState | None:
        """Whether the machine runs; None where that is not known."""
        if self.description is None or not self.description.exists:
            return None
        words = {"on": PowerState.ON, "poweredon": PowerState.ON, "off": PowerState.OFF, "poweredoff": PowerState.OFF}
        return words.get(self.description.power.lower())

    @property
    def wanted_power(self) -> PowerState:
        """On or Off: OffGraceful is Off once it is reached.  A machine that is being migrated is off."""
        if self.hold:
            return PowerState.OFF
        asked = self.world.machine.spec.power_state or PowerState.ON
        return PowerState.ON if asked is PowerState.ON else PowerState.OFF

    @property
    def first(self) -> bool:
        """Whether the machine has never been as its spec asks for."""
        return self.world.before.phase in (None, VirtualMachinePhase.PENDING, VirtualMachinePhase.PROVISIONING)

    @property
    def size(self) -> Size | None:
        """The processors and the memory of the machine; None where they are not known."""
        recorded, found = self.world.before.current_resources, self.description
        cpus = recorded.cpu if recorded else None
        memory = recorded.memory_mib if recorded else None
        for operation in self.done:
            cpus = int(operation.details.get(CPU, cpus or 0)) or None
            memory = int(operation.details.get(MEMORY, memory or 0)) or None
        if found is not None and found.exists:
            cpus, memory = found.cpus or cpus, found.memory_mib or memory
        return None if cpus is None or memory is None else Size(cpus, memory)

    @property
    def disks(self) -> Mapping[str, int]:
        """The sizes of the disks beside the root disk, in GiB, by name."""
        found = {each.name: each.size_gib for each in self.world.before.current_disks}
        for operation in self.done:
            made = {name: size for name, size in operation.details.items() if name.startswith(DISK)}
            if operation.type is OperationType.CREATE:
                found = {}
            found |= {name.removeprefix(DISK): int(size) for name, size in made.items()}
        return found

    @property
    def reverted_to(self) -> str | None:
        """The snapshot that the machine was reverted to, while the spec still asks for one."""
        spec = self.world.machine.spec.snapshot
        if spec is None or spec.revert_to_ref is None:
            return None
        return self._latest(SNAPSHOT, self.world.before.reverted_to)

    @property
    def rebooted_for(self) -> str | None:
        return self._latest(REQUEST, self.world.before.rebooted_for)

    @property
    def hold(self) -> str:
        """The migration that keeps the machine off; empty where none does."""
        return self.world.object.meta.annotations.get(names.MIGRATION_HOLD, "")

    @property
    def held_for(self) -> str | None:
        """The hold for which the machine was stopped, while it lasts."""
        return self._latest(HOLD, self.world.before.held_for) if self.hold else None

    def _latest(self, detail: str, before: str | None) -> str | None:
        return next((each.details[detail] for each in reversed(self.done) if detail in each.details), before)

    @property
    def is_observed(self) -> bool:
        """Whether what the status says, and what failed, is of this generation of the spec."""
        return self.tried or self.world.before.observed_generation == self.world.object.meta.generation

    @property
    def drift(self) -> str:
        """What was changed by other means than the spec; empty if nothing was.

        A difference is drift if the machine had been as the spec asks for since the spec last changed.
        """
        before = self.world.before
        reported = is_true(self.world.object, "Drifted")
        if not self.is_observed or before.operation is not None or self.done or self.description is None:
            return ""
        if not (is_true(self.world.object, "Ready") or reported):
            return ""
        if (before.held_for or "") != self.hold:
            # A migration has just begun to keep the machine off, or has released it.
            return ""
        if not self.exists:
            return "the machine no longer exists on its provider"
        if self.power is not None and self.power is not self.wanted_power:
            return f"the machine is {self.power}, and spec.powerState asks for {self.wanted_power}"
        wanted = None if self.world.vm_class is None else render.size(self.world)
        recorded = before.current_resources
        same_class = recorded is not None and wanted == Size(recorded.cpu or 0, recorded.memory_mib or 0)
        if wanted is not None and self.size not in (None, wanted) and (same_class or reported):
            return f"the machine has {self.size}, and its spec asks for {wanted}"
        return ""


def facts_of(world: World, now: datetime, done: tuple[Operation, ...] = ()) -> Facts:
    """The facts, with what the provider says of the task of the recorded operation."""
    facts, operation, state = Facts(world=world, now=now, done=done), world.operation, world.found.task
    if done or operation is None:
        return facts
    if operation.task_ref is None or world.found.error is not None:
        return replace(facts, failed=operation if operation.failures else None)
    if state is None:
        return facts
    if not state.done:
        return replace(facts, running=(progressed(operation, state, now), state))
    if state.lost:
        # The provider does not know the task any more: the machine itself shows what came of it.
        return facts
    if not state.error:
        return replace(facts, done=(operation,))
    return replace(facts, failed=failed(operation, ProviderError(state.code or Code.INTERNAL, state.error), now))


def progressed(operation: Operation, state: TaskState, now: datetime) -> Operation:
    """An operation with the progress of its task, which is recorded only so often."""
    last = times.read(operation.progress_time)
    if last is not None and now < last + pacing.recording(start_of(operation, now), now):
        return operation
    return msgspec.structs.replace(operation, percentage=state.percentage, progress_time=times.format(now))


def start_of(operation: Operation, now: datetime) -> datetime:
    """When an operation began: now, if that is not recorded yet."""
    return times.read(operation.start_time) or now


def failed(operation: Operation, error: ProviderError, now: datetime) -> Operation:
    """An operation that failed once more."""
    return msgspec.structs.replace(
        operation,
        task_ref=None,
        percentage=None,
        failures=(operation.failures or 0) + 1,
        last_failure_time=times.format(now),
        reason=OF_CODE[error.code].value,
        message=error.message,
    )
