"""The verbs of a PodCliqueSet: what each of them changes, or why it is not supported.

Pure.  A set keeps no earlier template and its updates have no steps, so there is nothing
to undo, promote or abort.
"""

from __future__ import annotations

from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kinds.grove.progress import is_rolling_update_in_progress
from holdfast.kinds.grove.sets import PodCliqueSet, UpdateStrategyType
from holdfast.meta import times
from holdfast.operators import pausing
from holdfast.operators.podcliqueset import labels, view
from holdfast.operators.podcliqueset.controller import CONTROLLERS
from holdfast.operators.podcliqueset.plan import outlook
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS, SETS
from holdfast.operators.rollouts import Already, Answer, Case, Change, Planner, Refusal, RolloutKind
from holdfast.runtime.controllers import is_paused

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation of cliques and their pods that `restart` sets, so that the template is a new one."""

_PAUSE: Final = (
    "the update of the current replica is finished, and no other begins; lost pods are replaced, "
    "but the set itself is neither changed, scaled nor repaired until it is resumed"
)
_IDLE: Final = (
    "nothing is under way; lost pods are replaced, but the set itself is neither changed, scaled nor repaired "
    "until it is resumed"
)
_AGAIN: Final = "apply the earlier manifest: only pods that were already updated are replaced"


def pause(case: Case) -> Answer:
    running = is_rolling_update_in_progress(case.object.decode(PodCliqueSet))
    return pausing.pause(case, _PAUSE if running else _IDLE)


def restart(case: Case) -> Answer:
    moment, cliques = times.format(case.now), case.object.wire()["spec"]["template"]["cliques"]
    # A merge patch replaces the whole list; the resourceVersion of the patch protects changes of others.
    stamped = [{**each, "annotations": {**(each.get("annotations") or {}), RESTARTED_AT: moment}} for each in cliques]
    if stamped == cliques:
        return Already("already restarted this second")
    return Change({"spec": {"template": {"cliques": stamped}}}, "restarted", tuple(_restart_notes(case.object)))


def _restart_notes(obj: Object) -> list[str]:
    strategy = obj.decode(PodCliqueSet).spec.update_strategy
    notes = []
    if is_paused(obj):
        notes.append("it is paused, so nothing happens before it is resumed")
    if strategy is not None and strategy.type is UpdateStrategyType.ON_DELETE:
        notes.append("its updateStrategy is OnDelete, so pods are replaced when you delete them")
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
    settings={"replicas": "spec.replicas"},
    planner=Planner(controllers=CONTROLLERS[:3], plan=outlook),
    verbs={"pause": pause, "resume": pausing.resume, "restart": restart},
    unsupported={
        "promote": Refusal(
            "an update of a PodCliqueSet has no steps that need an approval: one replica follows the other",
            "'pause' holds it before the next replica",
        ),
        "abort": Refusal("a PodCliqueSet keeps no earlier template to return to", _AGAIN),
        "retry": Refusal(
            "no template of a PodCliqueSet is ever rejected",
            "'restart' replaces the pods; 'status' says what it waits for",
        ),
        "undo": Refusal("a PodCliqueSet keeps no earlier template to return to", _AGAIN),
        "history": Refusal(
            "a PodCliqueSet keeps no earlier templates, only the hash of the wanted one",
            "'status' shows the update; earlier templates are in the history of your manifests",
        ),
    },
)
