"""VirtualMachine: one machine on one provider.

The scale subresource that other implementations declare is left out: a machine
has no replicas; a VMSet has.
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
    Rule,
    Status,
    Time,
    Total,
    api,
)
from holdfast.kinds.virtrigaud.devices import Disks, ImportedDiskRef, Networks
from holdfast.kinds.virtrigaud.guests import MetaData, UserData, VirtualMachineLifecycle
from holdfast.kinds.virtrigaud.references import GROUP, LocalObjectReference, Message, ObjectRef


class PowerState(StrEnum):
    """Whether a machine runs."""

    ON = "On"
    OFF = "Off"
    OFF_GRACEFUL = "OffGraceful"
    """Shut down by the guest itself; a machine that is off satisfies it."""


class VirtualMachinePhase(StrEnum):
    """The phase of a machine."""

    PENDING = "Pending"
    """Waits for something that it refers to."""
    PROVISIONING = "Provisioning"
    """Is being created."""
    RUNNING = "Running"
    STOPPED = "Stopped"
    RECONFIGURING = "Reconfiguring"
    """Changes its hardware or its power state."""
    DELETING = "Deleting"
    FAILED = "Failed"
    """Needs a change by its owner."""


class VirtualMachineCondition(StrEnum):
    """The condition types of a machine."""

    READY = "Ready"
    PROVISIONING = "Provisioning"
    RECONFIGURING = "Reconfiguring"
    DELETING = "Deleting"


class GPUConfig(Model):
    """Graphics processors passed through to a machine."""

    count: Annotated[Positive, api("How many graphics processors the machine gets.", le=8)]
    type: Annotated[str, api("Which, in the provider's words.", pattern=r"^[a-zA-Z0-9_-]+$")] | None = None
    memory: Annotated[int, api("Memory of each in MiB.", ge=512)] | None = None


class VirtualMachineResources(Model):
    """Processors and memory of one machine."""

    cpu: Annotated[Positive, api("Virtual processors of the machine.", le=128)] | None = None
    memory_mib: Annotated[int, api("Memory of the machine, in MiB.", ge=128, le=1048576)] | None = msgspec.field(
        name="memoryMiB", default=None
    )
    gpu: Annotated[GPUConfig, api("Graphics processors passed through to the machine.")] | None = None


class Placement(Model):
    """Where on the provider the machine should be placed; the provider's defaults fill in what is unset."""

    cluster: Annotated[str, api("Cluster to run in.")] | None = None
    host: Annotated[str, api("Host to run on.")] | None = None
    datastore: Annotated[str, api("Datastore for the disks; wins over storagePod.")] | None = None
    storage_pod: Annotated[str, api("Datastore cluster of vSphere, whose emptiest datastore is taken.")] | None = None
    folder: Annotated[str, api("Folder to file the machine in.")] | None = None
    resource_pool: Annotated[str, api("Resource pool to draw from.")] | None = None


class VMSnapshotOperation(Model):
    """What to do with the machine's snapshots."""

    revert_to_ref: Annotated[LocalObjectReference, api("The VMSnapshot to revert to.")] | None = None


class MaintenanceWindow(Model):
    """A time of the day in which a machine may be restarted, in UTC."""

    days: Annotated[
        tuple[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], ...],
        api("Days on which the window opens; every day when empty.", max_length=7),
    ] = ()
    start: Annotated[str, api("When the window opens, as HH:MM in UTC.", pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    duration: Annotated[Duration, api("How long the window stays open.")]


class ReconfigurePolicy(Model):
    """When a machine may be restarted for a change that cannot be made while it runs."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.restart) || self.restart != 'InWindow' || (has(self.windows) && size(self.windows) > 0)",
            message="restart InWindow needs windows",
            reason="FieldValueRequired",
            field_path=".windows",
        ),
    )

    restart: (
        Annotated[
            Literal["Never", "InWindow", "Always"],
            api("Whether the machine may be restarted for a change of its hardware.", default="Never"),
        ]
        | None
    ) = None
    windows: Annotated[tuple[MaintenanceWindow, ...], api("When, for InWindow.", max_length=20)] = ()


class VirtualMachineSpec(Model):
    """Desired state of the machine."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.imageRef) != has(self.importedDisk)",
            message="write exactly one of imageRef and importedDisk: a machine has one root disk",
        ),
    )

    provider_ref: Annotated[ObjectRef, api("The Provider that runs the machine; fixed once the machine exists.")]
    class_ref: Annotated[ObjectRef, api("The VMClass that sizes the machine.")]
    image_ref: Annotated[ObjectRef, api("The VMImage that the root disk is made from.")] | None = None
    imported_disk: (
        Annotated[ImportedDiskRef, api("A root disk that already exists on the provider; instead of imageRef.")] | None
    ) = None
    networks: Networks = ()
    disks: Disks = ()
    user_data: Annotated[UserData, api("What the guest configures itself from at first boot.")] | None = None
    meta_data: Annotated[MetaData, api("The metadata that the guest receives about itself.")] | None = None
    placement: Annotated[Placement, api("Where on the provider the machine should be placed.")] | None = None
    power_state: Annotated[PowerState, api("Whether the machine should run; On when unset.")] | None = None
    tags: Annotated[tuple[str, ...], api("Tags for the machine in the provider's inventory.", max_length=50)] = ()
    resources: Annotated[VirtualMachineResources, api("What differs from the class.")] | None = None
    placement_ref: (
        Annotated[LocalObjectReference, api("The VMPlacementPolicy that chooses where the machine is placed.")] | None
    ) = None
    snapshot: Annotated[VMSnapshotOperation, api("Snapshot to go back to.")] | None = None
    lifecycle: Annotated[VirtualMachineLifecycle, api("What to do around starts and stops.")] | None = None
    reconfigure: (
        Annotated[ReconfigurePolicy, api("When the machine may be restarted for a change of its hardware.")] | None
    ) = None
    drift_policy: (
        Annotated[
            Literal["Heal", "Report"],
            api(
                "What to do when the machine was changed by other means: change it back, or only report it.",
                default="Heal",
            ),
        ]
        | None
    ) = None


