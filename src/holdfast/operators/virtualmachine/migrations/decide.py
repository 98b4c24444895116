"""What is done for a VMMigration next: one step, found by a ladder of facts; the first rung that applies decides.

What is about to be made on a provider is recorded before it is asked (`status.artifacts`), so what a lost reply leaves
there is known.  The source is kept off by an annotation, which its controller confirms (`status.heldFor`), before a
target is made that is to run.  It is let go only when there is no target any more, so the two never run at the same
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.resources import CLAIMS
from holdfast.kernel.outcomes import Again, Retry, soonest, until
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.machines import PowerState, VirtualMachinePhase
from holdfast.kinds.virtrigaud.migrations import (
    Artifact,
    MigrationDiskInfo,
    MigrationPhase,
    MigrationProgress,
    MigrationStorageInfo,
    ValidationResults,
    VMMigrationStatus,
)
from holdfast.kinds.virtrigaud.references import LocalObjectReference
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.meta import durations, times
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.machines.observe import is_true
from holdfast.operators.virtualmachine.migrations import progress, storage, undo
from holdfast.operators.virtualmachine.migrations.observe import Side, Stage, World, artifacts, held_by
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason, named
from holdfast.operators.virtualmachine.migrations.steps import (
    Call,
    Step,
    failed,
    is_final,
    is_of_this_spec,
    recorded,
    refused,
    retries,
    step,
    waits,
)
from holdfast.operators.virtualmachine.migrations.validate import problems
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.providers.contract import Code, Description, DiskInfo, TaskState
from holdfast.runtime.decisions import Create, Delete, Notice, Patch

_Phase = MigrationPhase

_MOUNT_TIME: Final = timedelta(minutes=5)
"""How long providers may take to mount a claim."""

_VALIDATION: Final = timedelta(minutes=10)
"""How long a target may take to boot and to answer."""

_GIB: Final = 1 << 30

Rung = Callable[[World, datetime], Step | None]


def next_step(world: World, now: datetime) -> Step:
    """The step of the first rung that applies, and no later than the time that the spec allows for the whole."""
    world = _resumed(world, now)
    rungs = _DELETION if world.object.deleting else _LADDER
    found = next(each for rung in rungs if (each := rung(world, now)) is not None)
    deadline = _deadline(world)
    if deadline is None or found.status.phase in (_Phase.READY, _Phase.FAILED) or world.object.deleting:
        return found
    wait = until(deadline, now=now, because="the time that the spec allows is over")
    return replace(found, outcome=soonest((found.outcome, wait)))


def _resumed(world: World, now: datetime) -> World:
    """The world once the time of the next attempt has come: it is counted."""
    known = world.before.failed
    due = times.read(known.next_time) if known else None
    last = times.read(world.before.last_retry_time)
    if known is None or due is None or now < due or (last is not None and last >= due):
        return world
    return world.having(retry_count=known.count, last_retry_time=times.format(now))


def _deadline(world: World) -> datetime | None:
    began = times.read(world.before.start_time)
    return None if began is None else began + durations.parse(world.options.timeout or "4h")


# --- migrations that are over


def _completed(world: World, now: datetime) -> Step | None:
    """Remove what is left, mark the target, and delete the source if the spec says so."""
    if not undo.is_over(world):
        return None
    cleaning = undo.removed(world, MigrationReason.CLEANING_UP, now)
    if cleaning is not None:
        return cleaning
    found = step(world, _Phase.READY, MigrationReason.COMPLETED, _complete_message(world), now)
    return replace(found, writes=(*_marks(world), *_deletes_source(world)))


def _complete_message(world: World) -> str:
    spec = world.migration.spec
    return f"{spec.source.vm_ref.name} has become {spec.target.name} on provider {world.target.key.name}"


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


def _rolled_back(world: World, now: datetime) -> Step | None:
    """A migration that failed is rolled back; it begins again when its spec was changed."""
    known = world.before.failed
    if known is None or not is_final(world):
        return None
    reason = named(known.reason)
    back = undo.roll_back(world, now)
    if back is not None:
        return replace(back, reason=reason, message=f"{known.message}; it is rolled back: {back.message}")
    if is_of_this_spec(world):
        count = f" {known.count} times" if known.count > 1 else ""
        message = f"it failed{count}: {known.message}; {undo.left(world)}"
        return step(world, _Phase.FAILED, reason, message, now)
    fresh = replace(world, migration=msgspec.structs.replace(world.migration, status=VMMigrationStatus()))
    return recorded(
        fresh, _Phase.PENDING, MigrationReason.STARTED, "the spec was changed: the migration begins anew", now
    )


# --- what is wrong with the spec, or with the target


def _invalid(world: World, now: datetime) -> Step | None:
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


def _timed_out(world: World, now: datetime) -> Step | None:
    deadline = _deadline(world)
    if deadline is None or now < deadline:
        return None
    limit = durations.short(durations.parse(world.options.timeout or "4h"))
    return failed(world, MigrationReason.TIMED_OUT, f"it was not complete within {limit}", now)


def _failing(world: World, now: datetime) -> Step | None:
    """A migration that failed is tried again as its policy says, and at once when the spec was changed."""
    known = world.before.failed
    due = times.read(known.next_time) if known else None
    if known is None or due is None or due <= now or not is_of_this_spec(world):
        return None
    return retries(world, known, now)


def _taken_name(world: World, now: datetime) -> Step | None:
    machine = world.target.machine
    if machine is None or world.is_made:
        return None
    message = f"VirtualMachine {machine[0].key.name} exists, and was not made by this VMMigration"
    return refused(world, MigrationReason.TARGET_EXISTS, message, now)


# --- the target


def _made(world: World, now: datetime) -> Step | None:
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
        return _unanswered(world, now) or _look(
            step(world, _Phase.CREATING, MigrationReason.CREATING, "the target is about to be checked", now)
        )
    return _validated(world, *world.found, now)


def _look(found: Step) -> Step:
    return replace(found, outcome=Again(progress.LOOK, found.message))


def _validated(world: World, machine: Description, disk: DiskInfo | None, now: datetime) -> Step:
    """Check the target.  The results are recorded first, and the migration is complete when they still hold."""
    checks, info = world.checks, world.info
    if disk is not None:
        info = msgspec.structs.replace(
            info, target_format=disk.format or None, target_size=str(disk.virtual_bytes) if disk.virtual_bytes else None
        )
    size = _size_matches(info) if checks.check_disk_size is not False else None
    wanted_sums = checks.check_checksum is not False and world.options.verify_checksums is not False
    sums = info.source_checksum == info.target_checksum if wanted_sums and info.target_checksum else None
    on = machine.exists and machine.power.lower() in ("on", "poweredon")
    boots = (on and machine.guest_ready is not False) if checks.check_boot else None
    answers = bool(on and machine.ips) if checks.check_connectivity else None
    wrong = []
    if size is False:
        wrong.append(f"the disk has {info.target_size} bytes, and {info.source_size} at the source")
    if sums is False:
        wrong.append(f"the disk has the checksum {info.target_checksum}, and {info.source_checksum} at the source")
    missing = [
        text
        for result, text in ((boots, "its guest has not booted"), (answers, "its guest reports no address"))
        if result is False
    ]
    began = world.before.progress or MigrationProgress()
    since = (times.read(began.phase_start_time) if began.current_phase is _Phase.VALIDATING_TARGET else None) or now
    late = now >= since + _VALIDATION
    results = ValidationResults(
        disk_size_match=size,
        checksum_match=sums,
        boot_success=boots,
        connectivity_success=answers,
        validation_errors=(*wrong, *(missing if late else ())),
    )
    same = world.before.validation_results == results and world.before.disk_info == info
    world = world.having(validation_results=results, disk_info=info)
    if results.validation_errors:
        return failed(world, MigrationReason.VALIDATION_FAILED, "; ".join(results.validation_errors), now)
    name = world.migration.spec.target.name
    if missing:
        message = f"VirtualMachine {name} is checked: {' and '.join(missing)}"
        found = step(world, _Phase.VALIDATING_TARGET, MigrationReason.VALIDATING_TARGET, message, now)
        after = timedelta(seconds=max(machine.again_after or progress.LOOK.total_seconds(), 0.1))
        limit = until(since + _VALIDATION, now=now, because="the checks of the target have failed")
        return replace(found, outcome=soonest((Again(after, message), limit)))
    if not same:
        message = f"VirtualMachine {name} is as the checks demand"
        return recorded(world, _Phase.VALIDATING_TARGET, MigrationReason.VALIDATING_TARGET, message, now)
    return _finished(world, now)


def _size_matches(info: MigrationDiskInfo) -> bool | None:
    """Whether the disk is as big as it was; a class may have made it bigger."""
    if info.source_size is None or info.target_size is None:
        return None
    return Quantity.parse(info.target_size).to_int() >= Quantity.parse(info.source_size).to_int()


def _finished(world: World, now: datetime) -> Step:
    left = tuple(each for each in world.before.artifacts if each is not Artifact.DISK)
    world = world.having(artifacts=left, completion_time=times.format(now), failed=None, task_ref=None)
    return recorded(world, _Phase.READY, MigrationReason.COMPLETED, _complete_message(world), now)


# --- what the migration needs


def _source(world: World, now: datetime) -> Step | None:
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


def _references(world: World, now: datetime) -> Step | None:
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
    missing = next(_missing(world), "")
    return waits(world, MigrationReason.WAITING, missing, now) if missing else None


def _missing(world: World) -> Iterator[str]:
    spec, wanted = world.migration.spec, world.wanted
    assert wanted is not None, "a rung before this one checks the source"
    if wanted.vm_class is None:
        yield f"VMClass {wanted.machine.spec.class_ref.name} does not exist"
    for card in wanted.machine.spec.networks:
        if card.network_ref and card.name not in wanted.networks:
            yield f"VMNetworkAttachment {card.network_ref.name} does not exist"
    data = wanted.machine.spec.user_data
    for each in (data and data.cloud_init, data and data.ignition):
        if each and each.secret_ref and each.secret_ref.name not in wanted.secrets:
            yield f"Secret {each.secret_ref.name} does not exist"
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


def _unsupported(world: World, now: datetime) -> Step | None:
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
        name, own = side.key.name, side.provider is not None and storage.mounted(side.provider[1]) is not None
        # The storage of our own processes is mounted on demand.
        if backends and backend not in backends and (backend == storage.S3 or not own):
            yield unsupported, f"spec.storage.type: provider {name} has {', '.join(backends)}, and not {backend}"
    if storage.mode(world.migration, exports, imports) is None:
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


def _unanswered(world: World, now: datetime) -> Step | None:
    if world.error is not None:
        raise Retry(OF_CODE[world.error.code], f"a provider was asked about the migration: {world.error.message}")
    return None


def _record(world: World, now: datetime) -> Step | None:
    """Record that the migration begins, and with which machine."""
    if world.before.start_time is not None:
        return None
    assert world.source.machine is not None, "a rung before this one checks it"
    began = world.having(
        start_time=times.format(now), source_vm_uid=world.source.machine[0].uid, source_hold=world.hold
    )
    return recorded(began, _Phase.PENDING, MigrationReason.STARTED, "the migration begins", now)


def _disk(world: World, now: datetime) -> Step | None:
    """Record the disk that moves, and where it is stored on its way."""
    if world.info.source_disk_id is not None:
        return None
    disk, migration, target = world.disk, world.migration, world.migration.spec.target
    if disk is None:
        return _look(step(world, _Phase.VALIDATING, MigrationReason.VALIDATING, "the disk is looked at", now))
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


def _storage(world: World, now: datetime) -> Step | None:
    """Make the claim, and wait until both providers have mounted it."""
    if storage.backend(world.migration) == storage.NFS:
        return _mounts(
            world, "the NFS server", [each for each in (world.source, world.target) if _lacks_nfs(each)], now
        )
    claim = world.before.storage_pvc_name
    if claim is None:
        return None
    if world.claim is None and claim == storage.temporary(world.object.key.name):
        return _claims(world, claim, now)
    lacking = [
        side
        for side in (world.source, world.target)
        if side.provider is not None and storage.lacks(side.provider[1], claim)
    ]
    where = f", which does not exist in namespace {world.target.key.namespace}" if world.claim is None else ""
    return _mounts(world, f"the claim {claim}{where}", lacking, now)


def _lacks_nfs(side: Side) -> bool:
    """Whether a process of ours has no NFS server mounted yet."""
    own = side.provider is not None and storage.mounted(side.provider[1]) is not None
    return own and storage.NFS not in side.capabilities.supported_export_backends


def _mounts(world: World, what: str, lacking: list[Side], now: datetime) -> Step | None:
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
    room = -(-size * 5 // (4 * _GIB)) or 1
    manifest = storage.claim(world.migration, key=key, uid=world.object.uid, size_gib=room)
    made = Create(resource=CLAIMS, manifest=manifest, because=f"VMMigration {key.name} needs room for a disk")
    found = step(world, _Phase.VALIDATING, MigrationReason.WAITING_FOR_STORAGE, f"claim {name} is created", now)
    return replace(found, writes=(made,))


# --- keeping the source off


def _stop_first(world: World, now: datetime) -> Step | None:
    if not world.migration.spec.source.power_off_before_migration:
        return None
    return _stopped(world, _Phase.VALIDATING, now)


def _stop_last(world: World, now: datetime) -> Step | None:
    """The source is off before a target is made that runs."""
    if not world.migration.spec.target.power_on:
        return None
    return _stopped(world, _Phase.CREATING, now)


def _stopped(world: World, phase: MigrationPhase, now: datetime) -> Step | None:
    if world.is_stopped:
        return None
    assert world.source.machine is not None, "a rung before this one checks it"
    obj, machine = world.source.machine
    message = f"VirtualMachine {obj.key.name} is stopped, and stays off"
    found = step(world, phase, MigrationReason.STOPPING_SOURCE, message, now)
    if world.holds:
        return found
    patch = {"metadata": {"annotations": {names.MIGRATION_HOLD: world.before.source_hold}}}
    because = f"VMMigration {world.object.key.name} needs it off"
    write = Patch(resource=MACHINES, key=obj.key, uid=obj.uid, version=obj.version, patch=patch, because=because)
    notices = [Notice(reason=MigrationReason.STOPPING_SOURCE.value, message=message)]
    ran = machine.status is not None and machine.status.power_state is PowerState.ON
    if phase is _Phase.CREATING and ran:
        since = world.stored.uploaded_at or world.before.start_time
        text = f"VirtualMachine {obj.key.name} ran until now; what it wrote after {since} is not in the target"
        notices.append(Notice(type="Warning", reason=MigrationReason.WRITES_NOT_MOVED.value, message=text))
    return replace(found, writes=(write,), notices=tuple(notices))


# --- the way of the disk


def _running(world: World, now: datetime) -> Step | None:
    state, task = world.task, world.before.task_ref
    if not task:
        return None
    if state is None:
        return waits(world, MigrationReason.WAITING, "a provider is not ready", now)
    if not state.done:
        return progressed(world, state, now)
    ended = world.having(task_ref=None)
    if state.code is Code.NOT_FOUND:
        # The provider does not know the task any more: it is asked again, and has what it made.
        return _asks(_unasked(ended), now)
    if state.code is Code.RETRYABLE:
        found = waits(_unasked(ended), OF_CODE[Code.RETRYABLE], state.error, now)
        return replace(found, outcome=Again(progress.LOOK, "the provider is asked again"))
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
    return replace(found, outcome=Again(progress.pause(state, began, now), f"task {world.before.task_ref} is due"))


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


def _stale_disk(world: World, now: datetime) -> Step | None:
    """A disk that was imported of an export that is not used any more."""
    if Artifact.DISK not in world.before.artifacts or world.stage not in (Stage.SNAPSHOT, Stage.EXPORT):
        return None
    found = step(world, _Phase.EXPORTING, MigrationReason.CLEANING_UP, "the disk that was imported is deleted", now)
    return replace(found, call=Call.DELETE_DISK)


def _asks(world: World, now: datetime) -> Step | None:
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
    return replace(
        step(replace(after, task=None), ended, reason, words, now, whole), outcome=Again(progress.LOOK / 50, words)
    )


_ENDED: Final = {
    Stage.SNAPSHOT: (MigrationReason.SNAPSHOTTED, "the snapshot is taken"),
    Stage.EXPORT: (MigrationReason.EXPORTED, "the disk is in the storage"),
    Stage.IMPORT: (MigrationReason.IMPORTED, "the target provider has the disk"),
}


def refuted(world: World, code: Code, message: str, now: datetime) -> Step:
    """What a provider could not do.  A disk in the storage that cannot be imported is exported anew."""
    if world.stage is Stage.IMPORT and code in (Code.INVALID, Code.NOT_FOUND):
        return failed(_without_export(world), MigrationReason.CHECKSUM_MISMATCH, message, now)
    return failed(world, OF_CODE[code], message, now)


def _without_export(world: World) -> World:
    stored = msgspec.structs.replace(world.stored, uploaded_at=None, size=None)
    return world.having(storage_info=stored, export_id=None, import_id=None)


def _create(world: World, now: datetime) -> Step | None:
    assert world.wanted is not None, "a rung before this one checks the source"
    manifest = world.wanted.object.wire()
    name = world.migration.spec.target.name
    made = Create(resource=MACHINES, manifest=manifest, because=f"VMMigration {world.object.key.name} makes it")
    found = step(world, _Phase.CREATING, MigrationReason.CREATING, f"VirtualMachine {name} is created", now)
    return replace(found, writes=(made,))


# --- deletion


def _deleted(world: World, now: datetime) -> Step | None:
    """A migration that is complete leaves its target; of any other one nothing is left but the source."""
    back = undo.removed(world, MigrationReason.CLEANING_UP, now) if undo.is_over(world) else undo.roll_back(world, now)
    if back is None:
        found = step(world, world.before.phase or _Phase.PENDING, MigrationReason.CLEANING_UP, "it is deleted", now)
        return replace(found, finalized=True)
    return undo.forced(world, now) if back.call is None and not back.writes else back


def _waits_to_go(world: World, now: datetime) -> Step | None:
    return undo.removed(world, MigrationReason.CLEANING_UP, now) if undo.is_over(world) else undo.roll_back(world, now)


_LADDER: Final[tuple[Rung, ...]] = (
    _completed,
    _rolled_back,
    _timed_out,
    _failing,
    _invalid,
    _taken_name,
    _made,
    _source,
    _references,
    _unsupported,
    _unanswered,
    _record,
    _disk,
    _storage,
    _stop_first,
    _running,
    _stale_disk,
    _asks,
    _stop_last,
    _create,
)

_DELETION: Final[tuple[Rung, ...]] = (_deleted, _waits_to_go)
