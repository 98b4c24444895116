"""The status of a VMSet: counts, the update, every machine, conditions, and the Events that follow from them.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel import floors
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.decisions import Done, Hold
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.reasons import Code, count, some
from holdfast.kinds.virtrigaud.selectors import LabelSelector
from holdfast.kinds.virtrigaud.sets import VMSetUpdatePhase
from holdfast.meta import times
from holdfast.operators.virtualmachine.placement.demand import UNPLACEABLE
from holdfast.operators.virtualmachine.sets.observe import Machine
from holdfast.operators.virtualmachine.sets.reasons import SetReason
from holdfast.operators.virtualmachine.sets.update import Facts
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced, Invalid, present

INVALID: Final = Invalid(conditions={"Ready": False, "Progressing": False})

ANNOUNCED: Final[Announced] = {
    ("Ready", "True"): "Normal",
    ("ReplicaFailure", "True"): "Warning",
    ("FloorHeld", "False"): "Warning",
    ("FloorLowered", "True"): "Warning",
    ("FloorNotGuaranteed", "True"): "Warning",
}

_MOST: Final = 1000
"""The most machines that a list of the status names."""


def report(facts: Facts, now: datetime, failure: Failure | None = None) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events; `failure` is the request that the API server refused, if it did."""
    fleet, live = facts.fleet, facts.live
    current = _current(facts)
    fields = {
        "replicas": len(live),
        "readyReplicas": fleet.ready,
        "availableReplicas": fleet.available,
        "updatedReplicas": len(facts.updated),
        "currentReplicas": sum(each.revision == current for each in live),
        "currentRevision": current,
        "updateRevision": facts.target.revision,
        # The names of revisions are generated, so none ever collides.
        "collisionCount": 0,
        "selector": selector_text(facts.world.spec.selector),
        "floor": msgspec.to_builtins(facts.floor),
        "updateStatus": _update(facts, now, failure),
        "vmStatus": [_machine(each) for each in facts.world.machines][:_MOST] or None,
    }
    said, turned = status.report(
        facts.world.object, verdicts(facts, failure), now=now, fields=fields, announced=ANNOUNCED
    )
    return said, (*_actions(facts), *turned)


def _current(facts: Facts) -> str | None:
    """The revision of the last complete update; with a partition, that is still the old one."""
    if facts.settled or facts.complete:
        return facts.target.revision
    return facts.world.before.current_revision


def selector_text(selector: LabelSelector) -> str:
    """A selector as the scale subresource writes it."""
    words = [f"{name}={value}" for name, value in sorted(selector.match_labels.items())]
    for each in selector.match_expressions:
        match each.operator:
            case "Exists":
                words.append(each.key)
            case "DoesNotExist":
                words.append(f"!{each.key}")
            case _:
                words.append(f"{each.key} {each.operator.lower()} ({','.join(each.values)})")
    return ",".join(words)


# --- the update


def _phase(facts: Facts, failure: Failure | None) -> VMSetUpdatePhase:
    refusal = facts.step.refusal
    if facts.settled or facts.step.complete:
        return VMSetUpdatePhase.COMPLETED
    if isinstance(refusal, Hold) and refusal.because.code is Code.PAUSED:
        return VMSetUpdatePhase.PAUSED
    if facts.step.blocked is not None:
        return VMSetUpdatePhase.FAILED
    waits = failure is not None or isinstance(facts.step.decision, Hold)
    begun = facts.updated or facts.creates or facts.changes or facts.deletes
    return VMSetUpdatePhase.PENDING if (waits and not facts.updated) or not begun else VMSetUpdatePhase.IN_PROGRESS


def _update(facts: Facts, now: datetime, failure: Failure | None) -> dict[str, Any]:
    kept, phase = facts.kept, _phase(facts, failure)
    done = phase is VMSetUpdatePhase.COMPLETED
    return present(
        {
            "phase": phase.value,
            "message": _progress(facts) if failure is None else failure.message,
            "startTime": kept.start_time or times.format(now),
            "completionTime": (kept.completion_time or times.format(now)) if done else None,
            "progressTime": None if done or facts.at is None else times.format(facts.at),
            "updatedVMs": [each.name for each in facts.updated][:_MOST] or None,
            "pendingVMs": [each.name for each in facts.outdated][:_MOST] or None,
            "waitingVMs": _waiting(facts)[:_MOST] or None,
            "failedVMs": [_failed(each) for each in facts.world.machines if each.failed][:_MOST] or None,
        }
    )


def _progress(facts: Facts) -> str:
    """How far the update is, and what it waits for."""
    because, total = facts.step.because, facts.limits.replicas
    if facts.settled or facts.step.complete:
        kept = len(facts.live) - len(facts.updated)
        rest = f"; {count(kept, 'machine')} below the partition kept at earlier revisions" if kept else ""
        restarts = awaited_restarts(_waiting(facts))
        waits = f"; {restarts}{_unplaceable(facts)}" if restarts else _unplaceable(facts)
        return f"{len(facts.updated)}/{total} VMs have revision {facts.target.revision}{rest}{waits}"
    blocked = facts.step.blocked
    remedy = f"; {blocked.remedy}" if blocked is not None else ""
    updated = min(len(facts.updated), total)  # a machine of the surge replaces one that is still there
    said = f"{facts.world.strategy.value}: {updated}/{total} VMs updated; {because.message}{remedy}"
    return f"{said}{_unplaceable(facts)}"


