"""The world of one VMSnapshot: its machine, the provider, and the other snapshots of the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import Provider, VirtualMachine, VMSnapshot
from holdfast.kinds.virtrigaud.providers import ReportedCapabilities
from holdfast.kinds.virtrigaud.snapshots import SnapshotConfig, SnapshotMetadata, SnapshotRef, SnapshotRetentionPolicy
from holdfast.kinds.virtrigaud.snapshots import VMSnapshotStatus as Status
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections, Target, address_of, target_of
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF, is_true, key_of
from holdfast.operators.virtualmachine.resources import MACHINES, PROVIDERS, SNAPSHOTS
from holdfast.providers.contract import Hypervisor, ProviderError, Task, TaskState
from holdfast.runtime.controllers import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another snapshot of the same machine."""

    object: Object
    snapshot: VMSnapshot

    @property
    def status(self) -> Status:
        return self.snapshot.status or Status()

    @property
    def reference(self) -> SnapshotRef:
        key = self.object.key
        return SnapshotRef(name=key.name, namespace=key.namespace, uid=self.object.uid)

    @property
    def schedule(self) -> str:
        """The UID of the schedule that made it; empty if none did."""
        return schedule_of(self.object)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object         the VMSnapshot as it came
    snapshot       the same, typed
    machine        the VirtualMachine that has the name in its spec now, and the object of that
    provider       the Provider of the machine
    target         how the Provider is reached; None while it is not ready
    siblings       the other VMSnapshots of the machine
    task           how far the task of the snapshot is
    virtual_bytes  the size of the disks of the machine, when the snapshot is done
    error          why the provider could not be asked
    """

    object: Object
    snapshot: VMSnapshot
    machine: tuple[Object, VirtualMachine] | None = None
    provider: tuple[Object, Provider] | None = None
    target: Target | None = None
    siblings: tuple[Sibling, ...] = ()
    task: TaskState | None = None
    virtual_bytes: int | None = None
    error: ProviderError | None = None

    @property
    def before(self) -> Status:
        return self.snapshot.status or Status()

    def having(self, **fields: Any) -> World:
        """The world with these fields in the status."""
        status = msgspec.structs.replace(self.before, **fields)
        return replace(self, snapshot=msgspec.structs.replace(self.snapshot, status=status))

    @property
    def config(self) -> SnapshotConfig:
        return self.snapshot.spec.config

    @property
    def retention(self) -> SnapshotRetentionPolicy | None:
        return self.snapshot.spec.retention_policy

    @property
    def machine_id(self) -> str:
        """The provider's identifier of the machine; empty until it is known."""
        if self.machine is None:
            return ""
        obj, machine = self.machine
        return (machine.status.id if machine.status else None) or obj.meta.annotations.get(names.ADOPT_ID, "")

    @property
    def name_on_provider(self) -> str:
        return names.machine(self.config.name or self.object.key.name, self.object.uid)

    @property
    def capabilities(self) -> ReportedCapabilities:
        status = self.provider[1].status if self.provider else None
        return (status.reported_capabilities if status else None) or ReportedCapabilities()

    @property
    def runs(self) -> tuple[Sibling, ...]:
        """The VMSnapshots that this one made by its schedule."""
        return tuple(each for each in self.siblings if each.schedule == self.object.uid)


def schedule_of(obj: Object) -> str:
    return obj.meta.annotations.get(names.SCHEDULE_UID, "")


def is_kept(snapshot: VMSnapshot) -> bool:
    """Whether a snapshot is kept past its retention."""
    metadata, retention = snapshot.spec.metadata or SnapshotMetadata(), snapshot.spec.retention_policy
    return bool(metadata.pinned) and (retention is None or retention.preserve_pinned is not False)


def observe(view: View, key: Key) -> World | None:
    obj = view.get(SNAPSHOTS, key)
    if obj is None:
        return None
    snapshot = obj.decode(VMSnapshot)
    found = view.get(MACHINES, Key(key.namespace, snapshot.spec.vm_ref.name))
    machine = None if found is None else (found, found.decode(VirtualMachine))
    held = None if machine is None else view.get(PROVIDERS, key_of(machine[1].spec.provider_ref, machine[0].key))
    provider = None if held is None else (held, held.decode(Provider))
    ready = provider is not None and is_true(provider[0], "Ready")
    return World(
        object=obj,
        snapshot=snapshot,
        machine=machine,
        provider=provider,
        target=target_of(view, provider[0].key, provider[1], address_of(provider[1])) if provider and ready else None,
        siblings=tuple(
            Sibling(object=each, snapshot=each.decode(VMSnapshot))
            for each in SNAPSHOTS_OF.named(view, MACHINES, Key(key.namespace, snapshot.spec.vm_ref.name))
            if each.uid != obj.uid
        ),
    )


async def survey(world: World, *, connections: Connections) -> World:
    """The world with how far the task is."""
    task = world.before.task_ref
    if world.target is None or not task or not world.machine_id:
        return world
    hypervisor = connections.to(world.target)
    try:
        state = await hypervisor.task(Task(id=task))
        world = replace(world, task=state)
        if state.done and not state.error and not world.object.deleting:
            world = replace(world, virtual_bytes=await measured(world, hypervisor))
    except ProviderError as error:
        return replace(world, error=error)
    return world


async def measured(world: World, hypervisor: Hypervisor) -> int:
    """The size of the disks of the machine, as the guest sees them."""
    found = await hypervisor.describe(world.machine_id)
    return sum(each.virtual_bytes for each in found.disks)


# --- which snapshots are reconciled when another object changes


def of_provider(provider: Object, view: View) -> Iterable[Key]:
    """The snapshots of the machines of a Provider."""
    return {each.key for machine in REFERENCES.of(view, provider) for each in SNAPSHOTS_OF.of(view, machine)}


def machine_matters(old: Object, new: Object) -> bool:
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(obj: Object) -> tuple[object, ...]:
    machine = obj.decode(VirtualMachine)
    return obj.uid, obj.deleting, machine.status and machine.status.id, machine.spec.provider_ref


def siblings_of(obj: Object, view: View) -> Iterable[Key]:
    """The other snapshots of the same machine."""
    machine = Key(obj.key.namespace, obj.decode(VMSnapshot).spec.vm_ref.name)
    return [each.key for each in SNAPSHOTS_OF.named(view, MACHINES, machine) if each.uid != obj.uid]


def sibling_matters(old: Object, new: Object) -> bool:
    return _sibling_facts(old) != _sibling_facts(new)


def _sibling_facts(obj: Object) -> tuple[object, ...]:
    snapshot = obj.decode(VMSnapshot)
    status = snapshot.status or Status()
    kept = is_kept(snapshot)
    return obj.uid, obj.deleting, kept, status.phase, status.snapshot_id, status.completion_time, status.parent
