"""The transfer of the disk: a snapshot, an export and an import, each by a task of a provider.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.outcomes import Again
from holdfast.kinds.virtrigaud.migrations import Artifact, MigrationPhase
from holdfast.meta import times
from holdfast.operators.virtualmachine import names, pacing
from holdfast.operators.virtualmachine.migrations import progress
from holdfast.operators.virtualmachine.migrations.observe import Stage, World, artifacts
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason
from holdfast.operators.virtualmachine.migrations.steps import Call, Step, failed, recorded, step, waits
from holdfast.operators.virtualmachine.reasons import OF_CODE
from holdfast.providers.contract import Code, TaskState

_Phase = MigrationPhase

_DOING: Final[dict[MigrationPhase, tuple[MigrationReason, str]]] = {
    _Phase.SNAPSHOTTING: (MigrationReason.SNAPSHOTTING, "the source provider takes a snapshot"),
    _Phase.EXPORTING: (MigrationReason.EXPORTING, "the source provider exports the disk"),
    _Phase.TRANSFERRING: (MigrationReason.TRANSFERRING, "the disk is transferred"),
    _Phase.CONVERTING: (MigrationReason.CONVERTING, "the target provider converts the disk"),
    _Phase.IMPORTING: (MigrationReason.IMPORTING, "the target provider imports the disk"),
}

_MAKES: Final = {
    Stage.SNAPSHOT: (Artifact.SNAPSHOT, Call.SNAPSHOT, _Phase.SNAPSHOTTING),
    Stage.EXPORT: (Artifact.EXPORT, Call.EXPORT, _Phase.EXPORTING),
    Stage.IMPORT: (Artifact.DISK, Call.IMPORT, _Phase.TRANSFERRING),
}
"""What each stage makes, by which call, and the phase in which that is asked for."""

_ENDED: Final = {
    Stage.SNAPSHOT: (MigrationReason.SNAPSHOTTED, "the snapshot is taken"),
    Stage.EXPORT: (MigrationReason.EXPORTED, "the disk is in the storage"),
    Stage.IMPORT: (MigrationReason.IMPORTED, "the target provider has the disk"),
}


def running(world: World, now: datetime) -> Step | None:
    state, task = world.task, world.before.task_ref
    if not task:
        return None
    if state is None:
        return waits(world, MigrationReason.WAITING, "a provider is not ready", now)
    if not state.done:
        return progressed(world, state, now)
    ended = world.having(task_ref=None)
    if state.lost:
        # The provider does not know the task any more: it is asked again, and has what it made.
        return asks(_unasked(ended), now)
    if state.code is Code.RETRYABLE:
        found = waits(_unasked(ended), OF_CODE[Code.RETRYABLE], state.error, now)
        return replace(found, outcome=Again(pacing.LOOK, "the provider is asked again"))
    if state.error:
        return refuted(_unasked(ended), state.code or Code.INTERNAL, state.error, now)
    return done(ended, world.stage, state.result, now)


def _unasked(world: World) -> World:
    """The world without the identifier of a snapshot whose task did not end well."""
    return world if Artifact.EXPORT in world.before.artifacts else world.having(snapshot_id=None)


def progressed(world: World, state: TaskState, now: datetime) -> Step:
    """A task that is under way."""
    phase = progress.phase_of(world.stage, state)
    reason, words = _DOING[phase]
    found = step(world, phase, reason, words, now, state)
    began = times.read(found.status.progress.phase_start_time if found.status.progress else None) or now
    return replace(found, outcome=Again(pacing.next_look(state, began, now), f"task {world.before.task_ref} is due"))


def stale_disk(world: World, now: datetime) -> Step | None:
    """A disk that was imported of an export that is not used any more."""
    if Artifact.DISK not in world.before.artifacts or world.stage not in (Stage.SNAPSHOT, Stage.EXPORT):
        return None
    found = step(world, _Phase.EXPORTING, MigrationReason.CLEANING_UP, "the disk that was imported is deleted", now)
    return replace(found, call=Call.DELETE_DISK)


def asks(world: World, now: datetime) -> Step | None:
    """Ask a provider for the next thing, after it was recorded that it is asked."""
    if world.stage is Stage.CREATE:
        return None
    artifact, call, phase = _MAKES[world.stage]
    reason, words = _DOING[phase]
    if artifact not in world.before.artifacts:
        changes: dict[str, Any] = {"artifacts": artifacts(world, artifact)}
        if artifact is Artifact.SNAPSHOT:
            name = f"{world.object.key.name}-{world.object.meta.generation}"
            changes["snapshot_ref"] = names.machine(name, world.object.uid)
        return recorded(world.having(**changes), phase, reason, words, now)
    return replace(step(world, phase, reason, words, now), call=call)


def done(world: World, stage: Stage, result: dict[str, str], now: datetime) -> Step:
    """A stage that is done: what came of it is recorded."""
    match stage:
        case Stage.SNAPSHOT:
            after = world
        case Stage.EXPORT:
            checksum = result.get("checksum") or None
            info = msgspec.structs.replace(world.info, checksum=checksum, source_checksum=checksum)
            stored = msgspec.structs.replace(
                world.stored,
                size=result.get("size_bytes") or None,
                uploaded_at=times.format(now),
                cleaned_up=False,
            )
            after = world.having(disk_info=info, storage_info=stored)
        case Stage.IMPORT:
            checksum = result.get("checksum") or None
            if world.options.verify_checksums is not False and checksum and world.info.checksum not in (None, checksum):
                message = f"the disk that arrived has the checksum {checksum}, and not {world.info.checksum}"
                return failed(_without_export(world), MigrationReason.CHECKSUM_MISMATCH, message, now)
            info = msgspec.structs.replace(
                world.info,
                target_disk_id=world.before.import_id,
                target_path=result.get("path") or world.info.target_path,
                target_checksum=checksum,
            )
            after = world.having(disk_info=info)
        case Stage.CREATE:
            raise AssertionError("no task makes the target")
    _, _, phase = _MAKES[stage]
    ended = {Stage.EXPORT: _Phase.TRANSFERRING, Stage.IMPORT: _Phase.IMPORTING}.get(stage, phase)
    reason, words = _ENDED[stage]
    whole = TaskState(done=True, percentage=100) if stage is not Stage.EXPORT else None
    return replace(step(replace(after, task=None), ended, reason, words, now, whole), outcome=Again(pacing.SOON, words))


def refuted(world: World, code: Code, message: str, now: datetime) -> Step:
    """What a provider could not do.  A disk in the storage that cannot be imported is exported again."""
    if world.stage is Stage.IMPORT and code in (Code.INVALID, Code.NOT_FOUND):
        return failed(_without_export(world), MigrationReason.CHECKSUM_MISMATCH, message, now)
    return failed(world, OF_CODE[code], message, now)


def _without_export(world: World) -> World:
    stored = msgspec.structs.replace(world.stored, uploaded_at=None, size=None)
    return world.having(storage_info=stored, export_id=None, import_id=None)
