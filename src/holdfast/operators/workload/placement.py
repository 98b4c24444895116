"""The scheduling fields of a pod, from the placement of a Workload.  Pure.

Regions and zones become node affinities, affinities become node or pod affinities, and a spread becomes a topology
spread constraint that never prevents scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from holdfast.kinds.cloudless.placement import Affinity, AffinityTarget, Placement, Toleration

REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"

_TOPOLOGIES: Final = {"zone": ZONE, "region": REGION, "node": HOSTNAME, "host": HOSTNAME}
_PREFERRED: Final = 50
"""The default weight of a preference."""


def scheduling(placement: Placement, replicas: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The scheduling fields of a pod spec; `replicas` are the labels of all replicas of the Workload."""
    if placement.node_selector:
        yield "nodeSelector", dict(placement.node_selector)
    if placement.tolerations:
        yield "tolerations", [_toleration(each) for each in placement.tolerations]
    affinity = {kind: rules for kind, rules in _affinities(placement) if rules}
    if affinity:
        yield "affinity", affinity
    if placement.spread_topology:
        yield (
            "topologySpreadConstraints",
            [
                {
                    "maxSkew": 1,
                    "topologyKey": _TOPOLOGIES.get(placement.spread_topology, placement.spread_topology),
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": dict(replicas)},
                }
            ],
        )


def _toleration(toleration: Toleration) -> dict[str, Any]:
    fields = {
        "key": toleration.key,
        "value": toleration.value,
        "operator": toleration.operator,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.toleration_seconds,
    }
    return {field: value for field, value in fields.items() if value is not None}


def _affinities(placement: Placement) -> Iterator[tuple[str, dict[str, Any]]]:
    near, away = placement.affinity, placement.anti_affinity
    yield "nodeAffinity", _node_affinity(placement)
    yield "podAffinity", _pod_affinity(near)
    yield "podAntiAffinity", _pod_affinity(away)


def _node_affinity(placement: Placement) -> dict[str, Any]:
    required = [
        {"key": label, "operator": "In", "values": list(values)}
        for label, values in ((REGION, placement.regions), (ZONE, placement.zones))
        if values
    ]
    preferred = []
    for affinities, operator in ((placement.affinity, "In"), (placement.anti_affinity, "NotIn")):
        for affinity in affinities:
            if affinity.type is not AffinityTarget.NODE:
                continue
            expressions = [
                {"key": key, "operator": operator, "values": [value]} for key, value in affinity.match_labels.items()
            ]
            if affinity.required:
                required += expressions
            else:
                preferred.append({"weight": _weight(affinity), "preference": {"matchExpressions": expressions}})
    rules: dict[str, Any] = {}
    if required:
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": required}]
        }
    if preferred:
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return rules


def _pod_affinity(affinities: Iterable[Affinity]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for affinity in affinities:
        if affinity.type is not AffinityTarget.WORKLOAD:
            continue
        term = {
            "labelSelector": {"matchLabels": dict(affinity.match_labels)},
            "topologyKey": affinity.topology_key or HOSTNAME,
        }
        if affinity.required:
            rules.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)
        else:
            preference = {"weight": _weight(affinity), "podAffinityTerm": term}
            rules.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(preference)
    return rules


def _weight(affinity: Affinity) -> int:
    return affinity.weight or _PREFERRED
