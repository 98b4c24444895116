"""Which nodes a pod may run on: one filter for each rule, in the order in which Kubernetes' scheduler asks.

A filter looks at the pod and the cluster once and returns a check of single nodes,
or None where the pod asks for nothing of the kind.  A check says why a node is
refused, in the words that people know from Kubernetes.  This module must not know
which of the fitting nodes is the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.cluster.scheduling.needs import Claim, HostPort, PodTerm, Spread
from holdfast.cluster.scheduling.occupancy import Cluster, Host
from holdfast.meta.nodes import NO_EXECUTE, NO_SCHEDULE, Taint

Check = Callable[[Host], tuple[str, ...]]
"""Why a node is refused; nothing, if it is not."""

Filter = Callable[[Claim, Cluster], Check | None]

_FITS: Final = ()
_HARD: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
_CORDONED: Final = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
"""The taint that stands for a cordon; who tolerates it may pass."""

RUNTIME_LABEL: Final = "holdfast.dev/runtime"
"""The label of nodes that run the pods of one runtime class alone."""

PROCESS: Final = "process"
"""The runtime class of pods that run as processes of this machine."""

UNSCHEDULABLE: Final = ("node(s) were unschedulable",)
NOT_READY: Final = ("node(s) were not ready",)
OTHER_RUNTIME: Final = ("node(s) run pods of another runtime",)
OTHER_NAME: Final = ("node(s) didn't match the requested node name",)
UNSELECTED: Final = ("node(s) didn't match Pod's node affinity/selector",)
NO_PORTS: Final = ("node(s) didn't have free ports for the requested pod ports",)
TOO_MANY_PODS: Final = "Too many pods"
SKEWED: Final = ("node(s) didn't match pod topology spread constraints",)
NO_TOPOLOGY: Final = ("node(s) didn't match pod topology spread constraints (missing required label)",)
NOT_NEAR: Final = ("node(s) didn't match pod affinity rules",)
NOT_APART: Final = ("node(s) didn't match pod anti-affinity rules",)
REPELLED: Final = ("node(s) didn't satisfy existing pods anti-affinity rules",)


def _cordon(claim: Claim, cluster: Cluster) -> Check:
    passes = claim.needs.tolerate(_CORDONED)

    def check(host: Host) -> tuple[str, ...]:
        return UNSCHEDULABLE if host.node.unschedulable and not passes else _FITS

    return check


def _name(claim: Claim, cluster: Cluster) -> Check | None:
    wanted = claim.needs.node_name
    return (lambda host: _FITS if host.name == wanted else OTHER_NAME) if wanted else None


def _taints(claim: Claim, cluster: Cluster) -> Check:
    def check(host: Host) -> tuple[str, ...]:
        taint = _untolerated(claim, host)
        return _FITS if taint is None else (f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",)

    return check


def _untolerated(claim: Claim, host: Host) -> Taint | None:
    hard = (taint for taint in host.node.taints if taint.effect in _HARD)
    return next((taint for taint in hard if not claim.needs.tolerate(taint)), None)


def _runtime(claim: Claim, cluster: Cluster) -> Check:
    """A node for processes runs those alone, and they run nowhere else; other runtimes make no difference here."""
    runtime = PROCESS if claim.needs.runtime == PROCESS else ""
    return lambda host: _FITS if host.node.labels.get(RUNTIME_LABEL, "") == runtime else OTHER_RUNTIME


def _readiness(claim: Claim, cluster: Cluster) -> Check:
    return lambda host: _FITS if host.node.ready else NOT_READY


def _selection(claim: Claim, cluster: Cluster) -> Check | None:
    needs = claim.needs
    if not needs.node_selector.requirements and needs.node_terms is None:
        return None
    return lambda host: _FITS if needs.select(host.node.labels, host.name) else UNSELECTED


def _ports(claim: Claim, cluster: Cluster) -> Check | None:
    wanted = claim.needs.ports
    if not wanted:
        return None

    def check(host: Host) -> tuple[str, ...]:
        return NO_PORTS if any(_clash(port, taken) for port in wanted for taken in host.ports) else _FITS

    return check


def _clash(one: HostPort, other: HostPort) -> bool:
    same_address = not one.address or not other.address or one.address == other.address
    return one.port == other.port and one.protocol == other.protocol and same_address


def _resources(claim: Claim, cluster: Cluster) -> Check:
    requests = claim.needs.requests

    def check(host: Host) -> tuple[str, ...]:
        allocatable, taken = host.node.allocatable, host.taken
        lacking = [
            f"Insufficient {name}"
            for name, number in requests
            if number > allocatable.get(name, 0) - taken.get(name, 0)
        ]
        if host.pods >= allocatable.get("pods", 0):
            lacking.insert(0, TOO_MANY_PODS)
        return tuple(lacking)

    return check


def _spreads(claim: Claim, cluster: Cluster) -> Check | None:
    required = [spread for spread in claim.needs.spreads if spread.required]
    if not required:
        return None
    keys = tuple(spread.topology_key for spread in required)
    limits = [(spread.topology_key, _room(spread, claim, cluster, keys)) for spread in required]

    def check(host: Host) -> tuple[str, ...]:
        labels = host.node.labels
        for key, open_domains in limits:
            if key not in labels:
                return NO_TOPOLOGY
            if labels[key] not in open_domains:
                return SKEWED
        return _FITS

    return check


def _room(spread: Spread, claim: Claim, cluster: Cluster, keys: tuple[str, ...]) -> frozenset[str]:
    """The places where one pod more is not one too many."""
    group = cluster.spread_group(spread, claim)
    counts = spread_counts(spread, claim, cluster, keys)
    fewest = min(counts.values(), default=0) if len(counts) >= spread.min_domains else 0
    itself = 1 if group.has(claim) else 0
    return frozenset(domain for domain, number in counts.items() if number + itself - fewest <= spread.max_skew)


def spread_counts(spread: Spread, claim: Claim, cluster: Cluster, keys: tuple[str, ...]) -> dict[str, int]:
    """How many pods of a spread each domain has, of the nodes that count for it."""
    tally = cluster.tally(cluster.spread_group(spread, claim))
    counts: dict[str, int] = {}
    for host in cluster.hosts:
        if _counts_for(spread, claim, host, keys):
            domain = host.node.labels[spread.topology_key]
            counts[domain] = counts.get(domain, 0) + tally.get(host.name, 0)
    return counts


def _counts_for(spread: Spread, claim: Claim, host: Host, keys: tuple[str, ...]) -> bool:
    node = host.node
    if any(key not in node.labels for key in keys):
        return False
    if spread.heeds_affinity and not claim.needs.select(node.labels, node.name):
        return False
    return not spread.heeds_taints or _untolerated(claim, host) is None


def _pods(claim: Claim, cluster: Cluster) -> Check | None:
    needs, repelled = claim.needs, cluster.repelled(claim)
    if not needs.near and not needs.apart and not repelled:
        return None
    near = _near(claim, cluster)
    apart = [(term.topology_key, _occupied(term, claim, cluster)) for term in needs.apart]

    def check(host: Host) -> tuple[str, ...]:
        labels = host.node.labels
        for key, domains in near:
            if key not in labels or (domains is not None and labels[key] not in domains):
                return NOT_NEAR
        for key, occupied in apart:
            if labels.get(key) in occupied:
                return NOT_APART
        if any(labels.get(key) in domains for key, domains in repelled.items()):
            return REPELLED
        return _FITS

    return check


def _near(claim: Claim, cluster: Cluster) -> list[tuple[str, Mapping[str, int] | None]]:
    """For each term where its pods are; anywhere, for the first of pods that want to be near their like."""
    terms = claim.needs.near
    found = [(term.topology_key, _occupied(term, claim, cluster)) for term in terms]
    first = not any(domains for _, domains in found) and all(cluster.group(term, claim).has(claim) for term in terms)
    return [(key, None if first else domains) for key, domains in found]


def _occupied(term: PodTerm, claim: Claim, cluster: Cluster) -> Mapping[str, int]:
    return cluster.domains(cluster.tally(cluster.group(term, claim)), term.topology_key)


FILTERS: Final[tuple[Filter, ...]] = (
    _cordon,
    _name,
    _runtime,
    _taints,
    _readiness,
    _selection,
    _ports,
    _resources,
    _spreads,
    _pods,
)
"""All of them; the first that refuses a node says why."""
