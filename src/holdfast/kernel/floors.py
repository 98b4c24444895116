"""Floors: how many replicas must be available, how many are, and whether there were ever fewer.

A floor is broken when replicas are lost, whatever the cause; a fleet that still grows to
its floor has lost none.  One observation cannot tell the two apart, so the operator keeps
the most and the fewest that were available in the status of the object.  The module must
not know what a replica is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.limits import Limits
from holdfast.kernel.reasons import Code, Reason

FLOOR_HELD: Final = "FloorHeld"
"""The type of the condition that says whether the floor holds."""

FLOOR_LOWERED: Final = "FloorLowered"
"""The type of the condition that announces a floor below minAvailable."""

FLOOR_NOT_GUARANTEED: Final = "FloorNotGuaranteed"
"""The type of the condition that announces that a strategy keeps no floor."""

_EXCEPTIONS: Final[dict[Reason, str]] = {
    Code.FLOOR_LOWERED: FLOOR_LOWERED,
    Code.FLOOR_NOT_GUARANTEED: FLOOR_NOT_GUARANTEED,
}


class FloorReason(Reason):
    """Why a floor holds, or does not."""

    HELD = "FloorHeld", "As many replicas are available as the floor needs."
    STILL_GROWING = "StillGrowing", "The replicas have not reached the floor yet, and none was lost."
    BELOW_FLOOR = (
        "BelowFloor",
        "Replicas were lost, so fewer are available than the floor needs; no ready one is stopped.",
    )


class Floor(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A floor as it is kept in a status.

    required   how many must be available
    available  how many are
    most       the most that were available at once, of those desired
    lowest     the fewest that were available since the floor was first reached
    lowered    by how many the floor lies below minAvailable, as a declared exception
    """

    required: int = 0
    available: int = 0
    most: int = 0
    lowest: int | None = None
    lowered: int = 0

    @property
    def broken(self) -> bool:
        """Fewer are available than the floor needs, and once there were enough."""
        return self.available < min(self.required, self.most)


def observed(before: Floor | None, *, limits: Limits, available: int, afresh: bool = False) -> Floor:
    """The floor now, from the one before; `afresh` when a rollout begins, whose lowest point is its own."""
    most = min(max(before.most if before is not None else 0, available), limits.replicas)
    lowest = before.lowest if before is not None and not afresh else None
    if most >= limits.floor:
        lowest = available if lowest is None else min(lowest, available)
    return Floor(required=limits.floor, available=available, most=most, lowest=lowest, lowered=limits.lowered)


def verdicts(floor: Floor, limits: Limits) -> dict[str, Verdict]:
    """The conditions about a floor: whether it holds, and each exception that is declared."""
    said = f"{floor.available:,} available, the floor is {floor.required:,}"
    if floor.broken:
        held = Verdict.false(FloorReason.BELOW_FLOOR, f"{said}; no ready replica is stopped until it is reached again")
    elif floor.available < floor.required:
        held = Verdict.true(FloorReason.STILL_GROWING, f"{said}, which is not reached yet")
    else:
        held = Verdict.true(FloorReason.HELD, said)
    exceptions = {
        _EXCEPTIONS[each.code]: Verdict.true(each.code, each.message)
        for each in limits.warnings
        if each.code in _EXCEPTIONS
    }
    return {FLOOR_HELD: held, **exceptions}
