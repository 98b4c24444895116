"""A snapshot that is taken: when it expires, and when it is deleted.  Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel.outcomes import until
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine.reasons import SnapshotReason
from holdfast.operators.virtualmachine.snapshots.observe import Sibling, World, is_kept, schedule_of
from holdfast.operators.virtualmachine.snapshots.steps import Step, delete_itself

_GRACE: Final = timedelta(hours=24)
_LONG: Final = re.compile(r"^(?=\d)(?:(\d{1,5})w)?(?:(\d{1,6})d)?(.*)$", re.DOTALL)


def kept(world: World, now: datetime) -> Step | None:
    """A snapshot that is there: until it expires, and after that until the grace period is over."""
    before = world.before
    if before.completion_time is None:
        return None
    end = expiry(world)
    status = msgspec.structs.replace(
        before, phase=SnapshotPhase.READY, expiry_time=None if end is None else times.format(end)
    )
    step = Step(status=status, reason=SnapshotReason.CREATED, message="the snapshot is taken", ready=True)
    if end is None:
        return replace(step, message="the snapshot is taken, and pinned") if is_kept(world.snapshot) else step
    if now < end:
        return replace(step, outcome=until(end, now=now, because="the snapshot expires"))
    deletion = end + grace(world)
    message = f"the snapshot expired at {times.format(end)}, and is deleted at {times.format(deletion)}"
    status = msgspec.structs.replace(status, phase=SnapshotPhase.EXPIRED)
    step = Step(status=status, reason=SnapshotReason.EXPIRED, message=message)
    if now < deletion:
        return replace(step, outcome=until(deletion, now=now, because="the grace period of the snapshot ends"))
    return replace(step, writes=(delete_itself(world, message),))


def age(text: str) -> timedelta:
    """Read a duration that may begin with weeks and days, of 24 hours each: ``2w``, ``30d``, ``1d12h``, ``720h``."""
    match = _LONG.match(text)
    weeks, days, rest = match.groups() if match else (None, None, text)
    if weeks is None and days is None:
        return durations.parse(text)
    return timedelta(weeks=int(weeks or 0), days=int(days or 0)) + (durations.parse(rest) if rest else timedelta())


def expiry(world: World) -> datetime | None:
    """When the snapshot expires or has expired, by its age or because newer ones took its place; None if it does not.

    It expires by count at the moment at which as many newer ones were there as are kept, so that no record is needed.
    Pinned ones neither expire nor count.
    """
    policy = world.retention
    if policy is None or is_kept(world.snapshot):
        return None
    found = []
    created = times.read(world.before.creation_time)
    if policy.max_age is not None and created is not None:
        found.append(created + age(policy.max_age))
    if policy.max_count is not None:
        newer = sorted((each for each in world.siblings if _is_newer(each, world)), key=_order)
        if len(newer) >= policy.max_count:
            moment = times.read(newer[policy.max_count - 1].status.completion_time)
            found += [moment] if moment is not None else []
    return min(found, default=None)


def grace(world: World) -> timedelta:
    given = world.retention.grace_period if world.retention else None
    return _GRACE if given is None else age(given)


def _is_newer(each: Sibling, world: World) -> bool:
    """Whether a snapshot of the same machine and schedule was taken after this one."""
    own, other = world.before, each.status
    return (
        not each.object.deleting
        and other.completion_time is not None
        and other.machine_uid == own.machine_uid
        and each.schedule == schedule_of(world.object)
        and not is_kept(each.snapshot)
        and _order(each) > (own.creation_time or "", world.object.key.name)
    )


def _order(each: Sibling) -> tuple[str, str]:
    return each.status.creation_time or "", each.object.key.name
