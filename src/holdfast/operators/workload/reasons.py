"""The reasons of a Workload, beside those of the engine (`kernel.reasons.Code`) and of floors (`kernel.floors`)."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class WorkloadReason(Reason):
    """A reason of a Workload; ``WorkloadReason.X.meaning`` explains it in a sentence."""

    ENOUGH_AVAILABLE = "EnoughAvailable", "At least as many replicas are available as the floor needs."
    TOO_FEW_AVAILABLE = "TooFewAvailable", "Fewer replicas are available than the floor needs."

    ROLLING_OUT = "RollingOut", "Replicas of other revisions are being replaced by replicas of the wanted one."
    ROLLED_OUT = "RolledOut", "All replicas run the wanted revision and are available."
    SCALING = "Scaling", "The wanted revision was rolled out before, and replicas of it are started or stopped."
    REJECTED = "RevisionRejected", "The revision of the spec was undone or failed, and is not rolled out."
    ABORTED = "Aborted", "A user aborted the rollout of the revision."
    UNDONE = "Undone", "A user returned to an earlier revision."

    NOT_PAUSED = "NotPaused", "The rollout is not paused, and no step waits."

    NOT_BLOCKED = "NotBlocked", "Nothing prevents the rollout from continuing."
    CONFIGURATION_MISSING = (
        "ConfigurationMissing",
        "A ConfigMap or Secret that is part of the revision does not exist.",
    )
    SERVICE_TAKEN = "ServiceTaken", "The Service of the Workload's name has another owner, so it is not switched."
    INVALID_SPEC = "InvalidSpec", "The spec cannot be read, or combines fields that exclude each other."
    REQUEST_REFUSED = "RequestRefused", "The API server refused a request of the controller; the message quotes it."

    HEALTHY = "Healthy", "Every replica that should serve does."
    BROKEN_REPLICAS = "BrokenReplicas", "Replicas that should serve are not ready, or have failed."

    SHRINK_HELD = (
        "ShrinkHeld",
        "The spec asks for fewer replicas than the rollout began with; the rollout keeps them while it progresses.",
    )
