"""What people write inside a PodCliqueSet of ``grove.io/v1alpha1``: the template of a gang.

A template is cliques (pods of one role) and scaling groups (roles that scale
together), with what an API server can refuse of them by itself.  This module
must not know the objects made from a template, nor how they are operated.  What
only an admission step can refuse (cycles in ``startsAfter``, keys of labels,
schedulers and topologies that are configured elsewhere) is not said here.

Lists are bounded where rules walk them, so that the cost an API server
estimates for a rule stays within its budget.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from holdfast.kinds.model import Duration, IntOrPercent, Model, OpenObject, Rule, api

MAX_CLIQUES: Final = 64
MAX_SCALING_GROUPS: Final = 32
MAX_SHARED_RESOURCES: Final = 16
MAX_NAMES_LENGTH: Final = 45
"""What the names inside a pod's name may add up to; the rest is for indices, hyphens and the pod's suffix."""

_OPEN: Final[dict[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

Count = Annotated[int, api(ge=0, format="int32")]
Positive = Annotated[int, api(ge=1, format="int32")]
Share = Annotated[IntOrPercent, api(minimum=0, maxLength=16)]
"""A number of replicas, plain or as a percentage of those that are wanted."""
Name = Annotated[
    str,
    api(
        min_length=1,
        max_length=MAX_NAMES_LENGTH - 1,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]
LabelValue = Annotated[str, api(max_length=63, pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")]
Domain = Annotated[str, api(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9-]*$")]
PositiveDuration = Annotated[
    Duration,
    api(max_length=64, rules=(Rule(rule="duration(self) > duration('0s')", message="must be longer than 0s"),)),
]
PodSpec = Annotated[
    OpenObject,
    # Rules see only fields that the schema names, so those that rules are about are named.
    api(
        properties={
            "schedulerName": {"type": "string", "maxLength": 253},
            "nodeName": {"type": "string", "maxLength": 253},
            "topologySpreadConstraints": {"type": "array", "items": _OPEN},
        }
    ),
]
ClaimTemplateSpec = Annotated[
    OpenObject,
    api(
        properties={
            "spec": {
                **_OPEN,
                "required": ["devices"],
                "properties": {
                    "devices": {
                        **_OPEN,
                        "required": ["requests"],
                        "properties": {"requests": {"type": "array", "minItems": 1, "items": _OPEN}},
                    }
                },
            }
        },
        required=["spec"],
    ),
]


def _frozen(path: str) -> Rule:
    """The rule of a field that may neither change nor appear nor vanish."""
    return Rule(
        rule=f"has(self.{path}) == has(oldSelf.{path}) && (!has(self.{path}) || self.{path} == oldSelf.{path})",
        message=f"{path} is immutable",
        reason="FieldValueForbidden",
        field_path=f".{path}",
    )


_TOPOLOGY_STAYS: Final = Rule(
    rule="has(self.topologyConstraint) == has(oldSelf.topologyConstraint)",
    message="topologyConstraint can be neither added nor removed",
    reason="FieldValueForbidden",
    field_path=".topologyConstraint",
)


class CliqueStartupType(StrEnum):
    """In which order the cliques of a replica start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    """Each clique after the one before it in the template."""
    EXPLICIT = "CliqueStartupTypeExplicit"
    """Each clique after those that its ``startsAfter`` names."""


class SharingScope(StrEnum):
    """Who shares one resource claim."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


class AutoScalingConfig(Model):
    """How a horizontal autoscaler scales a clique or a scaling group."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
            message="maxReplicas must be at least minReplicas",
            field_path=".maxReplicas",
        ),
    )

    min_replicas: Annotated[Positive, api("The fewest replicas; the template's replicas if unset.")] | None = None
    max_replicas: Annotated[Positive, api("The most replicas.")]
    metrics: Annotated[
        tuple[OpenObject, ...], api("What to scale by, as autoscaling/v2 metrics.", list_type="atomic")
    ] = ()


