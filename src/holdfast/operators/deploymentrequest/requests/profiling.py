"""A request whose Job exists: what the profiler reports, what became of the Job, and the result.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, get_args

import msgspec

from holdfast.kernel.reasons import count
from holdfast.kinds.nvidia.requests import DeploymentInfo
from holdfast.meta import durations, times
from holdfast.operators.deploymentrequest.requests import generated, names
from holdfast.operators.deploymentrequest.requests.facts import PROFILING, SPEC_GENERATED, Cause, Facts, Wait
from holdfast.operators.deploymentrequest.requests.generated import Unusable
from holdfast.operators.deploymentrequest.requests.observe import Job, World
from holdfast.operators.deploymentrequest.requests.reasons import FAILED_IN, RequestReason
from holdfast.profiler.results import Output, SubPhase

OUTPUT_WAIT: Final = timedelta(seconds=60)
"""How long the output of a complete Job is awaited."""

OUTPUT_SETTLES: Final = timedelta(seconds=5)
"""How long a failed Job's own account of its failure is awaited: it may be seen after the failure."""

DEADLINE_SLACK: Final = timedelta(seconds=60)
"""How long after the deadline of the Job its failure is awaited."""

SILENCE: Final = timedelta(minutes=2)
"""After which a profiler that has not reported is said to be silent."""

_SUBPHASES: Final[tuple[SubPhase, ...]] = get_args(SubPhase)


def profiling(world: World, facts: Facts, now: datetime) -> Facts:
    """How far the profiling is.  The output counts before the Job: a Job may be collected after its result."""
    output = read_output(world, facts.attempt)
    job = world.job if world.job is not None and world.job.attempt == facts.attempt else None
    if output.profiler_status == "success":
        return _found(world, facts, output)
    if output.profiler_status == "failed":
        return _failed(facts, "T13", _reason(output), output.profiler_error or "the profiler gave no reason")
    if job is None or job.deleting:
        message = f"Job {names.job(world.name)} was deleted before it had a result"
        return _failed(facts, "T12", RequestReason.JOB_DELETED, message)
    if job.failed is not None:
        return _job_failed(world, facts, job, output, now=now)
    if job.completed is not None:
        return _completed(world, facts, job, now)
    return _running(world, facts, job, output, now=now)


def read_output(world: World, attempt: str) -> Output:
    """What the profiler of an attempt has written; nothing where that cannot be read."""
    if world.output is None or world.output.attempt != attempt:
        return Output()
    try:
        return msgspec.convert(world.output.data, Output)
    except msgspec.ValidationError:
        return Output()


def _reason(output: Output) -> RequestReason:
    return FAILED_IN.get(output.phase, RequestReason.PROFILING_FAILED)


def _failed(facts: Facts, row: str, reason: RequestReason, message: str) -> Facts:
    return replace(facts, row=row, cause=Cause(PROFILING, reason, message))


def _job_failed(world: World, facts: Facts, job: Job, output: Output, *, now: datetime) -> Facts:
    assert job.failed is not None
    settled = (times.read(job.failed.last_transition_time) or now) + OUTPUT_SETTLES
    if now < settled:
        facts = _reported(world, facts, output)
        return replace(facts, row="T14", due=(settled, "the account of a failed Job may follow"))
    if job.failed.reason == "DeadlineExceeded":
        return _overdue(world, facts, job)
    problem = f"; {world.problem}" if world.problem is not None else ""
    message = f"Job {job.metadata.name} failed: {job.failed.message or job.failed.reason}{problem}"
    return _failed(facts, "T11", _reason(output), message)


def _overdue(world: World, facts: Facts, job: Job) -> Facts:
    allowed = durations.format(timedelta(seconds=job.spec.active_deadline_seconds or 0))
    problem = f": {world.problem}" if world.problem is not None else ""
    message = (
        f"the profiling was not done within {allowed}{problem}; "
        "allow more with spec.overrides.profilingJob.activeDeadlineSeconds"
    )
    return _failed(facts, "D1", RequestReason.PROFILING_DEADLINE, message)


