"""The status of a VMMigration: the fields of a step, and conditions that follow from its phase."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kinds.virtrigaud.migrations import MigrationPhase
from holdfast.operators.virtualmachine import steps
from holdfast.operators.virtualmachine.migrations.observe import World
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason, said
from holdfast.operators.virtualmachine.migrations.steps import Step
from holdfast.operators.virtualmachine.steps import UNANSWERED, StepDecision, unanswered
from holdfast.runtime.status import Announced, Invalid

INVALID: Final = Invalid(conditions={"Ready": False, "Failed": True}, fields={"phase": MigrationPhase.FAILED.value})

_CLEANING: Final = Invalid(conditions={})

ANNOUNCED: Final[Announced] = {
    ("Ready", "True"): "Normal",
    ("Snapshotting", "True"): "Normal",
    ("Exporting", "True"): "Normal",
    ("Importing", "True"): "Normal",
    ("Failed", "True"): "Warning",
}

_Phase = MigrationPhase

_CONDITIONS: Final[Mapping[str, tuple[frozenset[MigrationPhase], MigrationReason]]] = {
    "Validating": (frozenset({_Phase.VALIDATING, _Phase.VALIDATING_TARGET}), MigrationReason.VALIDATED),
    "Snapshotting": (frozenset({_Phase.SNAPSHOTTING}), MigrationReason.SNAPSHOTTED),
    "Exporting": (frozenset({_Phase.EXPORTING}), MigrationReason.EXPORTED),
    "Transferring": (frozenset({_Phase.TRANSFERRING, _Phase.CONVERTING}), MigrationReason.TRANSFERRED),
    "Importing": (frozenset({_Phase.IMPORTING}), MigrationReason.IMPORTED),
}
"""The conditions that are true in some phases, and why they are false after those."""

_ORDER: Final = tuple(MigrationPhase)


def decision(world: World, step: Step, now: datetime) -> StepDecision[Step]:
    """The whole status of a step, and the Events that its changed conditions are worth."""
    message = said(step.reason, step.message)
    return steps.decision(world.object, step, message, _verdicts(step, message), now, ANNOUNCED)


def _verdicts(step: Step, message: str) -> dict[str, Verdict]:
    phase = step.status.phase or _Phase.PENDING
    ready = Verdict.true(MigrationReason.COMPLETED, message) if phase is _Phase.READY else None
    found = {"Ready": ready or Verdict.false(step.reason, message)}
    for type, (phases, ended) in _CONDITIONS.items():
        if phase in phases:
            found[type] = Verdict.true(step.reason, message)
        elif phase is not _Phase.FAILED and _ORDER.index(phase) > min(map(_ORDER.index, phases)):
            found[type] = Verdict.false(ended, ended.meaning.rstrip("."))
        else:
            found[type] = Verdict.false(MigrationReason.NOT_BEGUN, "the migration has not come so far, or starts over")
    if phase is _Phase.FAILED:
        found["Failed"] = Verdict.true(step.reason, message)
    elif step.status.failed is not None and phase is _Phase.PENDING:
        found["Failed"] = Verdict.false(MigrationReason.RETRYING, message)
    else:
        found["Failed"] = Verdict.false(MigrationReason.NOT_FAILED, "nothing has failed")
    return found


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any] | None:
    """A pass that failed says why; it is tried again.  A migration that is complete stays so."""
    invalid = UNANSWERED if world.before.completion_time is None else _CLEANING
    return unanswered(world.object, failure.reason, said(failure.reason, failure.message), now, invalid)
