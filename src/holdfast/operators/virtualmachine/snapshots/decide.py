"""What is done for a VMSnapshot next: one step, found by a ladder of facts; the first rung that applies decides.

That a snapshot is about to be taken is recorded before the provider is asked, so a VMSnapshot without a record has
nothing on the provider.  The provider knows the snapshot by a name with the UID of the VMSnapshot, so a request that is
repeated after a lost reply finds the snapshot that it made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Again, Done, Retry, until
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.operations import FailedAttempts
from holdfast.kinds.virtrigaud.snapshots import (
    ProviderSnapshotStatus,
    SnapshotPhase,
    SnapshotProgress,
    SnapshotRef,
)
from holdfast.kinds.virtrigaud.snapshots import VMSnapshotStatus as Status
from holdfast.meta import times
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import names, retry_policies, steps
from holdfast.operators.virtualmachine.estimates import eta
from holdfast.operators.virtualmachine.machines.observe import provider_label
from holdfast.operators.virtualmachine.reasons import (
    CORRECTED_BY_USER,
    OF_CODE,
    MachineReason,
    SnapshotReason,
    reason_named,
)
from holdfast.operators.virtualmachine.resources import SNAPSHOTS
from holdfast.operators.virtualmachine.snapshots import retention, schedules
from holdfast.operators.virtualmachine.snapshots.observe import Sibling, World, is_kept, schedule_of
from holdfast.operators.virtualmachine.snapshots.validate import problems
from holdfast.providers.contract import Code, Made, ProviderError, TaskState
from holdfast.runtime.decisions import Delete, Notice

BACKOFF: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=5), jitter=0)
"""The wait after a snapshot could not be taken or deleted so many times in a row."""

_TRIES: Final = 5
"""Failures after which a snapshot is said to have failed; it is still tried again."""

_LOOK: Final = timedelta(seconds=5)
_TAKING: Final = "the provider takes the snapshot"
_DELETING: Final = "the provider deletes the snapshot"
_NOW: Final = timedelta(seconds=0.1)


class Call(Enum):
    """A request to the provider."""

    TAKE = "take"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(steps.Step[Status, Call]):
    """A step of a snapshot; `ready` says whether the snapshot can be used, or the schedule is in force."""

    ready: bool = False


Rung = Callable[[World, datetime], Step | None]


def next_step(world: World, now: datetime) -> Step:
    """The step of the first rung that applies."""
    world = replace(world, snapshot=msgspec.structs.replace(world.snapshot, status=_related(world)))
    rungs = _DELETION if world.object.deleting else _LADDER
    return next(step for rung in rungs if (step := rung(world, now)) is not None)


def _related(world: World) -> Status:
    """The status with the snapshots that this one builds on, and those that build on it."""
    before, by_uid = world.before, {each.object.uid: each for each in world.siblings}
    parent = before.parent
    while parent is not None and (parent.uid not in by_uid or by_uid[parent.uid or ""].object.deleting):
        # What builds on a snapshot that is deleted builds on what that was built on.
        parent = by_uid[parent.uid or ""].status.parent if parent.uid in by_uid else None
    children = tuple(
        _reference(each)
        for each in world.siblings
        if each.status.parent is not None and each.status.parent.uid == world.object.uid and not each.object.deleting
    )
    return msgspec.structs.replace(before, parent=parent, children=children)


def _reference(sibling: Sibling) -> SnapshotRef:
    key = sibling.object.key
    return SnapshotRef(name=key.name, namespace=key.namespace, uid=sibling.object.uid)


# --- what is wrong with the spec, or with the machine


def _invalid(world: World, now: datetime) -> Step | None:
    found = problems(world.snapshot)
    return _fails(world, MachineReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def is_gone(world: World) -> bool:
    """Whether the machine that the snapshot is of was deleted."""
    bound = world.before.machine_uid
    return bound is not None and (world.machine is None or world.machine[0].uid != bound)


def _machine_deleted(world: World, now: datetime) -> Step | None:
    """A snapshot goes with its machine, unless its retention says otherwise."""
    gone = is_gone(world)
    going = world.machine is not None and world.machine[0].deleting and world.before.machine_uid is not None
    if not gone and not going:
        return None
    name = world.snapshot.spec.vm_ref.name
    if world.retention is None or world.retention.delete_on_vm_delete is not False:
        write = _delete_itself(world, f"the machine {name} is deleted")
        return replace(_waits(world, SnapshotReason.MACHINE_DELETED, f"the machine {name} is deleted"), writes=(write,))
    if not gone:
        return None
    return _fails(world, SnapshotReason.MACHINE_DELETED, f"the machine {name} was deleted, and the snapshot with it")


def _delete_itself(world: World, because: str) -> Delete:
    return Delete(resource=SNAPSHOTS, key=world.object.key, uid=world.object.uid, because=because)


# --- schedules


def _schedule(world: World, now: datetime) -> Step | None:
    before, schedule = world.before, world.snapshot.spec.schedule
    if not schedules.is_schedule(world) or schedule is None:
        idle = before.next_schedule_time is not None or before.last_schedule_time is not None
        if not idle or before.machine_uid is not None:
            return None
        # It takes none because its schedule was disabled.
        return _scheduled(world, SnapshotReason.SUSPENDED, "spec.schedule.enabled is false: no snapshots are taken")
    history = tuple(schedules.history(world))
    table = schedules.timetable(world, now)
    if schedule.suspend:
        step = _scheduled(world, SnapshotReason.SUSPENDED, "spec.schedule.suspend is true: no snapshots are taken")
        return replace(step, writes=history)
    next = None if table.next is None else times.format(table.next)
    outcome = Done() if table.next is None else until(table.next, now=now, because="a snapshot is due")
    before = msgspec.structs.replace(before, next_schedule_time=next)
    world = replace(world, snapshot=msgspec.structs.replace(world.snapshot, status=before))
    due = f"the next snapshot of {world.snapshot.spec.vm_ref.name} is due at {next}" if next else "it is never due"
    if table.due is None:
        return replace(_scheduled(world, SnapshotReason.SCHEDULED, due), outcome=outcome, writes=history)
    if not world.machine_id or world.machine is None or world.machine[0].deleting:
        name = world.snapshot.spec.vm_ref.name
        text = f"a snapshot is due since {times.format(table.due)}, and VirtualMachine {name} does not exist yet"
        return replace(_waits(world, SnapshotReason.WAITING, text), outcome=outcome, writes=history)
    busy = schedules.active(world)
    policy = schedule.concurrency_policy or "Forbid"
    if busy and policy == "Forbid":
        text = f"a snapshot is due since {times.format(table.due)}, and {busy[0].object.key.name} is still being taken"
        return replace(_scheduled(world, SnapshotReason.ACTIVE, text), outcome=outcome, writes=history)
    run = schedules.run(world, table.due)
    gone = tuple(schedules.replaced(world)) if policy == "Replace" else ()
    notices = [Notice(reason=SnapshotReason.STARTED.value, message=f"VMSnapshot {run.manifest['metadata']['name']}")]
    if table.missed:
        text = f"{table.missed} times of the schedule went by without a snapshot before {times.format(table.due)}"
        notices.append(Notice(type="Warning", reason=SnapshotReason.MISSED.value, message=text))
    step = _scheduled(world, SnapshotReason.SCHEDULED, due)
    return replace(
        step,
        status=msgspec.structs.replace(step.status, last_schedule_time=times.format(table.due)),
        writes=(*history, *gone, run),
        notices=tuple(notices),
        outcome=outcome,
    )


def _scheduled(world: World, reason: SnapshotReason, message: str) -> Step:
    """The step of a schedule; the time for which it last made a snapshot is kept also if only that snapshot tells."""
    last = schedules.last_time(world)
    status = msgspec.structs.replace(
        world.before, phase=SnapshotPhase.READY, last_schedule_time=None if last is None else times.format(last)
    )
    return Step(status=status, reason=reason, message=message, ready=True)


# --- a snapshot that is taken


def _kept(world: World, now: datetime) -> Step | None:
    """A snapshot that is there: until it expires, and after that until the grace period is over."""
    before = world.before
    if before.completion_time is None:
        return None
    expiry = retention.expiry(world)
    status = msgspec.structs.replace(
        before, phase=SnapshotPhase.READY, expiry_time=None if expiry is None else times.format(expiry)
    )
    step = Step(status=status, reason=SnapshotReason.CREATED, message="the snapshot is taken", ready=True)
    if expiry is None:
        return replace(step, message="the snapshot is taken, and pinned") if is_kept(world.snapshot) else step
    if now < expiry:
        return replace(step, outcome=until(expiry, now=now, because="the snapshot expires"))
    end = expiry + retention.grace(world)
    message = f"the snapshot expired at {times.format(expiry)}, and is deleted at {times.format(end)}"
    status = msgspec.structs.replace(status, phase=SnapshotPhase.EXPIRED)
    step = Step(status=status, reason=SnapshotReason.EXPIRED, message=message)
    if now < end:
        return replace(step, outcome=until(end, now=now, because="the grace period of the snapshot ends"))
    return replace(step, writes=(_delete_itself(world, message),))


# --- a snapshot that is to be taken


def _machine(world: World, now: datetime) -> Step | None:
    name = world.snapshot.spec.vm_ref.name
    if world.machine is None:
        return _waits(world, SnapshotReason.WAITING, f"VirtualMachine {name} does not exist")
    if world.machine[0].deleting:
        return _waits(world, SnapshotReason.WAITING, f"VirtualMachine {name} is being deleted")
    if not world.machine_id:
        return _waits(world, SnapshotReason.WAITING, f"VirtualMachine {name} has not been created on its provider yet")
    provider = world.machine[1].spec.provider_ref.name
    if world.provider is None:
        return _waits(world, SnapshotReason.WAITING, f"Provider {provider} does not exist")
    if world.target is None:
        return _waits(world, SnapshotReason.WAITING, f"Provider {provider} is not ready")
    return None


def _unanswered(world: World, now: datetime) -> Step | None:
    if world.error is not None:
        raise Retry(OF_CODE[world.error.code], f"the provider was asked about the snapshot: {world.error.message}")
    return None


def _running(world: World, now: datetime) -> Step | None:
    state = world.task
    if state is None or not world.before.task_ref:
        return None
    if not state.done:
        return progressed(world, state, now)
    if state.lost:
        # The provider does not know the task any more; it is asked again, and has the snapshot or not.
        return _calls(_without_task(world), Call.TAKE)
    if state.error:
        return failed(world, ProviderError(state.code or Code.INTERNAL, state.error), now, Call.TAKE)
    made = next((each.id for each in world.before.provider_status.values() if each.id), "")
    return taken(world, Made(id=made), state, world.virtual_bytes, now)


def _failing(world: World, now: datetime) -> Step | None:
    """A snapshot that could not be taken is tried again after a while, or at once when the spec was changed."""
    is_observed = world.before.observed_generation == world.object.meta.generation
    known = retry_policies.waits(world.before.failed, now, is_observed=is_observed)
    if known is None:
        return None
    due = times.read(known.next_time)
    outcome = Done() if due is None else until(due, now=now, because="the snapshot is tried again")
    reason = reason_named(known.reason)
    return replace(_troubled(world, reason, known), outcome=outcome)


def _unsupported(world: World, now: datetime) -> Step | None:
    """What a provider says that it cannot do is not asked for; what it does not say is."""
    able, config = world.capabilities, world.config
    reason = MachineReason.UNSUPPORTED
    if able.supports_snapshots is False:
        return _fails(world, reason, "the provider cannot take snapshots")
    if config.include_memory and able.supports_memory_snapshots is False:
        return _fails(world, reason, "spec.snapshotConfig.includeMemory: the provider takes no snapshots with memory")
    if config.encryption is not None and config.encryption.enabled:
        return _fails(world, reason, "spec.snapshotConfig.encryption: providers take no encrypted snapshots")
    return None


def _record(world: World, now: datetime) -> Step | None:
    """Record that the snapshot is about to be taken, before the provider is asked."""
    if world.before.machine_uid is not None or world.machine is None:
        return None
    status = msgspec.structs.replace(
        world.before,
        phase=SnapshotPhase.CREATING,
        creation_time=times.format(now),
        machine_uid=world.machine[0].uid,
        failed=None,
    )
    step = Step(status=status, reason=SnapshotReason.CREATING, message="the provider is asked to take the snapshot")
    return replace(step, outcome=Again(_NOW, "the provider is asked to take the snapshot"))


def _take(world: World, now: datetime) -> Step | None:
    return _calls(world, Call.TAKE)


# --- deletion


def _nothing_left(world: World, now: datetime) -> Step | None:
    """There is no snapshot on the provider: none was asked for, or it went with the machine."""
    if world.before.machine_uid is None or is_gone(world):
        return replace(_deletes(world, "the snapshot is deleted"), finalized=True)
    return None


def _forced(world: World, now: datetime) -> Step | None:
    if world.object.meta.annotations.get(names.FORCE_DELETE) != "true":
        return None
    if world.target is not None and world.error is None and world.before.failed is None:
        return None
    message = (
        f"the provider has not confirmed that the snapshot {world.name_on_provider} is deleted; it may still exist"
    )
    notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
    return replace(_deletes(world, message), finalized=True, notices=(notice,))


def _unreachable(world: World, now: datetime) -> Step | None:
    if world.target is not None and world.machine_id:
        return None
    hint = f"the annotation {names.FORCE_DELETE}=true removes the VMSnapshot without the snapshot being deleted"
    return _deletes(world, f"the provider is not ready, so the snapshot cannot be deleted; {hint}")


def _deletion_runs(world: World, now: datetime) -> Step | None:
    state = world.task
    if state is None or not world.before.task_ref or world.before.phase is not SnapshotPhase.DELETING:
        return None
    if not state.done:
        return progressed(world, state, now)
    if state.lost:
        return _calls(_without_task(world), Call.DELETE)
    if state.error and state.code is not Code.NOT_FOUND:
        return failed(world, ProviderError(state.code or Code.INTERNAL, state.error), now, Call.DELETE)
    return replace(_deletes(world, "the snapshot is deleted"), finalized=True)


def _deletion_failing(world: World, now: datetime) -> Step | None:
    known = world.before.failed
    if known is None or world.before.phase is not SnapshotPhase.DELETING:
        return None
    due = times.read(known.next_time) or now
    if due <= now:
        return None
    step = _deletes(world, f"deleting the snapshot failed {known.count} times: {known.message}")
    return replace(step, outcome=until(due, now=now, because="the deletion is tried again"))


def _delete(world: World, now: datetime) -> Step | None:
    return _calls(world, Call.DELETE)


_LADDER: Final[tuple[Rung, ...]] = (
    _invalid,
    _machine_deleted,
    _schedule,
    _kept,
    _machine,
    _unanswered,
    _running,
    _failing,
    _unsupported,
    _record,
    _take,
)

_DELETION: Final[tuple[Rung, ...]] = (
    _nothing_left,
    _forced,
    _unreachable,
    _unanswered,
    _deletion_runs,
    _deletion_failing,
    _delete,
)


# --- steps


def _waits(world: World, reason: Reason, message: str) -> Step:
    phase = world.before.phase or SnapshotPhase.PENDING
    return Step(status=msgspec.structs.replace(world.before, phase=phase), reason=reason, message=message)


def _fails(world: World, reason: Reason, message: str) -> Step:
    status = msgspec.structs.replace(world.before, phase=SnapshotPhase.FAILED)
    return Step(status=status, reason=reason, message=message)


def _deletes(world: World, message: str) -> Step:
    status = msgspec.structs.replace(world.before, phase=SnapshotPhase.DELETING)
    return Step(status=status, reason=SnapshotReason.DELETING, message=message)


def _without_task(world: World) -> World:
    status = msgspec.structs.replace(world.before, task_ref=None, progress=None)
    return replace(world, task=None, snapshot=msgspec.structs.replace(world.snapshot, status=status))


def _calls(world: World, call: Call) -> Step:
    if call is Call.DELETE:
        return replace(_deletes(world, _DELETING), call=call)
    status = msgspec.structs.replace(world.before, phase=SnapshotPhase.CREATING)
    message = _TAKING
    return Step(status=status, reason=SnapshotReason.CREATING, message=message, call=call)


def _troubled(world: World, reason: Reason, known: FailedAttempts) -> Step:
    """A snapshot that could not be taken: it has failed if a user must correct it, or after some tries."""
    hopeless = known.reason in CORRECTED_BY_USER or known.count >= _TRIES
    phase = SnapshotPhase.FAILED if hopeless else SnapshotPhase.CREATING
    status = msgspec.structs.replace(
        world.before, phase=phase, failed=known, task_ref=None, progress=None, provider_status={}
    )
    return Step(status=status, reason=reason, message=f"taking it failed {known.count} times: {known.message}")


def progressed(world: World, state: TaskState, now: datetime) -> Step:
    """A task that is under way, with its progress."""
    before = world.before.progress
    began = times.read(before.start_time if before else None) or now
    progress = SnapshotProgress(
        start_time=times.format(began),
        percentage=state.percentage,
        completed_bytes=state.done_bytes,
        total_bytes=state.total_bytes,
        eta=eta(began, now, state.percentage),
        message=_DELETING if world.object.deleting else _TAKING,
    )
    share = "" if state.percentage is None else f" ({state.percentage}% complete)"
    deleting = world.object.deleting
    status = msgspec.structs.replace(
        world.before, phase=SnapshotPhase.DELETING if deleting else SnapshotPhase.CREATING, progress=progress
    )
    # When the provider says, but in a long task also on the way, to record its progress.
    after = timedelta(seconds=max(state.again_after or _LOOK.total_seconds(), 0.1))
    if state.percentage is not None:
        after = min(after, max(_LOOK, (now - began) / 10))
    reason = SnapshotReason.DELETING if deleting else SnapshotReason.CREATING
    message = f"snapshot {'deletion' if deleting else 'creation'} in progress{share}"
    outcome = Again(after, f"task {status.task_ref} is due")
    return Step(status=status, reason=reason, message=message, outcome=outcome)


def on_provider(world: World, id: str, now: datetime, *, available: bool) -> dict[str, ProviderSnapshotStatus]:
    """The snapshot on its provider."""
    assert world.provider is not None, "the provider answered"
    label = provider_label(world.object.key.namespace, world.provider[0].key)
    there = ProviderSnapshotStatus(
        available=available,
        id=id,
        last_updated=times.format(now),
        message="the machine can be reverted to it" if available else _TAKING,
        state=(SnapshotPhase.READY if available else SnapshotPhase.CREATING).value,
    )
    return {label: there}


def taken(world: World, made: Made, state: TaskState, virtual_bytes: int | None, now: datetime) -> Step:
    """The provider has taken the snapshot."""
    size, parent = state.result.get("size_bytes"), state.result.get("parent")
    above = next((each for each in world.siblings if parent and each.status.snapshot_id == parent), None)
    status = msgspec.structs.replace(
        world.before,
        phase=SnapshotPhase.READY,
        snapshot_id=made.id,
        task_ref=None,
        progress=None,
        failed=None,
        completion_time=times.format(now),
        size=None if not size else str(Quantity.of_bytes(int(size))),
        virtual_size=None if virtual_bytes is None else str(Quantity.of_bytes(virtual_bytes)),
        parent=None if above is None else _reference(above),
        provider_status=on_provider(world, made.id, now, available=True),
    )
    done = replace(world, task=None, snapshot=msgspec.structs.replace(world.snapshot, status=status))
    step = _kept(done, now)
    assert step is not None, "it is taken"
    return step


def failed(world: World, error: ProviderError, now: datetime, call: Call) -> Step:
    """A call or a task that failed once more.  A snapshot of a schedule that has failed is not tried again."""
    reason = OF_CODE[error.code]
    count = (world.before.failed.count if world.before.failed else 0) + 1
    hopeless = reason in CORRECTED_BY_USER
    due: datetime | None = now + (BACKOFF.cap if hopeless else BACKOFF.delay(count))
    if call is Call.TAKE and schedule_of(world.object) and (hopeless or count >= _TRIES):
        due = None
    known = FailedAttempts(
        count=count,
        time=times.format(now),
        reason=reason.value,
        message=error.message,
        next_time=None if due is None else times.format(due),
    )
    outcome = Done() if due is None else until(due, now=now, because="it is tried again")
    if call is Call.TAKE:
        return replace(_troubled(world, reason, known), outcome=outcome)
    step = _deletes(world, f"deleting the snapshot failed {count} times: {error.message}")
    status = msgspec.structs.replace(step.status, failed=known, task_ref=None, progress=None)
    return replace(step, status=status, outcome=outcome)
