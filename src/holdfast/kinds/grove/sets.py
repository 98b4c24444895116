"""PodCliqueSet: identical gangs of pods, each scheduled, updated and recreated as one.

What only an admission step can refuse (cycles in ``startsAfter``, keys of
labels, schedulers and topologies that are configured elsewhere) is not said
here.  This module must not know how gangs are operated.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from holdfast.kinds.grove.components import (
    GROUP,
    MAX_CLIQUES,
    MAX_NAMES_LENGTH,
    MAX_SCALING_GROUPS,
    MAX_SHARED_RESOURCES,
    REASON,
    VERSION,
    LastError,
    RollingUpdate,
    Update,
    number,
)
from holdfast.kinds.grove.sharing import ResourceClaimTemplate, SetResourceSharing
from holdfast.kinds.grove.templates import CliqueTemplate, ScalingGroupTemplate
from holdfast.kinds.grove.topology import TOPOLOGY_STAYS, TopologyConstraint
from holdfast.kinds.model import (
    AGE,
    BudgetPolicy,
    Conditions,
    Count,
    Kind,
    Model,
    PositiveDuration,
    Resource,
    Rule,
    Scale,
    Status,
    Time,
    api,
    frozen,
)

# --- the template of a gang --------------------------------------------------


class CliqueStartupType(StrEnum):
    """In which order the cliques of a replica start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    """Each clique after the one before it in the template."""
    EXPLICIT = "CliqueStartupTypeExplicit"
    """Each clique after those that its ``startsAfter`` names."""


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
        frozen("cliqueStartupType"),
        frozen("resourceClaimTemplates"),
        frozen("resourceSharing"),
        TOPOLOGY_STAYS,
    )

    cliques: Annotated[
        tuple[CliqueTemplate, ...],
        api("The roles of the gang, each a clique of pods.", keys=("name",), min_length=1, max_length=MAX_CLIQUES),
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


# --- spec -----------------------------------------------------------


class UpdateStrategyType(StrEnum):
    """Who replaces pods when a template changes."""

    ROLLING_RECREATE = "RollingRecreate"
    """The operator, one replica at a time."""
    ON_DELETE = "OnDelete"
    """The user, by deleting pods; new ones come from the new template."""


class UpdateStrategy(Model):
    """How a changed template reaches the pods."""

    type: (
        Annotated[UpdateStrategyType, api("Who replaces the pods.", default=UpdateStrategyType.ROLLING_RECREATE)] | None
    ) = None
    rolling_update: (
        Annotated[RollingUpdate, api("How far an update may disturb cliques and groups that do not say it themselves.")]
        | None
    ) = None
    disruption_budget: BudgetPolicy | None = None


class PodCliqueSetSpec(Model):
    """Identical gangs."""

    replicas: Annotated[int, api("How many gangs are wanted.", default=0, ge=0, le=10_000, format="int32")] | None = (
        None
    )
    update_strategy: Annotated[UpdateStrategy, api("How a changed template reaches the pods.")] | None = None
    template: Annotated[PodCliqueSetTemplate, api("What each gang is made of.")]


# --- status --------------------------------------------------------


class UpdatingReplica(Model):
    """The replica that an update works on."""

    replica_index: Annotated[Count, api("The index of the replica.")]
    update_started_at: Annotated[Time, api("When its update began.")] | None = None


class FinishingReplica(UpdatingReplica):
    """A replica that an update works on, or has just finished."""

    update_ended_at: Annotated[Time, api("When its update had no more to do; unset while it runs.")] | None = None


class RollingUpdateProgress(Update):
    """How far an update has come, by name; present from the first update on."""

    updated_pod_cliques: Annotated[tuple[str, ...], api("The standalone PodCliques that are updated.")] = ()
    updated_pod_clique_scaling_groups: Annotated[
        tuple[str, ...], api("The PodCliqueScalingGroups that are updated.")
    ] = ()
    currently_updating: Annotated[UpdatingReplica, api("The replica being updated; unset between replicas.")] | None = (
        None
    )


class UpdateProgress(Update):
    """How far an update has come, by number."""

    updated_pod_cliques_count: Annotated[Count, api("Standalone PodCliques that are updated.", default=0)] | None = None
    total_pod_cliques_count: Annotated[Count, api("Standalone PodCliques that there should be.", default=0)] | None = (
        None
    )
    updated_pod_clique_scaling_groups_count: (
        Annotated[Count, api("PodCliqueScalingGroups that are updated.", default=0)] | None
    ) = None
    total_pod_clique_scaling_groups_count: (
        Annotated[Count, api("PodCliqueScalingGroups that there should be.", default=0)] | None
    ) = None
    currently_updating: Annotated[tuple[FinishingReplica, ...], api("The replicas being updated.")] = ()


class TerminatingReplica(Model):
    """A replica that was incomplete for too long and is recreated."""

    replica_index: Annotated[Count, api("The index of the replica.")]
    started_at: Annotated[Time, api("When its recreation was decided; older PodCliques are deleted.")]


class PodGangSummary(Model):
    """What a PodCliqueSet says of one of its PodGangs."""

    name: Annotated[str, api("The name of the PodGang.")]
    phase: Annotated[str, api("The phase of the PodGang.")] | None = None
    conditions: Conditions = ()


class PodCliqueSetStatus(Status):
    """What exists of a PodCliqueSet."""

    replicas: Annotated[Count, api("Replicas that are wanted.")] | None = None
    available_replicas: Annotated[Count, api("Replicas with enough ready pods in every part.", default=0)] | None = None
    updated_replicas: Annotated[Count, api("Replicas of which every part is updated.", default=0)] | None = None
    min_available: Annotated[
        dict[str, Count], api("minAvailable of each clique, fixed when the set was created: replicas, where unset.")
    ] = {}
    current_generation_hash: Annotated[str, api("The template that is wanted now, as a hash.")] | None = None
    rolling_update_progress: Annotated[RollingUpdateProgress, api("The running or last update, by name.")] | None = None
    update_progress: Annotated[UpdateProgress, api("The running or last update, by number.")] | None = None
    terminating_replicas: Annotated[
        tuple[TerminatingReplica, ...], api("The replicas that are being recreated.", keys=("replicaIndex",))
    ] = ()
    hpa_pod_selector: Annotated[str, api("The pods of this set, as a label selector.")] | None = None
    last_errors: Annotated[tuple[LastError, ...], api("What went wrong in the last pass.")] = ()
    pod_gang_statuses: Annotated[tuple[PodGangSummary, ...], api("The PodGangs of this set.", keys=("name",))] = ()


_NOT_FIXED: Final = "!has(self.status) || !has(self.status.minAvailable)"


class PodCliqueSet(Resource):
    """Identical gangs of pods, each scheduled, updated and recreated as one."""

    RULES: ClassVar = (
        Rule(
            rule=f"self.spec.template.cliques.all(c, size(self.metadata.name) + size(c.name) <= {MAX_NAMES_LENGTH})",
            message=f"the names of the set and of a clique together must not exceed {MAX_NAMES_LENGTH} characters",
            field_path=".spec.template.cliques",
        ),
        Rule(
            rule=(
                "!has(self.spec.template.podCliqueScalingGroups) || self.spec.template.podCliqueScalingGroups.all(g,"
                f" g.cliqueNames.all(n, size(self.metadata.name) + size(g.name) + size(n) <= {MAX_NAMES_LENGTH}))"
            ),
            message=(
                "the names of the set, of a scaling group and of a clique in it together must not exceed"
                f" {MAX_NAMES_LENGTH} characters"
            ),
            field_path=".spec.template.podCliqueScalingGroups",
        ),
        Rule(
            rule=(
                f"{_NOT_FIXED} || self.spec.template.cliques.all(c, !has(c.spec.minAvailable)"
                " || !(c.name in self.status.minAvailable)"
                " || c.spec.minAvailable == self.status.minAvailable[c.name])"
            ),
            message="minAvailable is immutable: status.minAvailable has the value that each clique was created with",
            reason="FieldValueForbidden",
            field_path=".spec.template.cliques",
        ),
        Rule(
            rule=(
                f"{_NOT_FIXED} || self.spec.template.cliques.all(c, has(c.spec.minAvailable) || c.spec.replicas == 0"
                " || !(c.name in self.status.minAvailable)"
                " || c.spec.replicas >= self.status.minAvailable[c.name])"
            ),
            message=(
                "replicas of a clique must be at least its minAvailable, which is immutable:"
                " status.minAvailable has the value that each clique was created with"
            ),
            field_path=".spec.template.cliques",
        ),
    )

    spec: Annotated[PodCliqueSetSpec, api("The gangs that are wanted.")]
    status: Annotated[PodCliqueSetStatus, api("The gangs that exist.")] | None = None


KIND: Final = Kind(
    model=PodCliqueSet,
    group=GROUP,
    version=VERSION,
    plural="podcliquesets",
    short_names=("pcs",),
    scale=Scale(selector=".status.hpaPodSelector"),
    columns=(
        number("Replicas", ".spec.replicas"),
        number("Available", ".status.availableReplicas"),
        number("Updated", ".status.updatedReplicas"),
        number("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
        number("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
        number("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
        number("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
        REASON,
        AGE,
    ),
)
