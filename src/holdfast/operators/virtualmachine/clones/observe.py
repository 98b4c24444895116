"""The world of one VMClone: what is cloned, the machine that is made, and what the provider reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import SECRETS, Resource
from holdfast.kinds.virtrigaud import Provider, VirtualMachine, VMClone, VMSnapshot
from holdfast.kinds.virtrigaud.clones import CloneOptions, CloneType, VMCloneStatus
from holdfast.kinds.virtrigaud.machines import VirtualMachineStatus
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.clones.render import target_machine
from holdfast.operators.virtualmachine.connections import Connections, Target, address_of, target_of
from holdfast.operators.virtualmachine.machines import observe as machines
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF, is_true, key_of
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    CLONES,
    MACHINES,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SNAPSHOTS,
)
from holdfast.providers.contract import ProviderError, Task, TaskState
from holdfast.runtime.controllers import View
from holdfast.runtime.references import References


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object    the VMClone as it came
    clone     the same, typed
    snapshot  the VMSnapshot that is cloned, with its object
    source    the machine that is cloned, directly or by its snapshot, with its object
    wanted    the VirtualMachine that is made, as the world of a machine; None until the source is known
    machine   the VirtualMachine that has the name of the target now, with its object
    target    how the provider is reached, also when the source is gone; None while it is not ready
    task      how far the task is that makes the clone
    error     why the provider could not be asked
    """

    object: Object
    clone: VMClone
    snapshot: tuple[Object, VMSnapshot] | None = None
    source: tuple[Object, VirtualMachine] | None = None
    wanted: machines.World | None = None
    machine: tuple[Object, VirtualMachine] | None = None
    target: Target | None = None
    task: TaskState | None = None
    error: ProviderError | None = None

    @property
    def before(self) -> VMCloneStatus:
        return self.clone.status or VMCloneStatus()

    def having(self, **fields: Any) -> World:
        """The world with these fields in the status."""
        status = msgspec.structs.replace(self.before, **fields)
        return replace(self, clone=msgspec.structs.replace(self.clone, status=status))

    @property
    def options(self) -> CloneOptions:
        return self.clone.spec.options or CloneOptions()

    @property
    def type(self) -> CloneType:
        return self.options.type or CloneType.FULL_CLONE

    @property
    def from_image(self) -> bool:
        """Whether the machine is made from an image or a template, and not from a machine."""
        source = self.clone.spec.source
        return source.vm_ref is None and source.snapshot_ref is None

    @property
    def source_id(self) -> str:
        """The provider's identifier of the machine that is cloned."""
        if self.source is None:
            return ""
        obj, machine = self.source
        return (machine.status.id if machine.status else None) or obj.meta.annotations.get(names.ADOPT_ID, "")

    @property
    def is_made(self) -> bool:
        """Whether the VirtualMachine of the target was made by this VMClone: its UID proves it, never its name."""
        return self.machine is not None and self.machine[0].meta.annotations.get(names.CLONE_UID) == self.object.uid


def observe(view: View, key: Key) -> World | None:
    obj = view.get(CLONES, key)
    return None if obj is None else world_of(view, obj)


def world_of(view: View, obj: Object) -> World:
    """The world of a VMClone, also of one that is gone."""
    clone, key = obj.decode(VMClone), obj.key
    refers = clone.spec.source
    named = Key(key.namespace, refers.snapshot_ref.name) if refers.snapshot_ref else None
    snapshot = None if named is None else machines.referred(view, SNAPSHOTS, named, VMSnapshot)
    name = refers.vm_ref.name if refers.vm_ref else snapshot[1].spec.vm_ref.name if snapshot else ""
    source = machines.referred(view, MACHINES, Key(key.namespace, name), VirtualMachine) if name else None
    made = target_machine(obj, clone, source[1] if source else None)
    wanted = None if made is None else _placed(machines.world_of(view, Object.of(MACHINES, made)), clone)
    provider = _provider(view, key, clone, wanted)
    ready = provider is not None and is_true(provider[0], "Ready")
    return World(
        object=obj,
        clone=clone,
        snapshot=snapshot,
        source=source,
        wanted=wanted,
        target=target_of(view, provider[0].key, provider[1], address_of(provider[1])) if provider and ready else None,
        machine=machines.referred(view, MACHINES, Key(key.namespace, clone.spec.target.name), VirtualMachine),
    )


def _placed(wanted: machines.World, clone: VMClone) -> machines.World:
    """The machine that is made, with the place that its policy chose."""
    status = VirtualMachineStatus(placement=clone.status.placement if clone.status else None)
    return replace(wanted, machine=msgspec.structs.replace(wanted.machine, status=status))


def _provider(view: View, key: Key, clone: VMClone, wanted: machines.World | None) -> tuple[Object, Provider] | None:
    """The Provider that was asked for the clone, or that will be."""
    asked = clone.status.provider_ref if clone.status else None
    if asked is not None:
        return machines.referred(view, PROVIDERS, key_of(asked, key), Provider)
    return wanted.provider if wanted else None


async def survey(world: World, *, connections: Connections) -> World:
    """The world with how far the task is."""
    if world.target is None or not world.before.task_ref or world.is_made or world.object.deleting:
        return world
    try:
        return replace(world, task=await connections.to(world.target).task(Task(id=world.before.task_ref)))
    except ProviderError as error:
        return replace(world, error=error)


# --- which clones are reconciled when another object changes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str | Key]]:
    clone = obj.decode(VMClone)
    spec, asked = clone.spec, clone.status.provider_ref if clone.status else None
    yield MACHINES, spec.target.name
    if asked is not None:
        yield PROVIDERS, key_of(asked, obj.key)
    if spec.source.vm_ref is not None:
        yield MACHINES, spec.source.vm_ref.name
    if spec.source.snapshot_ref is not None:
        yield SNAPSHOTS, spec.source.snapshot_ref.name
    if spec.target.provider_ref is not None:
        yield PROVIDERS, key_of(spec.target.provider_ref, obj.key)
    if spec.target.placement_ref is not None:
        yield POLICIES, spec.target.placement_ref.name
    if spec.target.class_ref is not None:
        yield CLASSES, spec.target.class_ref.name
    yield from ((NETWORKS, key_of(card.network_ref, obj.key)) for card in spec.target.networks if card.network_ref)
    data = spec.customization.user_data if spec.customization else None
    for source in (data and data.cloud_init, data and data.ignition):
        if source and source.secret_ref:
            yield SECRETS, source.secret_ref.name


CLONES_OF: Final = References(CLONES, _mentions)


def of_machine(machine: Object, view: View) -> Iterable[Key]:
    """The clones of a machine, of its snapshots, and the one that makes it."""
    origins = (machine, *SNAPSHOTS_OF.of(view, machine))
    return {each.key for origin in origins for each in CLONES_OF.of(view, origin)}


def of_reference(obj: Object, view: View) -> Iterable[Key]:
    """The clones that refer to an object, and those of machines that do: a clone is made as its source is."""
    found = {each.key for each in CLONES_OF.of(view, obj)}
    return found.union(*(of_machine(machine, view) for machine in REFERENCES.of(view, obj)))


def machine_matters(old: Object, new: Object) -> bool:
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(obj: Object) -> tuple[object, ...]:
    machine = obj.decode(VirtualMachine)
    status = machine.status
    share = status and status.operation and status.operation.percentage
    known = status and (status.id, status.phase, status.message, status.ips, share)
    return obj.uid, obj.meta.generation, obj.deleting, known, is_true(obj, "Ready")
