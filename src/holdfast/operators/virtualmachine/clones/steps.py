"""One step of a clone: what is done, what the status becomes, and how a failure is recorded.  Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from holdfast.kernel.outcomes import Again, until
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.clones import ClonePhase, CloneProgress, DiskCloneProgress, VMCloneStatus
from holdfast.kinds.virtrigaud.operations import FailedAttempts, RetryPolicy
from holdfast.meta import times
from holdfast.operators.virtualmachine import pacing, retry_policies, steps
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.estimates import eta, rate
from holdfast.operators.virtualmachine.reasons import CORRECTED_BY_USER, CloneReason, reason_named
from holdfast.providers.contract import TaskState

_FINAL: Final = CORRECTED_BY_USER | {CloneReason.LINKED_UNSUPPORTED, CloneReason.INSTANT_UNSUPPORTED}
"""The reasons for which another attempt would fail as well."""


class Call(Enum):
    """A request to the provider."""

    CLONE = "clone"
    REMOVE = "remove"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(steps.Step[VMCloneStatus, Call]):
    """A step of a clone; `cancel` is the task that took too long."""

    cancel: str = ""


def step(world: World, phase: ClonePhase, reason: Reason, message: str) -> Step:
    return Step(status=msgspec.structs.replace(world.before, phase=phase), reason=reason, message=message)


def fails(world: World, reason: Reason, message: str) -> Step:
    return step(world, ClonePhase.FAILED, reason, message)


def removes(world: World, message: str) -> Step:
    return step(world, world.before.phase or ClonePhase.PENDING, CloneReason.REMOVING, message)


def calls(world: World) -> Step:
    asks = step(world, ClonePhase.CLONING, CloneReason.CLONING, "the provider makes the clone")
    return replace(asks, call=Call.CLONE)


def recorded(world: World, phase: ClonePhase, reason: Reason, message: str) -> Step:
    """What is about to be done, or was just done, is recorded before anything else is."""
    return replace(step(world, phase, reason, message), outcome=Again(pacing.SOON, message))


def progressed(world: World, state: TaskState, now: datetime, *, deadline: datetime | None = None) -> Step:
    """A clone whose task is under way."""
    began = times.read(world.before.last_retry_time or world.before.start_time) or now
    after = pacing.next_look(state, began, now)
    if deadline is not None:
        after = min(after, max(deadline - now, pacing.SOON))
    share = "" if state.percentage is None else f" ({state.percentage}% complete)"
    shown = world.having(progress=_progress(state, began, now))
    found = step(shown, ClonePhase.CLONING, CloneReason.CLONING, f"the provider makes the clone{share}")
    return replace(found, outcome=Again(after, f"task {world.before.task_ref} is due"))


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


def failed(world: World, reason: Reason, message: str, now: datetime) -> Step:
    """An attempt that failed: it is tried again as the policy says, unless only a user can correct it."""
    policy, before = world.options.retry_policy or RetryPolicy(), world.before
    known = before.failed if before.observed_generation == world.object.meta.generation else None
    count = (known.count if known else 0) + 1
    final = reason in _FINAL or count > retry_policies.most(policy)
    wait = None if final else retry_policies.delay(policy, count)
    attempts = retry_policies.failure(reason, message, now, count=count, wait=wait)
    after = world.having(failed=attempts, task_ref=None, progress=None, actual_clone_type=None)
    return retries(after, attempts, now)


def retries(world: World, known: FailedAttempts, now: datetime) -> Step:
    """An attempt that failed: the next one waits for its time, or there is none."""
    due = times.read(known.next_time)
    message = f"it failed {known.count} times: {known.message}"
    if due is None:
        return fails(world, reason_named(known.reason), message)
    phase = ClonePhase.CUSTOMIZING if world.is_made else ClonePhase.PENDING
    found = step(world, phase, reason_named(known.reason), f"{message}; it is tried again at {known.next_time}")
    return replace(found, outcome=until(due, now=now, because="the clone is tried again"))
