"""What is done for a VMSnapshot next: one step, by the first rule that applies.

That a snapshot is about to be taken is recorded before the provider is asked, so a VMSnapshot without a record has
nothing on the provider.  The provider knows the snapshot by a name with the UID of the VMSnapshot, so a request that is
repeated after a lost reply finds the snapshot that it made.

The rules are in these modules: `preconditions` (what it needs), `schedules`, `retention` (a snapshot that is taken),
`creation` and `deletion`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from holdfast.operators.virtualmachine.snapshots import creation, deletion, preconditions, retention, schedules
from holdfast.operators.virtualmachine.snapshots.observe import World
from holdfast.operators.virtualmachine.snapshots.steps import Step

Rule = Callable[[World, datetime], Step | None]


def next_step(world: World, now: datetime) -> Step:
    """The step of the first rule that applies."""
    world = _related(world)
    rules = _DELETION_RULES if world.object.deleting else _RULES
    return next(step for rule in rules if (step := rule(world, now)) is not None)


def _related(world: World) -> World:
    """The world with the snapshots that this one builds on, and those that build on it."""
    by_uid = {each.object.uid: each for each in world.siblings}
    parent = world.before.parent
    while parent is not None and (parent.uid not in by_uid or by_uid[parent.uid or ""].object.deleting):
        # What builds on a snapshot that is deleted builds on what that was built on.
        parent = by_uid[parent.uid or ""].status.parent if parent.uid in by_uid else None
    children = tuple(
        each.reference
        for each in world.siblings
        if each.status.parent is not None and each.status.parent.uid == world.object.uid and not each.object.deleting
    )
    return world.having(parent=parent, children=children)


_RULES: Final[tuple[Rule, ...]] = (
    preconditions.invalid,
    preconditions.machine_deleted,
    schedules.scheduled,
    retention.kept,
    preconditions.machine,
    preconditions.unanswered,
    creation.running,
    creation.failing,
    preconditions.unsupported,
    creation.record,
    creation.take,
)

_DELETION_RULES: Final[tuple[Rule, ...]] = (
    deletion.nothing_left,
    deletion.forced,
    deletion.unreachable,
    preconditions.unanswered,
    deletion.under_way,
    deletion.failing,
    deletion.delete,
)
