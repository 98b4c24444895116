"""The deletion of a machine, which its provider confirms.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from holdfast.kernel.outcomes import Again, until
from holdfast.kinds.virtrigaud.machines import OperationType, PowerState, VirtualMachinePhase
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.machines.facts import Facts
from holdfast.operators.virtualmachine.machines.operations import running
from holdfast.operators.virtualmachine.machines.steps import Call, Step, calls, due_at, is_done
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.runtime.decisions import Notice


def gone(facts: Facts) -> Step | None:
    """The provider has confirmed that there is no machine, or there never was one."""
    world = facts.world
    unknown = not world.id and (world.target is None or world.found.error is None)
    absent = facts.description is not None and not facts.description.exists
    if unknown or absent:
        return _deletes(facts, "the machine is deleted", finalized=True)
    return None


def forced(facts: Facts) -> Step | None:
    """The annotation that has it removed counts once the provider could not delete the machine."""
    world = facts.world
    if world.object.meta.annotations.get(names.FORCE_DELETE) != "true":
        return None
    stuck = world.provider is None or world.target is None or world.found.error is not None or facts.failed is not None
    if not stuck:
        return None
    message = f"the provider has not confirmed that the machine {world.id} is deleted; it may still exist there"
    notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
    return replace(_deletes(facts, message, finalized=True), notices=(notice,))


def unreachable(facts: Facts) -> Step | None:
    world = facts.world
    hint = f"the annotation {names.FORCE_DELETE}=true removes the VirtualMachine without the machine being deleted"
    if world.provider is None or world.target is None:
        name = world.machine.spec.provider_ref.name
        what = "does not exist" if world.provider is None else "has no process"
        return _deletes(facts, f"Provider {name} {what}, so the machine {world.id} cannot be deleted; {hint}")
    error = world.found.error
    if error is None:
        return None
    step = _deletes(facts, f"the provider was asked about the machine: {error.message}; {hint}")
    return replace(step, outcome=Again(timedelta(seconds=15), "the provider is asked again"))


def under_way(facts: Facts) -> Step | None:
    return running(facts) if facts.running and facts.running[0].type is OperationType.DELETE else None


def failing(facts: Facts) -> Step | None:
    failed = facts.failed
    if failed is None or failed.type is not OperationType.DELETE:
        return None
    due = due_at(facts, failed)
    if due <= facts.now:
        return None
    message = f"deleting the machine failed {failed.failures} times: {failed.message}"
    return replace(
        _deletes(facts, message), operation=failed, outcome=until(due, now=facts.now, because="it is tried again")
    )


def delete(facts: Facts) -> Step | None:
    lifecycle = facts.world.machine.spec.lifecycle
    hook = lifecycle.pre_stop if lifecycle else None
    if hook is not None and facts.power is PowerState.ON and not is_done(facts, OperationType.PRE_STOP):
        return calls(facts, Call(type=OperationType.PRE_STOP, handler=hook))
    return calls(facts, Call(type=OperationType.DELETE))


def _deletes(facts: Facts, message: str, *, finalized: bool = False) -> Step:
    return Step(
        phase=VirtualMachinePhase.DELETING,
        reason=MachineReason.DELETING,
        message=message,
        finalized=finalized,
        operation=facts.failed,
    )
