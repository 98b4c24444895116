"""The verbs of a PodCliqueSet: what each of them sets, or why there is none.

Pure.  A set keeps nothing of what it was before and its updates have no steps, so there is
nothing to undo, promote or abort; where it stands is `rollout_gangs`' matter.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kinds.grove.progress import is_rolling_update_in_progress
from holdfast.kinds.grove.sets import PodCliqueSet, UpdateStrategyType
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels, view
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS, SETS
from holdfast.operators.rollouts import Already, Answer, Case, Change, Refusal, RolloutKind, is_left_alone
from holdfast.runtime.controllers import PAUSED

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation of cliques, and so of their pods, by which a template is another one though nothing else is."""

_PAUSE: Final = (
    "the replica that is being updated is finished, and no other begins; lost pods are replaced, "
    "but the set itself is neither changed, scaled nor repaired before it is resumed"
)
_IDLE: Final = (
    "nothing is under way; lost pods are replaced, but the set itself is neither changed, scaled nor repaired "
    "before it is resumed"
)
_AGAIN: Final = "apply the manifest from before: what was not reached yet stays as it is, and the rest returns"


def _annotated(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {PAUSED: value}}}


def pause(case: Case) -> Answer:
    if is_left_alone(case.object):
        return Already("already paused")
    running = is_rolling_update_in_progress(case.object.decode(PodCliqueSet))
    return Change(_annotated("true"), "paused", (_PAUSE if running else _IDLE,))


def resume(case: Case) -> Answer:
    return Change(_annotated(None), "resumed") if is_left_alone(case.object) else Already("not paused")


def restart(case: Case) -> Answer:
    moment, cliques = times.format(case.now), case.object.wire()["spec"]["template"]["cliques"]
    # A merge patch takes lists as a whole; that nothing in it is older than the object, its version sees to.
    stamped = [{**each, "annotations": {**(each.get("annotations") or {}), RESTARTED_AT: moment}} for each in cliques]
    if stamped == cliques:
        return Already("already restarted this second")
    return Change({"spec": {"template": {"cliques": stamped}}}, "restarted", tuple(_restart_notes(case.object)))


def _restart_notes(obj: Object) -> list[str]:
    strategy = obj.decode(PodCliqueSet).spec.update_strategy
    notes = []
    if is_left_alone(obj):
        notes.append("it is paused, so nothing happens before it is resumed")
    if strategy is not None and strategy.type is UpdateStrategyType.ON_DELETE:
        notes.append("its updateStrategy is OnDelete, so pods are replaced when somebody deletes them")
    return notes


ROLLOUT: Final = RolloutKind(
    resource=SETS,
    parts=(PODS, CLIQUES, GROUPS),
    selector=lambda obj: labels.text(labels.of_set(obj.key.name)),
    fresh=view.fresh,
    standing=view.standing,
    tree=view.tree,
    headline=view.headline,
    demo=view.DEMO,
    verbs={"pause": pause, "resume": resume, "restart": restart},
    unsupported={
        "promote": Refusal(
            "an update of a PodCliqueSet has no steps that wait for anybody: one replica follows the other",
            "'pause' holds it before the next replica",
        ),
        "abort": Refusal("a PodCliqueSet keeps no earlier template that could return", _AGAIN),
        "retry": Refusal(
            "no template of a PodCliqueSet is ever rejected",
            "'restart' replaces the pods; 'status' says what it waits for",
        ),
        "undo": Refusal("a PodCliqueSet keeps no earlier template that could return", _AGAIN),
        "history": Refusal(
            "a PodCliqueSet keeps no earlier templates, only the hash of the one that is wanted",
            "'status' says how far it is; what it was before is in the history of your manifests",
        ),
        "plan": Refusal(
            "a PodCliqueSet cannot be planned yet: its parts are decided about one by one, when their turn comes",
            "'status' shows each part as it is updated; a server says by 'apply --dry-run=server' what it accepts",
        ),
    },
)
