"""The kinds of ``grove.io/v1alpha1``: inference gangs.

A PodCliqueSet is what people write; for each of its replicas the operator writes
PodCliques (pods of one role) and PodCliqueScalingGroups (roles that scale
together).  This module says what the objects look like and what an API server
can refuse by itself; it must not know how they are operated.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from holdfast.kinds.grove_templates import (
    MAX_CLIQUES,
    MAX_NAMES_LENGTH,
    Count,
    Name,
    PodCliqueSetTemplate,
    PodCliqueSpec,
    Positive,
    RollingUpdate,
)
from holdfast.kinds.model import AGE, Column, Conditions, Kind, Model, Resource, Rule, Scale, Time, api

GROUP: Final = "grove.io"
VERSION: Final = "v1alpha1"


class LastError(Model):
    """An error of the operator's last pass."""

    code: Annotated[str, api("Which error, for machines.")]
    description: Annotated[str, api("Which error, for people.")]
    observed_at: Annotated[Time, api("When it happened.")]


class Update(Model):
    """When an update ran."""

    update_started_at: Annotated[Time, api("When the update began.")]
    update_ended_at: Annotated[Time, api("When the update had no more to do; unset while it runs.")] | None = None


class ComponentUpdate(Update):
    """When the update of a part of a PodCliqueSet ran, and to what."""

    last_progress_at: Annotated[Time, api("When the update last moved; progressDeadline counts from here.")] | None = (
        None
    )
    pod_clique_set_generation_hash: Annotated[str, api("The generation of the PodCliqueSet that is being reached.")]


# --- PodClique -----------------------------------------------------------------


class PodsSelectedToUpdate(Model):
    """The ready pods that an update has chosen so far."""

    current: Annotated[str, api("The pod that is being replaced.")]
    completed: Annotated[tuple[str, ...], api("The pods that have been replaced.")] = ()


class PodCliqueUpdateProgress(ComponentUpdate):
    """How far the update of a clique has come."""

    pod_template_hash: Annotated[str, api("The pod template that is being reached.")]
    ready_pods_selected_to_update: Annotated[PodsSelectedToUpdate, api("The ready pods chosen so far.")] | None = None


class PodCliqueStatus(Model):
    """What exists of a clique."""

    observed_generation: Annotated[int, api("The generation that this status is about.")] | None = None
    replicas: Annotated[Count, api("Pods that are not terminating.")] | None = None
    ready_replicas: Annotated[Count, api("Pods that are ready.", default=0)] | None = None
    updated_replicas: Annotated[Count, api("Pods of the wanted template.", default=0)] | None = None
    schedule_gated_replicas: Annotated[Count, api("Pods held back from scheduling.", default=0)] | None = None
    scheduled_replicas: Annotated[Count, api("Pods bound to a node.", default=0)] | None = None
    hpa_pod_selector: Annotated[str, api("The pods of this clique, as a label selector.")] | None = None
    conditions: Conditions = ()
    last_errors: Annotated[tuple[LastError, ...], api("What went wrong in the last pass.")] = ()
    last_scheduled: Annotated[Time, api("When enough pods were last scheduled; unset if never.")] | None = None
    min_available_breached_since: Annotated[Time, api("Since when too few pods are available.")] | None = None
    current_pod_clique_set_generation_hash: (
        Annotated[str, api("The generation of the PodCliqueSet that all pods have.")] | None
    ) = None
    current_pod_template_hash: Annotated[str, api("The pod template that all pods have.")] | None = None
    update_progress: Annotated[PodCliqueUpdateProgress, api("The running or last update.")] | None = None


class PodClique(Resource):
    """Pods of one role in one replica of a PodCliqueSet or PodCliqueScalingGroup."""

    spec: Annotated[PodCliqueSpec, api("What is wanted.")]
    status: Annotated[PodCliqueStatus, api("What exists.")] | None = None


# --- PodCliqueScalingGroup -----------------------------------------------------


class PodCliqueScalingGroupSpec(Model):
    """Cliques that scale together."""

    RULES: ClassVar = (
        Rule(
            rule="self.replicas == 0 || self.replicas >= self.minAvailable",
            message="replicas must be 0 or at least minAvailable",
            field_path=".replicas",
        ),
    )

    replicas: Annotated[Count, api("How many copies of the cliques.", default=1)] | None = None
    min_available: (
        Annotated[Positive, api("How many copies are scheduled together, and below how many the gang ends.", default=1)]
        | None
    ) = None
    clique_names: Annotated[
        tuple[Name, ...], api("The cliques of one copy, by their names in the template.", max_length=MAX_CLIQUES)
    ]


class ReplicasSelectedToUpdate(Model):
    """The ready replicas that an update has chosen so far."""

    current: Annotated[Count, api("The index of the replica that is being replaced.")]
    completed: Annotated[tuple[Count, ...], api("The indices of the replicas that have been replaced.")] = ()


class ScalingGroupUpdateProgress(ComponentUpdate):
    """How far the update of a scaling group has come."""

    updated_pod_cliques_count: Annotated[Count, api("PodCliques that are updated.", default=0)] | None = None
    total_pod_cliques_count: Annotated[Count, api("PodCliques that there should be.", default=0)] | None = None
    ready_replica_indices_selected_to_update: (
        Annotated[ReplicasSelectedToUpdate, api("The ready replicas chosen so far.")] | None
    ) = None


