"""The decision of one pass over a VMSnapshot, its status, and the call to the provider."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Retry
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine import steps
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason, SnapshotReason, advised
from holdfast.operators.virtualmachine.snapshots import creation, deletion
from holdfast.operators.virtualmachine.snapshots.creation import on_provider, taken
from holdfast.operators.virtualmachine.snapshots.decide import next_step
from holdfast.operators.virtualmachine.snapshots.observe import World, is_kept, measured
from holdfast.operators.virtualmachine.snapshots.steps import Call, Step, deletes, progressed
from holdfast.operators.virtualmachine.steps import StepDecision, decision
from holdfast.operators.virtualmachine.tasks import begun
from holdfast.providers.contract import Code, Hypervisor, Made, ProviderError, TaskState
from holdfast.runtime.decisions import Decision, Notice
from holdfast.runtime.status import Announced, Invalid

INVALID: Final = Invalid(conditions={"Ready": False}, fields={"phase": SnapshotPhase.FAILED.value})

ANNOUNCED: Final[Announced] = {
    ("Ready", "True"): "Normal",
    ("Expired", "True"): "Normal",
    ("Deleting", "True"): "Normal",
}


def decide(world: World, now: datetime) -> StepDecision[Step]:
    """The next step, the status that shows it, and the call that comes before the status is written."""
    return _decision(world, next_step(world, now), now)


explain = steps.explain


def _decision(world: World, step: Step, now: datetime) -> StepDecision[Step]:
    message = advised(step.reason, step.message)
    known = world.before.phase is SnapshotPhase.FAILED and world.before.message == message
    if step.status.phase is SnapshotPhase.FAILED and not known:
        failure = Notice(type="Warning", reason=step.reason.value, message=message)
        step = replace(step, notices=(*step.notices, failure))
    return decision(world.object, step, message, _verdicts(world, step, message), now, ANNOUNCED)


def _verdicts(world: World, step: Step, message: str) -> dict[str, Verdict]:
    phase = step.status.phase
    ready = Verdict.true(step.reason, message) if step.ready else Verdict.false(step.reason, message)
    creating = phase is SnapshotPhase.CREATING
    pinned = is_kept(world.snapshot)
    return {
        "Ready": ready,
        "Creating": Verdict.true(step.reason, message)
        if creating
        else Verdict.false(SnapshotReason.NOT_CREATING, "no snapshot is being taken"),
        "Deleting": Verdict.true(SnapshotReason.DELETING, message)
        if world.object.deleting
        else Verdict.false(MachineReason.NOT_DELETING, "the snapshot is not being deleted"),
        "Expired": Verdict.true(SnapshotReason.EXPIRED, message)
        if phase is SnapshotPhase.EXPIRED
        else Verdict.false(SnapshotReason.PINNED, "the snapshot is pinned, so it does not expire")
        if pinned
        else Verdict.false(SnapshotReason.KEPT, "the snapshot is not past its retention"),
    }


# --- the provider


async def act(world: World, decided: Decision, *, connections: Connections) -> Decision:
    """Make the call of a decision."""
    if not isinstance(decided, StepDecision) or decided.step.call is None:
        return decided
    assert world.target is not None, "a call has a provider"
    hypervisor, call, now = connections.to(world.target), decided.step.call, decided.now
    try:
        step = await (_take if call is Call.TAKE else _delete)(world, hypervisor, now)
    except ProviderError as error:
        if error.transient:
            raise Retry(OF_CODE[error.code], error.message) from error
        step = (creation if call is Call.TAKE else deletion).failed(world, error, now)
    return _decision(world, step, now)


async def _take(world: World, hypervisor: Hypervisor, now: datetime) -> Step:
    config = world.config
    crash = config.type == "Crash" or config.consistency_level == "CrashConsistent"
    quiesce = config.quiesce is not False and not crash
    strict = config.type == "Application" or config.consistency_level == "ApplicationConsistent"
    notices: tuple[Notice, ...] = ()
    try:
        made = await _asked(world, hypervisor, quiesce=quiesce)
    except ProviderError as error:
        if error.code is not Code.UNSUPPORTED or not quiesce or strict:
            raise
        # It is better than none, and it is reported.
        made = await _asked(world, hypervisor, quiesce=False)
        text = f"{error.message}; the snapshot is as after a loss of power"
        notices = (Notice(type="Warning", reason=SnapshotReason.NOT_QUIESCED.value, message=text),)
    state = await begun(hypervisor, made.task)
    if state.done:
        return replace(taken(world, made, state, await measured(world, hypervisor), now), notices=notices)
    assert made.task is not None, "it is not done"
    there = on_provider(world, made.id, now, available=False)
    asked = world.having(task_ref=made.task.id, progress=None, provider_status=there)
    return replace(progressed(asked, state, now), notices=notices)


async def _asked(world: World, hypervisor: Hypervisor, *, quiesce: bool) -> Made:
    config = world.config
    return await hypervisor.snapshot(
        world.machine_id,
        world.name_on_provider,
        memory=bool(config.include_memory),
        quiesce=quiesce,
        description=config.description or "",
    )


async def _delete(world: World, hypervisor: Hypervisor, now: datetime) -> Step:
    before = world.before
    task = None
    try:
        task = await hypervisor.delete_snapshot(world.machine_id, before.snapshot_id or world.name_on_provider)
        state = await begun(hypervisor, task)
    except ProviderError as error:
        if error.code is not Code.NOT_FOUND:
            raise
        state = TaskState(done=True)
    if task is None or state.done:
        return replace(deletes(world, "the snapshot is deleted"), finalized=True)
    return progressed(world.having(task_ref=task.id, progress=None), state, now)
