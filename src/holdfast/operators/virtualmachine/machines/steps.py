"""The steps that rules lead to: what is done for a VirtualMachine, and how it is shown meanwhile.  Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from holdfast.kernel.outcomes import Done, Outcome
from holdfast.kinds.virtrigaud.guests import LifecycleHandler
from holdfast.kinds.virtrigaud.machines import Operation, OperationType, PowerState, VirtualMachinePhase
from holdfast.meta import times
from holdfast.operators.virtualmachine import pacing
from holdfast.operators.virtualmachine.machines.facts import Facts
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.providers.contract import Change, Machine
from holdfast.runtime.decisions import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the provider, and what it brings about."""

    type: OperationType
    machine: Machine | None = None
    change: Change | None = None
    snapshot: str = ""
    handler: LifecycleHandler | None = None
    graceful_seconds: int = 60
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done next, and how it is shown.

    phase      the phase of the machine meanwhile
    settled    the machine is as its spec asks for
    operation  what the status records as being done, or as failed
    pending    changes that wait, in sentences
    drift      what was changed by other means
    finalized  of a deletion: the provider has confirmed it
    """

    phase: VirtualMachinePhase
    reason: MachineReason
    message: str
    call: Call | None = None
    outcome: Outcome = field(default_factory=Done)
    settled: bool = False
    operation: Operation | None = None
    pending: tuple[str, ...] = ()
    drift: str = ""
    finalized: bool = False
    notices: tuple[Notice, ...] = ()


def _phase(facts: Facts) -> VirtualMachinePhase:
    """The phase of a machine that waits: as it is, or Pending until it exists."""
    match facts.power:
        case PowerState.ON:
            return VirtualMachinePhase.PROVISIONING if facts.first else VirtualMachinePhase.RUNNING
        case PowerState.OFF:
            return VirtualMachinePhase.PROVISIONING if facts.first else VirtualMachinePhase.STOPPED
        case _:
            before = facts.world.before
            known = before.phase if before.id else None
            return known or VirtualMachinePhase.PENDING


def waits(facts: Facts, reason: MachineReason, message: str) -> Step:
    return Step(phase=_phase(facts), reason=reason, message=message, operation=facts.failed)


def fails(facts: Facts, reason: MachineReason, message: str) -> Step:
    return Step(phase=VirtualMachinePhase.FAILED, reason=reason, message=message, operation=facts.failed)


def refuses(facts: Facts, message: str) -> Step:
    """The spec asks a machine that runs for something impossible: it runs on as it is."""
    return Step(phase=_phase(facts), reason=MachineReason.INVALID_SPEC, message=message)


_REASONS: Final = {
    OperationType.CREATE: MachineReason.CREATING,
    OperationType.DELETE: MachineReason.DELETING,
    OperationType.POWER_ON: MachineReason.STARTING,
    OperationType.POWER_OFF: MachineReason.STOPPING,
    OperationType.SHUTDOWN: MachineReason.STOPPING,
    OperationType.REBOOT: MachineReason.REBOOTING,
    OperationType.RECONFIGURE: MachineReason.UPDATING,
    OperationType.REVERT: MachineReason.REVERTING,
    OperationType.PRE_STOP: MachineReason.RUNNING_HOOK,
    OperationType.POST_START: MachineReason.RUNNING_HOOK,
}

_DOING: Final = {
    OperationType.CREATE: "the provider creates the machine",
    OperationType.DELETE: "the provider deletes the machine",
    OperationType.POWER_ON: "the machine is being started",
    OperationType.POWER_OFF: "the machine is being stopped",
    OperationType.SHUTDOWN: "the guest is shutting down",
    OperationType.REBOOT: "the machine is being rebooted",
    OperationType.RECONFIGURE: "the provider changes the hardware of the machine",
    OperationType.REVERT: "the machine goes back to a snapshot",
    OperationType.PRE_STOP: "the hook before the stop runs",
    OperationType.POST_START: "the hook after the start runs",
}

WORDS: Final = {
    OperationType.CREATE: "creating the machine",
    OperationType.DELETE: "deleting the machine",
    OperationType.POWER_ON: "starting the machine",
    OperationType.POWER_OFF: "stopping the machine",
    OperationType.SHUTDOWN: "shutting down the machine",
    OperationType.REBOOT: "rebooting the machine",
    OperationType.RECONFIGURE: "changing the hardware of the machine",
    OperationType.REVERT: "reverting the machine",
    OperationType.PRE_STOP: "the hook before the stop",
    OperationType.POST_START: "the hook after the start",
}


def works(facts: Facts, type: OperationType) -> Step:
    """An operation that is under way."""
    if facts.world.object.deleting:
        phase = VirtualMachinePhase.DELETING
    elif type is OperationType.CREATE or facts.first:
        phase = VirtualMachinePhase.PROVISIONING
    else:
        phase = VirtualMachinePhase.RECONFIGURING
    return Step(phase=phase, reason=_REASONS[type], message=_DOING[type])


def calls(facts: Facts, call: Call) -> Step:
    return replace(works(facts, call.type), call=call)


def began(facts: Facts, type: OperationType) -> str:
    recorded = facts.world.operation
    same = recorded is not None and recorded.type is type
    return (recorded.start_time if recorded is not None and same else None) or times.format(facts.now)


def started(facts: Facts, call: Call, task: str) -> Operation:
    """The operation of a call whose task has begun."""
    failed = facts.failed
    same = failed is not None and failed.type is call.type
    return Operation(
        type=call.type,
        task_ref=task or None,
        start_time=began(facts, call.type),
        details=call.details,
        failures=failed.failures if failed is not None and same else None,
    )


def due_at(facts: Facts, failed: Operation) -> datetime:
    """When an operation that failed is tried again."""
    return (times.read(failed.last_failure_time) or facts.now) + pacing.BACKOFF.delay(failed.failures or 1)


def tried_lately(facts: Facts, type: OperationType) -> bool:
    failed = facts.failed
    if failed is None or failed.type is not type or not facts.is_observed:
        return False
    return facts.now < due_at(facts, failed)


def is_done(facts: Facts, type: OperationType) -> bool:
    return any(each.type is type for each in facts.done)
