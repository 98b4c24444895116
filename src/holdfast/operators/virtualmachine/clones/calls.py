"""The decision of one pass over a VMClone, its status, and the calls to the provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Again, Retry
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.clones import ClonePhase, CloneType
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine import names, pacing, steps
from holdfast.operators.virtualmachine.clones.creation import cloned
from holdfast.operators.virtualmachine.clones.decide import next_step
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.steps import Call, Step, failed, progressed
from holdfast.operators.virtualmachine.clones.target import command_failed, commands, ran
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines import render
from holdfast.operators.virtualmachine.machines.guest_data import MissingKey
from holdfast.operators.virtualmachine.reasons import OF_CODE, CloneReason, MachineReason, advised
from holdfast.operators.virtualmachine.steps import StepDecision, decision
from holdfast.operators.virtualmachine.tasks import begun
from holdfast.providers.contract import Code, GuestCommands, Hypervisor, Machine, ProviderError, Task, TaskState
from holdfast.runtime.decisions import Decision
from holdfast.runtime.status import Announced, Invalid

INVALID: Final = Invalid(conditions={"Ready": False, "Failed": True}, fields={"phase": ClonePhase.FAILED.value})

ANNOUNCED: Final[Announced] = {
    ("Ready", "True"): "Normal",
    ("Cloning", "True"): "Normal",
    ("Failed", "True"): "Warning",
}


def decide(world: World, now: datetime) -> StepDecision[Step]:
    """The next step, the status that shows it, and the call that comes before the status is written."""
    return _decision(world, next_step(world, now), now)


explain = steps.explain


def _decision(world: World, step: Step, now: datetime) -> StepDecision[Step]:
    message = advised(step.reason, step.message)
    return decision(world.object, step, message, _verdicts(step, message), now, ANNOUNCED)


def _verdicts(step: Step, message: str) -> dict[str, Verdict]:
    phase = step.status.phase

    def verdict(holds: bool, otherwise: Reason, text: str) -> Verdict:
        return Verdict.true(step.reason, message) if holds else Verdict.false(otherwise, text)

    return {
        "Ready": verdict(phase is ClonePhase.READY, step.reason, message),
        "Cloning": verdict(phase is ClonePhase.CLONING, CloneReason.NOT_CLONING, "no clone is being made"),
        "Customizing": verdict(
            phase is ClonePhase.CUSTOMIZING, CloneReason.NOT_CUSTOMIZING, "the clone is not being customized"
        ),
        "Failed": verdict(phase is ClonePhase.FAILED, CloneReason.NOT_FAILED, "nothing has failed"),
    }


# --- the provider


async def act(world: World, decided: Decision, *, connections: Connections) -> Decision:
    """Make the calls of a decision."""
    if not isinstance(decided, StepDecision) or (decided.step.call is None and not decided.step.cancel):
        return decided
    assert world.target is not None, "a call has a provider"
    hypervisor, now = connections.to(world.target), decided.now
    step: Step = decided.step
    try:
        if step.cancel:
            await hypervisor.cancel(Task(id=step.cancel))
        if step.call is Call.CLONE:
            step = await _clone(world, hypervisor, now)
        elif step.call is Call.REMOVE:
            step = await _remove(world, step, hypervisor)
        elif step.call is Call.COMMAND:
            step = await _command(world, hypervisor, now)
    except ProviderError as error:
        if error.transient or step.call is not Call.CLONE:
            raise Retry(OF_CODE[error.code], error.message) from error
        step = failed(world, _reason(world, error), error.message, now)
    return _decision(world, step, now)


def _reason(world: World, error: ProviderError) -> Reason:
    own = {
        CloneType.LINKED_CLONE: CloneReason.LINKED_UNSUPPORTED,
        CloneType.INSTANT_CLONE: CloneReason.INSTANT_UNSUPPORTED,
    }
    if error.code is Code.UNSUPPORTED and world.type in own:
        return own[world.type]
    return OF_CODE[error.code]


async def _clone(world: World, hypervisor: Hypervisor, now: datetime) -> Step:
    before = world.before
    if before.failed is not None:
        left = await _deleted(before.target_vm_id or "", hypervisor)
        if left is not None:
            # What is left of the attempt that failed goes first: it has the name of the next one.
            message = "what is left of the last attempt is deleted"
            return Step(status=before, reason=CloneReason.REMOVING, message=message, outcome=_later(left))
    target = _machine(world)
    if isinstance(target, str):
        return failed(world, MachineReason.NO_CLOUD_INIT_KEY, target, now)
    taken = world.snapshot[1].status if world.snapshot else None
    made = await hypervisor.clone(
        world.source_id,
        target,
        linked=world.type is CloneType.LINKED_CLONE,
        snapshot=(taken.snapshot_id if taken else None) or "",
        instant=world.type is CloneType.INSTANT_CLONE,
    )
    state = await begun(hypervisor, made.task)
    again = before.failed is not None
    after = world.having(
        target_vm_id=made.id,
        task_ref=made.task.id if made.task and not state.done else None,
        retry_count=(before.retry_count or 0) + 1 if again else before.retry_count,
        last_retry_time=times.format(now) if again else before.last_retry_time,
    )
    return cloned(after, made.id, now) if state.done else progressed(after, state, now)


def _machine(world: World) -> Machine | str:
    """The machine that is made, or a sentence that says why it cannot be."""
    assert world.wanted is not None, "the source is known"
    try:
        return msgspec.structs.replace(render.machine(world.wanted), image=None, imported_disk="")
    except MissingKey as error:
        return str(error)


async def _deleted(id: str, hypervisor: Hypervisor) -> TaskState | None:
    """Delete what was made; returns how far that is, or None if nothing is left."""
    task = await hypervisor.delete(id) if id else None
    if task is None:
        return None
    state = await hypervisor.task(task)
    return None if state.done and not state.error else state


def _later(state: TaskState) -> Again:
    return Again(pacing.as_said(state.again_after, otherwise=timedelta(seconds=1)), "the provider deletes the clone")


async def _remove(world: World, step: Step, hypervisor: Hypervisor) -> Step:
    """Delete a clone that does not become a machine, also one whose identifier was lost with a reply."""
    before = world.before
    if before.task_ref:
        await hypervisor.cancel(Task(id=before.task_ref))
    id = before.target_vm_id or ""
    if not id:
        name = names.machine(world.clone.spec.target.name, world.object.uid)
        id = next((each.id for each in await hypervisor.machines() if each.name == name), "")
    left = await _deleted(id, hypervisor)
    if left is not None:
        changed = msgspec.structs.replace(step.status, target_vm_id=id, task_ref=None)
        return Step(status=changed, reason=step.reason, message=step.message, outcome=_later(left))
    gone = msgspec.structs.replace(
        step.status, target_vm_id=None, task_ref=None, actual_clone_type=None, start_time=None
    )
    return Step(status=gone, reason=step.reason, message=step.message, finalized=world.object.deleting)


async def _command(world: World, hypervisor: Hypervisor, now: datetime) -> Step:
    """Run the next command in the guest."""
    command = commands(world)[0]
    if not isinstance(hypervisor, GuestCommands):
        return failed(world, MachineReason.UNSUPPORTED, "the provider cannot run commands in guests", now)
    seconds = max(int(durations.parse(command.timeout or "5m").total_seconds()), 1)
    id = world.machine[1].status.id if world.machine and world.machine[1].status else None
    try:
        await hypervisor.execute(id or "", (command.command, *command.arguments), seconds)
    except ProviderError as error:
        if error.transient:
            raise
        return command_failed(world, OF_CODE[error.code], f"{command.command}: {error.message}", now)
    return ran(world, now)
