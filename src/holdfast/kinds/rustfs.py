"""The kind of ``rustfs.com/v1alpha1``: storage tenants.

A Tenant is an object store made of pools; a pool is servers with volumes, run as
one StatefulSet.  A pool's shape never changes: a store grows by another pool.
This module says what the object looks like and what an API server can refuse by
itself; it must not know how it is operated.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from holdfast.kinds.model import (
    AGE,
    Column,
    Conditions,
    Duration,
    IntOrPercent,
    Kind,
    Model,
    OpenObject,
    Quantity,
    Resource,
    Rule,
    Spelling,
    Time,
    api,
)
from holdfast.kinds.rustfs_features import (
    Bucket,
    CertificatesStatus,
    Encryption,
    KeyReference,
    LocalReference,
    Policy,
    ProvisioningStatus,
    Tls,
    Users,
)

Count = Annotated[int, api(ge=0, format="int32")]
Positive = Annotated[int, api(ge=1, format="int32")]
UnixId = Annotated[int, api(ge=0, le=2**31 - 1, format="int64")]
Share = Annotated[IntOrPercent, api(minimum=0, maxLength=16)]
"""A number of servers, plain or as a percentage of a pool's."""
PoolName = Annotated[str, api(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class PoolState(Spelling):
    """How a pool's StatefulSet is doing.  Written with the ``Pool`` prefix, read with or without."""

    CREATED = "PoolCreated"
    """It exists, and its controller has not reported on it yet."""
    NOT_CREATED = "PoolNotCreated"
    """It does not exist, or wants no pods."""
    INITIALIZED = "PoolInitialized"
    """It has more ready or updated pods than it wants, as while it shrinks."""
    UPDATING = "PoolUpdating"
    """A rollout runs."""
    ROLLOUT_COMPLETE = "PoolRolloutComplete"
    """All pods are ready and of the newest revision."""
    ROLLOUT_FAILED = "PoolRolloutFailed"
    """A rollout stood still for longer than its deadline."""
    DEGRADED = "PoolDegraded"
    """No rollout runs, and some pods are not ready."""

    __spellings__: ClassVar = {
        state: f"Pool{state}"
        for state in (
            "Created", "NotCreated", "Initialized", "Updating", "RolloutComplete", "RolloutFailed", "Degraded",
        )
    }  # fmt: skip


class PoolLifecycleState(StrEnum):
    """Whether a pool is here to stay."""

    ACTIVE = "Active"
    DECOMMISSIONING = "Decommissioning"
    DECOMMISSIONED = "Decommissioned"
    DECOMMISSION_CANCELED = "DecommissionCanceled"
    DECOMMISSION_FAILED = "DecommissionFailed"


class DecommissionPhase(StrEnum):
    """How far the draining of a pool is."""

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


class DecommissionAction(StrEnum):
    """What is asked of a pool's decommission."""

    START = "Start"
    CANCEL = "Cancel"


class PodDeletionPolicy(StrEnum):
    """What to do with terminating pods on a node that is down."""

    DO_NOTHING = "DoNothing"
    DELETE = "Delete"
    """Delete them, with their grace period."""
    FORCE_DELETE = "ForceDelete"
    """Delete them at once, if the node is known to be off."""
    DELETE_STATEFUL_SET_POD = "DeleteStatefulSetPod"
    DELETE_DEPLOYMENT_POD = "DeleteDeploymentPod"
    DELETE_BOTH = "DeleteBothStatefulSetAndDeploymentPod"


# --- pools ---------------------------------------------------------------------


def _shape(rule: str, what: str, *, at: str | None = None) -> Rule:
    """A rule about what a pool was made with."""
    return Rule(
        rule=rule, message=f"{what} is immutable; add a pool to grow", reason="FieldValueForbidden", field_path=at
    )


def _frozen(field: str, what: str) -> Rule:
    """The rule of a field that may neither change nor appear nor vanish."""
    unchanged = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    return _shape(unchanged, what, at=f".{field}")


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


_OPEN: Final[dict[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_AMOUNT: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "maxLength": 64,
}
VolumeClaimSpec = Annotated[
    OpenObject,
    # Rules see only fields that the schema names, so those that rules are about are named.
    api(
        properties={
            "storageClassName": {"type": "string", "maxLength": 253},
            "accessModes": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 63}},
            "resources": {
                **_OPEN,
                "properties": {
                    "requests": {"type": "object", "maxProperties": 16, "additionalProperties": _AMOUNT},
                },
            },
        },
        rules=(
            _frozen("storageClassName", "the StorageClass of a pool's volumes"),
            _frozen("accessModes", "the access mode of a pool's volumes"),
            _frozen_storage(),
        ),
    ),
]


class SecurityContext(Model):
    """Who the processes of a pod are; an empty one leaves it to the platform."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.runAsUser) || self.runAsUser != 0 || !has(self.runAsNonRoot) || !self.runAsNonRoot",
            message="runAsUser 0 is root, which runAsNonRoot forbids",
            field_path=".runAsNonRoot",
        ),
    )

    run_as_user: Annotated[UnixId, api("The user.")] | None = None
    run_as_group: Annotated[UnixId, api("The group.")] | None = None
    fs_group: Annotated[UnixId, api("The group that volumes belong to.")] | None = None
    run_as_non_root: Annotated[bool, api("Whether root is refused.")] | None = None
    seccomp_profile: Annotated[OpenObject, api("The seccomp profile, as in a pod.")] | None = None


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

    name: Annotated[PoolName, api("What the pool is called.")]
    servers: Annotated[Positive, api("How many servers.", rules=(_shape("self == oldSelf", "servers"),))]
    persistence: Annotated[Persistence, api("The volumes of each server.")]
    progress_deadline: (
        Annotated[
            Duration,
            api(
                "How long a rollout may stand still before it has failed.",
                default="10m",
                max_length=64,
                rules=(Rule(rule="duration(self) > duration('0s')", message="must be longer than 0s"),),
            ),
        ]
        | None
    ) = None
    security_context: Annotated[SecurityContext, api("Who its processes are; the tenant's if unset.")] | None = None
    container_security_context: (
        Annotated[OpenObject, api("What its containers may do; the tenant's if unset.")] | None
    ) = None
    node_selector: Annotated[dict[str, str], api("The nodes that it runs on, by their labels.")] = {}
    affinity: Annotated[OpenObject, api("The affinity of its pods.")] | None = None
    tolerations: Annotated[tuple[OpenObject, ...], api("The taints that its pods tolerate.")] = ()
    topology_spread_constraints: Annotated[tuple[OpenObject, ...], api("How its pods are spread over nodes.")] = ()
    resources: Annotated[OpenObject, api("What each server needs and may use.")] | None = None
    priority_class_name: Annotated[str, api("The PriorityClass of its pods; the tenant's if unset.")] | None = None


class DecommissionRequest(Model):
    """That a pool be drained, or be drained no longer."""

    pool_name: Annotated[PoolName, api("The pool.")]
    request_id: Annotated[str, api("What tells this request from earlier ones.", min_length=1, max_length=128)]
    action: Annotated[DecommissionAction, api("What is asked.")]
    requested_at: Annotated[Time, api("When it was asked.")] | None = None
    cancel_requested_at: Annotated[Time, api("When it was asked to stop.")] | None = None
    reason: Annotated[str, api("Why, for people.", max_length=1024)] | None = None


class PoolLifecycle(Model):
    """How pools leave."""

    pvc_retention_policy: (
        Annotated[Literal["Retain"], api("What happens to the volumes of a pool that left.", default="Retain")] | None
    ) = None
    decommission_requests: Annotated[
        tuple[DecommissionRequest, ...], api("The pools that shall leave.", keys=("poolName",), max_length=32)
    ] = ()


# --- the tenant ----------------------------------------------------------------


class EnvVar(Model):
    """An environment variable of the servers."""

    name: Annotated[
        str,
        api(
            "Its name.",
            min_length=1,
            max_length=1024,
            rules=(
                Rule(
                    rule="!self.startsWith('RUSTFS_KMS_')",
                    message="variables named RUSTFS_KMS_ are set from spec.encryption",
                    reason="FieldValueForbidden",
                ),
            ),
        ),
    ]
    value: Annotated[str, api("Its value.")] | None = None
    value_from: Annotated[OpenObject, api("Where its value comes from, as in a pod.")] | None = None


class Logging(Model):
    """Where the servers write their logs."""

    mode: (
        Annotated[
            Literal["stdout", "emptydir", "persistent"],
            api("To the container's output, to the node's disk, or to a volume.", default="stdout"),
        ]
        | None
    ) = None
    storage_size: Annotated[Quantity, api("The size of the volume; 5Gi if unset.")] | None = None
    storage_class: Annotated[str, api("The StorageClass of the volume.")] | None = None
    mount_path: Annotated[str, api("Where logs are written; /logs if unset.", min_length=1)] | None = None


class Rollout(Model):
    """How far a rollout may disturb the store."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.maxUnavailable) || !(string(self.maxUnavailable) in ['0', '0%'])",
            message="with maxUnavailable 0 no server could ever be replaced; set paused to hold a rollout",
            field_path=".maxUnavailable",
        ),
    )

    max_unavailable: (
        Annotated[Share, api("How many servers of a pool may be replaced at a time; 1 if unset.")] | None
    ) = None
    min_available: Annotated[Share, api("How many servers of a pool must stay ready.")] | None = None
    paused: Annotated[bool, api("Whether rollouts wait.", default=False)] | None = None


