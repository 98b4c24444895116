"""Which pods a job starts and stops, and what they are made of.

As many run as still have to succeed, and no more than are to run side by side; after
failures the next one waits, longer each time.  The names of new pods follow from the
job as it was seen, so a decision that is made twice makes the same pods once.
This module must not know how ends of pods are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count, islice
from typing import Any, Final

from holdfast.client.pods import Pod, from_template
from holdfast.client.resources import JOBS, PODS
from holdfast.cluster.controllers.jobs import policies
from holdfast.cluster.controllers.jobs.status import Tally
from holdfast.cluster.controllers.jobs.types import FAILURES, IGNORED_FAILURES, INDEX, TRACKING, Job, JobPod
from holdfast.cluster.controllers.replica_types import identity
from holdfast.cluster.controllers.replicasets import BURST, surplus
from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Done, Outcome, soonest, until
from holdfast.meta import names
from holdfast.runtime.decisions import Create

_BACKOFF: Final = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=10), jitter=0)
_INDEX_ENV: Final = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}
_WAITS: Final = "pods that fail are started again ever later"
_BASE_MAX: Final = 58
"""Of a generated name, without the five characters that tell pods apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Pods to start, pods to stop, and when to look again for pods that have to wait."""

    starts: tuple[Create, ...] = ()
    stops: tuple[Pod, ...] = ()
    outcome: Outcome = field(default_factory=Done)


def change(job: Job, pods: Sequence[JobPod], *, counts: Tally, now: datetime) -> Change:
    """Of starting and stopping, only one is done in a pass, and stopping comes first."""
    active = [pod for pod in pods if pod.active]
    wanted = _wanted(job, len(active), succeeded=counts.succeeded)
    stops = _stops(job, active, number=max(len(active) - wanted, 0), now=now)
    if stops or job.spec.suspend:
        return Change(stops=tuple(stops))
    awaited = sum(pod.terminating for pod in pods) if job.replaces_only_failed else 0
    missing = min(wanted - len(active) - awaited, BURST)
    if missing <= 0:
        return Change()
    indexes = list(islice(_pending(job, pods, counts=counts), missing)) if job.indexed else [None] * missing
    due = [_retry_at(job, pods, held=counts.held.get(index) if index is not None else None) for index in indexes]
    ready = [index for index, at in zip(indexes, due, strict=True) if at is None or at <= now]
    waits = (until(at, now=now, because=_WAITS) for at in due if at is not None and at > now)
    return Change(starts=tuple(_started(job, pods, ready, held=counts.held)), outcome=soonest(waits))


def _wanted(job: Job, active: int, *, succeeded: int) -> int:
    spec = job.spec
    if spec.suspend:
        return 0
    if spec.completions is None:
        # Pods share one piece of work: when one has succeeded it is done, and the others may end in peace.
        return active if succeeded else spec.parallelism
    return max(min(spec.completions - succeeded, spec.parallelism), 0)


# --- which ones go


def _stops(job: Job, active: Sequence[JobPod], *, number: int, now: datetime) -> list[Pod]:
    """At least so many, those that are missed least; of an indexed job, first those that have no place of their own."""
    doomed: list[Pod] = list(_misplaced(job, active, now=now)) if job.indexed else []
    left = [pod for pod in active if pod not in doomed]
    return [*doomed, *surplus(left, max(number - len(doomed), 0), siblings=(), now=now)][:BURST]


def _misplaced(job: Job, active: Sequence[JobPod], *, now: datetime) -> Iterator[Pod]:
    by_index: dict[int, list[JobPod]] = {}
    for pod in active:
        if pod.index is None or not job.has_place_for(pod):
            yield pod
        else:
            by_index.setdefault(pod.index, []).append(pod)
    for same in by_index.values():
        yield from surplus(same, len(same) - 1, siblings=(), now=now)


# --- which ones come


def _pending(job: Job, pods: Iterable[JobPod], *, counts: Tally) -> Iterator[int]:
    """Indexes without an active pod that have neither succeeded nor failed, from the lowest."""
    busy = {pod.index for pod in pods if pod.active or (pod.terminating and job.replaces_only_failed)}
    settled = busy | counts.completed | counts.failed_indexes
    return (index for index in range(job.spec.completions or 0) if index not in settled)


def _retry_at(job: Job, pods: Iterable[JobPod], *, held: JobPod | None) -> datetime | None:
    """When the next pod may be started: after the failures of its index, or else of the job since its last success."""
    if job.per_index:
        if held is None:
            return None
        return _BACKOFF.next_attempt_at(held.finished_at(), held.failures + held.ignored_failures + 1)
    ended = [pod for pod in pods if pod.succeeded or _failed_by_itself(job, pod)]
    successes = [pod.finished_at() for pod in ended if pod.succeeded]
    failures = [pod.finished_at() for pod in ended if not pod.succeeded]
    since = max(successes, default=None)
    in_a_row = [at for at in failures if since is None or at > since]
    return _BACKOFF.next_attempt_at(max(in_a_row), len(in_a_row)) if in_a_row else None


def _failed_by_itself(job: Job, pod: JobPod) -> bool:
    """Not one that the job has stopped: it has let go of those."""
    return job.has_failed(pod) and (pod.tracked or not pod.deleting)


def _started(
    job: Job, pods: Iterable[JobPod], indexes: Iterable[int | None], *, held: Mapping[int, JobPod]
) -> Iterator[Create]:
    meta = job.metadata
    taken = {pod.metadata.name for pod in pods}
    numbers = count()
    for index in indexes:
        base = _base(meta.name, index)
        drawn = (names.generate_name(base, f"{meta.uid}/{meta.resource_version}/{number}") for number in numbers)
        name = next(name for name in drawn if name not in taken)
        taken.add(name)
        because = "the job needs another pod" if index is None else f"index {index} has no pod"
        made = _manifest(job, name=name, base=base, index=index)
        if index is not None and job.per_index:
            made["metadata"]["annotations"] |= _failure_counts(job, held.get(index))
        yield Create(because=because, wave=1, resource=PODS, manifest=made)


def _base(job_name: str, index: int | None) -> str:
    if index is None:
        return f"{job_name}-"
    tail = f"-{index}-"
    return job_name[: _BASE_MAX - len(tail)] + tail


def _manifest(job: Job, *, name: str, base: str, index: int | None) -> dict[str, Any]:
    made = from_template(job.spec.template, identity(JOBS, job.metadata), name=name)
    metadata, spec = made["metadata"], made["spec"]
    metadata["generateName"] = base
    metadata["finalizers"] = [*(each for each in metadata.get("finalizers", ()) if each != TRACKING), TRACKING]
    if index is None:
        return made
    mark = {INDEX: str(index)}
    metadata["labels"] = {**metadata.get("labels", {}), **mark}
    metadata["annotations"] = {**metadata.get("annotations", {}), **mark}
    spec["hostname"] = f"{job.metadata.name}-{index}"
    for group in ("initContainers", "containers"):
        if group in spec:
            spec[group] = [_with_index(container) for container in spec[group]]
    return made


def _with_index(container: Mapping[str, Any]) -> Mapping[str, Any]:
    env = container.get("env") or []
    if any(variable["name"] == _INDEX_ENV["name"] for variable in env):
        return container
    return {**container, "env": [*env, _INDEX_ENV]}


def _failure_counts(job: Job, before: JobPod | None) -> dict[str, str]:
    """How often its index has failed, counted and ignored failures apart, as a new pod carries it on."""
    counted = ignored = 0
    if before is not None:
        counts = policies.action_of(job.spec.pod_failure_policy, before).counts
        counted, ignored = before.failures + counts, before.ignored_failures + (not counts)
    return {FAILURES: str(counted), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}
