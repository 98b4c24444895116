"""One step of a migration: what is done, what the status becomes, and how a failure is recorded.  Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

from holdfast.kernel.outcomes import Again, until
from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.migrations import Artifact, MigrationPhase, VMMigrationStatus
from holdfast.kinds.virtrigaud.operations import FailedAttempts, RetryPolicy
from holdfast.meta import times
from holdfast.operators.virtualmachine import pacing, retry_policies, steps
from holdfast.operators.virtualmachine.migrations import progress
from holdfast.operators.virtualmachine.migrations.observe import World
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason, named
from holdfast.operators.virtualmachine.reasons import CORRECTED_BY_USER
from holdfast.providers.contract import TaskState

_LONGEST: Final = timedelta(minutes=30)
"""The longest wait before an attempt."""

_FINAL: Final = CORRECTED_BY_USER | {
    MigrationReason.TIMED_OUT,
    MigrationReason.STORAGE_NOT_MOUNTED,
    MigrationReason.SOURCE_DELETED,
    MigrationReason.TARGET_EXISTS,
    MigrationReason.TARGET_DELETED,
    MigrationReason.TARGET_FAILED,
    MigrationReason.VALIDATION_FAILED,
}
"""The reasons for which another attempt would fail as well."""


class Call(Enum):
    """A request to a provider."""

    SNAPSHOT = "snapshot"
    EXPORT = "export"
    IMPORT = "import"
    CANCEL = "cancel"
    DELETE_DISK = "delete disk"
    DELETE_EXPORT = "delete export"
    DELETE_SNAPSHOT = "delete snapshot"


REMOVES: Final = {
    Artifact.DISK: Call.DELETE_DISK,
    Artifact.EXPORT: Call.DELETE_EXPORT,
    Artifact.SNAPSHOT: Call.DELETE_SNAPSHOT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(steps.Step[VMMigrationStatus, Call]):
    """A step of a migration."""


def step(
    world: World, phase: MigrationPhase, reason: Reason, message: str, now: datetime, state: TaskState | None = None
) -> Step:
    shown = progress.at(world, phase, now, state)
    if shown is not None:
        shown = msgspec.structs.replace(shown, message=message)
    status = msgspec.structs.replace(world.before, phase=phase, progress=shown)
    return Step(status=status, reason=reason, message=message)


def recorded(world: World, phase: MigrationPhase, reason: Reason, message: str, now: datetime) -> Step:
    """What is about to be done, or was just done, is recorded before anything else is."""
    return replace(step(world, phase, reason, message, now), outcome=Again(pacing.SOON, message))


def reached(world: World) -> MigrationPhase:
    """The phase of a migration that waits: that of what it has asked for last."""
    made, shown = world.before.artifacts, world.before.progress
    if world.before.start_time is None:
        return MigrationPhase.PENDING
    if world.before.task_ref and shown is not None and shown.current_phase is not None:
        # How far the task is, only its provider knows.
        return shown.current_phase
    if world.info.target_disk_id:
        return MigrationPhase.CREATING
    phases = {
        Artifact.DISK: MigrationPhase.IMPORTING,
        Artifact.EXPORT: MigrationPhase.EXPORTING,
        Artifact.SNAPSHOT: MigrationPhase.SNAPSHOTTING,
    }
    return next((phase for each, phase in phases.items() if each in made), MigrationPhase.VALIDATING)


def looks(found: Step) -> Step:
    """A step after which the controller looks at the providers again."""
    return replace(found, outcome=Again(pacing.LOOK, found.message))


def waits(world: World, reason: Reason, message: str, now: datetime) -> Step:
    return step(world, reached(world), reason, message, now)


def refused(world: World, reason: Reason, message: str, now: datetime) -> Step:
    """What a user must correct: a migration that has begun has failed; another one begins once it is corrected."""
    if world.before.start_time is not None:
        return failed(world, reason, message, now)
    return step(world, MigrationPhase.FAILED, reason, message, now)


# --- failures


def is_final(world: World) -> bool:
    """Whether the migration has failed, and no further attempt is made."""
    return world.before.failed is not None and world.before.failed.next_time is None


def is_of_this_spec(world: World) -> bool:
    """Whether what failed is what the spec asks for now."""
    known = world.before.failed
    return known is not None and known.generation in (None, world.object.meta.generation)


def failed(world: World, reason: Reason, message: str, now: datetime) -> Step:
    """An attempt that failed: it is tried again as the policy says, unless only a user can correct it."""
    known = world.before.failed if is_of_this_spec(world) else None
    count = (known.count if known else 0) + 1
    policy = world.options.retry_policy
    final = reason in _FINAL or policy is None or count > retry_policies.most(policy)
    wait = retry_policies.delay(policy or RetryPolicy(), count, longest=_LONGEST)
    generation = world.object.meta.generation
    attempts = retry_policies.failure(
        reason, message, now, count=count, wait=None if final else wait, generation=generation
    )
    after = world.having(failed=attempts, progress=None)
    if final:
        return recorded(after, MigrationPhase.FAILED, reason, f"{message}; it is rolled back", now)
    return retries(after, attempts, now)


def retries(world: World, known: FailedAttempts, now: datetime) -> Step:
    """An attempt that failed, while the next one waits for its time."""
    due = times.read(known.next_time) or now
    message = f"attempt {known.count} failed: {known.message}; attempt {known.count + 1} begins at {known.next_time}"
    found = step(world, MigrationPhase.PENDING, named(known.reason), message, now)
    return replace(found, outcome=until(due, now=now, because="the migration is tried again"))
