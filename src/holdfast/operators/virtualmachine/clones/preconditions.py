"""What a VMClone needs before a clone is made: a valid spec, a free name, a source, and a host.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from holdfast.kernel.outcomes import Retry
from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud.clones import ClonePhase, CloneType
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.steps import Call, Step, fails, step
from holdfast.operators.virtualmachine.clones.validate import limits, problems
from holdfast.operators.virtualmachine.machines import references
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.waiting import awaited
from holdfast.operators.virtualmachine.reasons import OF_CODE, CloneReason, MachineReason


def invalid(world: World, now: datetime) -> Step | None:
    found = (*problems(world.clone), *limits(world.clone), *_of_another_provider(world))
    return fails(world, MachineReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def _of_another_provider(world: World) -> Iterator[Problem]:
    """A Provider of the target that is not the one of the source."""
    asked = world.clone.spec.target.provider_ref
    if world.from_image or asked is None or world.source is None:
        return
    own = world.source[1].spec.provider_ref
    if (asked.name, asked.namespace or own.namespace) != (own.name, own.namespace):
        message = f"a clone is made by the provider of its source, {own.name}"
        yield Problem("spec.target.providerRef", message, "remove it")


def taken_name(world: World, now: datetime) -> Step | None:
    """A VirtualMachine of the name that the VMClone has not made is left alone; the provider deletes the clone."""
    if world.machine is None or world.is_made:
        return None
    name = world.clone.spec.target.name
    found = fails(world, CloneReason.TARGET_EXISTS, f"VirtualMachine {name} exists and was not made by this VMClone")
    return replace(found, call=Call.REMOVE) if world.before.target_vm_id and world.target else found


def source(world: World, now: datetime) -> Step | None:
    """What the clone is made of, and what the machine that is made refers to, must exist."""
    missing = next(_missing(world), None)
    return step(world, ClonePhase.PENDING, CloneReason.WAITING, missing) if missing else None


def _missing(world: World) -> Iterator[str]:
    source, snapshot = world.clone.spec.source, world.snapshot
    if source.snapshot_ref is not None:
        status = snapshot[1].status if snapshot else None
        if snapshot is None:
            yield f"VMSnapshot {source.snapshot_ref.name} does not exist"
        elif status is None or status.phase is not SnapshotPhase.READY or not status.snapshot_id:
            yield f"VMSnapshot {source.snapshot_ref.name} is not ready"
    if world.from_image:
        return
    name = source.vm_ref.name if source.vm_ref else snapshot[1].spec.vm_ref.name if snapshot else ""
    if world.source is None:
        yield f"VirtualMachine {name} does not exist"
    elif world.source[0].deleting:
        yield f"VirtualMachine {name} is being deleted"
    elif not world.source_id:
        yield f"VirtualMachine {name} has not been created on its provider yet"
    if world.wanted is not None:
        yield from (f"{each} does not exist" for each in references.missing(world.wanted))
        if world.target is None:
            yield f"Provider {world.wanted.machine.spec.provider_ref.name} does not exist or is not ready"


def unanswered(world: World, now: datetime) -> Step | None:
    if world.error is not None:
        raise Retry(OF_CODE[world.error.code], f"the provider was asked about the clone: {world.error.message}")
    return None


def unsupported(world: World, now: datetime) -> Step | None:
    """What a provider says that it cannot do is not asked for; what it does not say is."""
    able = world.wanted.capabilities.supports_linked_clones if world.wanted else None
    if world.type is CloneType.LINKED_CLONE and able is False:
        return fails(world, CloneReason.LINKED_UNSUPPORTED, "the provider cannot make linked clones")
    return None


def place(world: World, now: datetime) -> Step | None:
    """What a clone waits for until the VMPlacementPolicy of its target has chosen a host."""
    reference, wanted = world.clone.spec.target.placement_ref, world.wanted
    if reference is None or wanted is None or not demand.clone_needs_place(world.object, world.clone):
        return None
    if wanted.policy is None:
        message = f"VMPlacementPolicy {reference.name} does not exist"
        return step(world, ClonePhase.PENDING, CloneReason.WAITING, message)
    reason, message = awaited(wanted.policy[1], reference.name, world.before.placement)
    return step(world, ClonePhase.PENDING, reason, message)
