"""The deletion of a VMClone: what the provider has of an unfinished clone is deleted, a machine stays.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.steps import Call, Step, removes
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.runtime.decisions import Notice


def nothing_left(world: World, now: datetime) -> Step | None:
    """The machine stays; of a clone that has not become one nothing does."""
    before = world.before
    if before.start_time is None or before.target_ref is not None or world.is_made or world.from_image:
        return replace(removes(world, "the VMClone is deleted"), finalized=True)
    return None


def unreachable(world: World, now: datetime) -> Step | None:
    if world.target is not None:
        return None
    if world.object.meta.annotations.get(names.FORCE_DELETE) == "true":
        message = "the provider has not confirmed that the unfinished clone is deleted; it may still exist there"
        notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
        return replace(removes(world, message), finalized=True, notices=(notice,))
    hint = f"the annotation {names.FORCE_DELETE}=true removes the VMClone without that"
    return removes(world, f"the provider is not ready, so the unfinished clone cannot be deleted; {hint}")


def remove(world: World, now: datetime) -> Step | None:
    return replace(removes(world, "the provider deletes the unfinished clone"), call=Call.REMOVE)
