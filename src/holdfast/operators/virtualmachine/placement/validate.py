"""Problems of a VMPlacementPolicy that its schema does not find: rules that contradict each other.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMPlacementPolicy
from holdfast.kinds.virtrigaud.placement import (
    AffinityRules,
    AntiAffinityRules,
    PlacementConstraints,
    VMAffinity,
    VMAffinityTerm,
    VMPlacementPolicySpec,
)
from holdfast.meta.selectors import SelectorError
from holdfast.operators.virtualmachine.placement.gathering import gatherings, is_strict
from holdfast.operators.virtualmachine.placement.world import selected, selector

_ONE_LIST: Final = "remove it from one of the lists"
_ONE_RULE: Final = "remove one of the rules, or set the scope of one to preferred"


def problems(policy: VMPlacementPolicy) -> tuple[Problem, ...]:
    """All problems of a policy."""
    return problems_of(policy.spec)


def problems_of(spec: VMPlacementPolicySpec) -> tuple[Problem, ...]:
    """All problems of a spec."""
    together, apart = spec.affinity or AffinityRules(), spec.anti_affinity or AntiAffinityRules()
    return (
        *_constraints("spec.hard", spec.hard),
        *_constraints("spec.soft", spec.soft),
        *_terms("spec.affinity.vmAffinity", together.vm_affinity),
        *_terms("spec.antiAffinity.vmAntiAffinity", apart.vm_anti_affinity),
        *_together_and_apart(spec),
        *_groups(spec),
    )


def _constraints(at: str, given: PlacementConstraints | None) -> Iterator[Problem]:
    if given is None:
        return
    for what, included, excluded in (
        ("Hosts", given.hosts, given.excluded_hosts),
        ("Clusters", given.clusters, given.excluded_clusters),
        ("Datastores", given.datastores, given.excluded_datastores),
    ):
        for n, name in enumerate(excluded):
            if name in included:
                message = f"{name} is included by {what.lower()} and excluded"
                yield Problem(f"{at}.excluded{what}[{n}]", message, _ONE_LIST)
    for n, toleration in enumerate(given.tolerations):
        path = f"{at}.tolerations[{n}]"
        if toleration.operator == "Exists" and toleration.value:
            yield Problem(f"{path}.value", "operator Exists takes no value", "remove value, or write operator: Equal")
        if not toleration.key and toleration.operator != "Exists":
            yield Problem(f"{path}.key", "a toleration of every taint needs operator Exists", "add key or the operator")


def _terms(at: str, given: VMAffinity | None) -> Iterator[Problem]:
    if given is None:
        return
    for n, term in enumerate(given.required_during_scheduling):
        yield from _term(f"{at}.requiredDuringScheduling[{n}]", term)
    for n, weighted in enumerate(given.preferred_during_scheduling):
        yield from _term(f"{at}.preferredDuringScheduling[{n}].vmAffinityTerm", weighted.vm_affinity_term)


def _term(at: str, term: VMAffinityTerm) -> Iterator[Problem]:
    if term.label_selector is None and not term.match_expressions:
        hint = "add labelSelector; {} selects all machines"
        yield Problem(at, "the term has neither labelSelector nor matchExpressions, so it selects no machine", hint)
    if not term.topology_key:
        yield Problem(f"{at}.topologyKey", "it is empty", "write host, cluster, datastore, zone, region or a label")
    try:
        selected(term)
        if term.namespace_selector is not None:
            selector(term.namespace_selector.match_labels, term.namespace_selector.match_expressions)
    except SelectorError as error:
        yield Problem(at, f"a selector is not valid: {error.problem}", "correct the selector")


def _together_and_apart(spec: VMPlacementPolicySpec) -> Iterator[Problem]:
    """Strict rules that ask for the same place and for different ones, or for places that are not allowed."""
    for each in gatherings(spec):
        what, gather = each.what, f"spec.affinity.{each.what}Affinity"
        if is_strict(each.gather) and is_strict(each.spread) and not each.names and each.most == 1:
            message = f"machines must share a {what} by {gather}, and each must have its own here"
            yield Problem(f"spec.antiAffinity.{what}AntiAffinity", message, _ONE_RULE)
        allowed = [name for name in each.names if name in (each.allowed or each.names) and name not in each.excluded]
        if is_strict(each.gather) and each.names and not allowed:
            path = f"{gather}.preferred{what.capitalize()}s"
            yield Problem(path, "spec.hard allows none of them, and the scope is strict", "name one that is allowed")
    together = spec.affinity.vm_affinity if spec.affinity else None
    apart = spec.anti_affinity.vm_anti_affinity if spec.anti_affinity else None
    required = together.required_during_scheduling if together else ()
    for n, term in enumerate(apart.required_during_scheduling if apart else ()):
        if term in required:
            path = f"spec.antiAffinity.vmAntiAffinity.requiredDuringScheduling[{n}]"
            yield Problem(path, "spec.affinity.vmAffinity requires the same machines in the same place", _ONE_RULE)


def _groups(spec: VMPlacementPolicySpec) -> Iterator[Problem]:
    given = spec.security_constraints
    if given is None:
        return
    for n, name in enumerate(given.denied_security_groups):
        if name in given.allowed_security_groups:
            path = f"spec.securityConstraints.deniedSecurityGroups[{n}]"
            yield Problem(path, f"{name} is allowed and denied", _ONE_LIST)
