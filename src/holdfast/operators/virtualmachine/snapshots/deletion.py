"""The deletion of a snapshot, which its provider confirms.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from holdfast.kernel.outcomes import until
from holdfast.kinds.virtrigaud.operations import FailedAttempts
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.meta import times
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.operators.virtualmachine.snapshots.observe import World
from holdfast.operators.virtualmachine.snapshots.preconditions import is_gone
from holdfast.operators.virtualmachine.snapshots.steps import (
    Call,
    Step,
    attempts,
    calls,
    deletes,
    progressed,
    without_task,
)
from holdfast.providers.contract import Code, ProviderError
from holdfast.runtime.decisions import Notice


def nothing_left(world: World, now: datetime) -> Step | None:
    """There is no snapshot on the provider: none was asked for, or it went with the machine."""
    if world.before.machine_uid is None or is_gone(world):
        return replace(deletes(world, "the snapshot is deleted"), finalized=True)
    return None


def forced(world: World, now: datetime) -> Step | None:
    if world.object.meta.annotations.get(names.FORCE_DELETE) != "true":
        return None
    if world.target is not None and world.error is None and world.before.failed is None:
        return None
    message = (
        f"the provider has not confirmed that the snapshot {world.name_on_provider} is deleted; it may still exist"
    )
    notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
    return replace(deletes(world, message), finalized=True, notices=(notice,))


def unreachable(world: World, now: datetime) -> Step | None:
    if world.target is not None and world.machine_id:
        return None
    hint = f"the annotation {names.FORCE_DELETE}=true removes the VMSnapshot without the snapshot being deleted"
    return deletes(world, f"the provider is not ready, so the snapshot cannot be deleted; {hint}")


def under_way(world: World, now: datetime) -> Step | None:
    state = world.task
    if state is None or not world.before.task_ref or world.before.phase is not SnapshotPhase.DELETING:
        return None
    if not state.done:
        return progressed(world, state, now)
    if state.lost:
        return calls(without_task(world), Call.DELETE)
    if state.error and state.code is not Code.NOT_FOUND:
        return failed(world, ProviderError(state.code or Code.INTERNAL, state.error), now)
    return replace(deletes(world, "the snapshot is deleted"), finalized=True)


def failing(world: World, now: datetime) -> Step | None:
    known = world.before.failed
    if known is None or world.before.phase is not SnapshotPhase.DELETING:
        return None
    return _retries(world, known, now) if (times.read(known.next_time) or now) > now else None


def failed(world: World, error: ProviderError, now: datetime) -> Step:
    """A call or a task that failed once more."""
    known = attempts(world, error, now)
    return _retries(world.having(failed=known, task_ref=None, progress=None), known, now)


def _retries(world: World, known: FailedAttempts, now: datetime) -> Step:
    """A deletion that failed, while the next attempt waits for its time."""
    step = deletes(world, f"deleting the snapshot failed {known.count} times: {known.message}")
    due = times.read(known.next_time) or now
    return replace(step, outcome=until(due, now=now, because="the deletion is tried again"))


def delete(world: World, now: datetime) -> Step | None:
    return calls(world, Call.DELETE)
