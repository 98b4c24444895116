"""How far a request is, as a value, and the phase that follows from it.

`stages` makes it from the world of a request.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.kernel.phases import Ladder, always
from holdfast.kinds.nvidia.requests import (
    DeploymentInfo,
    DynamoGraphDeploymentRequest,
    Hardware,
    ProfilingProgress,
    ProfilingResults,
)
from holdfast.operators.deploymentrequest.requests.reasons import RequestReason
from holdfast.operators.deploymentrequest.requests.transitions import Phase
from holdfast.profiler.results import SubPhase

VALIDATION: Final = "Validation"
PROFILING: Final = "Profiling"
SPEC_GENERATED: Final = "SpecGenerated"
SLA_SATISFIED: Final = "SLASatisfied"
DEPLOYMENT_READY: Final = "DeploymentReady"
SUCCEEDED: Final = "Succeeded"

CAUSES: Final = (VALIDATION, PROFILING, SPEC_GENERATED, DEPLOYMENT_READY)
"""The conditions of which one has the cause of a failed attempt."""


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


def targets(request: DynamoGraphDeploymentRequest) -> Mapping[str, float]:
    """The targets of a request in milliseconds, by their names; what is absent has the default."""
    sla = request.spec.sla
    if sla is not None and sla.e2e_latency is not None:
        return {"e2eLatency": sla.e2e_latency}
    return {
        "ttft": sla.ttft if sla is not None and sla.ttft is not None else 2000.0,
        "itl": sla.itl if sla is not None and sla.itl is not None else 30.0,
    }
