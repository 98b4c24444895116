"""The step of a machine that is as its spec asks for.  Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast.kernel.outcomes import Again, Done, Outcome, soonest, until
from holdfast.kinds.virtrigaud.machines import OperationType, PowerState, VirtualMachinePhase
from holdfast.meta import times
from holdfast.operators.virtualmachine import pacing
from holdfast.operators.virtualmachine.machines import hardware
from holdfast.operators.virtualmachine.machines.facts import Facts
from holdfast.operators.virtualmachine.machines.steps import WORDS, Step, due_at
from holdfast.operators.virtualmachine.machines.windows import may_restart, next_opening
from holdfast.operators.virtualmachine.reasons import MachineReason

_ADDRESSES: Final = timedelta(hours=1)
"""How long the addresses of a guest are waited for."""


def settled(facts: Facts) -> Step:
    """The machine is as its spec asks for, but for what waits for a restart."""
    running = facts.power is not PowerState.OFF
    found = hardware.difference(facts)
    pending, outcome = (*found.restart, *found.kept), _addresses(facts)
    reason, message = MachineReason.SUCCEEDED, "the machine runs" if running else "the machine is off"
    if found.restart:
        opening = next_opening(facts.world.machine.spec.reconfigure, facts.now)
        when = "" if opening is None else f" at {times.format(opening)}"
        message += f"; changes wait for a restart{when}: {', '.join(found.restart)}"
        if opening is not None:
            outcome = until(opening, now=facts.now, because="a maintenance window opens")
    failed = facts.failed if facts.failed and facts.failed.type is OperationType.RECONFIGURE else None
    if failed is not None and (found.online or found.offline):
        due = due_at(facts, failed)
        message = f"{message}; {WORDS[failed.type]} failed {failed.failures} times: {failed.message}"
        if found.online or may_restart(facts.world.machine.spec.reconfigure, facts.now):
            outcome = soonest((outcome, until(due, now=facts.now, because="the change is tried again")))
    else:
        failed = None
    return Step(
        phase=VirtualMachinePhase.RUNNING if running else VirtualMachinePhase.STOPPED,
        reason=reason,
        message=message,
        settled=True,
        pending=pending,
        outcome=outcome,
        operation=failed,
    )


def _addresses(facts: Facts) -> Outcome:
    """When to look for the addresses of a guest: when the provider says, or after twice the time, for a while."""
    found = facts.description
    assert found is not None, "the machine exists"
    if facts.power is not PowerState.ON:
        return Done()
    if found.again_after is not None:
        return Again(pacing.as_said(found.again_after, otherwise=pacing.SOON), "the guest starts")
    if found.ips:
        return Done()
    since = _ready_since(facts)
    waited = facts.now - since
    if waited > _ADDRESSES:
        return Done()
    return Again(max(waited, pacing.LOOK), "the guest has no address yet")


def _ready_since(facts: Facts) -> datetime:
    found = next((each for each in facts.world.before.conditions if each.type == "Ready"), None)
    if found is None or found.status != "True":
        return facts.now
    return times.read(found.last_transition_time) or facts.now
