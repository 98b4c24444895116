"""The making of a clone, from the record that it is about to be made until a VirtualMachine adopts it.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.kinds.virtrigaud.clones import ClonePhase, CloneProgress
from holdfast.kinds.virtrigaud.references import ObjectRef
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine import names, retry_policies
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.steps import Step, calls, failed, progressed, recorded, retries, step
from holdfast.operators.virtualmachine.reasons import OF_CODE, CloneReason
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.providers.contract import Code
from holdfast.runtime.decisions import Create


def running(world: World, now: datetime) -> Step | None:
    state, before = world.task, world.before
    if state is None or not before.task_ref:
        return None
    if not state.done:
        limit = durations.parse(world.options.timeout or "30m")
        began = times.read(before.last_retry_time or before.start_time) or now
        if now >= began + limit:
            text = f"it was not done within {durations.short(limit)}"
            return replace(failed(world, CloneReason.TIMED_OUT, text, now), cancel=before.task_ref)
        return progressed(world, state, now, deadline=began + limit)
    if state.lost:
        return calls(world.having(task_ref=None))
    if state.error:
        return failed(world, OF_CODE[state.code or Code.INTERNAL], state.error, now)
    return cloned(world, before.target_vm_id or "", now)


def failing(world: World, now: datetime) -> Step | None:
    """A clone that failed is tried again as its policy says, and at once when the spec was changed."""
    is_observed = world.before.observed_generation == world.object.meta.generation
    known = retry_policies.waits(world.before.failed, now, is_observed=is_observed)
    return None if known is None else retries(world, known, now)


def adopt(world: World, now: datetime) -> Step | None:
    """A clone that is there, and that no VirtualMachine has adopted yet."""
    before = world.before
    ended = before.target_vm_id and before.actual_clone_type and not before.task_ref and before.failed is None
    return cloned(world, before.target_vm_id or "", now) if ended else None


def record(world: World, now: datetime) -> Step | None:
    """Record that the clone is about to be made, before the provider is asked."""
    if world.before.start_time is not None:
        return None
    provider = world.wanted.provider if world.wanted else None
    key = provider[0].key if provider else None
    begun = world.having(
        start_time=times.format(now),
        provider_ref=None if key is None else ObjectRef(name=key.name, namespace=key.namespace),
    )
    return recorded(begun, ClonePhase.PREPARING, CloneReason.PREPARING, "the provider is asked for the clone")


def from_image(world: World, now: datetime) -> Step | None:
    if not world.from_image:
        return None
    found = step(world, ClonePhase.CLONING, CloneReason.CLONING, "the VirtualMachine is created")
    return replace(found, writes=(_create(world, ""),))


def ask(world: World, now: datetime) -> Step | None:
    return calls(world)


def cloned(world: World, id: str, now: datetime) -> Step:
    """The provider has made the clone: the VirtualMachine that adopts it is created."""
    after = world.having(
        target_vm_id=id,
        task_ref=None,
        actual_clone_type=world.type,
        failed=None,
        progress=CloneProgress(overall_percentage=100),
    )
    message = f"VirtualMachine {world.clone.spec.target.name} is created"
    if world.before.target_vm_id != id or world.before.actual_clone_type is None:
        # What was made is recorded before a VirtualMachine is bound to it.
        return recorded(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, message)
    found = step(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, message)
    return replace(found, writes=(_create(world, id),))


def _create(world: World, id: str) -> Create:
    """The VirtualMachine; of a clone that the provider has made, one that adopts it."""
    assert world.wanted is not None, "the source is known"
    wire: dict[str, Any] = world.wanted.object.wire()
    metadata = {name: value for name, value in wire["metadata"].items() if name != "uid"}
    if id:
        metadata["annotations"] = {**metadata["annotations"], names.ADOPT_ID: id}
        metadata["labels"] = {**metadata["labels"], names.ADOPTED: "true"}
    because = f"VMClone {world.object.key.name} makes it"
    return Create(resource=MACHINES, manifest={**wire, "metadata": metadata}, because=because)
