"""Why replicas of a Workload are not ready: the gravest problem that does not pass by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.kernel import pod_problems
from holdfast.kernel.fleet import Replica
from holdfast.kernel.pod_problems import Diagnosis, PodReason, ReportedPod
from holdfast.operators.workload.observe import World

PROBE_PATIENCE: Final = timedelta(seconds=30)
"""How old a replica is before a readiness probe that has not succeeded yet counts as failing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """
    worst    the gravest problem of the target revision, or else of the others; None if all pass by themselves
    look_at  when a replica whose probe has not succeeded yet becomes old enough to count; None: no such replica
    """

    worst: Diagnosis | None = None
    look_at: datetime | None = None


def problems(world: World, *, target: str, now: datetime) -> Problems:
    """The problems of the replicas that are not ready."""
    wanted: list[ReportedPod] = []
    others: list[ReportedPod] = []
    moments: list[datetime] = []
    for each in world.idle:
        reported, found = each.reported, each.problem
        if reported is None or found is None or found.passes:
            continue
        counts_at = _counts_at(each.replica)
        if found.reason is PodReason.PROBE_FAILING and now < counts_at:
            moments.append(counts_at)
        else:
            (wanted if each.replica.revision == target else others).append(reported)
    return Problems(worst=pod_problems.diagnose(wanted or others), look_at=min(moments, default=None))


def _counts_at(replica: Replica) -> datetime:
    return replica.created_at if replica.restarts else replica.created_at + PROBE_PATIENCE
