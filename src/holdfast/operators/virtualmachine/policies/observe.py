"""The world of one VMPlacementPolicy: its machines, their Providers, and the other policies of its namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import Provider, VirtualMachine, VMPlacementPolicy
from holdfast.kinds.virtrigaud.placement import VMPlacementPolicyStatus
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import usage
from holdfast.operators.virtualmachine.machines.observe import REFERENCES
from holdfast.operators.virtualmachine.placement.observe import namespaces, selects_namespaces
from holdfast.operators.virtualmachine.policies.conflicts import Member
from holdfast.operators.virtualmachine.resources import POLICIES
from holdfast.runtime.controllers import View


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object      the VMPlacementPolicy as it came
    policy      the same, typed
    machines    the VirtualMachines that refer to it
    providers   their Providers, by name
    others      the other policies of its namespace, with the machines of each
    namespaces  the labels of all namespaces, where a policy selects by them
    """

    object: Object
    policy: VMPlacementPolicy
    machines: tuple[Object, ...] = ()
    providers: Mapping[str, tuple[Object, Provider]] = field(default_factory=dict)
    others: tuple[Member, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def before(self) -> VMPlacementPolicyStatus:
        return self.policy.status or VMPlacementPolicyStatus()

    @property
    def own(self) -> Member:
        return Member.of(self.object.key, self.policy.spec, self.machines)


def observe(view: View, key: Key) -> World | None:
    obj = view.get(POLICIES, key)
    if obj is None or obj.deleting:
        return None
    machines = REFERENCES.of(view, obj)
    others = [each for each in view.list(POLICIES, namespace=key.namespace) if each.key != key and not each.deleting]
    typed = {each.key: each.decode(VMPlacementPolicy) for each in others}
    policy = obj.decode(VMPlacementPolicy)
    return World(
        object=obj,
        policy=policy,
        machines=machines,
        providers=usage.providers(view, key.namespace, machines),
        others=tuple(Member.of(each.key, typed[each.key].spec, REFERENCES.of(view, each)) for each in others),
        namespaces=namespaces(view, (policy, *typed.values())),
    )


# --- what brings a policy


def of_machine(obj: Object, view: View) -> Iterable[Key]:
    reference = obj.decode(VirtualMachine).spec.placement_ref
    return () if reference is None else (Key(obj.key.namespace, reference.name),)


def machine_matters(old: Object, new: Object) -> bool:
    """Whether a change of a machine changes what its policy reports."""
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(VirtualMachine).status
    return obj.meta.generation, obj.meta.labels, obj.deleting, status and status.placement


def others_of_machine(obj: Object, view: View) -> Iterable[Key]:
    """The policies that the policy of a machine may contradict, by the labels of the machine."""
    own = next(iter(of_machine(obj, view)), None)
    return [] if own is None else [each for each in _in(view, obj.key.namespace) if each != own]


def member_matters(old: Object, new: Object) -> bool:
    """Whether a machine has other labels or another policy."""
    return (old.meta.generation, old.meta.labels) != (new.meta.generation, new.meta.labels)


def of_namespace(obj: Object, view: View) -> Iterable[Key]:
    """The policies of which one, or another one beside it, selects machines by the labels of their namespaces."""
    found = view.list(POLICIES)
    selecting = {each.key.namespace for each in found if selects_namespaces(each.decode(VMPlacementPolicy))}
    return [each.key for each in found if each.key.namespace in selecting]


def _in(view: View, namespace: str) -> list[Key]:
    return [each.key for each in view.list(POLICIES, namespace=namespace)]


def siblings_of(obj: Object, view: View) -> Iterable[Key]:
    """The other policies of a namespace, which may contradict a policy that changed."""
    return [each for each in _in(view, obj.key.namespace) if each != obj.key]


def provider_matters(old: Object, new: Object) -> bool:
    """Whether a provider has other places, or reports that it can do other things."""
    return _provider_facts(old) != _provider_facts(new)


def _provider_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(Provider).status
    return obj.uid, status and status.reported_capabilities, status and status.inventory
