"""A VMSet as it is shown: where its update stands, and its revisions and machines as a tree.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.objects import Object
from holdfast.kernel.fleet import State
from holdfast.kernel.reasons import Code
from holdfast.kinds.virtrigaud.sets import VMSet, VMSetStatus, VMSetUpdatePhase, VMSetUpdateStatus
from holdfast.operators.rollouts import (
    Headline,
    Wire,
    generation_seen,
    is_current,
    is_true,
    message_of,
    status_of,
)
from holdfast.operators.virtualmachine.sets.observe import Machine
from holdfast.operators.virtualmachine.sets.reasons import SetReason
from holdfast.operators.virtualmachine.sets.render import REVISION
from holdfast.operators.virtualmachine.sets.status import awaited_restarts
from holdfast.runtime.controllers import View
from holdfast.views.descriptions import Age
from holdfast.views.rollouts import (
    UNSEEN,
    Because,
    Floor,
    Record,
    RolloutState,
    Standing,
    condition,
    floor_warnings,
    holds,
    marks,
    moment,
)
from holdfast.views.trees import NEW, OLD, OTHER, Branch, Leaf, Tree

_VERBS: Final = {Code.PAUSED.value: "resume", Code.PROGRESS_DEADLINE_EXCEEDED.value: "undo"}
"""The verb that ends the wait for a reason."""

_BLOCKED: Final = frozenset({Code.NO_DISRUPTION_BUDGET.value, SetReason.NAME_TAKEN.value})
"""Reasons that end only when a user changes something."""


def fresh(obj: Object) -> bool:
    status = obj.decode(VMSet).status
    return generation_seen(obj, None if status is None else status.observed_generation)


def standing(obj: Object, *, seen: bool) -> Standing:
    """Where the update stands; `seen`: the status is about the current spec."""
    made = obj.decode(VMSet)
    status, spec = made.status or VMSetStatus(), made.spec
    update = status.update_status or VMSetUpdateStatus()
    desired = 1 if spec.replicas is None else spec.replicas
    because = _because(status)
    strategy = spec.update_strategy.type if spec.update_strategy is not None else None
    return Standing(
        name=obj.key.name,
        unit="machine",
        strategy=str(strategy or "RollingUpdate"),
        state=_state(status) if seen else RolloutState.UNSEEN,
        phase=(update.phase or VMSetUpdatePhase.PENDING).value,
        because=because,
        verb=_VERBS.get(because.code, ""),
        desired=desired,
        ready=status.ready_replicas or 0,
        available=status.available_replicas or 0,
        updated=status.updated_replicas or 0,
        old=len(update.pending_vms),
        floors=(Floor.reported(status.floor, desired=desired),),
        current=status.current_revision or "",
        target=status.update_revision or "",
        started=moment(update.start_time),
        ended=moment(update.completion_time),
        progressed=moment(update.progress_time),
        warnings=(*floor_warnings(status), *_failures(status), *_restarts(update)),
        more={"failedVMs": [each.name for each in update.failed_vms]},
    )


def _because(status: VMSetStatus) -> Because:
    """The reason; a request that the API server refused, and machines that fail, explain more than the update."""
    update, failure = status.update_status, holds(status, "ReplicaFailure")
    progressing = condition(status, "Progressing")
    if progressing is None or update is None:
        return UNSEEN
    if failure is not None and failure.reason in (SetReason.NAME_TAKEN, SetReason.REQUEST_REFUSED):
        return Because(failure.reason or "", failure.message or "")
    return Because(progressing.reason or "", progressing.message or "")


def _failures(status: VMSetStatus) -> tuple[str, ...]:
    failure = holds(status, "ReplicaFailure")
    return () if failure is None else (failure.message or "",)


def _restarts(update: VMSetUpdateStatus) -> tuple[str, ...]:
    text = awaited_restarts(update.waiting_vms)
    return (text,) if text else ()


def _state(status: VMSetStatus) -> RolloutState:
    update = status.update_status
    if update is None or update.phase is None:
        return RolloutState.UNSEEN
    if _because(status).code in _BLOCKED:
        return RolloutState.BLOCKED
    if _because(status).code == Code.DELETION_NEEDED.value:
        return RolloutState.WAITING
    match update.phase:
        case VMSetUpdatePhase.PAUSED:
            return RolloutState.WAITING
        case VMSetUpdatePhase.FAILED:
            return RolloutState.FAILED
        case VMSetUpdatePhase.COMPLETED if holds(status, "Ready") is not None and not holds(status, "Scaling"):
            return RolloutState.COMPLETED
        case _:
            return RolloutState.UNDER_WAY


# --- the tree


def tree(obj: Object, made: Standing, records: Iterable[Record], machines: Iterable[Machine], now: datetime) -> Tree:
    """The revisions that have machines, and the current and target ones; the target comes first."""
    numbers = {record.metadata.labels.get(REVISION, ""): record.revision for record in records}
    grouped: dict[str, list[Machine]] = {}
    for machine in machines:
        grouped.setdefault(machine.revision, []).append(machine)
    matters = {revision for revision in (made.current, made.target) if revision}
    newest_first = sorted(grouped.keys() | matters, key=lambda revision: (-numbers.get(revision, 0), revision))
    newest_first.sort(key=lambda revision: revision != made.target)
    min_ready = timedelta(seconds=obj.decode(VMSet).spec.min_ready_seconds or 0)

    def branch(revision: str) -> Branch:
        index = NEW if revision == made.target else OLD if revision == made.current else OTHER
        return Branch(
            name=revision,
            index=index,
            number=str(numbers.get(revision, "")),
            marks=marks(made, revision),
            prefix=f"{made.name}-",
            urgent=index == NEW,
            children=tuple(_leaf(each, index, min_ready, now) for each in grouped.get(revision, ())),
        )

    return Tree(standing=made, branches=tuple(map(branch, newest_first)), now=now, size=made.desired)


def _leaf(machine: Machine, index: int, min_ready: timedelta, now: datetime) -> Leaf:
    since, status = machine.ready_since, machine.status
    if machine.object.deleting:
        state = State.TERMINATING
    elif since is None:
        state = State.UNREADY
    else:
        state = State.AVAILABLE if not min_ready or now >= since + min_ready else State.SETTLING
    return Leaf(
        name=machine.name,
        index=index,
        state=state,
        ready=f"{int(since is not None)}/1",
        node=(status.placement.host if status.placement else None) or "",
        age=now - machine.created_at,
        restarts=0,
        why="" if since is not None else status.message or "",
    )


def headline(wire: Wire) -> Headline:
    phase = str((status_of(wire).get("updateStatus") or {}).get("phase", "New"))
    at_rest = is_current(wire) and phase == "Completed" and is_true(wire, "Ready") and not is_true(wire, "Scaling")
    return Headline(phase, message_of(wire, "Progressing"), at_rest)


def machine_rows(wire: Wire, age: Age) -> list[list[str]]:
    """The machines of a set, as a table."""
    machines = status_of(wire).get("vmStatus") or ()
    rows = [
        [
            str(each.get("name", "")),
            str(each.get("phase", "-")),
            str(each.get("ready", False)),
            str(each.get("revision", "-")),
            age(each.get("creationTime")),
            str(each.get("message", "-")),
        ]
        for each in machines
    ]
    return [["NAME", "PHASE", "READY", "REVISION", "AGE", "MESSAGE"], *rows] if rows else [["none"]]


def demo_floors(wire: Wire, view: View) -> dict[str, tuple[int, int]]:
    """The floor of a VMSet, and how many machines it has."""
    floor = (status_of(wire).get("floor") or {}).get("required", 0)
    return {f"machines {wire['metadata']['name']}": (floor, wire["spec"].get("replicas", 1))}
