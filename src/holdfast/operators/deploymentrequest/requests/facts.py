"""How far a request is: facts from its world, and the phase that follows from them.

An attempt is known by the hash of the spec and of the retry (`attempt_of`).  It goes through stages, each of which
ends with a mark in the status: the attempt, the Job's name, the deployment's name and configuration, the
deployment's UID.  A stage is looked at only when the mark of the one before is stored, so a pass makes one step,
whatever happened meanwhile, and what is missing later was deleted.  What ended an attempt is kept in its conditions
(`reasons.TERMINAL`).  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, get_args

import msgspec

from holdfast.kernel.conditions import find
from holdfast.kernel.phases import Ladder, always
from holdfast.kernel.reasons import count
from holdfast.kinds.nvidia.requests import (
    DeploymentInfo,
    DynamoGraphDeploymentRequest,
    Hardware,
    ProfilingProgress,
    ProfilingResults,
)
from holdfast.meta import durations, times
from holdfast.meta.hashing import canonical_hash
from holdfast.operators.deploymentrequest.requests import generated, names
from holdfast.operators.deploymentrequest.requests.generated import Unusable
from holdfast.operators.deploymentrequest.requests.hardware import resolve
from holdfast.operators.deploymentrequest.requests.observe import ASKED, Graph, Job, World, claim_of
from holdfast.operators.deploymentrequest.requests.reasons import FAILED_IN, TERMINAL, RequestReason
from holdfast.operators.deploymentrequest.requests.transitions import Phase
from holdfast.operators.deploymentrequest.requests.validate import findings
from holdfast.profiler.results import Output, SubPhase

VALIDATION: Final = "Validation"
PROFILING: Final = "Profiling"
SPEC_GENERATED: Final = "SpecGenerated"
SLA_SATISFIED: Final = "SLASatisfied"
DEPLOYMENT_READY: Final = "DeploymentReady"
SUCCEEDED: Final = "Succeeded"

CAUSES: Final = (VALIDATION, PROFILING, SPEC_GENERATED, DEPLOYMENT_READY)
"""The conditions of which one has the cause of a failed attempt."""

OUTPUT_WAIT: Final = timedelta(seconds=60)
"""How long the output of a complete Job is awaited."""

OUTPUT_SETTLES: Final = timedelta(seconds=5)
"""How long a failed Job's own account of its failure is awaited: it may be seen after the failure."""

DEADLINE_SLACK: Final = timedelta(seconds=60)
"""How long after the deadline of the Job its failure is awaited."""

SILENCE: Final = timedelta(minutes=2)
"""After which a profiler that has not reported is said to be silent."""

GRACE: Final = timedelta(seconds=60)
"""How long a deployment that was ready may have lost replicas before it counts as degraded."""

DEPLOYING: Final = timedelta(hours=1)
"""How long a deployment may take to become ready."""

_UPDATING: Final = ("updating", "rolling_update_in_progress")
"""The reasons of a deployment that is not ready because it is being updated."""

_SUBPHASES: Final[tuple[SubPhase, ...]] = get_args(SubPhase)


@dataclass(frozen=True, slots=True)
class Cause:
    """What ended an attempt: the condition that says so, its reason, and what to do."""

    condition: str
    reason: RequestReason
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for: the reason and the message of the condition that says so."""

    reason: RequestReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    row         the row of the transition table
    attempt     the attempt that is worked on
    cause       what ended it, if something did
    changed     the spec is another than that of the attempt
    invalid     what the validation waits for
    wait        what the stage does, or waits for
    hardware    what is planned for
    job         whether the Job exists, or existed
    sub_phase   the phase that the profiler reports
    progress    how far that phase is
    results     what the profiler found
    dgd_name    the deployment that was generated
    applied     whether it is created, without or after a review
    info        the deployment, since it is to be created
    served      whether the deployment serves: it is ready, or was and has not lost replicas for long
    due         when the request must be looked at again, and why
    """

    row: str
    attempt: str
    cause: Cause | None = None
    changed: bool = False
    invalid: Wait | None = None
    wait: Wait | None = None
    hardware: Hardware | None = None
    job: bool = False
    sub_phase: SubPhase | None = None
    progress: ProfilingProgress | None = None
    results: ProfilingResults | None = None
    dgd_name: str | None = None
    applied: bool = False
    info: DeploymentInfo | None = None
    served: bool = False
    due: tuple[datetime, str] | None = None


LADDER: Final[Ladder[Facts, Phase]] = Ladder(
    (
        ("Failed", lambda facts: facts.cause is not None),
        ("Deployed", lambda facts: facts.served),
        ("Deploying", lambda facts: facts.dgd_name is not None and facts.applied),
        ("Ready", lambda facts: facts.dgd_name is not None),
        ("Profiling", lambda facts: facts.job),
        ("Pending", always),
    )
)


def attempt_of(request: DynamoGraphDeploymentRequest) -> str:
    """The attempt that a request asks for: another spec, or another retry, is another attempt.

    Whether the result is applied, and with which runtime, may change without one.
    """
    spec: dict[str, Any] = msgspec.to_builtins(request.spec)
    asked = {name: value for name, value in spec.items() if name not in ("autoApply", "runtimeVersionOverride")}
    retry = request.metadata.annotations.get(names.RETRY)
    return canonical_hash({"spec": asked, **({"retry": retry} if retry else {})}, length=16)


