"""VMSet: several machines from one template, rolled out like any fleet.

This module must not know how a rollout proceeds; the kernel does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Count,
    FloorStatus,
    IntOrPercent,
    Model,
    OpenObject,
    Positive,
    Resource,
    Rule,
    Scale,
    Status,
    Time,
    Total,
    api,
    immutable,
)
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase, VirtualMachineSpec
from holdfast.kinds.virtrigaud.references import GROUP, Message
from holdfast.kinds.virtrigaud.selectors import LabelSelector


class VMSetUpdateStrategyType(StrEnum):
    """How machines are replaced when their template changes."""

    ROLLING_UPDATE = "RollingUpdate"
    """A few at a time."""
    ON_DELETE = "OnDelete"
    """Each when its owner deletes it."""
    RECREATE = "Recreate"
    """All at once, after all are gone."""


class VMSetUpdatePhase(StrEnum):
    """The phase of an update."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    PAUSED = "Paused"
    COMPLETED = "Completed"
    FAILED = "Failed"


class VMSetCondition(StrEnum):
    """The condition types of a set."""

    READY = "Ready"
    PROGRESSING = "Progressing"
    REPLICA_FAILURE = "ReplicaFailure"
    UPDATE_IN_PROGRESS = "UpdateInProgress"
    SCALING = "Scaling"


ClaimRetention = Annotated[Literal["Retain", "Delete"], api(default="Retain")]

MachineNames = Annotated[tuple[str, ...], api(max_length=1000)]


class TemplateMetadata(Model):
    """What every object made from a template carries."""

    name: Annotated[str, api("Name of the template; what is made from it gets a name of its own.")] | None = None
    labels: Annotated[dict[str, str], api("Labels of the objects.")] = {}
    annotations: Annotated[dict[str, str], api("Annotations of the objects.")] = {}


class VMSetTemplate(Model):
    """The template of the machines of a set."""

    metadata: Annotated[TemplateMetadata, api("Labels and annotations of the machines.")] | None = None
    spec: Annotated[VirtualMachineSpec, api("Template of the machines.")]


class RollingUpdateVMSetStrategy(Model):
    """How fast a rolling update goes."""

    max_unavailable: (
        Annotated[IntOrPercent, api("How many may be missing; percentages round down.", default="25%")] | None
    ) = None
    max_surge: (
        Annotated[IntOrPercent, api("How many may exist beyond replicas; percentages round up.", default="25%")] | None
    ) = None
    partition: Annotated[Total, api("First ordinal to update; those below keep their revision.")] | None = None
    pod_management_policy: (
        Annotated[
            Literal["OrderedReady", "Parallel"],
            api("Whether machines are made one after another or all at once.", default="OrderedReady"),
        ]
        | None
    ) = None


class VMSetUpdateStrategy(Model):
    """How machines are replaced when their template changes."""

    type: (
        Annotated[
            VMSetUpdateStrategyType,
            api(
                "Whether machines are replaced a few at a time, when deleted, or all at once.", default="RollingUpdate"
            ),
        ]
        | None
    ) = None
    rolling_update: Annotated[RollingUpdateVMSetStrategy, api("How fast, for RollingUpdate.")] | None = None


class VMSetPersistentVolumeClaimRetentionPolicy(Model):
    """What becomes of claims that are no longer used."""

    when_deleted: Annotated[ClaimRetention, api("When the set is deleted.")] | None = None
    when_scaled: Annotated[ClaimRetention, api("When the set is scaled in.")] | None = None


class VMSetOrdinals(Model):
    """How machines are numbered."""

    start: Annotated[Count, api("Number of the first machine.", default=0, le=999999)] | None = None


class PersistentVolumeClaimTemplate(Model):
    """A claim that every machine of a set gets its own of."""

    metadata: Annotated[TemplateMetadata, api("Name, labels and annotations of the claims.")] | None = None
    spec: Annotated[OpenObject, api("The claims, as Kubernetes describes them.")]


