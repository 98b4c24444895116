"""Placing: the best of the nodes that fit a pod, or why none does.

Pure: a pod and the cluster in, a node or the reasons out.  There is no preemption:
a pod that fits on no node waits until one has room.

>>> place(claim, cluster)
Placed(node='node-2')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from holdfast.cluster.scheduling.filters import FILTERS
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster, Host
from holdfast.cluster.scheduling.preferences import best


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod can run on this node."""

    node: str


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """No node of `nodes` can take the pod; `reasons` counts those that were refused for each reason."""

    nodes: int
    reasons: Mapping[str, int]

    @property
    def message(self) -> str:
        """As Kubernetes says it: ``0/4 nodes are available: 1 Too many pods, 3 Insufficient cpu.``"""
        if not self.nodes:
            return "no nodes available to schedule pods"
        counts = ", ".join(sorted(f"{number} {reason}" for reason, number in self.reasons.items()))
        return f"0/{self.nodes} nodes are available: {counts}."


def place(claim: Claim, cluster: Cluster, *, within: Collection[str] | None = None) -> Placed | Unschedulable:
    """The node for a pod, among those named `within`, if they are named."""
    hosts = cluster.hosts if within is None else tuple(host for host in cluster.hosts if host.name in within)
    checks = [check for make in FILTERS if (check := make(claim, cluster)) is not None]
    fitting: list[Host] = []
    reasons: Counter[str] = Counter()
    for host in hosts:
        for check in checks:
            refused = check(host)
            if refused:
                reasons.update(refused)
                break
        else:
            fitting.append(host)
    if not fitting:
        return Unschedulable(len(hosts), dict(reasons))
    return Placed(best(claim, cluster, fitting).name)
