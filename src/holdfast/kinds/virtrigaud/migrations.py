"""VMMigration: a machine moved from one provider to another.

This module must not know how disks are carried; providers export and import.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Duration,
    Model,
    Quantity,
    Resource,
    Rule,
    Time,
    Total,
    api,
    immutable,
)
from holdfast.kinds.virtrigaud.devices import Disks, Networks
from holdfast.kinds.virtrigaud.operations import (
    FailedAttempts,
    OperationMetadata,
    OperationStatus,
    Progress,
    RetryPolicy,
)
from holdfast.kinds.virtrigaud.references import (
    GROUP,
    LocalObjectReference,
    MachineName,
    Namespace,
    ObjectName,
    ObjectRef,
    Tags,
)


class MigrationPhase(StrEnum):
    """The phase of a migration."""

    PENDING = "Pending"
    VALIDATING = "Validating"
    SNAPSHOTTING = "Snapshotting"
    EXPORTING = "Exporting"
    TRANSFERRING = "Transferring"
    CONVERTING = "Converting"
    IMPORTING = "Importing"
    CREATING = "Creating"
    VALIDATING_TARGET = "Validating-Target"
    READY = "Ready"
    FAILED = "Failed"


class VMMigrationCondition(StrEnum):
    """The condition types of a migration."""

    READY = "Ready"
    VALIDATING = "Validating"
    SNAPSHOTTING = "Snapshotting"
    EXPORTING = "Exporting"
    TRANSFERRING = "Transferring"
    IMPORTING = "Importing"
    FAILED = "Failed"


class MigrationSource(Model):
    """The machine that moves."""

    vm_ref: Annotated[LocalObjectReference, api("The machine that moves.", rules=(immutable("spec.source.vmRef"),))]
    provider_ref: Annotated[ObjectRef, api("The Provider that runs it; the machine's own when unset.")] | None = None
    snapshot_ref: Annotated[LocalObjectReference, api("A VMSnapshot to move, instead of a new one.")] | None = None
    create_snapshot: Annotated[bool, api("Whether to take a snapshot and move that.", default=True)] | None = None
    power_off_before_migration: Annotated[bool, api("Whether to stop the machine first.", default=False)] | None = None
    delete_after_migration: (
        Annotated[bool, api("Whether to delete the machine once its successor runs.", default=False)] | None
    ) = None


class MigrationTarget(Model):
    """The machine that it becomes."""

    name: Annotated[MachineName, api("Name of the machine.", rules=(immutable("spec.target.name"),))]
    namespace: Annotated[Namespace, api("Namespace of the machine; the source's when unset.")] | None = None
    provider_ref: Annotated[
        ObjectRef, api("The Provider that will run it.", rules=(immutable("spec.target.providerRef"),))
    ]
    class_ref: Annotated[LocalObjectReference, api("The VMClass that sizes it; the source's when unset.")] | None = None
    image_ref: Annotated[LocalObjectReference, api("The VMImage to record; its disk comes from the source.")] | None = (
        None
    )
    networks: Networks = ()
    disks: Disks = ()
    placement_ref: Annotated[LocalObjectReference, api("The VMPlacementPolicy that places it.")] | None = None
    power_on: Annotated[bool, api("Whether to start it.", default=False)] | None = None
    labels: Annotated[Tags, api("Labels of the machine.")] = {}
    annotations: Annotated[Tags, api("Annotations of the machine.")] = {}


class ValidationChecks(Model):
    """What to verify before a migration counts as done."""

    check_disk_size: Annotated[bool, api("That the disks are equally big.", default=True)] | None = None
    check_checksum: Annotated[bool, api("That the checksums agree.", default=True)] | None = None
    check_boot: Annotated[bool, api("That the machine boots.", default=False)] | None = None
    check_connectivity: Annotated[bool, api("That the machine answers.", default=False)] | None = None


class MigrationOptions(Model):
    """How the machine is moved."""

    disk_format: Annotated[Literal["qcow2", "vmdk", "raw"], api("Format of the disk at the target.")] | None = None
    compress: Annotated[bool, api("Whether to compress on the way.", default=False)] | None = None
    verify_checksums: Annotated[bool, api("Whether to verify what arrives.", default=True)] | None = None
    timeout: Annotated[Duration, api("How long it may take in all.", default="4h")] | None = None
    retry_policy: Annotated[RetryPolicy, api("What to do when it fails; nothing when unset.")] | None = None
    cleanup_policy: (
        Annotated[Literal["Always", "OnSuccess", "Never"], api("When to remove what was staged.", default="OnSuccess")]
        | None
    ) = None
    validation_checks: Annotated[ValidationChecks, api("What to verify at the end.")] | None = None


class PVCStorageConfig(Model):
    """A claim to stage the disk on."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.name) || has(self.size)",
            message="write the name of a claim, or the size of one to make",
        ),
    )

    name: Annotated[ObjectName, api("A claim that exists; a temporary one is made when unset.")] | None = None
    storage_class_name: Annotated[str, api("Storage class of the temporary claim.")] | None = None
    size: (
        Annotated[
            str,
            api(
                "Size of the temporary claim, such as 100Gi.",
                pattern=r"^[0-9]+(\.[0-9]+)?(Ei?|Pi?|Ti?|Gi?|Mi?|Ki?)$",
            ),
        ]
        | None
    ) = None
    access_mode: (
        Annotated[
            Literal["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"],
            api("How the temporary claim is mounted.", default="ReadWriteMany"),
        ]
        | None
    ) = None
    mount_path: Annotated[str, api("Where pods mount it.", default="/mnt/migration-storage")] | None = None


