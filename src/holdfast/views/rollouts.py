"""The state of a rollout, in the same form for every kind: counts, floors, reason, history.

Pure.  The `view` module of each operator makes a `Standing` from its objects.  This module
must not know any kind, where objects come from, nor how a rollout is laid out on a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.kernel.floors import FLOOR_LOWERED
from holdfast.kernel.reasons import count
from holdfast.kinds.model import Condition, FloorStatus, Status
from holdfast.meta import times

CAUSE: Final = "kubernetes.io/change-cause"
"""The annotation in which users write why they changed an object."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    spec: dict[str, Any] = {}
    metadata: dict[str, dict[str, str]] = {}
    configs: dict[str, str] = {}
    restarted_at: str = ""


class Record(msgspec.Struct, frozen=True):
    """A ControllerRevision: the template of a revision, and its number."""

    metadata: _Meta = _Meta()
    data: _Data = _Data()
    revision: int = 0


class RolloutState(StrEnum):
    """The state of a rollout.

    UNSEEN     the operator has not observed the latest change
    UNDER_WAY  replicas are being replaced
    WAITING    it is paused, or waits for approval
    BLOCKED    it cannot go on until the spec, or something else, is changed
    RETURNING  the revision was rejected, and the one before is rolled out again
    COMPLETED  the desired revision is rolled out
    FAILED     it made no progress within its deadline
    REJECTED   the revision was rejected, and the one before is rolled out
    """

    UNSEEN = "Unseen"
    UNDER_WAY = "UnderWay"
    WAITING = "Waiting"
    BLOCKED = "Blocked"
    RETURNING = "Returning"
    COMPLETED = "Completed"
    FAILED = "Failed"
    REJECTED = "Rejected"

    @property
    def final(self) -> bool:
        """Whether the state stays until a user changes something."""
        return self in (RolloutState.BLOCKED, RolloutState.COMPLETED, RolloutState.FAILED, RolloutState.REJECTED)


class Because(msgspec.Struct, frozen=True, gc=False):
    """A reason: a code for programs and a message for users."""

    code: str
    message: str


UNSEEN: Final = Because("Unseen", "it has no status yet; is its operator running?")


class Floor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The number of replicas that must stay ready.

    name     the part that the floor is for; empty where there is one floor for all
    most     the maximum number of replicas
    lowest   the fewest that were ready since the rollout began; None: the operator does not count them
    lowered  by how many the floor is below minAvailable, as a declared exception (`FloorLowered`)
    """

    name: str = ""
    ready: int
    desired: int
    floor: int
    most: int = 0
    lowest: int | None = None
    lowered: int = 0

    @classmethod
    def reported(cls, status: FloorStatus | None, *, desired: int, name: str = "", most: int = 0) -> Floor:
        """The floor of a part with so many desired replicas, from its status."""
        status = status or FloorStatus()
        return cls(
            name=name,
            ready=status.available or 0,
            desired=desired,
            floor=status.required or 0,
            most=most,
            lowest=status.lowest,
            lowered=status.lowered or 0,
        )

    @property
    def held(self) -> bool:
        return self.ready >= self.floor

    @property
    def words(self) -> str:
        """``3 ready (floor 3, lowered by 1, lowest 2)``; the lowest where it is below what is ready now."""
        details = [f"floor {self.floor:,}"]
        if self.lowered:
            details.append(f"lowered by {self.lowered:,}")
        if self.lowest is not None and self.lowest < self.ready:
            details.append(f"lowest {self.lowest:,}")
        counted = f"{self.ready:,} ready ({', '.join(details)})"
        return f"{self.name} {counted}" if self.name else counted


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a rollout, with its counts.

    unit       what is counted
    because    the reason: what the operator does, or what it waits for
    result     the message when it is complete, for kinds that do not count replicas
    remedy     what the user has to change, where the rollout is blocked
    verb       the verb of `holdfast rollout` that answers the reason
    ready      how many of the desired replicas are ready
    old        how many are of an earlier revision; None: the operator does not count them
    current    the revision that was last rolled out completely
    target     the revision that is being rolled out
    rejected   the revision of the spec, where it is rejected
    serving    the revision that receives the traffic, where a Service selects one
    ended      when the rollout was complete
    until      when a timed pause ends
    progressed when the rollout that is under way last made progress
    due        the deadline, if there is no more progress
    warnings   declared exceptions, such as a lowered floor, and the like
    facts      more to show beside the counts
    more       fields of the kind's own, for programs
    figures    figures of the kind's own, for metrics
    """

    name: str
    unit: str = "replica"
    strategy: str
    state: RolloutState
    phase: str
    because: Because
    result: str = ""
    remedy: str = ""
    verb: str = ""
    step: int = 1
    steps: int = 1
    desired: int
    ready: int
    available: int
    updated: int
    old: int | None = None
    floors: tuple[Floor, ...] = ()
    current: str = ""
    target: str = ""
    rejected: str = ""
    serving: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    expected: datetime | None = None
    until: datetime | None = None
    progressed: datetime | None = None
    due: datetime | None = None
    warnings: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    more: Mapping[str, Any] = {}
    figures: Mapping[str, float] = {}

    @property
    def floor(self) -> Floor | None:
        """The floor, where there is one for all replicas."""
        return self.floors[0] if len(self.floors) == 1 and not self.floors[0].name else None


