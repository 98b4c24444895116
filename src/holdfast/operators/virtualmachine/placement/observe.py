"""The world of the machines of one Provider that need a place: what they ask for, and what is on the Provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import NAMESPACES
from holdfast.kinds.virtrigaud import Provider, VirtualMachine, VMClass, VMPlacementPolicy
from holdfast.kinds.virtrigaud.machines import PlacementStatus, VirtualMachineSpec, VirtualMachineStatus
from holdfast.kinds.virtrigaud.placement import VMAffinityTerm
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.connections import Connections, Target, address_of, target_of
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, is_true, key_of
from holdfast.operators.virtualmachine.machines.render import gib, mib
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.world import Policy, Request, Resident
from holdfast.operators.virtualmachine.placement.world import World as Placing
from holdfast.operators.virtualmachine.resources import CLASSES, MACHINES, POLICIES, PROVIDERS
from holdfast.providers.contract import Inventory, Placement, ProviderError
from holdfast.runtime.controllers import Index, View

_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """A machine that needs a place: the object, its policy, and what it asks for."""

    object: Object
    machine: VirtualMachine
    policy: Policy
    policy_generation: int
    request: Request

    @property
    def before(self) -> PlacementStatus:
        status = self.machine.status
        return (status.placement if status else None) or PlacementStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A machine of the Provider, as it counts in placement; its place is in its status, or in the inventory."""

    object: Object
    machine: VirtualMachine
    request: Request

    @property
    def status(self) -> VirtualMachineStatus:
        return self.machine.status or VirtualMachineStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    provider    the Provider
    target      how it is reached
    unplaced    its machines that need a place, in the order in which they get it: by priority, then by age
    machines    its other machines
    policies    the policies of all of them
    namespaces  the labels of all namespaces, where a policy selects by them
    inventory   its hosts and datastores; None where it was not asked
    error       why it could not be asked
    """

    provider: Object
    target: Target
    unplaced: tuple[Unplaced, ...] = ()
    machines: tuple[Sized, ...] = ()
    policies: Mapping[Key, VMPlacementPolicy] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    inventory: Inventory | None = None
    error: ProviderError | None = None

    @property
    def placing(self) -> Placing:
        """The world as the scheduler sees it, before the first of the machines is placed."""
        inventory = self.inventory or Inventory()
        return Placing(
            inventory=inventory,
            residents=tuple(residents(self.machines, inventory)),
            policies={key: each.spec for key, each in self.policies.items()},
            namespaces=self.namespaces,
        )


# --- which machines need a place


def _provider_of(obj: Object) -> str:
    key = key_of(obj.decode(VirtualMachine).spec.provider_ref, obj.key)
    return f"{key.namespace}/{key.name}"


def _unplaced(obj: Object) -> Iterable[str]:
    return (_provider_of(obj),) if demand.needs_place(obj, obj.decode(VirtualMachine)) else ()


UNPLACED: Final = Index(resource=MACHINES, name="unplaced", values=_unplaced)
"""The machines that need a place, by their Provider."""


def unplaced_on(view: View, provider: Key) -> tuple[Object, ...]:
    return view.indexed(MACHINES, UNPLACED.name, f"{provider.namespace}/{provider.name}")


def of_machine(obj: Object, view: View) -> Iterable[Key]:
    """The Provider of a machine, while a machine on it needs a place."""
    key = key_of(obj.decode(VirtualMachine).spec.provider_ref, obj.key)
    return (key,) if unplaced_on(view, key) else ()


def machine_matters(old: Object, new: Object) -> bool:
    """Whether a change of a machine may change where others are placed."""
    return _facts(old) != _facts(new)


def _facts(obj: Object) -> tuple[object, ...]:
    machine = obj.decode(VirtualMachine)
    status = machine.status or VirtualMachineStatus()
    place = status.placement
    return (
        obj.meta.generation,
        obj.meta.labels,
        demand.needs_place(obj, machine),
        bool(status.id),
        place and (place.phase, place.host, place.datastore),
        demand.failures(machine),
    )


def of_reference(obj: Object, view: View) -> Iterable[Key]:
    """The Providers of the machines that mention a policy or a class, while they need a place."""
    found = {key_of(each.decode(VirtualMachine).spec.provider_ref, each.key) for each in REFERENCES.of(view, obj)}
    return [key for key in found if unplaced_on(view, key)]


def spec_matters(old: Object, new: Object) -> bool:
    return old.meta.generation != new.meta.generation


# --- the world


def observe(view: View, key: Key) -> World | None:
    """The world of a Provider; None where no machine needs a place, or where it cannot be asked."""
    obj = view.get(PROVIDERS, key)
    if obj is None or obj.deleting:
        return None
    waiting = unplaced_on(view, key)
    if not waiting or not is_true(obj, "Ready"):
        return None
    provider = obj.decode(Provider)
    target = target_of(view, key, provider, address_of(provider))
    if target is None:
        return None
    machines = REFERENCES.of(view, obj)
    policies = _policies(view, machines)
    names = {each.key for each in waiting}
    unplaced = tuple(_asking(view, waiting, policies))
    return World(
        provider=obj,
        target=target,
        unplaced=tuple(sorted(unplaced, key=_turn)),
        machines=tuple(_sized(view, each) for each in machines if each.key not in names),
        policies=policies,
        namespaces=namespaces(view, policies.values()),
    )


def _turn(each: Unplaced) -> tuple[int, str, Key]:
    return -each.policy.priority, each.object.meta.creation_timestamp or "", each.object.key


def _policies(view: View, machines: Iterable[Object]) -> dict[Key, VMPlacementPolicy]:
    references = ((each.meta.namespace, each.decode(VirtualMachine).spec.placement_ref) for each in machines)
    keys = {Key(namespace, each.name) for namespace, each in references if each is not None}
    found = ((key, view.get(POLICIES, key)) for key in sorted(keys))
    return {key: each.decode(VMPlacementPolicy) for key, each in found if each is not None}


def namespaces(view: View, policies: Iterable[VMPlacementPolicy]) -> Mapping[str, Mapping[str, str]]:
    """The labels of all namespaces, if a term of a policy selects by them."""
    if not any(term.namespace_selector is not None for each in policies for term in terms(each)):
        return {}
    return {each.key.name: each.meta.labels for each in view.list(NAMESPACES)}


def terms(policy: VMPlacementPolicy) -> Iterator[VMAffinityTerm]:
    """All terms of a policy that select machines."""
    spec = policy.spec
    for given in (
        spec.affinity.vm_affinity if spec.affinity else None,
        spec.anti_affinity.vm_anti_affinity if spec.anti_affinity else None,
    ):
        if given is not None:
            yield from given.required_during_scheduling
            yield from (each.vm_affinity_term for each in given.preferred_during_scheduling)


def _asking(view: View, waiting: Iterable[Object], policies: Mapping[Key, VMPlacementPolicy]) -> Iterator[Unplaced]:
    """The machines whose policy and class exist; others report themselves what is missing."""
    for obj in waiting:
        machine = obj.decode(VirtualMachine)
        reference = machine.spec.placement_ref
        assert reference is not None, "a machine that needs a place has a policy"
        key = Key(obj.key.namespace, reference.name)
        policy, vm_class = policies.get(key), view.get(CLASSES, key_of(machine.spec.class_ref, obj.key))
        if policy is None or vm_class is None:
            continue
        found = view.get(POLICIES, key)
        assert found is not None, "the policy was read from it"
        yield Unplaced(
            object=obj,
            machine=machine,
            policy=Policy(key=key, spec=policy.spec),
            policy_generation=found.meta.generation,
            request=request_of(obj, machine, vm_class.decode(VMClass)),
        )


def _sized(view: View, obj: Object) -> Sized:
    machine = obj.decode(VirtualMachine)
    vm_class = view.get(CLASSES, key_of(machine.spec.class_ref, obj.key))
    return Sized(
        object=obj,
        machine=machine,
        request=request_of(obj, machine, None if vm_class is None else vm_class.decode(VMClass)),
    )


def request_of(obj: Object, machine: VirtualMachine, vm_class: VMClass | None) -> Request:
    """What a machine asks for, by its spec and its class."""
    spec = machine.spec
    own = spec.resources
    gpu = own.gpu if own else None
    place = spec.placement
    return Request(
        key=obj.key,
        labels=obj.meta.labels,
        cpus=(own.cpu if own else None) or (vm_class.spec.cpu if vm_class else 0),
        memory_mib=(own.memory_mib if own else None) or (mib(vm_class.spec.memory) if vm_class else 0),
        disk_bytes=_disks(spec, vm_class) * _GIB,
        gpus=gpu.count if gpu else 0,
        gpu_type=(gpu.type if gpu else None) or "",
        gpu_memory_mib=(gpu.memory if gpu else None) or 0,
        pinned=Placement()
        if place is None
        else Placement(
            datastore=place.datastore or "",
            storage_pod=place.storage_pod or "",
            cluster=place.cluster or "",
            folder=place.folder or "",
            host=place.host or "",
            resource_pool=place.resource_pool or "",
        ),
    )


def _disks(spec: VirtualMachineSpec, vm_class: VMClass | None) -> int:
    """The sizes of the disks in GiB; an image whose size is not known counts as nothing."""
    defaults = vm_class.spec.disk_defaults if vm_class else None
    size = defaults.size if defaults else None
    root = (defaults.size_gib if defaults else None) or (gib(size) if size is not None else 0)
    return root + sum(each.size_gib for each in spec.disks if each.name != "root")


def residents(machines: Iterable[Sized], inventory: Inventory) -> Iterator[Resident]:
    """The machines that have a host, by the inventory or else by their status."""
    on = {id: host.name for host in inventory.hosts for id in host.machines}
    for each in machines:
        status, place = each.status, each.status.placement
        host = on.get(status.id or "") or (place.host if place else None) or ""
        if not host:
            continue
        reference, size, asked = each.machine.spec.placement_ref, status.current_resources, each.request
        yield Resident(
            key=each.object.key,
            labels=each.object.meta.labels,
            policy=None if reference is None else Key(each.object.key.namespace, reference.name),
            host=host,
            datastore=(place.datastore if place else None) or "",
            cpus=(size.cpu if size else None) or asked.cpus,
            memory_mib=(size.memory_mib if size else None) or asked.memory_mib,
            disk_bytes=asked.disk_bytes,
            gpus=asked.gpus,
            gpu_type=asked.gpu_type,
            counted=status.id in on or (not on and bool(status.id)),
        )


async def survey(world: World, *, connections: Connections) -> World:
    """The world with the hosts and datastores of the provider."""
    try:
        return replace(world, inventory=await connections.to(world.target).inventory())
    except ProviderError as error:
        return replace(world, error=error)
