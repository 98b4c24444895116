"""Changes of a machine that exists: its state, by a snapshot, and its hardware.  Drift may only be reported.  Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.kernel.outcomes import until
from holdfast.kinds.virtrigaud.machines import OperationType, PowerState
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine.machines import hardware
from holdfast.operators.virtualmachine.machines.facts import SNAPSHOT, Facts
from holdfast.operators.virtualmachine.machines.steps import (
    WORDS,
    Call,
    Step,
    calls,
    due_at,
    fails,
    refuses,
    tried_lately,
    waits,
)
from holdfast.operators.virtualmachine.machines.windows import may_restart
from holdfast.operators.virtualmachine.reasons import MachineReason


def revert(facts: Facts) -> Step | None:
    world, spec = facts.world, facts.world.machine.spec.snapshot
    if spec is None or spec.revert_to_ref is None:
        return None
    name = spec.revert_to_ref.name
    if world.snapshot is None:
        return waits(facts, MachineReason.WAITING_FOR_SNAPSHOT, f"VMSnapshot {name} does not exist")
    obj, snapshot = world.snapshot
    if facts.reverted_to == obj.uid:
        return None
    status = snapshot.status
    if status is None or status.phase is not SnapshotPhase.READY or not status.snapshot_id:
        return waits(facts, MachineReason.WAITING_FOR_SNAPSHOT, f"VMSnapshot {name} is not ready")
    if snapshot.spec.vm_ref.name != world.object.key.name:
        message = f"spec.snapshot.revertToRef: VMSnapshot {name} is of the machine {snapshot.spec.vm_ref.name}"
        return fails(facts, MachineReason.INVALID_SPEC, message)
    return calls(facts, Call(type=OperationType.REVERT, snapshot=status.snapshot_id, details={SNAPSHOT: obj.uid}))


def report_drift(facts: Facts) -> Step | None:
    drift = facts.drift
    if not drift or facts.world.machine.spec.drift_policy != "Report":
        return None
    return replace(waits(facts, MachineReason.DRIFTED, drift), drift=drift)


_PASSING: Final = frozenset({MachineReason.UNAVAILABLE, MachineReason.FAILED})
"""Failures that pass by themselves."""


def reconfigure(facts: Facts) -> Step | None:
    """Change the hardware where that is possible now; what waits for a restart is left to the last rule."""
    seen = facts.world.vm_class and facts.world.vm_class[1].status
    generation = facts.world.vm_class and facts.world.vm_class[0].meta.generation
    if seen is None or seen.observed_generation != generation:
        # The VMClass says first what a change of it will do.
        return None
    found = hardware.difference(facts)
    if found.refused:
        return refuses(facts, "; ".join(found.refused))
    change = found.online
    if change is None and found.offline is not None and may_restart(facts.world.machine.spec.reconfigure, facts.now):
        change = found.offline
    if change is None:
        return None
    if facts.failed is not None and tried_lately(facts, OperationType.RECONFIGURE):
        if facts.power is PowerState.ON or facts.failed.reason not in _PASSING:
            return None
        # A machine that is off is not started before its change was tried again: some can be made only now.
        message = f"{WORDS[facts.failed.type]} failed {facts.failed.failures} times: {facts.failed.message}"
        outcome = until(due_at(facts, facts.failed), now=facts.now, because="the change is tried again")
        return replace(waits(facts, MachineReason.UPDATING, message), outcome=outcome)
    return calls(facts, Call(type=OperationType.RECONFIGURE, change=change, details=hardware.details(change)))
