"""The verbs `pause` and `resume` of kinds whose specs have no field for it: they set an annotation.  Pure."""

from __future__ import annotations

from typing import Any

from holdfast.operators.rollouts import Already, Answer, Case, Change
from holdfast.runtime.controllers import PAUSED, is_paused


def pause(case: Case, *notes: str) -> Answer:
    """Set the annotation; the notes say what goes on meanwhile."""
    return Already("already paused") if is_paused(case.object) else Change(_annotated("true"), "paused", notes)


def resume(case: Case) -> Answer:
    """Remove the annotation."""
    return Change(_annotated(None), "resumed") if is_paused(case.object) else Already("not paused")


def _annotated(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {PAUSED: value}}}
