"""Jobs: pods that run until enough of them have succeeded, or too many have failed.

A pass sees what has become of the pods, whether that ends the job, and otherwise which
pods to start or stop; what it counts goes through the status first (`status`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import PatchType
from holdfast.client.resources import JOBS, PODS
from holdfast.cluster.controllers.jobs import changes, indexes
from holdfast.cluster.controllers.jobs import status as statuses
from holdfast.cluster.controllers.jobs.changes import Change
from holdfast.cluster.controllers.jobs.status import Ending, Record, Tally
from holdfast.cluster.controllers.jobs.types import BUILT_IN, NAME, TRACKING, Job, JobCondition, JobPod, JobStatus
from holdfast.cluster.controllers.replica_types import candidates, identity
from holdfast.kernel.outcomes import soonest, until
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime import adoption
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import NOTHING, Decision, Delete, Notice, Patch, Write

_TRACKED: Final = "tracked"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    job      None where there is none any more
    pods     those it selects or has, not all of which need be its own
    orphans  pods with our finalizer whose job is gone
    """

    job: Job | None
    pods: tuple[JobPod, ...] = ()
    orphans: tuple[JobPod, ...] = ()


# --- observe


def observe(view: View, key: Key) -> World | None:
    found = view.get(JOBS, key)
    orphans = tuple(JobPod.of(pod) for pod in view.indexed(PODS, _TRACKED, str(key)) if _is_orphan(pod, found))
    if found is None:
        return World(job=None, orphans=orphans) if orphans else None
    job = Job.of(found)
    pods = candidates(view, PODS, owner=found.meta, selector=job.selector)
    return World(job=job, pods=tuple(map(JobPod.of, pods)), orphans=orphans)


def _is_orphan(pod: Object, job: Object | None) -> bool:
    if job is None:
        return True
    return pod.controller is not None and pod.controller.uid != job.uid


def _job_of(pod: Object) -> Iterable[str]:
    if TRACKING in pod.meta.finalizers:
        yield from map(str, _keys_of(pod))


def _keys_of(pod: Object) -> Iterable[Key]:
    """The job of a pod without a controller, by its label."""
    controller = pod.controller
    if controller is None:
        name = pod.meta.labels.get(NAME, "")
    else:
        name = controller.name if (controller.kind, controller.group) == (JOBS.kind, JOBS.group) else ""
    if name:
        yield Key(pod.meta.namespace, name)


# --- decide


def decide(world: World, now: datetime) -> Decision:
    decision = NOTHING if world.job is None else _decided(world.job, world.pods, now=now)
    orphaned = (_released(pod, because="its job is gone") for pod in world.orphans)
    return replace(decision, writes=(*orphaned, *decision.writes))


