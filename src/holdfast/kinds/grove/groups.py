"""PodCliqueScalingGroup: cliques that scale together, in one replica of a PodCliqueSet.

The operator writes it from a template.  This module must not know the template.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from holdfast.kinds.grove.components import (
    BREACHED,
    GROUP,
    MAX_CLIQUES,
    REASON,
    VERSION,
    ComponentUpdate,
    LastError,
    ShortName,
    number,
)
from holdfast.kinds.model import (
    AGE,
    Count,
    FloorStatus,
    Kind,
    Model,
    Positive,
    Resource,
    Rule,
    Scale,
    Status,
    Time,
    api,
)


class PodCliqueScalingGroupSpec(Model):
    """Cliques that scale together."""

    RULES: ClassVar = (
        Rule(
            rule="self.replicas == 0 || self.replicas >= self.minAvailable",
            message="replicas must be 0 or at least minAvailable",
            field_path=".replicas",
        ),
    )

    replicas: Annotated[Count, api("How many replicas of the cliques.", default=1)] | None = None
    min_available: (
        Annotated[Positive, api("How many replicas are scheduled together and must stay available.", default=1)] | None
    ) = None
    clique_names: Annotated[
        tuple[ShortName, ...],
        api("The cliques of one replica, by their names in the template.", max_length=MAX_CLIQUES),
    ]


class ReplicasSelectedToUpdate(Model):
    """The available replicas that an update has stopped so far."""

    current: Annotated[Count, api("The index of the replica that the update stopped last.")]
    completed: Annotated[tuple[Count, ...], api("The indices of those that it stopped before.")] = ()


class ScalingGroupUpdateProgress(ComponentUpdate):
    """How far the update of a scaling group has come."""

    updated_pod_cliques_count: Annotated[Count, api("PodCliques that are updated.", default=0)] | None = None
    total_pod_cliques_count: Annotated[Count, api("PodCliques that there should be.", default=0)] | None = None
    ready_replica_indices_selected_to_update: (
        Annotated[ReplicasSelectedToUpdate, api("The available replicas that the update stopped so far.")] | None
    ) = None


class PodCliqueScalingGroupStatus(Status):
    """What exists of a scaling group."""

    replicas: Annotated[Count, api("Replicas that are wanted.")] | None = None
    scheduled_replicas: Annotated[Count, api("Replicas with enough pods on nodes.", default=0)] | None = None
    available_replicas: Annotated[Count, api("Replicas with enough ready pods.", default=0)] | None = None
    updated_replicas: (
        Annotated[Count, api("Replicas of which all pods have the wanted template.", default=0)] | None
    ) = None
    selector: Annotated[str, api("The pods of this group, as a label selector.")] | None = None
    last_errors: Annotated[tuple[LastError, ...], api("What went wrong in the last pass.")] = ()
    last_scheduled: Annotated[Time, api("When enough replicas were last scheduled; unset if never.")] | None = None
    min_available_breached_since: Annotated[Time, api("Since when too few replicas are available.")] | None = None
    current_pod_clique_set_generation_hash: (
        Annotated[str, api("The generation of the PodCliqueSet that all replicas have.")] | None
    ) = None
    update_progress: Annotated[ScalingGroupUpdateProgress, api("The running or last update.")] | None = None
    floor: Annotated[FloorStatus, api("How many replicas must be available, and how many are.")] | None = None


class PodCliqueScalingGroup(Resource):
    """Cliques that scale together, in one replica of a PodCliqueSet."""

    spec: Annotated[PodCliqueScalingGroupSpec, api("The cliques that scale together, and how many replicas.")]
    status: Annotated[PodCliqueScalingGroupStatus, api("The replicas that exist.")] | None = None


KIND: Final = Kind(
    model=PodCliqueScalingGroup,
    group=GROUP,
    version=VERSION,
    plural="podcliquescalinggroups",
    short_names=("pcsg",),
    scale=Scale(selector=".status.selector"),
    columns=(
        number("MinAvail", ".spec.minAvailable"),
        number("Replicas", ".spec.replicas"),
        number("Available", ".status.availableReplicas"),
        number("Scheduled", ".status.scheduledReplicas"),
        number("Updated", ".status.updatedReplicas"),
        number("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
        number("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
        BREACHED,
        REASON,
        AGE,
    ),
)
