"""The names, labels and annotations of virtual machines and of their providers."""

from __future__ import annotations

from typing import Final

from holdfast.meta.names import make_name

ADOPTED: Final = "virtrigaud.io/adopted"
"""The label of a VirtualMachine whose machine existed before it."""

ADOPT_ID: Final = "virtrigaud.io/adopt-id"
"""The annotation that names the machine that a VirtualMachine adopts, by the provider's identifier."""

FORCE_DELETE: Final = "virtrigaud.io/force-delete"
"""The annotation that has a VirtualMachine removed although its provider has not confirmed the deletion."""

REBOOT: Final = "virtrigaud.io/reboot"
"""The annotation that asks for a reboot: each new value is one request."""

ADOPT: Final = "virtrigaud.io/adopt-vms"
"""The annotation of a Provider whose existing machines are adopted."""

ADOPT_FILTER: Final = "virtrigaud.io/adopt-filter"
"""The annotation that says which, as JSON."""

ON_DEMAND: Final = "virtrigaud.io/start-on-demand"
"""The annotation of a Provider whose process starts when the first machine refers to it."""

SCHEDULE: Final = "virtrigaud.io/schedule"
"""The label of a VMSnapshot that a schedule made: the name of the VMSnapshot with the schedule."""

SCHEDULE_UID: Final = "virtrigaud.io/schedule-uid"
"""The annotation with the UID of the same."""

SCHEDULED_AT: Final = "virtrigaud.io/scheduled-at"
"""The annotation with the time of the schedule for which a VMSnapshot was made."""

CLONED_FROM: Final = "virtrigaud.io/cloned-from"
"""The annotation of a VirtualMachine that a VMClone made: what it was cloned from."""

CLONE: Final = "virtrigaud.io/clone"
"""The annotation of the same with the name of the VMClone."""

CLONE_UID: Final = "virtrigaud.io/clone-uid"
"""The annotation of the same with the UID of the VMClone, which alone proves that it was made by that."""

MIGRATION_HOLD: Final = "virtrigaud.io/migration-hold"
"""The annotation of a VirtualMachine that a VMMigration keeps off: the name and the UID of the VMMigration."""

MIGRATED_FROM: Final = "virtrigaud.io/migrated-from"
"""The annotation of a VirtualMachine that a VMMigration made: the VirtualMachine that it was."""

MIGRATION: Final = "virtrigaud.io/migration"
"""The annotation of the same with the name of the VMMigration."""

MIGRATION_UID: Final = "virtrigaud.io/migration-uid"
"""The annotation of the same with the UID of the VMMigration, which alone proves that it was made by that."""

DISK_CHECKSUM: Final = "virtrigaud.io/disk-checksum"
"""The annotation of the same with the SHA-256 of the disk as it was transferred."""

MIGRATED_IMAGE: Final = "virtrigaud.io/image"
"""The annotation of the same with the VMImage that the VMMigration names for it."""

MIGRATED_AT: Final = "virtrigaud.io/migration-completed-at"
"""The annotation of the same with the time at which the migration was complete."""

STORAGE: Final = "virtrigaud.io/component"
"""The label of a claim that providers mount for migrations; its value is `STORAGE_VALUE`."""

STORAGE_VALUE: Final = "migration-storage"

SHARED_STORAGE: Final = "virtrigaud-migration-storage"
"""The claim that all Providers of a namespace mount for migrations, where they run as processes."""

FINALIZER: Final = "virtualmachine.infra.virtrigaud.io/finalizer"

SNAPSHOT_FINALIZER: Final = "snapshot.infra.virtrigaud.io/finalizer"

CLONE_FINALIZER: Final = "clone.infra.virtrigaud.io/finalizer"

MIGRATION_FINALIZER: Final = "vmmigration.infra.virtrigaud.io/finalizer"

_NAME_MAX: Final = 63
_UID_PART: Final = 8


def machine(name: str, uid: str) -> str:
    """The name of a machine, or of a snapshot, in the inventory of its provider.

    It ends with a part of the UID: two namespaces may have machines of one name on one provider, and a machine that is
    asked for again after a lost reply must be recognized.
    """
    return f"{name[: _NAME_MAX - _UID_PART - 1].rstrip('-.')}-{uid[:_UID_PART]}"


def runtime(namespace: str, name: str) -> str:
    """The name of the Deployment and the Service of a provider."""
    return make_name(f"virtrigaud-provider-{namespace}", name)


def certificate(namespace: str, name: str) -> str:
    """The name of the Secret with the certificates of a provider."""
    return make_name(f"virtrigaud-provider-{namespace}", f"{name}-tls")


def data(namespace: str, name: str) -> str:
    """The name of the claim with the data of a provider."""
    return make_name(f"virtrigaud-provider-{namespace}", f"{name}-data")
