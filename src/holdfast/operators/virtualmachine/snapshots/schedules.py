"""What the schedule of a VMSnapshot does: which VMSnapshots it makes, and which it deletes.  Pure.

A snapshot is made under a name that has the time of the schedule, so a run that is repeated after a crash is the same
run.  Times that went by are made up for once, by the latest of them.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

import msgspec

from holdfast.kernel.outcomes import Done, until
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase, SnapshotSchedule
from holdfast.meta import cron, times
from holdfast.meta.names import make_name
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.reasons import SnapshotReason
from holdfast.operators.virtualmachine.resources import SNAPSHOTS
from holdfast.operators.virtualmachine.snapshots.observe import Sibling, World, is_kept
from holdfast.operators.virtualmachine.snapshots.steps import Step
from holdfast.runtime.decisions import Create, Delete, Notice, Write
from holdfast.runtime.status import wire

_COUNTED: Final = 100
"""How many missed times are counted at most."""

_LABEL_MAX: Final = 63
_SUCCEEDED: Final = 3
_FAILED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """
    due     the latest time for which no snapshot was made yet; None if there is none
    missed  how many times before that went by
    next    the first time that is still to come
    """

    due: datetime | None
    missed: int
    next: datetime | None


def scheduled(world: World, now: datetime) -> Step | None:
    """A VMSnapshot with a schedule is not taken itself: it makes others, and deletes those beyond its limits."""
    schedule = world.snapshot.spec.schedule
    if schedule is None or not schedule.enabled:
        return _disabled(world)
    step = _suspended(world, "suspend is true") if schedule.suspend else _in_force(world, schedule, now)
    return replace(step, writes=(*history(world), *step.writes))


def _disabled(world: World) -> Step | None:
    """The step of a VMSnapshot that had a schedule before; None for one that is to be taken itself."""
    before = world.before
    had = before.next_schedule_time is not None or before.last_schedule_time is not None
    return _suspended(world, "enabled is false") if had and before.machine_uid is None else None


def _suspended(world: World, why: str) -> Step:
    return _step(world, SnapshotReason.SUSPENDED, f"spec.schedule.{why}: no snapshots are taken")


def _in_force(world: World, schedule: SnapshotSchedule, now: datetime) -> Step:
    table = timetable(world, now)
    next = None if table.next is None else times.format(table.next)
    name = world.snapshot.spec.vm_ref.name
    message = f"the next snapshot of {name} is due at {next}" if next else "it is never due"
    outcome = Done() if table.next is None else until(table.next, now=now, because="a snapshot is due")
    waiting = replace(_step(world.having(next_schedule_time=next), SnapshotReason.SCHEDULED, message), outcome=outcome)
    if table.due is None:
        return waiting
    since = f"a snapshot is due since {times.format(table.due)}"
    if not world.machine_id or world.machine is None or world.machine[0].deleting:
        message = f"{since}, and VirtualMachine {name} does not exist yet"
        phase = world.before.phase or SnapshotPhase.PENDING
        status = msgspec.structs.replace(waiting.status, phase=phase)
        return replace(waiting, status=status, reason=SnapshotReason.WAITING, message=message, ready=False)
    busy = active(world)
    if busy and (schedule.concurrency_policy or "Forbid") == "Forbid":
        message = f"{since}, and {busy[0].object.key.name} is still being taken"
        return replace(waiting, reason=SnapshotReason.ACTIVE, message=message)
    return _made(world, schedule, waiting, table.due, table.missed)


def _made(world: World, schedule: SnapshotSchedule, step: Step, due: datetime, missed: int) -> Step:
    """The step with the VMSnapshot that is due."""
    created = run(world, due)
    notices = [
        Notice(reason=SnapshotReason.STARTED.value, message=f"VMSnapshot {created.manifest['metadata']['name']}")
    ]
    if missed:
        text = f"{missed} times of the schedule went by without a snapshot before {times.format(due)}"
        notices.append(Notice(type="Warning", reason=SnapshotReason.MISSED.value, message=text))
    return replace(
        step,
        status=msgspec.structs.replace(step.status, last_schedule_time=times.format(due)),
        writes=(*(replaced(world) if schedule.concurrency_policy == "Replace" else ()), created),
        notices=tuple(notices),
    )


def _step(world: World, reason: SnapshotReason, message: str) -> Step:
    """The step of a schedule; the time of its last snapshot is taken from the snapshots if the status does not say."""
    last = last_time(world)
    status = msgspec.structs.replace(
        world.before, phase=SnapshotPhase.READY, last_schedule_time=None if last is None else times.format(last)
    )
    return Step(status=status, reason=reason, message=message, ready=True)


def zone_of(schedule: SnapshotSchedule) -> tzinfo | None:
    if not schedule.timezone or schedule.timezone == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(schedule.timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def timetable(world: World, now: datetime) -> Timetable:
    """What is due, by the last snapshot that was made: as the status has it, or as those that exist tell."""
    schedule = world.snapshot.spec.schedule
    assert schedule is not None, "it is a schedule"
    found, zone = cron.parse(schedule.cron_spec or ""), zone_of(schedule) or UTC
    last = last_time(world) or times.read(world.object.meta.creation_timestamp) or now
    due = found.latest(last, now, zone)
    missed, step = 0, None if due is None else found.next(last, zone)
    while due is not None and step is not None and step < due and missed < _COUNTED:
        missed, step = missed + 1, found.next(step, zone)
    return Timetable(due=due, missed=missed, next=found.next(due or (last if _is_interval(found) else now), zone))


def _is_interval(found: cron.Cron | cron.Every) -> bool:
    return isinstance(found, cron.Every)


def last_time(world: World) -> datetime | None:
    """The time of the schedule for which a snapshot was last made."""
    made = (times.read(each.object.meta.annotations.get(names.SCHEDULED_AT)) for each in world.runs)
    known = (times.read(world.before.last_schedule_time), *made)
    return max((each for each in known if each is not None), default=None)


def active(world: World) -> tuple[Sibling, ...]:
    """The snapshots of the schedule that are still being taken."""
    ended = (SnapshotPhase.READY, SnapshotPhase.EXPIRED, SnapshotPhase.FAILED, SnapshotPhase.DELETING)
    return tuple(each for each in world.runs if not each.object.deleting and each.status.phase not in ended)


def run(world: World, due: datetime) -> Create:
    """The VMSnapshot for a time of the schedule."""
    return Create(
        resource=SNAPSHOTS,
        manifest=_manifest(world, due),
        because=f"the schedule of {world.object.key.name} is due at {times.format(due)}",
        wave=1,
    )


def _manifest(world: World, due: datetime) -> dict[str, Any]:
    key, spec = world.object.key, wire(world.snapshot.spec)
    label = {names.SCHEDULE: key.name} if len(key.name) <= _LABEL_MAX else {}
    return {
        "apiVersion": SNAPSHOTS.api_version,
        "kind": SNAPSHOTS.kind,
        "metadata": {
            "name": make_name(key.name, str(int(due.timestamp()))),
            "namespace": key.namespace,
            "labels": label,
            "annotations": {names.SCHEDULE_UID: world.object.uid, names.SCHEDULED_AT: times.format(due)},
        },
        "spec": {name: value for name, value in spec.items() if name != "schedule"},
    }


def replaced(world: World) -> Iterator[Write]:
    """The deletions of what is still being taken, for the policy Replace."""
    for each in active(world):
        yield _delete(each, "another snapshot of the schedule takes its place")


def history(world: World) -> Iterator[Write]:
    """The deletions of runs beyond the limits of the schedule.

    The limit of successful ones counts only without a retention policy by age or count, which is the more exact one.
    """
    schedule, policy = world.snapshot.spec.schedule or SnapshotSchedule(), world.retention
    limit = schedule.successful_jobs_history_limit
    if policy is None or (policy.max_age is None and policy.max_count is None):
        taken = [each for each in world.runs if each.status.completion_time is not None and not is_kept(each.snapshot)]
        yield from _surplus(taken, _SUCCEEDED if limit is None else limit, "successfulJobsHistoryLimit")
    failed = [
        each for each in world.runs if each.status.phase is SnapshotPhase.FAILED and each.status.completion_time is None
    ]
    limit = schedule.failed_jobs_history_limit
    yield from _surplus(failed, _FAILED if limit is None else limit, "failedJobsHistoryLimit")


def _surplus(runs: list[Sibling], limit: int, field: str) -> Iterator[Write]:
    there = [each for each in runs if not each.object.deleting]
    there.sort(key=lambda each: each.object.meta.annotations.get(names.SCHEDULED_AT, ""), reverse=True)
    for each in there[limit:]:
        yield _delete(each, f"spec.schedule.{field} is {limit}")


def _delete(each: Sibling, because: str) -> Delete:
    return Delete(resource=SNAPSHOTS, key=each.object.key, uid=each.object.uid, because=because)
