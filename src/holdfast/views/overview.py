"""The overview of a cluster: one row for each object, with its phase, its floors and what it waits for.

Pure.  A `Glance` is what one object says of itself; the operator of a kind may make it, and
`glance` makes it for any kind from the phase and the conditions.  A `Row` adds where the
object is.  All values can be written as JSON.  This module must not know any kind, where
objects come from, nor how rows are laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.kinds.model import FloorStatus
from holdfast.views.rollouts import Floor, RolloutState, Standing
from holdfast.views.waits import SUMMARIES, condition, conditions, waits

Wire = Mapping[str, Any]
"""An object as it is in JSON."""


class Health(StrEnum):
    """How an object is.

    GOOD         everything that its spec asks for is there
    PROGRESSING  its operator works on it, or it waits for a step of a user
    TROUBLE      a floor is broken, or it does not go on until something is changed
    """

    GOOD = "good"
    PROGRESSING = "progressing"
    TROUBLE = "trouble"


class FloorBar(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The numbers of a bar: ready replicas of those that are desired, with the floor as a line.

    lowest   the fewest that were ready; None: not counted
    lowered  by how many the floor is below minAvailable, as a declared exception
    """

    ready: int
    desired: int
    floor: int
    name: str = ""
    lowest: int | None = None
    lowered: int = 0

    @classmethod
    def of(cls, floor: Floor) -> FloorBar:
        return cls(
            ready=floor.ready,
            desired=floor.desired,
            floor=floor.floor,
            name=floor.name,
            lowest=floor.lowest,
            lowered=floor.lowered,
        )

    @property
    def broken(self) -> bool:
        """Whether fewer are ready than must be, after the floor was reached once."""
        return self.lowest is not None and self.ready < self.floor

    @property
    def margin(self) -> int:
        return self.ready - self.floor


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """What one object says of itself.

    because  what its operator does, or what it waits for; empty where there is nothing to say
    code     the same as a word for programs
    since    since when; None where that is not known
    verb     the verb of `holdfast rollout` that ends the wait
    """

    phase: str
    health: Health
    because: str = ""
    code: str = ""
    since: str | None = None
    verb: str = ""
    ready: int | None = None
    desired: int | None = None
    updated: int | None = None
    floors: tuple[FloorBar, ...] = ()


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One object of the overview.

    id        ``workloads.cloudless.io/default/shop``: the same for as long as the object exists
    resource  ``workloads.cloudless.io``
    owner     kind and name of the object that made it, such as ``PodCliqueSet/llm``; empty for one that a user made
    floor     the floor with the fewest replicas to spare
    floors    how many floors there are
    """

    id: str
    kind: str
    resource: str
    namespace: str = ""
    name: str
    phase: str
    health: Health
    because: str = ""
    code: str = ""
    since: str | None = None
    created: str | None = None
    verb: str = ""
    ready: int | None = None
    desired: int | None = None
    updated: int | None = None
    floor: FloorBar | None = None
    floors: int = 0
    owner: str = ""
    paused: bool = False


class Counts(msgspec.Struct, frozen=True):
    """How many objects are in each state."""

    trouble: int = 0
    progressing: int = 0
    good: int = 0

    @property
    def total(self) -> int:
        return self.trouble + self.progressing + self.good


def identity(resource: str, namespace: str, name: str) -> str:
    """The `id` of a row."""
    return f"{resource}/{namespace}/{name}"


def row(wire: Wire, seen: Glance, *, resource: str, kind: str, owner: str = "", paused: bool = False) -> Row:
    """The row of an object of which this was seen."""
    meta = wire.get("metadata") or {}
    namespace, name = str(meta.get("namespace", "")), str(meta.get("name", ""))
    return Row(
        id=identity(resource, namespace, name),
        kind=kind,
        resource=resource,
        namespace=namespace,
        name=name,
        phase=seen.phase,
        health=seen.health,
        because=seen.because,
        code=seen.code,
        since=seen.since,
        created=meta.get("creationTimestamp"),
        verb=seen.verb,
        ready=seen.ready,
        desired=seen.desired,
        updated=seen.updated,
        floor=min(seen.floors, key=lambda each: each.margin, default=None),
        floors=len(seen.floors),
        owner=owner,
        paused=paused,
    )


def with_rollout(row: Row, standing: Standing) -> Row:
    """The row with what the parts of the object show, which a row alone does not know."""
    floors = tuple(map(FloorBar.of, standing.floors))
    return msgspec.structs.replace(
        row,
        phase=row.phase if row.phase == DELETING else standing.phase,
        health=row.health if row.health is Health.TROUBLE else health_of_rollout(standing.state, floors),
        because=standing.because.message,
        code=standing.because.code,
        verb=standing.verb,
        ready=standing.ready,
        desired=standing.desired,
        updated=standing.updated,
        floor=min(floors, key=lambda each: each.margin, default=None),
        floors=len(floors),
    )


_ORDER: Final = {Health.TROUBLE: 0, Health.PROGRESSING: 1, Health.GOOD: 2}


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows as they are listed: trouble first, then what is in progress, then by namespace, kind and name."""
    return sorted(rows, key=lambda each: (_ORDER[each.health], each.namespace, each.kind, each.name))


def counts(rows: Iterable[Row]) -> Counts:
    found = dict.fromkeys(Health, 0)
    for each in rows:
        found[each.health] += 1
    return Counts(trouble=found[Health.TROUBLE], progressing=found[Health.PROGRESSING], good=found[Health.GOOD])


