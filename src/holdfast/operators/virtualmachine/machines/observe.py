"""The world of one VirtualMachine: what its spec refers to, and what its provider reports of the machine.

`observe` reads the API and does not judge; `survey` asks the provider, with at most two calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from holdfast.client.objects import Object
from holdfast.client.resources import SECRETS, Resource
from holdfast.kernel.conditions import Status, find
from holdfast.kinds.virtrigaud import (
    Provider,
    VirtualMachine,
    VMClass,
    VMImage,
    VMNetworkAttachment,
    VMPlacementPolicy,
    VMSnapshot,
)
from holdfast.kinds.virtrigaud.images import ProviderImageStatus
from holdfast.kinds.virtrigaud.machines import Operation, VirtualMachineStatus, VMSnapshotInfo
from holdfast.kinds.virtrigaud.providers import ReportedCapabilities
from holdfast.kinds.virtrigaud.references import ObjectRef
from holdfast.kinds.virtrigaud.snapshots import VMSnapshotStatus
from holdfast.meta.objects import Key
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections, Target, address_of, target_of
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    IMAGES,
    MACHINES,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SNAPSHOTS,
)
from holdfast.operators.virtualmachine.secrets import Sealed, read
from holdfast.providers.contract import Code, Description, ProviderError, Task, TaskState
from holdfast.runtime.controllers import View
from holdfast.runtime.references import References
from holdfast.runtime.status import prior_conditions

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the provider reports.

    id           the identifier of the machine, if it is known
    description  the machine as it is; None where it was not asked for
    task         how far the task of the operation is
    error        why the provider could not be asked
    """

    id: str = ""
    description: Description | None = None
    task: TaskState | None = None
    error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object      the VirtualMachine as it came
    machine     the same, typed
    provider    its Provider, and the object of that; None where it does not exist
    target      how the Provider is reached
    vm_class    its VMClass, with its object
    image       its VMImage, with its object
    networks    the VMNetworkAttachments of its cards, by card; those that do not exist are missing
    secrets     the Secrets that it refers to, by name; those that do not exist are missing
    policy      its VMPlacementPolicy, with its object
    snapshot    the VMSnapshot to revert to, with its object
    snapshots   the snapshots of the machine, by its VMSnapshots
    found       what the provider reports, if it was asked
    """

    object: Object
    machine: VirtualMachine
    provider: tuple[Object, Provider] | None = None
    target: Target | None = None
    vm_class: tuple[Object, VMClass] | None = None
    image: tuple[Object, VMImage] | None = None
    networks: Mapping[str, VMNetworkAttachment] = field(default_factory=dict)
    secrets: Mapping[str, Sealed] = field(default_factory=dict)
    policy: tuple[Object, VMPlacementPolicy] | None = None
    snapshot: tuple[Object, VMSnapshot] | None = None
    snapshots: tuple[VMSnapshotInfo, ...] = ()
    found: Found = field(default_factory=Found)

    @property
    def before(self) -> VirtualMachineStatus:
        """The status as it was."""
        return self.machine.status or VirtualMachineStatus()

    @property
    def operation(self) -> Operation | None:
        return self.before.operation

    @property
    def id(self) -> str:
        """The provider's identifier of the machine; empty until it is known."""
        return self.found.id or self.before.id or self.object.meta.annotations.get(names.ADOPT_ID, "")

    @property
    def name_on_provider(self) -> str:
        return names.machine(self.object.key.name, self.object.uid)

    @property
    def capabilities(self) -> ReportedCapabilities:
        reported = self.provider and self.provider[1].status and self.provider[1].status.reported_capabilities
        return reported or ReportedCapabilities()

    @property
    def image_on_provider(self) -> ProviderImageStatus | None:
        """The image as it is on the provider."""
        if self.image is None or self.provider is None or self.image[1].status is None:
            return None
        name = provider_label(self.image[0].key.namespace, self.provider[0].key)
        return self.image[1].status.provider_status.get(name)


def provider_label(namespace: str, provider: Key) -> str:
    """How an object in a namespace names a Provider in its status."""
    return provider.name if provider.namespace == namespace else f"{provider.namespace}/{provider.name}"


def observe(view: View, key: Key) -> World | None:
    obj = view.get(MACHINES, key)
    return None if obj is None else world_of(view, obj)


def world_of(view: View, obj: Object) -> World:
    """The world of a VirtualMachine that exists, or that is about to be created."""
    machine, key = obj.decode(VirtualMachine), obj.key
    spec = machine.spec
    provider = referred(view, PROVIDERS, key_of(spec.provider_ref, key), Provider)
    image = None if spec.image_ref is None else referred(view, IMAGES, key_of(spec.image_ref, key), VMImage)
    joined = {
        card.name: referred(view, NETWORKS, key_of(card.network_ref, key), VMNetworkAttachment)
        for card in spec.networks
        if card.network_ref is not None
    }
    secrets = {name: read(view, SECRETS, Key(key.namespace, name)) for name in _secret_names(machine)}
    revert = spec.snapshot.revert_to_ref if spec.snapshot else None
    placement = None if spec.placement_ref is None else Key(key.namespace, spec.placement_ref.name)
    return World(
        object=obj,
        machine=machine,
        provider=provider,
        target=None if provider is None else target_of(view, provider[0].key, provider[1], address_of(provider[1])),
        vm_class=referred(view, CLASSES, key_of(spec.class_ref, key), VMClass),
        image=image,
        networks={card: each[1] for card, each in joined.items() if each is not None},
        secrets={name: each for name, each in secrets.items() if each is not None},
        policy=None if placement is None else referred(view, POLICIES, placement, VMPlacementPolicy),
        snapshot=None if revert is None else referred(view, SNAPSHOTS, Key(key.namespace, revert.name), VMSnapshot),
        snapshots=tuple(_snapshots(view, obj)),
    )


