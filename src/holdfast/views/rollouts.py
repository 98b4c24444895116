"""A rollout as people ask about it: where it stands, whether it is over, and what came before.

Pure.  From a Workload and the records of its revisions to a `Standing` and rows of
history; kinds that come later give the same `Standing`.  Words and numbers only: how they
are laid out, and where the objects come from, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.kernel.reasons import Code, count
from holdfast.kinds.cloudless import Workload, WorkloadStatus
from holdfast.kinds.cloudless.rollouts import Because, Rollout, RolloutStatus
from holdfast.kinds.model import Condition
from holdfast.meta import durations, times

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


class Verdict(StrEnum):
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
        return self in (Verdict.BLOCKED, Verdict.COMPLETED, Verdict.FAILED, Verdict.REJECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a rollout stands.

    label         by which replicas and records say of which revision they are
    verdict       what it comes to
    because       why it does what it does, or what it waits for
    remedy        what the operator says somebody has to change, where it is blocked
    current       the revision that was last rolled out completely
    target        the one that is being rolled out
    rejected      the one that the spec asks for, if it is refused
    ended         when it was complete
    until         when a timed pause ends
    due           when it is late, if nothing gets further
    lowest        the fewest ready replicas since it began
    """

    name: str
    label: str
    strategy: str
    verdict: Verdict
    phase: str
    because: Because
    remedy: str
    step: int
    steps: int
    desired: int
    ready: int
    available: int
    updated: int
    old: int
    floor: int
    most: int
    current: str
    target: str
    rejected: str
    started: datetime | None
    ended: datetime | None
    expected: datetime | None
    until: datetime | None
    due: datetime | None
    lowest: int | None
    min_ready: timedelta
    warnings: tuple[str, ...]


# --- of a Workload

REVISION: Final = "cloudless.io/revision"
"""The label of its replicas and records."""

_NOTHING_KNOWN: Final = Because(code="Unseen", message="no operator has said anything of it yet; is one running?")
_PASSES: Final = frozenset({Code.AT_FLOOR.value, Code.AT_CEILING.value, "RequestRefused"})
"""Blocked for as long as replicas come and go, or until the operator tries again; nobody has to do anything."""
_FOR_SOMEBODY: Final = frozenset({Code.PAUSED.value, Code.APPROVAL_NEEDED.value, Code.DELETION_NEEDED.value})
_REJECTED: Final = "RevisionRejected"
"""What a Workload says once everything is back."""
_GOING_BACK: Final = frozenset({Code.ROLLING_BACK.value, Code.ABORTING.value})


def standing(workload: Workload, *, seen: bool = True) -> Standing:
    """Where the rollout of a Workload stands; `seen`: its status is about what is asked for now."""
    status, wish = workload.status or WorkloadStatus(), workload.spec.rollout or Rollout()
    told, limits = status.rollout or RolloutStatus(), status.limits
    return Standing(
        name=workload.metadata.name or "",
        label=REVISION,
        strategy=str(wish.strategy or "RollingUpdate"),
        verdict=_verdict(status) if seen else Verdict.UNSEEN,
        phase=status.phase or "New",
        because=_because(status),
        remedy=_remedy(status),
        step=told.step or 1,
        steps=told.steps or 1,
        desired=1 if workload.spec.replicas is None else workload.spec.replicas,
        ready=status.ready_replicas or 0,
        available=status.available_replicas or 0,
        updated=status.updated_replicas or 0,
        old=status.old_replicas or 0,
        floor=(limits.floor or 0) if limits is not None else 0,
        most=(limits.max_live or 0) if limits is not None else 0,
        current=status.current_revision or "",
        target=status.update_revision or "",
        rejected=status.rejected_revision or "",
        started=_moment(told.started_at),
        ended=_ended(status),
        expected=_moment(told.estimated_end),
        until=_moment(told.paused_until),
        due=_due(told, wish),
        lowest=told.lowest_ready,
        min_ready=timedelta(seconds=wish.min_ready_seconds or 0),
        warnings=tuple(each.message for each in limits.warnings) if limits is not None else (),
    )


