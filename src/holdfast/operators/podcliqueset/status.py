"""What the statuses of PodCliques, scaling groups and sets have in common: condition types, and Events of losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.kernel.floors import FLOOR_HELD
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced

BREACHED: Final = "MinAvailableBreached"
UPDATE: Final = "UpdateInProgress"
READY: Final = "Ready"
PODS_READY: Final = "PodsReady"

ANNOUNCED: Final[Announced] = {(FLOOR_HELD, "False"): "Warning"}
"""The conditions of a part that become Events."""


def with_breach(status: dict[str, Any]) -> dict[str, Any]:
    """A status with `minAvailableBreachedSince`: when its condition `MinAvailableBreached` became True."""
    conditions: Iterable[Mapping[str, Any]] = status["conditions"]
    since = next((each["lastTransitionTime"] for each in conditions if (each["type"], each["status"]) == _BREACH), None)
    return status if since is None else {**status, "minAvailableBreachedSince": since}


_BREACH: Final = (BREACHED, "True")


def lost(before: int | None, now: int, *, wanted: int) -> tuple[Notice, ...]:
    """The Event of a part of which all scheduled replicas were lost."""
    if not before or now or not wanted:
        return ()
    message = f"All {before} scheduled replicas were lost; {wanted} are wanted"
    return (Notice(type="Warning", reason=PodCliqueSetReason.ALL_SCHEDULED_LOST.value, message=message),)
