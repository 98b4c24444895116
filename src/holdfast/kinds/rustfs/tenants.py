"""Tenant: an object store, made of pools of servers with volumes.

The schema, and the rules by which an API server refuses a Tenant.  This module must
not know how a Tenant is operated.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from holdfast.kinds.core import typed
from holdfast.kinds.model import (
    AGE,
    BudgetPolicy,
    Column,
    Count,
    IntOrPercent,
    Kind,
    Model,
    Quantity,
    Resource,
    Rule,
    Status,
    api,
    is_zero,
)
from holdfast.kinds.rustfs.encryption import Encryption
from holdfast.kinds.rustfs.pools import ContainerSecurityContext, Pool, PoolLifecycle, PoolStatus, SecurityContext
from holdfast.kinds.rustfs.provisioning import Bucket, Policy, ProvisioningStatus, Users
from holdfast.kinds.rustfs.references import KeyReference, LocalReference
from holdfast.kinds.rustfs.tls import CertificatesStatus, Tls

EnvVarSource = Annotated[dict[str, Any], typed("EnvVarSource")]
Lifecycle = Annotated[dict[str, Any], typed("Lifecycle")]


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


class EnvVar(Model):
    """An environment variable of the servers."""

    name: Annotated[
        str,
        api(
            "The name of the variable.",
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
    value: Annotated[str, api("The value of the variable.")] | None = None
    value_from: Annotated[EnvVarSource, api("Where its value comes from, as in a pod.")] | None = None


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
    """The limits of rollouts."""

    RULES: ClassVar = (
        Rule(
            rule=f"!has(self.maxUnavailable) || !{is_zero('self.maxUnavailable')}",
            message="with maxUnavailable 0 no server could ever be replaced; set paused to hold a rollout",
            field_path=".maxUnavailable",
        ),
    )

    max_unavailable: (
        Annotated[IntOrPercent, api("How many servers of a pool may be replaced at a time; 1 if unset.")] | None
    ) = None
    min_available: Annotated[IntOrPercent, api("How many servers of a pool must stay ready.")] | None = None
    paused: Annotated[bool, api("Whether rollouts are paused.", default=False)] | None = None
    disruption_budget: BudgetPolicy | None = None


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

    pools: Annotated[
        tuple[Pool, ...],
        api("The pools of servers; a store grows by another one.", keys=("name",), min_length=1, max_length=32),
    ]
    pool_lifecycle: (
        Annotated[PoolLifecycle, api("Which pools leave the store, and what happens to their volumes.")] | None
    ) = None
    rollout: Annotated[Rollout, api("The limits of rollouts.")] | None = None
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
    service_account_name: Annotated[str, api("The ServiceAccount of the pods; one is created if unset.")] | None = None
    create_service_account_rbac: Annotated[bool, api("Accepted and not used.")] | None = None
    security_context: Annotated[SecurityContext, api("User and group of the processes, as in a pod.")] | None = None
    container_security_context: (
        Annotated[ContainerSecurityContext, api("What the containers may do, as in a pod.")] | None
    ) = None
    lifecycle: Annotated[Lifecycle, api("Hooks of the containers, as in a pod.")] | None = None
    env: Annotated[tuple[EnvVar, ...], api("Environment variables of the servers.", max_length=1024)] = ()
    logging: Annotated[Logging, api("Where the servers write their logs.")] | None = None
    creds_secret: (
        Annotated[LocalReference, api("The Secret with the root credentials: accesskey and secretkey.")] | None
    ) = None
    rpc_secret: Annotated[KeyReference, api("The Secret with which servers authenticate to each other.")] | None = None
    tls: Annotated[Tls, api("TLS of the servers.")] | None = None
    encryption: Annotated[Encryption, api("Encryption of objects at rest.")] | None = None
    policies: Annotated[
        tuple[Policy, ...], api("Policies to be created in the store.", keys=("name",), max_length=256)
    ] = ()
    users: Users = ()
    buckets: Annotated[
        tuple[Bucket, ...], api("Buckets to be created in the store.", keys=("name",), max_length=1024)
    ] = ()


class TenantStatus(Status):
    """The observed state of a Tenant."""

    # Not an enum: older operators wrote other words, which must still be decoded.
    current_state: (
        Annotated[str, api("Ready, Blocked, Reconciling, Degraded, NotReady or Unknown, by the conditions.")] | None
    ) = None
    available_replicas: Annotated[Count, api("Pods that are ready, of all pools.")] | None = None
    pools: Annotated[tuple[PoolStatus, ...], api("The observed state of each pool.", keys=("ssName",))] = ()
    certificates: Annotated[CertificatesStatus, api("The certificates in use.")] | None = None
    provisioning: Annotated[ProvisioningStatus, api("The state of policies, users and buckets.")] | None = None


class Tenant(Resource):
    """An object store, made of pools of servers with volumes."""

    RULES: ClassVar = (
        Rule(
            rule="size(self.metadata.name) <= 55 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message=(
                "a Tenant's name begins with a letter, has only lower-case letters, digits and hyphens, and at most 55"
                " characters, because Services are named after it"
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

    spec: Annotated[TenantSpec, api("The desired state of the object store.")]
    status: Annotated[TenantStatus, api("The observed state of the object store.")] | None = None


KIND: Final = Kind(
    model=Tenant,
    group="rustfs.com",
    version="v1alpha1",
    plural="tenants",
    short_names=("tenant",),
    columns=(
        Column(name="State", path=".status.currentState"),
        Column(name="Servers", path=".status.availableReplicas", type="integer"),
        Column(name="Reason", path='.status.conditions[?(@.type=="Ready")].reason'),
        Column(name="Message", path='.status.conditions[?(@.type=="Ready")].message', priority=1),
        AGE,
    ),
)
