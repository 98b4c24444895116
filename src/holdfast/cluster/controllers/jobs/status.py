"""What has become of a job's pods, and what its status says of it.

A pod that ends is counted once, whatever crashes in between.  Its finalizer keeps it
until three things have happened, each seen before the next is done:

    1. the status names the pod among those that are uncounted (or its index among the completed)
    2. the finalizer is removed
    3. the status counts the pod, and names it no longer

Pure.  This module must not know which pods are started or stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.cluster.controllers.jobs import indexes, policies
from holdfast.cluster.controllers.jobs.types import COMPLETE, FAILED, Job, JobCondition, JobPod, JobStatus, Uncounted
from holdfast.meta import times

SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
FAILURE_TARGET: Final = "FailureTarget"
SUSPENDED: Final = "Suspended"

_UNCOUNTED_MAX: Final = 500
"""Pods that a status names at a time, so that it does not grow without bounds."""


# --- what has become of the pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Ends of pods, whether the status has counted them already or not.

    completed       indexes that have succeeded
    failed_indexes  indexes that have failed for good, where each has a limit of its own
    held            by index, the failed pod that is kept until its successor has taken over its count of failures
    """

    succeeded: int
    failed: int
    completed: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()
    held: Mapping[int, JobPod]


def tally(job: Job, pods: Sequence[JobPod]) -> Tally:
    status, uncounted = job.status, job.status.uncounted
    fresh = [pod for pod in pods if pod.tracked and job.has_place_for(pod)]
    failed = [pod for pod in fresh if job.has_failed(pod) and pod.uid not in uncounted.failed]
    counting = sum(policies.action_of(job.spec.pod_failure_policy, pod).counts for pod in failed)
    failures = status.failed + len(uncounted.failed) + counting
    if not job.indexed:
        new = sum(pod.succeeded and pod.uid not in uncounted.succeeded for pod in fresh)
        return Tally(succeeded=status.succeeded + len(uncounted.succeeded) + new, failed=failures, held={})
    completions = job.spec.completions or 0
    completed = indexes.parse(status.completed_indexes, completions) | _indexes(filter(_succeeded, fresh))
    failed_indexes, held = _failed_indexes(job, fresh), {}
    if job.per_index:
        settled = completed | failed_indexes | _indexes(pod for pod in pods if pod.active)
        held = _held(pod for pod in fresh if job.has_failed(pod) and pod.index not in settled)
    return Tally(
        succeeded=len(completed), failed=failures, completed=completed, failed_indexes=failed_indexes, held=held
    )


def _succeeded(pod: JobPod) -> bool:
    return pod.succeeded


def _indexes(pods: Iterable[JobPod]) -> frozenset[int]:
    return frozenset(pod.index for pod in pods if pod.index is not None)


def _failed_indexes(job: Job, fresh: Iterable[JobPod]) -> frozenset[int]:
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return frozenset()

    def is_final(pod: JobPod) -> bool:
        failure = policies.action_of(job.spec.pod_failure_policy, pod)
        return failure.action == policies.FAIL_INDEX or (failure.counts and pod.failures >= limit)

    known = indexes.parse(job.status.failed_indexes or "", job.spec.completions or 0)
    return known | _indexes(pod for pod in fresh if job.has_failed(pod) and is_final(pod))


def _held(pods: Iterable[JobPod]) -> dict[int, JobPod]:
    """Of each index, the last to fail."""
    in_order = sorted(pods, key=lambda pod: (pod.failures + pod.ignored_failures, pod.finished_at()))
    return {pod.index: pod for pod in in_order if pod.index is not None}


# --- how it ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A job is about to end, with all its pods, and why."""

    succeeds: bool
    reason: str
    message: str


REACHED: Final = Ending(succeeds=True, reason="CompletionsReached", message="Reached expected number of succeeded pods")


