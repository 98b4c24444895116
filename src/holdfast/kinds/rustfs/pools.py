"""The pools of a Tenant: servers of one shape, their volumes, and how a pool leaves.

The shape of a pool is immutable: a store grows by another pool.  This module must
not know the store as a whole, nor how pools are rolled out.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from holdfast.kinds.core import typed
from holdfast.kinds.model import (
    QUANTITY,
    Count,
    FloorStatus,
    Label,
    Model,
    Positive,
    PositiveDuration,
    Rule,
    Spelling,
    Time,
    Total,
    api,
    unchanged,
)

# --- spec ---------------------------------------------------------------------


def _shape(rule: str, what: str, *, at: str | None = None) -> Rule:
    """A rule about the shape of a pool."""
    return Rule(
        rule=rule, message=f"{what} is immutable; add a pool to grow", reason="FieldValueForbidden", field_path=at
    )


def _frozen(field: str, what: str) -> Rule:
    """The rule of a field that may be neither changed nor added nor removed."""
    return _shape(unchanged(field), what, at=f".{field}")


def _frozen_storage() -> Rule:
    """Sizes are compared as quantities, because 1Gi and 1024Mi are the same size."""

    def sized(claim: str) -> str:
        return f"has({claim}.resources) && has({claim}.resources.requests) && 'storage' in {claim}.resources.requests"

    def size(claim: str) -> str:
        return f"quantity(string({claim}.resources.requests['storage']))"

    return _shape(
        f"({sized('self')}) == ({sized('oldSelf')})"
        f" && (!({sized('self')}) || {size('self')}.compareTo({size('oldSelf')}) == 0)",
        "the size of a pool's volumes",
        at=".resources",
    )


_AMOUNT: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "maxLength": 64,
    "pattern": QUANTITY,
}

VolumeClaimSpec = Annotated[
    dict[str, Any],
    # Rules are costed by the longest values there may be, so those of their fields are bounded.
    typed(
        "PersistentVolumeClaimSpec",
        storageClassName={"type": "string", "maxLength": 253},
        accessModes={"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 63}},
        resources={
            "type": "object",
            "properties": {
                name: {"type": "object", "maxProperties": 16, "additionalProperties": _AMOUNT}
                for name in ("requests", "limits")
            },
        },
        rules=(
            _frozen("storageClassName", "the StorageClass of a pool's volumes"),
            _frozen("accessModes", "the access mode of a pool's volumes"),
            _frozen_storage(),
        ),
    ),
]

SeccompProfile = Annotated[dict[str, Any], typed("SeccompProfile")]
ContainerSecurityContext = Annotated[dict[str, Any], typed("SecurityContext")]
Affinity = Annotated[dict[str, Any], typed("Affinity")]
Toleration = Annotated[dict[str, Any], typed("Toleration")]
TopologySpreadConstraint = Annotated[dict[str, Any], typed("TopologySpreadConstraint")]
ResourceRequirements = Annotated[dict[str, Any], typed("ResourceRequirements")]

UnixId = Annotated[Total, api(le=2**31 - 1)]
"""The number of a user or a group."""


class SecurityContext(Model):
    """The user and the group of the processes of a pod; an empty one leaves them to the platform."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.runAsUser) || self.runAsUser != 0 || !has(self.runAsNonRoot) || !self.runAsNonRoot",
            message="runAsUser 0 is root, which runAsNonRoot forbids",
            field_path=".runAsNonRoot",
        ),
    )

    run_as_user: Annotated[UnixId, api("The user that the processes run as.")] | None = None
    run_as_group: Annotated[UnixId, api("The group that the processes run as.")] | None = None
    fs_group: Annotated[UnixId, api("The group that volumes belong to.")] | None = None
    run_as_non_root: Annotated[bool, api("Whether root is refused.")] | None = None
    seccomp_profile: Annotated[SeccompProfile, api("The seccomp profile, as in a pod.")] | None = None