class PodCliqueScalingGroupStatus(Model):
    """What exists of a scaling group."""

    observed_generation: Annotated[int, api("The generation that this status is about.")] | None = None
    replicas: Annotated[Count, api("Replicas that are wanted.")] | None = None
    scheduled_replicas: Annotated[Count, api("Replicas with enough pods on nodes.", default=0)] | None = None
    available_replicas: Annotated[Count, api("Replicas with enough ready pods.", default=0)] | None = None
    updated_replicas: Annotated[Count, api("Available replicas of the wanted generation.", default=0)] | None = None
    selector: Annotated[str, api("The pods of this group, as a label selector.")] | None = None
    conditions: Conditions = ()
    last_errors: Annotated[tuple[LastError, ...], api("What went wrong in the last pass.")] = ()
    last_scheduled: Annotated[Time, api("When enough replicas were last scheduled; unset if never.")] | None = None
    min_available_breached_since: Annotated[Time, api("Since when too few replicas are available.")] | None = None
    current_pod_clique_set_generation_hash: (
        Annotated[str, api("The generation of the PodCliqueSet that all replicas have.")] | None
    ) = None
    update_progress: Annotated[ScalingGroupUpdateProgress, api("The running or last update.")] | None = None


class PodCliqueScalingGroup(Resource):
    """Cliques that scale together, in one replica of a PodCliqueSet."""

    spec: Annotated[PodCliqueScalingGroupSpec, api("What is wanted.")]
    status: Annotated[PodCliqueScalingGroupStatus, api("What exists.")] | None = None


# --- PodCliqueSet --------------------------------------------------------------


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


class PodCliqueSetSpec(Model):
    """Identical gangs."""

    replicas: Annotated[Count, api("How many gangs.", default=0)] | None = None
    update_strategy: Annotated[UpdateStrategy, api("How a changed template reaches the pods.")] | None = None
    template: Annotated[PodCliqueSetTemplate, api("What each gang is made of.")]


class UpdatingReplica(Model):
    """The replica that an update works on."""

    replica_index: Annotated[Count, api("Which replica.")]
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


class PodGangSummary(Model):
    """What a PodCliqueSet says of one of its PodGangs."""

    name: Annotated[str, api("The PodGang.")]
    phase: Annotated[str, api("Its phase.")] | None = None
    conditions: Conditions = ()


class PodCliqueSetStatus(Model):
    """What exists of a PodCliqueSet."""

    observed_generation: Annotated[int, api("The generation that this status is about.")] | None = None
    replicas: Annotated[Count, api("Replicas that are wanted.")] | None = None
    available_replicas: Annotated[Count, api("Replicas with enough ready pods in every part.", default=0)] | None = None
    updated_replicas: Annotated[Count, api("Available replicas of which every part is updated.", default=0)] | None = (
        None
    )
    current_generation_hash: Annotated[str, api("The template that is wanted now, as a hash.")] | None = None
    rolling_update_progress: Annotated[RollingUpdateProgress, api("The running or last update, by name.")] | None = None
    update_progress: Annotated[UpdateProgress, api("The running or last update, by number.")] | None = None
    hpa_pod_selector: Annotated[str, api("The pods of this set, as a label selector.")] | None = None
    conditions: Conditions = ()
    last_errors: Annotated[tuple[LastError, ...], api("What went wrong in the last pass.")] = ()
    pod_gang_statuses: Annotated[tuple[PodGangSummary, ...], api("The PodGangs of this set.", keys=("name",))] = ()


class PodCliqueSet(Resource):
    """Identical gangs of pods, each scheduled, updated and ended as one."""

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
    )

    spec: Annotated[PodCliqueSetSpec, api("What is wanted.")]
    status: Annotated[PodCliqueSetStatus, api("What exists.")] | None = None


# --- kinds ---------------------------------------------------------------------


def _number(name: str, path: str, *, priority: int = 0) -> Column:
    return Column(name=name, path=path, type="integer", priority=priority)


_BREACHED: Final = Column(
    name="MinBreached", path='.status.conditions[?(@.type=="MinAvailableBreached")].status', priority=1
)

POD_CLIQUE_SET: Final = Kind(
    model=PodCliqueSet,
    group=GROUP,
    version=VERSION,
    plural="podcliquesets",
    short_names=("pcs",),
    scale=Scale(selector=".status.hpaPodSelector"),
    columns=(
        _number("Replicas", ".spec.replicas"),
        _number("Available", ".status.availableReplicas"),
        _number("Updated", ".status.updatedReplicas"),
        _number("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
        _number("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
        _number("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
        _number("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
        AGE,
    ),
)

POD_CLIQUE: Final = Kind(
    model=PodClique,
    group=GROUP,
    version=VERSION,
    plural="podcliques",
    short_names=("pclq",),
    scale=Scale(selector=".status.hpaPodSelector"),
    columns=(
        _number("MinAvail", ".spec.minAvailable"),
        _number("Replicas", ".spec.replicas"),
        _number("Ready", ".status.readyReplicas"),
        _number("Scheduled", ".status.scheduledReplicas"),
        _number("Updated", ".status.updatedReplicas"),
        _number("Gated", ".status.scheduleGatedReplicas", priority=1),
        _BREACHED,
        AGE,
    ),
)

POD_CLIQUE_SCALING_GROUP: Final = Kind(
    model=PodCliqueScalingGroup,
    group=GROUP,
    version=VERSION,
    plural="podcliquescalinggroups",
    short_names=("pcsg",),
    scale=Scale(selector=".status.selector"),
    columns=(
        _number("MinAvail", ".spec.minAvailable"),
        _number("Replicas", ".spec.replicas"),
        _number("Available", ".status.availableReplicas"),
        _number("Scheduled", ".status.scheduledReplicas"),
        _number("Updated", ".status.updatedReplicas"),
        _number("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
        _number("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
        _BREACHED,
        AGE,
    ),
)

KINDS: Final = (POD_CLIQUE_SET, POD_CLIQUE, POD_CLIQUE_SCALING_GROUP)