def _completed(world: World, facts: Facts, job: Job, now: datetime) -> Facts:
    """The Job is complete, and its output has not been seen."""
    due = (times.read(job.status.completion_time) or now) + OUTPUT_WAIT
    if now >= due:
        message = (
            f"Job {job.metadata.name} completed, and ConfigMap {names.output(world.name)} has no result after "
            f"{count(int(OUTPUT_WAIT.total_seconds()), 'second')}"
        )
        return _failed(facts, "D2", RequestReason.OUTPUT_MISSING, message)
    wait = Wait(RequestReason.DONE, f"Job {job.metadata.name} completed; its output is awaited")
    return replace(facts, row="T15", sub_phase="Done", wait=wait, due=(due, "the output of the profiler is awaited"))


def _running(world: World, facts: Facts, job: Job, output: Output, *, now: datetime) -> Facts:
    facts = _reported(world, facts, output)
    limit = job.spec.active_deadline_seconds
    started = times.read(job.metadata.creation_timestamp) or now
    if limit is None:
        return facts
    overdue = started + timedelta(seconds=limit) + DEADLINE_SLACK
    if now >= overdue:
        return _overdue(world, facts, job)
    facts = replace(facts, due=(overdue, "the deadline of the profiling"))
    heard = times.read(output.heartbeat)
    if heard is None or facts.wait is None:
        return facts
    if now < heard + SILENCE:
        return replace(facts, due=min((heard + SILENCE, "the profiler must report"), (overdue, "the deadline")))
    silent = f"{facts.wait.message}; the profiler has not reported since {times.format(heard)}"
    return replace(facts, wait=replace(facts.wait, message=silent))


def _reported(world: World, facts: Facts, output: Output) -> Facts:
    """What the profiler reports while it runs."""
    before = world.status.profiling_phase
    reported = next((each for each in _SUBPHASES if each == output.phase), None)
    if reported is not None:
        progress = generated.progress(output.progress)
        message = output.message or f"the profiler is in its phase {output.phase}"
        counted = f" ({progress.done} of {progress.total})" if progress is not None else ""
        return replace(
            facts,
            row="T7",
            sub_phase=reported,
            progress=progress,
            wait=Wait(RequestReason(output.phase), f"{message}{counted}"),
        )
    if output.phase:
        message = f"the profiler reports a phase that is not known: {output.phase[:40]!r}"
        return replace(
            facts, row="T8", sub_phase=before or "Initializing", wait=Wait(RequestReason.PROFILING_RUNNING, message)
        )
    if world.problem is not None:
        return replace(
            facts, row="T10", sub_phase="Initializing", wait=Wait(RequestReason.POD_PROBLEM, str(world.problem))
        )
    running = world.job is not None and world.job.status.active > 0
    wait = (
        Wait(RequestReason.PROFILING_RUNNING, f"Job {names.job(world.name)} runs")
        if running
        else Wait(RequestReason.INITIALIZING, f"Job {names.job(world.name)} was created")
    )
    return replace(facts, row="T9" if running else "T10", sub_phase="Initializing", wait=wait)


def _found(world: World, facts: Facts, output: Output) -> Facts:
    """The profiler is done: a deployment, or the point that comes nearest to the targets."""
    try:
        results = generated.results(world.request, output)
    except Unusable as unusable:
        message = f"ConfigMap {names.output(world.name)}: {unusable}"
        return replace(facts, row="T16", cause=Cause(SPEC_GENERATED, RequestReason.GENERATION_FAILED, message))
    if results.selected_config is None:
        facts = replace(facts, results=results)
        remedy = results.remedy or "relax spec.sla, or allow more GPUs with spec.hardware.totalGpus"
        message = f"no configuration meets the targets: {remedy}"
        return _failed(facts, "T13", RequestReason.NOTHING_MEETS_TARGETS, message)
    name = names.deployment(world.request)
    applied = replace(facts, row="T18" if facts.applied else "T19", results=results, dgd_name=name)
    wait = Wait(RequestReason.DEPLOYMENT_IN_PROGRESS, f"creating DynamoGraphDeployment {name}")
    return replace(applied, info=DeploymentInfo(), wait=wait) if facts.applied else applied