class VMSnapshotInfo(Model):
    """A snapshot that exists on the provider."""

    id: Annotated[str, api("The provider's identifier of the snapshot.")]
    name: Annotated[str, api("Name of the snapshot.")]
    creation_time: Annotated[Time, api("When it was taken.")]
    description: Annotated[str, api("What it is for.")] | None = None
    size_bytes: Annotated[Total, api("Bytes that it occupies.")] | None = None
    has_memory: Annotated[bool, api("Whether it holds the memory's content.")] | None = None


class BoundProviderRef(Model):
    """The Provider on which a machine's id means something."""

    namespace: Annotated[str, api("Namespace of the Provider.", max_length=63)]
    name: Annotated[str, api("Name of the Provider.", max_length=253)]
    uid: (
        Annotated[
            str, api("UID of the Provider, so that another of the same name is not taken for it.", max_length=128)
        ]
        | None
    ) = None


class RefusedPlace(Model):
    """A host that was not chosen, and why."""

    host: Annotated[str, api("Name of the host.")]
    reason: Annotated[str, api("Why the machine cannot be placed there.")]


class PlacementStatus(Model):
    """Where the machine was put, and why there."""

    cluster: Annotated[str, api("Cluster that was chosen.")] | None = None
    host: Annotated[str, api("Host that was chosen.")] | None = None
    datastore: Annotated[str, api("Datastore that was chosen.")] | None = None
    folder: Annotated[str, api("Folder that was chosen.")] | None = None
    resource_pool: Annotated[str, api("Resource pool that was chosen.")] | None = None
    zone: Annotated[str, api("Zone of the host that was chosen.")] | None = None
    last_scheduled_time: Annotated[Time, api("When the choice was made.")] | None = None
    reason: Annotated[str, api("What decided the choice.")] | None = None
    phase: (
        Annotated[
            Literal["Placed", "Unplaceable"],
            api("Whether the VMPlacementPolicy has a place for the machine; unset where no policy places it."),
        ]
        | None
    ) = None
    policy: Annotated[str, api("The VMPlacementPolicy that chose.")] | None = None
    policy_generation: Annotated[Total, api("Generation of the policy that the choice was made by.")] | None = None
    machine_generation: Annotated[Total, api("Generation of the machine that the choice was made for.")] | None = None
    score: Annotated[Percentage, api("Score of the chosen host, of 100.")] | None = None
    candidates: Annotated[Count, api("Hosts that were possible.")] | None = None
    refused: Annotated[tuple[RefusedPlace, ...], api("Hosts that were not possible, and why.", max_length=200)] = ()
    unmet: Annotated[tuple[str, ...], api("Preferences that the chosen host does not meet.", max_length=50)] = ()
    failures: Annotated[Count, api("Failed creations that the choice takes into account.")] | None = None
    failed_hosts: Annotated[
        tuple[str, ...], api("Hosts on which the provider could not create the machine.", max_length=200)
    ] = ()


class OperationType(StrEnum):
    """What is being done to a machine."""

    CREATE = "Create"
    DELETE = "Delete"
    POWER_ON = "PowerOn"
    POWER_OFF = "PowerOff"
    SHUTDOWN = "Shutdown"
    REBOOT = "Reboot"
    RECONFIGURE = "Reconfigure"
    REVERT = "Revert"
    PRE_STOP = "PreStop"
    POST_START = "PostStart"


