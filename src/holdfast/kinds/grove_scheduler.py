"""The kind of ``scheduler.grove.io/v1alpha1``: the gang, as a scheduler reads it.

A PodGang names pods that are placed together or not at all.  The operator
writes its spec, a scheduler may answer in its status.  This module says what
the object looks like; it must not know who schedules, nor the kinds that gangs
are made from.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from holdfast.kinds.model import AGE, Column, Conditions, Count, Kind, Model, Resource, api

GROUP: Final = "scheduler.grove.io"
VERSION: Final = "v1alpha1"


class PodGangPhase(StrEnum):
    """How far a gang is on its way to the nodes."""

    PENDING = "Pending"
    """Not scheduled yet."""
    STARTING = "Starting"
    """Being bound to nodes."""
    RUNNING = "Running"
    """All of its pods run."""


class NamespacedName(Model):
    """An object, by namespace and name."""

    namespace: Annotated[str, api("The namespace of the object.")]
    name: Annotated[str, api("The name of the object.")]


class PackConstraint(Model):
    """Into which topology domain pods are packed, by the label that nodes of one domain share."""

    required: Annotated[str, api("The label of the domain that must hold all pods.")] | None = None
    preferred: Annotated[str, api("The label of the domain that should hold all pods, if it can.")] | None = None


class TopologyConstraint(Model):
    """Where pods are placed in the topology of the cluster."""

    pack_constraint: Annotated[PackConstraint, api("Into which domain they are packed.")] | None = None


class PodGroup(Model):
    """Interchangeable pods of a gang: those of one PodClique."""

    name: Annotated[str, api("The name of the PodClique.", min_length=1)]
    pod_references: Annotated[tuple[NamespacedName, ...], api("The pods of the PodClique.")]
    min_replicas: Annotated[Count, api("How many of them are placed together or not at all.")]
    topology_constraint: Annotated[TopologyConstraint, api("Where they are placed.")] | None = None


class TopologyConstraintGroup(Model):
    """Pod groups of a gang that are placed close to each other."""

    name: Annotated[str, api("What the constraint is called.", min_length=1)]
    pod_group_names: Annotated[tuple[str, ...], api("The names of the pod groups.")]
    topology_constraint: Annotated[TopologyConstraint, api("Where they are placed.")] | None = None


class PodGangSpec(Model):
    """Pods that are placed together or not at all."""

    pod_groups: Annotated[tuple[PodGroup, ...], api("The pods of the gang, by PodClique.", keys=("name",))] = (
        msgspec.field(name="podgroups", default=())
    )
    topology_constraint: Annotated[TopologyConstraint, api("Where the gang is placed.")] | None = None
    topology_constraint_group_configs: Annotated[
        tuple[TopologyConstraintGroup, ...], api("Where parts of the gang are placed.", keys=("name",))
    ] = ()
    priority_class_name: Annotated[str, api("The PriorityClass of the gang.")] | None = None
    reuse_reservation_ref: Annotated[NamespacedName, api("A PodGang whose place this one may take over.")] | None = None


class PodGangStatus(Model):
    """How far a gang is on its way to the nodes."""

    phase: Annotated[PodGangPhase, api("How far the gang is on its way.")] | None = None
    conditions: Conditions = ()
    placement_score: Annotated[float, api("How well it is placed; 1 is best.")] | None = None


class PodGang(Resource):
    """Pods that are placed on nodes together or not at all."""

    spec: Annotated[PodGangSpec, api("The pods that are placed together.")]
    status: Annotated[PodGangStatus, api("How far the gang is on its way to the nodes.")] | None = None


POD_GANG: Final = Kind(
    model=PodGang,
    group=GROUP,
    version=VERSION,
    plural="podgangs",
    short_names=("pg",),
    columns=(Column(name="Phase", path=".status.phase"), AGE),
)

KINDS: Final = (POD_GANG,)
