"""Scores: which of the fitting nodes is the best, one preference for each rule, weighed as Kubernetes' scheduler does.

A preference gives each node a number between 0 and 1, or None where it does not
matter for the pod.  This module must not know which nodes fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from holdfast.cluster.scheduling.filters import spread_counts
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster, Host

Preference = Callable[[Claim, Cluster, Sequence[Host]], list[float] | None]


def _least_used(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> list[float]:
    return [1 - sum(host.used(claim)) / 2 for host in hosts]


def _fewest_siblings(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> list[float] | None:
    """Pods of one controller apart from each other, where the pod does not say itself how it is spread."""
    counts = cluster.siblings(claim)
    if claim.needs.spreads or not counts:
        return None
    return _fewest([float(counts.get(host.name, 0)) for host in hosts])


def _evenly(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> list[float] | None:
    preferred = [spread for spread in claim.needs.spreads if not spread.required]
    if not preferred:
        return None
    totals = [0.0] * len(hosts)
    for spread in preferred:
        key = spread.topology_key
        counts = spread_counts(spread, claim, cluster, (key,))
        worst = max(counts.values(), default=0) + 1
        for index, host in enumerate(hosts):
            totals[index] += counts.get(host.node.labels.get(key, ""), worst)
    return _fewest(totals)


def _fewest_taints(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> list[float] | None:
    needs = claim.needs
    counts = [
        float(sum(taint.effect == "PreferNoSchedule" and not needs.tolerate(taint) for taint in host.node.taints))
        for host in hosts
    ]
    return _fewest(counts) if any(counts) else None


def _preferred_nodes(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> list[float] | None:
    preferred = claim.needs.preferred_nodes
    if not preferred:
        return None
    return _most(
        [
            float(sum(weight for weight, term in preferred if term.matches(host.node.labels, host.name)))
            for host in hosts
        ]
    )


def _preferred_pods(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> list[float] | None:
    preferred = claim.needs.preferred_pods
    if not preferred:
        return None
    totals = [0.0] * len(hosts)
    for weight, term in preferred:
        domains = cluster.domains(cluster.tally(cluster.group(term, claim)), term.topology_key)
        for index, host in enumerate(hosts):
            totals[index] += weight * domains.get(host.node.labels.get(term.topology_key, ""), 0)
    return _most(totals)


PREFERENCES: Final[tuple[tuple[float, Preference], ...]] = (
    (1, _least_used),
    (2, _fewest_siblings),
    (2, _evenly),
    (2, _preferred_nodes),
    (2, _preferred_pods),
    (3, _fewest_taints),
)


def best(claim: Claim, cluster: Cluster, hosts: Sequence[Host]) -> Host:
    """The node that is liked most; among equals the first."""
    if len(hosts) == 1:
        return hosts[0]
    totals = [0.0] * len(hosts)
    for weight, preference in PREFERENCES:
        liked = preference(claim, cluster, hosts)
        if liked is not None:
            totals = [total + weight * like for total, like in zip(totals, liked, strict=True)]
    return hosts[totals.index(max(totals))]


def _most(numbers: list[float]) -> list[float]:
    """The largest as 1, the smallest as 0."""
    low, high = min(numbers), max(numbers)
    return [(number - low) / (high - low) if high > low else 0.0 for number in numbers]


def _fewest(numbers: list[float]) -> list[float]:
    return _most([-number for number in numbers])