def _snapshots(view: View, machine: Object) -> Iterator[VMSnapshotInfo]:
    for obj in SNAPSHOTS_OF.of(view, machine):
        snapshot = obj.decode(VMSnapshot)
        status, config = snapshot.status, snapshot.spec.config
        if status is None or not status.snapshot_id or status.creation_time is None:
            continue
        yield VMSnapshotInfo(
            id=status.snapshot_id,
            name=obj.key.name,
            creation_time=status.creation_time,
            description=config.description,
            size_bytes=None if status.size is None else Quantity.parse(status.size).to_int(),
            has_memory=config.include_memory,
        )


def key_of(reference: ObjectRef, referrer: Key) -> Key:
    return Key(reference.namespace or referrer.namespace, reference.name)


def referred(view: View, resource: Resource, key: Key, kind: type[T]) -> tuple[Object, T] | None:
    obj = view.get(resource, key)
    return None if obj is None else (obj, obj.decode(kind))


def _secret_names(machine: VirtualMachine) -> Iterator[str]:
    user, meta = machine.spec.user_data, machine.spec.meta_data
    for source in (user and user.cloud_init, user and user.ignition, meta and meta.cloud_init):
        if source and source.secret_ref:
            yield source.secret_ref.name


# --- the provider


async def survey(world: World, *, connections: Connections) -> World:
    """The world with what the provider reports of the machine and of the task that is under way."""
    if world.target is None:
        return world
    found = Found(id=world.id)
    try:
        hypervisor = connections.to(world.target)
        task = world.operation.task_ref if world.operation else None
        if task:
            found = replace(found, task=await hypervisor.task(Task(id=task)))
        if not found.id and world.object.deleting:
            # The reply to the request that created it may have been lost.
            listed = await hypervisor.machines()
            found = replace(found, id=next((each.id for each in listed if each.name == world.name_on_provider), ""))
        if found.id and (found.task is None or found.task.done):
            found = replace(found, description=await described(found.id, hypervisor.describe))
    except ProviderError as error:
        found = replace(found, error=error)
    return replace(world, found=found)


async def described(id: str, describe: Callable[[str], Awaitable[Description]]) -> Description:
    """A machine as it is; one that is not found does not exist."""
    try:
        return await describe(id)
    except ProviderError as error:
        if error.code is Code.NOT_FOUND:
            return Description(exists=False)
        raise


# --- which machines are reconciled when another object changes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str | Key]]:
    machine, key = obj.decode(VirtualMachine), obj.key
    spec = machine.spec
    yield PROVIDERS, key_of(spec.provider_ref, key)
    yield CLASSES, key_of(spec.class_ref, key)
    if spec.image_ref is not None:
        yield IMAGES, key_of(spec.image_ref, key)
    yield from ((NETWORKS, key_of(card.network_ref, key)) for card in spec.networks if card.network_ref is not None)
    yield from ((SECRETS, name) for name in _secret_names(machine))
    if spec.placement_ref is not None:
        yield POLICIES, spec.placement_ref.name
    if spec.snapshot is not None and spec.snapshot.revert_to_ref is not None:
        yield SNAPSHOTS, spec.snapshot.revert_to_ref.name


REFERENCES: Final = References(MACHINES, _mentions)


def _machine_of(obj: Object) -> Iterator[tuple[Resource, str | Key]]:
    yield MACHINES, obj.decode(VMSnapshot).spec.vm_ref.name


SNAPSHOTS_OF: Final = References(SNAPSHOTS, _machine_of, name="machine")
"""The VMSnapshots of a machine."""


def of_snapshot(obj: Object, view: View) -> Iterator[Key]:
    """The machine of a VMSnapshot."""
    yield Key(obj.key.namespace, obj.decode(VMSnapshot).spec.vm_ref.name)


def same_references(old: Object, new: Object) -> bool:
    """Whether two versions of a VirtualMachine refer to the same objects."""
    return old.meta.generation == new.meta.generation and old.deleting == new.deleting


def provider_matters(old: Object, new: Object) -> bool:
    """Whether machines must know of a change of their Provider; most are another time of the last health check."""
    return _provider_facts(old) != _provider_facts(new)


def _provider_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(Provider).status
    runtime = status and status.runtime
    return (
        obj.uid,
        obj.meta.generation,
        obj.deleting,
        runtime and runtime.endpoint,
        status and status.reported_capabilities,
        is_true(obj, "Ready"),
    )


def class_matters(old: Object, new: Object) -> bool:
    return _class_facts(old) != _class_facts(new)


def _class_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(VMClass).status
    return obj.meta.generation, status and status.observed_generation, is_true(obj, "Validated")


def image_matters(old: Object, new: Object) -> bool:
    return _image_facts(old) != _image_facts(new)


def _image_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(VMImage).status
    on = status.provider_status if status else {}
    facts = {name: (each.available, each.id, each.path, each.failures) for name, each in on.items()}
    return obj.meta.generation, status and status.observed_generation, facts


def network_matters(old: Object, new: Object) -> bool:
    return old.meta.generation != new.meta.generation


def policy_matters(old: Object, new: Object) -> bool:
    return old.meta.generation != new.meta.generation


def snapshot_matters(old: Object, new: Object) -> bool:
    return _snapshot_facts(old) != _snapshot_facts(new)


def _snapshot_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(VMSnapshot).status or VMSnapshotStatus()
    return obj.uid, obj.meta.generation, status.phase, status.snapshot_id, status.creation_time, status.size


def is_true(obj: Object, type: str) -> bool:
    condition = find(prior_conditions(obj), type)
    return condition is not None and condition.status is Status.TRUE
