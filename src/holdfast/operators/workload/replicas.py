"""The replicas of a Workload in the engine's terms: what each of them is, and how many are what.

This module must not know how a revision is rolled out, nor what is done about a replica.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.pods import Pod
from holdfast.kernel import fleet as fleets
from holdfast.kernel.decisions import Kind
from holdfast.kernel.fleet import Fleet, Replica, Side, State
from holdfast.kinds.cloudless.containers import RestartPolicy
from holdfast.meta import times
from holdfast.operators.workload.course import Course
from holdfast.operators.workload.observe import World
from holdfast.operators.workload.render import REVISION
from holdfast.operators.workload.validate import duration

RESTART_BACKOFF: Final = "10s"

_STATES: Final = {
    Kind.DEAD: frozenset({State.DEAD}),
    Kind.UNREADY: frozenset({State.UNREADY}),
    Kind.READY: frozenset({State.SETTLING, State.AVAILABLE}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The replicas of one moment.

    broken     how many should serve and do not: they failed, or are not ready any more
    revive_at  when the next replica that ended is replaced
    """

    course: Course
    replicas: tuple[Replica, ...]
    pods: Mapping[str, Pod]
    min_ready: timedelta
    now: datetime
    broken: int
    revive_at: datetime | None

    def fleet(self) -> Fleet:
        """The replicas as counts."""
        return fleets.observe(
            self.replicas,
            self.course.target.revision,
            now=self.now,
            min_ready=self.min_ready,
            stable=self.course.other is not None,
            serving=self.course.serving,
        )

    def choose(self, number: int, *, side: Side, kind: Kind) -> tuple[Pod, ...]:
        """The replicas that go first, of those that a decision means."""
        chosen = fleets.choose(
            self.replicas,
            self.course.target.revision,
            side=side,
            states=_STATES[kind],
            count=number,
            now=self.now,
            min_ready=self.min_ready,
            stable=self.course.other.revision if self.course.other is not None else None,
            serving=self.course.serving,
        )
        return tuple(self.pods[name] for name in chosen)


def situation(world: World, course: Course, now: datetime) -> Situation:
    """The replicas as they are now."""
    rollout, policy = world.workload.spec.rollout, world.workload.spec.restart_policy or RestartPolicy()
    crowd = Counter(pod.spec.node_name for pod in world.pods if pod.active)
    revivals = {pod.metadata.name: _revival(pod, policy) for pod in world.pods if _has_ended(pod, policy)}
    replicas = tuple(
        Replica(
            id=pod.metadata.name,
            revision=revision_of(pod),
            created_at=times.parse(pod.metadata.creation_timestamp or ""),
            ready_since=pod.ready_since(),
            terminating=pod.deleting,
            dead=pod.metadata.name in revivals and revivals[pod.metadata.name] <= now,
            leaving=pod.spec.node_name in world.draining,
            crowding=crowd[pod.spec.node_name],
        )
        for pod in world.pods
    )
    pods = {pod.metadata.name: pod for pod in world.pods}
    stable = None if course.stable is None else course.stable.revision
    lost = [each for each in replicas if each.ready_since is None and _has_lost_it(pods[each.id], stable)]
    return Situation(
        course=course,
        replicas=replicas,
        pods=pods,
        min_ready=timedelta(seconds=(rollout.min_ready_seconds if rollout is not None else None) or 0),
        now=now,
        broken=len(revivals.keys() | {each.id for each in lost}),
        revive_at=min((moment for moment in revivals.values() if moment > now), default=None),
    )


def revision_of(pod: Pod) -> str:
    """The revision that a replica was made from; one that lost its label is of none, and makes way."""
    return pod.metadata.labels.get(REVISION, "")


def _has_ended(pod: Pod, policy: RestartPolicy) -> bool:
    """Whether it failed for good: its containers are not started again, or were too often."""
    given_up = policy.max_retries is not None and pod.restarts > policy.max_retries and not pod.ready
    return not pod.deleting and (pod.finished or given_up)


def _revival(pod: Pod, policy: RestartPolicy) -> datetime:
    """When a replica that ended is replaced: at once, unless it ended as soon as it started."""
    return times.parse(pod.metadata.creation_timestamp or "") + duration(policy.backoff or RESTART_BACKOFF)


def _has_lost_it(pod: Pod, stable: str | None) -> bool:
    """Whether one that is not ready was so once: it restarted, or it is of what was rolled out completely."""
    return pod.active and (pod.restarts > 0 or revision_of(pod) == stable)
