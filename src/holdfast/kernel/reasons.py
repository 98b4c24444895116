"""Reasons: codes for machines with sentences for people, and those that the engine gives.

A code never changes its meaning; the message beside it may change.  Every code
carries a sentence that documents it, and a test compares the documentation of
the engine with them.  Decisions, conditions and children use reasons; this
module must not know them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

NAMES_SHOWN: Final = 5
"""How many names a message spells out before it counts the rest."""

_CODE: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")


@lru_cache(maxsize=1024)
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

    # What the engine does.
    REPLACING_DEAD = (
        "ReplacingDead",
        "A replica failed for good, or is outdated and was never scheduled; removing it costs no budget.",
    )
    REMOVING_UNREADY = "RemovingUnready", "A surplus replica is not ready; removing it costs nothing."
    STARTING_UPDATED = "StartingUpdated", "There is room for replicas of the new revision."
    STARTING_STABLE = (
        "StartingStable",
        "Replicas of the stable revision are missing and are started again.",
    )
    STOPPING_OLD = "StoppingOld", "More replicas are available than the floor needs, so old ones are stopped."
    SCALING_DOWN = "ScalingDown", "More replicas run than are desired."
    DRAINING = "Draining", "Replicas that receive no traffic are removed."
    SWITCHING_TRAFFIC = "SwitchingTraffic", "The new revision is ready to serve, so it receives the traffic."
    ROLLING_BACK = "RollingBack", "The new revision failed, so the stable one is rolled out again."
    ABORTING = "Aborting", "The new revision failed, so its replicas are replaced by those of the stable one."
    COMPLETED = "Completed", "All replicas that should run the desired revision do, and are available."

    # What it waits for.
    WAITING_FOR_READY = "WaitingForReady", "Replicas were started and are not ready yet."
    WAITING_FOR_AVAILABLE = "WaitingForAvailable", "Replicas are ready, but not yet for minReadySeconds."
    WAITING_FOR_TERMINATION = "WaitingForTermination", "Replicas were stopped and still terminate."
    WAITING_FOR_ROLES = "WaitingForRoles", "The role waits for roles of its group that are slower or cannot go on."
    AT_FLOOR = "AtFloor", "No more replicas are available than the floor needs."
    AT_CEILING = "AtCeiling", "As many replicas run as the surge allows."
    BATCH_PAUSE = "BatchPause", "The pause between two batches has not passed."
    STEP_PAUSE = "StepPause", "The pause of this step has not passed."
    APPROVAL_NEEDED = "ApprovalNeeded", "The step waits until a user promotes the rollout."
    DELETION_NEEDED = "DeletionNeeded", "With OnDelete, an old replica is replaced when a user deletes it."
    PAUSED = "Paused", "A user paused the rollout."

    # Why it can do nothing.
    NO_DISRUPTION_BUDGET = "NoDisruptionBudget", "The floor equals the replicas and no surge is allowed."
    PROGRESS_DEADLINE_EXCEEDED = (
        "ProgressDeadlineExceeded",
        "No progress for longer than the progress deadline.",
    )

    # How the limits differ from what the user wrote.
    MIN_AVAILABLE_CLAMPED = "MinAvailableClamped", "minAvailable is more than the replicas, so it counts as all."
    MAX_UNAVAILABLE_CLAMPED = "MaxUnavailableClamped", "maxUnavailable is more than the replicas, so it counts as all."
    SURGE_DERIVED = "SurgeDerived", "The floor leaves no room and maxSurge is unset, so one replica of surge is used."
    SURGE_IGNORED = "SurgeIgnored", "These replicas have fixed identities and cannot surge, so maxSurge counts as 0."
    FLOOR_LOWERED = (
        "FloorLowered",
        "An update or a drain takes one replica at a time below minAvailable, because it could not end otherwise.",
    )
    FLOOR_NOT_GUARANTEED = "FloorNotGuaranteed", "Recreate stops every old replica first, so no floor can hold."


class Because(msgspec.Struct, frozen=True):
    """Why a decision was made: a code for machines, and a message for people with the numbers."""

    code: Reason
    message: str


def count(number: int, noun: str = "replica", plural: str | None = None) -> str:
    """``1 replica``, ``2 replicas``: numbers in sentences."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def some(names: Iterable[str], most: int = NAMES_SHOWN) -> str:
    """``a, b and 3 more``: names in sentences; of many, the first ones."""
    given = tuple(names)
    rest = len(given) - most
    return ", ".join(given[:most]) + (f" and {rest:,} more" if rest > 0 else "")
