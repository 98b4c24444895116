"""The world of the machines and clones of one Provider that need a place, and what is on the Provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import NAMESPACES
from holdfast.kinds.virtrigaud import Provider, VirtualMachine, VMClass, VMClone, VMPlacementPolicy
from holdfast.kinds.virtrigaud.machines import PlacementStatus, VirtualMachineSpec, VirtualMachineStatus
from holdfast.kinds.virtrigaud.placement import VMAffinityTerm, VMPlacementPolicySpec
from holdfast.meta.objects import Key
from holdfast.meta.sizes import GIB
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.clones import observe as clones
from holdfast.operators.virtualmachine.connections import Target, address_of, target_of
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, is_true, key_of
from holdfast.operators.virtualmachine.machines.render import gib, mib
from holdfast.operators.virtualmachine.placement import demand, validate
from holdfast.operators.virtualmachine.placement.schedule import Choice, natural, resident
from holdfast.operators.virtualmachine.placement.world import Policy, Request, Resident
from holdfast.operators.virtualmachine.placement.world import World as Placing
from holdfast.operators.virtualmachine.resources import CLASSES, CLONES, MACHINES, POLICIES, PROVIDERS
from holdfast.providers.contract import Inventory, Placement, ProviderError
from holdfast.runtime.controllers import Index, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """A machine, or a clone of one, that needs a place.

    object             the VirtualMachine, or the VMClone
    before             what its status says of its place
    policy             its policy, and the generation of that
    request            what it asks for
    failures           how often the provider could not create it where it was placed
    failed_host        where that was, if the choice does not know of it yet
    """

    object: Object
    before: PlacementStatus
    policy: Policy
    policy_generation: int
    request: Request
    failures: int = 0
    failed_host: str = ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen for a machine, and the hosts on which it could not be created."""

    of: Unplaced
    choice: Choice
    failed: tuple[str, ...] = ()


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
    unplaced    its machines and clones that need a place, in the order in which they get it: by priority, then by age
    machines    its other machines
    clones      the machines that are being cloned where a policy chose
    policies    the policies of all of them
    namespaces  the labels of all namespaces, where a policy selects by them
    inventory   its hosts and datastores; None where it was not asked
    error       why it could not be asked
    choices     what was chosen for the first of the machines, in their order
    """

    provider: Object
    target: Target
    unplaced: tuple[Unplaced, ...] = ()
    machines: tuple[Sized, ...] = ()
    clones: tuple[Resident, ...] = ()
    policies: Mapping[Key, VMPlacementPolicy] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    inventory: Inventory | None = None
    error: ProviderError | None = None
    choices: tuple[Chosen, ...] = ()

    @property
    def placing(self) -> Placing:
        """The world as the scheduler sees it, before the first of the machines is placed."""
        inventory = self.inventory or Inventory()
        return Placing(
            inventory=inventory,
            residents=(*residents(self.machines, inventory), *self.clones),
            # A policy that is not valid binds no machine, also where it was stored without a review.
            policies={key: each.spec for key, each in self.policies.items() if not validate.problems(each)},
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


OPEN_CLONES: Final = Index(
    resource=CLONES, name="open", values=lambda obj: ("",) if demand.is_open(obj, obj.decode(VMClone)) else ()
)
"""The clones with a policy that are not machines yet; few, and their Provider is that of their source."""


def unplaced_on(view: View, provider: Key) -> tuple[Object, ...]:
    return view.indexed(MACHINES, UNPLACED.name, f"{provider.namespace}/{provider.name}")


def clones_on(view: View, provider: Key) -> Iterator[clones.World]:
    for obj in view.indexed(CLONES, OPEN_CLONES.name, ""):
        found = clones.world_of(view, obj)
        if _provider_of_clone(found) == provider:
            yield found


def _provider_of_clone(clone: clones.World) -> Key | None:
    provider = clone.wanted.provider if clone.wanted is not None else None
    return None if provider is None else provider[0].key


def is_awaited(view: View, provider: Key) -> bool:
    """Whether a machine or a clone on a Provider needs a place."""
    if unplaced_on(view, provider):
        return True
    return any(demand.clone_needs_place(each.object, each.clone) for each in clones_on(view, provider))


def of_clone(obj: Object, view: View) -> Iterable[Key]:
    """The Provider of a clone with a policy, while a machine or a clone on it needs a place."""
    if obj.decode(VMClone).spec.target.placement_ref is None:
        return ()
    key = _provider_of_clone(clones.world_of(view, obj))
    return (key,) if key is not None and is_awaited(view, key) else ()


def clone_matters(old: Object, new: Object) -> bool:
    """Whether a change of a clone may change where machines are placed."""
    return _clone_facts(old) != _clone_facts(new)


def _clone_facts(obj: Object) -> tuple[object, ...]:
    clone = obj.decode(VMClone)
    place = clone.status.placement if clone.status else None
    return (
        obj.meta.generation,
        demand.is_open(obj, clone),
        demand.clone_needs_place(obj, clone),
        place and (place.phase, place.host, place.datastore),
        demand.clone_failures(clone),
    )


def of_machine(obj: Object, view: View) -> Iterable[Key]:
    """The Provider of a machine, while a machine on it needs a place."""
    key = key_of(obj.decode(VirtualMachine).spec.provider_ref, obj.key)
    return (key,) if is_awaited(view, key) else ()


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
        status.current_resources,
        demand.failures(machine),
    )


def of_reference(obj: Object, view: View) -> Iterable[Key]:
    """The Providers of the machines and clones that refer to an object, while one on them needs a place."""
    found = {key_of(each.decode(VirtualMachine).spec.provider_ref, each.key) for each in REFERENCES.of(view, obj)}
    cloning = {key for each in clones.CLONES_OF.of(view, obj) for key in of_clone(each, view)}
    return [*cloning, *(key for key in found - cloning if is_awaited(view, key))]


def of_namespace(obj: Object, view: View) -> Iterable[Key]:
    """The Providers on which a machine or a clone needs a place: policies may select machines by namespace."""
    return [each.key for each in view.list(PROVIDERS) if is_awaited(view, each.key)]


def labels_matter(old: Object, new: Object) -> bool:
    return old.meta.labels != new.meta.labels


def spec_matters(old: Object, new: Object) -> bool:
    return old.meta.generation != new.meta.generation


# --- the world


def observe(view: View, key: Key) -> World | None:
    """The world of a Provider; None where no machine needs a place, or where it cannot be asked."""
    obj = view.get(PROVIDERS, key)
    if obj is None or obj.deleting:
        return None
    waiting, cloning = unplaced_on(view, key), tuple(clones_on(view, key))
    asking = [each for each in cloning if demand.clone_needs_place(each.object, each.clone)]
    if not (waiting or asking) or not is_true(obj, "Ready"):
        return None
    provider = obj.decode(Provider)
    target = target_of(view, key, provider, address_of(provider))
    if target is None:
        return None
    machines = REFERENCES.of(view, obj)
    known = {each.key for each in waiting}
    wanted = [(each.meta.namespace, each.decode(VirtualMachine)) for each in machines]
    wanted += [(each.object.key.namespace, each.wanted.machine) for each in cloning if each.wanted]
    policies = _policies(view, wanted)
    unplaced = (*_asking(view, waiting, policies), *_cloning(view, asking, policies))
    return World(
        provider=obj,
        target=target,
        unplaced=tuple(sorted(unplaced, key=_turn)),
        machines=tuple(_sized(view, each) for each in machines if each.key not in known),
        clones=tuple(each for one in cloning if (each := _cloned(one)) is not None),
        policies=policies,
        namespaces=namespaces(view, policies.values()),
    )


def _turn(each: Unplaced) -> tuple[object, ...]:
    key = each.object.key
    return -each.policy.priority, each.object.meta.creation_timestamp or "", key.namespace, natural(key.name)


def _policies(view: View, machines: Iterable[tuple[str, VirtualMachine]]) -> dict[Key, VMPlacementPolicy]:
    references = ((namespace, each.spec.placement_ref) for namespace, each in machines)
    keys = {Key(namespace, each.name) for namespace, each in references if each is not None}
    found = ((key, view.get(POLICIES, key)) for key in sorted(keys))
    return {key: each.decode(VMPlacementPolicy) for key, each in found if each is not None}


def namespaces(view: View, policies: Iterable[VMPlacementPolicy]) -> Mapping[str, Mapping[str, str]]:
    """The labels of all namespaces, if a term of a policy selects by them."""
    if not any(map(selects_namespaces, policies)):
        return {}
    return {each.key.name: each.meta.labels for each in view.list(NAMESPACES)}


def selects_namespaces(policy: VMPlacementPolicy) -> bool:
    """Whether a term of a policy selects machines by the labels of their namespaces."""
    return any(term.namespace_selector is not None for term in terms(policy))


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
        found = _policy(view, key, policies)
        vm_class = view.get(CLASSES, key_of(machine.spec.class_ref, obj.key))
        if found is None or vm_class is None:
            continue
        yield Unplaced(
            object=obj,
            before=(machine.status.placement if machine.status else None) or PlacementStatus(),
            policy=found[0],
            policy_generation=found[1],
            request=request_of(obj, machine, vm_class.decode(VMClass)),
            failures=demand.failures(machine),
            failed_host=demand.failed_host(machine),
        )


def _policy(view: View, key: Key, policies: Mapping[Key, VMPlacementPolicy]) -> tuple[Policy, int] | None:
    found = view.get(POLICIES, key)
    return None if found is None else (Policy(key=key, spec=policies[key].spec), found.meta.generation)


def _cloning(
    view: View, asking: Iterable[clones.World], policies: Mapping[Key, VMPlacementPolicy]
) -> Iterator[Unplaced]:
    """The clones whose source, policy and class exist."""
    for each in asking:
        wanted, reference = each.wanted, each.clone.spec.target.placement_ref
        if wanted is None or wanted.vm_class is None or reference is None:
            continue
        found = _policy(view, Key(each.object.key.namespace, reference.name), policies)
        if found is None:
            continue
        before, failures = each.before.placement or PlacementStatus(), demand.clone_failures(each.clone)
        yield Unplaced(
            object=each.object,
            before=before,
            policy=found[0],
            policy_generation=found[1],
            request=request_of(wanted.object, wanted.machine, wanted.vm_class[1]),
            failures=failures,
            failed_host=(before.host or "") if failures > (before.failures or 0) else "",
        )


def _cloned(each: clones.World) -> Resident | None:
    """A clone that has a place, and is not a machine yet."""
    place, wanted = each.before.placement, each.wanted
    if place is None or place.phase != demand.PLACED or wanted is None or each.is_made:
        return None
    request = request_of(wanted.object, wanted.machine, wanted.vm_class[1] if wanted.vm_class else None)
    policy = Key(each.object.key.namespace, place.policy or "")
    placed = Placement(host=place.host or "", datastore=place.datastore or "")
    # Whether the provider counts it already is not known; to count it twice for a moment does no harm.
    return resident(Policy(key=policy, spec=VMPlacementPolicySpec()), request, placed)


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
        disk_bytes=_disks(spec, vm_class) * GIB,
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
        id = status.id or each.object.meta.annotations.get(names.ADOPT_ID, "")
        host = on.get(id) or (place.host if place else None) or ""
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
            counted=id in on or (not on and bool(id)),
        )