class Persistence(Model):
    """The volumes of a pool's servers."""

    RULES: ClassVar = (
        _shape(
            "has(self.volumeClaimTemplate) == has(oldSelf.volumeClaimTemplate)",
            "whether a pool has a volumeClaimTemplate",
            at=".volumeClaimTemplate",
        ),
    )

    volumes_per_server: Annotated[
        Positive, api("How many volumes each server has.", rules=(_shape("self == oldSelf", "volumesPerServer"),))
    ]
    volume_claim_template: (
        Annotated[VolumeClaimSpec, api("The claim of each volume, as in a PersistentVolumeClaim; 10Gi if unset.")]
        | None
    ) = None
    path: Annotated[str, api("Where volumes are mounted; /data if unset.", min_length=1)] | None = None
    labels: Annotated[dict[str, str], api("Labels of the claims.")] = {}
    annotations: Annotated[dict[str, str], api("Annotations of the claims.")] = {}


class Pool(Model):
    """Servers of one shape, run as one StatefulSet."""

    name: Annotated[Label, api("The name of the pool.")]
    servers: Annotated[
        Positive, api("How many servers the pool has; immutable.", rules=(_shape("self == oldSelf", "servers"),))
    ]
    persistence: Annotated[Persistence, api("The volumes of each server.")]
    progress_deadline: (
        Annotated[
            PositiveDuration,
            api("How long a rollout may make no progress before it has failed.", default="10m"),
        ]
        | None
    ) = None
    security_context: (
        Annotated[SecurityContext, api("User and group of its processes; the tenant's if unset.")] | None
    ) = None
    container_security_context: (
        Annotated[ContainerSecurityContext, api("What its containers may do; the tenant's if unset.")] | None
    ) = None
    node_selector: Annotated[dict[str, str], api("The nodes that it runs on, by their labels.")] = {}
    affinity: Annotated[Affinity, api("The affinity of its pods.")] | None = None
    tolerations: Annotated[tuple[Toleration, ...], api("The taints that its pods tolerate.")] = ()
    topology_spread_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...], api("How its pods are spread over nodes.")
    ] = ()
    resources: Annotated[ResourceRequirements, api("What each server needs and may use.")] | None = None
    priority_class_name: Annotated[str, api("The PriorityClass of its pods; the tenant's if unset.")] | None = None


class DecommissionAction(StrEnum):
    """The action of a decommission request."""

    START = "Start"
    CANCEL = "Cancel"


class DecommissionRequest(Model):
    """A request to drain a pool, or to cancel its drain."""

    pool_name: Annotated[Label, api("The name of the pool.")]
    request_id: Annotated[str, api("Another id is another request.", min_length=1, max_length=128)]
    action: Annotated[DecommissionAction, api("Whether the drain is started or canceled.")]
    requested_at: Annotated[Time, api("When the drain was requested.")] | None = None
    cancel_requested_at: Annotated[Time, api("When the cancellation was requested.")] | None = None
    reason: Annotated[str, api("The reason of the request, as a sentence.", max_length=1024)] | None = None


class PoolLifecycle(Model):
    """How pools leave."""

    pvc_retention_policy: (
        Annotated[Literal["Retain"], api("What happens to the volumes of a pool that left.", default="Retain")] | None
    ) = None
    decommission_requests: Annotated[
        tuple[DecommissionRequest, ...], api("The pools that leave.", keys=("poolName",), max_length=32)
    ] = ()


# --- status ------------------------------------------------------------------


class PoolState(Spelling):
    """The state of a pool.  Written with the ``Pool`` prefix, read with or without."""

    CREATED = "PoolCreated"
    """The StatefulSet exists, and its controller has written no status yet."""
    NOT_CREATED = "PoolNotCreated"
    """The StatefulSet does not exist, or has no replicas."""
    INITIALIZED = "PoolInitialized"
    """More pods are ready or updated than desired, as while it scales down."""
    UPDATING = "PoolUpdating"
    """A rollout is under way."""
    ROLLOUT_COMPLETE = "PoolRolloutComplete"
    """All pods are ready and of the newest revision."""
    ROLLOUT_FAILED = "PoolRolloutFailed"
    """A rollout made no progress for longer than its deadline."""
    DEGRADED = "PoolDegraded"
    """No rollout is under way, and some pods are not ready."""

    __spellings__: ClassVar = {
        state: f"Pool{state}"
        for state in (
            "Created", "NotCreated", "Initialized", "Updating", "RolloutComplete", "RolloutFailed", "Degraded",
        )
    }  # fmt: skip


