"""The reasons of the conditions and Events of a VMMigration, beside those of what a provider says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.kernel.reasons import Reason
from holdfast.operators.virtualmachine.reasons import MachineReason, advised


class MigrationReason(Reason):
    """Reasons of a VMMigration."""

    COMPLETED = "MigrationComplete", "The target was validated; the migration is complete."
    STARTED = "ValidationStarted", "The migration has begun, and what it needs is checked."
    VALIDATING = "Validating", "What the migration needs is checked and prepared."
    VALIDATED = "ValidationComplete", "Everything that the migration needs is there."
    SNAPSHOTTING = "Snapshotting", "The source provider takes a snapshot of the machine."
    SNAPSHOTTED = "SnapshotComplete", "The snapshot is taken, or the spec names one."
    EXPORTING = "Exporting", "The source provider exports the disk."
    EXPORTED = "ExportComplete", "The disk is in the storage."
    TRANSFERRING = "Transferring", "The disk is on its way into the storage, or out of it."
    TRANSFERRED = "TransferComplete", "The target provider has received the disk."
    CONVERTING = "Converting", "The target provider converts the disk to its own format."
    IMPORTING = "Importing", "The target provider imports the disk."
    IMPORTED = "ImportComplete", "The target provider has the disk."
    CREATING = "Creating", "The VirtualMachine of the target is created."
    VALIDATING_TARGET = "ValidatingTarget", "The target is checked as the spec says."
    NOT_BEGUN = "NotBegun", "The migration has not come so far yet."
    NOT_FAILED = "NotFailed", "Nothing has failed."
    CLEANING_UP = "CleaningUp", "What the migration has left on providers and in the storage is removed."
    ROLLING_BACK = "RollingBack", "What was made for the target is removed, and then the source is released."
    RETRYING = "Retrying", "An attempt failed, and the next one waits for its time."

    WAITING = "WaitingForDependencies", "Something that the migration refers to does not exist or is not ready."
    SOURCE_NOT_READY = "SourceVMNotReady", "The VirtualMachine that moves does not exist on its provider yet."
    SOURCE_PROVIDER_NOT_READY = "SourceProviderNotReady", "The Provider of the source does not exist or is not ready."
    TARGET_PROVIDER_NOT_READY = "TargetProviderNotReady", "The Provider of the target does not exist or is not ready."
    WAITING_FOR_STORAGE = (
        "WaitingForStorageMount",
        "The providers have not mounted the storage for the disk yet.",
    )
    STOPPING_SOURCE = "SourcePowerOff", "The source is being stopped; it stays off until the migration is rolled back."
    HELD_BY_OTHER = "SourceHeld", "Another VMMigration keeps the source off."

    STORAGE_NOT_MOUNTED = (
        "StorageNotMounted",
        "The providers did not mount the storage for the disk in time.",
    )
    SOURCE_DELETED = "SourceDeleted", "The source was deleted before its disk was in the storage."
    TARGET_EXISTS = "TargetExists", "A VirtualMachine of this name exists that the VMMigration has not made."
    TARGET_DELETED = "TargetDeleted", "The VirtualMachine of the target was deleted before the migration was complete."
    TARGET_FAILED = "TargetFailed", "The VirtualMachine of the target has failed."
    VALIDATION_FAILED = "ValidationFailed", "The target is not as the checks of the spec demand."
    CHECKSUM_MISMATCH = "ChecksumMismatch", "The disk that arrived is not the one that was sent."
    TIMED_OUT = "MigrationTimedOut", "The migration was not complete within the time that the spec allows."

    WRITES_NOT_MOVED = "WritesNotMoved", "The source ran after its snapshot; what it wrote since is not in the target."


NEXT: Final[Mapping[str, str]] = {
    MigrationReason.SOURCE_NOT_READY: "see the status of the VirtualMachine",
    MigrationReason.SOURCE_PROVIDER_NOT_READY: "see the status of the Provider",
    MigrationReason.TARGET_PROVIDER_NOT_READY: "see the status of the Provider",
    MigrationReason.WAITING_FOR_STORAGE: "nothing to do: the processes of the providers are started with it",
    MigrationReason.STORAGE_NOT_MOUNTED: "see the pods of the providers, or use spec.storage.type s3",
    MigrationReason.HELD_BY_OTHER: (
        "wait for it or delete it; if it is gone, remove the annotation virtrigaud.io/migration-hold of the machine"
    ),
    MigrationReason.TARGET_EXISTS: "choose another spec.target.name, or delete that VirtualMachine",
    MigrationReason.TARGET_DELETED: "create the VMMigration again",
    MigrationReason.SOURCE_DELETED: "create the VMMigration again once the VirtualMachine exists again",
    MigrationReason.TARGET_FAILED: "correct what is wrong with the VirtualMachine, then create the VMMigration again",
    MigrationReason.VALIDATION_FAILED: "correct the machine, or spec.options.validationChecks",
    MigrationReason.TIMED_OUT: "raise spec.options.timeout, or see why the providers are slow",
    MigrationReason.WRITES_NOT_MOVED: "set spec.source.powerOffBeforeMigration to move everything",
}
"""What a user can do; reasons that pass by themselves have none."""


def said(reason: str, message: str) -> str:
    """A message that ends with what to do."""
    advice = NEXT.get(reason)
    return f"{message}; {advice}" if advice else advised(reason, message)


def named(text: str) -> Reason:
    """The reason that a status has recorded; that of an internal error if it is not one of them."""
    known: tuple[Reason, ...] = (*MigrationReason, *MachineReason)
    return next((each for each in known if each == text), MachineReason.FAILED)
