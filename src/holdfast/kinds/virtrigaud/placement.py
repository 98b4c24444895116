"""VMPlacementPolicy: where machines may run, where they should run, and beside which others.

This module must not know how a place is chosen; the operator scores them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Count,
    Duration,
    Model,
    Percentage,
    Positive,
    Quantity,
    Resource,
    Rule,
    Status,
    Time,
    Total,
    api,
)
from holdfast.kinds.virtrigaud.references import GROUP, LocalObjectReference
from holdfast.kinds.virtrigaud.selectors import LabelSelector, SelectorOperator

LabelText = Annotated[str, api(max_length=253)]

Scope = Annotated[Literal["strict", "preferred"], api("Whether the rule must hold, or should; preferred when unset.")]

ApplicationLabel = Annotated[str, api("The label that names a machine's application.", default="app")]


class VMPlacementPolicyCondition(StrEnum):
    """The condition types of a policy."""

    READY = "Ready"
    VALIDATED = "Validated"
    CONFLICTS = "Conflicts"
    SUPPORTED = "Supported"


class VMToleration(Model):
    """A taint of hosts that is tolerated."""

    key: Annotated[LabelText, api("Key of the taint; any when unset.")] | None = None
    operator: (
        Annotated[Literal["Exists", "Equal"], api("How the key relates to the value.", default="Equal")] | None
    ) = None
    value: Annotated[LabelText, api("Value of the taint.")] | None = None
    effect: (
        Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], api("Effect of the taint; any when unset.")]
        | None
    ) = None
    toleration_seconds: Annotated[Total, api("How long it is tolerated.")] | None = None


class PlacementConstraints(Model):
    """Places by name; an empty list allows all."""

    clusters: Annotated[tuple[str, ...], api("Clusters to choose from.", max_length=50)] = ()
    datastores: Annotated[tuple[str, ...], api("Datastores to choose from.", max_length=100)] = ()
    hosts: Annotated[tuple[str, ...], api("Hosts to choose from.", max_length=200)] = ()
    folders: Annotated[tuple[str, ...], api("Folders to choose from.", max_length=50)] = ()
    resource_pools: Annotated[tuple[str, ...], api("Resource pools to choose from.", max_length=100)] = ()
    networks: Annotated[tuple[str, ...], api("Networks that must be reachable.", max_length=50)] = ()
    zones: Annotated[tuple[str, ...], api("Zones to choose from.", max_length=20)] = ()
    regions: Annotated[tuple[str, ...], api("Regions to choose from.", max_length=20)] = ()
    node_selector: Annotated[dict[str, str], api("Labels that hosts must have.", max_length=20)] = {}
    tolerations: Annotated[tuple[VMToleration, ...], api("Taints that are tolerated.", max_length=20)] = ()
    excluded_clusters: Annotated[tuple[str, ...], api("Clusters to avoid.", max_length=50)] = ()
    excluded_hosts: Annotated[tuple[str, ...], api("Hosts to avoid.", max_length=200)] = ()
    excluded_datastores: Annotated[tuple[str, ...], api("Datastores to avoid.", max_length=100)] = ()


class VMSelectorRequirement(Model):
    """A requirement of one label of a machine."""

    RULES: ClassVar = (
        Rule(
            rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            message="In and NotIn need values; Exists and DoesNotExist take none",
        ),
    )

    key: Annotated[LabelText, api("Key of the label.")]
    operator: Annotated[SelectorOperator, api("How the label relates to the values.")]
    values: Annotated[tuple[str, ...], api("The values, for In and NotIn.", max_length=50)] = ()


class VMAffinityTerm(Model):
    """Machines, and the kind of place that they share."""

    label_selector: Annotated[LabelSelector, api("The machines, by label.")] | None = None
    namespaces: Annotated[tuple[str, ...], api("Their namespaces; the machine's own when empty.", max_length=20)] = ()
    namespace_selector: Annotated[LabelSelector, api("Their namespaces, by label.")] | None = None
    topology_key: Annotated[LabelText, api("The kind of place: a host, a zone.")]
    match_expressions: Annotated[
        tuple[VMSelectorRequirement, ...], api("Further requirements of the machines.", max_length=20)
    ] = ()


class WeightedVMAffinityTerm(Model):
    """A term, and how much it matters."""

    weight: Annotated[Positive, api("How much it matters.", le=100)]
    vm_affinity_term: Annotated[VMAffinityTerm, api("The machines, and the kind of place that they share.")]


class VMAffinity(Model):
    """Machines to run with."""

    required_during_scheduling: Annotated[tuple[VMAffinityTerm, ...], api("Terms that must hold.", max_length=20)] = ()
    preferred_during_scheduling: Annotated[
        tuple[WeightedVMAffinityTerm, ...], api("Terms that should hold.", max_length=20)
    ] = ()


class VMAntiAffinity(VMAffinity):
    """Machines to run apart from."""


class PlaceRule(Model):
    """A rule about one kind of place, and how strict it is."""

    enabled: Annotated[bool, api("Whether the rule is in force.")]
    scope: Scope | None = None


class HostAntiAffinityRule(PlaceRule):
    """Spread machines over hosts."""

    max_vms_per_host: Annotated[Positive, api("Machines on one host at most.", le=1000)] | None = msgspec.field(
        name="maxVMsPerHost", default=None
    )


class ClusterAntiAffinityRule(PlaceRule):
    """Spread machines over clusters."""

    max_vms_per_cluster: Annotated[Positive, api("Machines in one cluster at most.", le=10000)] | None = msgspec.field(
        name="maxVMsPerCluster", default=None
    )


class DatastoreAntiAffinityRule(PlaceRule):
    """Spread machines over datastores."""

    max_vms_per_datastore: Annotated[Positive, api("Machines on one datastore at most.", le=10000)] | None = (
        msgspec.field(name="maxVMsPerDatastore", default=None)
    )


class ZoneAntiAffinityRule(PlaceRule):
    """Spread machines over zones."""

    max_vms_per_zone: Annotated[Positive, api("Machines in one zone at most.", le=10000)] | None = msgspec.field(
        name="maxVMsPerZone", default=None
    )


class ApplicationAntiAffinityRule(PlaceRule):
    """Keep machines of different applications apart."""

    application_label: ApplicationLabel | None = None


class HostAffinityRule(PlaceRule):
    """Gather machines on hosts."""

    preferred_hosts: Annotated[tuple[str, ...], api("Hosts to gather on.", max_length=50)] = ()


class ClusterAffinityRule(PlaceRule):
    """Gather machines in clusters."""

    preferred_clusters: Annotated[tuple[str, ...], api("Clusters to gather in.", max_length=20)] = ()


class DatastoreAffinityRule(PlaceRule):
    """Gather machines on datastores."""

    preferred_datastores: Annotated[tuple[str, ...], api("Datastores to gather on.", max_length=50)] = ()


class ZoneAffinityRule(PlaceRule):
    """Gather machines in zones."""

    preferred_zones: Annotated[tuple[str, ...], api("Zones to gather in.", max_length=10)] = ()


class ApplicationAffinityRule(PlaceRule):
    """Gather machines of one application."""

    application_label: ApplicationLabel | None = None


class AntiAffinityRules(Model):
    """What machines run apart from."""

    vm_anti_affinity: Annotated[VMAntiAffinity, api("Machines to run apart from.")] | None = None
    host_anti_affinity: Annotated[HostAntiAffinityRule, api("How machines spread over hosts.")] | None = None
    cluster_anti_affinity: Annotated[ClusterAntiAffinityRule, api("How machines spread over clusters.")] | None = None
    datastore_anti_affinity: (
        Annotated[DatastoreAntiAffinityRule, api("How machines spread over datastores.")] | None
    ) = None
    zone_anti_affinity: Annotated[ZoneAntiAffinityRule, api("How machines spread over zones.")] | None = None
    application_anti_affinity: (
        Annotated[ApplicationAntiAffinityRule, api("How machines keep apart from those of other applications.")] | None
    ) = None


class AffinityRules(Model):
    """What machines run with."""

    vm_affinity: Annotated[VMAffinity, api("Machines to run with.")] | None = None
    host_affinity: Annotated[HostAffinityRule, api("How machines gather on hosts.")] | None = None
    cluster_affinity: Annotated[ClusterAffinityRule, api("How machines gather in clusters.")] | None = None
    datastore_affinity: Annotated[DatastoreAffinityRule, api("How machines gather on datastores.")] | None = None
    zone_affinity: Annotated[ZoneAffinityRule, api("How machines gather in zones.")] | None = None
    application_affinity: Annotated[ApplicationAffinityRule, api("How machines of one application gather.")] | None = (
        None
    )


class ResourceConstraints(Model):
    """What a place must have left."""

    min_cpu_per_host: Annotated[Positive, api("Processors that a host must have free.")] | None = msgspec.field(
        name="minCPUPerHost", default=None
    )
    min_memory_per_host: Annotated[Quantity, api("Memory that a host must have free.")] | None = None
    min_disk_space_per_host: Annotated[Quantity, api("Disk space that a host must have free.")] | None = None
    max_cpu_utilization: Annotated[Percentage, api("Processor use of a host at most, in per cent.")] | None = (
        msgspec.field(name="maxCPUUtilization", default=None)
    )
    max_memory_utilization: Annotated[Percentage, api("Memory use of a host at most, in per cent.")] | None = None
    max_disk_utilization: Annotated[Percentage, api("Disk use of a host at most, in per cent.")] | None = None
    required_features: Annotated[tuple[str, ...], api("Features that a host must have.", max_length=20)] = ()
    preferred_features: Annotated[tuple[str, ...], api("Features that a host should have.", max_length=20)] = ()


class SecurityConstraints(Model):
    """How a place must be protected."""

    require_secure_boot: Annotated[bool, api("Whether hosts must boot signed code only.")] | None = None
    require_tpm: Annotated[bool, api("Whether hosts must have a TPM.")] | None = msgspec.field(
        name="requireTPM", default=None
    )
    require_encrypted_storage: Annotated[bool, api("Whether storage must be encrypted.")] | None = None
    require_numa_topology: Annotated[bool, api("Whether hosts must report a NUMA topology.")] | None = msgspec.field(
        name="requireNUMATopology", default=None
    )
    allowed_security_groups: Annotated[tuple[str, ...], api("Security groups to choose from.", max_length=20)] = ()
    denied_security_groups: Annotated[tuple[str, ...], api("Security groups to avoid.", max_length=20)] = ()
    isolation_level: (
        Annotated[Literal["none", "basic", "strict", "maximum"], api("Isolation that is needed.")] | None
    ) = None
    trust_level: (
        Annotated[Literal["untrusted", "basic", "trusted", "highly-trusted"], api("Trust that is needed.")] | None
    ) = None


class VMPlacementPolicySpec(Model):
    """Where machines may run, where they should run, and beside which others."""

    hard: Annotated[PlacementConstraints, api("Places where machines may run.")] | None = None
    soft: Annotated[PlacementConstraints, api("Places where machines should run.")] | None = None
    affinity: Annotated[AffinityRules, api("What machines run with.")] | None = None
    anti_affinity: Annotated[AntiAffinityRules, api("What machines run apart from.")] | None = None
    resource_constraints: Annotated[ResourceConstraints, api("What a place must have left.")] | None = None
    security_constraints: Annotated[SecurityConstraints, api("How a place must be protected.")] | None = None
    priority: Annotated[Count, api("Which policy wins where two disagree; the highest.", le=1000)] | None = None
    weight: Annotated[Positive, api("How much its preferences count in scores.", le=100)] | None = None


class PolicyValidationResult(Model):
    """Whether one provider can follow a policy."""

    valid: Annotated[bool, api("Whether the provider can follow the policy.")]
    message: Annotated[str, api("Why, or why not.")] | None = None
    warnings: Annotated[tuple[str, ...], api("What to know beforehand.", max_length=20)] = ()
    errors: Annotated[tuple[str, ...], api("What is wrong with the policy there.", max_length=20)] = ()
    supported_features: Annotated[tuple[str, ...], api("What it can follow.", max_length=50)] = ()
    unsupported_features: Annotated[tuple[str, ...], api("What it cannot follow.", max_length=50)] = ()
    last_validated: Annotated[Time, api("When this was found out.")] | None = None


class PlacementStatistics(Model):
    """Statistics of the placements of a policy."""

    total_placements: Annotated[Count, api("Placements that were tried.")] | None = None
    successful_placements: Annotated[Count, api("Placements that succeeded.")] | None = None
    failed_placements: Annotated[Count, api("Placements that failed.")] | None = None
    average_placement_time: Annotated[Duration, api("How long one takes on average.")] | None = None
    constraint_violations: Annotated[Count, api("Constraints that could not be met.")] | None = None
    last_placement_time: Annotated[Time, api("When the last one was made.")] | None = None
    placement_distribution: Annotated[dict[str, Count], api("Machines by host or cluster.")] = {}


class PolicyConflict(Model):
    """Another policy that contradicts it."""

    policy_name: Annotated[str, api("Name of the other policy.")]
    conflict_type: Annotated[Literal["hard", "soft", "resource", "security", "affinity"], api("What they disagree on.")]
    description: Annotated[str, api("How the two policies disagree.")] | None = None
    severity: Annotated[Literal["low", "medium", "high", "critical"], api("How bad the conflict is.")] | None = None
    resolution_suggestion: Annotated[str, api("What to change, so that they agree.")] | None = None


class VMPlacementPolicyStatus(Status):
    """The machines that use a policy, and its results."""

    used_by_vms: Annotated[
        tuple[LocalObjectReference, ...], api("Machines that follow it.", keys=("name",), max_length=1000)
    ] = msgspec.field(name="usedByVMs", default=())
    validation_results: Annotated[
        dict[str, PolicyValidationResult], api("Whether each provider can follow the policy, by its name.")
    ] = {}
    placement_stats: Annotated[PlacementStatistics, api("Statistics of its placements.")] | None = None
    conflicting_policies: Annotated[tuple[PolicyConflict, ...], api("Policies that contradict it.", max_length=50)] = ()


class VMPlacementPolicy(Resource):
    """Where machines may run, where they should run, and beside which others."""

    spec: Annotated[
        VMPlacementPolicySpec, api("Where machines may run, where they should run, and beside which others.")
    ]
    status: Annotated[VMPlacementPolicyStatus, api("The machines that use it, and its results.")] | None = None


KIND: Final = GROUP.kind(
    VMPlacementPolicy,
    "vmplacementpolicies",
    # The names, not a number: a JSONPath cannot count.
    Column("Used By VMs", ".status.usedByVMs[*].name"),
    Column("Priority", ".spec.priority", "integer"),
    Column("Successful", ".status.placementStats.successfulPlacements", "integer"),
    Column("Failed", ".status.placementStats.failedPlacements", "integer"),
    short="vmpp",
)