class TenantSpec(Model):
    """An object store."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!has(self.encryption) || !self.encryption.enabled || self.encryption.backend != 'local'"
                " || (self.pools.size() == 1 && self.pools[0].servers == 1)"
            ),
            message="encryption with local keys works with one server only; use the vault backend",
            field_path=".encryption.backend",
        ),
    )

    pools: Annotated[tuple[Pool, ...], api("The pools.", keys=("name",), min_length=1, max_length=32)]
    pool_lifecycle: Annotated[PoolLifecycle, api("How pools leave.")] | None = None
    rollout: Annotated[Rollout, api("How far a rollout may disturb the store.")] | None = None
    image: Annotated[str, api("The image of the servers; the operator's default if unset.", min_length=1)] | None = None
    image_pull_policy: (
        Annotated[Literal["Always", "Never", "IfNotPresent"], api("When the image is pulled; IfNotPresent if unset.")]
        | None
    ) = None
    image_pull_secret: Annotated[LocalReference, api("The Secret to pull the image with.")] | None = None
    mount_path: Annotated[str, api("Accepted and not used; set persistence.path of a pool.")] | None = None
    pod_management_policy: (
        Annotated[Literal["OrderedReady", "Parallel"], api("How pods of a pool start; Parallel if unset.")] | None
    ) = None
    pod_deletion_policy_when_node_is_down: (
        Annotated[PodDeletionPolicy, api("What to do with pods on a node that is down; DoNothing if unset.")] | None
    ) = None
    scheduler: Annotated[str, api("The scheduler of the pods.")] | None = None
    priority_class_name: Annotated[str, api("The PriorityClass of the pods.")] | None = None
    service_account_name: Annotated[str, api("The ServiceAccount of the pods; one is made if unset.")] | None = None
    create_service_account_rbac: Annotated[bool, api("Accepted and not used.")] | None = None
    security_context: Annotated[SecurityContext, api("Who the processes are.")] | None = None
    container_security_context: Annotated[OpenObject, api("What the containers may do, as in a pod.")] | None = None
    lifecycle: Annotated[OpenObject, api("Hooks of the containers, as in a pod.")] | None = None
    env: Annotated[tuple[EnvVar, ...], api("Environment variables of the servers.", max_length=1024)] = ()
    logging: Annotated[Logging, api("Where the servers write their logs.")] | None = None
    creds_secret: (
        Annotated[LocalReference, api("The Secret with the root credentials: accesskey and secretkey.")] | None
    ) = None
    rpc_secret: Annotated[KeyReference, api("The Secret that servers know each other by.")] | None = None
    tls: Annotated[Tls, api("How the servers speak TLS.")] | None = None
    encryption: Annotated[Encryption, api("Encryption of objects at rest.")] | None = None
    policies: Annotated[
        tuple[Policy, ...], api("Policies to be made in the store.", keys=("name",), max_length=256)
    ] = ()
    users: Users = ()
    buckets: Annotated[
        tuple[Bucket, ...], api("Buckets to be made in the store.", keys=("name",), max_length=1024)
    ] = ()


class DecommissionProgress(Model):
    """How much of a pool has moved."""

    objects_migrated: Annotated[int, api("Objects that moved.", ge=0)] | None = None
    bytes_migrated: Annotated[int, api("Bytes that moved.", ge=0)] | None = None
    objects_failed: Annotated[int, api("Objects that could not be moved.", ge=0)] | None = None
    bytes_failed: Annotated[int, api("Bytes that could not be moved.", ge=0)] | None = None


class DecommissionCleanup(Model):
    """What is left of a drained pool."""

    state: Annotated[CleanupState, api("What is left.")]
    stateful_set_deleted_at: Annotated[Time, api("When its StatefulSet was gone.")] | None = None
    pvc_retention_policy: Annotated[str, api("What happened to its volumes.")] | None = None


class DecommissionError(Model):
    """Why draining did not go on."""

    reason: Annotated[str, api("Why, for machines.")] | None = None
    message: Annotated[str, api("Why, for people.")] | None = None


class DecommissionStatus(Model):
    """How far the draining of a pool is."""

    request_id: Annotated[str, api("The request that is being followed.")] | None = None
    rustfs_pool_id: Annotated[str, api("What the store calls the pool.")] | None = None
    endpoint_set_hash: Annotated[str, api("The servers of the pool, as a hash.")] | None = None
    phase: Annotated[DecommissionPhase, api("How far it is.")] | None = None
    started_at: Annotated[Time, api("When it began.")] | None = None
    last_poll_time: Annotated[Time, api("When the store was last asked.")] | None = None
    completed_at: Annotated[Time, api("When it was done.")] | None = None
    progress: Annotated[DecommissionProgress, api("How much has moved.")] | None = None
    cleanup: Annotated[DecommissionCleanup, api("What is left of the pool.")] | None = None
    last_error: Annotated[DecommissionError, api("Why it did not go on.")] | None = None


class PoolStatus(Model):
    """What exists of a pool."""

    name: Annotated[str, api("The pool.")] | None = None
    ss_name: Annotated[str, api("The pool's StatefulSet.", min_length=1)]
    state: Annotated[PoolState, api("How the StatefulSet is doing.")]
    workload_state: Annotated[PoolState, api("The same as state.")] | None = None
    lifecycle_state: Annotated[PoolLifecycleState, api("Whether the pool is here to stay.")] | None = None
    decommission: Annotated[DecommissionStatus, api("How far its draining is.")] | None = None
    replicas: Annotated[Count, api("Pods that exist.")] | None = None
    ready_replicas: Annotated[Count, api("Pods that are ready.")] | None = None
    current_replicas: Annotated[Count, api("Pods of the current revision.")] | None = None
    updated_replicas: Annotated[Count, api("Pods of the update revision.")] | None = None
    current_revision: Annotated[str, api("The revision that a rollout leaves.")] | None = None
    update_revision: Annotated[str, api("The revision that a rollout reaches.")] | None = None
    last_progress_time: (
        Annotated[Time, api("When the running rollout last moved; progressDeadline counts from here.")] | None
    ) = None
    last_update_time: Annotated[Time, api("When anything else said here last changed.")] | None = None


class TenantStatus(Model):
    """What exists of a Tenant."""

    # Not an enum: objects that an older operator left behind say other things, and must still be read.
    current_state: (
        Annotated[str, api("Ready, Blocked, Reconciling, Degraded, NotReady or Unknown, by the conditions.")] | None
    ) = None
    available_replicas: Annotated[Count, api("Pods that are ready, of all pools.")] | None = None
    pools: Annotated[tuple[PoolStatus, ...], api("What exists of each pool.", keys=("ssName",))] = ()
    observed_generation: Annotated[int, api("The generation that this status is about.")] | None = None
    conditions: Conditions = ()
    certificates: Annotated[CertificatesStatus, api("The certificates in use.")] | None = None
    provisioning: Annotated[ProvisioningStatus, api("What became of policies, users and buckets.")] | None = None


class Tenant(Resource):
    """An object store, made of pools of servers with volumes."""

    RULES: ClassVar = (
        Rule(
            rule="size(self.metadata.name) <= 55 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message=(
                "a Tenant's name begins with a letter, has only small letters, digits and hyphens and at most 55 of"
                " them, because Services are named after it"
            ),
        ),
        Rule(
            rule=(
                "self.spec.pools.all(p,"
                " size(self.metadata.name) + size(p.name) + size(string(p.servers - 1)) + 2 <= 63)"
            ),
            message="the name of a server, TENANT-POOL-NUMBER, must not exceed 63 characters",
            field_path=".spec.pools",
        ),
    )

    spec: Annotated[TenantSpec, api("What is wanted.")]
    status: Annotated[TenantStatus, api("What exists.")] | None = None


TENANT: Final = Kind(
    model=Tenant,
    group="rustfs.com",
    version="v1alpha1",
    plural="tenants",
    short_names=("tenant",),
    columns=(Column(name="State", path=".status.currentState"), AGE),
)

KINDS: Final = (TENANT,)
