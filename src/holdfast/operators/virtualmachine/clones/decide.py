"""What is done for a VMClone next: one step, found by a ladder of facts; the first rung that applies decides.

That a clone is about to be made is recorded before the provider is asked.  The provider knows it by a name with the UID
of the VMClone, so a request that is repeated finds the clone that it made.  The VirtualMachine that adopts it has the
same UID in an annotation: one of the same name that has not is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

import msgspec

from holdfast.kernel.outcomes import Again, Retry, until
from holdfast.kernel.reasons import Reason
from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud.clones import (
    ClonePhase,
    CloneProgress,
    CloneType,
    CustomizationStatus,
    DiskCloneProgress,
    GuestCommand,
    VMCloneStatus,
    VMCustomization,
)
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase
from holdfast.kinds.virtrigaud.operations import FailedAttempts, RetryPolicy
from holdfast.kinds.virtrigaud.references import LocalObjectReference, ObjectRef
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine import names, retry_policies, steps
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.validate import limits, problems
from holdfast.operators.virtualmachine.estimates import eta, rate
from holdfast.operators.virtualmachine.machines import references
from holdfast.operators.virtualmachine.machines.observe import is_true
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.waiting import awaited
from holdfast.operators.virtualmachine.reasons import (
    CORRECTED_BY_USER,
    OF_CODE,
    CloneReason,
    MachineReason,
    reason_named,
)
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.providers.contract import Code, TaskState
from holdfast.runtime.decisions import Create, Notice

_LOOK: Final = timedelta(seconds=5)
_NOW: Final = timedelta(seconds=0.1)
_STAGES: Final = ("pre-customization", "post-customization", "first-boot")


class Call(Enum):
    """A request to the provider."""

    CLONE = "clone"
    REMOVE = "remove"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(steps.Step[VMCloneStatus, Call]):
    """A step of a clone; `cancel` is the task that took too long."""

    cancel: str = ""


Rung = Callable[[World, datetime], Step | None]


def next_step(world: World, now: datetime) -> Step:
    """The step of the first rung that applies."""
    rungs = _DELETION if world.object.deleting else _LADDER
    return next(step for rung in rungs if (step := rung(world, now)) is not None)


# --- what is wrong with the spec, or with the target


def _completed(world: World, now: datetime) -> Step | None:
    if world.before.phase is not ClonePhase.READY:
        return None
    return _step(world, ClonePhase.READY, CloneReason.COMPLETED, "the machine is made")


def _invalid(world: World, now: datetime) -> Step | None:
    found = (*problems(world.clone), *limits(world.clone), *_of_another_provider(world))
    return _fails(world, MachineReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def _of_another_provider(world: World) -> Iterator[Problem]:
    """A Provider of the target that is not the one of the source."""
    asked = world.clone.spec.target.provider_ref
    if world.from_image or asked is None or world.source is None:
        return
    own = world.source[1].spec.provider_ref
    if (asked.name, asked.namespace or own.namespace) != (own.name, own.namespace):
        message = f"a clone is made by the provider of its source, {own.name}"
        yield Problem("spec.target.providerRef", message, "remove it")


def _taken_name(world: World, now: datetime) -> Step | None:
    """A VirtualMachine of the name that the VMClone has not made: it is left alone, and the clone does not stay."""
    if world.machine is None or world.is_made:
        return None
    name = world.clone.spec.target.name
    step = _fails(world, CloneReason.TARGET_EXISTS, f"VirtualMachine {name} exists and was not made by this VMClone")
    return replace(step, call=Call.REMOVE) if world.before.target_vm_id and world.target else step


# --- a VirtualMachine that was made


def _made(world: World, now: datetime) -> Step | None:
    if world.machine is None:
        if world.before.target_ref is None:
            return None
        message = f"VirtualMachine {world.before.target_ref.name} was deleted before the clone was ready"
        return _fails(world, CloneReason.TARGET_DELETED, message)
    obj, machine = world.machine
    status = machine.status
    known = _bound(world)
    said = (status.message if status else None) or "it has no status yet"
    settled = is_true(obj, "Ready") and status is not None and status.observed_generation == obj.meta.generation
    if not settled:
        created = bool(status and status.id)
        phase, reason = ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING
        if world.from_image and not created:
            phase, reason = ClonePhase.CLONING, CloneReason.CLONING
        elif world.options.power_on:
            phase, reason = ClonePhase.POWERING_ON, CloneReason.POWERING_ON
        operation = status.operation if status else None
        if phase is ClonePhase.CLONING and operation is not None and operation.percentage is not None:
            progress = CloneProgress(overall_percentage=operation.percentage)
            known = msgspec.structs.replace(known, progress=progress)
        return _step(_with(world, known), phase, reason, f"VirtualMachine {obj.key.name}: {said}")
    if commands(world) and status is not None and status.phase is VirtualMachinePhase.RUNNING:
        known = _custom(known, current=_command_name(len(_run(known))), completed=False)
        after = _with(world, known)
        if not status.ips:
            text = "commands wait until the guest reports an address"
            return _step(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, text)
        step = _step(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, "commands run in the guest")
        return _failing(after, now) or replace(step, call=Call.COMMAND)
    return done(_with(world, known), now)


def _bound(world: World) -> VMCloneStatus:
    """The status of a clone that has become a VirtualMachine."""
    before = world.before
    custom = world.clone.spec.customization
    given = {
        "hostname": custom and (custom.hostname or custom.domain),
        "networks": custom and custom.networks,
        "userData": custom and custom.user_data,
        "tags": custom and custom.tags,
    }
    steps = tuple(name for name, value in given.items() if value)
    status = msgspec.structs.replace(
        before,
        target_ref=LocalObjectReference(name=world.clone.spec.target.name),
        actual_clone_type=before.actual_clone_type or world.type,
        task_ref=None,
    )
    if custom is None or before.customization_status is not None:
        return status
    return msgspec.structs.replace(
        status, customization_status=CustomizationStatus(started=True, completed=False, completed_steps=steps)
    )


def _custom(status: VMCloneStatus, *, current: str | None, completed: bool) -> VMCloneStatus:
    known = status.customization_status or CustomizationStatus(started=True)
    known = msgspec.structs.replace(known, current_step=current, completed=completed)
    return msgspec.structs.replace(status, customization_status=known)


def commands(world: World) -> tuple[GuestCommand, ...]:
    """The commands that have not run yet, by stage."""
    custom = world.clone.spec.customization or VMCustomization()
    ordered = sorted(custom.guest_commands, key=lambda each: _STAGES.index(each.stage or "post-customization"))
    return tuple(ordered[len(_run(world.before)) :])


def _run(status: VMCloneStatus) -> tuple[str, ...]:
    steps = status.customization_status.completed_steps if status.customization_status else ()
    return tuple(each for each in steps if each.startswith("guestCommands["))


def _command_name(n: int) -> str:
    return f"guestCommands[{n}]"


def ran(world: World, now: datetime) -> Step:
    """One more command has run."""
    status = _bound(world)
    known = status.customization_status or CustomizationStatus(started=True)
    steps = (*known.completed_steps, _command_name(len(_run(status))))
    known = msgspec.structs.replace(known, completed_steps=steps, failed_steps=(), message=None)
    status = msgspec.structs.replace(status, customization_status=known, failed=None)
    after = _with(world, status)
    if not commands(after):
        return done(after, now)
    step = _step(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, "commands run in the guest")
    return replace(step, outcome=Again(_NOW, "the next command runs"))


def command_failed(world: World, reason: Reason, message: str, now: datetime) -> Step:
    """The next command has failed."""
    status = _bound(world)
    known = status.customization_status or CustomizationStatus(started=True)
    steps = (_command_name(len(_run(status))),)
    known = msgspec.structs.replace(known, failed_steps=steps, message=message)
    return failed(_with(world, msgspec.structs.replace(status, customization_status=known)), reason, message, now)


def done(world: World, now: datetime) -> Step:
    status = world.before
    if status.customization_status is not None:
        status = _custom(status, current=None, completed=True)
    status = msgspec.structs.replace(
        status, completion_time=times.format(now), progress=CloneProgress(overall_percentage=100), failed=None
    )
    return _step(_with(world, status), ClonePhase.READY, CloneReason.COMPLETED, "the machine is made")


# --- a clone that is to be made


def _source(world: World, now: datetime) -> Step | None:
    """What the clone needs."""
    source, missing = world.clone.spec.source, ""
    if source.snapshot_ref is not None:
        status = world.snapshot[1].status if world.snapshot else None
        if world.snapshot is None:
            missing = f"VMSnapshot {source.snapshot_ref.name} does not exist"
        elif status is None or status.phase is not SnapshotPhase.READY or not status.snapshot_id:
            missing = f"VMSnapshot {source.snapshot_ref.name} is not ready"
    if not missing and not world.from_image:
        name = source.vm_ref.name if source.vm_ref else world.snapshot[1].spec.vm_ref.name if world.snapshot else ""
        if world.source is None:
            missing = f"VirtualMachine {name} does not exist"
        elif world.source[0].deleting:
            missing = f"VirtualMachine {name} is being deleted"
        elif not world.source_id:
            missing = f"VirtualMachine {name} has not been created on its provider yet"
    wanted = world.wanted
    if not missing and wanted is not None and not world.from_image:
        absent = next(references.missing(wanted), None)
        if absent is not None:
            missing = f"{absent} does not exist"
        elif world.target is None:
            missing = f"Provider {wanted.machine.spec.provider_ref.name} does not exist or is not ready"
    return _step(world, ClonePhase.PENDING, CloneReason.WAITING, missing) if missing else None


def _unanswered(world: World, now: datetime) -> Step | None:
    if world.error is not None:
        raise Retry(OF_CODE[world.error.code], f"the provider was asked about the clone: {world.error.message}")
    return None


def _unsupported(world: World, now: datetime) -> Step | None:
    """What a provider says that it cannot do is not asked for; what it does not say is."""
    able = world.wanted.capabilities.supports_linked_clones if world.wanted else None
    if world.type is CloneType.LINKED_CLONE and able is False:
        return _fails(world, CloneReason.LINKED_UNSUPPORTED, "the provider cannot make linked clones")
    return None


def _running(world: World, now: datetime) -> Step | None:
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
        return _calls(_with(world, msgspec.structs.replace(before, task_ref=None)))
    if state.error:
        return failed(world, OF_CODE[state.code or Code.INTERNAL], state.error, now)
    return cloned(world, before.target_vm_id or "", now)


def _failing(world: World, now: datetime) -> Step | None:
    """A clone that failed is tried again as its policy says, and at once when the spec was changed."""
    is_observed = world.before.observed_generation == world.object.meta.generation
    known = retry_policies.waits(world.before.failed, now, is_observed=is_observed)
    return None if known is None else _troubled(world, known, now)


def _adopt(world: World, now: datetime) -> Step | None:
    """A clone that is there, and that no VirtualMachine has adopted yet."""
    before = world.before
    ended = before.target_vm_id and before.actual_clone_type and not before.task_ref and before.failed is None
    return cloned(world, before.target_vm_id or "", now) if ended else None


def _place(world: World, now: datetime) -> Step | None:
    """What a clone waits for until the VMPlacementPolicy of its target has chosen a host."""
    reference, wanted = world.clone.spec.target.placement_ref, world.wanted
    if reference is None or wanted is None or not demand.clone_needs_place(world.object, world.clone):
        return None
    if wanted.policy is None:
        message = f"VMPlacementPolicy {reference.name} does not exist"
        return _step(world, ClonePhase.PENDING, CloneReason.WAITING, message)
    reason, message = awaited(wanted.policy[1], reference.name, world.before.placement)
    return _step(world, ClonePhase.PENDING, reason, message)


def _record(world: World, now: datetime) -> Step | None:
    """Record that the clone is about to be made, before the provider is asked."""
    if world.before.start_time is not None:
        return None
    provider = world.wanted.provider if world.wanted else None
    key = provider[0].key if provider else None
    status = msgspec.structs.replace(
        world.before,
        start_time=times.format(now),
        provider_ref=None if key is None else ObjectRef(name=key.name, namespace=key.namespace),
    )
    message = "the provider is asked for the clone"
    step = _step(_with(world, status), ClonePhase.PREPARING, CloneReason.PREPARING, message)
    return replace(step, outcome=Again(_NOW, message))


def _from_image(world: World, now: datetime) -> Step | None:
    if not world.from_image:
        return None
    step = _step(world, ClonePhase.CLONING, CloneReason.CLONING, "the VirtualMachine is created")
    return replace(step, writes=(create(world, ""),))


def _ask(world: World, now: datetime) -> Step | None:
    return _calls(world)


# --- deletion


def _nothing_left(world: World, now: datetime) -> Step | None:
    """The machine stays; of a clone that has not become one nothing does."""
    before = world.before
    if before.start_time is None or before.target_ref is not None or world.is_made or world.from_image:
        return replace(_removes(world, "the VMClone is deleted"), finalized=True)
    return None


def _unreachable(world: World, now: datetime) -> Step | None:
    if world.target is not None:
        return None
    if world.object.meta.annotations.get(names.FORCE_DELETE) == "true":
        message = "the provider has not confirmed that the unfinished clone is deleted; it may still exist there"
        notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
        return replace(_removes(world, message), finalized=True, notices=(notice,))
    hint = f"the annotation {names.FORCE_DELETE}=true removes the VMClone without that"
    return _removes(world, f"the provider is not ready, so the unfinished clone cannot be deleted; {hint}")


def _remove(world: World, now: datetime) -> Step | None:
    return replace(_removes(world, "the provider deletes the unfinished clone"), call=Call.REMOVE)


_LADDER: Final[tuple[Rung, ...]] = (
    _completed,
    _invalid,
    _taken_name,
    _made,
    _source,
    _unanswered,
    _running,
    _failing,
    _unsupported,
    _adopt,
    _place,
    _record,
    _from_image,
    _ask,
)

_DELETION: Final[tuple[Rung, ...]] = (_nothing_left, _unreachable, _remove)


# --- steps


def _with(world: World, status: VMCloneStatus) -> World:
    return replace(world, clone=msgspec.structs.replace(world.clone, status=status))


def _step(world: World, phase: ClonePhase, reason: Reason, message: str) -> Step:
    return Step(status=msgspec.structs.replace(world.before, phase=phase), reason=reason, message=message)


def _fails(world: World, reason: Reason, message: str) -> Step:
    return _step(world, ClonePhase.FAILED, reason, message)


def _removes(world: World, message: str) -> Step:
    return _step(world, world.before.phase or ClonePhase.PENDING, CloneReason.REMOVING, message)


def _calls(world: World) -> Step:
    step = _step(world, ClonePhase.CLONING, CloneReason.CLONING, "the provider makes the clone")
    return replace(step, call=Call.CLONE)


def progressed(world: World, state: TaskState, now: datetime, *, deadline: datetime | None = None) -> Step:
    """A clone whose task is under way."""
    began = times.read(world.before.last_retry_time or world.before.start_time) or now
    share = state.percentage
    status = msgspec.structs.replace(world.before, progress=_progress(state, began, now))
    after = timedelta(seconds=max(state.again_after or _LOOK.total_seconds(), 0.1))
    if share is not None:
        after = min(after, max(_LOOK, (now - began) / 10))
    if deadline is not None:
        after = min(after, max(deadline - now, _NOW))
    said = "" if share is None else f" ({share}% complete)"
    step = _step(_with(world, status), ClonePhase.CLONING, CloneReason.CLONING, f"the provider makes the clone{said}")
    return replace(step, outcome=Again(after, f"task {status.task_ref} is due"))


def _progress(state: TaskState, began: datetime, now: datetime) -> CloneProgress:
    """The progress of a task, and of the disk that it copies where it names one."""
    stage = state.stage
    whole = CloneProgress(overall_percentage=state.percentage, eta=eta(began, now, state.percentage))
    if stage is None:
        return whole
    done, total = stage.done_bytes, stage.total_bytes
    disk = DiskCloneProgress(
        name=stage.name,
        total_bytes=total,
        completed_bytes=done,
        percentage=100 * done // total if done is not None and total else None,
        transfer_rate=rate(began, now, state.done_bytes),
    )
    return msgspec.structs.replace(whole, total_disks=stage.count, completed_disks=stage.number - 1, current_disk=disk)


def cloned(world: World, id: str, now: datetime) -> Step:
    """The provider has made the clone: the VirtualMachine that adopts it is created."""
    status = msgspec.structs.replace(
        world.before,
        target_vm_id=id,
        task_ref=None,
        actual_clone_type=world.type,
        failed=None,
        progress=CloneProgress(overall_percentage=100),
    )
    message = f"VirtualMachine {world.clone.spec.target.name} is created"
    step = _step(_with(world, status), ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, message)
    if world.before.target_vm_id != id or world.before.actual_clone_type is None:
        # What was made is recorded before a VirtualMachine is bound to it.
        return replace(step, outcome=Again(_NOW, message))
    return replace(step, writes=(create(world, id),))


def create(world: World, id: str) -> Create:
    """The VirtualMachine; of a clone that the provider has made, one that adopts it."""
    assert world.wanted is not None, "the source is known"
    wire: dict[str, Any] = world.wanted.object.wire()
    metadata = {name: value for name, value in wire["metadata"].items() if name != "uid"}
    if id:
        metadata["annotations"] = {**metadata["annotations"], names.ADOPT_ID: id}
        metadata["labels"] = {**metadata["labels"], names.ADOPTED: "true"}
    because = f"VMClone {world.object.key.name} makes it"
    return Create(resource=MACHINES, manifest={**wire, "metadata": metadata}, because=because)


def failed(world: World, reason: Reason, message: str, now: datetime) -> Step:
    """An attempt that failed: it is tried again as the policy says, unless only a user can correct it."""
    policy, before = world.options.retry_policy or RetryPolicy(), world.before
    known = before.failed if before.observed_generation == world.object.meta.generation else None
    count = (known.count if known else 0) + 1
    final = reason in CORRECTED_BY_USER or reason in _UNSUPPORTED or count > retry_policies.most(policy)
    attempts = FailedAttempts(
        count=count,
        time=times.format(now),
        reason=reason.value,
        message=message,
        next_time=None if final else times.format(now + retry_policies.delay(policy, count)),
    )
    status = msgspec.structs.replace(before, failed=attempts, task_ref=None, progress=None, actual_clone_type=None)
    return _troubled(_with(world, status), attempts, now)


_UNSUPPORTED: Final = frozenset({CloneReason.LINKED_UNSUPPORTED, CloneReason.INSTANT_UNSUPPORTED})


def _troubled(world: World, known: FailedAttempts, now: datetime) -> Step:
    due = times.read(known.next_time)
    message = f"it failed {known.count} times: {known.message}"
    if due is None:
        return _fails(world, reason_named(known.reason), message)
    phase = ClonePhase.CUSTOMIZING if world.is_made else ClonePhase.PENDING
    step = _step(world, phase, reason_named(known.reason), f"{message}; it is tried again at {known.next_time}")
    return replace(step, outcome=until(due, now=now, because="the clone is tried again"))
