"""The world of one VMMigration: both machines, both providers, the storage, and what the providers report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import CLAIMS, SECRETS, Resource
from holdfast.kinds.virtrigaud import Provider, VirtualMachine, VMMigration, VMSnapshot
from holdfast.kinds.virtrigaud.migrations import (
    Artifact,
    MigrationDiskInfo,
    MigrationOptions,
    MigrationStorageInfo,
    ValidationChecks,
    VMMigrationStatus,
)
from holdfast.kinds.virtrigaud.providers import ProviderStatus, ReportedCapabilities
from holdfast.kinds.virtrigaud.references import ObjectRef
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections, Target, address_of, target_of
from holdfast.operators.virtualmachine.machines import observe as machines
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, is_true, key_of, referred
from holdfast.operators.virtualmachine.migrations import storage
from holdfast.operators.virtualmachine.migrations.render import target_machine
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    MACHINES,
    MIGRATIONS,
    NETWORKS,
    PROVIDERS,
    SNAPSHOTS,
)
from holdfast.operators.virtualmachine.secrets import Sealed, read
from holdfast.providers.contract import Description, DiskInfo, ProviderError, Task, TaskState
from holdfast.runtime.controllers import View
from holdfast.runtime.references import References


class Stage(Enum):
    """What a migration has to do next; what is done is recorded in its status."""

    SNAPSHOT = "snapshot"
    EXPORT = "export"
    IMPORT = "import"
    CREATE = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a migration.

    key       the Provider as it is referred to
    provider  the Provider, with its object
    target    how it is reached; None while it is not ready
    machine   the VirtualMachine, with its object
    """

    key: Key
    provider: tuple[Object, Provider] | None = None
    target: Target | None = None
    machine: tuple[Object, VirtualMachine] | None = None

    @property
    def id(self) -> str:
        """The provider's identifier of the machine; empty until it is known."""
        if self.machine is None:
            return ""
        obj, machine = self.machine
        return (machine.status.id if machine.status else None) or obj.meta.annotations.get(names.ADOPT_ID, "")

    @property
    def capabilities(self) -> ReportedCapabilities:
        status = self.provider[1].status if self.provider else None
        return (status.reported_capabilities if status else None) or ReportedCapabilities()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object       the VMMigration as it came
    migration    the same, typed
    source       where the machine is
    target       where it goes; its machine is the VirtualMachine that has the name of the target now
    wanted       the VirtualMachine that is made, as the world of a machine; None without a source
    snapshot     the VMSnapshot that the spec names, with its object
    claim        the claim for the disk, if there is one
    credentials  the Secret for S3, if there is one
    task         how far the task is
    disk         the disk at the source, where it is not recorded yet
    disks        how many disks the source has, where the disk was looked at
    found        the machine of the target as its provider reports it, and its disk
    error        why a provider could not be asked
    """

    object: Object
    migration: VMMigration
    source: Side
    target: Side
    wanted: machines.World | None = None
    snapshot: tuple[Object, VMSnapshot] | None = None
    claim: Object | None = None
    credentials: Sealed | None = None
    task: TaskState | None = None
    disk: DiskInfo | None = None
    disks: int = 0
    found: tuple[Description, DiskInfo | None] | None = None
    error: ProviderError | None = None

    @property
    def before(self) -> VMMigrationStatus:
        return self.migration.status or VMMigrationStatus()

    @property
    def info(self) -> MigrationDiskInfo:
        return self.before.disk_info or MigrationDiskInfo()

    @property
    def stored(self) -> MigrationStorageInfo:
        return self.before.storage_info or MigrationStorageInfo()

    @property
    def options(self) -> MigrationOptions:
        return self.migration.spec.options or MigrationOptions()

    @property
    def checks(self) -> ValidationChecks:
        return self.options.validation_checks or ValidationChecks()

    @property
    def hold(self) -> str:
        """A new value of the annotation by which this migration keeps the source off: each beginning has its own."""
        return f"{self._owner}{self.object.meta.generation}"

    @property
    def _owner(self) -> str:
        return f"{self.object.key.name}/{self.object.uid}/"

    @property
    def holds(self) -> bool:
        """Whether this migration keeps the source off."""
        return self.source.machine is not None and held_by(self.source.machine[0]).startswith(self._owner)

    @property
    def is_stopped(self) -> bool:
        """Whether the source is off, and stays off: its controller has confirmed that."""
        if self.source.machine is None or not self.before.source_hold:
            return False
        obj, machine = self.source.machine
        confirmed = machine.status.held_for if machine.status else None
        return held_by(obj) == self.before.source_hold == confirmed

    @property
    def is_made(self) -> bool:
        """Whether the VirtualMachine of the target was made by this VMMigration: its UID proves it, never its name."""
        machine = self.target.machine
        return machine is not None and machine[0].meta.annotations.get(names.MIGRATION_UID) == self.object.uid

    @property
    def source_is_ours(self) -> bool:
        """Whether the VirtualMachine of the source is the one that the migration began with."""
        began = self.before.source_vm_uid
        return self.source.machine is not None and began in (None, self.source.machine[0].uid)

    @property
    def takes_snapshot(self) -> bool:
        source = self.migration.spec.source
        return source.create_snapshot is not False and source.snapshot_ref is None

    @property
    def stage(self) -> Stage:
        before = self.before
        taking = bool(before.task_ref) and Artifact.EXPORT not in before.artifacts
        if self.takes_snapshot and (not before.snapshot_id or taking):
            return Stage.SNAPSHOT
        if self.stored.uploaded_at is None:
            return Stage.EXPORT
        return Stage.IMPORT if not self.info.target_disk_id else Stage.CREATE

    @property
    def name_on_provider(self) -> str:
        """The name of the snapshot and of the disk on providers; that of a snapshot is another one for another spec."""
        return names.machine(self.object.key.name, self.object.uid)

    @property
    def claim_is_ours(self) -> bool:
        return self.claim is not None and self.claim.meta.annotations.get(names.MIGRATION_UID) == self.object.uid

    def having(self, **fields: Any) -> World:
        """The world with these fields in the status."""
        status = msgspec.structs.replace(self.before, **fields)
        return replace(self, migration=msgspec.structs.replace(self.migration, status=status))


def held_by(machine: Object) -> str:
    return machine.meta.annotations.get(names.MIGRATION_HOLD, "")


def observe(view: View, key: Key) -> World | None:
    obj = view.get(MIGRATIONS, key)
    if obj is None:
        return None
    migration = obj.decode(VMMigration)
    spec, status = migration.spec, migration.status or VMMigrationStatus()
    machine = referred(view, MACHINES, Key(key.namespace, spec.source.vm_ref.name), VirtualMachine)
    own = machine[1].spec.provider_ref if machine else spec.source.provider_ref
    source = replace(_side(view, own, key), machine=machine)
    made = referred(view, MACHINES, Key(key.namespace, spec.target.name), VirtualMachine)
    target = replace(_side(view, spec.target.provider_ref, key), machine=made)
    named = spec.source.snapshot_ref
    s3 = spec.storage.s3 if spec.storage else None
    providers = (each.provider[1] if each.provider else None for each in (source, target))
    claim = status.storage_pvc_name or storage.claim_name(migration, key.name, *providers)
    wanted = None
    if machine is not None:
        wanted = machines.world_of(view, Object.of(MACHINES, target_machine(obj, migration, machine[1])))
    return World(
        object=obj,
        migration=migration,
        source=source,
        target=target,
        wanted=wanted,
        snapshot=None if named is None else referred(view, SNAPSHOTS, Key(key.namespace, named.name), VMSnapshot),
        claim=view.get(CLAIMS, Key(target.key.namespace, claim)) if storage.backend(migration) == storage.PVC else None,
        credentials=None if s3 is None else read(view, SECRETS, Key(key.namespace, s3.credentials_secret_ref.name)),
    )


def _side(view: View, reference: ObjectRef | None, referrer: Key) -> Side:
    if reference is None:
        return Side(key=Key(referrer.namespace, ""))
    key = key_of(reference, referrer)
    provider = referred(view, PROVIDERS, key, Provider)
    # One that is being deleted is reached for what is removed through it.
    ready = provider is not None and (is_true(provider[0], "Ready") or provider[0].deleting)
    return Side(
        key=key,
        provider=provider,
        target=target_of(view, key, provider[1], address_of(provider[1])) if provider and ready else None,
    )


# --- the providers


async def survey(world: World, *, connections: Connections) -> World:
    """The world with how far the task is, or with the disk of the source or the machine of the target."""
    if world.object.deleting or world.before.completion_time is not None:
        return world
    try:
        if world.before.task_ref:
            return await _task(world, world.before.task_ref, connections)
        if world.info.source_disk_id is None:
            return await _disk(world, connections)
        if world.stage is Stage.CREATE and world.is_made:
            return await _machine(world, connections)
    except ProviderError as error:
        return replace(world, error=error)
    return world


async def _task(world: World, task: str, connections: Connections) -> World:
    side = world.target if world.stage is Stage.IMPORT else world.source
    if side.target is None:
        return world
    return replace(world, task=await connections.to(side.target).task(Task(id=task)))


async def _disk(world: World, connections: Connections) -> World:
    """The disk that moves: the first one of the machine."""
    if world.source.target is None or not world.source.id or world.before.start_time is None:
        return world
    hypervisor = connections.to(world.source.target)
    described = await hypervisor.describe(world.source.id)
    return replace(world, disk=await hypervisor.disk(world.source.id), disks=len(described.disks))


async def _machine(world: World, connections: Connections) -> World:
    """The machine that was made, once its VirtualMachine says that it is ready."""
    machine = world.target.machine
    if machine is None or world.target.target is None or not world.target.id or not is_true(machine[0], "Ready"):
        return world
    hypervisor = connections.to(world.target.target)
    described = await machines.described(world.target.id, hypervisor.describe)
    disk = await hypervisor.disk(world.target.id) if described.exists else None
    return replace(world, found=(described, disk))


# --- which migrations are reconciled when another object changes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str | Key]]:
    migration, key = obj.decode(VMMigration), obj.key
    spec, status = migration.spec, migration.status
    yield MACHINES, spec.source.vm_ref.name
    yield MACHINES, spec.target.name
    yield PROVIDERS, key_of(spec.target.provider_ref, key)
    if spec.source.provider_ref is not None:
        yield PROVIDERS, key_of(spec.source.provider_ref, key)
    if spec.source.snapshot_ref is not None:
        yield SNAPSHOTS, spec.source.snapshot_ref.name
    if spec.target.class_ref is not None:
        yield CLASSES, spec.target.class_ref.name
    yield from ((NETWORKS, key_of(card.network_ref, key)) for card in spec.target.networks if card.network_ref)
    claim = (status.storage_pvc_name if status else None) or storage.claim_name(migration, key.name, None, None)
    yield CLAIMS, Key(key_of(spec.target.provider_ref, key).namespace, claim)
    if spec.storage is not None and spec.storage.s3 is not None:
        yield SECRETS, spec.storage.s3.credentials_secret_ref.name


MIGRATIONS_OF: Final = References(MIGRATIONS, _mentions)


def of_reference(obj: Object, view: View) -> Iterable[Key]:
    """The migrations that refer to an object, and those of machines that do: the target is made as the source is."""
    found = {each.key for each in MIGRATIONS_OF.of(view, obj)}
    return found | {each.key for machine in REFERENCES.of(view, obj) for each in MIGRATIONS_OF.of(view, machine)}


def providers_of(obj: Object, view: View) -> Iterable[Key]:
    """The Providers that a migration refers to, and those of the machines that it refers to."""
    for resource, name in _mentions(obj):
        if isinstance(name, Key) and resource == PROVIDERS:
            yield name
        elif isinstance(name, str) and resource == MACHINES:
            machine = view.get(MACHINES, Key(obj.key.namespace, name))
            if machine is not None:
                yield key_of(machine.decode(VirtualMachine).spec.provider_ref, machine.key)


def provider_matters(old: Object, new: Object) -> bool:
    before, after = (each.decode(Provider).status or ProviderStatus() for each in (old, new))
    mounted = (before.mounted_claims, before.mounted_exports) == (after.mounted_claims, after.mounted_exports)
    return not mounted or machines.provider_matters(old, new)


def machine_matters(old: Object, new: Object) -> bool:
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(VirtualMachine).status
    known = status and (status.id, status.phase, status.message, status.ips, status.held_for)
    return obj.uid, obj.meta.generation, obj.deleting, held_by(obj), known, is_true(obj, "Ready")


def artifacts(world: World, *more: Artifact) -> tuple[Artifact, ...]:
    """What may exist on providers, with what is about to be made."""
    return tuple(each for each in Artifact if each in (*world.before.artifacts, *more))
