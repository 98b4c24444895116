"""VMSnapshot: a point in a machine's life to go back to, once or on a schedule.

This module must not know how a snapshot is taken; providers do.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Count,
    Model,
    Positive,
    Quantity,
    Resource,
    Rule,
    Status,
    Time,
    Total,
    api,
    immutable,
)
from holdfast.kinds.virtrigaud.operations import FailedAttempts, OnProvider, Progress
from holdfast.kinds.virtrigaud.references import GROUP, Environment, LocalObjectReference, Message, Tags

_CRON_FIELD: Final = r"[0-9A-Za-z*?/,#-]+"
_CRON: Final = (
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)"
    r"|@every ([0-9]+(ns|us|µs|ms|s|m|h))+"
    rf"|{_CRON_FIELD}( {_CRON_FIELD}){{4,6}})$"
)

Age = Annotated[str, api(max_length=64)]
"""A duration, also in days and weeks, such as ``30d``.  The API accepts any text; the controller says what is wrong."""


class SnapshotPhase(StrEnum):
    """The phase of a snapshot."""

    PENDING = "Pending"
    CREATING = "Creating"
    READY = "Ready"
    DELETING = "Deleting"
    FAILED = "Failed"
    EXPIRED = "Expired"
    """Past its retention, and about to be deleted."""


class VMSnapshotCondition(StrEnum):
    """The condition types of a snapshot."""

    READY = "Ready"
    CREATING = "Creating"
    DELETING = "Deleting"
    EXPIRED = "Expired"


class SnapshotEncryption(Model):
    """Whether a snapshot is encrypted."""

    enabled: Annotated[bool, api("Whether the snapshot is encrypted.", default=False)] | None = None
    key_provider: Annotated[Literal["standard", "hardware", "external"], api("Who keeps the keys.")] | None = None
    key_ref: Annotated[LocalObjectReference, api("The Secret with the keys.")] | None = None


class SnapshotConfig(Model):
    """How a snapshot is taken."""

    name: (
        Annotated[
            str,
            api(
                "Name to give the snapshot; the provider may change it.",
                max_length=255,
                pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9_-]*[a-zA-Z0-9])?$",
            ),
        ]
        | None
    ) = None
    description: Annotated[str, api("What the snapshot is for.", max_length=1024)] | None = None
    include_memory: Annotated[bool, api("Whether to keep the memory's content too.", default=False)] | None = None
    quiesce: Annotated[bool, api("Whether the guest flushes its file systems first.", default=True)] | None = None
    type: (
        Annotated[
            Literal["Standard", "Crash", "Application"],
            api(
                "What the guest takes part with: nothing special, nothing at all, or its applications.",
                default="Standard",
            ),
        ]
        | None
    ) = None
    compression: Annotated[bool, api("Whether to compress it.", default=False)] | None = None
    encryption: Annotated[SnapshotEncryption, api("Whether to encrypt it.")] | None = None
    consistency_level: (
        Annotated[
            Literal["CrashConsistent", "FilesystemConsistent", "ApplicationConsistent"],
            api("What must be consistent in it.", default="FilesystemConsistent"),
        ]
        | None
    ) = None


class SnapshotRetentionPolicy(Model):
    """How long snapshots are kept."""

    max_age: Annotated[Age, api("Age at which a snapshot expires.")] | None = None
    max_count: (
        Annotated[Positive, api("How many are kept of one machine and schedule, newest first.", le=100)] | None
    ) = None
    delete_on_vm_delete: Annotated[bool, api("Whether they go with their machine.", default=True)] | None = (
        msgspec.field(name="deleteOnVMDelete", default=None)
    )
    preserve_pinned: Annotated[bool, api("Whether pinned ones are kept regardless.", default=True)] | None = None
    grace_period: Annotated[Age, api("Time between expiry and deletion.", default="24h")] | None = None


class SnapshotSchedule(Model):
    """When snapshots are taken."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.enabled) || !self.enabled || has(self.cronSpec)",
            message="an enabled schedule needs cronSpec",
            reason="FieldValueRequired",
            field_path=".cronSpec",
        ),
    )

    enabled: Annotated[bool, api("Whether the schedule is in force.", default=False)] | None = None
    cron_spec: Annotated[str, api("When, in cron's words or as @daily, @every 6h.", pattern=_CRON)] | None = None
    timezone: Annotated[str, api("Time zone of cronSpec.", default="UTC")] | None = None
    suspend: Annotated[bool, api("Whether to skip for now.", default=False)] | None = None
    concurrency_policy: (
        Annotated[
            Literal["Allow", "Forbid", "Replace"],
            api("What to do while the last one is still being taken.", default="Forbid"),
        ]
        | None
    ) = None
    successful_jobs_history_limit: Annotated[Count, api("Successful ones to keep.", default=3, le=100)] | None = None
    failed_jobs_history_limit: Annotated[Count, api("Failed ones to keep.", default=1, le=100)] | None = None