def _verdict(status: WorkloadStatus) -> Verdict:
    code, blocked = _because(status).code, _condition(status, "Blocked")
    if status.phase is None:
        return Verdict.UNSEEN
    if status.rejected_revision is not None or code in _GOING_BACK:
        return Verdict.REJECTED if code == _REJECTED else Verdict.RETURNING
    if status.phase == "Failed" or code == Code.PROGRESS_DEADLINE_EXCEEDED.value:
        return Verdict.FAILED
    if blocked is not None and blocked.reason not in _PASSES:
        return Verdict.BLOCKED
    if code in _FOR_SOMEBODY:
        return Verdict.WAITING
    return Verdict.COMPLETED if status.phase == "Completed" else Verdict.UNDER_WAY


def _condition(status: WorkloadStatus, type: str) -> Condition | None:
    """A condition that holds."""
    return next((each for each in status.conditions if each.type == type and each.status == "True"), None)


def _because(status: WorkloadStatus) -> Because:
    """The reason; what keeps the operator from doing anything at all only a condition tells."""
    told = status.rollout.because if status.rollout is not None else None
    blocked = _condition(status, "Blocked")
    if blocked is not None and (told is None or blocked.reason != told.code):
        return Because(code=blocked.reason or "", message=blocked.message or "")
    return told or _NOTHING_KNOWN


def _remedy(status: WorkloadStatus) -> str:
    """What to change: the Blocked condition says it behind the reason."""
    blocked, because = _condition(status, "Blocked"), _because(status)
    return "" if blocked is None else (blocked.message or "").removeprefix(because.message).removeprefix("; ")


def _ended(status: WorkloadStatus) -> datetime | None:
    completed = _condition(status, "Completed")
    return None if completed is None else _moment(completed.last_transition_time)


def _due(told: RolloutStatus, wish: Rollout) -> datetime | None:
    if told.progressed_at is None or wish.progress_deadline is None:
        return None
    pause = durations.parse(wish.pause_duration) if wish.pause_duration else timedelta()
    return times.parse(told.progressed_at) + pause + durations.parse(wish.progress_deadline)


def _moment(text: str | None) -> datetime | None:
    return times.parse(text) if text else None


# --- in words


def line(standing: Standing) -> str:
    """Where it stands in one line, for logs; it changes when something does."""
    if standing.verdict is Verdict.UNSEEN:
        return f"{standing.name}: {_NOTHING_KNOWN.message}"
    counts = (
        f"{standing.updated:,} of {standing.desired:,} updated, {standing.ready:,} ready (floor {standing.floor:,}), "
        f"{standing.old:,} old"
    )
    step = f", step {standing.step} of {standing.steps}" if standing.steps > 1 else ""
    because = f"{standing.because.message} ({standing.because.code})"
    remedy = f"; {standing.remedy}" if standing.remedy and standing.verdict.final else ""
    return f"{standing.name}: {standing.phase}: {counts}{step}: {because}{remedy}"


def ending(standing: Standing) -> str:
    """How it ended, in a sentence; or what it waits for."""
    match standing.verdict:
        case Verdict.COMPLETED:
            return f"{standing.name}: revision {standing.target} is rolled out: {_ready(standing)}"
        case Verdict.REJECTED:
            return f"{standing.name}: revision {standing.rejected} was rejected; {standing.target} is back"
        case _:
            return line(standing)


def _ready(standing: Standing) -> str:
    return f"{standing.ready:,} of {count(standing.desired)} ready"


def to_json(standing: Standing) -> dict[str, Any]:
    """The standing for machines; fields are only ever added."""
    return {
        "name": standing.name,
        "strategy": standing.strategy,
        "verdict": standing.verdict.value,
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
        "floor": standing.floor,
        "maxLive": standing.most,
        "lowestReady": standing.lowest,
        "currentRevision": standing.current or None,
        "updateRevision": standing.target or None,
        "rejectedRevision": standing.rejected or None,
        "startedAt": _written(standing.started),
        "completedAt": _written(standing.ended),
        "estimatedEnd": _written(standing.expected),
        "pausedUntil": _written(standing.until),
        "lateAt": _written(standing.due),
        "warnings": list(standing.warnings),
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


def history(standing: Standing, records: Iterable[Record], *, refused: str = "") -> tuple[Past, ...]:
    """The revisions, oldest first; `refused` is the one that is not rolled out though somebody asks for it."""
    ordered = sorted(records, key=lambda record: record.revision)
    before: Sequence[Record | None] = (None, *ordered)
    return tuple(
        Past(
            number=record.revision,
            revision=(name := record.metadata.labels.get(standing.label, "")),
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