class RollingUpdate(Model):
    """How far an update may disturb a component: pods of a clique, or replicas of a scaling group."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!has(self.maxUnavailable) || !(string(self.maxUnavailable) in ['0', '0%'])"
                " || (has(self.maxSurge) && !(string(self.maxSurge) in ['0', '0%']))"
            ),
            message="with maxUnavailable 0, maxSurge must be above 0, or nothing could ever be replaced",
            field_path=".maxSurge",
        ),
    )

    max_unavailable: (
        Annotated[Share, api("How many may be missing at a time; 1 if neither this nor maxSurge is set.")] | None
    ) = None
    max_surge: Annotated[Share, api("How many may exist beyond the desired number; 0 replaces in place.")] | None = None
    min_ready_seconds: (
        Annotated[Count, api("How long a new pod must have been ready before it counts as available.")] | None
    ) = None
    progress_deadline: (
        Annotated[PositiveDuration, api("How long an update may stand still before it is reported as stuck.")] | None
    ) = None


class TopologyPack(Model):
    """Into which topology domain a replica is packed."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.required) || has(self.preferred)",
            message="pack needs required or preferred",
            reason="FieldValueRequired",
        ),
    )

    required: Annotated[Domain, api("The domain that a replica must fit into, or stay pending.")] | None = None
    preferred: Annotated[Domain, api("The domain that a replica should fit into, if it can.")] | None = None


class TopologyConstraint(Model):
    """Where each replica is placed in the topology of the cluster."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.pack) || has(self.packDomain)",
            message="topologyConstraint needs pack",
            reason="FieldValueRequired",
            field_path=".pack",
        ),
        Rule(
            rule="!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            message="packDomain is the old name of pack.required; set pack.required alone",
            field_path=".pack.required",
        ),
        Rule(
            rule="!has(self.packDomain) || (oldSelf.hasValue() && has(oldSelf.value().packDomain))",
            message="packDomain is no longer accepted; use pack.required",
            reason="FieldValueForbidden",
            field_path=".packDomain",
            optional_old_self=True,
        ),
        # A packDomain may still move to pack.required, which means the same.
        Rule(
            rule=(
                "(has(self.packDomain) ? self.packDomain"
                " : has(self.pack) && has(self.pack.required) ? self.pack.required : '')"
                " == (has(oldSelf.packDomain) ? oldSelf.packDomain"
                " : has(oldSelf.pack) && has(oldSelf.pack.required) ? oldSelf.pack.required : '')"
                " && (has(self.pack) && has(self.pack.preferred) ? self.pack.preferred : '')"
                " == (has(oldSelf.pack) && has(oldSelf.pack.preferred) ? oldSelf.pack.preferred : '')"
            ),
            message="the domains of a topologyConstraint are immutable",
            reason="FieldValueForbidden",
        ),
        Rule(
            rule=(
                "has(oldSelf.topologyName)"
                " ? has(self.topologyName) && self.topologyName == oldSelf.topologyName"
                " : !has(self.topologyName) || has(oldSelf.packDomain)"
            ),
            message="topologyName is immutable, but may be added beside an old packDomain",
            reason="FieldValueForbidden",
            field_path=".topologyName",
        ),
    )

    topology_name: (
        Annotated[str, api("The topology that domains belong to; the parent's if unset.", min_length=1, max_length=253)]
        | None
    ) = None
    pack: Annotated[TopologyPack, api("Into which domain each replica is packed.")] | None = None
    pack_domain: Annotated[Domain, api("The old name of pack.required.")] | None = None


class ResourceClaimTemplate(Model):
    """A template for resource claims, which ``resourceSharing`` refers to by name."""

    name: Annotated[str, api("What the template is called here.", min_length=1, max_length=253)]
    template_spec: Annotated[ClaimTemplateSpec, api("The spec of a ResourceClaimTemplate.")]


class ResourceSharing(Model):
    """A resource claim that the pods of an owner share."""

    name: Annotated[
        str, api("The template: one of this set, or a ResourceClaimTemplate object.", min_length=1, max_length=253)
    ]
    namespace: (
        Annotated[str, api("Where the ResourceClaimTemplate object is; the set's namespace if unset.", max_length=63)]
        | None
    ) = None
    scope: Annotated[SharingScope, api("Whether all replicas share one claim or each has its own.")]


class SetSharingFilter(Model):
    """Which children of a PodCliqueSet share a claim."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.childCliqueNames) || has(self.childScalingGroupNames)",
            message="a filter names at least one child; leave the filter out to share with all",
            reason="FieldValueRequired",
        ),
    )

    child_clique_names: Annotated[
        tuple[Name, ...], api("These cliques.", list_type="set", min_length=1, max_length=MAX_CLIQUES)
    ] = ()
    child_scaling_group_names: Annotated[
        tuple[Name, ...], api("These scaling groups.", list_type="set", min_length=1, max_length=MAX_SCALING_GROUPS)
    ] = ()


