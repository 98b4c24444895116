"""The replicas of a Workload as the engine sees them: from pods to `kernel.fleet.Replica`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.client.pods import Pod
from holdfast.kernel.fleet import Replica
from holdfast.kinds.cloudless.containers import RestartPolicy
from holdfast.meta import times
from holdfast.operators.workload.observe import World
from holdfast.operators.workload.render import REVISION
from holdfast.operators.workload.validate import duration

RESTART_BACKOFF: Final = "10s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """
    all         every replica
    broken      how many should serve and do not: they failed, or were ready before
    replace_at  when the next replica that ended is replaced; None: no replica waits for that
    """

    all: tuple[Replica, ...]
    broken: int
    replace_at: datetime | None


def replicas(world: World, *, stable: str | None, now: datetime) -> Replicas:
    """The replicas now; `stable` is the revision that was rolled out completely, if it is being replaced."""
    policy = world.workload.spec.restart_policy or RestartPolicy()
    crowd = Counter(pod.spec.node_name for pod in world.pods if pod.active)
    ended = {pod.metadata.name: _replace_at(pod, policy) for pod in world.pods if _has_ended(pod, policy)}
    found = tuple(
        Replica(
            id=pod.metadata.name,
            revision=revision_of(pod),
            created_at=times.parse(pod.metadata.creation_timestamp or ""),
            ready_since=world.sighted.get(pod.metadata.uid) or pod.ready_since(),
            terminating=pod.deleting,
            dead=pod.metadata.name in ended and ended[pod.metadata.name] <= now,
            leaving=pod.spec.node_name in world.cordoned,
            crowding=crowd[pod.spec.node_name],
            restarts=pod.restarts,
        )
        for pod in world.pods
    )
    unready = (pod for pod, each in zip(world.pods, found, strict=True) if each.ready_since is None)
    lost = {pod.metadata.name for pod in unready if _was_ready(pod, stable)}
    return Replicas(
        all=found,
        broken=len(ended.keys() | lost),
        replace_at=min((moment for moment in ended.values() if moment > now), default=None),
    )


def revision_of(pod: Pod) -> str:
    """The revision of a replica; one without the label belongs to no revision and is replaced."""
    return pod.metadata.labels.get(REVISION, "")


def _has_ended(pod: Pod, policy: RestartPolicy) -> bool:
    """Whether its containers are not restarted any more, or were restarted more often than maxRetries."""
    exhausted = policy.max_retries is not None and pod.restarts > policy.max_retries and not pod.ready
    return not pod.deleting and (pod.finished or exhausted)


def _replace_at(pod: Pod, policy: RestartPolicy) -> datetime:
    """When a replica that ended is replaced: at once, unless it is younger than the backoff."""
    return times.parse(pod.metadata.creation_timestamp or "") + duration(policy.backoff or RESTART_BACKOFF)


def _was_ready(pod: Pod, stable: str | None) -> bool:
    """Whether a replica that is not ready was ready before: it restarted, or its revision was rolled out completely."""
    return pod.active and (pod.restarts > 0 or revision_of(pod) == stable)
