"""The stages of a request: from its world to how far it is.

An attempt is known by the hash of the spec and of the retry (`attempt_of`).  It goes through stages, each of which
ends with a mark in the status: the attempt, the Job's name, the deployment's name and configuration, the
deployment's UID.  A stage is looked at only when the mark of the one before is stored, so a pass makes one step,
whatever happened meanwhile, and what is missing later was deleted.  What ended an attempt is kept in its conditions
(`reasons.TERMINAL`).  `profiling` and `deploying` have the later stages.  Pure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from holdfast.kernel.conditions import find
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest, Hardware
from holdfast.meta.hashing import canonical_hash
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.deploying import deploying
from holdfast.operators.deploymentrequest.requests.facts import CAUSES, VALIDATION, Cause, Facts, Wait
from holdfast.operators.deploymentrequest.requests.hardware import resolve
from holdfast.operators.deploymentrequest.requests.observe import ASKED, World, claim_of
from holdfast.operators.deploymentrequest.requests.profiling import profiling
from holdfast.operators.deploymentrequest.requests.reasons import TERMINAL, RequestReason
from holdfast.operators.deploymentrequest.requests.validate import findings


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
        return deploying(world, facts, now)
    return profiling(world, facts, now) if facts.job else _pending(world, facts)


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
