"""Operations that are under way, or that failed and are tried again.  Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.kernel.outcomes import Again, until
from holdfast.kinds.virtrigaud.machines import OperationType
from holdfast.meta import times
from holdfast.operators.virtualmachine import pacing
from holdfast.operators.virtualmachine.machines.facts import Facts, start_of
from holdfast.operators.virtualmachine.machines.steps import WORDS, Step, due_at, fails, waits, works
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.reasons import CORRECTED_BY_USER, MachineReason

_IN_THEIR_TURN: Final = frozenset({OperationType.RECONFIGURE, OperationType.POST_START})
"""What may fail without keeping a machine from anything else."""


def running(facts: Facts) -> Step | None:
    if facts.running is None:
        return None
    operation, state = facts.running
    after = pacing.next_look(state, start_of(operation, facts.now), facts.now)
    return replace(
        works(facts, operation.type), operation=operation, outcome=Again(after, f"task {operation.task_ref} is due")
    )


def failing(facts: Facts) -> Step | None:
    """An operation that failed is tried again after a while, or at once when the spec was changed."""
    failed = facts.failed
    if failed is None or not facts.is_observed:
        return None
    by_user, failures = failed.reason in CORRECTED_BY_USER, failed.failures or 1
    last = times.read(failed.last_failure_time) or facts.now
    due = last + pacing.BACKOFF.cap if by_user else due_at(facts, failed)
    if demand.needs_place(facts.world.object, facts.world.machine) or demand.is_elsewhere(facts.world.machine, failed):
        return None
    if due <= facts.now or (failed.type in _IN_THEIR_TURN and facts.exists):
        return None
    message = f"{WORDS[failed.type]} failed {failures} times: {failed.message}"
    reason = next((each for each in MachineReason if each == failed.reason), MachineReason.FAILED)
    step = fails(facts, reason, message) if by_user else waits(facts, reason, message)
    return replace(step, operation=failed, outcome=until(due, now=facts.now, because="it is tried again"))
