"""The status of a request: its conditions, its phase and its fields, all of them from facts.

Succeeded follows the phase alone, by the table of the seed.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.conditions import Verdict
from holdfast.kinds.nvidia.requests import ProfilingResults
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.facts import (
    DEPLOYMENT_READY,
    LADDER,
    PROFILING,
    SLA_SATISFIED,
    SPEC_GENERATED,
    SUCCEEDED,
    VALIDATION,
    Facts,
    targets,
)
from holdfast.operators.deploymentrequest.requests.observe import World
from holdfast.operators.deploymentrequest.requests.reasons import RequestReason
from holdfast.operators.deploymentrequest.requests.transitions import TABLE, Phase
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced, Invalid, present, report, wire

INVALID: Final = Invalid(conditions={VALIDATION: False, SUCCEEDED: False}, fields={"phase": "Failed"})

_ANNOUNCED: Final[Announced] = {
    (VALIDATION, "False"): "Warning",
    (PROFILING, "True"): "Normal",
    (SPEC_GENERATED, "True"): "Normal",
    (SPEC_GENERATED, "False"): "Warning",
    (SLA_SATISFIED, "False"): "Warning",
    (DEPLOYMENT_READY, "True"): "Normal",
}
"""The conditions whose changes are Events."""

_PREFIXES: Final = {
    VALIDATION: "Validation failed",
    PROFILING: "Profiling failed",
    SPEC_GENERATED: "Spec generation failed",
    DEPLOYMENT_READY: "Deployment failed",
}

SUCCEEDED_BY_PHASE: Final[Mapping[Phase, tuple[bool, RequestReason]]] = {
    "Pending": (False, RequestReason.PENDING),
    "Profiling": (False, RequestReason.PROFILING),
    "Ready": (True, RequestReason.SPEC_GENERATED),
    "Deploying": (False, RequestReason.DEPLOYING),
    "Deployed": (True, RequestReason.DEPLOYED),
    "Failed": (False, RequestReason.FAILED),
}
"""Status and reason of Succeeded, by phase."""


def status_of(world: World, facts: Facts, now: datetime) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events that its changes are worth."""
    phase = LADDER.phase(facts)
    fields = {
        "phase": phase,
        "attempt": facts.attempt,
        "profilingPhase": facts.sub_phase if phase == "Profiling" else None,
        "profilingProgress": _wire(facts.progress) if phase == "Profiling" else None,
        "profilingJobName": names.job(world.name) if facts.job else None,
        "hardware": _whole(_wire(facts.hardware)),
        "profilingResults": _wire(facts.results),
        "dgdName": facts.dgd_name,
        "deploymentInfo": _wire(facts.info),
    }
    status, notices = report(
        world.object, _verdicts(world, facts, phase), now=now, fields=present(fields), announced=_ANNOUNCED
    )
    return status, (*_event(world, facts, phase), *notices)


def _wire(model: msgspec.Struct | None) -> dict[str, Any] | None:
    return None if model is None else wire(model)


