"""What a migration needs before it begins: a valid spec, a source, providers and what its target refers to.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.kernel.outcomes import Retry
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine.machines.references import missing
from holdfast.operators.virtualmachine.migrations import storage
from holdfast.operators.virtualmachine.migrations.observe import Side, World, held_by
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason
from holdfast.operators.virtualmachine.migrations.steps import Step, failed, refused, waits
from holdfast.operators.virtualmachine.migrations.validate import problems
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason


def invalid(world: World, now: datetime) -> Step | None:
    found = [f"{each.path}: {each.message}" for each in problems(world.migration)]
    own = world.source.machine[1].spec.provider_ref if world.source.machine else None
    asked = world.migration.spec.source.provider_ref
    if own is not None and asked is not None and (asked.name, asked.namespace or own.namespace) != (
        own.name, own.namespace,
    ):  # fmt: skip
        found.append(f"spec.source.providerRef: the machine is on provider {own.name}")
    if own is not None and world.source.key == world.target.key:
        found.append(f"spec.target.providerRef: the machine is on provider {own.name} already")
    return refused(world, MachineReason.INVALID_SPEC, "; ".join(found), now) if found else None


def taken_name(world: World, now: datetime) -> Step | None:
    machine = world.target.machine
    if machine is None or world.is_made:
        return None
    message = f"VirtualMachine {machine[0].key.name} exists, and was not made by this VMMigration"
    return refused(world, MigrationReason.TARGET_EXISTS, message, now)


def source(world: World, now: datetime) -> Step | None:
    name, begun = world.migration.spec.source.vm_ref.name, world.before.start_time is not None
    if world.source.machine is None or not world.source_is_ours:
        if begun:
            message = f"VirtualMachine {name} was deleted before the target was made"
            return failed(world, MigrationReason.SOURCE_DELETED, message, now)
        return waits(world, MigrationReason.SOURCE_NOT_READY, f"VirtualMachine {name} does not exist", now)
    obj = world.source.machine[0]
    if obj.deleting:
        return waits(world, MigrationReason.SOURCE_NOT_READY, f"VirtualMachine {name} is being deleted", now)
    if not world.source.id:
        message = f"VirtualMachine {name} has not been created on its provider yet"
        return waits(world, MigrationReason.SOURCE_NOT_READY, message, now)
    if held_by(obj) and not world.holds:
        by = held_by(obj).partition("/")[0]
        return waits(world, MigrationReason.HELD_BY_OTHER, f"VMMigration {by} keeps VirtualMachine {name} off", now)
    return None


def references(world: World, now: datetime) -> Step | None:
    sides: tuple[tuple[Side, Reason], ...] = (
        (world.source, MigrationReason.SOURCE_PROVIDER_NOT_READY),
        (world.target, MigrationReason.TARGET_PROVIDER_NOT_READY),
    )
    for side, reason in sides:
        if side.provider is None:
            return waits(world, reason, f"Provider {side.key.name} does not exist", now)
        if side.provider[0].deleting:
            return waits(world, reason, f"Provider {side.key.name} is being deleted", now)
        if side.target is None:
            return waits(world, reason, f"Provider {side.key.name} is not ready", now)
    lacking = next(_missing(world), "")
    return waits(world, MigrationReason.WAITING, lacking, now) if lacking else None


def _missing(world: World) -> Iterator[str]:
    spec, wanted = world.migration.spec, world.wanted
    assert wanted is not None, "a rule before this one checks the source"
    yield from (f"{each} does not exist" for each in missing(wanted))
    if spec.source.snapshot_ref is not None:
        name = spec.source.snapshot_ref.name
        if world.snapshot is None:
            yield f"VMSnapshot {name} does not exist"
        else:
            status = world.snapshot[1].status
            if status is None or status.phase is not SnapshotPhase.READY or not status.snapshot_id:
                yield f"VMSnapshot {name} is not ready"
    s3 = spec.storage.s3 if spec.storage else None
    if s3 is not None and world.credentials is None:
        yield f"Secret {s3.credentials_secret_ref.name} does not exist"


def unsupported(world: World, now: datetime) -> Step | None:
    """What a provider says that it cannot do is not asked for; what it does not say is."""
    found = next(_unable(world), None)
    return None if found is None else refused(world, *found, now)


def _unable(world: World) -> Iterator[tuple[Reason, str]]:
    spec, exports, imports = world.migration.spec, world.source.capabilities, world.target.capabilities
    unsupported, invalid = MachineReason.UNSUPPORTED, MachineReason.INVALID_SPEC
    backend = storage.backend(world.migration)
    source, target = world.source.key.name, world.target.key.name
    if exports.supports_disk_export is False:
        yield unsupported, f"provider {source} cannot export disks"
    if imports.supports_disk_import is False:
        yield unsupported, f"provider {target} cannot import disks"
    # A provider that names no storage has pvc alone.
    for side, backends in (
        (world.source, exports.supported_export_backends),
        (world.target, imports.supported_import_backends),
    ):
        name, mounts = side.key.name, storage.is_mounted_on_demand(side.provider and side.provider[1], backend)
        if backends and backend not in backends and not mounts:
            yield unsupported, f"spec.storage.type: provider {name} has {', '.join(backends)}, and not {backend}"
    export = storage.export_of(world.migration)
    providers = (side.provider[1] for side in (world.source, world.target) if side.provider)
    awaited = export is not None and any(storage.lacks_export(each, export) for each in providers)
    if not awaited and storage.mode(world.migration, exports, imports) is None:
        yield unsupported, f"spec.storage.transferMode: direct needs both providers, {source} and {target}"
    if world.options.compress and exports.supports_export_compression is False:
        yield unsupported, f"spec.options.compress: provider {source} cannot compress"
    if world.takes_snapshot and exports.supports_snapshots is False:
        yield unsupported, f"spec.source.createSnapshot: provider {source} takes no snapshots; set it to false"
    if world.snapshot is not None and world.snapshot[1].spec.vm_ref.name != spec.source.vm_ref.name:
        name = world.snapshot[0].key.name
        yield invalid, f"spec.source.snapshotRef: VMSnapshot {name} is of {world.snapshot[1].spec.vm_ref.name}"
    lacking = storage.missing_keys(world.credentials) if world.credentials is not None else ()
    if lacking and spec.storage is not None and spec.storage.s3 is not None:
        name = spec.storage.s3.credentials_secret_ref.name
        yield invalid, f"spec.storage.s3.credentialsSecretRef: Secret {name} has no {' and no '.join(lacking)}"
    namespaces = {world.source.key.namespace, world.target.key.namespace}
    if backend == storage.PVC and len(namespaces) > 1:
        text = f"the providers are in the namespaces {' and '.join(sorted(namespaces))}, and a claim is in one"
        yield invalid, f"spec.storage: {text}; use s3"


def unanswered(world: World, now: datetime) -> Step | None:
    if world.error is not None:
        raise Retry(OF_CODE[world.error.code], f"a provider was asked about the migration: {world.error.message}")
    return None
