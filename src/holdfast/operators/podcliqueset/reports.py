"""What the statuses of a set and its parts have in common: conditions, errors, and what is left out.

This module must not know any of the kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.reasons import Because
from holdfast.kinds.grove.components import LastError
from holdfast.kinds.model import Model, Status
from holdfast.meta import times
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.runtime.decisions import Notice

BREACHED: Final = "MinAvailableBreached"
UPDATE: Final = "UpdateInProgress"
READY: Final = "Ready"


def wire_conditions(merged: Iterable[Condition]) -> list[dict[str, Any]]:
    return [condition.to_wire() for condition in merged]


def wire(model: Model) -> dict[str, Any]:
    """A model as the API has it: with lists, which are not equal to tuples."""
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(model))
    return decoded


def old_conditions(before: Status) -> tuple[Condition, ...]:
    """The conditions that a status has."""
    return tuple(Condition.from_wire(wire(each)) for each in before.conditions)


def present(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status without what is not there."""
    return {field: value for field, value in status.items() if value is not None}


def errors_of(failure: Failure | None, before: tuple[LastError, ...], now: datetime) -> list[dict[str, Any]] | None:
    """The error that a pass ended with, since when it did; none after a pass that went well."""
    if failure is None:
        return None
    same = next((each for each in before if (each.code, each.description) == (failure.reason, failure.message)), None)
    observed_at = times.format(now) if same is None else same.observed_at
    return [wire(LastError(code=failure.reason, description=failure.message, observed_at=observed_at))]


class Moving(Protocol):
    """The move of an update, of whatever part."""

    @property
    def running(self) -> bool: ...
    @property
    def because(self) -> Because: ...
    @property
    def blocked(self) -> str: ...


def updating(move: Moving) -> Verdict:
    """Whether an update is going on, what it does, and what it waits for."""
    message = f"{move.because.message}; {move.blocked}" if move.blocked else move.because.message
    return Verdict.true(move.because.code, message) if move.running else Verdict.false(move.because.code, message)


def breached_since(merged: Iterable[Condition]) -> str | None:
    """Since when a part has had too little, if it has."""
    breached = conditions.find(merged, BREACHED)
    if breached is None or breached.status is not conditions.Status.TRUE or breached.last_transition_time is None:
        return None
    return times.format(breached.last_transition_time)


def lost(before: int | None, now: int, *, wanted: int) -> tuple[Notice, ...]:
    """What is told when everything that was on nodes is gone from there."""
    if not before or now or not wanted:
        return ()
    message = f"Of {before} that had nodes none has one now"
    return (Notice(type="Warning", reason=Why.ALL_SCHEDULED_LOST.value, message=message),)
