"""The taking of a snapshot, from the record that it is about to be taken until it is there.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from holdfast.kernel.outcomes import Again, Done, until
from holdfast.kinds.virtrigaud.operations import FailedAttempts
from holdfast.kinds.virtrigaud.snapshots import ProviderSnapshotStatus, SnapshotPhase
from holdfast.meta import times
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import pacing, retry_policies
from holdfast.operators.virtualmachine.machines.observe import provider_label
from holdfast.operators.virtualmachine.reasons import CORRECTED_BY_USER, SnapshotReason, reason_named
from holdfast.operators.virtualmachine.snapshots.observe import World, schedule_of
from holdfast.operators.virtualmachine.snapshots.retention import kept
from holdfast.operators.virtualmachine.snapshots.steps import (
    TAKING,
    Call,
    Step,
    attempts,
    calls,
    progressed,
    without_task,
)
from holdfast.providers.contract import Code, Made, ProviderError, TaskState

_TRIES: Final = 5
"""Failures after which a snapshot is said to have failed; it is still tried again."""


def running(world: World, now: datetime) -> Step | None:
    state = world.task
    if state is None or not world.before.task_ref:
        return None
    if not state.done:
        return progressed(world, state, now)
    if state.lost:
        # The provider does not know the task any more; it is asked again, and has the snapshot or not.
        return calls(without_task(world), Call.TAKE)
    if state.error:
        return failed(world, ProviderError(state.code or Code.INTERNAL, state.error), now)
    made = next((each.id for each in world.before.provider_status.values() if each.id), "")
    return taken(world, Made(id=made), state, world.virtual_bytes, now)


def failing(world: World, now: datetime) -> Step | None:
    """A snapshot that could not be taken is tried again after a while, or at once when the spec was changed."""
    is_observed = world.before.observed_generation == world.object.meta.generation
    known = retry_policies.waits(world.before.failed, now, is_observed=is_observed)
    return None if known is None else _retries(world, known, now)


def record(world: World, now: datetime) -> Step | None:
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
    message = "the provider is asked to take the snapshot"
    return Step(status=status, reason=SnapshotReason.CREATING, message=message, outcome=Again(pacing.SOON, message))


def take(world: World, now: datetime) -> Step | None:
    return calls(world, Call.TAKE)


def on_provider(world: World, id: str, now: datetime, *, available: bool) -> dict[str, ProviderSnapshotStatus]:
    """The snapshot on its provider."""
    assert world.provider is not None, "the provider answered"
    label = provider_label(world.object.key.namespace, world.provider[0].key)
    there = ProviderSnapshotStatus(
        available=available,
        id=id,
        last_updated=times.format(now),
        message="the machine can be reverted to it" if available else TAKING,
        state=(SnapshotPhase.READY if available else SnapshotPhase.CREATING).value,
    )
    return {label: there}


def taken(world: World, made: Made, state: TaskState, virtual_bytes: int | None, now: datetime) -> Step:
    """The provider has taken the snapshot."""
    size, parent = state.result.get("size_bytes"), state.result.get("parent")
    above = next((each for each in world.siblings if parent and each.status.snapshot_id == parent), None)
    done = world.having(
        phase=SnapshotPhase.READY,
        snapshot_id=made.id,
        task_ref=None,
        progress=None,
        failed=None,
        completion_time=times.format(now),
        size=None if not size else str(Quantity.of_bytes(int(size))),
        virtual_size=None if virtual_bytes is None else str(Quantity.of_bytes(virtual_bytes)),
        parent=None if above is None else above.reference,
        provider_status=on_provider(world, made.id, now, available=True),
    )
    step = kept(replace(done, task=None), now)
    assert step is not None, "it is taken"
    return step


def failed(world: World, error: ProviderError, now: datetime) -> Step:
    """A call or a task that failed once more.  A snapshot of a schedule that has failed is not tried again."""
    return _retries(world, attempts(world, error, now, most=_TRIES if schedule_of(world.object) else None), now)


def _retries(world: World, known: FailedAttempts, now: datetime) -> Step:
    """A snapshot that could not be taken: it has failed if a user must correct it, or after some tries."""
    is_failed = known.reason in CORRECTED_BY_USER or known.count >= _TRIES
    phase = SnapshotPhase.FAILED if is_failed else SnapshotPhase.CREATING
    status = msgspec.structs.replace(
        world.before, phase=phase, failed=known, task_ref=None, progress=None, provider_status={}
    )
    due = times.read(known.next_time)
    return Step(
        status=status,
        reason=reason_named(known.reason),
        message=f"taking it failed {known.count} times: {known.message}",
        outcome=Done() if due is None else until(due, now=now, because="the snapshot is tried again"),
    )
