"""What cliques and scaling groups have in common: names, autoscaling, updates.

Lists are bounded where rules walk them, so that the cost an API server
estimates for a rule stays within its budget.  This module must not know the
kinds, nor the template that they come from.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from holdfast.kinds.model import (
    Column,
    Count,
    IntOrPercent,
    Model,
    OpenObject,
    Positive,
    PositiveDuration,
    Rule,
    Time,
    api,
    is_zero,
)

GROUP: Final = "grove.io"
VERSION: Final = "v1alpha1"

MAX_CLIQUES: Final = 64
MAX_SCALING_GROUPS: Final = 32
MAX_SHARED_RESOURCES: Final = 16
MAX_NAMES_LENGTH: Final = 45
"""What the names inside a pod's name may add up to; the rest is for indices, hyphens and the pod's suffix."""

ShortName = Annotated[
    str,
    api(
        min_length=1,
        max_length=MAX_NAMES_LENGTH - 1,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]
"""The name of a clique or a scaling group: short, because pods are named after it."""


class AutoScalingConfig(Model):
    """How a horizontal autoscaler scales a clique or a scaling group."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
            message="maxReplicas must be at least minReplicas",
            field_path=".maxReplicas",
        ),
    )

    min_replicas: Annotated[Positive, api("The fewest replicas; the template's replicas if unset.")] | None = None
    max_replicas: Annotated[Positive, api("The most replicas that there may be.")]
    metrics: Annotated[
        tuple[OpenObject, ...], api("What to scale by, as autoscaling/v2 metrics.", list_type="atomic")
    ] = ()


class RollingUpdate(Model):
    """How far an update may disturb a component: pods of a clique, or replicas of a scaling group."""

    RULES: ClassVar = (
        Rule(
            rule=(
                f"!has(self.maxUnavailable) || !{is_zero('self.maxUnavailable')}"
                f" || (has(self.maxSurge) && !{is_zero('self.maxSurge')})"
            ),
            message="with maxUnavailable 0, maxSurge must be above 0, or nothing could ever be replaced",
            field_path=".maxSurge",
        ),
    )

    max_unavailable: (
        Annotated[IntOrPercent, api("How many may be missing at a time; 1 if neither this nor maxSurge is set.")] | None
    ) = None
    max_surge: (
        Annotated[IntOrPercent, api("How many may exist beyond the desired number; 0 replaces in place.")] | None
    ) = None
    min_ready_seconds: (
        Annotated[Count, api("How long a new pod must have been ready before it counts as available.")] | None
    ) = None
    progress_deadline: (
        Annotated[PositiveDuration, api("How long an update may stand still before it is reported as stuck.")] | None
    ) = None


class LastError(Model):
    """An error of the operator's last pass."""

    code: Annotated[str, api("Which error, for machines.")]
    description: Annotated[str, api("Which error, for people.")]
    observed_at: Annotated[Time, api("When the error happened.")]


class Update(Model):
    """When an update ran."""

    update_started_at: Annotated[Time, api("When the update began.")]
    update_ended_at: Annotated[Time, api("When the update had no more to do; unset while it runs.")] | None = None


class ComponentUpdate(Update):
    """When the update of a part of a PodCliqueSet ran, and to what."""

    last_progress_at: Annotated[Time, api("When the update last moved; progressDeadline counts from here.")] | None = (
        None
    )
    pod_clique_set_generation_hash: Annotated[str, api("The generation of the PodCliqueSet that is being reached.")]


def number(name: str, path: str, *, priority: int = 0) -> Column:
    """A column of whole numbers."""
    return Column(name=name, path=path, type="integer", priority=priority)


BREACHED: Final = Column(
    name="MinBreached", path='.status.conditions[?(@.type=="MinAvailableBreached")].status', priority=1
)

REASON: Final = Column(
    name="Reason",
    path='.status.conditions[?(@.type=="PodsReady")].reason',
    description="Why not all pods are ready",
)
