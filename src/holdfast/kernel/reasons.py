"""Why: families of reasons, and those that the engine gives.

A code is for machines and never changes its meaning; the sentence beside it is
for people and may.  Every member carries what it means, and the documentation
has an entry for each of the engine's (a test compares them).  The module must
not know what a reason is given for: decisions, conditions and children build
on it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import msgspec

_CODE: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")


def is_code(text: str) -> bool:
    """Whether the API accepts the text as the reason of a condition."""
    return _CODE.fullmatch(text) is not None


class Reason(StrEnum):
    """Base of every family of reasons: each member is a code and the sentence that documents it.

        class Why(Reason):
            SERVING = "Serving", "Every pod passes its readiness probe."

    A member without a sentence, or with a code the API would refuse, fails when the class is made.
    """

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> Reason:
        if not is_code(code):
            raise ValueError(f"reason {code!r} is not a code the API accepts; write one CamelCase word")
        if not meaning.endswith("."):
            raise ValueError(
                f'reason {code} says nothing about itself; write = "{code}", "A sentence with a full stop."'
            )
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


class Code(Reason):
    """A machine-readable reason of the engine; ``Code.X.meaning`` explains it in a sentence."""

    # What is being done.
    REPLACING_DEAD = (
        "ReplacingDead",
        "A replica failed for good, or is outdated and was never scheduled; removing it costs no budget.",
    )
    REMOVING_UNREADY = "RemovingUnready", "A replica that is not wanted is not ready either; removing it costs nothing."
    STARTING_UPDATED = "StartingUpdated", "There is room for replicas of the new revision."
    STARTING_STABLE = "StartingStable", "Replicas of the stable revision are missing and are replaced as they were."
    STOPPING_OLD = "StoppingOld", "More replicas are available than the floor needs, so old ones make way."
    SCALING_DOWN = "ScalingDown", "More replicas run than are desired."
    DRAINING = "Draining", "Replicas that receive no traffic are removed."
    SWITCHING_TRAFFIC = "SwitchingTraffic", "The other revision is ready to serve, so traffic moves."
    ROLLING_BACK = "RollingBack", "The new revision failed, so the stable one takes its place again."
    ABORTING = "Aborting", "The new revision failed; its replicas are withdrawn and the stable ones return."
    COMPLETED = "Completed", "All replicas that should run the desired revision do, and are available."

    # What is waited for.
    WAITING_FOR_READY = "WaitingForReady", "Replicas were started and are not ready yet."
    WAITING_FOR_AVAILABLE = "WaitingForAvailable", "Replicas are ready, but not yet for minReadySeconds."
    WAITING_FOR_TERMINATION = "WaitingForTermination", "Replicas were stopped and have not gone yet."
    WAITING_FOR_ROLES = "WaitingForRoles", "This role waits for roles of its group that are slower, or cannot go on."
    AT_FLOOR = "AtFloor", "No more replicas are available than the floor needs."
    AT_CEILING = "AtCeiling", "As many replicas live as the surge allows."
    BATCH_PAUSE = "BatchPause", "The pause between two batches has not passed."
    STEP_PAUSE = "StepPause", "The pause of this step has not passed."
    APPROVAL_NEEDED = "ApprovalNeeded", "This step goes on when somebody promotes it."
    DELETION_NEEDED = "DeletionNeeded", "With OnDelete, old replicas are replaced when somebody deletes them."
    PAUSED = "Paused", "Somebody paused the rollout."

    # Why nothing can be done.
    NO_DISRUPTION_BUDGET = "NoDisruptionBudget", "The floor equals the replicas and no surge is allowed."
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded", "Nothing got better for longer than the progress deadline."

    # What was changed about the limits that were asked for.
    MIN_AVAILABLE_CLAMPED = "MinAvailableClamped", "minAvailable is more than the replicas, so it counts as all."
    MAX_UNAVAILABLE_CLAMPED = "MaxUnavailableClamped", "maxUnavailable is more than the replicas, so it counts as all."
    SURGE_DERIVED = "SurgeDerived", "The floor leaves no room and maxSurge is unset, so one replica of surge is used."
    SURGE_IGNORED = "SurgeIgnored", "These replicas have fixed identities and cannot surge, so maxSurge counts as 0."
    FLOOR_LOWERED = (
        "FloorLowered",
        "All replicas are needed and no surge is allowed, so an update takes one down at a time, below minAvailable.",
    )
    FLOOR_NOT_GUARANTEED = "FloorNotGuaranteed", "Recreate stops every old replica first, so no floor can hold."


class Because(msgspec.Struct, frozen=True):
    """A reason: a code for machines, of the engine's or of whoever holds it, and a sentence for people."""

    code: Reason
    message: str


def count(number: int, noun: str = "replica", plural: str | None = None) -> str:
    """``1 replica``, ``2 replicas``: numbers in sentences."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
