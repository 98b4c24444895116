"""The rules of a policy about hosts, clusters, datastores and zones, which are the same for each of them."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.kinds.virtrigaud.placement import (
    AffinityRules,
    AntiAffinityRules,
    ClusterAffinityRule,
    ClusterAntiAffinityRule,
    DatastoreAffinityRule,
    DatastoreAntiAffinityRule,
    HostAffinityRule,
    HostAntiAffinityRule,
    PlacementConstraints,
    PlaceRule,
    VMPlacementPolicySpec,
    ZoneAffinityRule,
    ZoneAntiAffinityRule,
)


@dataclass(frozen=True, slots=True)
class Gathering:
    """
    what      host, cluster, datastore or zone
    gather    whether machines share such a place, and `names` are those to share
    spread    whether machines are apart, with at most `most` of them in one
    allowed   the places that the hard constraints allow; empty: all
    excluded  those that they exclude
    """

    what: str
    gather: PlaceRule
    names: tuple[str, ...]
    spread: PlaceRule
    most: int
    allowed: tuple[str, ...]
    excluded: tuple[str, ...] = ()


def gatherings(spec: VMPlacementPolicySpec) -> tuple[Gathering, ...]:
    """The rules about each kind of place; those that the policy does not have are not enabled."""
    together, apart = spec.affinity or AffinityRules(), spec.anti_affinity or AntiAffinityRules()
    hard = spec.hard or PlacementConstraints()
    host = together.host_affinity or HostAffinityRule(enabled=False)
    cluster = together.cluster_affinity or ClusterAffinityRule(enabled=False)
    store = together.datastore_affinity or DatastoreAffinityRule(enabled=False)
    zone = together.zone_affinity or ZoneAffinityRule(enabled=False)
    hosts = apart.host_anti_affinity or HostAntiAffinityRule(enabled=False)
    clusters = apart.cluster_anti_affinity or ClusterAntiAffinityRule(enabled=False)
    stores = apart.datastore_anti_affinity or DatastoreAntiAffinityRule(enabled=False)
    zones = apart.zone_anti_affinity or ZoneAntiAffinityRule(enabled=False)
    return (
        Gathering(
            "host", host, host.preferred_hosts, hosts, hosts.max_vms_per_host or 1, hard.hosts, hard.excluded_hosts
        ),
        Gathering(
            "cluster",
            cluster,
            cluster.preferred_clusters,
            clusters,
            clusters.max_vms_per_cluster or 1,
            hard.clusters,
            hard.excluded_clusters,
        ),
        Gathering(
            "datastore",
            store,
            store.preferred_datastores,
            stores,
            stores.max_vms_per_datastore or 1,
            hard.datastores,
            hard.excluded_datastores,
        ),
        Gathering("zone", zone, zone.preferred_zones, zones, zones.max_vms_per_zone or 1, hard.zones),
    )


def is_strict(rule: PlaceRule) -> bool:
    return rule.enabled and rule.scope == "strict"
