"""What is done for a VirtualMachine next: one step, found by a ladder of facts; the first rung that applies decides.

What the spec refers to must exist, the provider must answer, a task that is under way is waited for, and then the
machine is created, reverted, stopped, changed, started and rebooted, in this order.  `calls.act` makes the calls; a
call that is done at once leads to the next step in the same pass, and a task is recorded in the status before anything
else is done.

The rungs are in these modules: `preconditions` (what it needs), `operations` (tasks and failures), `creation`,
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

Rung = Callable[[Facts], Step | None]


def next_step(facts: Facts) -> Step:
    """The step of the first rung that applies."""
    rungs = _DELETION if facts.world.object.deleting else _LADDER
    step = next(step for rung in rungs if (step := rung(facts)) is not None)
    drift = facts.drift
    return replace(step, drift=step.drift or drift) if drift and not facts.world.object.deleting else step


_LADDER: Final[tuple[Rung, ...]] = (
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

_DELETION: Final[tuple[Rung, ...]] = (
    deletion.gone,
    deletion.forced,
    deletion.unreachable,
    deletion.under_way,
    deletion.failing,
    deletion.delete,
)
