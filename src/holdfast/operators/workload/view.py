"""The view of a Workload: where its rollout stands, and its revisions and pods as a tree.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel.floors import FLOOR_LOWERED
from holdfast.kernel.reasons import Code
from holdfast.kinds.cloudless import Workload, WorkloadStatus
from holdfast.kinds.cloudless.rollouts import EffectiveLimits, Rollout, RolloutStatus
from holdfast.kinds.model import Condition
from holdfast.meta import durations, times
from holdfast.operators.rollouts import (
    NOT_REPORTED,
    Demo,
    Headline,
    Wire,
    is_current,
    status_of,
    with_version,
)
from holdfast.operators.shown import of_standing
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.render import REVISION, WORKLOAD
from holdfast.runtime.controllers import View
from holdfast.views.overview import Glance
from holdfast.views.rollouts import (
    UNSEEN,
    Because,
    Floor,
    Record,
    RolloutState,
    Standing,
    holds,
    marks,
    moment,
    said,
)
from holdfast.views.trees import NEW, OLD, OTHER, Branch, Pod, Tree, leaves

_TRANSIENT: Final = frozenset({Code.AT_FLOOR.value, Code.AT_CEILING.value, WorkloadReason.REQUEST_REFUSED.value})
"""Reasons of Blocked that end without any change by a person."""
_WAITS_FOR_A_PERSON: Final = frozenset({Code.PAUSED.value, Code.APPROVAL_NEEDED.value, Code.DELETION_NEEDED.value})
_RETURNING: Final = frozenset({Code.ROLLING_BACK.value, Code.ABORTING.value})

_VERBS: Final = {
    Code.PAUSED.value: "resume",
    Code.APPROVAL_NEEDED.value: "promote",
    Code.STEP_PAUSE.value: "promote",
    Code.PROGRESS_DEADLINE_EXCEEDED.value: "undo",
}
"""The verb that ends the wait for a reason."""


def standing(workload: Workload, *, seen: bool = True) -> Standing:
    """Where the rollout of a Workload stands; `seen`: its status is about the current spec."""
    status, spec = workload.status or WorkloadStatus(), workload.spec.rollout or Rollout()
    rollout, limits = status.rollout or RolloutStatus(), status.limits
    blocked = holds(status, "Blocked")
    because = _because(rollout, blocked)
    return Standing(
        name=workload.metadata.name or "",
        strategy=str(spec.strategy or "RollingUpdate"),
        state=_state(status, because, blocked) if seen else RolloutState.UNSEEN,
        phase=status.phase or "New",
        because=because,
        remedy=_remedy(because, blocked),
        verb=_VERBS.get(because.code, ""),
        step=rollout.step or 1,
        steps=rollout.steps or 1,
        desired=_desired(workload),
        ready=status.ready_replicas or 0,
        available=status.available_replicas or 0,
        updated=status.updated_replicas or 0,
        old=status.old_replicas or 0,
        floors=(_floor(workload),),
        current=status.current_revision or "",
        target=status.update_revision or "",
        rejected=status.rejected_revision or "",
        serving=status.serving_revision or "",
        started=moment(rollout.started_at),
        ended=_ended(status),
        expected=moment(rollout.estimated_end),
        until=moment(rollout.paused_until),
        progressed=moment(rollout.progressed_at),
        due=_due(rollout, spec),
        warnings=tuple(each.message for each in limits.warnings) if limits is not None else (),
    )


def _desired(workload: Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def _floor(workload: Workload) -> Floor:
    status = workload.status or WorkloadStatus()
    limits, rollout = status.limits or EffectiveLimits(), status.rollout or RolloutStatus()
    # An announced exception is always one replica.
    lowered = int(holds(status, FLOOR_LOWERED) is not None)
    return Floor(
        ready=status.ready_replicas or 0,
        desired=_desired(workload),
        floor=max((limits.floor or 0) - lowered, 0),
        most=limits.max_live or 0,
        lowest=rollout.lowest_ready,
        lowered=lowered,
    )


def _state(status: WorkloadStatus, because: Because, blocked: Condition | None) -> RolloutState:
    code = because.code
    if status.phase is None:
        return RolloutState.UNSEEN
    if status.rejected_revision is not None or code in _RETURNING:
        return RolloutState.REJECTED if code == WorkloadReason.REJECTED.value else RolloutState.RETURNING
    if status.phase == "Failed" or code == Code.PROGRESS_DEADLINE_EXCEEDED.value:
        return RolloutState.FAILED
    if blocked is not None and blocked.reason not in _TRANSIENT:
        return RolloutState.BLOCKED
    if code in _WAITS_FOR_A_PERSON:
        return RolloutState.WAITING
    return RolloutState.COMPLETED if status.phase == "Completed" else RolloutState.UNDER_WAY


def _because(rollout: RolloutStatus, blocked: Condition | None) -> Because:
    """The reason of the rollout; a request that the API server refused is only in the Blocked condition."""
    because = rollout.because
    if blocked is not None and (because is None or blocked.reason != because.code):
        return said(blocked)
    return UNSEEN if because is None else Because(because.code, because.message)


def _remedy(because: Because, blocked: Condition | None) -> str:
    """What to change: the message of the Blocked condition ends with it."""
    return "" if blocked is None else (blocked.message or "").removeprefix(because.message).removeprefix("; ")


def _ended(status: WorkloadStatus) -> datetime | None:
    completed = holds(status, "Completed")
    return None if completed is None else moment(completed.last_transition_time)


def _due(rollout: RolloutStatus, spec: Rollout) -> datetime | None:
    if rollout.progressed_at is None or spec.progress_deadline is None:
        return None
    pause = durations.parse(spec.pause_duration) if spec.pause_duration else timedelta()
    return times.parse(rollout.progressed_at) + pause + durations.parse(spec.progress_deadline)


# --- the tree


def tree(workload: Workload, standing: Standing, records: Iterable[Record], pods: Iterable[Pod], now: datetime) -> Tree:
    """The revisions that have replicas, and the current and target ones; the target comes first."""
    spec = workload.spec.rollout or Rollout()
    known = {record.metadata.labels.get(REVISION, ""): record for record in records}
    grouped: dict[str, list[Pod]] = {}
    for pod in pods:
        grouped.setdefault(pod.metadata.labels.get(REVISION, ""), []).append(pod)
    matters = {revision for revision in (standing.current, standing.target) if revision}
    numbers = {revision: record.revision for revision, record in known.items()}
    newest_first = sorted(grouped.keys() | matters, key=lambda revision: (-numbers.get(revision, 0), revision))
    newest_first.sort(key=lambda revision: revision != standing.target)
    min_ready = timedelta(seconds=spec.min_ready_seconds or 0)

    def branch(revision: str) -> Branch:
        index = NEW if revision == standing.target else OLD if revision == standing.current else OTHER
        image = str(known[revision].data.spec.get("image", "")) if revision in known else ""
        return Branch(
            name=revision,
            index=index,
            number=str(numbers.get(revision, "")),
            marks=marks(standing, revision),
            images=(image,) if image else (),
            prefix=f"{standing.name}-",
            urgent=index == NEW,
            children=leaves(grouped.get(revision, ()), index=lambda pod: index, min_ready=min_ready, now=now),
        )

    branches = tuple(map(branch, newest_first))
    images = tuple(dict.fromkeys(image for each in reversed(branches) for image in each.images))
    return Tree(standing=standing, branches=branches, now=now, images=images, size=standing.desired)


# --- in one line, and in the demo


def headline(wire: Wire) -> Headline:
    status = status_of(wire)
    because = (status.get("rollout") or {}).get("because") or {}
    phase = status.get("phase") or "New"
    at_rest = is_current(wire) and phase == "Completed"
    return Headline(phase, because.get("message") or NOT_REPORTED, at_rest)


def glance(wire: Wire) -> Glance:
    """A row of the overview: where the rollout stands, which the status alone says."""
    workload = msgspec.convert(wire, Workload, strict=False)
    return of_standing(standing(workload, seen=is_current(wire)), wire)


def _recovered(wire: Wire) -> bool:
    """Whether the revision was rejected, and all replicas run the one before."""
    status = status_of(wire)
    whole = status.get("availableReplicas") == wire["spec"].get("replicas", 1) and not status.get("oldReplicas")
    return is_current(wire) and whole and bool(status.get("rejectedRevision"))


def _floors(wire: Wire, view: View) -> dict[str, tuple[int, int]]:
    floor = (status_of(wire).get("limits") or {}).get("floor", 0)
    return {f"workload {wire['metadata']['name']}": (floor, wire["spec"].get("replicas", 1))}


DEMO: Final = Demo(
    group=lambda name, labels: f"workload {name}" if labels.get(WORKLOAD) == name else None,
    floors=_floors,
    change=lambda manifest, version: {"spec": {"image": with_version(manifest["spec"]["image"], version)}},
    recovered=_recovered,
)
