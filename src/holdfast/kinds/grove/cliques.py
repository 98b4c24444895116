"""PodClique: pods of one role, in one replica of a PodCliqueSet or PodCliqueScalingGroup.

The operator writes it from a template.  This module must not know the template.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from holdfast.kinds.core import typed
from holdfast.kinds.grove.components import (
    BREACHED,
    GROUP,
    REASON,
    VERSION,
    AutoScalingConfig,
    ComponentUpdate,
    LastError,
    number,
)
from holdfast.kinds.model import (
    AGE,
    Count,
    FloorStatus,
    Kind,
    Model,
    Name,
    OpenObject,
    Positive,
    Resource,
    Rule,
    Scale,
    Status,
    Time,
    api,
)

PodSpec = Annotated[
    OpenObject,
    # A pod without containers is refused by the operator, which names the clique.
    typed(
        "PodSpec",
        required=(),
        schedulerName={"type": "string", "maxLength": 253},
        nodeName={"type": "string", "maxLength": 253},
    ),
]


class PodCliqueSpec(Model):
    """Pods of one role."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.replicas == 0 || !has(self.minAvailable) || self.replicas >= self.minAvailable",
            message="replicas must be 0 or at least minAvailable",
            field_path=".replicas",
        ),
    )

    role_name: Annotated[Name, api("The role that these pods play.")]
    pod_spec: Annotated[PodSpec, api("The spec of each pod.")]
    replicas: Annotated[Count, api("How many pods are wanted.", default=1)] | None = None
    min_available: (
        Annotated[Positive, api("How many pods are scheduled together and must stay available; replicas if unset.")]
        | None
    ) = None
    starts_after: Annotated[
        tuple[Name, ...],
        api("The PodCliques whose pods must be ready before these start."),
    ] = ()
    auto_scaling_config: Annotated[AutoScalingConfig, api("How this clique scales by itself.")] | None = None


class PodsSelectedToUpdate(Model):
    """The ready pods that an update has stopped so far."""

    current: Annotated[str, api("The pod that the update stopped last.")]
    completed: Annotated[tuple[str, ...], api("The pods that it stopped before.")] = ()


class PodCliqueUpdateProgress(ComponentUpdate):
    """How far the update of a clique has come."""

    pod_template_hash: Annotated[str, api("The pod template that is being reached.")]
    ready_pods_selected_to_update: (
        Annotated[PodsSelectedToUpdate, api("The ready pods that the update stopped so far.")] | None
    ) = None


class PodCliqueStatus(Status):
    """What exists of a clique."""

    replicas: Annotated[Count, api("Pods that are not terminating.")] | None = None
    ready_replicas: Annotated[Count, api("Pods that are ready.", default=0)] | None = None
    updated_replicas: Annotated[Count, api("Pods of the wanted template.", default=0)] | None = None
    schedule_gated_replicas: Annotated[Count, api("Pods held back from scheduling.", default=0)] | None = None
    scheduled_replicas: Annotated[Count, api("Pods bound to a node.", default=0)] | None = None
    hpa_pod_selector: Annotated[str, api("The pods of this clique, as a label selector.")] | None = None
    last_errors: Annotated[tuple[LastError, ...], api("What went wrong in the last pass.")] = ()
    last_scheduled: Annotated[Time, api("When enough pods were last scheduled; unset if never.")] | None = None
    min_available_breached_since: Annotated[Time, api("Since when too few pods are available.")] | None = None
    current_pod_clique_set_generation_hash: (
        Annotated[str, api("The generation of the PodCliqueSet that all pods have.")] | None
    ) = None
    current_pod_template_hash: Annotated[str, api("The pod template that all pods have.")] | None = None
    update_progress: Annotated[PodCliqueUpdateProgress, api("The running or last update.")] | None = None
    floor: Annotated[FloorStatus, api("How many pods must be available, and how many are.")] | None = None


class PodClique(Resource):
    """Pods of one role in one replica of a PodCliqueSet or PodCliqueScalingGroup."""

    spec: Annotated[PodCliqueSpec, api("The pods that are wanted.")]
    status: Annotated[PodCliqueStatus, api("The pods that exist.")] | None = None


KIND: Final = Kind(
    model=PodClique,
    group=GROUP,
    version=VERSION,
    plural="podcliques",
    short_names=("pclq",),
    scale=Scale(selector=".status.hpaPodSelector"),
    columns=(
        number("MinAvail", ".spec.minAvailable"),
        number("Replicas", ".spec.replicas"),
        number("Ready", ".status.readyReplicas"),
        number("Scheduled", ".status.scheduledReplicas"),
        number("Updated", ".status.updatedReplicas"),
        number("Gated", ".status.scheduleGatedReplicas", priority=1),
        BREACHED,
        REASON,
        AGE,
    ),
)
