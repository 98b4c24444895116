"""The steps that rules lead to: what is done for a VMSnapshot, and how it is shown meanwhile.  Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from holdfast.kernel.outcomes import Again
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.operations import FailedAttempts
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase, SnapshotProgress
from holdfast.kinds.virtrigaud.snapshots import VMSnapshotStatus as Status
from holdfast.meta import times
from holdfast.operators.virtualmachine import pacing, retry_policies, steps
from holdfast.operators.virtualmachine.estimates import eta
from holdfast.operators.virtualmachine.reasons import CORRECTED_BY_USER, OF_CODE, SnapshotReason
from holdfast.operators.virtualmachine.resources import SNAPSHOTS
from holdfast.operators.virtualmachine.snapshots.observe import World
from holdfast.providers.contract import ProviderError, TaskState
from holdfast.runtime.decisions import Delete

TAKING: Final = "the provider takes the snapshot"
DELETING: Final = "the provider deletes the snapshot"


class Call(Enum):
    """A request to the provider."""

    TAKE = "take"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(steps.Step[Status, Call]):
    """A step of a snapshot; `ready` says whether the snapshot can be used, or the schedule is in force."""

    ready: bool = False


def waits(world: World, reason: Reason, message: str) -> Step:
    phase = world.before.phase or SnapshotPhase.PENDING
    return Step(status=msgspec.structs.replace(world.before, phase=phase), reason=reason, message=message)


def fails(world: World, reason: Reason, message: str) -> Step:
    status = msgspec.structs.replace(world.before, phase=SnapshotPhase.FAILED)
    return Step(status=status, reason=reason, message=message)


def deletes(world: World, message: str) -> Step:
    status = msgspec.structs.replace(world.before, phase=SnapshotPhase.DELETING)
    return Step(status=status, reason=SnapshotReason.DELETING, message=message)


def delete_itself(world: World, because: str) -> Delete:
    return Delete(resource=SNAPSHOTS, key=world.object.key, uid=world.object.uid, because=because)


def calls(world: World, call: Call) -> Step:
    if call is Call.DELETE:
        return replace(deletes(world, DELETING), call=call)
    status = msgspec.structs.replace(world.before, phase=SnapshotPhase.CREATING)
    return Step(status=status, reason=SnapshotReason.CREATING, message=TAKING, call=call)


def without_task(world: World) -> World:
    return replace(world.having(task_ref=None, progress=None), task=None)


def progressed(world: World, state: TaskState, now: datetime) -> Step:
    """A task that is under way, with its progress."""
    doing, reason, phase, what = TAKING, SnapshotReason.CREATING, SnapshotPhase.CREATING, "creation"
    if world.object.deleting:
        doing, reason, phase, what = DELETING, SnapshotReason.DELETING, SnapshotPhase.DELETING, "deletion"
    before = world.before.progress
    began = times.read(before.start_time if before else None) or now
    progress = SnapshotProgress(
        start_time=times.format(began),
        percentage=state.percentage,
        completed_bytes=state.done_bytes,
        total_bytes=state.total_bytes,
        eta=eta(began, now, state.percentage),
        message=doing,
    )
    share = "" if state.percentage is None else f" ({state.percentage}% complete)"
    return Step(
        status=msgspec.structs.replace(world.before, phase=phase, progress=progress),
        reason=reason,
        message=f"snapshot {what} in progress{share}",
        outcome=Again(pacing.next_look(state, began, now), f"task {world.before.task_ref} is due"),
    )


def attempts(world: World, error: ProviderError, now: datetime, *, most: int | None = None) -> FailedAttempts:
    """The record of a call or a task that failed once more; after `most` failures in a row it is not tried again."""
    reason = OF_CODE[error.code]
    by_user = reason in CORRECTED_BY_USER
    count = (world.before.failed.count if world.before.failed else 0) + 1
    wait = pacing.BACKOFF.cap if by_user else pacing.BACKOFF.delay(count)
    final = most is not None and (by_user or count >= most)
    return retry_policies.failure(reason, error.message, now, count=count, wait=None if final else wait)
