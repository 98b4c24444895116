"""What is prepared for the disk that moves: where it is stored on its way, and the storage in both providers.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.resources import CLAIMS
from holdfast.kernel.outcomes import until
from holdfast.kinds.virtrigaud.migrations import (
    MigrationDiskInfo,
    MigrationPhase,
    MigrationProgress,
    MigrationStorageInfo,
)
from holdfast.kinds.virtrigaud.providers import Provider
from holdfast.meta import durations, times
from holdfast.meta.quantities import Quantity
from holdfast.meta.sizes import whole_gib
from holdfast.operators.virtualmachine.migrations import storage
from holdfast.operators.virtualmachine.migrations.observe import World
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason
from holdfast.operators.virtualmachine.migrations.steps import Step, failed, looks, recorded, refused, step
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.runtime.decisions import Create

_Phase = MigrationPhase

_MOUNT_TIME: Final = timedelta(minutes=5)
"""How long providers may take to mount a claim."""


def record_disk(world: World, now: datetime) -> Step | None:
    """Record the disk that moves, and where it is stored on its way."""
    if world.info.source_disk_id is not None:
        return None
    disk, migration, target = world.disk, world.migration, world.migration.spec.target
    if disk is None:
        return looks(step(world, _Phase.VALIDATING, MigrationReason.VALIDATING, "the disk is looked at", now))
    name = migration.spec.source.vm_ref.name
    if world.disks > 1 and not target.disks:
        message = (
            f"VirtualMachine {name} has {world.disks - 1} disks beside its root disk, and only that is moved; "
            "set spec.target.disks to give the target new ones"
        )
        return refused(world, MachineReason.INVALID_SPEC, message, now)
    native = disk.format or storage.NATIVE
    format = storage.format_of(migration, world.source.capabilities, world.target.capabilities, native)
    if format is None:
        message = "spec.options.diskFormat: the providers have no such format, or no format, in common"
        return refused(world, MachineReason.UNSUPPORTED, message, now)
    key = world.object.key
    claim = None
    if storage.backend(migration) == storage.PVC:
        providers = (each.provider[1] if each.provider else None for each in (world.source, world.target))
        claim = storage.claim_name(migration, key.name, *providers)
    url = storage.url(migration, namespace=key.namespace, name=key.name, claim=claim or "", format=format)
    given = world.snapshot[1].status if world.snapshot else None
    found = world.having(
        disk_info=MigrationDiskInfo(source_disk_id=disk.id, source_format=native, source_size=str(disk.virtual_bytes)),
        storage_info=MigrationStorageInfo(url=url),
        storage_pvc_name=claim,
        snapshot_ref=world.snapshot[0].key.name if world.snapshot else None,
        snapshot_id=given.snapshot_id if given else None,
        progress=MigrationProgress(total_bytes=disk.actual_bytes or disk.virtual_bytes),
    )
    return recorded(found, _Phase.VALIDATING, MigrationReason.VALIDATING, f"the disk passes through {url}", now)


def mount_storage(world: World, now: datetime) -> Step | None:
    """Wait until both providers have mounted the storage, and make the claim for it where the spec names none."""
    export = storage.export_of(world.migration)
    if export is not None:
        return _mounts(world, f"the NFS export {export}", lambda each: storage.lacks_export(each, export), now)
    claim = world.before.storage_pvc_name
    if claim is None:
        return None
    if world.claim is None and claim == storage.temporary(world.object.key.name):
        return _claims(world, claim, now)
    where = f", which does not exist in namespace {world.target.key.namespace}" if world.claim is None else ""
    return _mounts(world, f"the claim {claim}{where}", lambda each: storage.lacks(each, claim), now)


def _mounts(world: World, what: str, lacks: Callable[[Provider], bool], now: datetime) -> Step | None:
    lacking = [side for side in (world.source, world.target) if side.provider and lacks(side.provider[1])]
    if not lacking:
        return None
    began = times.read(world.before.start_time) or now
    who = " and ".join(f"provider {side.key.name}" for side in lacking)
    if now >= began + _MOUNT_TIME:
        message = f"{who} did not mount {what} within {durations.short(_MOUNT_TIME)}"
        return failed(world, MigrationReason.STORAGE_NOT_MOUNTED, message, now)
    message = f"{who} must mount {what}"
    found = step(world, _Phase.VALIDATING, MigrationReason.WAITING_FOR_STORAGE, message, now)
    limit = until(began + _MOUNT_TIME, now=now, because="the storage is not mounted in time")
    return replace(found, outcome=limit)


def _claims(world: World, name: str, now: datetime) -> Step:
    key = world.object.key
    if world.target.key.namespace != key.namespace:
        message = f"the providers are in namespace {world.target.key.namespace}; name a claim there"
        return refused(world, MachineReason.INVALID_SPEC, f"spec.storage.pvc.name: {message}", now)
    size = Quantity.parse(world.info.source_size or 0).to_int()
    room = whole_gib(-(-size * 5 // 4)) or 1
    manifest = storage.claim(world.migration, key=key, uid=world.object.uid, size_gib=room)
    made = Create(resource=CLAIMS, manifest=manifest, because=f"VMMigration {key.name} needs room for a disk")
    found = step(world, _Phase.VALIDATING, MigrationReason.WAITING_FOR_STORAGE, f"claim {name} is created", now)
    return replace(found, writes=(made,))
