"""What is done for a VirtualMachine next: one step, by the first rule that applies.

What the spec refers to must exist, the provider must answer, a task that is under way is waited for, and then the
machine is created, reverted, stopped, changed, started and rebooted, in this order.  `calls.act` makes the calls; a
call that is done at once leads to the next step in the same pass, and a task is recorded in the status before anything
else is done.

The rules are in these modules: `preconditions` (what it needs), `operations` (tasks and failures), `creation`,
`changes` (snapshots, hardware), `power` (with hooks), `ready` (nothing is left to do) and `deletion`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from holdfast.operators.virtualmachine.machines import (
    changes,
    creation,
    deletion,
    operations,
    power,
    preconditions,
    ready,
)
from holdfast.operators.virtualmachine.machines.facts import Facts
from holdfast.operators.virtualmachine.machines.steps import Step

Rule = Callable[[Facts], Step | None]


def next_step(facts: Facts) -> Step:
    """The step of the first rule that applies."""
    rules = _DELETION_RULES if facts.world.object.deleting else _RULES
    step = next(step for rule in rules if (step := rule(facts)) is not None)
    drift = facts.drift
    return replace(step, drift=step.drift or drift) if drift and not facts.world.object.deleting else step


_RULES: Final[tuple[Rule, ...]] = (
    preconditions.invalid,
    preconditions.missing_references,
    preconditions.provider,
    preconditions.unanswered,
    operations.running,
    operations.failing,
    creation.absent,
    power.held,
    changes.revert,
    changes.report_drift,
    power.stop,
    changes.reconfigure,
    power.start,
    power.reboot,
    power.post_start,
    ready.settled,
)

_DELETION_RULES: Final[tuple[Rule, ...]] = (
    deletion.gone,
    deletion.forced,
    deletion.unreachable,
    deletion.under_way,
    deletion.failing,
    deletion.delete,
)