class NFSStorageConfig(Model):
    """An NFS export to stage the disk on."""

    server: Annotated[str, api("Host name or address of the server.", min_length=1)]
    export: Annotated[str, api("Path that the server exports.", min_length=1)]
    path: Annotated[str, api("Path below the export.")] | None = None
    read_only: Annotated[bool, api("Whether to mount it read-only.", default=False)] | None = None
    uid: Annotated[Total, api("User to act as, by number.")] | None = None
    gid: Annotated[Total, api("Group to act as, by number.")] | None = None


class S3StorageConfig(Model):
    """A bucket to stage the disk in."""

    bucket: Annotated[str, api("Name of the bucket.", min_length=1)]
    endpoint: Annotated[str, api("Where the store answers; AWS when unset.")] | None = None
    region: Annotated[str, api("Region of the bucket.")] | None = None
    prefix: Annotated[str, api("Prefix of the keys.")] | None = None
    credentials_secret_ref: Annotated[
        ObjectRef, api("The Secret with accessKeyID, secretAccessKey and perhaps sessionToken.")
    ]
    use_path_style: (
        Annotated[bool, api("Whether the bucket stands in the path, as most stores but AWS want.", default=False)]
        | None
    ) = None


class MigrationStorage(Model):
    """Where the disk is staged between source and target."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.s3) == (has(self.type) && self.type == 's3')",
            message="s3 is written with type s3, and only then",
        ),
        Rule(
            rule="has(self.nfs) == (has(self.type) && self.type == 'nfs')",
            message="nfs is written with type nfs, and only then",
        ),
        Rule(
            rule="!has(self.pvc) || !has(self.type) || self.type == 'pvc'",
            message="pvc is written with type pvc only",
        ),
        Rule(
            rule="!has(self.transferMode) || self.transferMode != 'direct' || (has(self.type) && self.type == 'nfs')",
            message="only nfs is reached directly; write transferMode relay, or auto",
        ),
    )

    type: Annotated[Literal["pvc", "nfs", "s3"], api("The kind of store.", default="pvc")] | None = None
    transfer_mode: (
        Annotated[
            Literal["auto", "relay", "direct"],
            api("Whether bytes pass through the providers' processes.", default="auto"),
        ]
        | None
    ) = None
    pvc: Annotated[PVCStorageConfig, api("The claim, for pvc.")] | None = None
    nfs: Annotated[NFSStorageConfig, api("The export, for nfs.")] | None = None
    s3: Annotated[S3StorageConfig, api("The bucket, for s3.")] | None = None


class MigrationMetadata(OperationMetadata):
    """Descriptive metadata of a migration."""

    purpose: (
        Annotated[
            Literal["disaster-recovery", "cloud-migration", "provider-change", "testing", "maintenance"],
            api("What it is for."),
        ]
        | None
    ) = None


class VMMigrationSpec(Model):
    """Desired state of the migration."""

    source: Annotated[MigrationSource, api("The machine that moves.")]
    target: Annotated[MigrationTarget, api("The machine that it becomes.")]
    options: Annotated[MigrationOptions, api("How the machine is moved.")] | None = None
    storage: Annotated[MigrationStorage, api("Where the disk is staged between the two.")] | None = None
    metadata: Annotated[MigrationMetadata, api("Its purpose, project and tags.")] | None = None


class MigrationProgress(Progress):
    """Progress of a migration."""

    current_phase: Annotated[MigrationPhase, api("The phase that runs.")] | None = None
    transferred_bytes: Annotated[Total, api("Bytes transferred so far.")] | None = None
    transfer_rate: Annotated[Total, api("Bytes transferred in a second.")] | None = None
    phase_start_time: Annotated[Time, api("When the phase began.")] | None = None
    update_time: Annotated[Time, api("When this was recorded.")] | None = None


class MigrationDiskInfo(Model):
    """The disk, before and after."""

    source_disk_id: Annotated[str, api("The source's identifier of the disk.")] | None = msgspec.field(
        name="sourceDiskID", default=None
    )
    source_format: Annotated[str, api("Its format at the source.")] | None = None
    source_size: Annotated[Quantity, api("Its size at the source.")] | None = None
    target_disk_id: Annotated[str, api("The target's identifier of the disk.")] | None = msgspec.field(
        name="targetDiskID", default=None
    )
    target_format: Annotated[str, api("Its format at the target.")] | None = None
    target_path: Annotated[str, api("Where it is stored at the target.")] | None = None
    target_size: Annotated[Quantity, api("Its size at the target.")] | None = None
    checksum: Annotated[str, api("SHA-256 of what was transferred.")] | None = None
    source_checksum: Annotated[str, api("SHA-256 at the source.")] | None = None
    target_checksum: Annotated[str, api("SHA-256 at the target.")] | None = None


class MigrationStorageInfo(Model):
    """The disk while it is staged."""

    url: Annotated[str, api("Where it is staged; never with credentials.")] | None = None
    size: Annotated[Quantity, api("Bytes that are staged.")] | None = None
    uploaded_at: Annotated[Time, api("When it was staged.")] | None = None
    cleaned_up: Annotated[bool, api("Whether it was removed again.")] | None = None


class ValidationResults(Model):
    """What was verified, and how that went."""

    disk_size_match: Annotated[bool, api("Whether the disks are equally big.")] | None = None
    checksum_match: Annotated[bool, api("Whether the checksums agree.")] | None = None
    boot_success: Annotated[bool, api("Whether the machine booted.")] | None = None
    connectivity_success: Annotated[bool, api("Whether the machine answered.")] | None = None
    validation_errors: Annotated[tuple[str, ...], api("What was found to be wrong.")] = ()


class Artifact(StrEnum):
    """What a migration makes on providers, besides the machine."""

    SNAPSHOT = "Snapshot"
    EXPORT = "Export"
    DISK = "Disk"


class VMMigrationStatus(OperationStatus):
    """Observed state of the migration."""

    phase: Annotated[MigrationPhase, api("Phase of the migration.")] | None = None
    target_vm_ref: Annotated[LocalObjectReference, api("The machine that was made.")] | None = msgspec.field(
        name="targetVMRef", default=None
    )
    snapshot_ref: Annotated[str, api("The snapshot that moves.")] | None = None
    snapshot_id: Annotated[str, api("The provider's identifier of the snapshot.")] | None = msgspec.field(
        name="snapshotID", default=None
    )
    export_id: Annotated[str, api("The source's identifier of the export.")] | None = msgspec.field(
        name="exportID", default=None
    )
    import_id: Annotated[str, api("The target's identifier of the import.")] | None = msgspec.field(
        name="importID", default=None
    )
    target_vm_id: Annotated[str, api("The target's identifier of the machine.")] | None = msgspec.field(
        name="targetVMID", default=None
    )
    progress: Annotated[MigrationProgress, api("Progress of the operation.")] | None = None
    disk_info: Annotated[MigrationDiskInfo, api("The disk, before and after.")] | None = None
    storage_info: Annotated[MigrationStorageInfo, api("The disk while it is staged.")] | None = None
    storage_pvc_name: Annotated[str, api("The claim that it is staged on.")] | None = msgspec.field(
        name="storagePVCName", default=None
    )
    validation_results: Annotated[ValidationResults, api("What was verified, and how that went.")] | None = None
    source_vm_uid: Annotated[str, api("The UID of the VirtualMachine that moves.")] | None = msgspec.field(
        name="sourceVMUID", default=None
    )
    source_hold: Annotated[str, api("The value of the annotation by which the source is kept off.")] | None = None
    artifacts: Annotated[
        tuple[Artifact, ...], api("What exists, or may exist, on providers until the migration is cleaned up.")
    ] = ()
    failed: Annotated[FailedAttempts, api("What failed, and when it is tried again.")] | None = None


class VMMigration(Resource):
    """A machine's move from one provider to another."""

    spec: Annotated[VMMigrationSpec, api("Desired state of the migration.")]
    status: Annotated[VMMigrationStatus, api("Observed state of the migration.")] | None = None


KIND: Final = GROUP.kind(
    VMMigration,
    "vmmigrations",
    Column("Source", ".spec.source.vmRef.name"),
    Column("Target", ".spec.target.name"),
    Column("Phase", ".status.phase"),
    Column("Progress", ".status.progress.percentage"),
    short="vmmig",
)