# --- what statuses have in common


def moment(text: str | None) -> datetime | None:
    return times.parse(text) if text else None


def condition(status: Status, type: str) -> Condition | None:
    for each in status.conditions:
        if each.type == type:
            return each
    return None


def holds(status: Status, type: str) -> Condition | None:
    """The condition, where it is True."""
    found = condition(status, type)
    return found if found is not None and found.status == "True" else None


def said(found: Condition | None) -> Because:
    """The reason and the message of a condition."""
    return UNSEEN if found is None else Because(found.reason or "", found.message or "")


def floor_warnings(status: Status) -> tuple[str, ...]:
    """The message of the condition FloorLowered, where it is True."""
    found = holds(status, FLOOR_LOWERED)
    return () if found is None else (found.message or "",)


# --- in words


def line(standing: Standing) -> str:
    """The rollout in one line, for logs."""
    if standing.state is RolloutState.UNSEEN:
        stale = "the operator has not observed the latest change yet"
        return f"{standing.name}: {UNSEEN.message if standing.because == UNSEEN else stale}"
    old = () if standing.old is None else (f"{standing.old:,} old",)
    counts = ", ".join((f"{standing.updated:,} of {standing.desired:,} updated", *_floors(standing), *old))
    step = f", step {standing.step} of {standing.steps}" if standing.steps > 1 else ""
    because = f"{standing.because.message} ({standing.because.code})"
    remedy = f"; {standing.remedy}" if standing.remedy and standing.state.final else ""
    return f"{standing.name}: {standing.phase}: {counts}{step}: {because}{remedy}"


def ending(standing: Standing) -> str:
    """How the rollout ended; while it has not, the same as `line`."""
    match standing.state:
        case RolloutState.COMPLETED:
            if standing.result:
                return f"{standing.name}: {standing.result}"
            revision = f"revision {standing.target} is " if standing.target else ""
            return f"{standing.name}: {revision}rolled out: {_ready(standing)}"
        case RolloutState.REJECTED:
            return f"{standing.name}: revision {standing.rejected} was rejected; {standing.target} is back"
        case _:
            return line(standing)


def _ready(standing: Standing) -> str:
    return f"{standing.ready:,} of {count(standing.desired, standing.unit)} ready"


_MOST_FLOORS: Final = 3
"""The most floors that a line names one by one."""


def _floors(standing: Standing) -> tuple[str, ...]:
    """The floors: each of them, or, where there are many, those that are broken."""
    broken = [each for each in standing.floors if not each.held]
    if len(standing.floors) <= _MOST_FLOORS:
        return tuple(each.words for each in standing.floors)
    if not broken:
        return (f"all {len(standing.floors):,} floors held",)
    rest = len(broken) - _MOST_FLOORS
    shown = ", ".join(each.words for each in broken[:_MOST_FLOORS])
    return (f"below their floors: {shown}{f' and {rest:,} more' if rest > 0 else ''}",)