class PoolLifecycleState(StrEnum):
    """Where a pool is in its life."""

    ACTIVE = "Active"
    DECOMMISSIONING = "Decommissioning"
    DECOMMISSIONED = "Decommissioned"
    DECOMMISSION_CANCELED = "DecommissionCanceled"
    DECOMMISSION_FAILED = "DecommissionFailed"


class DecommissionPhase(StrEnum):
    """The drain of a pool."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETE = "Complete"
    CANCELED = "Canceled"
    FAILED = "Failed"


class CleanupState(StrEnum):
    """What is left of a drained pool."""

    PENDING = "Pending"
    STATEFUL_SET_DELETING = "StatefulSetDeleting"
    PVC_RETAINED = "PvcRetained"
    """Its volumes alone, which are always kept."""


class DecommissionProgress(Model):
    """How much data of a pool has moved."""

    objects_migrated: Annotated[Total, api("Objects that moved.")] | None = None
    bytes_migrated: Annotated[Total, api("Bytes that moved.")] | None = None
    objects_failed: Annotated[Total, api("Objects that could not be moved.")] | None = None
    bytes_failed: Annotated[Total, api("Bytes that could not be moved.")] | None = None


class DecommissionCleanup(Model):
    """What is left of a drained pool."""

    state: Annotated[CleanupState, api("What is left of the pool.")]
    stateful_set_deleted_at: Annotated[Time, api("When its StatefulSet was gone.")] | None = None
    pvc_retention_policy: Annotated[str, api("What happened to its volumes.")] | None = None


class DecommissionError(Model):
    """Why a drain failed or waits."""

    reason: Annotated[str, api("The reason, as one word.")] | None = None
    message: Annotated[str, api("The reason, as a sentence.")] | None = None


class DecommissionStatus(Model):
    """The drain of a pool."""

    request_id: Annotated[str, api("The request that is being followed.")] | None = None
    rustfs_pool_id: Annotated[str, api("The number of the pool in the store.")] | None = None
    endpoint_set_hash: Annotated[str, api("A hash of the servers of the pool.")] | None = None
    phase: Annotated[DecommissionPhase, api("The phase of the drain.")] | None = None
    started_at: Annotated[Time, api("When the drain began.")] | None = None
    last_poll_time: Annotated[Time, api("When the store was last asked.")] | None = None
    completed_at: Annotated[Time, api("When the drain was complete.")] | None = None
    progress: Annotated[DecommissionProgress, api("How much has moved.")] | None = None
    cleanup: Annotated[DecommissionCleanup, api("What is left of the pool.")] | None = None
    last_error: Annotated[DecommissionError, api("Why it failed or waits.")] | None = None


class PoolStatus(Model):
    """The observed state of a pool."""

    name: Annotated[str, api("The name of the pool.")] | None = None
    ss_name: Annotated[str, api("The name of the StatefulSet that runs the pool.", min_length=1)]
    state: Annotated[PoolState, api("The state of the pool.")]
    workload_state: Annotated[PoolState, api("The same as state.")] | None = None
    lifecycle_state: Annotated[PoolLifecycleState, api("Where the pool is in its life.")] | None = None
    decommission: Annotated[DecommissionStatus, api("The drain of the pool.")] | None = None
    replicas: Annotated[Count, api("Pods of the pool that exist.")] | None = None
    ready_replicas: Annotated[Count, api("Pods that are ready.")] | None = None
    current_replicas: Annotated[Count, api("Pods of the current revision.")] | None = None
    updated_replicas: Annotated[Count, api("Pods of the update revision.")] | None = None
    current_revision: Annotated[str, api("The current revision of the StatefulSet.")] | None = None
    update_revision: Annotated[str, api("The update revision of the StatefulSet.")] | None = None
    floor: Annotated[FloorStatus, api("How many servers must be ready, how many are, and how many were.")] | None = None
    last_progress_time: (
        Annotated[Time, api("When the rollout last made progress; progressDeadline counts from here.")] | None
    ) = None
    last_update_time: Annotated[Time, api("When another field of the pool last changed.")] | None = None
