"""A VirtualMachine as it is shown: its phase, what is being done to it and how far, and what it waits for.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from holdfast.client.objects import Object
from holdfast.kernel.fleet import State
from holdfast.kinds.virtrigaud import VirtualMachine
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase, VirtualMachineStatus
from holdfast.operators.rollouts import (
    Headline,
    Observed,
    Wire,
    generation_seen,
    is_current,
    is_true,
    left_alone,
    message_of,
    status_of,
)
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.views.descriptions import Age
from holdfast.views.rollouts import Because, RolloutState, Standing, condition, holds, moment, said
from holdfast.views.trees import NEW, Branch, Leaf, Tree

_BLOCKED = frozenset(
    {MachineReason.INVALID_SPEC, MachineReason.NO_CLOUD_INIT_KEY, MachineReason.DRIFTED, MachineReason.IMAGE_MISSING}
)
"""Reasons that end only when a user changes something."""


def fresh(obj: Object) -> bool:
    status = obj.decode(VirtualMachine).status
    return generation_seen(obj, None if status is None else status.observed_generation)


def standing(observed: Observed) -> Standing:
    machine = observed.object.decode(VirtualMachine)
    status = machine.status or VirtualMachineStatus()
    since = holds(status, "Ready")
    operation = status.operation
    made = of_one_machine(
        observed.object,
        "InPlace",
        state=_state(status) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=(status.phase or VirtualMachinePhase.PENDING).value,
        because=_because(status),
        ready=since is not None,
    )
    return left_alone(
        observed.object,
        replace(
            made,
            updated=int(since is not None and not status.pending_changes),
            started=moment(operation.start_time) if operation else None,
            ended=None if since is None else moment(since.last_transition_time),
            warnings=status.pending_changes,
            facts=tuple(_facts(status)),
            more={
                "operation": operation.type.value if operation else None,
                "task": operation.task_ref if operation else None,
                "percentage": operation.percentage if operation else None,
                "id": status.id,
                "powerState": status.power_state.value if status.power_state else None,
                "ips": list(status.ips),
            },
        ),
    )


def of_one_machine(
    obj: Object, strategy: str, *, state: RolloutState, phase: str, because: Because, ready: bool
) -> Standing:
    """The standing of what is done to one machine, without what a kind adds to it."""
    return Standing(
        name=obj.key.name,
        unit="machine",
        strategy=strategy,
        state=state,
        phase=phase,
        because=because,
        desired=1,
        ready=int(ready),
        available=int(ready),
        updated=int(ready),
    )


def _state(status: VirtualMachineStatus) -> RolloutState:
    ready = condition(status, "Ready")
    if ready is not None and ready.status == "True":
        return RolloutState.COMPLETED
    if ready is not None and ready.reason in _BLOCKED:
        return RolloutState.BLOCKED
    return RolloutState.FAILED if status.phase is VirtualMachinePhase.FAILED else RolloutState.UNDER_WAY


def _facts(status: VirtualMachineStatus) -> Iterable[str]:
    operation = status.operation
    if operation is not None:
        task = f" (task {operation.task_ref})" if operation.task_ref else ""
        progress = "" if operation.percentage is None else f", {operation.percentage} %"
        failures = f", failed {operation.failures} times" if operation.failures else ""
        yield f"{operation.type.value}{task}{progress}{failures}"
    if status.power_state is not None:
        yield f"power {status.power_state.value}"
    if status.ips:
        yield f"addresses {', '.join(status.ips)}"


def _because(status: VirtualMachineStatus) -> Because:
    """Why the machine is not further, with how far the operation is that is under way."""
    found, operation = said(condition(status, "Ready")), status.operation
    if operation is None or operation.percentage is None:
        return found
    return Because(found.code, f"{found.message} ({operation.percentage} %)")


def tree(observed: Observed, now: datetime) -> Tree:
    state = standing(observed)
    why = "" if state.ready else state.because.message
    machine = leaf(observed.object, NEW, ready=bool(state.ready), why=why, now=now)
    branch = Branch(name="machine", index=NEW, children=(machine,))
    return Tree(standing=state, branches=(branch,), now=now, size=1)


def leaf(obj: Object, index: int, *, ready: bool, why: str, now: datetime) -> Leaf:
    """A machine as a leaf of a tree."""
    status = obj.decode(VirtualMachine).status or VirtualMachineStatus()
    since = moment(obj.meta.creation_timestamp)
    return Leaf(
        name=status.id or "-",
        index=index,
        state=State.AVAILABLE if ready else State.UNREADY,
        ready=f"{int(ready)}/1",
        node=(status.placement.host if status.placement else None) or "",
        age=now - since if since is not None else timedelta(),
        restarts=0,
        why=why,
    )


def headline(wire: Wire) -> Headline:
    phase = str(status_of(wire).get("phase", "New"))
    return Headline(phase, message_of(wire, "Ready"), is_current(wire) and is_true(wire, "Ready"))


def operations(wire: Wire, age: Age) -> list[list[str]]:
    """What is being done to a machine, as a table."""
    operation = status_of(wire).get("operation")
    if not operation:
        return [["nothing"]]
    progress = operation.get("percentage")
    return [
        ["TYPE", "TASK", "PROGRESS", "AGE", "FAILURES", "REASON"],
        [
            str(operation.get("type", "")),
            str(operation.get("taskRef", "-")),
            "-" if progress is None else f"{progress} %",
            age(operation.get("startTime")),
            str(operation.get("failures", 0)),
            str(operation.get("message", "-")),
        ],
    ]


def placement(wire: Wire, age: Age) -> list[list[str]]:
    """Where a machine is and why there, and why it is not elsewhere, as a table."""
    found = status_of(wire).get("placement")
    if not found:
        return [["chosen when the machine is created"]]
    chosen = " ".join(str(found[name]) for name in ("host", "cluster", "datastore", "zone") if found.get(name))
    rows = [["PLACE", "SCORE", "AGE", "REASON"]]
    score = "-" if found.get("score") is None else str(found["score"])
    since = age(found["lastScheduledTime"]) if found.get("lastScheduledTime") else "-"
    rows.append([chosen or "none", score, since, str(found.get("reason", "-"))])
    rows += [["", "", "", f"not met: {each}"] for each in found.get("unmet", ())]
    rows += [[str(each["host"]), "refused", "", str(each["reason"])] for each in found.get("refused", ())]
    return rows
