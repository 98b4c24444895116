"""The status of a VirtualMachine: from the facts of a pass and its step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.kernel.conditions import Verdict
from holdfast.kinds.virtrigaud.machines import Operation, OperationType, VirtualMachinePhase
from holdfast.meta import times
from holdfast.operators.virtualmachine.machines.facts import Facts
from holdfast.operators.virtualmachine.machines.steps import Step
from holdfast.operators.virtualmachine.reasons import MachineReason, advised
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced, Invalid, wire

INVALID: Final = Invalid(conditions={"Ready": False}, fields={"phase": VirtualMachinePhase.FAILED.value})

ANNOUNCED: Final[Announced] = {
    ("Ready", "True"): "Normal",
    ("Drifted", "True"): "Warning",
    ("Provisioning", "True"): "Normal",
    ("Deleting", "True"): "Normal",
}

_DETAILS: Final = 50
"""How many details in the provider's own words are kept."""

_EVENTS: Final = {
    OperationType.REBOOT: (MachineReason.REBOOTED, "the machine was rebooted"),
    OperationType.REVERT: (MachineReason.REVERTED, "the machine was reverted to a snapshot"),
    OperationType.RECONFIGURE: (MachineReason.UPDATING, "the hardware of the machine was changed"),
    OperationType.POST_START: (MachineReason.HOOK_DONE, "the hook after the start succeeded"),
    OperationType.PRE_STOP: (MachineReason.HOOK_DONE, "the hook before the stop succeeded"),
}


