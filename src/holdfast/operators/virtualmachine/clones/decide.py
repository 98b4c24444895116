"""What is done for a VMClone next: one step, by the first rule that applies.

That a clone is about to be made is recorded before the provider is asked.  The provider knows it by a name with the UID
of the VMClone, so a request that is repeated finds the clone that it made.  The VirtualMachine that adopts it has the
same UID in an annotation: one of the same name that has not is never touched.

The rules are in these modules: `preconditions` (what it needs), `creation`, `target` (the VirtualMachine that was made)
and `deletion`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from holdfast.operators.virtualmachine.clones import creation, deletion, preconditions, target
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.steps import Step

Rule = Callable[[World, datetime], Step | None]


def next_step(world: World, now: datetime) -> Step:
    """The step of the first rule that applies."""
    rules = _DELETION_RULES if world.object.deleting else _RULES
    return next(step for rule in rules if (step := rule(world, now)) is not None)


_RULES: Final[tuple[Rule, ...]] = (
    target.completed,
    preconditions.invalid,
    preconditions.taken_name,
    target.made,
    preconditions.source,
    preconditions.unanswered,
    creation.running,
    creation.failing,
    preconditions.unsupported,
    creation.adopt,
    preconditions.place,
    creation.record,
    creation.from_image,
    creation.ask,
)

_DELETION_RULES: Final[tuple[Rule, ...]] = (deletion.nothing_left, deletion.unreachable, deletion.remove)