class SetResourceSharing(ResourceSharing):
    """A resource claim that children of a PodCliqueSet share."""

    filter: Annotated[SetSharingFilter, api("Which children share it; all if unset.")] | None = None


class GroupSharingFilter(Model):
    """Which cliques of a scaling group share a claim."""

    child_clique_names: Annotated[
        tuple[Name, ...], api("These cliques.", list_type="set", min_length=1, max_length=MAX_CLIQUES)
    ]


class GroupResourceSharing(ResourceSharing):
    """A resource claim that cliques of a scaling group share."""

    filter: Annotated[GroupSharingFilter, api("Which cliques share it; all if unset.")] | None = None


class PodCliqueSpec(Model):
    """Pods of one role."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.replicas == 0 || !has(self.minAvailable) || self.replicas >= self.minAvailable",
            message="replicas must be 0 or at least minAvailable",
            field_path=".replicas",
        ),
    )

    role_name: Annotated[str, api("The role that these pods play.", min_length=1, max_length=253)]
    pod_spec: Annotated[PodSpec, api("The spec of each pod.")]
    replicas: Annotated[Count, api("How many pods.", default=1)] | None = None
    min_available: (
        Annotated[
            Positive, api("How many pods are scheduled together, and below how many the gang ends; replicas if unset.")
        ]
        | None
    ) = None
    starts_after: Annotated[
        tuple[Annotated[str, api(min_length=1, max_length=253)], ...],
        api("The PodCliques whose pods must be ready before these start."),
    ] = ()
    auto_scaling_config: Annotated[AutoScalingConfig, api("How this clique scales by itself.")] | None = None


class CliqueSpec(PodCliqueSpec):
    """The PodClique that a template asks for."""

    RULES: ClassVar = (
        *PodCliqueSpec.RULES,
        Rule(
            rule="!has(self.podSpec.nodeName) || self.podSpec.nodeName == ''",
            message="nodeName must not be set: the gang is placed by a scheduler",
            reason="FieldValueForbidden",
            field_path=".podSpec.nodeName",
        ),
        Rule(
            rule="!has(self.podSpec.topologySpreadConstraints) || self.podSpec.topologySpreadConstraints.size() == 0",
            message="topologySpreadConstraints must not be set: the gang is placed as a whole; use topologyConstraint",
            reason="FieldValueForbidden",
            field_path=".podSpec.topologySpreadConstraints",
        ),
        Rule(
            rule="!has(self.autoScalingConfig) || self.autoScalingConfig.maxReplicas >= self.replicas",
            message="autoScalingConfig.maxReplicas must be at least replicas",
            field_path=".autoScalingConfig.maxReplicas",
        ),
        Rule(
            rule=(
                "!has(self.autoScalingConfig) || !has(self.autoScalingConfig.minReplicas)"
                " || self.autoScalingConfig.minReplicas >= (has(self.minAvailable) ? self.minAvailable : self.replicas)"
            ),
            message="autoScalingConfig.minReplicas must be at least minAvailable, which is replicas if unset",
            field_path=".autoScalingConfig.minReplicas",
        ),
        Rule(
            rule="self.roleName == oldSelf.roleName",
            message="roleName is immutable",
            reason="FieldValueForbidden",
            field_path=".roleName",
        ),
        # Writing the default down changes nothing, so it is allowed.
        Rule(
            rule=(
                "has(oldSelf.minAvailable)"
                " ? has(self.minAvailable) && self.minAvailable == oldSelf.minAvailable"
                " : !has(self.minAvailable) || self.minAvailable == oldSelf.replicas"
            ),
            message="minAvailable is immutable",
            reason="FieldValueForbidden",
            field_path=".minAvailable",
        ),
        _frozen("startsAfter"),
        _frozen("podSpec.schedulerName"),
    )

    replicas: (
        Annotated[Positive, api("How many pods each new PodClique begins with; later it scales alone.", default=1)]
        | None
    ) = None
    starts_after: Annotated[
        tuple[Name, ...],
        api(
            "The cliques that start before this one; used with CliqueStartupTypeExplicit.",
            list_type="set",
            max_length=MAX_CLIQUES,
        ),
    ] = ()


class CliqueTemplate(Model):
    """A role of the gang."""

    RULES: ClassVar = (_frozen("resourceSharing"), _TOPOLOGY_STAYS)

    name: Annotated[Name, api("What the clique is called.")]
    labels: Annotated[dict[str, LabelValue], api("Labels of the PodClique and its pods.")] = {}
    annotations: Annotated[dict[str, str], api("Annotations of the PodClique and its pods.")] = {}
    topology_constraint: Annotated[TopologyConstraint, api("Where the clique is placed.")] | None = None
    resource_sharing: Annotated[
        tuple[ResourceSharing, ...],
        api("Resource claims that its pods share.", keys=("name",), max_length=MAX_SHARED_RESOURCES),
    ] = ()
    rolling_update: (
        Annotated[RollingUpdate, api("How far an update may disturb this clique; updateStrategy's if unset.")] | None
    ) = None
    spec: Annotated[CliqueSpec, api("Its pods.")]


class ScalingGroupTemplate(Model):
    """Cliques of the gang that scale together."""

    RULES: ClassVar = (
        Rule(
            rule="self.minAvailable <= self.replicas",
            message="minAvailable must be at most replicas",
            field_path=".minAvailable",
        ),
        Rule(
            rule=(
                "!has(self.scaleConfig) || !has(self.scaleConfig.minReplicas)"
                " || self.scaleConfig.minReplicas >= self.minAvailable"
            ),
            message="scaleConfig.minReplicas must be at least minAvailable",
            field_path=".scaleConfig.minReplicas",
        ),
        Rule(
            rule=(
                "!has(self.scaleConfig) || has(self.scaleConfig.minReplicas)"
                " || self.scaleConfig.maxReplicas >= self.replicas"
            ),
            message="scaleConfig.maxReplicas must be at least minReplicas, which is replicas if unset",
            field_path=".scaleConfig.maxReplicas",
        ),
        Rule(
            rule="self.cliqueNames.all(n, self.cliqueNames.exists_one(m, m == n))",
            message="cliqueNames must not name a clique twice",
            reason="FieldValueDuplicate",
            field_path=".cliqueNames",
        ),
        Rule(
            rule=(
                "!has(self.resourceSharing) || self.resourceSharing.all(r, !has(r.filter)"
                " || r.filter.childCliqueNames.all(n, n in self.cliqueNames))"
            ),
            message="a filter may name only cliques of this scaling group",
            field_path=".resourceSharing",
        ),
        Rule(
            rule="self.cliqueNames == oldSelf.cliqueNames",
            message="cliqueNames is immutable",
            reason="FieldValueForbidden",
            field_path=".cliqueNames",
        ),
        _frozen("minAvailable"),
        _frozen("resourceSharing"),
        _TOPOLOGY_STAYS,
    )

    name: Annotated[Name, api("What the group is called.")]
    clique_names: Annotated[
        tuple[Name, ...], api("The cliques of the group, in the order of their pod indices.", max_length=MAX_CLIQUES)
    ]
    annotations: Annotated[dict[str, str], api("Annotations of the PodCliqueScalingGroup.")] = {}
    replicas: (
        Annotated[Positive, api("How many copies each new group begins with; later it scales alone.", default=1)] | None
    ) = None
    min_available: (
        Annotated[Positive, api("How many copies are scheduled together, and below how many the gang ends.", default=1)]
        | None
    ) = None
    scale_config: Annotated[AutoScalingConfig, api("How the group scales by itself.")] | None = None
    resource_sharing: Annotated[
        tuple[GroupResourceSharing, ...],
        api("Resource claims that its cliques share.", keys=("name",), max_length=MAX_SHARED_RESOURCES),
    ] = ()
    topology_constraint: Annotated[TopologyConstraint, api("Where each copy is placed.")] | None = None
    rolling_update: (
        Annotated[RollingUpdate, api("How far an update may disturb this group; updateStrategy's if unset.")] | None
    ) = None


class HeadlessServiceConfig(Model):
    """How the headless Service of each replica answers."""

    publish_not_ready_addresses: (
        Annotated[bool, api("Whether pods have DNS names before they are ready.", default=True)] | None
    ) = None


class PodCliqueSetTemplate(Model):
    """One replica of a PodCliqueSet: the gang."""

    RULES: ClassVar = (
        Rule(
            rule="self.cliques.all(c, self.cliques.exists_one(d, d.spec.roleName == c.spec.roleName))",
            message="each clique needs a roleName of its own",
            reason="FieldValueDuplicate",
            field_path=".cliques",
        ),
        Rule(
            rule=(
                "self.cliqueStartupType != 'CliqueStartupTypeExplicit' || self.cliques.all(c, !has(c.spec.startsAfter)"
                " || c.spec.startsAfter.all(n, n != c.name && self.cliques.exists(d, d.name == n)))"
            ),
            message="startsAfter may name only other cliques of this template",
            field_path=".cliques",
        ),
        Rule(
            rule=(
                "self.cliques.all(c, !has(c.spec.podSpec.schedulerName) || self.cliques.all(d,"
                " !has(d.spec.podSpec.schedulerName) || d.spec.podSpec.schedulerName == c.spec.podSpec.schedulerName))"
            ),
            message="all cliques must have the same schedulerName, for they are scheduled together",
            field_path=".cliques",
        ),
        Rule(
            rule=(
                "!has(self.podCliqueScalingGroups) || self.podCliqueScalingGroups.all(g,"
                " g.cliqueNames.all(n, self.cliques.exists(c, c.name == n)))"
            ),
            message="cliqueNames may name only cliques of this template",
            field_path=".podCliqueScalingGroups",
        ),
        Rule(
            rule=(
                "!has(self.podCliqueScalingGroups) || self.cliques.all(c,"
                " self.podCliqueScalingGroups.filter(g, c.name in g.cliqueNames).size() <= 1)"
            ),
            message="a clique can be in one scaling group only",
            field_path=".podCliqueScalingGroups",
        ),
        Rule(
            rule=(
                "!has(self.podCliqueScalingGroups) || self.cliques.all(c,"
                " (!has(c.spec.autoScalingConfig) && !has(c.rollingUpdate))"
                " || !self.podCliqueScalingGroups.exists(g, c.name in g.cliqueNames))"
            ),
            message=(
                "a clique in a scaling group has no autoScalingConfig or rollingUpdate of its own;"
                " set scaleConfig or rollingUpdate of the group"
            ),
            field_path=".cliques",
        ),
        Rule(
            rule=(
                "!has(self.resourceSharing) || self.resourceSharing.all(r, !has(r.filter) ||"
                " ((!has(r.filter.childCliqueNames)"
                " || r.filter.childCliqueNames.all(n, self.cliques.exists(c, c.name == n)))"
                " && (!has(r.filter.childScalingGroupNames) || (has(self.podCliqueScalingGroups)"
                " && r.filter.childScalingGroupNames.all(n, self.podCliqueScalingGroups.exists(g, g.name == n))))))"
            ),
            message="a filter may name only cliques and scaling groups of this template",
            field_path=".resourceSharing",
        ),
        # "namespace" is a reserved word of CEL, hence the underscores.
        Rule(
            rule=(
                "!has(self.resourceClaimTemplates) || self.resourceClaimTemplates.all(t,"
                " (!has(self.resourceSharing)"
                " || self.resourceSharing.all(r, r.name != t.name || !has(r.__namespace__)))"
                " && self.cliques.all(c, !has(c.resourceSharing)"
                " || c.resourceSharing.all(r, r.name != t.name || !has(r.__namespace__)))"
                " && (!has(self.podCliqueScalingGroups) || self.podCliqueScalingGroups.all(g, !has(g.resourceSharing)"
                " || g.resourceSharing.all(r, r.name != t.name || !has(r.__namespace__)))))"
            ),
            message="a template of this set has no namespace; set namespace only for ResourceClaimTemplate objects",
            field_path=".resourceClaimTemplates",
        ),
        Rule(
            rule=(
                "!has(self.topologyConstraint) || !has(self.topologyConstraint.topologyName)"
                " || (self.cliques.all(c, !has(c.topologyConstraint) || !has(c.topologyConstraint.topologyName)"
                " || c.topologyConstraint.topologyName == self.topologyConstraint.topologyName)"
                " && (!has(self.podCliqueScalingGroups) || self.podCliqueScalingGroups.all(g,"
                " !has(g.topologyConstraint) || !has(g.topologyConstraint.topologyName)"
                " || g.topologyConstraint.topologyName == self.topologyConstraint.topologyName)))"
            ),
            message="all topology constraints must name the same topology",
            field_path=".topologyConstraint.topologyName",
        ),
        Rule(
            rule=(
                "self.cliques.size() == oldSelf.cliques.size()"
                " && self.cliques.all(c, oldSelf.cliques.exists(o, o.name == c.name))"
            ),
            message="cliques can be neither added nor removed nor renamed",
            reason="FieldValueForbidden",
            field_path=".cliques",
        ),
        Rule(
            rule=(
                "self.cliqueStartupType == 'CliqueStartupTypeAnyOrder'"
                " || self.cliques.map(c, c.name) == oldSelf.cliques.map(c, c.name)"
            ),
            message="the order of cliques is immutable where they start in an order",
            reason="FieldValueForbidden",
            field_path=".cliques",
        ),
        Rule(
            rule=(
                "has(self.podCliqueScalingGroups) == has(oldSelf.podCliqueScalingGroups)"
                " && (!has(self.podCliqueScalingGroups)"
                " || (self.podCliqueScalingGroups.size() == oldSelf.podCliqueScalingGroups.size()"
                " && self.podCliqueScalingGroups.all(g,"
                " oldSelf.podCliqueScalingGroups.exists(o, o.name == g.name))))"
            ),
            message="scaling groups can be neither added nor removed nor renamed",
            reason="FieldValueForbidden",
            field_path=".podCliqueScalingGroups",
        ),
        _frozen("cliqueStartupType"),
        _frozen("resourceClaimTemplates"),
        _frozen("resourceSharing"),
        _TOPOLOGY_STAYS,
    )

    cliques: Annotated[
        tuple[CliqueTemplate, ...], api("The roles.", keys=("name",), min_length=1, max_length=MAX_CLIQUES)
    ]
    clique_startup_type: (
        Annotated[CliqueStartupType, api("In which order the roles start.", default=CliqueStartupType.ANY_ORDER)] | None
    ) = None
    priority_class_name: Annotated[str, api("The PriorityClass of the gang and its pods.")] | None = None
    headless_service_config: (
        Annotated[
            HeadlessServiceConfig,
            api("How the Service of each replica answers.", default={"publishNotReadyAddresses": True}),
        ]
        | None
    ) = None
    termination_delay: (
        Annotated[
            PositiveDuration, api("How long a gang may stay below minAvailable before it is restarted.", default="4h")
        ]
        | None
    ) = None
    topology_constraint: Annotated[TopologyConstraint, api("Where each replica is placed.")] | None = None
    resource_claim_templates: Annotated[
        tuple[ResourceClaimTemplate, ...],
        api("Templates for resource claims.", keys=("name",), max_length=MAX_SHARED_RESOURCES),
    ] = ()
    resource_sharing: Annotated[
        tuple[SetResourceSharing, ...],
        api("Resource claims that its children share.", keys=("name",), max_length=MAX_SHARED_RESOURCES),
    ] = ()
    pod_clique_scaling_groups: Annotated[
        tuple[ScalingGroupTemplate, ...],
        api("The roles that scale together.", keys=("name",), max_length=MAX_SCALING_GROUPS),
    ] = ()
