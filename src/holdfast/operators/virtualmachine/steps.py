"""The next step of what is done to a machine, and the decision that it becomes.

Snapshots, clones and migrations have them in common: the status of a step is written after its call to the provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from holdfast.client.objects import Object
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Done, Failure, Outcome, Retry
from holdfast.kernel.reasons import Reason
from holdfast.operators.virtualmachine.reasons import advised
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision, Notice, Write
from holdfast.runtime.status import Announced, Invalid, wire

S = TypeVar("S", bound=msgspec.Struct)
C = TypeVar("C")

UNANSWERED: Final = Invalid(conditions={"Ready": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[S, C]):
    """What is done next, and how it is shown.

    status     the status as it becomes, without its conditions
    call       the request to the provider that comes before the status is written
    finalized  of a deletion: nothing is left to do
    """

    status: S
    reason: Reason
    message: str
    call: C | None = None
    writes: tuple[Write, ...] = ()
    notices: tuple[Notice, ...] = ()
    outcome: Outcome = field(default_factory=Done)
    finalized: bool = False


N = TypeVar("N", bound=Step[Any, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecision(Decision, Generic[N]):
    """What one pass writes, and the step with the call to the provider that comes before the status."""

    step: N
    now: datetime


def decision(
    obj: Object, step: N, message: str, verdicts: Mapping[str, Verdict], now: datetime, announced: Announced
) -> StepDecision[N]:
    """The decision of a step: its status with a message and conditions, and the Events that these are worth."""
    shown = wire(msgspec.structs.replace(step.status, message=message))
    fields = {name: value for name, value in shown.items() if name not in ("conditions", "observedGeneration")}
    said, turned = status.report(obj, verdicts, now=now, fields=fields, announced=announced)
    return StepDecision(
        status=said,
        writes=step.writes,
        notices=(*step.notices, *turned),
        outcome=step.outcome,
        finalized=step.finalized,
        step=step,
        now=now,
    )


class _Seen(Protocol):
    @property
    def object(self) -> Object: ...


def explain(world: _Seen, failure: Failure, now: datetime) -> Mapping[str, Any] | None:
    """A pass that failed says why; it is tried again."""
    return unanswered(world.object, failure.reason, advised(failure.reason, failure.message), now)


def unanswered(
    obj: Object, reason: str, message: str, now: datetime, invalid: Invalid = UNANSWERED
) -> Mapping[str, Any]:
    """The status after a pass that failed: it says why, and that it is tried again."""
    return {**invalid.status(obj, Retry(reason, message), now), "message": message}