def ending(job: Job, pods: Sequence[JobPod], *, counts: Tally, now: datetime) -> Ending | None:
    """What ends a job, other than that all is done: the first that applies.  What was said once holds."""
    met, target = job.status.condition(SUCCESS_CRITERIA_MET), job.status.condition(FAILURE_TARGET)
    said = met or target
    if said is not None:
        return Ending(succeeds=met is not None, reason=said.reason, message=said.message)
    policy, spec = job.spec.pod_failure_policy, job.spec
    messages = (policies.action_of(policy, pod).message for pod in pods if policy and job.has_failed(pod))
    fatal = next(filter(None, messages), "")
    if fatal:
        return _failing("PodFailurePolicy", fatal)
    if counts.failed > spec.backoff_limit or _restarted_too_often(job, pods):
        return _failing("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = deadline_of(job, now)
    if deadline is not None and deadline <= now:
        return _failing("DeadlineExceeded", "Job was active longer than specified deadline")
    failed = len(counts.failed_indexes)
    if spec.max_failed_indexes is not None and failed > spec.max_failed_indexes:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return _failing("MaxFailedIndexesExceeded", message)
    if failed and failed + len(counts.completed) >= (spec.completions or 0):
        return _failing("FailedIndexes", "Job has failed indexes")
    enough = policies.satisfied(spec.success_policy, counts.completed, completions=spec.completions or 0)
    return Ending(succeeds=True, reason="SuccessPolicy", message=enough) if enough else None


def deadline_of(job: Job, now: datetime) -> datetime | None:
    """When a job has been active for too long; one that is suspended is not active."""
    if job.spec.active_deadline_seconds is None or job.spec.suspend:
        return None
    begins = job.status.start_time is None or job.status.condition(SUSPENDED) is not None
    start = now if begins else times.parse(job.status.start_time or "")
    return start + timedelta(seconds=job.spec.active_deadline_seconds)


def _failing(reason: str, message: str) -> Ending:
    return Ending(succeeds=False, reason=reason, message=message)


def _restarted_too_often(job: Job, pods: Iterable[JobPod]) -> bool:
    """Where containers are restarted in place, their restarts are the failures."""
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    alive = (pod for pod in pods if pod.status.phase in ("Pending", "Running"))
    restarts = sum(container.restart_count for pod in alive for container in pod.containers)
    return restarts >= max(job.spec.backoff_limit, 1)


# --- what is recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the status will say of ended pods, and whose finalizers may go because it has been said."""

    succeeded: int
    failed: int
    uncounted: Uncounted
    released: tuple[JobPod, ...]


def record(job: Job, pods: Sequence[JobPod], *, counts: Tally, ending: Ending | None) -> Record:
    tracked = {pod.uid: pod for pod in pods if pod.tracked}
    said = job.status.uncounted
    succeeded, failed = ([uid for uid in uids if uid in tracked] for uids in (said.succeeded, said.failed))
    gone = Uncounted(
        succeeded=tuple(uid for uid in said.succeeded if uid not in tracked),
        failed=tuple(uid for uid in said.failed if uid not in tracked),
    )
    released = []
    for pod in sorted(tracked.values(), key=lambda pod: pod.index or 0):
        if not _is_over(job, pod, counts=counts, ending=ending):
            continue
        is_success = pod.succeeded and pod.uid not in said.failed
        if _is_on_record(job, pod, is_success=is_success, ending=ending):
            released.append(pod)
        elif len(succeeded) + len(failed) < _UNCOUNTED_MAX and not (is_success and job.indexed):
            (succeeded if is_success else failed).append(pod.uid)
    return Record(
        succeeded=len(counts.completed) if job.indexed else job.status.succeeded + len(gone.succeeded),
        failed=job.status.failed + len(gone.failed),
        uncounted=Uncounted(succeeded=tuple(succeeded), failed=tuple(failed)),
        released=tuple(released),
    )


def _is_over(job: Job, pod: JobPod, *, counts: Tally, ending: Ending | None) -> bool:
    """The job is done with the pod."""
    if job.deleting or ending is not None or pod.succeeded:
        return True
    held = counts.held.get(pod.index) if pod.index is not None else None
    return job.has_failed(pod) and (held is None or held.uid != pod.uid)


def _is_on_record(job: Job, pod: JobPod, *, is_success: bool, ending: Ending | None) -> bool:
    """The status that was seen says of the pod what there is to say, which may be nothing."""
    if not is_success:
        return pod.uid in job.status.uncounted.failed or not _is_failure(job, pod, ending=ending)
    if not job.indexed:
        return pod.uid in job.status.uncounted.succeeded
    completed = indexes.parse(job.status.completed_indexes, job.spec.completions or 0)
    return pod.index in completed or not job.has_place_for(pod)


def _is_failure(job: Job, pod: JobPod, *, ending: Ending | None) -> bool:
    """Whether the end of a pod is a failure to be counted: if the job fails, that of every pod that had not ended."""
    cut_off = ending is not None and not ending.succeeds
    spared = ending is not None and ending.succeeds and not pod.finished
    if spared or not (cut_off or job.has_failed(pod)) or not job.has_place_for(pod):
        return False
    return policies.action_of(job.spec.pod_failure_policy, pod).counts


# --- conditions


def concluded(status: JobStatus, ending: Ending | None, *, now: datetime) -> JobStatus:
    """The status with the condition that announces the end."""
    if ending is None:
        return status
    type = SUCCESS_CRITERIA_MET if ending.succeeds else FAILURE_TARGET
    return status if status.condition(type) else with_condition(status, type, ending=ending, now=now)


def finished(status: JobStatus, ending: Ending, *, now: datetime) -> JobStatus:
    """The status with the condition that is the end."""
    done = with_condition(status, COMPLETE if ending.succeeds else FAILED, ending=ending, now=now)
    return msgspec.structs.replace(done, completion_time=times.format(now)) if ending.succeeds else done


def with_condition(status: JobStatus, type: str, *, ending: Ending, now: datetime) -> JobStatus:
    return _set(status, type, "True", reason=ending.reason, message=ending.message, now=now)


def suspended(status: JobStatus, *, now: datetime) -> JobStatus:
    return _set(status, SUSPENDED, "True", reason="JobSuspended", message="Job suspended", now=now)


def resumed(status: JobStatus, *, now: datetime) -> JobStatus:
    """A job that was suspended starts over, and so does its deadline."""
    if not status.condition(SUSPENDED):
        return status
    awake = _set(status, SUSPENDED, "False", reason="JobResumed", message="Job resumed", now=now)
    return msgspec.structs.replace(awake, start_time=times.format(now))


def _set(status: JobStatus, type: str, value: str, *, reason: str, message: str, now: datetime) -> JobStatus:
    before = next((each for each in status.conditions if each.type == type), None)
    if before is not None and (before.status, before.reason, before.message) == (value, reason, message):
        return status
    at = times.format(now)
    made = JobCondition(
        type=type, status=value, last_probe_time=at, last_transition_time=at, reason=reason, message=message
    )
    if before is None:
        conditions = (*status.conditions, made)
    else:
        conditions = tuple(made if each is before else each for each in status.conditions)
    return msgspec.structs.replace(status, conditions=conditions)
