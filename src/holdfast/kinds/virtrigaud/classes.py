"""VMClass: a size of machine, shared by many.

This module must not know which machines use a class, only how many.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from holdfast.kinds.model import Column, Count, Model, Positive, Quantity, Resource, Status, Time, api
from holdfast.kinds.virtrigaud.references import GROUP, DiskType, StorageClassName


class VMClassCondition(StrEnum):
    """The condition types of a class."""

    READY = "Ready"
    VALIDATED = "Validated"
    SUPPORTED = "Supported"


class DiskDefaults(Model):
    """The root disk of machines that do not describe theirs."""

    type: Annotated[DiskType, api("How the disk is provisioned.", default="thin")] | None = None
    size: Annotated[Quantity, api("Size of the root disk.", default="40Gi")] | None = None
    size_gib: (
        Annotated[int, api("The same in GiB, as v1alpha1 wrote it; where it is set, size is not read.", ge=1, le=65536)]
        | None
    ) = msgspec.field(default=None, name="sizeGiB")
    iops: Annotated[int, api("Limit of operations a second.", ge=100, le=100000)] | None = None
    storage_class: Annotated[StorageClassName, api("Class of storage of the root disk.")] | None = None


class VMResourceLimits(Model):
    """What a machine is guaranteed, and what it may not exceed."""

    cpu_limit: Annotated[int, api("Processor limit in MHz.", ge=100, le=100000)] | None = None
    cpu_reservation: Annotated[Count, api("Guaranteed processor time in MHz.", le=100000)] | None = None
    memory_limit: Annotated[Quantity, api("Memory that a machine may not exceed.")] | None = None
    memory_reservation: Annotated[Quantity, api("Memory that a machine is guaranteed.")] | None = None
    cpu_shares: Annotated[Positive, api("Weight among machines that compete.", le=1000000)] | None = None


class PerformanceProfile(Model):
    """How a machine trades speed for flexibility."""

    latency_sensitivity: (
        Annotated[Literal["low", "normal", "high"], api("How much latency matters.", default="normal")] | None
    ) = None
    cpu_hot_add_enabled: (
        Annotated[bool, api("Whether processors can be added while running.", default=False)] | None
    ) = None
    memory_hot_add_enabled: Annotated[bool, api("Whether memory can be added while running.", default=False)] | None = (
        None
    )
    virtualization_based_security: (
        Annotated[bool, api("Whether the guest may isolate itself by virtualization.", default=False)] | None
    ) = None
    nested_virtualization: Annotated[bool, api("Whether the guest may run machines.", default=False)] | None = None
    hyper_threading_policy: (
        Annotated[Literal["auto", "prefer", "avoid", "require"], api("How to use sibling threads.", default="auto")]
        | None
    ) = None


class EncryptionPolicy(Model):
    """Whether a machine is encrypted at rest."""

    enabled: Annotated[bool, api("Whether machines are encrypted at rest.", default=False)] | None = None
    key_provider: Annotated[Literal["standard", "hardware", "external"], api("Who keeps the keys.")] | None = None
    require_encryption: (
        Annotated[bool, api("Whether to fail where encryption is not available.", default=False)] | None
    ) = None


class SecurityProfile(Model):
    """How a machine is protected."""

    secure_boot: Annotated[bool, api("Whether only signed boot code runs.", default=False)] | None = None
    tpm_enabled: Annotated[bool, api("Whether the machine has a TPM.", default=False)] | None = None
    tpm_version: Annotated[Literal["1.2", "2.0"], api("Version of the TPM.")] | None = None
    vtd_enabled: Annotated[bool, api("Whether devices are isolated by an IOMMU.", default=False)] | None = None
    encryption_policy: Annotated[EncryptionPolicy, api("Whether the machine is encrypted at rest.")] | None = None


class VMClassSpec(Model):
    """The size and the nature of machines of a class."""

    cpu: Annotated[Positive, api("Virtual processors of a machine.", le=128)]
    memory: Annotated[Quantity, api("Memory, such as 4Gi.")]
    firmware: (
        Annotated[Literal["BIOS", "UEFI", "EFI"], api("Firmware; EFI is another word for UEFI.", default="BIOS")] | None
    ) = None
    disk_defaults: Annotated[DiskDefaults, api("The root disk of machines that do not describe theirs.")] | None = None
    guest_tools_policy: (
        Annotated[
            Literal["install", "skip", "upgrade", "uninstall"],
            api("What to do about the hypervisor's tools in the guest.", default="install"),
        ]
        | None
    ) = None
    extra_config: Annotated[dict[str, str], api("Settings in the provider's own words.", max_length=50)] = {}
    resource_limits: (
        Annotated[VMResourceLimits, api("What machines are guaranteed, and what they may not exceed.")] | None
    ) = None
    performance_profile: Annotated[PerformanceProfile, api("How speed is traded for flexibility.")] | None = None
    security_profile: Annotated[SecurityProfile, api("How machines are protected.")] | None = None


class ValidationResult(Model):
    """Whether one provider can run a class."""

    valid: Annotated[bool, api("Whether the provider can run the class.")]
    message: Annotated[str, api("Why, or why not.")] | None = None
    warnings: Annotated[tuple[str, ...], api("What to know beforehand.")] = ()
    last_validated: Annotated[Time, api("When this was found out.")] | None = None


class VMClassStatus(Status):
    """Where a class is used, and where it can be."""

    used_by_vms: Annotated[Count, api("Machines of this class.")] | None = msgspec.field(name="usedByVMs", default=None)
    last_change: Annotated[str, api("What the last change of the class does to its machines.")] | None = None
    supported_providers: Annotated[tuple[str, ...], api("Providers that can run it.")] = ()
    validation_results: Annotated[
        dict[str, ValidationResult], api("Whether each provider can run the class, by its name.")
    ] = {}


class VMClass(Resource):
    """A size of virtual machine."""

    spec: Annotated[VMClassSpec, api("The size and the nature of machines of this class.")]
    status: Annotated[VMClassStatus, api("Where the class is used, and where it can be.")] | None = None


KIND: Final = GROUP.kind(
    VMClass,
    "vmclasses",
    Column("CPU", ".spec.cpu", "integer"),
    Column("Memory", ".spec.memory"),
    Column("Firmware", ".spec.firmware"),
    Column("Used By", ".status.usedByVMs", "integer"),
    short="vmclass",
)