def to_json(standing: Standing) -> dict[str, Any]:
    """The rollout for programs; fields are only ever added."""
    floor = standing.floor
    return {
        "name": standing.name,
        "strategy": standing.strategy,
        "state": standing.state.value,
        "phase": standing.phase,
        "because": {"code": standing.because.code, "message": standing.because.message},
        "remedy": standing.remedy or None,
        "step": standing.step,
        "steps": standing.steps,
        "replicas": standing.desired,
        "readyReplicas": standing.ready,
        "availableReplicas": standing.available,
        "updatedReplicas": standing.updated,
        "oldReplicas": standing.old,
        "floor": None if floor is None else floor.floor,
        "maxLive": None if floor is None else floor.most,
        "lowestReady": None if floor is None else floor.lowest,
        "floors": [
            {
                "name": each.name or standing.name,
                "ready": each.ready,
                "desired": each.desired,
                "floor": each.floor,
                "lowered": each.lowered,
                "lowest": each.lowest,
            }
            for each in standing.floors
        ],
        "currentRevision": standing.current or None,
        "updateRevision": standing.target or None,
        "rejectedRevision": standing.rejected or None,
        "servingRevision": standing.serving or None,
        "startedAt": _written(standing.started),
        "completedAt": _written(standing.ended),
        "estimatedEnd": _written(standing.expected),
        "pausedUntil": _written(standing.until),
        "lateAt": _written(standing.due),
        "warnings": list(standing.warnings),
        **standing.more,
    }


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else times.format(moment)


# --- history


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One revision of the history.

    change  how it differs from the one before
    why     why and when it was rejected; empty where it is not, or where that is not known
    """

    number: int
    revision: str
    image: str
    made: str | None
    marks: tuple[str, ...]
    change: str
    why: str = ""
    record: Record


def history(
    standing: Standing, records: Iterable[Record], *, label: str, refused: str = "", why: str = ""
) -> tuple[Past, ...]:
    """The revisions, oldest first.

    label    the label of a record that names its revision
    refused  the revision that is rejected, if any
    why      why and when it was rejected
    """
    ordered = sorted(records, key=lambda record: record.revision)
    before: Sequence[Record | None] = (None, *ordered)
    return tuple(
        Past(
            number=record.revision,
            revision=(name := record.metadata.labels.get(label, "")),
            image=str(record.data.spec.get("image", "")),
            made=record.metadata.creation_timestamp,
            marks=marks(standing, name, refused=refused),
            change=record.metadata.annotations.get(CAUSE) or change(earlier, record),
            why=why if refused and name == refused else "",
            record=record,
        )
        for record, earlier in zip(ordered, before, strict=False)
    )


def marks(standing: Standing, revision: str, *, refused: str = "") -> tuple[str, ...]:
    """Whether a revision is current, the target, serving, or rejected."""
    known = (
        ("current", standing.current == revision),
        ("target", standing.target == revision and standing.current != revision),
        ("serving", bool(standing.serving) and standing.serving == revision),
        ("rejected", bool(refused or standing.rejected) and revision in (refused, standing.rejected)),
    )
    return tuple(word for word, holds in known if holds)


def change(before: Record | None, after: Record) -> str:
    """How a revision differs from the one before: the image by value, other fields by name."""
    if before is None:
        return "first known"
    old, new = before.data, after.data
    words = []
    if old.spec.get("image") != new.spec.get("image"):
        words.append(f"image {old.spec.get('image')} → {new.spec.get('image')}")
    words += sorted(field for field in old.spec.keys() | new.spec.keys() if _differ(old.spec, new.spec, field))
    words += sorted(field for field in old.metadata.keys() | new.metadata.keys() if _differs(old, new, field))
    words += [
        f"content of {name}" for name in sorted(old.configs.keys() & new.configs.keys()) if _other(old, new, name)
    ]
    if old.restarted_at != new.restarted_at and new.restarted_at:
        words.append("restart")
    return ", ".join(words) or "the same again"


def _differ(old: dict[str, Any], new: dict[str, Any], field: str) -> bool:
    return field != "image" and old.get(field) != new.get(field)


def _differs(old: _Data, new: _Data, field: str) -> bool:
    return old.metadata.get(field) != new.metadata.get(field)


def _other(old: _Data, new: _Data, config: str) -> bool:
    return old.configs[config] != new.configs[config]


def history_rows(past: Iterable[Past], *, age: Callable[[str | None], str]) -> list[list[str]]:
    """The history as a table: the column titles first."""
    heading = ["REVISION", "NAME", "AGE", "IMAGE", "STATE", "CHANGE"]
    rows = [
        [str(each.number), each.revision, age(each.made), each.image, ", ".join(each.marks) or "-", each.change]
        for each in past
    ]
    return [heading, *rows]


def history_json(past: Iterable[Past]) -> list[dict[str, Any]]:
    return [
        {
            "number": each.number,
            "revision": each.revision,
            "image": each.image,
            "createdAt": each.made,
            "marks": list(each.marks),
            "change": each.change,
            "rejection": each.why or None,
        }
        for each in past
    ]
