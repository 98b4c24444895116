"""Why a Workload is as it is: the reasons of its conditions, beside the engine's own (`kernel.reasons.Code`)."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class Why(Reason):
    """A reason of a Workload; ``Why.X.meaning`` explains it in a sentence."""

    ENOUGH_AVAILABLE = "EnoughAvailable", "At least as many replicas are available as the floor needs."
    TOO_FEW_AVAILABLE = "TooFewAvailable", "Fewer replicas are available than the floor needs."

    ROLLING_OUT = "RollingOut", "Replicas of the wanted revision take the place of others."
    ROLLED_OUT = "RolledOut", "All replicas run the wanted revision and are available."
    SCALING = "Scaling", "The wanted revision was rolled out before, and replicas of it are started or stopped."
    REJECTED = "RevisionRejected", "The revision that the spec asks for was undone or failed, and is not rolled out."

    NOT_PAUSED = "NotPaused", "Nobody paused the rollout, and no step waits."

    NOT_BLOCKED = "NotBlocked", "Nothing keeps the rollout from going on."
    CONFIGURATION_MISSING = (
        "ConfigurationMissing",
        "A ConfigMap or Secret that is part of the revision does not exist.",
    )
    SERVICE_TAKEN = "ServiceTaken", "The Service of the Workload's name belongs to somebody else, and is not switched."
    INVALID_SPEC = "InvalidSpec", "The spec asks for what no fleet can have, or cannot be read."
    REQUEST_REFUSED = "RequestRefused", "The API refused a request of the operator; the message has its words."

    HEALTHY = "Healthy", "No replica that should serve is broken."
    BROKEN_REPLICAS = "BrokenReplicas", "Replicas that should serve are not ready, or failed for good."

    FLOOR_HELD = "FloorHeld", "As many replicas are available as the floor needs."
    STILL_GROWING = "StillGrowing", "The fleet has not grown to its floor yet, and has lost nothing."
    BELOW_FLOOR = "BelowFloor", "Replicas were lost, so fewer are available than the floor needs; none is stopped."

    SHRINK_HELD = (
        "ShrinkHeld",
        "Fewer replicas are asked for than the rollout began with; it keeps them while it gets on.",
    )