def _waiting(facts: Facts) -> list[str]:
    """The machines that were changed in place, and wait for a restart that their template does not allow now."""
    return [each.name for each in facts.updated if each.status.pending_changes]


def awaited_restarts(machines: Sequence[str]) -> str:
    """What machines whose changes wait for a restart need, in a sentence; empty if there are none."""
    if not machines:
        return ""
    allowed = "allow it with spec.template.spec.reconfigure.restart Always or InWindow"
    return f"changes of {some(machines)} wait for a restart; {allowed}"


def _unplaceable(facts: Facts) -> str:
    """The machines for which their VMPlacementPolicy has no host."""
    placed = ((each.name, each.status.placement) for each in facts.world.machines if not each.object.deleting)
    waiting = [name for name, place in placed if place is not None and place.phase == UNPLACEABLE]
    return f"; no host is possible for {some(waiting)}: see status.placement of the machine" if waiting else ""


def _failed(machine: Machine) -> dict[str, Any]:
    state, operation = machine.status, machine.status.operation
    ready = next((each for each in state.conditions if each.type == "Ready"), None)
    return present(
        {
            "name": machine.name,
            "reason": (operation.reason if operation else None) or (ready.reason if ready else None),
            "message": (operation.message if operation else None) or state.message,
            "lastAttempt": operation.last_failure_time if operation else None,
            "retryCount": operation.failures if operation else None,
        }
    )


def _machine(machine: Machine) -> dict[str, Any]:
    state = machine.status
    return present(
        {
            "name": machine.name,
            "phase": "Deleting" if machine.object.deleting else state.phase.value if state.phase else "Pending",
            "ready": machine.ready_since is not None and not machine.object.deleting,
            "revision": machine.revision or None,
            "creationTime": machine.object.meta.creation_timestamp,
            "lastUpdateTime": state.last_reconfigure_time,
            "message": state.message,
        }
    )


# --- conditions


def verdicts(facts: Facts, failure: Failure | None = None) -> dict[str, Verdict]:
    """The conditions, in their order; `failure` is the request that the API server refused, if it did."""
    found = {
        "Ready": _ready(facts),
        "Progressing": _progressing(facts),
        "ReplicaFailure": _replica_failure(facts),
        "UpdateInProgress": _updating(facts),
        "Scaling": _scaling(facts),
        **floors.verdicts(facts.floor, facts.limits),
    }
    if failure is not None:
        found["Progressing"] = Verdict.false(SetReason.REQUEST_REFUSED, failure.message)
        found["ReplicaFailure"] = Verdict.true(SetReason.REQUEST_REFUSED, failure.message)
    return found


def _ready(facts: Facts) -> Verdict:
    message = f"{facts.fleet.available:,} of {count(facts.limits.replicas, 'machine')} available"
    if facts.fleet.available >= facts.limits.replicas:
        return Verdict.true(SetReason.ALL_AVAILABLE, message)
    return Verdict.false(SetReason.NOT_AVAILABLE, f"{message}; {facts.step.because.message}{_unplaceable(facts)}")


def _progressing(facts: Facts) -> Verdict:
    because = facts.step.because
    if isinstance(facts.step.verdict.decision, Done):
        return Verdict.false(SetReason.UPDATED, _progress(facts))
    if facts.step.refusal is not None or isinstance(facts.step.decision, Hold):
        return Verdict.false(because.code, _progress(facts))
    return Verdict.true(because.code if facts.settled else SetReason.UPDATING, _progress(facts))


def _replica_failure(facts: Facts) -> Verdict:
    if facts.blocked:
        message = (
            f"{some(facts.blocked)}: a VirtualMachine of that name exists and does not belong to the set; "
            "delete it, or choose another spec.ordinals.start"
        )
        return Verdict.true(SetReason.NAME_TAKEN, message)
    failed = [each.name for each in facts.world.machines if each.failed]
    if failed:
        message = f"{count(len(failed), 'machine')} failed: {some(failed)}; see status.updateStatus.failedVMs"
        return Verdict.true(SetReason.MACHINES_FAILED, message)
    return Verdict.false(SetReason.NO_FAILURE, "no machine has failed")


def _updating(facts: Facts) -> Verdict:
    if facts.settled or facts.step.complete:
        return Verdict.false(SetReason.UPDATED, _progress(facts))
    return Verdict.true(SetReason.UPDATING, _progress(facts))


def _scaling(facts: Facts) -> Verdict:
    live, wanted = len(facts.live), facts.limits.replicas
    message = f"{live:,} of {count(wanted, 'machine')} exist"
    most = facts.limits.ceiling if facts.outdated else wanted
    if live < wanted and not facts.outdated:
        return Verdict.true(SetReason.SCALING_UP, message)
    if live > most:
        return Verdict.true(SetReason.SCALING_DOWN, message)
    return Verdict.false(SetReason.SCALED, message)


# --- Events


def _actions(facts: Facts) -> Iterator[Notice]:
    """The Events about what this reconciliation does."""
    because = facts.step.decision.because
    named = facts.world.named
    for verb, names in (
        ("Creating", [named(index) for index, _ in facts.creates]),
        ("Changing in place", [each.name for each in facts.changes]),
        ("Deleting", [each.name for each in facts.deletes]),
    ):
        if names:
            yield Notice(reason=because.code.value, message=f"{verb} {some(names)}: {because.message}")
