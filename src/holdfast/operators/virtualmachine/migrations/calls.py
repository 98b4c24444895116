"""The decision of one pass over a VMMigration, and the call to a provider that comes before its status."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from holdfast.kernel.outcomes import Again, Retry
from holdfast.kinds.virtrigaud.migrations import Artifact
from holdfast.operators.virtualmachine import pacing
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.migrations import status, storage, undo
from holdfast.operators.virtualmachine.migrations.decide import next_step
from holdfast.operators.virtualmachine.migrations.observe import Stage, World
from holdfast.operators.virtualmachine.migrations.steps import Call, Step
from holdfast.operators.virtualmachine.migrations.transfer import done, progressed, refuted
from holdfast.operators.virtualmachine.reasons import OF_CODE
from holdfast.operators.virtualmachine.steps import StepDecision
from holdfast.operators.virtualmachine.tasks import begun
from holdfast.providers.contract import Code, Hypervisor, ProviderError, Task, TaskState, Transfer
from holdfast.runtime.decisions import Decision

_STAGES = {Call.SNAPSHOT: Stage.SNAPSHOT, Call.EXPORT: Stage.EXPORT, Call.IMPORT: Stage.IMPORT}


def decide(world: World, now: datetime) -> StepDecision[Step]:
    """The next step, the status that shows it, and the call that comes before the status is written."""
    return status.decision(world, next_step(world, now), now)


explain = status.explain


async def act(world: World, decision: Decision, *, connections: Connections) -> Decision:
    """Make the call of a decision."""
    if not isinstance(decision, StepDecision) or decision.step.call is None:
        return decision
    step: Step = decision.step
    now = decision.now
    # The status as the step has it: what was recorded on the way to the call is not lost.
    world = replace(world, migration=msgspec.structs.replace(world.migration, status=step.status))
    try:
        assert step.call is not None, "it is checked above"
        if step.call in _STAGES:
            step = await _made(world, step.call, connections, now)
        else:
            step = await _removed(world, step, connections)
    except ProviderError as error:
        if error.transient or step.call not in _STAGES:
            raise Retry(OF_CODE[error.code], error.message) from error
        step = refuted(world, error.code, error.message, now)
    return status.decision(world, step, now)


# --- the transfer of the disk


async def _made(world: World, call: Call, connections: Connections, now: datetime) -> Step:
    """Ask for a snapshot, an export or an import; what is asked for again is done once."""
    side = world.target if call is Call.IMPORT else world.source
    assert side.target is not None, "a call has a provider"
    hypervisor, task = connections.to(side.target), None
    result: dict[str, str] = {}
    match call:
        case Call.SNAPSHOT:
            made = await _snapshot(world, hypervisor)
            task, world = made[1], world.having(snapshot_id=made[0])
        case Call.EXPORT:
            sent = await hypervisor.export_disk(exported(world))
            task, world = sent.task, world.having(export_id=sent.id)
            result = {"checksum": sent.checksum, "size_bytes": str(sent.size_bytes or "")}
        case _:
            came = await hypervisor.import_disk(imported(world))
            info = msgspec.structs.replace(world.info, target_path=came.path or None)
            task, world = came.task, world.having(import_id=came.id, disk_info=info)
            result = {"checksum": came.checksum, "path": came.path}
    state = await begun(hypervisor, task)
    if task is not None and not state.done:
        return progressed(world.having(task_ref=task.id), state, now)
    return done(world, _STAGES[call], {**result, **state.result}, now)


async def _snapshot(world: World, hypervisor: Hypervisor) -> tuple[str, Task | None]:
    """Take a snapshot, of a guest that is quiesced where the provider can do that."""
    name, words = world.before.snapshot_ref or world.name_on_provider, f"of VMMigration {world.object.key.name}"
    try:
        made = await hypervisor.snapshot(world.source.id, name, quiesce=True, description=words)
    except ProviderError as error:
        if error.code not in (Code.UNSUPPORTED, Code.CONFLICT):
            raise
        made = await hypervisor.snapshot(world.source.id, name, description=words)
    return made.id, made.task


def _transfer(world: World) -> Transfer:
    mode = storage.mode(world.migration, world.source.capabilities, world.target.capabilities)
    found = storage.transfer(world.migration, world.stored.url or "", world.credentials)
    return msgspec.structs.replace(found, mode=mode or "relay")


def exported(world: World) -> Transfer:
    return msgspec.structs.replace(
        _transfer(world),
        machine=world.source.id,
        disk=world.info.source_disk_id or "",
        snapshot=world.before.snapshot_id or "",
        compress=bool(world.options.compress),
    )


def imported(world: World) -> Transfer:
    defaults = world.target.provider[1].spec.defaults if world.target.provider else None
    return msgspec.structs.replace(
        _transfer(world),
        target_name=world.name_on_provider,
        storage_hint=(defaults.datastore if defaults else None) or "",
        verify_checksum=world.options.verify_checksums is not False,
        expected_checksum=world.info.checksum or "",
    )


# --- the way back


async def _removed(world: World, step: Step, connections: Connections) -> Step:
    """Cancel a task, or remove what the migration has made; what is gone already is gone."""
    match step.call:
        case Call.CANCEL:
            side = world.target if world.stage is Stage.IMPORT else world.source
            assert side.target is not None, "a call has a provider"
            await connections.to(side.target).cancel(Task(id=world.before.task_ref or ""))
            return _after(step, world.having(task_ref=None))
        case Call.DELETE_DISK:
            assert world.target.target is not None, "a call has a provider"
            await connections.to(world.target.target).delete_disk(world.before.import_id or world.name_on_provider)
            return _after(step, undo.without(world, Artifact.DISK))
        case Call.DELETE_EXPORT:
            target = world.source.target or world.target.target
            assert target is not None, "a call has a provider"
            try:
                await connections.to(target).delete_export(exported(world))
            except ProviderError as error:
                # In a storage that the provider does not have, there is nothing unless a disk came to be there.
                if error.code is not Code.NOT_FOUND or world.stored.uploaded_at is not None:
                    raise
            return _after(step, undo.without(world, Artifact.EXPORT))
        case _:
            return await _snapshot_removed(world, step, connections)


async def _snapshot_removed(world: World, step: Step, connections: Connections) -> Step:
    assert world.source.target is not None, "a call has a provider"
    hypervisor = connections.to(world.source.target)
    name = world.before.snapshot_id or world.before.snapshot_ref or world.name_on_provider
    try:
        state = await begun(hypervisor, await hypervisor.delete_snapshot(world.source.id, name))
    except ProviderError as error:
        if error.code is not Code.NOT_FOUND:
            raise
        state = TaskState(done=True)
    if not state.done:
        after = pacing.as_said(state.again_after, otherwise=timedelta(seconds=1))
        return replace(step, call=None, outcome=Again(after, "the provider deletes the snapshot"))
    return _after(step, undo.without(world, Artifact.SNAPSHOT))


def _after(step: Step, world: World) -> Step:
    return replace(step, status=world.before, call=None, outcome=Again(pacing.SOON, step.message))
