"""Problems of a VMSnapshot that its schema does not find: durations, and the schedule.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMSnapshot
from holdfast.kinds.virtrigaud.snapshots import SnapshotRetentionPolicy, SnapshotSchedule
from holdfast.meta import cron
from holdfast.meta.durations import DurationError
from holdfast.operators.virtualmachine.snapshots.retention import age
from holdfast.operators.virtualmachine.snapshots.schedules import zone_of


def problems(snapshot: VMSnapshot) -> tuple[Problem, ...]:
    """All problems of a spec."""
    spec = snapshot.spec
    return (
        *_retention(spec.retention_policy or SnapshotRetentionPolicy()),
        *_schedule(spec.schedule or SnapshotSchedule()),
    )


def _retention(policy: SnapshotRetentionPolicy) -> Iterator[Problem]:
    for name, text in (("maxAge", policy.max_age), ("gracePeriod", policy.grace_period)):
        path = f"spec.retentionPolicy.{name}"
        try:
            short = text is not None and age(text) < timedelta()
        except DurationError:
            yield Problem(path, f"{text!r} is not a duration", "write one such as 30d or 720h")
        else:
            if short:
                yield Problem(path, f"{text!r} is negative", "write a duration such as 30d or 720h")


def _schedule(schedule: SnapshotSchedule) -> Iterator[Problem]:
    """The problems of a schedule, also of one that is not enabled yet."""
    if schedule.cron_spec is not None or schedule.enabled:
        try:
            cron.parse(schedule.cron_spec or "")
        except cron.CronError as error:
            yield Problem("spec.schedule.cronSpec", str(error))
    if zone_of(schedule) is None:
        message = f"there is no time zone {schedule.timezone!r}"
        yield Problem("spec.schedule.timezone", message, "write one such as UTC or Europe/Berlin")