class VMSetSpec(Model):
    """Desired state of the machines."""

    replicas: Annotated[Count, api("How many machines there should be.", default=1, le=1000)] | None = None
    selector: Annotated[
        LabelSelector,
        api(
            "Which machines belong to the set; must match the labels of the template.",
            map_type="atomic",
            rules=(
                immutable("spec.selector"),
                Rule(
                    rule="(has(self.matchLabels) && size(self.matchLabels) > 0)"
                    " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
                    message="an empty selector would claim every machine of the namespace; write matchLabels",
                ),
            ),
        ),
    ]
    template: Annotated[VMSetTemplate, api("What every machine is made like.")]
    update_strategy: (
        Annotated[VMSetUpdateStrategy, api("How machines are replaced when the template changes.")] | None
    ) = None
    paused: Annotated[bool, api("Whether a rollout holds where it is.")] | None = None
    min_available: (
        Annotated[
            IntOrPercent,
            api("How many machines must stay available, whatever maxUnavailable allows; percentages round up."),
        ]
        | None
    ) = None
    progress_deadline_seconds: (
        Annotated[Positive, api("How long an update may make no progress before it counts as failed; 1800 if unset.")]
        | None
    ) = None
    min_ready_seconds: (
        Annotated[Count, api("How long a machine must be ready to count as available.", le=3600)] | None
    ) = None
    revision_history_limit: (
        Annotated[Count, api("Old revisions to keep for going back.", default=10, le=100)] | None
    ) = None
    persistent_volume_claim_retention_policy: (
        Annotated[VMSetPersistentVolumeClaimRetentionPolicy, api("What becomes of unused claims.")] | None
    ) = None
    ordinals: Annotated[VMSetOrdinals, api("How machines are numbered.")] | None = None
    service_name: Annotated[str, api("The Service that names the machines.", max_length=253)] | None = None
    volume_claim_templates: Annotated[
        tuple[PersistentVolumeClaimTemplate, ...], api("Claims that every machine gets.", max_length=20)
    ] = ()


class VMSetFailedVM(Model):
    """A machine that could not be updated."""

    name: Annotated[str, api("Name of the machine.")]
    reason: Annotated[str, api("Why, as one CamelCase word.")] | None = None
    message: Annotated[str, api("Why, as a sentence.")] | None = None
    last_attempt: Annotated[Time, api("When it was last tried.")] | None = None
    retry_count: Annotated[Count, api("How often it was tried again.")] | None = None


class VMSetUpdateStatus(Model):
    """Progress of an update."""

    phase: Annotated[VMSetUpdatePhase, api("Phase of the update.")] | None = None
    message: Message | None = None
    start_time: Annotated[Time, api("When the update began.")] | None = None
    completion_time: Annotated[Time, api("When the update ended.")] | None = None
    progress_time: Annotated[Time, api("When the update last made progress.")] | None = None
    updated_vms: Annotated[MachineNames, api("Machines that are updated.")] = msgspec.field(
        name="updatedVMs", default=()
    )
    pending_vms: Annotated[MachineNames, api("Machines that wait for their turn.")] = msgspec.field(
        name="pendingVMs", default=()
    )
    waiting_vms: Annotated[MachineNames, api("Updated machines whose changes wait for a restart.")] = msgspec.field(
        name="waitingVMs", default=()
    )
    failed_vms: Annotated[
        tuple[VMSetFailedVM, ...], api("Machines that could not be updated.", keys=("name",), max_length=1000)
    ] = msgspec.field(name="failedVMs", default=())


class VMSetVMStatus(Model):
    """One machine of a set."""

    name: Annotated[str, api("Name of the machine.")]
    phase: Annotated[VirtualMachinePhase, api("Phase of the machine.")] | None = None
    ready: Annotated[bool, api("Whether it is ready.")] | None = None
    revision: Annotated[str, api("Revision that it is made from.")] | None = None
    creation_time: Annotated[Time, api("When the machine was made.")] | None = None
    last_update_time: Annotated[Time, api("When it was last changed.")] | None = None
    message: Message | None = None


class VMSetStatus(Status):
    """Observed state of the machines."""

    replicas: Annotated[Count, api("Machines that exist.")] | None = None
    ready_replicas: Annotated[Count, api("Machines that are ready.")] | None = None
    available_replicas: Annotated[Count, api("Machines that have been ready for minReadySeconds.")] | None = None
    updated_replicas: Annotated[Count, api("Machines of the update revision.")] | None = None
    current_replicas: Annotated[Count, api("Machines of the current revision.")] | None = None
    current_revision: Annotated[str, api("Revision that the last finished rollout left.")] | None = None
    update_revision: Annotated[str, api("Revision of the template as it is.")] | None = None
    collision_count: Annotated[Count, api("Revisions whose names collided.")] | None = None
    selector: Annotated[str, api("The selector as text, for autoscalers.")] | None = None
    floor: Annotated[FloorStatus, api("How many machines must be available, and how many are.")] | None = None
    update_status: Annotated[VMSetUpdateStatus, api("Progress of the update.")] | None = None
    vm_status: Annotated[
        tuple[VMSetVMStatus, ...], api("The machines, one by one.", keys=("name",), max_length=1000)
    ] = ()


class VMSet(Resource):
    """Several machines from one template."""

    spec: Annotated[VMSetSpec, api("Desired state of the machines.")]
    status: Annotated[VMSetStatus, api("Observed state of the machines.")] | None = None


KIND: Final = GROUP.kind(
    VMSet,
    "vmsets",
    Column("Desired", ".spec.replicas", "integer"),
    Column("Current", ".status.replicas", "integer"),
    Column("Ready", ".status.readyReplicas", "integer"),
    Column("Updated", ".status.updatedReplicas", "integer"),
    short="vmset",
    scale=Scale(selector=".status.selector"),
)
