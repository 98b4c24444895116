"""The conditions of an object on its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.views.pages.sections import Section, Wire


class ConditionView(Section, frozen=True, kw_only=True):
    """A condition; `bad` where its status is not what the object needs."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: str | None = None
    bad: bool = False


_NEGATIVE: Final = (
    "Blocked",
    "Failed",
    "Stalled",
    "Degraded",
    "FloorLowered",
    "ReplicaFailure",
    "Pressure",
    "Breached",
)
"""Words at the end of a condition's type that mean trouble where it is True."""

_POSITIVE: Final = ("Ready", "Available", "Healthy", "Satisfied", "Succeeded", "Valid", "Validated", "Held", "Synced")
"""The same, where it is False; other conditions say what is done, and not whether it is good."""


def conditions(wire: Wire) -> tuple[ConditionView, ...]:
    """The conditions of an object, those first that are bad."""
    found = (wire.get("status") or {}).get("conditions") or ()
    made = [_condition(each) for each in found if isinstance(each, Mapping) and each.get("type")]
    return tuple(sorted(made, key=lambda each: not each.bad))


def _condition(stated: Wire) -> ConditionView:
    type, status = str(stated["type"]), str(stated.get("status", "Unknown"))
    bad = (status == "True" and type.endswith(_NEGATIVE)) or (status == "False" and type.endswith(_POSITIVE))
    return ConditionView(
        type=type,
        status=status,
        reason=str(stated.get("reason") or ""),
        message=str(stated.get("message") or ""),
        since=stated.get("lastTransitionTime"),
        bad=bad,
    )
