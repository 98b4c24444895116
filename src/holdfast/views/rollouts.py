"""A rollout as people ask about it: where it stands, whether it is over, and what came before.

Pure.  A `Standing` is what any kind that rolls out comes to; each kind has a module of its
own that makes one from its objects.  Words and numbers only: how they are laid out, where
the objects come from, and of which kind they are, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.kernel.reasons import count
from holdfast.kinds.model import Condition, Status
from holdfast.meta import times

CAUSE: Final = "kubernetes.io/change-cause"
"""The annotation by which people say why they changed something."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    spec: dict[str, Any] = {}
    configs: dict[str, str] = {}
    restarted_at: str = ""


class Record(msgspec.Struct, frozen=True):
    """A ControllerRevision: what the replicas of a revision are made from, and how new it is."""

    metadata: _Meta = _Meta()
    data: _Data = _Data()
    revision: int = 0


class RolloutState(StrEnum):
    """What a rollout comes to."""

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
        """Nothing will change any more, unless somebody changes what is asked for."""
        return self in (RolloutState.BLOCKED, RolloutState.COMPLETED, RolloutState.FAILED, RolloutState.REJECTED)


@dataclass(frozen=True, slots=True)
class Because:
    """Why something happens, or does not: a word for machines and a sentence for people."""

    code: str
    message: str


UNSEEN: Final = Because("Unseen", "no operator has said anything of it yet; is one running?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What has to stay ready of something.

    name    what; empty where it is all there is
    most    how many there may be
    lowest  the fewest that were ready since the rollout began, where anybody counted
    """

    name: str = ""
    ready: int
    desired: int
    floor: int
    most: int = 0
    lowest: int | None = None

    @property
    def held(self) -> bool:
        return self.ready >= self.floor

    @property
    def words(self) -> str:
        """``3 ready (floor 3)``."""
        told = f"{self.ready:,} ready (floor {self.floor:,})"
        return f"{self.name} {told}" if self.name else told


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a rollout stands.

    unit       what it counts
    state      where it stands, in one word
    because    why it does what it does, or what it waits for
    remedy     what the operator says somebody has to change, where it is blocked
    verb       what somebody can do about the reason
    ready      of those that are desired
    old        how many are of an earlier revision; None: nobody counts them
    current    the revision that was last rolled out completely
    target     the one that is being rolled out
    rejected   the one that the spec asks for, if it is refused
    ended      when it was complete
    until      when a timed pause ends
    due        when it is late, if nothing gets further
    facts      what else is worth a word
    more       the same for machines, by names of the kind's own
    """

    name: str
    unit: str = "replica"
    strategy: str
    state: RolloutState
    phase: str
    because: Because
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
    started: datetime | None = None
    ended: datetime | None = None
    expected: datetime | None = None
    until: datetime | None = None
    due: datetime | None = None
    warnings: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def floor(self) -> Floor | None:
        """The floor, where there is one for all."""
        return self.floors[0] if len(self.floors) == 1 and not self.floors[0].name else None


# --- what statuses have in common


def moment(text: str | None) -> datetime | None:
    return times.parse(text) if text else None


def condition(status: Status, type: str) -> Condition | None:
    return next((each for each in status.conditions if each.type == type), None)


def holds(status: Status, type: str) -> Condition | None:
    """A condition that holds."""
    found = condition(status, type)
    return found if found is not None and found.status == "True" else None


def said(found: Condition | None) -> Because:
    """What a condition says."""
    return UNSEEN if found is None else Because(found.reason or "", found.message or "")


# --- in words


def line(standing: Standing) -> str:
    """Where it stands in one line, for logs; it changes when something does."""
    if standing.state is RolloutState.UNSEEN:
        stale = "the operator has not looked at the latest change yet"
        return f"{standing.name}: {UNSEEN.message if standing.because == UNSEEN else stale}"
    old = () if standing.old is None else (f"{standing.old:,} old",)
    counts = ", ".join((f"{standing.updated:,} of {standing.desired:,} updated", *_floors(standing), *old))
    step = f", step {standing.step} of {standing.steps}" if standing.steps > 1 else ""
    because = f"{standing.because.message} ({standing.because.code})"
    remedy = f"; {standing.remedy}" if standing.remedy and standing.state.final else ""
    return f"{standing.name}: {standing.phase}: {counts}{step}: {because}{remedy}"


def ending(standing: Standing) -> str:
    """How it ended, in a sentence; or what it waits for."""
    match standing.state:
        case RolloutState.COMPLETED:
            revision = f"revision {standing.target} is " if standing.target else ""
            return f"{standing.name}: {revision}rolled out: {_ready(standing)}"
        case RolloutState.REJECTED:
            return f"{standing.name}: revision {standing.rejected} was rejected; {standing.target} is back"
        case _:
            return line(standing)


def _ready(standing: Standing) -> str:
    return f"{standing.ready:,} of {count(standing.desired, standing.unit)} ready"


_MOST_FLOORS: Final = 3
"""Floors that are told one by one in a line."""


def _floors(standing: Standing) -> tuple[str, ...]:
    """How the floors are: each, or, where there are many, those that do not hold."""
    broken = [each for each in standing.floors if not each.held]
    if len(standing.floors) <= _MOST_FLOORS:
        return tuple(each.words for each in standing.floors)
    if not broken:
        return (f"all {len(standing.floors):,} floors held",)
    rest = len(broken) - _MOST_FLOORS
    shown = ", ".join(each.words for each in broken[:_MOST_FLOORS])
    return (f"below their floors: {shown}{f' and {rest:,} more' if rest > 0 else ''}",)


def to_json(standing: Standing) -> dict[str, Any]:
    """The standing for machines; fields are only ever added."""
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
            {"name": each.name or standing.name, "ready": each.ready, "desired": each.desired, "floor": each.floor}
            for each in standing.floors
        ],
        "currentRevision": standing.current or None,
        "updateRevision": standing.target or None,
        "rejectedRevision": standing.rejected or None,
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
    """One revision of the history; `change` is what made it another than the one before."""

    number: int
    revision: str
    image: str
    made: str | None
    marks: tuple[str, ...]
    change: str
    record: Record


