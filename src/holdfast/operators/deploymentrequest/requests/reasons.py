"""The reasons of a request's conditions, and which of them end an attempt."""

from __future__ import annotations

from typing import Final

from holdfast.kernel.reasons import Reason


class RequestReason(Reason):
    """Reasons of the conditions of a DynamoGraphDeploymentRequest."""

    # Validation.
    VALIDATION_PASSED = "ValidationPassed", "The spec can be acted on."
    VALIDATION_FAILED = "ValidationFailed", "A field of the spec has a value that cannot be used."
    MODEL_CACHE_NOT_FOUND = "ModelCacheNotFound", "The PersistentVolumeClaim of spec.modelCache does not exist."
    SPEC_CHANGE_REJECTED = (
        "SpecChangeRejected",
        "The spec was changed while the request was at work; the change is ignored.",
    )

    # Profiling.
    DISCOVERING_HARDWARE = "DiscoveringHardware", "The hardware is not known yet, from the spec or from nodes."
    CREATING_JOB = "CreatingJob", "The profiling Job is being created."
    JOB_NAME_CONFLICT = "JobNameConflict", "An object that the profiling needs exists and belongs to another owner."
    JOB_CREATION_FAILED = "JobCreationFailed", "The API refuses the profiling Job, or an object that it needs."
    INITIALIZING = "Initializing", "The profiling Job exists and has not reported yet."
    PROFILING_RUNNING = "ProfilingRunning", "The profiling Job runs and has not reported a phase yet."
    SWEEPING_PREFILL = "SweepingPrefill", "The profiler evaluates configurations for reading prompts."
    SWEEPING_DECODE = "SweepingDecode", "The profiler evaluates configurations for writing answers."
    SELECTING_CONFIG = "SelectingConfig", "The profiler chooses among the configurations."
    BUILDING_CURVES = "BuildingCurves", "The profiler computes the curves that a planner scales by."
    GENERATING_DGD = "GeneratingDGD", "The profiler writes the deployment."
    DONE = "Done", "The profiler has ended, and its result is awaited."
    POD_PROBLEM = "ProfilerNotStarted", "The pod of the profiling Job cannot start; the message says why."
    PROFILING_COMPLETED = "ProfilingCompleted", "The profiler found a configuration."
    INITIALIZING_FAILED = "InitializingFailed", "The profiler cannot use the request."
    SWEEPING_PREFILL_FAILED = "SweepingPrefillFailed", "The profiler failed in the phase SweepingPrefill."
    SWEEPING_DECODE_FAILED = "SweepingDecodeFailed", "The profiler failed in the phase SweepingDecode."
    SELECTING_CONFIG_FAILED = "SelectingConfigFailed", "The profiler failed in the phase SelectingConfig."
    BUILDING_CURVES_FAILED = "BuildingCurvesFailed", "The profiler failed in the phase BuildingCurves."
    GENERATING_DGD_FAILED = "GeneratingDGDFailed", "The profiler failed in the phase GeneratingDGD."
    PROFILING_FAILED = "ProfilingFailed", "The profiler failed before it reported a phase."
    NOTHING_MEETS_TARGETS = "NoConfigurationMeetsTargets", "No configuration meets the targets within the hardware."
    JOB_DELETED = "JobDeleted", "The profiling Job was deleted before it had a result."
    PROFILING_DEADLINE = "ProfilingDeadlineExceeded", "The profiling took longer than its deadline."
    OUTPUT_MISSING = "OutputMissing", "The profiling Job completed and wrote no result."

    # SpecGenerated.
    SPEC_GENERATED = "SpecGenerated", "The deployment was generated."
    GENERATION_FAILED = "GenerationFailed", "The output of the profiler has no deployment that can be used."

    # SLASatisfied.
    TARGETS_MET = "TargetsMet", "The chosen configuration is predicted, or measured, to meet the targets."
    TARGETS_NOT_MET = "TargetsNotMet", "The best configuration does not meet the targets."

    # DeploymentReady.
    DEPLOYMENT_IN_PROGRESS = "DeploymentInProgress", "The deployment is being created, or is not ready yet."
    DEPLOYMENT_READY = "DeploymentReady", "All components of the deployment are ready."
    UPDATING = "Updating", "The deployment serves, and is being scaled or updated."
    REPLICAS_LOST = "ReplicasLost", "The deployment has lost replicas, and is degraded if they do not come back soon."
    DEPLOYMENT_DEGRADED = "DeploymentDegraded", "The deployment was ready, and has lost replicas for a while."
    DEPLOYMENT_REJECTED = "DeploymentRejected", "The API refuses the deployment."
    DEPLOYMENT_NAME_CONFLICT = (
        "DeploymentNameConflict",
        "A deployment of this name exists that was not created for this request.",
    )
    DEPLOYMENT_DELETED = "DeploymentDeleted", "The deployment was deleted."
    DEPLOYMENT_DEADLINE = "DeploymentDeadlineExceeded", "The deployment was not ready within its deadline."

    # Succeeded, by phase.
    PENDING = "Pending", "The request is validated, and its hardware discovered."
    PROFILING = "Profiling", "The profiling Job runs."
    DEPLOYING = "Deploying", "The deployment is being created, or is not ready."
    DEPLOYED = "Deployed", "The deployment serves."
    FAILED = "Failed", "The attempt ended; the message and the conditions say why."


_R: Final = RequestReason

FAILED_IN: Final = {
    "Initializing": _R.INITIALIZING_FAILED,
    "SweepingPrefill": _R.SWEEPING_PREFILL_FAILED,
    "SweepingDecode": _R.SWEEPING_DECODE_FAILED,
    "SelectingConfig": _R.SELECTING_CONFIG_FAILED,
    "BuildingCurves": _R.BUILDING_CURVES_FAILED,
    "GeneratingDGD": _R.GENERATING_DGD_FAILED,
}
"""The reason of a profiler that failed, by the phase that it reported last."""

TERMINAL: Final[frozenset[str]] = frozenset(
    {
        _R.VALIDATION_FAILED,
        _R.JOB_CREATION_FAILED,
        *FAILED_IN.values(),
        _R.PROFILING_FAILED,
        _R.NOTHING_MEETS_TARGETS,
        _R.JOB_DELETED,
        _R.PROFILING_DEADLINE,
        _R.OUTPUT_MISSING,
        _R.GENERATION_FAILED,
        _R.DEPLOYMENT_REJECTED,
        _R.DEPLOYMENT_NAME_CONFLICT,
        _R.DEPLOYMENT_DELETED,
        _R.DEPLOYMENT_DEADLINE,
    }
)
"""The reasons that end an attempt: the request is Failed until its spec is changed or it is retried."""
