"""Problems of a VMPlacementPolicy that its schema does not find: rules that contradict each other.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMPlacementPolicy
from holdfast.kinds.virtrigaud.placement import (
    AffinityRules,
    AntiAffinityRules,
    PlacementConstraints,
    PlaceRule,
    VMAffinity,
    VMAffinityTerm,
    VMPlacementPolicySpec,
)
from holdfast.meta.selectors import SelectorError
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
        *_together_and_apart(together, apart),
        *_only_excluded(together, spec.hard or PlacementConstraints()),
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


def _together_and_apart(together: AffinityRules, apart: AntiAffinityRules) -> Iterator[Problem]:
    """Strict rules that ask for the same place and for different ones."""
    pairs: tuple[tuple[str, PlaceRule | None, Iterable[str], PlaceRule | None, int | None], ...] = (
        (
            "host",
            together.host_affinity,
            together.host_affinity.preferred_hosts if together.host_affinity else (),
            apart.host_anti_affinity,
            apart.host_anti_affinity.max_vms_per_host if apart.host_anti_affinity else None,
        ),
        (
            "cluster",
            together.cluster_affinity,
            together.cluster_affinity.preferred_clusters if together.cluster_affinity else (),
            apart.cluster_anti_affinity,
            apart.cluster_anti_affinity.max_vms_per_cluster if apart.cluster_anti_affinity else None,
        ),
        (
            "datastore",
            together.datastore_affinity,
            together.datastore_affinity.preferred_datastores if together.datastore_affinity else (),
            apart.datastore_anti_affinity,
            apart.datastore_anti_affinity.max_vms_per_datastore if apart.datastore_anti_affinity else None,
        ),
        (
            "zone",
            together.zone_affinity,
            together.zone_affinity.preferred_zones if together.zone_affinity else (),
            apart.zone_anti_affinity,
            apart.zone_anti_affinity.max_vms_per_zone if apart.zone_anti_affinity else None,
        ),
    )
    for what, gather, names, spread, most in pairs:
        if _is_strict(gather) and _is_strict(spread) and not names and (most or 1) == 1:
            message = f"machines must share a {what} by spec.affinity.{what}Affinity, and each must have its own here"
            yield Problem(f"spec.antiAffinity.{what}AntiAffinity", message, _ONE_RULE)
    required = together.vm_affinity.required_during_scheduling if together.vm_affinity else ()
    forbidden = apart.vm_anti_affinity.required_during_scheduling if apart.vm_anti_affinity else ()
    for n, term in enumerate(forbidden):
        if term in required:
            path = f"spec.antiAffinity.vmAntiAffinity.requiredDuringScheduling[{n}]"
            yield Problem(path, "spec.affinity.vmAffinity requires the same machines in the same place", _ONE_RULE)


def _is_strict(rule: PlaceRule | None) -> bool:
    return rule is not None and rule.enabled and rule.scope == "strict"


def _only_excluded(together: AffinityRules, hard: PlacementConstraints) -> Iterator[Problem]:
    """Places that strict affinity asks for, of which the hard constraints allow none."""
    for what, rule, names, allowed, excluded in (
        (
            "Host",
            together.host_affinity,
            together.host_affinity.preferred_hosts if together.host_affinity else (),
            hard.hosts,
            hard.excluded_hosts,
        ),
        (
            "Cluster",
            together.cluster_affinity,
            together.cluster_affinity.preferred_clusters if together.cluster_affinity else (),
            hard.clusters,
            hard.excluded_clusters,
        ),
        (
            "Datastore",
            together.datastore_affinity,
            together.datastore_affinity.preferred_datastores if together.datastore_affinity else (),
            hard.datastores,
            hard.excluded_datastores,
        ),
        (
            "Zone",
            together.zone_affinity,
            together.zone_affinity.preferred_zones if together.zone_affinity else (),
            hard.zones,
            (),
        ),
    ):
        possible = [each for each in names if (not allowed or each in allowed) and each not in excluded]
        if names and not possible and _is_strict(rule):
            path = f"spec.affinity.{what.lower()}Affinity.preferred{what}s"
            yield Problem(path, "spec.hard allows none of them, and the scope is strict", "name one that is allowed")


def _groups(spec: VMPlacementPolicySpec) -> Iterator[Problem]:
    given = spec.security_constraints
    if given is None:
        return
    for n, name in enumerate(given.denied_security_groups):
        if name in given.allowed_security_groups:
            path = f"spec.securityConstraints.deniedSecurityGroups[{n}]"
            yield Problem(path, f"{name} is allowed and denied", _ONE_LIST)