def _whole(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """The same with whole numbers written as such."""
    if fields is None:
        return None
    whole = {name: int(value) for name, value in fields.items() if isinstance(value, float) and value.is_integer()}
    return {**fields, **whole}


def _event(world: World, facts: Facts, phase: Phase) -> tuple[Notice, ...]:
    """The Event of the row of the table, where the phase changes; a row that ends an attempt has one by its cause."""
    event = TABLE[facts.row].event
    if facts.cause is not None:
        is_new = world.status.phase != "Failed" or world.status.attempt != facts.attempt
        # What Validation and SpecGenerated say becomes an Event with their conditions.
        if not is_new or facts.cause.condition in (VALIDATION, SPEC_GENERATED):
            return ()
        return (Notice(type="Warning", reason=str(facts.cause.reason), message=facts.cause.message),)
    if facts.wait is not None and facts.wait.reason in _WARNINGS and not _says(world, facts.wait.reason):
        return (Notice(type="Warning", reason=str(facts.wait.reason), message=facts.wait.message),)
    if event is None or (phase == world.status.phase and facts.row != "T24"):
        return ()
    type, reason = event
    return (Notice(type=type, reason=reason, message=_message(facts, phase)),)


_WARNINGS: Final = (RequestReason.JOB_NAME_CONFLICT, RequestReason.POD_PROBLEM, RequestReason.DEPLOYMENT_DEGRADED)
"""What is waited for and worth an Event, once."""


def _says(world: World, reason: RequestReason) -> bool:
    return any(each.reason == reason for each in world.conditions)


# --- conditions


def _verdicts(world: World, facts: Facts, phase: Phase) -> dict[str, Verdict]:
    found = {
        VALIDATION: _validation(facts),
        PROFILING: _profiling(facts),
        SPEC_GENERATED: _spec_generated(facts),
        SLA_SATISFIED: _sla(world, facts.results),
        DEPLOYMENT_READY: _deployment(facts, phase),
        SUCCEEDED: _succeeded(facts, phase),
    }
    verdicts = {type: verdict for type, verdict in found.items() if verdict is not None}
    cause = facts.cause
    if cause is not None:
        verdicts[cause.condition] = Verdict.false(cause.reason, cause.message)
    return {type: verdicts[type] for type in found if type in verdicts}


def _validation(facts: Facts) -> Verdict:
    if facts.invalid is not None:
        return Verdict.false(facts.invalid.reason, facts.invalid.message)
    if facts.changed:
        return Verdict.false(
            RequestReason.SPEC_CHANGE_REJECTED,
            "the spec was changed while the request is at work, and the change is ignored; undo it, or create "
            "another request",
        )
    return Verdict.true(RequestReason.VALIDATION_PASSED, "the spec is valid")


def _profiling(facts: Facts) -> Verdict | None:
    if facts.results is not None and facts.results.selected_config is not None:
        return Verdict.true(RequestReason.PROFILING_COMPLETED, facts.results.why or "a configuration was found")
    return None if facts.wait is None else Verdict.false(facts.wait.reason, facts.wait.message)


def _spec_generated(facts: Facts) -> Verdict | None:
    if facts.results is None or facts.results.selected_config is None:
        return None
    name = facts.results.selected_config["metadata"]["name"]
    return Verdict.true(RequestReason.SPEC_GENERATED, f"DynamoGraphDeployment {name} was generated")


def _sla(world: World, results: ProfilingResults | None) -> Verdict | None:
    """The predicted figures beside those that were asked for."""
    if results is None or results.sla_met is None:
        return None
    asked = targets(world.request)
    ttft, itl = results.predicted_ttft or 0.0, results.predicted_itl or 0.0
    workload = world.request.spec.workload
    tokens = (workload.osl if workload is not None else None) or 1000
    predicted = {"ttft": ttft, "itl": itl, "e2eLatency": ttft + itl * (tokens - 1)}
    shown = ", ".join(f"{name} {predicted[name]:,.4g} ms (asked {limit:,.4g} ms)" for name, limit in asked.items())
    how = "measured" if results.measured else "estimated" if results.estimated else "predicted"
    message = f"{how}: {shown}"
    if results.sla_met:
        return Verdict.true(RequestReason.TARGETS_MET, message)
    return Verdict.false(RequestReason.TARGETS_NOT_MET, "; ".join(filter(None, (message, results.remedy))))


def _deployment(facts: Facts, phase: Phase) -> Verdict | None:
    if facts.wait is None or facts.info is None or phase not in ("Deploying", "Deployed"):
        return None
    return (Verdict.true if facts.served else Verdict.false)(facts.wait.reason, facts.wait.message)


def _succeeded(facts: Facts, phase: Phase) -> Verdict:
    succeeded, reason = SUCCEEDED_BY_PHASE[phase]
    return (Verdict.true if succeeded else Verdict.false)(reason, _message(facts, phase))


def _message(facts: Facts, phase: Phase) -> str:
    if facts.cause is not None:
        return f"{_PREFIXES[facts.cause.condition]}: {facts.cause.message}"
    if phase == "Ready":
        return f"DynamoGraphDeployment {facts.dgd_name} was generated; set spec.autoApply to true to create it"
    if facts.invalid is not None:
        return facts.invalid.message
    return facts.wait.message if facts.wait is not None else phase