def report(facts: Facts, step: Step) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events that follow from it."""
    said, turned = status.report(
        facts.world.object, _verdicts(facts, step), now=facts.now, fields=_fields(facts, step), announced=ANNOUNCED
    )
    failing = () if step.settled or not _is_new(facts, step) else tuple(_troubles(step))
    return said, (*step.notices, *_ended(facts), *failing, *turned)


def _fields(facts: Facts, step: Step) -> dict[str, Any]:
    world, before, found = facts.world, facts.world.before, facts.description
    exists = found is not None and found.exists
    operation = step.operation
    task = operation.task_ref if operation else None
    size = facts.size if world.id else None
    reconfigured = any(each.type is OperationType.RECONFIGURE for each in facts.done)
    is_reconfiguring = operation is not None and operation.type is OperationType.RECONFIGURE
    return {
        "id": world.id or None,
        "powerState": facts.power.value if facts.power else (before.power_state if world.id and not exists else None),
        "phase": step.phase.value,
        "message": advised(step.reason, step.message),
        "ips": list(found.ips if found is not None and exists else before.ips) or None,
        "consoleURL": (found.console_url if found is not None and exists else before.console_url) or None,
        "lastTaskRef": task or before.last_task_ref,
        "reconfigureTaskRef": task if is_reconfiguring else None,
        "lastReconfigureTime": times.format(facts.now) if reconfigured else before.last_reconfigure_time,
        "currentResources": None if size is None else {"cpu": size.cpus, "memoryMiB": size.memory_mib},
        "snapshots": _snapshots(facts),
        "provider": _details(facts),
        "boundProvider": _bound(facts),
        "placement": _placement(facts),
        "operation": None if operation is None else wire(operation),
        "currentDisks": [{"name": name, "sizeGiB": size} for name, size in sorted(facts.disks.items())] or None,
        "pendingChanges": list(step.pending) or None,
        "revertedTo": facts.reverted_to,
        "rebootedFor": facts.rebooted_for,
        "heldFor": facts.held_for,
    }


def _snapshots(facts: Facts) -> list[dict[str, Any]] | None:
    return [wire(each) for each in facts.world.snapshots] or None


def _details(facts: Facts) -> dict[str, str] | None:
    found = facts.description
    if found is None or not found.exists:
        return facts.world.before.provider or None
    return dict(sorted(found.raw.items())[:_DETAILS]) or None


def _bound(facts: Facts) -> dict[str, str] | None:
    """The Provider on which the id means something."""
    world = facts.world
    if not world.id:
        return None
    if world.before.bound_provider is not None:
        return wire(world.before.bound_provider)
    if world.provider is None:
        return None
    key = world.provider[0].key
    return {"namespace": key.namespace, "name": key.name, "uid": world.provider[0].uid}


def _placement(facts: Facts) -> dict[str, Any] | None:
    world, found, before = facts.world, facts.description, facts.world.before.placement
    if before is not None and before.phase is not None and world.machine.spec.placement_ref is not None:
        # The policy chose; only the host may be another one since.
        moved = found is not None and found.host and found.host != before.host
        return {**wire(before), "host": found.host} if found is not None and moved else wire(before)
    if not world.id:
        return None
    asked = world.machine.spec.placement
    defaults = world.provider[1].spec.defaults if world.provider else None
    host = found.host if found is not None else ""
    kept = {} if before is None else wire(before)
    created = any(each.type is OperationType.CREATE for each in facts.done)
    chosen = {
        "cluster": (asked and asked.cluster) or (defaults and defaults.cluster) or None,
        "host": host or (asked and asked.host) or None,
        "datastore": (asked and asked.datastore) or (defaults and defaults.datastore) or None,
    }
    if not any(chosen.values()) and not kept:
        return None
    kept |= {name: value for name, value in chosen.items() if value}
    kept.setdefault("reason", "spec.placement" if asked is not None else "chosen by the provider")
    if created or "lastScheduledTime" not in kept:
        kept["lastScheduledTime"] = times.format(facts.now)
    return kept


# --- conditions


def _verdicts(facts: Facts, step: Step) -> dict[str, Verdict]:
    message = advised(step.reason, step.message)
    ready = Verdict.true(step.reason, message) if step.settled else Verdict.false(step.reason, message)
    return {
        "Ready": ready,
        "Provisioning": _provisioning(facts, step, message),
        "Reconfiguring": _reconfiguring(step, message),
        "Deleting": Verdict.true(MachineReason.DELETING, message)
        if facts.world.object.deleting
        else Verdict.false(MachineReason.NOT_DELETING, "the machine is not being deleted"),
        "Drifted": _drifted(facts, step),
    }


def _provisioning(facts: Facts, step: Step, message: str) -> Verdict:
    if step.phase is VirtualMachinePhase.PROVISIONING:
        return Verdict.true(step.reason, message)
    if not facts.world.id or not (facts.exists or facts.world.before.id):
        return Verdict.false(step.reason, message)
    return Verdict.false(MachineReason.NOT_PROVISIONING, "the machine exists")


def _reconfiguring(step: Step, message: str) -> Verdict:
    if step.phase is VirtualMachinePhase.RECONFIGURING:
        return Verdict.true(step.reason, message)
    if step.settled and step.pending:
        text = advised(MachineReason.RESTART_REQUIRED, f"changes wait: {'; '.join(step.pending)}")
        return Verdict.false(MachineReason.RESTART_REQUIRED, text)
    return Verdict.false(MachineReason.NOT_RECONFIGURING, "the hardware and the power state are not being changed")


def _drifted(facts: Facts, step: Step) -> Verdict:
    if not step.drift:
        return Verdict.false(MachineReason.NO_DRIFT, "the machine was not changed by other means")
    if facts.world.machine.spec.drift_policy == "Report":
        return Verdict.true(MachineReason.DRIFTED, advised(MachineReason.DRIFTED, step.drift))
    return Verdict.true(MachineReason.HEALING, f"{step.drift}; it is changed back")


# --- Events


def _ended(facts: Facts) -> Iterator[Notice]:
    for operation in facts.done:
        if operation.type in _EVENTS:
            reason, message = _EVENTS[operation.type]
            yield Notice(reason=reason.value, message=_with_details(operation, message))


def _with_details(operation: Operation, message: str) -> str:
    if operation.type is not OperationType.RECONFIGURE:
        return message
    return f"{message}: {', '.join(f'{name} {value}' for name, value in sorted(operation.details.items()))}"


def _is_new(facts: Facts, step: Step) -> bool:
    before = next((each for each in facts.world.before.conditions if each.type == "Ready"), None)
    return before is None or before.reason != step.reason.value


def _troubles(step: Step) -> Iterator[Notice]:
    """An Event when a machine begins to wait for a user."""
    failed = step.operation is not None and step.operation.failures
    if step.phase is VirtualMachinePhase.FAILED or step.reason is MachineReason.INVALID_SPEC or failed:
        yield Notice(type="Warning", reason=step.reason.value, message=advised(step.reason, step.message))