# --- what any object says of itself

_BAD: Final = ("Blocked", "Failed", "Stalled", "ReplicaFailure")
"""Conditions that mean trouble where they are True."""

_BAD_PHASES: Final = frozenset({"Failed", "Blocked", "Error", "Degraded", "Unhealthy", "Rejected", "Lost"})
_PHASES: Final = ("phase", "currentState", "state")
"""The fields of a status that name the phase."""

_SUMMARIES: Final = (*SUMMARIES, "Succeeded", "Complete", "Completed")

NEW: Final = "New"
DELETING: Final = "Deleting"
NOT_REPORTED: Final = "not reconciled yet: its operator has not written a status"


def glance(wire: Wire, *, floors: tuple[FloorBar, ...] | None = None, counts: Counted | None = None) -> Glance:
    """What any object says of itself: by its phase, its conditions and the floor of its status."""
    status = wire.get("status") or {}
    floors = tuple(floors_of(wire)) if floors is None else floors
    ready, desired, updated = counted(wire) if counts is None else counts
    summary = _summary(wire)
    stated = _bad(wire) or summary
    phase = _phase(wire)
    if not status:
        return Glance(phase=phase, health=Health.PROGRESSING, because=NOT_REPORTED, since=_created(wire))
    said = "; ".join(waits(wire))
    is_good = _is_ready(summary) and not said
    health = health_of(wire, at_rest=is_good or (summary is None and not said), floors=floors)
    message = (stated or {}).get("message") or said or status.get("message") or ""
    return Glance(
        phase=phase,
        health=health,
        because=str(message),
        code=str((stated or {}).get("reason") or ""),
        since=since(wire, stated),
        ready=ready,
        desired=desired,
        updated=updated,
        floors=floors,
    )


Counted = tuple[int | None, int | None, int | None]
"""How many replicas are ready, desired and updated; None where that is not known."""


def counted(wire: Wire) -> Counted:
    """The counts in the fields that most kinds have."""
    status, spec = wire.get("status") or {}, wire.get("spec") or {}
    ready = _number(status, "availableReplicas", "readyReplicas")
    return ready, _number(spec, "replicas"), _number(status, "updatedReplicas")


def health_of(wire: Wire, *, at_rest: bool, floors: Iterable[FloorBar] = (), phase: str = "") -> Health:
    """How an object is, where its kind says only its phase, and whether it is at rest."""
    if (
        any(each.broken for each in floors)
        or (phase or _phase(wire)).capitalize() in _BAD_PHASES
        or _bad(wire) is not None
    ):
        return Health.TROUBLE
    return Health.GOOD if at_rest else Health.PROGRESSING


_HEALTH: Final = {
    RolloutState.COMPLETED: Health.GOOD,
    RolloutState.BLOCKED: Health.TROUBLE,
    RolloutState.FAILED: Health.TROUBLE,
    RolloutState.REJECTED: Health.TROUBLE,
    RolloutState.RETURNING: Health.TROUBLE,
}


def health_of_rollout(state: RolloutState, floors: Iterable[FloorBar] = ()) -> Health:
    """How an object is whose rollout is in this state."""
    if any(each.broken for each in floors):
        return Health.TROUBLE
    return _HEALTH.get(state, Health.PROGRESSING)


def floors_of(wire: Wire) -> Iterator[FloorBar]:
    """The floor of a status, where it has one in the usual form (`FloorStatus`)."""
    found = (wire.get("status") or {}).get("floor")
    if isinstance(found, Mapping):
        yield floor_bar(found, desired=_number(wire.get("spec") or {}, "replicas") or 0)


def floor_bar(reported: Mapping[str, Any], *, desired: int, name: str = "") -> FloorBar:
    """The bar of a floor as a status has it."""
    try:
        status = msgspec.convert(reported, FloorStatus)
    except msgspec.ValidationError:
        status = FloorStatus()
    return FloorBar.of(Floor.reported(status, desired=desired, name=name))


def since(wire: Wire, stated: Wire | None) -> str | None:
    """Since when a condition is as it is; without one, since when the object exists."""
    return (stated or {}).get("lastTransitionTime") or _created(wire)


def _summary(wire: Wire) -> Wire | None:
    return next((each for type in _SUMMARIES if (each := condition(wire, type))), None)


def _is_ready(found: Wire | None) -> bool:
    return found is not None and found.get("status") == "True"


def _bad(wire: Wire) -> Wire | None:
    true = (each for each in conditions(wire) if each.get("status") == "True")
    return next((each for each in true if each.get("type") in _BAD), None)


def _phase(wire: Wire) -> str:
    if (wire.get("metadata") or {}).get("deletionTimestamp"):
        return DELETING
    status = wire.get("status") or {}
    named = next((str(status[field]) for field in _PHASES if isinstance(status.get(field), str) and status[field]), "")
    if named:
        return named
    summary = _summary(wire)
    if summary is None:
        return NEW if not status else "Ready"
    return str(summary["type"]) if _is_ready(summary) else f"Not{summary['type']}"


def _created(wire: Wire) -> str | None:
    return (wire.get("metadata") or {}).get("creationTimestamp")


def _number(fields: Wire, *names: str) -> int | None:
    found = (fields.get(name) for name in names)
    return next((each for each in found if isinstance(each, int) and not isinstance(each, bool)), None)