def facts_of(world: World, now: datetime) -> Facts:
    """How far a request is."""
    status, wanted = world.status, attempt_of(world.request)
    cause = _stored_cause(world)
    begun = status.attempt is not None and status.profiling_job_name is not None and cause is None
    if status.attempt != wanted and not begun:
        return _begun(world, wanted)
    facts = Facts(
        row="T34",
        attempt=status.attempt or wanted,
        changed=status.attempt != wanted,
        hardware=status.hardware,
        job=status.profiling_job_name is not None,
        results=status.profiling_results,
        dgd_name=status.dgd_name,
        applied=world.request.spec.auto_apply is not False,
        info=status.deployment_info,
        cause=cause,
    )
    if cause is not None:
        return facts
    if facts.dgd_name is not None:
        return _deploying(world, facts, now)
    return _profiling(world, facts, now) if facts.job else _pending(world, facts)


def _stored_cause(world: World) -> Cause | None:
    """What ended the attempt that the status describes."""
    if world.status.attempt is None:
        return None
    for type in CAUSES:
        found = find(world.conditions, type)
        if found is not None and found.status == "False" and found.reason in TERMINAL:
            return Cause(type, RequestReason(found.reason), found.message)
    return None


# --- Pending


def _begun(world: World, attempt: str) -> Facts:
    """A new attempt: of a new request, of a spec that was changed, or of a retry."""
    failed = world.status.phase == "Failed"
    found = findings(world.request)
    if found:
        message = "; ".join(map(str, found))
        return Facts(row="T2", attempt=attempt, cause=Cause(VALIDATION, RequestReason.VALIDATION_FAILED, message))
    return Facts(
        row="R1" if failed else "T1",
        attempt=attempt,
        wait=Wait(RequestReason.DISCOVERING_HARDWARE, "the hardware is being discovered"),
    )


def _pending(world: World, facts: Facts) -> Facts:
    if world.job is not None and world.job.attempt == facts.attempt and not world.job.deleting:
        return replace(
            facts,
            row="T5",
            hardware=_asked_hardware(world) or facts.hardware,
            job=True,
            sub_phase="Initializing",
            wait=Wait(RequestReason.INITIALIZING, f"Job {names.job(world.name)} was created"),
        )
    facts = replace(facts, row="T3")
    if not world.claim:
        claim = claim_of(world.request)
        return replace(
            facts,
            invalid=Wait(
                RequestReason.MODEL_CACHE_NOT_FOUND,
                f"spec.modelCache.pvcName: waiting for PersistentVolumeClaim {claim} in namespace {world.namespace}; "
                "create it, or correct the name",
            ),
            wait=Wait(RequestReason.CREATING_JOB, "the volume of the model is awaited"),
        )
    found = resolve(world.request.spec.hardware, world.nodes)
    facts = replace(facts, hardware=found.hardware)
    if found.problem:
        return replace(facts, wait=Wait(RequestReason.DISCOVERING_HARDWARE, f"waiting for GPUs: {found.problem}"))
    if world.foreign:
        listed = " and ".join(world.foreign)
        message = f"{listed} exist without belonging to this request; delete or rename them"
        return replace(facts, wait=Wait(RequestReason.JOB_NAME_CONFLICT, message))
    return replace(facts, row="T4", wait=Wait(RequestReason.CREATING_JOB, f"creating Job {names.job(world.name)}"))


class _Asked(msgspec.Struct, frozen=True):
    hardware: Hardware | None = None


def _asked_hardware(world: World) -> Hardware | None:
    """The hardware that the profiler was asked to plan for."""
    text = world.output.data.get(ASKED) if world.output is not None else None
    try:
        return None if text is None else msgspec.json.decode(text, type=_Asked).hardware
    except msgspec.MsgspecError:
        return None


# --- Profiling


def _profiling(world: World, facts: Facts, now: datetime) -> Facts:
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


# --- Ready, Deploying, Deployed


def _deploying(world: World, facts: Facts, now: datetime) -> Facts:
    name, info = facts.dgd_name, facts.info
    seen = info is not None and info.uid is not None
    if not facts.applied and not seen:
        return replace(facts, row="T20" if info is None else "T22", info=None)
    creating = Wait(RequestReason.DEPLOYMENT_IN_PROGRESS, f"creating DynamoGraphDeployment {name}")
    if info is None:
        return replace(facts, row="T21", info=DeploymentInfo(), wait=creating)
    facts = replace(facts, applied=True)
    graph = world.graph
    own = graph is not None and graph.belongs_to(world.object.uid)
    if seen and (graph is None or graph.deleting or not own):
        deployed = info.serving_replicas is not None
        message = (
            f"DynamoGraphDeployment {name} was deleted, and is not created again; "
            f"to deploy it again: holdfast rollout retry dgdr/{world.name}"
        )
        gone = Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_DELETED, message)
        return replace(facts, row="T33" if deployed else "T30", cause=gone, dgd_name=None, info=None)
    if graph is None or (own and (graph.deleting or graph.attempt != facts.attempt)):
        return _overdue_deployment(world, replace(facts, row="T24", wait=creating), now)
    if not own:
        message = (
            f"DynamoGraphDeployment {name} exists and was not created for this request; delete it, or give this one "
            "another name with spec.overrides.dgd.metadata.name"
        )
        conflict = Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_NAME_CONFLICT, message)
        return replace(facts, row="T25", cause=conflict)
    return _deployed(world, facts, graph, now)


