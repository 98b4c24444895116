"""The target: it is checked once it runs, and the migration is complete when the checks hold.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel.outcomes import Again, soonest, until
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase
from holdfast.kinds.virtrigaud.migrations import (
    Artifact,
    MigrationDiskInfo,
    MigrationPhase,
    MigrationProgress,
    ValidationResults,
)
from holdfast.kinds.virtrigaud.references import LocalObjectReference
from holdfast.meta import times
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import names, pacing
from holdfast.operators.virtualmachine.machines.observe import is_true
from holdfast.operators.virtualmachine.migrations import render, undo
from holdfast.operators.virtualmachine.migrations.observe import World
from holdfast.operators.virtualmachine.migrations.preconditions import unanswered
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason
from holdfast.operators.virtualmachine.migrations.steps import Step, failed, looks, recorded, step
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.providers.contract import Description, DiskInfo
from holdfast.runtime.decisions import Delete, Patch

_Phase = MigrationPhase

_VALIDATION: Final = timedelta(minutes=10)
"""How long a target may take to boot and to answer."""


def made(world: World, now: datetime) -> Step | None:
    known = world.before.target_vm_ref
    if world.target.machine is None:
        if known is None:
            return None
        message = f"VirtualMachine {known.name} was deleted before the migration was complete"
        return failed(world, MigrationReason.TARGET_DELETED, message, now)
    obj, machine = world.target.machine
    status = machine.status
    world = world.having(target_vm_ref=LocalObjectReference(name=obj.key.name), target_vm_id=status and status.id)
    said = (status.message if status else None) or "it has no status yet"
    if status is not None and status.phase is VirtualMachinePhase.FAILED:
        return failed(world, MigrationReason.TARGET_FAILED, f"VirtualMachine {obj.key.name}: {said}", now)
    settled = is_true(obj, "Ready") and status is not None and status.observed_generation == obj.meta.generation
    if obj.deleting or not settled:
        return step(world, _Phase.CREATING, MigrationReason.CREATING, f"VirtualMachine {obj.key.name}: {said}", now)
    if world.found is None:
        return unanswered(world, now) or looks(
            step(world, _Phase.CREATING, MigrationReason.CREATING, "the target is about to be checked", now)
        )
    return _validated(world, *world.found, now)


def _validated(world: World, machine: Description, disk: DiskInfo | None, now: datetime) -> Step:
    """Check the target.  The results are recorded first, and the migration is complete when they still hold."""
    info = world.info
    if disk is not None:
        info = msgspec.structs.replace(
            info, target_format=disk.format or None, target_size=str(disk.virtual_bytes) if disk.virtual_bytes else None
        )
    results = _results(world, machine, info)
    missing = tuple(_missing(results))
    before = world.before.progress or MigrationProgress()
    since = (times.read(before.phase_start_time) if before.current_phase is _Phase.VALIDATING_TARGET else None) or now
    late = now >= since + _VALIDATION
    errors = (*_wrong(results, info), *(missing if late else ()))
    results = msgspec.structs.replace(results, validation_errors=errors)
    same = world.before.validation_results == results and world.before.disk_info == info
    world = world.having(validation_results=results, disk_info=info)
    if results.validation_errors:
        return failed(world, MigrationReason.VALIDATION_FAILED, "; ".join(results.validation_errors), now)
    name = world.migration.spec.target.name
    if missing:
        message = f"VirtualMachine {name} is checked: {' and '.join(missing)}"
        found = step(world, _Phase.VALIDATING_TARGET, MigrationReason.VALIDATING_TARGET, message, now)
        after = pacing.as_said(machine.again_after)
        limit = until(since + _VALIDATION, now=now, because="the checks of the target have failed")
        return replace(found, outcome=soonest((Again(after, message), limit)))
    if not same:
        message = f"VirtualMachine {name} is as the checks demand"
        return recorded(world, _Phase.VALIDATING_TARGET, MigrationReason.VALIDATING_TARGET, message, now)
    return _finished(world, now)


def _results(world: World, machine: Description, info: MigrationDiskInfo) -> ValidationResults:
    """What the checks find that the spec asks for; None where one is not made, or nothing is known."""
    checks = world.checks
    sums = checks.check_checksum is not False and world.options.verify_checksums is not False
    on = machine.exists and machine.power.lower() in ("on", "poweredon")
    return ValidationResults(
        disk_size_match=_size_matches(info) if checks.check_disk_size is not False else None,
        checksum_match=info.source_checksum == info.target_checksum if sums and info.target_checksum else None,
        boot_success=(on and machine.guest_ready is not False) if checks.check_boot else None,
        connectivity_success=bool(on and machine.ips) if checks.check_connectivity else None,
    )


def _wrong(results: ValidationResults, info: MigrationDiskInfo) -> Iterator[str]:
    """What is wrong with the disk, and stays so."""
    if results.disk_size_match is False:
        yield f"the disk has {info.target_size} bytes, and {info.source_size} at the source"
    if results.checksum_match is False:
        yield f"the disk has the checksum {info.target_checksum}, and {info.source_checksum} at the source"


def _missing(results: ValidationResults) -> Iterator[str]:
    """What a guest lacks that still starts."""
    if results.boot_success is False:
        yield "its guest has not booted"
    if results.connectivity_success is False:
        yield "its guest reports no address"


def _size_matches(info: MigrationDiskInfo) -> bool | None:
    """Whether the disk is as big as it was; a class may have made it bigger."""
    if info.source_size is None or info.target_size is None:
        return None
    return Quantity.parse(info.target_size).to_int() >= Quantity.parse(info.source_size).to_int()


def _finished(world: World, now: datetime) -> Step:
    left = tuple(each for each in world.before.artifacts if each is not Artifact.DISK)
    world = world.having(artifacts=left, completion_time=times.format(now), failed=None, task_ref=None)
    return recorded(world, _Phase.READY, MigrationReason.COMPLETED, render.result(world.migration.spec), now)


def completed(world: World, now: datetime) -> Step | None:
    """Remove what is left, mark the target, and delete the source if the spec says so."""
    if not undo.is_over(world):
        return None
    cleaning = undo.removed(world, MigrationReason.CLEANING_UP, now)
    if cleaning is not None:
        return replace(cleaning, message=f"{render.result(world.migration.spec)}; {cleaning.message}")
    found = step(world, _Phase.READY, MigrationReason.COMPLETED, render.result(world.migration.spec), now)
    return replace(found, writes=(*_marks(world), *_deletes_source(world)))


def _marks(world: World) -> Iterator[Patch]:
    machine = world.target.machine
    if machine is None or not world.is_made or machine[0].deleting or names.MIGRATED_AT in machine[0].meta.annotations:
        return
    patch = {"metadata": {"annotations": {names.MIGRATED_AT: world.before.completion_time}}}
    because = "its migration is complete"
    yield Patch(resource=MACHINES, key=machine[0].key, uid=machine[0].uid, patch=patch, because=because)


def _deletes_source(world: World) -> Iterator[Delete]:
    machine = world.source.machine
    asked = world.migration.spec.source.delete_after_migration
    if not asked or machine is None or machine[0].uid != world.before.source_vm_uid or machine[0].deleting:
        return
    because = f"VMMigration {world.object.key.name} is complete"
    yield Delete(resource=MACHINES, key=machine[0].key, uid=machine[0].uid, because=because)
