"""What the status of every object has in common: conditions, errors, and the Events that follow from them.

The one way from verdicts to conditions, and from a failure to a status.  Pure.  This
module must not know any kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from holdfast.client.objects import Object, decoder
from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.meta import times
from holdfast.runtime.decisions import Notice

INVALID_SPEC: Final = "InvalidSpec"
"""The reason of an object that cannot be decoded, or whose spec asks for something impossible."""

Announced: TypeAlias = Mapping[tuple[str, str], Literal["Normal", "Warning"]]
"""The conditions that become Events when they turn so, by type and status."""


class _Reported(msgspec.Struct, frozen=True):
    status: Any = None


def stored_status(obj: Object) -> dict[str, Any]:
    """The status of an object as it is stored; empty where it is not an object."""
    # Decoded apart from `Object.decode`, which keeps its results: this one is the caller's own.
    status = decoder(_Reported).decode(obj.raw).status
    return status if isinstance(status, dict) else {}


def _entries(obj: Object, field: str) -> Iterable[dict[str, Any]]:
    found = stored_status(obj).get(field)
    return (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a condition that another client may have written with another type."""

    type: Annotated[str, msgspec.Meta(min_length=1)]
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None
    last_transition_time: str | None = None


def prior_conditions(obj: Object) -> tuple[Condition, ...]:
    """The conditions that an object has.  Entries that are not conditions are left out."""
    return tuple(found for each in _entries(obj, "conditions") if (found := _condition(each)) is not None)


def _condition(wire: dict[str, Any]) -> Condition | None:
    try:
        msgspec.convert(wire, _Condition)
        return Condition.from_wire(wire)
    except (msgspec.ValidationError, times.TimeError):
        return None


def report(
    obj: Object,
    verdicts: Mapping[str, Verdict],
    *,
    now: datetime,
    fields: Mapping[str, Any],
    announced: Announced | None = None,
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """A whole status, and the Events that its changed conditions are worth.

    `verdicts` are all conditions, in their order; of `fields`, those that are None are left out.
    """
    before = prior_conditions(obj)
    merged = conditions.merge(before, verdicts, generation=obj.meta.generation, now=now, unnamed="drop")
    status = {"observedGeneration": obj.meta.generation, **fields, "conditions": [each.to_wire() for each in merged]}
    return present(status), tuple(_turned(before, merged, announced or {}))


def _turned(before: Iterable[Condition], after: Iterable[Condition], announced: Announced) -> Iterable[Notice]:
    for transition in conditions.changed(before, after):
        new = transition.new
        type = None if new is None else announced.get((new.type, new.status.value))
        if new is not None and type is not None:
            yield Notice(type=type, reason=str(new.reason), message=new.message)


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields without those that are None."""
    return {name: value for name, value in fields.items() if value is not None}


def wire(model: msgspec.Struct) -> dict[str, Any]:
    """A model as the API has it: with lists, which are not equal to tuples."""
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(model))
    return decoded


def last_errors(obj: Object, failure: Failure | None, now: datetime) -> list[dict[str, Any]] | None:
    """The error that a pass ended with and since when it does; None after a pass that succeeded."""
    if failure is None:
        return None
    error = {"code": failure.reason, "description": failure.message}
    same = (each for each in _entries(obj, "lastErrors") if error.items() <= each.items())
    observed_at = next((each.get("observedAt") for each in same), None) or times.format(now)
    return [{**error, "observedAt": observed_at}]


# --- objects that cannot be read


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invalid:
    """What the status of a kind says of an object that cannot be read.

    conditions  the conditions that report it, with whether each is then true
    fields      what else it says, such as a phase
    """

    conditions: Mapping[str, bool] = field(default_factory=lambda: {"Ready": False})
    fields: Mapping[str, Any] = field(default_factory=dict)

    def status(self, obj: Object, failure: Failure, now: datetime) -> dict[str, Any]:
        """The status as it was, with what is wrong with the spec."""
        verdicts = {
            type: (Verdict.true if holds else Verdict.false)(failure.reason, failure.message)
            for type, holds in self.conditions.items()
        }
        merged = conditions.merge(
            prior_conditions(obj), verdicts, generation=obj.meta.generation, now=now, unnamed="keep"
        )
        return {
            **stored_status(obj),
            "observedGeneration": obj.meta.generation,
            **self.fields,
            "conditions": [each.to_wire() for each in merged],
        }
