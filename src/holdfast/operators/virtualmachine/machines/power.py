"""Starts, stops and reboots of a machine, with the hooks around them.  Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.kernel.outcomes import Again, until
from holdfast.kinds.virtrigaud.machines import Operation, OperationType, PowerState
from holdfast.meta import durations
from holdfast.operators.virtualmachine import names, pacing
from holdfast.operators.virtualmachine.machines.facts import HOLD, REQUEST, Facts
from holdfast.operators.virtualmachine.machines.observe import World
from holdfast.operators.virtualmachine.machines.ready import settled
from holdfast.operators.virtualmachine.machines.steps import Call, Step, began, calls, due_at, is_done, tried_lately
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.runtime.decisions import Notice

_HOOK_TRIES: Final = 5
"""How often a hook after the start is tried."""


def held(facts: Facts) -> Step | None:
    """Keep a machine off that is being migrated, or was.

    It is stopped once for each migration, also if it is off: a start may still be under way on the provider, where the
    requests for one machine are carried out in their order.
    """
    hold = facts.hold
    if not hold:
        return None
    if facts.held_for != hold or facts.power is not PowerState.OFF:
        return _stopped(facts, graceful=True, details={HOLD: hold})
    by = f"VMMigration {hold.partition('/')[0]} keeps it off; the annotation {names.MIGRATION_HOLD} says so"
    return replace(settled(facts), message=f"the machine is off: {by}")


def stop(facts: Facts) -> Step | None:
    if facts.power is not PowerState.ON or facts.wanted_power is PowerState.ON:
        return None
    return _stopped(facts)


def _stopped(facts: Facts, *, graceful: bool = False, details: dict[str, str] | None = None) -> Step:
    """Stop a machine that runs: with its hook first, and gracefully where the spec says so."""
    spec = facts.world.machine.spec
    lifecycle = spec.lifecycle
    hook = lifecycle.pre_stop if lifecycle and facts.power is not PowerState.OFF else None
    if hook is not None and not is_done(facts, OperationType.PRE_STOP):
        return calls(facts, Call(type=OperationType.PRE_STOP, handler=hook))
    graceful = graceful or spec.power_state is PowerState.OFF_GRACEFUL
    seconds = _graceful_seconds(facts.world)
    return calls(
        facts,
        Call(
            type=OperationType.SHUTDOWN if graceful else OperationType.POWER_OFF,
            graceful_seconds=seconds,
            details=details or {},
        ),
    )


def _graceful_seconds(world: World) -> int:
    lifecycle = world.machine.spec.lifecycle
    given = lifecycle.graceful_shutdown_timeout if lifecycle else None
    return max(int(durations.parse(given or "60s").total_seconds()), 1)


def start(facts: Facts) -> Step | None:
    if facts.power is PowerState.ON or facts.wanted_power is not PowerState.ON:
        return None
    return calls(facts, Call(type=OperationType.POWER_ON))


def reboot(facts: Facts) -> Step | None:
    request = facts.world.object.meta.annotations.get(names.REBOOT)
    if not request or request == facts.rebooted_for or facts.power is not PowerState.ON:
        return None
    return calls(facts, Call(type=OperationType.REBOOT, details={REQUEST: request}))


def post_start(facts: Facts) -> Step | None:
    """The hook after a start, once the guest has an address; it is given up after some failures."""
    lifecycle = facts.world.machine.spec.lifecycle
    hook = lifecycle.post_start if lifecycle else None
    if hook is None or facts.power is not PowerState.ON:
        return None
    asked = is_done(facts, OperationType.POWER_ON) or _is_recorded(facts, OperationType.POST_START)
    if not asked or is_done(facts, OperationType.POST_START):
        return None
    failures = facts.failed.failures or 0 if facts.failed else 0
    assert facts.description is not None, "the machine exists"
    if not facts.description.ips and hook.snapshot is None and failures < _HOOK_TRIES:
        waits = Operation(type=OperationType.POST_START, start_time=began(facts, OperationType.POST_START))
        step = settled(facts)
        outcome = (
            step.outcome if isinstance(step.outcome, Again) else Again(pacing.LOOK, "the guest has no address yet")
        )
        return replace(step, operation=waits, outcome=outcome)
    if facts.failed is not None and tried_lately(facts, OperationType.POST_START):
        outcome = until(due_at(facts, facts.failed), now=facts.now, because="the hook is tried again")
        return replace(settled(facts), operation=facts.failed, outcome=outcome)
    if failures >= _HOOK_TRIES:
        said = facts.failed.message if facts.failed else ""
        notice = Notice(
            type="Warning", reason=MachineReason.HOOK_FAILED.value, message=f"spec.lifecycle.postStart: {said}"
        )
        return replace(settled(facts), notices=(notice,))
    return calls(facts, Call(type=OperationType.POST_START, handler=hook))


def _is_recorded(facts: Facts, type: OperationType) -> bool:
    return facts.world.operation is not None and facts.world.operation.type is type