class Operation(Model):
    """What is being done to a machine now, or failed and is tried again."""

    type: Annotated[OperationType, api("What is being done.")]
    task_ref: Annotated[str, api("The provider's task that does it.")] | None = None
    start_time: Annotated[Time, api("When it began.")] | None = None
    percentage: Annotated[Percentage, api("Progress in per cent, where the provider reports it.")] | None = None
    progress_time: Annotated[Time, api("When the progress was last looked at.")] | None = None
    failures: Annotated[Count, api("How often in a row it failed.")] | None = None
    last_failure_time: Annotated[Time, api("When it last failed.")] | None = None
    reason: Annotated[str, api("Why it failed, in one word.")] | None = None
    message: Message | None = None
    details: Annotated[dict[str, str], api("What it brings about, such as the new number of processors.")] = {}


class CurrentDisk(Model):
    """A disk that the machine has."""

    name: Annotated[str, api("Name of the disk.")]
    size_gib: Annotated[Count, api("Size in GiB.")] = msgspec.field(name="sizeGiB")


class VirtualMachineStatus(Status):
    """Observed state of the machine."""

    id: Annotated[str, api("The provider's identifier of the machine; unset until it exists.")] | None = None
    power_state: Annotated[PowerState, api("Whether the machine runs.")] | None = None
    phase: Annotated[VirtualMachinePhase, api("Phase of the machine.")] | None = None
    message: Message | None = None
    ips: Annotated[tuple[str, ...], api("Addresses that the guest reports.")] = ()
    console_url: Annotated[str, api("Where to open the machine's console.")] | None = msgspec.field(
        name="consoleURL", default=None
    )
    last_task_ref: Annotated[str, api("The provider's task that runs, or ran last, for this machine.")] | None = None
    reconfigure_task_ref: Annotated[str, api("The provider's task that changes the machine.")] | None = None
    last_reconfigure_time: Annotated[Time, api("When the machine was last changed.")] | None = None
    current_resources: Annotated[VirtualMachineResources, api("What the machine has now.")] | None = None
    snapshots: Annotated[tuple[VMSnapshotInfo, ...], api("Snapshots of the machine.", keys=("id",))] = ()
    provider: Annotated[dict[str, str], api("Details in the provider's own words.")] = {}
    bound_provider: Annotated[BoundProviderRef, api("The Provider that gave the machine its id.")] | None = None
    placement: Annotated[PlacementStatus, api("Where the machine was put.")] | None = None
    operation: Annotated[Operation, api("What is being done to the machine.")] | None = None
    current_disks: Annotated[tuple[CurrentDisk, ...], api("Disks that the machine has.", keys=("name",))] = ()
    pending_changes: Annotated[
        tuple[str, ...], api("Changes of the spec that are not made yet, and what each waits for.")
    ] = ()
    reverted_to: Annotated[str, api("UID of the VMSnapshot that the machine was last reverted to.")] | None = None
    rebooted_for: Annotated[str, api("The request, by annotation, that the machine was last rebooted for.")] | None = (
        None
    )
    held_for: (
        Annotated[str, api("The migration, by annotation, for which the machine was stopped and is kept off.")] | None
    ) = None


class VirtualMachine(Resource):
    """A virtual machine on a hypervisor."""

    RULES: ClassVar = (
        # An id means nothing on another provider. The rule stands at the root, where it can see the stored status.
        Rule(
            rule="!has(oldSelf.status) || !has(oldSelf.status.id) || size(oldSelf.status.id) == 0"
            " || self.spec.providerRef == oldSelf.spec.providerRef",
            message="spec.providerRef is immutable once the machine exists on its provider; "
            "write a VMMigration to move it",
            reason="FieldValueForbidden",
            field_path=".spec.providerRef",
        ),
    )

    spec: Annotated[VirtualMachineSpec, api("Desired state of the machine.")]
    status: Annotated[VirtualMachineStatus, api("Observed state of the machine.")] | None = None


KIND: Final = GROUP.kind(
    VirtualMachine,
    "virtualmachines",
    Column("Phase", ".status.phase"),
    Column("Provider", ".spec.providerRef.name"),
    Column("Class", ".spec.classRef.name"),
    Column("Image", ".spec.imageRef.name"),
    Column("IPs", ".status.ips[*]"),
    Column("Operation", ".status.operation.type", priority=1),
    Column("Progress", ".status.operation.percentage", "integer", priority=1),
    Column("Message", ".status.message", priority=1),
    short="vm",
)
