"""The verbs of a Workload: which annotations and fields each of them sets, or why it cannot.  Pure.

A revision that was undone or aborted is kept in an annotation, so that applying the same spec again, by hand or by a
GitOps tool, does not roll it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS
from holdfast.kernel.reasons import Code
from holdfast.kinds.cloudless import Workload, WorkloadStatus
from holdfast.kinds.cloudless.rollouts import Rejection, Rollout, RolloutStatus
from holdfast.meta import times
from holdfast.meta.patches import merge
from holdfast.operators.rollouts import (
    Already,
    Answer,
    Case,
    Change,
    History,
    Observed,
    Planner,
    Refusal,
    RolloutKind,
    controlled,
    generation_seen,
    left_alone,
    records_of,
)
from holdfast.operators.workload import view
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.plan import OFFLINE, SETTINGS, outlook
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.render import RESTARTED_AT, REVISION, Template, labels
from holdfast.operators.workload.revisions import PROMOTED, REJECTED, REJECTION, cause, rejected_revision, rejection
from holdfast.views.rollouts import Record, RolloutState, Standing
from holdfast.views.trees import Pod, Tree

_STAYS: Final = ("replicas", "rollout")
"""The fields that an undo does not change."""

_STALE: Final = Refusal(
    "the operator has not observed its latest change yet, so its status does not show what is being rolled out",
    "try again in a moment; if this repeats, check that the operator is running",
)


# --- reading


def _workload(obj: Object) -> Workload:
    return obj.decode(Workload)


def _status(workload: Workload) -> WorkloadStatus:
    return workload.status or WorkloadStatus()


def _rollout(workload: Workload) -> RolloutStatus:
    return _status(workload).rollout or RolloutStatus()


def _code(workload: Workload) -> str:
    because = _rollout(workload).because
    return because.code if because is not None else ""


def _wanted(workload: Workload) -> str:
    """The revision of the spec, rejected or not."""
    status = _status(workload)
    return status.rejected_revision or status.update_revision or ""


def _is_paused(workload: Workload) -> bool:
    return workload.spec.rollout is not None and bool(workload.spec.rollout.paused)


def fresh(obj: Object) -> bool:
    return generation_seen(obj, _status(_workload(obj)).observed_generation)


def records(observed: Observed) -> tuple[Record, ...]:
    return records_of(observed.view.owned(CONTROLLER_REVISIONS, observed.object.uid), observed.object)


def standing(observed: Observed) -> Standing:
    obj, workload = observed.object, _workload(observed.object)
    made = view.standing(workload, seen=fresh(obj) and seen(workload, records(observed)))
    return left_alone(obj, made)


def tree(observed: Observed, now: datetime) -> Tree:
    obj = observed.object
    pods = (each.decode(Pod) for each in controlled(observed.view.owned(PODS, obj.uid), obj))
    return view.tree(_workload(obj), standing(observed), records(observed), pods, now)


def seen(workload: Workload, records: Iterable[Record]) -> bool:
    """Whether the status takes the annotations into account: they do not change the generation."""
    status, annotations = _status(workload), workload.metadata.annotations
    update = status.update_revision or ""
    rejected = annotations.get(REJECTED, "").partition(":")[0]
    known = {_name(record): record for record in records}
    if status.rejected_revision is not None:
        return rejected == status.rejected_revision
    if rejected and rejected == update and len(known) > 1:
        return False
    promoted, _, steps = annotations.get(PROMOTED, "").partition(":")
    if (
        promoted == update
        and steps.isdigit()
        and _code(workload) in _GATES
        and (_rollout(workload).step or 1) <= int(steps)
    ):
        return False
    restarted = update not in known or known[update].data.restarted_at == annotations.get(RESTARTED_AT, "")
    return restarted or status.phase != "Completed"


def _name(record: Record) -> str:
    return record.metadata.labels.get(REVISION, "")


def _template(record: Record) -> Template:
    return msgspec.convert(msgspec.to_builtins(record.data), Template)


def _annotated(**annotations: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}


# --- pause, resume, restart


def pause(case: Case) -> Answer:
    workload = _workload(case.object)
    if _is_paused(workload):
        return Already("already paused")
    idle = _status(workload).phase == "Completed"
    notes = ("nothing is under way; the next change will wait until it is resumed",) if idle else ()
    return Change({"spec": {"rollout": {"paused": True}}}, "paused", notes)


def resume(case: Case) -> Answer:
    if not _is_paused(_workload(case.object)):
        return Already("not paused")
    return Change({"spec": {"rollout": {"paused": None}}}, "resumed")


def restart(case: Case) -> Answer:
    workload, moment = _workload(case.object), times.format(case.now)
    rejected = _status(workload).rejected_revision
    if rejected is not None:
        message = f"the spec asks for revision {rejected}, which was rejected; a restart would roll it out"
        return Refusal(
            message,
            "'retry' rolls it out again; 'undo' changes the spec to the running revision, which can be restarted",
        )
    if workload.metadata.annotations.get(RESTARTED_AT) == moment:
        return Already("already restarted this second")
    return Change(_annotated(**{RESTARTED_AT: moment}), "restarted", _paused_note(workload))


def _paused_note(workload: Workload) -> tuple[str, ...]:
    return ("it is paused, so nothing happens before it is resumed",) if _is_paused(workload) else ()


# --- promote

_GATES: Final = frozenset({Code.APPROVAL_NEEDED.value, Code.STEP_PAUSE.value})
"""The waits that a promotion ends."""


def promote(case: Case) -> Answer:
    workload = _workload(case.object)
    status, rollout = _status(workload), _rollout(workload)
    target, step, steps = status.update_revision or "", rollout.step or 1, rollout.steps or 1
    if not fresh(case.object) or not target:
        return _STALE
    if status.rejected_revision is not None:
        message = (
            f"nothing to promote: revision {status.rejected_revision} was rejected, and {target} is rolled out again"
        )
        return Refusal(message, "'retry' rolls the rejected revision out again")
    if status.phase == "Completed":
        return Refusal(f"nothing to promote: revision {target} is rolled out", "'history' shows the revisions")
    if steps == 1:
        strategy = (workload.spec.rollout or Rollout()).strategy or "RollingUpdate"
        return Refusal(
            f"nothing to promote: a {strategy} rollout has no steps{_doing(workload)}",
            "spec.rollout.strategy: Canary, with steps that have manual: true, waits for a promotion",
        )
    if case.full:
        return Change(_annotated(**{PROMOTED: f"{target}:{steps}"}), "fully promoted", _paused_note(workload))
    if _code(workload) not in _GATES:
        return Refusal(
            f"nothing to promote: step {step} of {steps} needs no approval{_doing(workload)}",
            "it continues by itself; --full approves this and all later steps",
        )
    said = f"promoted: step {step} of {steps}"
    return Change(_annotated(**{PROMOTED: f"{target}:{step}"}), said, _paused_note(workload))


def _doing(workload: Workload) -> str:
    because, until = _rollout(workload).because, _rollout(workload).paused_until
    if because is None:
        return ""
    return f"; {because.message} ({because.code}{f', until {until}' if until else ''})"


# --- abort, retry, undo


def abort(case: Case) -> Answer:
    workload = _workload(case.object)
    status = _status(workload)
    target, current = status.update_revision or "", status.current_revision or ""
    if not fresh(case.object) or not target:
        return _STALE
    if status.rejected_revision is not None:
        return Already(f"already aborted: revision {status.rejected_revision} is rejected")
    if target == current:
        return Refusal(f"nothing to abort: revision {target} is rolled out", "'undo' returns to an earlier revision")
    if not current and len(case.records) < 2:
        return Refusal(
            f"nothing to return to: {target} is the first revision, and it was never rolled out completely",
            "correct the spec and apply it, or delete the object",
        )
    back = f"revision {current}" if current else "the revision before it"
    return Change(
        _annotated(**_rejected(case, target, WorkloadReason.ABORTED)),
        f"aborted: revision {target} is rejected, {back} is rolled out again",
    )


def _rejected(case: Case, revision: str, reason: WorkloadReason, *, to: str = "") -> dict[str, str | None]:
    """The annotations that reject a revision: a cause that is known already is kept, and its approvals are void."""
    known = rejection(case.object)
    made = Rejection(revision=revision, reason=reason.value, message=reason.meaning, time=times.format(case.now))
    why = known if known is not None and known.revision == revision else made
    approved = {PROMOTED: None} if PROMOTED in case.object.meta.annotations else {}
    return {REJECTED: f"{revision}:{to}" if to else revision, REJECTION: cause(why), **approved}


def why_rejected(obj: Object) -> str:
    """Why and when a revision was rejected, in a sentence; empty if none is."""
    why = rejection(obj)
    return "" if why is None else f"revision {why.revision} was rejected at {why.time} ({why.reason}): {why.message}"


def retry(case: Case) -> Answer:
    workload, rejected = _workload(case.object), rejected_revision(case.object)
    if not rejected:
        state = view.standing(workload)
        message = f"nothing to retry: no revision was rejected{_doing(workload)}"
        if state.state is RolloutState.FAILED:
            return Refusal(message, "it continues by itself when its replicas are ready; 'restart' replaces them")
        return Refusal(message, "'retry' is for a revision that was aborted, undone or rolled back")
    patch = _annotated(**{REJECTED: None, REJECTION: None})
    if rejected == _status(workload).rejected_revision:
        return Change(patch, f"retried: revision {rejected} is rolled out again", _paused_note(workload))
    return Change(patch, f"accepted again: revision {rejected} is rolled out when the spec describes it")


def undo(case: Case) -> Answer:
    workload = _workload(case.object)
    if not fresh(case.object) or not _wanted(workload):
        return _STALE
    asked = Template.of(workload)
    chosen = _chosen(case, asked)
    if isinstance(chosen, Refusal):
        return chosen
    wanted = next((record for record in case.records if _name(record) == _wanted(workload)), None)
    template, undone = _template(chosen), asked if wanted is None else _template(wanted)
    if template.defaulted().spec == asked.spec:
        return _same(chosen, template, undone, refused=rejected_revision(case.object) == _name(chosen))
    there = undone.configs | {name: each for name, each in template.configs.items() if name not in undone.configs}
    configs = {name: there[name] for name in template.configs}
    back = msgspec.structs.replace(template, configs=configs).revision
    spec = {field: value for field, value in case.object.wire()["spec"].items() if field not in _STAYS}
    patch = {
        **_annotated(
            **_rejected(case, undone.revision, WorkloadReason.UNDONE, to=back),
            **{RESTARTED_AT: template.restarted_at or None},
        ),
        "spec": merge.diff(spec, template.spec),
    }
    said = f"undone: back to {_described(chosen)}; revision {_wanted(workload)} is refused until the spec changes"
    return Change(patch, said, (*_paused_note(workload), *_left(template, undone)), restored=True)


def _chosen(case: Case, asked: Template) -> Record | Refusal:
    """The revision to return to."""
    ordered = sorted(case.records, key=lambda record: record.revision, reverse=True)
    if case.number:
        found = next((record for record in ordered if record.revision == case.number), None)
        if found is not None:
            return found
        return Refusal(f"there is no revision {case.number}", f"the history has {_listed(ordered)}")
    rejected = rejected_revision(case.object)
    others = [record for record in ordered if _template(record).defaulted().spec != asked.spec]
    earlier = [record for record in others if _name(record) != rejected]
    if earlier:
        return earlier[0]
    if others:
        hint = f"to return to it all the same: --to-revision {others[0].revision}"
        return Refusal(f"the only other revision is {_described(others[0])}, which was rejected", hint)
    return Refusal(
        "there is no earlier revision with another spec",
        f"the history has {_listed(ordered)}; spec.rollout.revisionHistoryLimit is the number that is kept",
    )


def _same(chosen: Record, template: Template, undone: Template, *, refused: bool) -> Answer:
    """The answer for a revision whose spec the object has already."""
    if refused:
        return Refusal(f"the spec is {_described(chosen)} already, and it was rejected", "'retry' rolls it out")
    other = _left(template, undone)
    if other:
        return Refusal(f"{_described(chosen)} has the same spec as now; {other[0]}", "apply their earlier content")
    return Already(f"the spec is {_described(chosen)} already")


def _left(template: Template, undone: Template) -> tuple[str, ...]:
    """The ConfigMaps and Secrets whose content an undo does not restore."""
    changed = sorted(
        name
        for name in template.configs.keys() & undone.configs.keys()
        if template.configs[name] != undone.configs[name]
    )
    return (
        (f"the content of {', '.join(changed)} has changed since, and an undo does not restore it",) if changed else ()
    )


def _described(record: Record) -> str:
    return f"revision {record.revision} ({_name(record)}, {record.data.spec.get('image')})"


def _listed(records: Sequence[Record]) -> str:
    listed = [f"{record.revision} ({_name(record)}, {record.data.spec.get('image')})" for record in records]
    return ", ".join(listed) or "none yet"


ROLLOUT: Final = RolloutKind(
    resource=WORKLOADS,
    parts=(PODS, CONTROLLER_REVISIONS),
    selector=lambda obj: ",".join(f"{name}={value}" for name, value in labels(obj.key.name).items()),
    fresh=fresh,
    standing=standing,
    tree=tree,
    headline=view.headline,
    demo=view.DEMO,
    verbs={
        "pause": pause,
        "resume": resume,
        "promote": promote,
        "abort": abort,
        "retry": retry,
        "undo": undo,
        "restart": restart,
    },
    history=History(label=REVISION, refused=rejected_revision, why=why_rejected),
    settings=SETTINGS,
    planner=Planner(controllers=CONTROLLERS[:1], plan=outlook),
    offline=OFFLINE,
)
