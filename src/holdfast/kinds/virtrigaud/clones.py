"""VMClone: a machine made from another machine, a snapshot, a template or an image.

This module must not know how disks are copied; providers do.
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
    Resource,
    Total,
    api,
    exactly_one,
    immutable,
)
from holdfast.kinds.virtrigaud.devices import Disks, Networks
from holdfast.kinds.virtrigaud.guests import UserData
from holdfast.kinds.virtrigaud.machines import PlacementStatus
from holdfast.kinds.virtrigaud.operations import FailedAttempts, OperationMetadata, OperationStatus, RetryPolicy
from holdfast.kinds.virtrigaud.references import (
    GROUP,
    DiskType,
    Inventory,
    IPv4,
    LocalObjectReference,
    MACAddress,
    MachineName,
    Message,
    Namespace,
    ObjectRef,
    StorageClassName,
    Tags,
)


class CloneType(StrEnum):
    """How much a clone shares with its source."""

    FULL_CLONE = "FullClone"
    """Nothing."""
    LINKED_CLONE = "LinkedClone"
    """Disks, until they are written to."""
    INSTANT_CLONE = "InstantClone"
    """Disks and memory, until they are written to."""


class ClonePhase(StrEnum):
    """The phase of a clone."""

    PENDING = "Pending"
    PREPARING = "Preparing"
    CLONING = "Cloning"
    CUSTOMIZING = "Customizing"
    POWERING_ON = "Powering-On"
    READY = "Ready"
    FAILED = "Failed"


class VMCloneCondition(StrEnum):
    """The condition types of a clone."""

    READY = "Ready"
    CLONING = "Cloning"
    CUSTOMIZING = "Customizing"
    FAILED = "Failed"


class CloneSource(Model):
    """What is cloned."""

    RULES: ClassVar = (exactly_one("vmRef", "snapshotRef", "templateRef", "imageRef"),)

    vm_ref: Annotated[LocalObjectReference, api("The machine to clone.")] | None = None
    snapshot_ref: Annotated[LocalObjectReference, api("The VMSnapshot to clone.")] | None = None
    template_ref: Annotated[ObjectRef, api("The template to clone.")] | None = None
    image_ref: Annotated[ObjectRef, api("The VMImage to clone.")] | None = None


class VMCloneTarget(Model):
    """The machine that is made."""

    name: Annotated[MachineName, api("Name of the machine.", rules=(immutable("spec.target.name"),))]
    namespace: Annotated[Namespace, api("Namespace of the machine; the source's when unset.")] | None = None
    provider_ref: Annotated[ObjectRef, api("The Provider that runs it; the source's when unset.")] | None = None
    class_ref: Annotated[LocalObjectReference, api("The VMClass that sizes it; the source's when unset.")] | None = None
    placement_ref: Annotated[LocalObjectReference, api("The VMPlacementPolicy that places it.")] | None = None
    networks: Networks = ()
    disks: Disks = ()
    labels: Annotated[Tags, api("Labels of the machine.")] = {}
    annotations: Annotated[Tags, api("Annotations of the machine.")] = {}


class CloneStorageOptions(Model):
    """Where the disks of a clone are stored."""

    prefer_thin_provisioning: Annotated[bool, api("Whether space is taken as it is written.", default=True)] | None = (
        None
    )
    disk_format: Annotated[DiskType, api("How disks are provisioned.")] | None = None
    storage_class: Annotated[StorageClassName, api("Class of storage of the disks.")] | None = None
    datastore: Annotated[Inventory, api("Datastore for the disks.")] | None = None
    folder: Annotated[Inventory, api("Folder to file the machine in.")] | None = None
    enable_compression: Annotated[bool, api("Whether to compress while copying.", default=False)] | None = None


class ClonePerformanceOptions(Model):
    """How much load cloning may put on the storage."""

    priority: Annotated[Literal["Low", "Normal", "High"], api("How urgent it is.", default="Normal")] | None = None
    io_throttling: Annotated[bool, api("Whether to limit the load on the storage.", default=False)] | None = None
    max_iops: Annotated[int, api("Operations a second at most.", ge=100, le=100000)] | None = msgspec.field(
        name="maxIOPS", default=None
    )
    concurrent_disks: Annotated[Positive, api("Disks copied at once.", default=2, le=10)] | None = None


class CloneOptions(Model):
    """How the clone is made."""

    type: Annotated[CloneType, api("How much it shares with its source.", default="FullClone")] | None = None
    power_on: Annotated[bool, api("Whether to start it.", default=False)] | None = None
    include_snapshots: Annotated[bool, api("Whether to take the source's snapshots along.", default=False)] | None = (
        None
    )
    parallel: Annotated[bool, api("Whether to copy disks at the same time.", default=False)] | None = None
    timeout: Annotated[Duration, api("How long it may take.", default="30m")] | None = None
    retry_policy: Annotated[RetryPolicy, api("What to do when it fails.")] | None = None
    storage: Annotated[CloneStorageOptions, api("Where the disks are stored.")] | None = None
    performance: Annotated[ClonePerformanceOptions, api("How much load it may put on the storage.")] | None = None


class NetworkCustomization(Model):
    """A network card as the guest should set it up."""

    name: Annotated[Inventory, api("Name of the network card.")]
    ip_address: Annotated[IPv4, api("Static address of the card.")] | None = None
    subnet_mask: Annotated[IPv4, api("Mask of the static address.")] | None = None
    gateway: Annotated[IPv4, api("Default gateway of the static address.")] | None = None
    dns: Annotated[tuple[str, ...], api("DNS servers of the card.", max_length=5)] = ()
    mac_address: Annotated[MACAddress, api("Hardware address of the card.")] | None = None
    dhcp: Annotated[bool, api("Whether to ask DHCP.")] | None = None


class PasswordSpec(Model):
    """A password, best kept in a Secret."""

    value: Annotated[str, api("The password in clear text; a Secret is better.")] | None = None
    secret_ref: Annotated[LocalObjectReference, api("The Secret that holds it.")] | None = None
    secret_key: Annotated[str, api("Its key in the Secret.", default="password")] | None = None


class DomainJoinSpec(Model):
    """A Windows domain to join."""

    domain: Annotated[str, api("Name of the domain to join.", max_length=255)]
    username: Annotated[str, api("Who may join machines.", max_length=255)]
    password: Annotated[PasswordSpec, api("Password of the user who joins machines.")]
    organizational_unit: Annotated[str, api("Unit for the machine's account.", max_length=500)] | None = None


class SysprepCustomization(Model):
    """How Windows sets itself up."""

    enabled: Annotated[bool, api("Whether to run sysprep.", default=False)] | None = None
    product_key: Annotated[str, api("Product key of Windows.")] | None = None
    organization: Annotated[str, api("Organization that Windows is registered to.", max_length=255)] | None = None
    owner: Annotated[str, api("Owner that Windows is registered to.", max_length=255)] | None = None
    admin_password: Annotated[PasswordSpec, api("The administrator's password.")] | None = None
    join_domain: Annotated[DomainJoinSpec, api("Windows domain that the machine joins.")] | None = None
    custom_commands: Annotated[tuple[str, ...], api("Commands to run meanwhile.", max_length=20)] = ()


class GuestCommand(Model):
    """A command to run in the guest."""

    command: Annotated[str, api("The program to run in the guest.", max_length=1000)]
    arguments: Annotated[tuple[str, ...], api("Arguments of the program.", max_length=20)] = ()
    working_directory: Annotated[str, api("Directory that the program runs in.", max_length=500)] | None = None
    run_as_user: Annotated[str, api("User who runs the program.", max_length=255)] | None = None
    timeout: Annotated[Duration, api("How long it may take.", default="5m")] | None = None
    stage: (
        Annotated[
            Literal["pre-customization", "post-customization", "first-boot"],
            api("When the program runs.", default="post-customization"),
        ]
        | None
    ) = None


class CertificateSpec(Model):
    """A certificate to install."""

    name: Annotated[str, api("Name of the certificate.", max_length=255)]
    data: Annotated[str, api("The certificate itself, as PEM.")] | None = None
    secret_ref: Annotated[LocalObjectReference, api("The Secret that holds it.")] | None = None
    secret_key: Annotated[str, api("Its key in the Secret.", default="tls.crt")] | None = None
    store: Annotated[Literal["root", "ca", "my", "trust"], api("Where to install it.", default="root")] | None = None


class VMCustomization(Model):
    """What makes the clone's guest differ from its source's."""

    hostname: (
        Annotated[
            str, api("Host name of the guest.", max_length=255, pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$")
        ]
        | None
    ) = None
    domain: Annotated[str, api("Domain name of the guest.", max_length=255)] | None = None
    time_zone: Annotated[str, api("Time zone of the guest.", max_length=100)] | None = None
    networks: Annotated[
        tuple[NetworkCustomization, ...], api("How the guest sets its network cards up.", keys=("name",), max_length=10)
    ] = ()
    user_data: Annotated[UserData, api("What the guest configures itself from.")] | None = None
    sysprep: Annotated[SysprepCustomization, api("How Windows sets itself up.")] | None = None
    tags: Annotated[tuple[str, ...], api("Further tags for the machine.", max_length=50)] = ()
    guest_commands: Annotated[tuple[GuestCommand, ...], api("Commands to run in the guest.", max_length=20)] = ()
    certificates: Annotated[
        tuple[CertificateSpec, ...], api("Certificates to install.", keys=("name",), max_length=10)
    ] = ()


class CloneMetadata(OperationMetadata):
    """Descriptive metadata of a clone."""

    purpose: (
        Annotated[
            Literal["backup", "testing", "migration", "development", "production", "staging"], api("What it is for.")
        ]
        | None
    ) = None


class VMCloneSpec(Model):
    """Desired state of the clone."""

    source: Annotated[CloneSource, api("What the machine is cloned from.", rules=(immutable("spec.source"),))]
    target: Annotated[VMCloneTarget, api("The machine that is made.")]
    options: Annotated[CloneOptions, api("How the clone is made.")] | None = None
    customization: Annotated[VMCustomization, api("What makes it differ from its source.")] | None = None
    metadata: Annotated[CloneMetadata, api("Its purpose, project and tags.")] | None = None


class DiskCloneProgress(Model):
    """Progress of one disk."""

    name: Annotated[str, api("Name of the disk.")]
    total_bytes: Annotated[Total, api("Bytes to copy in all.")] | None = None
    completed_bytes: Annotated[Total, api("Bytes copied so far.")] | None = None
    percentage: Annotated[Percentage, api("Progress in per cent.")] | None = None
    transfer_rate: Annotated[Total, api("Bytes copied in a second.")] | None = None


class CloneProgress(Model):
    """Progress of a clone."""

    total_disks: Annotated[Count, api("Disks to copy in all.")] | None = None
    completed_disks: Annotated[Count, api("Disks copied so far.")] | None = None
    current_disk: Annotated[DiskCloneProgress, api("The disk that is being copied.")] | None = None
    overall_percentage: Annotated[Percentage, api("Overall progress in per cent.")] | None = None
    eta: Annotated[Duration, api("Time left, as estimated.")] | None = None


class CustomizationStatus(Model):
    """Progress of the customization."""

    started: Annotated[bool, api("Whether it has begun.")] | None = None
    completed: Annotated[bool, api("Whether it has ended.")] | None = None
    completed_steps: Annotated[tuple[str, ...], api("Steps that succeeded.")] = ()
    failed_steps: Annotated[tuple[str, ...], api("Steps that failed.")] = ()
    current_step: Annotated[str, api("The step that runs.")] | None = None
    message: Message | None = None


class VMCloneStatus(OperationStatus):
    """Observed state of the clone."""

    target_ref: Annotated[LocalObjectReference, api("The machine that was made.")] | None = None
    target_vm_id: (
        Annotated[str, api("The provider's identifier of the clone, kept before a machine is bound to it.")] | None
    ) = msgspec.field(name="targetVMID", default=None)
    phase: Annotated[ClonePhase, api("Phase of the clone.")] | None = None
    actual_clone_type: Annotated[CloneType, api("How much it really shares with its source.")] | None = None
    progress: Annotated[CloneProgress, api("Progress of the operation.")] | None = None
    customization_status: Annotated[CustomizationStatus, api("Progress of the customization.")] | None = None
    provider_ref: Annotated[ObjectRef, api("The Provider that was asked for the clone.")] | None = None
    placement: Annotated[PlacementStatus, api("Where the VMPlacementPolicy of the target puts it.")] | None = None
    failed: Annotated[FailedAttempts, api("What failed, and when it is tried again.")] | None = None


class VMClone(Resource):
    """A machine made from another. Deleting the clone leaves the machine."""

    spec: Annotated[VMCloneSpec, api("Desired state of the clone.")]
    status: Annotated[VMCloneStatus, api("Observed state of the clone.")] | None = None


KIND: Final = GROUP.kind(
    VMClone,
    "vmclones",
    Column("Source", ".spec.source.*.name"),
    Column("Target", ".spec.target.name"),
    Column("Phase", ".status.phase"),
    Column("Clone Type", ".status.actualCloneType"),
    Column("Progress", ".status.progress.overallPercentage"),
    short="vmclone",
)
