"""What a VMSnapshot needs before a snapshot is taken: a valid spec, a machine, and a provider that can.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from holdfast.kernel.outcomes import Retry
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason, SnapshotReason
from holdfast.operators.virtualmachine.snapshots.observe import World
from holdfast.operators.virtualmachine.snapshots.steps import Step, delete_itself, fails, waits
from holdfast.operators.virtualmachine.snapshots.validate import problems


def invalid(world: World, now: datetime) -> Step | None:
    found = problems(world.snapshot)
    return fails(world, MachineReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def is_gone(world: World) -> bool:
    """Whether the machine that the snapshot is of was deleted."""
    bound = world.before.machine_uid
    return bound is not None and (world.machine is None or world.machine[0].uid != bound)


def machine_deleted(world: World, now: datetime) -> Step | None:
    """A snapshot goes with its machine, unless its retention says otherwise."""
    gone = is_gone(world)
    going = world.machine is not None and world.machine[0].deleting and world.before.machine_uid is not None
    if not gone and not going:
        return None
    name = world.snapshot.spec.vm_ref.name
    if world.retention is None or world.retention.delete_on_vm_delete is not False:
        write = delete_itself(world, f"the machine {name} is deleted")
        return replace(waits(world, SnapshotReason.MACHINE_DELETED, f"the machine {name} is deleted"), writes=(write,))
    if not gone:
        return None
    return fails(world, SnapshotReason.MACHINE_DELETED, f"the machine {name} was deleted, and the snapshot with it")


def machine(world: World, now: datetime) -> Step | None:
    name = world.snapshot.spec.vm_ref.name
    if world.machine is None:
        return waits(world, SnapshotReason.WAITING, f"VirtualMachine {name} does not exist")
    if world.machine[0].deleting:
        return waits(world, SnapshotReason.WAITING, f"VirtualMachine {name} is being deleted")
    if not world.machine_id:
        return waits(world, SnapshotReason.WAITING, f"VirtualMachine {name} has not been created on its provider yet")
    provider = world.machine[1].spec.provider_ref.name
    if world.provider is None:
        return waits(world, SnapshotReason.WAITING, f"Provider {provider} does not exist")
    if world.target is None:
        return waits(world, SnapshotReason.WAITING, f"Provider {provider} is not ready")
    return None


def unanswered(world: World, now: datetime) -> Step | None:
    if world.error is not None:
        raise Retry(OF_CODE[world.error.code], f"the provider was asked about the snapshot: {world.error.message}")
    return None


def unsupported(world: World, now: datetime) -> Step | None:
    """What a provider says that it cannot do is not asked for; what it does not say is."""
    able, config = world.capabilities, world.config
    reason = MachineReason.UNSUPPORTED
    if able.supports_snapshots is False:
        return fails(world, reason, "the provider cannot take snapshots")
    if config.include_memory and able.supports_memory_snapshots is False:
        return fails(world, reason, "spec.snapshotConfig.includeMemory: the provider takes no snapshots with memory")
    if config.encryption is not None and config.encryption.enabled:
        return fails(world, reason, "spec.snapshotConfig.encryption: providers take no encrypted snapshots")
    return None