def history(standing: Standing, records: Iterable[Record], *, label: str, refused: str = "") -> tuple[Past, ...]:
    """The revisions, oldest first.

    label    by which records say of which revision they are
    refused  the one that is not rolled out though somebody asks for it
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
            record=record,
        )
        for record, earlier in zip(ordered, before, strict=False)
    )


def marks(standing: Standing, revision: str, *, refused: str = "") -> tuple[str, ...]:
    """What a revision is for the rollout."""
    known = (
        ("current", standing.current == revision),
        ("target", standing.target == revision and standing.current != revision),
        ("rejected", bool(refused or standing.rejected) and revision in (refused, standing.rejected)),
    )
    return tuple(word for word, holds in known if holds)


def change(before: Record | None, after: Record) -> str:
    """What differs from one revision to the next, in a few words; of values, only the image's are told."""
    if before is None:
        return "first known"
    old, new = before.data, after.data
    words = []
    if old.spec.get("image") != new.spec.get("image"):
        words.append(f"image {old.spec.get('image')} → {new.spec.get('image')}")
    words += sorted(field for field in old.spec.keys() | new.spec.keys() if _differ(old.spec, new.spec, field))
    words += [
        f"content of {name}" for name in sorted(old.configs.keys() & new.configs.keys()) if _other(old, new, name)
    ]
    if old.restarted_at != new.restarted_at and new.restarted_at:
        words.append("restart")
    return ", ".join(words) or "the same again"


def _differ(old: dict[str, Any], new: dict[str, Any], field: str) -> bool:
    return field != "image" and old.get(field) != new.get(field)


def _other(old: _Data, new: _Data, config: str) -> bool:
    return old.configs[config] != new.configs[config]


def history_rows(past: Iterable[Past], *, age: Callable[[str | None], str]) -> list[list[str]]:
    """The history as cells, its heading first."""
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
        }
        for each in past
    ]
