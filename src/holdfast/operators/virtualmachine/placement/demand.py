"""Whether a VirtualMachine needs a place, and the place that its VMPlacementPolicy chose."""

from __future__ import annotations

from typing import Final

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud.clones import ClonePhase, VMClone, VMCloneStatus
from holdfast.kinds.virtrigaud.machines import (
    Operation,
    OperationType,
    PlacementStatus,
    VirtualMachine,
    VirtualMachineStatus,
)
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.reasons import MachineReason

PLACED: Final = "Placed"
UNPLACEABLE: Final = "Unplaceable"

_ELSEWHERE: Final = frozenset(
    {MachineReason.QUOTA, MachineReason.REFUSED, MachineReason.NOT_FOUND, MachineReason.CONFLICT}
)
"""Failures of a creation that another host may not have."""


def needs_place(obj: Object, machine: VirtualMachine) -> bool:
    """Whether a place must be chosen before the machine is created.

    A choice is made once: for a machine that does not exist, and again if its spec or its policy is another one, or
    if the provider could not create it there.
    """
    reference, status = machine.spec.placement_ref, machine.status or VirtualMachineStatus()
    if reference is None or obj.deleting or is_adopted(obj):
        return False
    chosen = status.placement
    if chosen is None or chosen.phase is None:
        return not status.id
    if _failures(status) > (chosen.failures or 0):
        return True
    valid = chosen.policy == reference.name and chosen.machine_generation == obj.meta.generation
    return not status.id and not (valid and chosen.phase == PLACED)


def clone_needs_place(obj: Object, clone: VMClone) -> bool:
    """Whether a place must be chosen before a machine or a snapshot is cloned."""
    status = clone.status or VMCloneStatus()
    if not is_open(obj, clone) or status.target_vm_id:
        return False
    found = status.placement
    if found is None or clone_failures(clone) > (found.failures or 0):
        return True
    reference = clone.spec.target.placement_ref
    valid = reference is not None and found.policy == reference.name
    return not (valid and found.phase == PLACED and found.machine_generation == obj.meta.generation)


def is_open(obj: Object, clone: VMClone) -> bool:
    """Whether a clone has a policy and is not a machine yet; one of an image is placed as its machine."""
    source, phase = clone.spec.source, clone.status.phase if clone.status else None
    copies = source.vm_ref is not None or source.snapshot_ref is not None
    has_policy = clone.spec.target.placement_ref is not None
    return has_policy and copies and not obj.deleting and phase is not ClonePhase.READY


def clone_failures(clone: VMClone) -> int:
    """How often the clone could not be made for a reason that another host may not have."""
    failed = clone.status.failed if clone.status else None
    return failed.count if failed is not None and failed.reason in _ELSEWHERE else 0


def is_adopted(obj: Object) -> bool:
    return obj.meta.labels.get(names.ADOPTED) == "true" or names.ADOPT_ID in obj.meta.annotations


def chosen(machine: VirtualMachine) -> PlacementStatus | None:
    """The place that a policy chose for a machine."""
    found = machine.status.placement if machine.status else None
    return found if found is not None and found.phase == PLACED else None


def is_elsewhere(machine: VirtualMachine, failed: Operation) -> bool:
    """Whether another host was chosen since a creation failed."""
    found = chosen(machine)
    if found is None or failed.type is not OperationType.CREATE:
        return False
    return found.failures == failed.failures and found.host not in found.failed_hosts


def failed_host(machine: VirtualMachine) -> str:
    """The host on which the provider could not create the machine, where the choice does not know of it yet."""
    status = machine.status or VirtualMachineStatus()
    found = chosen(machine)
    if found is None or _failures(status) <= (found.failures or 0):
        return ""
    return found.host or ""


def failures(machine: VirtualMachine) -> int:
    return _failures(machine.status or VirtualMachineStatus())


def _failures(status: VirtualMachineStatus) -> int:
    """How often the machine could not be created for a reason that another host may not have."""
    operation = status.operation
    if operation is None or operation.type is not OperationType.CREATE or operation.task_ref:
        return 0
    return operation.failures or 0 if operation.reason in _ELSEWHERE else 0