class SnapshotMetadata(Model):
    """Descriptive metadata of a snapshot."""

    tags: Annotated[Tags, api("Tags to find it by.")] = {}
    pinned: Annotated[bool, api("Whether it is kept past its retention.", default=False)] | None = None
    application: Annotated[str, api("Application that asked for it.", max_length=255)] | None = None
    purpose: (
        Annotated[Literal["backup", "testing", "migration", "restore-point", "update", "other"], api("What it is for.")]
        | None
    ) = None
    environment: Annotated[Environment, api("Environment that it belongs to.")] | None = None


class VMSnapshotSpec(Model):
    """Desired state of the snapshot."""

    vm_ref: Annotated[LocalObjectReference, api("The machine to take a snapshot of.", rules=(immutable("spec.vmRef"),))]
    snapshot_config: Annotated[SnapshotConfig, api("How the snapshot is taken.")] | None = None
    retention_policy: Annotated[SnapshotRetentionPolicy, api("How long it is kept.")] | None = None
    schedule: (
        Annotated[
            SnapshotSchedule, api("When snapshots are taken; the object is then their template, and takes none itself.")
        ]
        | None
    ) = None
    metadata: Annotated[SnapshotMetadata, api("Its purpose, application and tags.")] | None = None
    name_hint: Annotated[str, api("snapshotConfig.name, as v1alpha1 wrote it.", max_length=255)] | None = None
    memory: Annotated[bool, api("snapshotConfig.includeMemory, as v1alpha1 wrote it.")] | None = None
    description: Annotated[str, api("snapshotConfig.description, as v1alpha1 wrote it.", max_length=1024)] | None = None

    @property
    def config(self) -> SnapshotConfig:
        """How the snapshot is taken; what `snapshotConfig` says wins over the fields of v1alpha1."""
        given = self.snapshot_config or SnapshotConfig()
        name = "-".join(re.findall(r"[a-zA-Z0-9_]+", self.name_hint or "")) or None
        return msgspec.structs.replace(
            given,
            name=given.name or name,
            include_memory=given.include_memory or self.memory,
            description=given.description or self.description,
        )


class SnapshotProgress(Progress):
    """Progress of a snapshot."""

    completed_bytes: Annotated[Total, api("Bytes written so far.")] | None = None
    start_time: Annotated[Time, api("When taking it began.")] | None = None


class ProviderSnapshotStatus(OnProvider):
    """A snapshot on one provider."""

    path: Annotated[str, api("Where the snapshot is stored on the provider.")] | None = None
    state: Annotated[str, api("Its state in the provider's words.")] | None = None


class SnapshotRef(Model):
    """Another snapshot of the same machine."""

    name: Annotated[str, api("Name of the snapshot.")]
    namespace: Annotated[str, api("Namespace of the snapshot.")] | None = None
    uid: Annotated[str, api("UID of the snapshot.")] | None = None


class VMSnapshotStatus(Status):
    """Observed state of the snapshot."""

    snapshot_id: Annotated[str, api("The provider's identifier of the snapshot; unset until it is taken.")] | None = (
        msgspec.field(name="snapshotID", default=None)
    )
    phase: Annotated[SnapshotPhase, api("Phase of the snapshot.")] | None = None
    message: Message | None = None
    creation_time: Annotated[Time, api("When taking it began.")] | None = None
    completion_time: Annotated[Time, api("When it was finished.")] | None = None
    expiry_time: Annotated[Time, api("When it expires, by its retention.")] | None = None
    size: Annotated[Quantity, api("Space that it occupies.")] | None = None
    virtual_size: Annotated[Quantity, api("Space that it describes.")] | None = None
    progress: Annotated[SnapshotProgress, api("Progress of the operation.")] | None = None
    task_ref: Annotated[str, api("The provider's task that runs for it.")] | None = None
    provider_status: Annotated[dict[str, ProviderSnapshotStatus], api("The snapshot by provider.")] = {}
    children: Annotated[tuple[SnapshotRef, ...], api("Snapshots that build on it.")] = ()
    parent: Annotated[SnapshotRef, api("Snapshot that it builds on.")] | None = None
    machine_uid: Annotated[str, api("UID of the VirtualMachine that it is of.")] | None = msgspec.field(
        name="machineUID", default=None
    )
    failed: Annotated[FailedAttempts, api("What failed and is tried again.")] | None = None
    last_schedule_time: Annotated[Time, api("Time of the schedule for which a snapshot was last taken.")] | None = None
    next_schedule_time: Annotated[Time, api("When the next snapshot is taken by the schedule.")] | None = None


class VMSnapshot(Resource):
    """The state of a machine at one time, to which it can be reverted."""

    spec: Annotated[VMSnapshotSpec, api("Desired state of the snapshot.")]
    status: Annotated[VMSnapshotStatus, api("Observed state of the snapshot.")] | None = None


KIND: Final = GROUP.kind(
    VMSnapshot,
    "vmsnapshots",
    Column("VM", ".spec.vmRef.name"),
    Column("Phase", ".status.phase"),
    Column("Size", ".status.size"),
    Column("Created", ".status.creationTime", "date"),
    # A date column counts the time since then, which has not come yet.
    Column("Expires", ".status.expiryTime"),
    short="vmsnap",
)
