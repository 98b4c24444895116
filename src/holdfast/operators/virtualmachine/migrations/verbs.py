"""The verbs of a VMMigration: what each of them sets, or why it cannot.  Pure."""

from __future__ import annotations

from typing import Final

from holdfast.kinds.virtrigaud import VMMigration
from holdfast.operators import pausing
from holdfast.operators.rollouts import Answer, Case, Demo, Refusal, RolloutKind
from holdfast.operators.virtualmachine.migrations import view
from holdfast.operators.virtualmachine.resources import MACHINES, MIGRATIONS
from holdfast.views.descriptions import StatusTable


def pause(case: Case) -> Answer:
    status = case.object.decode(VMMigration).status
    notes = ("a task of a provider that is under way goes on",) if status and status.task_ref else ()
    return pausing.pause(case, *notes)


_NO_REVISIONS: Final = Refusal(
    "a migration has no revisions, and no steps that wait for a promotion", "'status' shows how far it is"
)

_ABORT: Final = Refusal(
    "a migration is aborted by its deletion, which rolls it back",
    "delete the VMMigration: the target is removed, and the source is released",
)

_RETRY: Final = Refusal(
    "a migration that has failed starts over when its spec is changed",
    "correct the spec, such as spec.options.timeout, or create the VMMigration again",
)

ROLLOUT: Final = RolloutKind(
    resource=MIGRATIONS,
    parts=(MACHINES,),
    selector=lambda obj: "",
    fresh=view.fresh,
    standing=view.standing,
    tree=view.tree,
    headline=view.headline,
    tables=(
        StatusTable(title="Progress", field="progress", rows=view.progress),
        StatusTable(title="Disk", field="diskInfo", rows=view.disk),
    ),
    verbs={"pause": pause, "resume": pausing.resume},
    unsupported={
        **dict.fromkeys(("promote", "undo", "history", "plan", "restart"), _NO_REVISIONS),
        "abort": _ABORT,
        "retry": _RETRY,
    },
    demo=Demo(
        group=lambda name, labels: None,
        floors=lambda wire, view: {},
        change=lambda manifest, version: {},
        counted=MACHINES,
        joins=True,
    ),
)
