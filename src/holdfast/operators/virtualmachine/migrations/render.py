"""The VirtualMachine that a VMMigration makes, and the message when it is complete."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import VirtualMachine, VMMigration
from holdfast.kinds.virtrigaud.migrations import MigrationDiskInfo, VMMigrationSpec, VMMigrationStatus
from holdfast.meta.quantities import Quantity
from holdfast.meta.sizes import whole_gib
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.runtime.status import present, wire

_UNKNOWN: Final = "not-imported-yet"
_KEPT: Final = (
    "classRef",
    "networks",
    "userData",
    "metaData",
    "tags",
    "resources",
    "lifecycle",
    "reconfigure",
    "driftPolicy",
)
"""What the target has as the source has it; where that was placed on its provider means nothing on another."""


def result(spec: VMMigrationSpec) -> str:
    """The result of a migration that is complete, for users."""
    moved = f"VirtualMachine {spec.source.vm_ref.name} was moved to provider {spec.target.provider_ref.name}"
    return f"{moved} as VirtualMachine {spec.target.name}"


def target_machine(obj: Object, migration: VMMigration, source: VirtualMachine) -> dict[str, Any]:
    """The VirtualMachine as it is created: the source with the disk that was imported, on the provider of the target.

    Its networks are those of the source with their addresses, because the two never run at the same time.
    """
    target, given = migration.spec.target, wire(source.spec)
    status = migration.status or VMMigrationStatus()
    kept = {name: given[name] for name in _KEPT if name in given}
    if target.class_ref is not None:
        kept.pop("resources", None)
    provider = wire(target.provider_ref)
    own: dict[str, Any] = {
        "providerRef": provider,
        "classRef": wire(target.class_ref) if target.class_ref else None,
        "placementRef": wire(target.placement_ref) if target.placement_ref else None,
        "networks": [wire(each) for each in target.networks] or None,
        "disks": [wire(each) for each in target.disks] or None,
        "importedDisk": _disk(obj, status.disk_info or MigrationDiskInfo()),
        "powerState": "On" if target.power_on else "Off",
    }
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": {
            "name": target.name,
            "namespace": obj.key.namespace,
            "labels": dict(target.labels),
            "annotations": {
                **target.annotations,
                names.MIGRATION: obj.key.name,
                names.MIGRATION_UID: obj.uid,
                names.MIGRATED_FROM: migration.spec.source.vm_ref.name,
                **_recorded(migration, status),
            },
        },
        "spec": {**kept, **present(own)},
    }


def _recorded(migration: VMMigration, status: VMMigrationStatus) -> dict[str, str]:
    checksum = status.disk_info.checksum if status.disk_info else None
    image = migration.spec.target.image_ref
    found = {names.DISK_CHECKSUM: checksum, names.MIGRATED_IMAGE: image.name if image else None}
    return {name: value for name, value in found.items() if value}


def _disk(obj: Object, info: MigrationDiskInfo) -> dict[str, Any]:
    size = Quantity.parse(info.source_size).to_int() if info.source_size is not None else 0
    return present(
        {
            "diskID": info.target_disk_id or _UNKNOWN,
            "path": info.target_path,
            "source": "migration",
            "migrationRef": {"name": obj.key.name},
            "sizeGiB": whole_gib(size) or None,
        }
    )
