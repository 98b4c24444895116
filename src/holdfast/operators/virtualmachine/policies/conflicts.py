"""Policies that contradict each other, by the machines that use them.  Pure.

A machine follows one policy, so two policies disagree where one wants its machines beside those of the other, and the
other does not, or where both share hosts that they want to fill differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud.placement import (
    PlacementConstraints,
    PolicyConflict,
    ResourceConstraints,
    SecurityConstraints,
    VMAffinityTerm,
    VMPlacementPolicySpec,
)
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.placement import validate
from holdfast.operators.virtualmachine.placement.affinity import terms
from holdfast.operators.virtualmachine.placement.judging import listed
from holdfast.operators.virtualmachine.placement.world import World
from holdfast.providers.contract import Inventory

Machine = tuple[Key, Mapping[str, str]]

_PRIORITY: Final = "change one of the two rules, or give one policy a higher spec.priority"
_SHARED: Final[Mapping[str, tuple[str, ...]]] = {
    "host": ("hosts", "clusters", "zones", "regions"),
    "kubernetes.io/hostname": ("hosts", "clusters", "zones", "regions"),
    "cluster": ("clusters", "regions"),
    "zone": ("zones", "regions"),
    "topology.kubernetes.io/zone": ("zones", "regions"),
    "region": ("regions",),
    "datastore": ("datastores",),
}
"""The constraints that two machines must share where they share a part of a topology."""


@dataclass(frozen=True, slots=True)
class Member:
    """A policy with the machines that use it: their keys and labels."""

    key: Key
    spec: VMPlacementPolicySpec
    machines: tuple[Machine, ...] = ()

    @classmethod
    def of(cls, key: Key, spec: VMPlacementPolicySpec, machines: tuple[Object, ...]) -> Member:
        return cls(key, spec, tuple((each.key, each.meta.labels) for each in machines))

    @property
    def hard(self) -> PlacementConstraints:
        return self.spec.hard or PlacementConstraints()


@dataclass(frozen=True, slots=True)
class _Selection:
    """A term of a policy that selects machines of another one."""

    path: str
    term: VMAffinityTerm
    required: bool
    selected: tuple[str, ...]


def conflicts(
    own: Member, others: tuple[Member, ...], namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[PolicyConflict]:
    """How other policies contradict one, each kind of conflict once for each of them."""
    world = World(inventory=Inventory(), namespaces=namespaces)
    for other in others:
        if validate.problems_of(own.spec) or validate.problems_of(other.spec):
            # One that contradicts itself says so, and places nothing.
            continue
        found: dict[str, PolicyConflict] = {}
        for each in (*_between(own, other, world), *_between(other, own, world, reverse=True), *_filling(own, other)):
            found.setdefault(each.conflict_type, each)
        yield from found.values()


def _between(a: Member, b: Member, world: World, *, reverse: bool = False) -> Iterator[PolicyConflict]:
    """What `b` contradicts of what `a` wants beside it; `reverse`: it is reported to `b`."""
    name = a.key.name if reverse else b.key.name
    who = f"policy {a.key.name}" if reverse else "this policy"
    whose = "this policy" if reverse else f"policy {b.key.name}"
    same = (a.spec.priority or 0) == (b.spec.priority or 0)
    severity: Literal["critical", "high"] = "critical" if same else "high"
    apart = tuple(_selections(b, a, "antiAffinity", world))
    for beside in _selections(a, b, "affinity", world):
        key = beside.term.topology_key
        said = f"{who} wants {listed(beside.selected)} in the same {key} ({beside.path})"
        against = next((each for each in apart if each.term.topology_key == key), None)
        if against is not None:
            firm = beside.required and against.required
            yield PolicyConflict(
                policy_name=name,
                conflict_type="affinity" if firm else "soft",
                description=f"{said}, and {whose} keeps {listed(against.selected)} apart ({against.path})",
                severity=severity if firm else "low",
                resolution_suggestion=_PRIORITY,
            )
        if not beside.required:
            continue
        for field in _SHARED.get(key, ()):
            here, there = getattr(a.hard, field), getattr(b.hard, field)
            if here and there and not set(here) & set(there):
                yield PolicyConflict(
                    policy_name=name,
                    conflict_type="hard",
                    description=f"{said}, and spec.hard.{field} of the two have none in common",
                    severity="critical",
                    resolution_suggestion=f"allow one of {listed(there)} in spec.hard.{field}, or remove the term",
                )
        if _are_disjoint(a.spec.security_constraints, b.spec.security_constraints):
            yield PolicyConflict(
                policy_name=name,
                conflict_type="security",
                description=f"{said}, and their security groups have none in common",
                severity="high",
                resolution_suggestion="allow a security group in both policies, or remove the term",
            )


def _selections(of: Member, about: Member, section: str, world: World) -> Iterator[_Selection]:
    """The terms of a policy that select machines of another policy."""
    spec = of.spec
    if section == "affinity":
        given, path = spec.affinity.vm_affinity if spec.affinity else None, "spec.affinity.vmAffinity"
    else:
        given = spec.anti_affinity.vm_anti_affinity if spec.anti_affinity else None
        path = "spec.antiAffinity.vmAntiAffinity"
    if given is None or not of.machines:
        return
    for name, weight, term in terms(given):
        selects = world.selecting(term, of.key.namespace)
        selected = tuple(key.name for key, labels in about.machines if selects(key, labels))
        if selected:
            yield _Selection(f"{path}.{name}", term, weight is None, selected)


def _are_disjoint(a: SecurityConstraints | None, b: SecurityConstraints | None) -> bool:
    if a is None or b is None:
        return False
    here, there = set(a.allowed_security_groups), set(b.allowed_security_groups)
    refused = bool(there) and there <= set(a.denied_security_groups)
    return refused or bool(here and there and not here & there)


def _filling(own: Member, other: Member) -> Iterator[PolicyConflict]:
    """Two policies with the same hosts, one of which fills them beyond what the other allows."""
    shared = set(own.hard.hosts) & set(other.hard.hosts) or set(own.hard.clusters) & set(other.hard.clusters)
    here, there = own.spec.resource_constraints, other.spec.resource_constraints or ResourceConstraints()
    if not shared or here is None:
        return
    for field, most, theirs in (
        ("maxCPUUtilization", here.max_cpu_utilization, there.max_cpu_utilization),
        ("maxMemoryUtilization", here.max_memory_utilization, there.max_memory_utilization),
    ):
        if most is not None and (theirs is None or theirs > most):
            fills = "without a limit" if theirs is None else f"up to {theirs} %"
            yield PolicyConflict(
                policy_name=other.key.name,
                conflict_type="resource",
                description=(
                    f"machines of policy {other.key.name} fill {listed(sorted(shared))} {fills}, "
                    f"and this policy uses them up to {most} % ({field})"
                ),
                severity="medium",
                resolution_suggestion=f"write the same {field} in both policies, or let them use different hosts",
            )
            return