def _decided(job: Job, selected: tuple[JobPod, ...], *, now: datetime) -> Decision:
    if job.end is not None:
        return _after_the_end(job, selected, end=job.end, now=now)
    if job.spec.managed_by != BUILT_IN:
        return NOTHING
    selector = job.selector
    claimed = adoption.claim(
        identity(JOBS, job.metadata),
        (pod.metadata for pod in selected),
        resource=PODS,
        fits=lambda meta: selector.matches(meta.labels),
        finalizer=TRACKING,
    )
    pods = [pod for pod in selected if pod.uid in claimed.uids]
    plan = _plan(job, pods, now=now)
    status, news = _status(job, pods, plan=plan, now=now)
    deadline = None if plan.ending else statuses.deadline_of(job, now)
    late = () if deadline is None else (until(deadline, now=now, because="the job may be active until then"),)
    return Decision(
        writes=(*claimed.writes, *_writes(job, plan)),
        status=status.wire(),
        notices=(*_pod_notices(plan.change), *news),
        outcome=soonest((plan.change.outcome, *late)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """
    cut_off  the pods that are stopped are counted as the end wants, and not simply let go
    active   pods that are left
    """

    counts: Tally
    change: Change
    ending: Ending | None
    cut_off: bool
    active: int
    record: Record


def _plan(job: Job, pods: list[JobPod], *, now: datetime) -> _Plan:
    counts = statuses.tally(job, pods)
    active = tuple(pod for pod in pods if pod.active)
    ending = statuses.ending(job, pods, counts=counts, now=now)
    cut_off = ending is not None
    if cut_off:
        change = Change(stops=active)
    else:
        change = Change() if job.deleting else changes.change(job, pods, counts=counts, now=now)
    left = len(active) + len(change.starts) - len(change.stops)
    if ending is None and left == 0 and _has_enough(job, counts.succeeded):
        ending = statuses.REACHED
    record = statuses.record(job, pods, counts=counts, ending=ending)
    return _Plan(counts=counts, change=change, ending=ending, cut_off=cut_off, active=left, record=record)


def _has_enough(job: Job, succeeded: int) -> bool:
    """Where no number is given, one pod speaks for all."""
    return succeeded > 0 if job.spec.completions is None else succeeded >= job.spec.completions


def _writes(job: Job, plan: _Plan) -> Iterator[Write]:
    """A pod that is stopped to be counted keeps its finalizer until it is; any other loses it first."""
    stopped = {pod.metadata.uid for pod in plan.change.stops}
    for pod in plan.change.stops:
        if not plan.cut_off and TRACKING in pod.metadata.finalizers:
            yield _released(pod, because="it is stopped, which is no failure")
        yield _stopped(pod, job)
    for pod in plan.record.released:
        if plan.cut_off or pod.uid not in stopped:
            yield _released(pod, because="its end is on record", wave=2)
    yield from plan.change.starts


def _released(pod: Pod, *, because: str, wave: int = 0) -> Patch:
    meta = pod.metadata
    return Patch(
        because=because,
        wave=wave,
        resource=PODS,
        key=Key(meta.namespace, meta.name),
        patch={"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}},
        uid=meta.uid,
        type=PatchType.STRATEGIC,
    )


def _stopped(pod: Pod, job: Job) -> Delete:
    meta = pod.metadata
    because = f"job {job.metadata.name} does not need it any more"
    return Delete(because=because, wave=1, resource=PODS, key=Key(meta.namespace, meta.name), uid=meta.uid)


def _pod_notices(change: Change) -> Iterator[Notice]:
    for create in change.starts:
        yield Notice(reason="SuccessfulCreate", message=f"Created pod: {create.manifest['metadata']['name']}")
    for pod in change.stops:
        yield Notice(reason="SuccessfulDelete", message=f"Deleted pod: {pod.metadata.name}")


# --- status


def _status(job: Job, pods: list[JobPod], *, plan: _Plan, now: datetime) -> tuple[JobStatus, tuple[Notice, ...]]:
    """What the job says of itself, and what is news in it."""
    before, record, stops, ending = job.status, plan.record, plan.change.stops, plan.ending
    ready = sum(pod.ready for pod in pods if pod.active) - sum(pod.ready for pod in stops)
    began = None if job.spec.suspend else times.format(now)
    status = JobStatus(
        conditions=before.conditions,
        start_time=before.start_time or began,
        active=plan.active,
        succeeded=record.succeeded,
        failed=record.failed,
        terminating=sum(pod.terminating for pod in pods) + len(stops),
        ready=ready,
        completed_indexes=indexes.write(plan.counts.completed),
        failed_indexes=indexes.write(plan.counts.failed_indexes) if job.per_index else None,
        uncounted_terminated_pods=record.uncounted,
    )
    if ending is None:
        return (status, ()) if job.deleting else _awake_or_not(job, status, now=now)
    status = statuses.concluded(status, ending, now=now)
    if record.uncounted or status.terminating or any(pod.tracked for pod in pods):
        return status, ()
    return statuses.finished(status, ending, now=now), tuple(_last_words(job, ending, succeeded=record.succeeded))


def _awake_or_not(job: Job, status: JobStatus, *, now: datetime) -> tuple[JobStatus, tuple[Notice, ...]]:
    if job.spec.suspend:
        said, notice = statuses.suspended(status, now=now), Notice(reason="Suspended", message="Job suspended")
    else:
        said, notice = statuses.resumed(status, now=now), Notice(reason="Resumed", message="Job resumed")
    return (status, ()) if said is status else (said, (notice,))


def _last_words(job: Job, ending: Ending, *, succeeded: int) -> Iterator[Notice]:
    if not ending.succeeds:
        yield Notice(type="Warning", reason=ending.reason, message=ending.message)
        return
    if job.spec.completions is not None and succeeded > job.spec.completions:
        message = "Too many succeeded pods running after completion count reached"
        yield Notice(type="Warning", reason="TooManySucceededPods", message=message)
    yield Notice(reason="Completed", message="Job completed")


def _after_the_end(job: Job, pods: Iterable[JobPod], *, end: JobCondition, now: datetime) -> Decision:
    """Nothing holds the pods of a job that has ended; after a while it goes itself, if that is wanted."""
    ours = (pod for pod in pods if pod.tracked and _is_controlled_by(pod, job))
    writes: list[Write] = [_released(pod, because="its job has ended") for pod in ours]
    ttl, ended = job.spec.ttl_seconds_after_finished, end.last_transition_time
    if ttl is None or ended is None or job.deleting:
        return Decision(writes=tuple(writes))
    due = times.parse(ended) + timedelta(seconds=ttl)
    if due > now:
        because = "the job is removed some time after its end"
        return Decision(writes=tuple(writes), outcome=until(due, now=now, because=because))
    meta = job.metadata
    writes.append(
        Delete(
            because=f"it ended {ttl} s ago",
            resource=JOBS,
            key=Key(meta.namespace, meta.name),
            uid=meta.uid,
            propagation="Foreground",
        )
    )
    return Decision(writes=tuple(writes))


def _is_controlled_by(pod: JobPod, job: Job) -> bool:
    return any(owner.controller and owner.uid == job.metadata.uid for owner in pod.metadata.owner_references)


def _adopters(pod: Object, view: View) -> Iterable[Key]:
    """A pod without a controller may be adopted by its job, or be released if the job is gone."""
    return () if pod.controller is not None else _keys_of(pod)


CONTROLLER: Final = Controller(
    name="job",
    resource=JOBS,
    owns=(PODS,),
    watches=(Watch(resource=PODS, keys=_adopters),),
    indexes=(Index(resource=PODS, name=_TRACKED, values=_job_of),),
    observe=observe,
    decide=decide,
)
