"""What is removed of a migration: all of it when it is rolled back, and what it has left when it is complete.  Pure.

The source may be started again as soon as there is no machine of the target any more that could be.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from holdfast.client.resources import CLAIMS
from holdfast.kernel.outcomes import Again
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.migrations import Artifact, MigrationPhase
from holdfast.operators.virtualmachine import names, pacing
from holdfast.operators.virtualmachine.migrations.observe import Side, Stage, World, held_by
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason
from holdfast.operators.virtualmachine.migrations.steps import REMOVES, Call, Step, step
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.runtime.decisions import Delete, Notice, Patch

_WORDS: Final = {
    Artifact.DISK: "the disk that was imported",
    Artifact.EXPORT: "the disk in the storage",
    Artifact.SNAPSHOT: "the snapshot of the source",
}


def policy(world: World) -> str:
    return world.options.cleanup_policy or "OnSuccess"


def is_over(world: World) -> bool:
    return world.before.completion_time is not None


def kept(world: World) -> frozenset[Artifact]:
    """What stays: all by the policy Never, and the disk in the storage where it is the only copy, or of use."""
    if policy(world) == "Never":
        return frozenset({Artifact.SNAPSHOT, Artifact.EXPORT})
    if is_over(world):
        return frozenset()
    only_copy = world.stored.uploaded_at is not None and not world.source_is_ours
    useful = policy(world) == "OnSuccess" and not world.object.deleting and world.stored.uploaded_at is not None
    return frozenset({Artifact.EXPORT}) if only_copy or useful else frozenset()


def roll_back(world: World, now: datetime) -> Step | None:
    """The next step back: no machine of the target, then the source is released, and then the rest; None at the end."""
    reason = MigrationReason.ROLLING_BACK
    if world.before.task_ref:
        side = world.target if world.stage is Stage.IMPORT else world.source
        return _call(world, side, Call.CANCEL, reason, "the task of the provider is cancelled", now)
    if world.is_made and world.target.machine is not None:
        obj = world.target.machine[0]
        message = f"VirtualMachine {obj.key.name} of the target is deleted"
        found = _back(world, reason, message, now)
        if obj.deleting:
            return found
        gone = Delete(resource=MACHINES, key=obj.key, uid=obj.uid, because="the migration is rolled back")
        return replace(found, writes=(gone,))
    if world.holds:
        return _released(world, now)
    return removed(world, reason, now)


def _released(world: World, now: datetime) -> Step:
    """Release the source: its controller does with it what its spec asks for."""
    assert world.source.machine is not None, "it holds it"
    obj = world.source.machine[0]
    patch = {"metadata": {"annotations": {names.MIGRATION_HOLD: None}}}
    because = "the migration is rolled back, and the source may run again"
    write = Patch(resource=MACHINES, key=obj.key, uid=obj.uid, version=obj.version, patch=patch, because=because)
    message = f"VirtualMachine {obj.key.name} of the source is released"
    return replace(_back(world, MigrationReason.ROLLING_BACK, message, now), writes=(write,))


def removed(world: World, reason: Reason, now: datetime) -> Step | None:
    """Remove the next thing that the migration has made on a provider or in the storage; None at the end."""
    for each in (Artifact.DISK, Artifact.EXPORT, Artifact.SNAPSHOT):
        if each not in world.before.artifacts or each in kept(world):
            continue
        side = world.source
        if each is Artifact.DISK or (each is Artifact.EXPORT and world.source.target is None):
            side = world.target
        if each is Artifact.SNAPSHOT and not (world.source_is_ours and world.source.id):
            # It went with its machine.
            return replace(_back(without(world, each), reason, f"{_WORDS[each]} is gone", now), outcome=_now("it"))
        return _call(world, side, REMOVES[each], reason, f"{_WORDS[each]} is deleted", now)
    claim = world.claim
    if claim is not None and world.claim_is_ours and not claim.deleting and Artifact.EXPORT not in kept(world):
        gone = Delete(resource=CLAIMS, key=claim.key, uid=claim.uid, because="the migration needs it no more")
        return replace(_back(world, reason, f"claim {claim.key.name} is deleted", now), writes=(gone,))
    return None


def without(world: World, artifact: Artifact) -> World:
    """The world once something that the migration has made is gone."""
    left = tuple(each for each in world.before.artifacts if each is not artifact)
    match artifact:
        case Artifact.SNAPSHOT:
            return world.having(artifacts=left, snapshot_id=None)
        case Artifact.EXPORT:
            stored = msgspec.structs.replace(world.stored, cleaned_up=True)
            if not is_over(world):
                stored = msgspec.structs.replace(stored, uploaded_at=None)
            return world.having(artifacts=left, storage_info=stored)
        case Artifact.DISK:
            info = msgspec.structs.replace(
                world.info, target_disk_id=None, target_path=None, target_checksum=None, target_format=None
            )
            return world.having(artifacts=left, import_id=None, disk_info=info)


def _call(world: World, side: Side, call: Call, reason: Reason, message: str, now: datetime) -> Step:
    if side.target is not None:
        return replace(_back(world, reason, message, now), call=call)
    hint = (
        ""
        if not world.object.deleting
        else f"; the annotation {names.FORCE_DELETE}=true removes the VMMigration without that"
    )
    return _back(world, reason, f"Provider {side.key.name} is not ready, and must be before {message}{hint}", now)


def _back(world: World, reason: Reason, message: str, now: datetime) -> Step:
    if is_over(world):
        phase = MigrationPhase.READY
    elif world.object.deleting:
        phase = world.before.phase or MigrationPhase.PENDING
    else:
        phase = MigrationPhase.FAILED
    return step(world, phase, reason, message, now)


def _now(what: str) -> Again:
    return Again(pacing.SOON, f"{what} is gone")


def forced(world: World, now: datetime) -> Step | None:
    """Remove a VMMigration whose providers do not answer, once the source is released."""
    if world.object.meta.annotations.get(names.FORCE_DELETE) != "true" or world.holds or world.is_made:
        return None
    left = [_WORDS[each] for each in world.before.artifacts if each not in kept(world)]
    message = f"no provider has confirmed that these are deleted: {', '.join(left)}; they may still exist"
    notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
    return replace(_back(world, MachineReason.FORCED, message, now), finalized=True, notices=(notice,) if left else ())


# --- what is left, in words


def left(world: World) -> str:
    """In which state a migration that failed has left both sides."""
    spec = world.migration.spec
    parts = []
    if not world.source_is_ours or world.source.machine is None:
        parts.append(f"VirtualMachine {spec.source.vm_ref.name} of the source no longer exists")
    else:
        obj, machine = world.source.machine
        phase = machine.status.phase.value if machine.status and machine.status.phase else "unknown"
        by = held_by(obj).partition("/")[0]
        parts.append(
            f"the source, VirtualMachine {obj.key.name} on provider {world.source.key.name}, is {phase}"
            + (f", held by VMMigration {by}" if by else "")
        )
    parts.append("nothing is left of the target" if not world.is_made else f"VirtualMachine {spec.target.name} exists")
    if Artifact.EXPORT in world.before.artifacts and world.stored.url:
        parts.append(f"the disk is kept at {world.stored.url} (spec.options.cleanupPolicy {policy(world)})")
    return "; ".join(parts)