def _deployed(world: World, facts: Facts, graph: Graph, now: datetime) -> Facts:
    """The deployment is ours and exists."""
    before = facts.info or DeploymentInfo()
    counts = DeploymentInfo(
        replicas=graph.replicas,
        available_replicas=graph.available,
        serving_replicas=before.serving_replicas,
        uid=graph.metadata.uid,
    )
    name, said = graph.metadata.name, _said(graph)
    deployed = before.serving_replicas is not None
    if graph.whole:
        ready = Wait(RequestReason.DEPLOYMENT_READY, f"DynamoGraphDeployment {name} is ready{_replicas(graph)}")
        whole = msgspec.structs.replace(counts, serving_replicas=graph.available)
        return replace(facts, row="T31" if deployed else "T28", served=True, info=whole, wait=ready)
    if deployed:
        lost_since = _lost_since(before, graph, now)
        updating = Wait(RequestReason.UPDATING, f"DynamoGraphDeployment {name} serves, and changes{said}")
        if lost_since is None:
            return replace(facts, row="T31", served=True, info=counts, wait=updating)
        if now < lost_since + GRACE:
            due = (lost_since + GRACE, "a deployment that has lost replicas counts as degraded then")
            lost = Wait(RequestReason.REPLICAS_LOST, f"DynamoGraphDeployment {name} has lost replicas{said}")
            return replace(facts, row="T31", served=True, info=counts, wait=lost, due=due)
        lost = Wait(RequestReason.DEPLOYMENT_DEGRADED, f"DynamoGraphDeployment {name} has lost replicas{said}")
        return replace(
            facts, row="T32", info=msgspec.structs.replace(counts, serving_replicas=None), wait=lost
        )  # fmt: skip
    prior = find(world.conditions, DEPLOYMENT_READY)
    degraded = prior is not None and prior.reason == RequestReason.DEPLOYMENT_DEGRADED
    reason = RequestReason.DEPLOYMENT_DEGRADED if degraded else RequestReason.DEPLOYMENT_IN_PROGRESS
    facts = replace(
        facts, row="T29", info=counts, wait=Wait(reason, f"DynamoGraphDeployment {name} is not ready{said}")
    )
    return facts if degraded else _overdue_deployment(world, facts, now)


def _overdue_deployment(world: World, facts: Facts, now: datetime) -> Facts:
    prior = find(world.conditions, DEPLOYMENT_READY)
    since = prior.last_transition_time if prior is not None else None
    due = (since or now) + DEPLOYING
    if now < due:
        return replace(facts, due=(due, "the deadline of the deployment"))
    allowed = durations.format(DEPLOYING)
    waited = facts.wait.message if facts.wait is not None else ""
    message = (
        f"the deployment was not ready within {allowed}: {waited}; correct what it waits for, and then "
        f"holdfast rollout retry dgdr/{world.name}"
    )
    return replace(facts, row="D3", cause=Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_DEADLINE, message))


def _lost_since(before: DeploymentInfo, graph: Graph, now: datetime) -> datetime | None:
    """Since when fewer replicas are available than were, or than are wanted now; None where it changes or keeps them.

    An update and a scaling up lose nothing that served, however long they take.
    """
    update = graph.status.rolling_update
    under_way = update is not None and update.phase in ("Pending", "InProgress")
    reason = graph.ready.reason if graph.ready is not None else ""
    if under_way or not graph.current or reason in _UPDATING:
        return None
    if graph.status.state != "failed" and graph.available >= min(before.serving_replicas or 0, graph.replicas):
        return None
    since = graph.ready.last_transition_time if graph.ready is not None else None
    return since or now


def _said(graph: Graph) -> str:
    """What the deployment says of itself, and how many of its replicas are available."""
    message = graph.ready.message if graph.ready is not None else ""
    state = f"; its state is {graph.status.state}" if graph.status.state else ""
    return f"{_replicas(graph)}{state}" + (f": {message}" if message else "")


def _replicas(graph: Graph) -> str:
    return f": {graph.available} of {count(graph.replicas)} available" if graph.replicas else ""


def targets(request: DynamoGraphDeploymentRequest) -> Mapping[str, float]:
    """The targets of a request in milliseconds, by their names; what is absent has the default."""
    sla = request.spec.sla
    if sla is not None and sla.e2e_latency is not None:
        return {"e2eLatency": sla.e2e_latency}
    return {
        "ttft": sla.ttft if sla is not None and sla.ttft is not None else 2000.0,
        "itl": sla.itl if sla is not None and sla.itl is not None else 30.0,
    }
