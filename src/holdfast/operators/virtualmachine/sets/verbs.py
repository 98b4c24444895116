"""The verbs of a VMSet: which annotations and fields each of them sets, or why it cannot.  Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.kinds.virtrigaud.sets import VMSet, VMSetStatus, VMSetUpdatePhase
from holdfast.meta import times
from holdfast.meta.patches import merge
from holdfast.operators.rollouts import (
    Already,
    Answer,
    Case,
    Change,
    Demo,
    History,
    Observed,
    Planner,
    Refusal,
    RolloutKind,
    controlled,
    left_alone,
    records_of,
)
from holdfast.operators.virtualmachine.resources import MACHINES, SETS
from holdfast.operators.virtualmachine.sets import view
from holdfast.operators.virtualmachine.sets.controller import CONTROLLER
from holdfast.operators.virtualmachine.sets.observe import Machine
from holdfast.operators.virtualmachine.sets.plan import OFFLINE, SETTINGS, outlook
from holdfast.operators.virtualmachine.sets.render import RESTARTED_AT, REVISION, SET, Template, labels
from holdfast.views.descriptions import StatusTable
from holdfast.views.rollouts import Record, Standing
from holdfast.views.trees import Tree


def _is_paused(obj: Object) -> bool:
    return bool(obj.decode(VMSet).spec.paused)


def _records(observed: Observed) -> tuple[Record, ...]:
    return records_of(observed.view.owned(CONTROLLER_REVISIONS, observed.object.uid), observed.object)


def standing(observed: Observed) -> Standing:
    obj = observed.object
    return left_alone(obj, view.standing(obj, seen=view.fresh(obj) and _restart_seen(observed)))


def _restart_seen(observed: Observed) -> bool:
    """Whether the status takes the last restart into account: an annotation does not change the generation."""
    status = observed.object.decode(VMSet).status or VMSetStatus()
    asked = observed.object.meta.annotations.get(RESTARTED_AT, "")
    known = {_name(record): record.data.restarted_at for record in _records(observed)}
    return known.get(status.update_revision or "", asked) == asked


def tree(observed: Observed, now: datetime) -> Tree:
    obj = observed.object
    machines = map(Machine, controlled(observed.view.owned(MACHINES, obj.uid), obj))
    return view.tree(obj, standing(observed), _records(observed), machines, now)


# --- the verbs


def pause(case: Case) -> Answer:
    if _is_paused(case.object):
        return Already("already paused")
    update = (case.object.decode(VMSet).status or VMSetStatus()).update_status
    idle = update is not None and update.phase is VMSetUpdatePhase.COMPLETED
    notes = ("nothing is under way; the next change will wait until it is resumed",) if idle else ()
    return Change({"spec": {"paused": True}}, "paused", notes)


def resume(case: Case) -> Answer:
    if not _is_paused(case.object):
        return Already("not paused")
    return Change({"spec": {"paused": None}}, "resumed")


def _paused_note(obj: Object) -> tuple[str, ...]:
    return ("it is paused, so nothing happens before it is resumed",) if _is_paused(obj) else ()


def restart(case: Case) -> Answer:
    moment = times.format(case.now)
    if case.object.meta.annotations.get(RESTARTED_AT) == moment:
        return Already("already restarted this second")
    notes = ("machines are rebooted within the floor; their disks are kept", *_paused_note(case.object))
    return Change({"metadata": {"annotations": {RESTARTED_AT: moment}}}, "restarted", notes)


def undo(case: Case) -> Answer:
    asked = Template.of(case.object.wire())
    chosen = _chosen(case, asked)
    if isinstance(chosen, Refusal):
        return chosen
    template = _template(chosen)
    if _alike(template, asked):
        return Already(f"the template is revision {chosen.revision} ({_name(chosen)}) already")
    stored = case.object.wire()["spec"]["template"]
    wanted = {**stored, "spec": template.spec, "metadata": {**_unlabelled(stored), **template.metadata}}
    patch = {
        "metadata": {"annotations": {RESTARTED_AT: template.restarted_at or None}},
        "spec": {"template": merge.diff(stored, wanted)},
    }
    said = f"undone: back to revision {chosen.revision} ({_name(chosen)})"
    return Change(patch, said, _paused_note(case.object), restored=True)


def _unlabelled(template: dict[str, dict[str, object]]) -> dict[str, object]:
    metadata = template.get("metadata") or {}
    return {field: value for field, value in metadata.items() if field not in ("labels", "annotations")}


def _template(record: Record) -> Template:
    return msgspec.convert(msgspec.to_builtins(record.data), Template)


def _name(record: Record) -> str:
    return record.metadata.labels.get(REVISION, "")


def _alike(one: Template, other: Template) -> bool:
    """Whether two templates differ at most by the time of a restart."""
    return one.defaulted().spec == other.spec and one.metadata == other.metadata


def _chosen(case: Case, asked: Template) -> Record | Refusal:
    """The revision to return to."""
    ordered = sorted(case.records, key=lambda record: record.revision, reverse=True)
    listed = ", ".join(f"{record.revision} ({_name(record)})" for record in ordered) or "none yet"
    if case.number:
        found = next((record for record in ordered if record.revision == case.number), None)
        return found or Refusal(f"there is no revision {case.number}", f"the history has {listed}")
    earlier = next((record for record in ordered if not _alike(_template(record), asked)), None)
    return earlier or Refusal(
        "there is no earlier revision with another template",
        f"the history has {listed}; spec.revisionHistoryLimit is the number that is kept",
    )


_NO_STEPS: Final = Refusal(
    "the update of a VMSet has no steps that wait for a promotion",
    "spec.updateStrategy.rollingUpdate.partition holds the first machines back; lower it to go on",
)
_NOT_REJECTED: Final = Refusal(
    "no revision of a VMSet is ever rejected: machines that fail are tried again by themselves",
    "'undo' returns to the revision before, and 'pause' stops the update where it is",
)
ROLLOUT: Final = RolloutKind(
    resource=SETS,
    parts=(MACHINES, CONTROLLER_REVISIONS),
    selector=lambda obj: ",".join(f"{name}={value}" for name, value in labels(obj.key.name).items()),
    fresh=view.fresh,
    standing=standing,
    tree=tree,
    headline=view.headline,
    tables=(StatusTable(title="Machines", field="vmStatus", rows=view.machine_rows),),
    verbs={"pause": pause, "resume": resume, "restart": restart, "undo": undo},
    unsupported={"promote": _NO_STEPS, "abort": _NOT_REJECTED, "retry": _NOT_REJECTED},
    history=History(label=REVISION, refused=lambda obj: "", why=lambda obj: ""),
    settings=SETTINGS,
    planner=Planner(controllers=(CONTROLLER,), plan=outlook),
    offline=OFFLINE,
    demo=Demo(
        group=lambda name, its: f"machines {name}" if its.get(SET) == name else None,
        floors=view.demo_floors,
        change=lambda manifest, version: {"spec": {"template": {"metadata": {"labels": {"version": version}}}}},
        counted=MACHINES,
    ),
)
