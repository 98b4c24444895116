"""What is done for a VMMigration next: one step, by the first rule that applies.

What is about to be made on a provider is recorded before it is asked (`status.artifacts`), so what a lost reply leaves
there is known.  The source is kept off by an annotation, which its controller confirms (`status.heldFor`), before a
target is made that is to run.  It is released only when there is no target any more, so the two never run at the same
time.

The rules are in these modules: `preconditions` (what it needs), `preparation` (storage), `transfer` (of the disk),
`target` (checks, completion) and `undo` (roll-back).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel.outcomes import soonest, until
from holdfast.kinds.virtrigaud.machines import PowerState
from holdfast.kinds.virtrigaud.migrations import MigrationPhase, VMMigrationStatus
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.migrations import preconditions, preparation, target, transfer, undo
from holdfast.operators.virtualmachine.migrations.observe import World
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason, named
from holdfast.operators.virtualmachine.migrations.steps import (
    Step,
    failed,
    is_final,
    is_of_this_spec,
    recorded,
    retries,
    step,
)
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.runtime.decisions import Create, Notice, Patch

_Phase = MigrationPhase

Rule = Callable[[World, datetime], Step | None]


def next_step(world: World, now: datetime) -> Step:
    """The step of the first rule that applies, and no later than the time that the spec allows for the whole."""
    world = _resumed(world, now)
    if world.object.deleting:
        return _deleted(world, now)
    found = next(each for rule in _RULES if (each := rule(world, now)) is not None)
    deadline = _deadline(world)
    if deadline is None or found.status.phase in (_Phase.READY, _Phase.FAILED):
        return found
    wait = until(deadline, now=now, because="the time that the spec allows is over")
    return replace(found, outcome=soonest((found.outcome, wait)))


def _resumed(world: World, now: datetime) -> World:
    """The world once the time of the next attempt has come: it is counted."""
    known = world.before.failed
    due = times.read(known.next_time) if known else None
    last = times.read(world.before.last_retry_time)
    if known is None or due is None or now < due or (last is not None and last >= due):
        return world
    return world.having(retry_count=known.count, last_retry_time=times.format(now))


def _deadline(world: World) -> datetime | None:
    began = times.read(world.before.start_time)
    return None if began is None else began + _timeout(world)


def _timeout(world: World) -> timedelta:
    return durations.parse(world.options.timeout or "4h")


def _rolled_back(world: World, now: datetime) -> Step | None:
    """A migration that failed is rolled back; it begins again when its spec was changed."""
    known = world.before.failed
    if known is None or not is_final(world):
        return None
    reason = named(known.reason)
    back = undo.roll_back(world, now)
    if back is not None:
        return replace(back, reason=reason, message=f"{known.message}; it is rolled back: {back.message}")
    if is_of_this_spec(world):
        count = f" {known.count} times" if known.count > 1 else ""
        message = f"it failed{count}: {known.message}; {undo.left(world)}"
        return step(world, _Phase.FAILED, reason, message, now)
    fresh = replace(world, migration=msgspec.structs.replace(world.migration, status=VMMigrationStatus()))
    return recorded(
        fresh, _Phase.PENDING, MigrationReason.STARTED, "the spec was changed: the migration starts over", now
    )


def _timed_out(world: World, now: datetime) -> Step | None:
    deadline = _deadline(world)
    if deadline is None or now < deadline:
        return None
    message = f"it was not complete within {durations.short(_timeout(world))}"
    return failed(world, MigrationReason.TIMED_OUT, message, now)


def _failing(world: World, now: datetime) -> Step | None:
    """A migration that failed is tried again as its policy says, and at once when the spec was changed."""
    known = world.before.failed
    due = times.read(known.next_time) if known else None
    if known is None or due is None or due <= now or not is_of_this_spec(world):
        return None
    return retries(world, known, now)


def _record(world: World, now: datetime) -> Step | None:
    """Record that the migration begins, and with which machine."""
    if world.before.start_time is not None:
        return None
    assert world.source.machine is not None, "a rule before this one checks it"
    began = world.having(
        start_time=times.format(now), source_vm_uid=world.source.machine[0].uid, source_hold=world.hold
    )
    return recorded(began, _Phase.PENDING, MigrationReason.STARTED, "the migration begins", now)


# --- keeping the source off


def _stop_first(world: World, now: datetime) -> Step | None:
    if not world.migration.spec.source.power_off_before_migration:
        return None
    return _stopped(world, _Phase.VALIDATING, now)


def _stop_last(world: World, now: datetime) -> Step | None:
    """The source is off before a target is made that runs."""
    if not world.migration.spec.target.power_on:
        return None
    return _stopped(world, _Phase.CREATING, now)


def _stopped(world: World, phase: MigrationPhase, now: datetime) -> Step | None:
    if world.is_stopped:
        return None
    assert world.source.machine is not None, "a rule before this one checks it"
    obj, machine = world.source.machine
    message = f"VirtualMachine {obj.key.name} is stopped, and stays off"
    found = step(world, phase, MigrationReason.STOPPING_SOURCE, message, now)
    if world.holds:
        return found
    patch = {"metadata": {"annotations": {names.MIGRATION_HOLD: world.before.source_hold}}}
    because = f"VMMigration {world.object.key.name} needs it off"
    write = Patch(resource=MACHINES, key=obj.key, uid=obj.uid, version=obj.version, patch=patch, because=because)
    notices = [Notice(reason=MigrationReason.STOPPING_SOURCE.value, message=message)]
    ran = machine.status is not None and machine.status.power_state is PowerState.ON
    if phase is _Phase.CREATING and ran:
        since = world.stored.uploaded_at or world.before.start_time
        text = f"VirtualMachine {obj.key.name} ran until now; what it wrote after {since} is not in the target"
        notices.append(Notice(type="Warning", reason=MigrationReason.WRITES_NOT_MOVED.value, message=text))
    return replace(found, writes=(write,), notices=tuple(notices))


# --- creation of the target, and deletion of the migration


def _create(world: World, now: datetime) -> Step | None:
    assert world.wanted is not None, "a rule before this one checks the source"
    manifest = world.wanted.object.wire()
    name = world.migration.spec.target.name
    made = Create(resource=MACHINES, manifest=manifest, because=f"VMMigration {world.object.key.name} makes it")
    found = step(world, _Phase.CREATING, MigrationReason.CREATING, f"VirtualMachine {name} is created", now)
    return replace(found, writes=(made,))


def _deleted(world: World, now: datetime) -> Step:
    """A migration that is complete leaves its target; of any other one nothing is left but the source."""
    back = undo.removed(world, MigrationReason.CLEANING_UP, now) if undo.is_over(world) else undo.roll_back(world, now)
    if back is None:
        found = step(world, world.before.phase or _Phase.PENDING, MigrationReason.CLEANING_UP, "it is deleted", now)
        return replace(found, finalized=True)
    is_waiting = back.call is None and not back.writes
    return (undo.forced(world, now) if is_waiting else None) or back


_RULES: Final[tuple[Rule, ...]] = (
    target.completed,
    _rolled_back,
    _timed_out,
    _failing,
    preconditions.invalid,
    preconditions.taken_name,
    target.made,
    preconditions.source,
    preconditions.references,
    preconditions.unsupported,
    preconditions.unanswered,
    _record,
    preparation.record_disk,
    preparation.mount_storage,
    _stop_first,
    transfer.running,
    transfer.stale_disk,
    transfer.asks,
    _stop_last,
    _create,
)
