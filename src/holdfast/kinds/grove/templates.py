"""The parts of a gang as people write them inside a PodCliqueSet: cliques and scaling groups.

What an API server can refuse of one part by itself is said here; what concerns
several parts is said where they come together (`sets`).  This module must not
know the objects that are made from a template.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from holdfast.kinds.grove.cliques import PodCliqueSpec
from holdfast.kinds.grove.components import (
    MAX_CLIQUES,
    MAX_SHARED_RESOURCES,
    AutoScalingConfig,
    RollingUpdate,
    ShortName,
)
from holdfast.kinds.grove.sharing import GroupResourceSharing, ResourceSharing
from holdfast.kinds.grove.topology import TOPOLOGY_STAYS, TopologyConstraint
from holdfast.kinds.model import Model, Positive, Rule, api, frozen

LabelValue = Annotated[str, api(max_length=63, pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")]


class CliqueSpec(PodCliqueSpec):
    """The PodClique that a template asks for."""

    RULES: ClassVar = (
        *PodCliqueSpec.RULES,
        Rule(
            rule="!has(self.podSpec.nodeName) || self.podSpec.nodeName == ''",
            message="nodeName must not be set: the gang is placed by a scheduler",
            reason="FieldValueForbidden",
            field_path=".podSpec.nodeName",
        ),
        Rule(
            rule="!has(self.podSpec.topologySpreadConstraints) || self.podSpec.topologySpreadConstraints.size() == 0",
            message="topologySpreadConstraints must not be set: the gang is placed as a whole; use topologyConstraint",
            reason="FieldValueForbidden",
            field_path=".podSpec.topologySpreadConstraints",
        ),
        Rule(
            rule="!has(self.autoScalingConfig) || self.autoScalingConfig.maxReplicas >= self.replicas",
            message="autoScalingConfig.maxReplicas must be at least replicas",
            field_path=".autoScalingConfig.maxReplicas",
        ),
        Rule(
            rule=(
                "!has(self.autoScalingConfig) || !has(self.autoScalingConfig.minReplicas)"
                " || self.autoScalingConfig.minReplicas >= (has(self.minAvailable) ? self.minAvailable : self.replicas)"
            ),
            message="autoScalingConfig.minReplicas must be at least minAvailable, which is replicas if unset",
            field_path=".autoScalingConfig.minReplicas",
        ),
        frozen("roleName"),
        # Writing the default down changes nothing, and status.minAvailable has what is left out: both are allowed.
        Rule(
            rule=(
                "!has(self.minAvailable)"
                " || self.minAvailable == (has(oldSelf.minAvailable) ? oldSelf.minAvailable : oldSelf.replicas)"
            ),
            message="minAvailable is immutable",
            reason="FieldValueForbidden",
            field_path=".minAvailable",
        ),
        frozen("startsAfter"),
        frozen("podSpec.schedulerName"),
    )

    replicas: (
        Annotated[Positive, api("How many pods each PodClique is created with; then it scales by itself.", default=1)]
        | None
    ) = None
    starts_after: Annotated[
        tuple[ShortName, ...],
        api(
            "The cliques that start before this one; used with CliqueStartupTypeExplicit.",
            list_type="set",
            max_length=MAX_CLIQUES,
        ),
    ] = ()


class CliqueTemplate(Model):
    """A role of the gang."""

    RULES: ClassVar = (frozen("resourceSharing"), TOPOLOGY_STAYS)

    name: Annotated[ShortName, api("What the clique is called.")]
    labels: Annotated[dict[str, LabelValue], api("Labels of the PodClique and its pods.")] = {}
    annotations: Annotated[dict[str, str], api("Annotations of the PodClique and its pods.")] = {}
    topology_constraint: Annotated[TopologyConstraint, api("Where the clique is placed.")] | None = None
    resource_sharing: Annotated[
        tuple[ResourceSharing, ...],
        api("Resource claims that its pods share.", keys=("name",), max_length=MAX_SHARED_RESOURCES),
    ] = ()
    rolling_update: (
        Annotated[RollingUpdate, api("How far an update may disturb this clique; updateStrategy's if unset.")] | None
    ) = None
    spec: Annotated[CliqueSpec, api("The pods of the clique.")]


class ScalingGroupTemplate(Model):
    """Cliques of the gang that scale together."""

    RULES: ClassVar = (
        Rule(
            rule="self.minAvailable <= self.replicas",
            message="minAvailable must be at most replicas",
            field_path=".minAvailable",
        ),
        Rule(
            rule=(
                "!has(self.scaleConfig) || !has(self.scaleConfig.minReplicas)"
                " || self.scaleConfig.minReplicas >= self.minAvailable"
            ),
            message="scaleConfig.minReplicas must be at least minAvailable",
            field_path=".scaleConfig.minReplicas",
        ),
        Rule(
            rule=(
                "!has(self.scaleConfig) || has(self.scaleConfig.minReplicas)"
                " || self.scaleConfig.maxReplicas >= self.replicas"
            ),
            message="scaleConfig.maxReplicas must be at least minReplicas, which is replicas if unset",
            field_path=".scaleConfig.maxReplicas",
        ),
        Rule(
            rule="self.cliqueNames.all(n, self.cliqueNames.exists_one(m, m == n))",
            message="cliqueNames must not name a clique twice",
            reason="FieldValueDuplicate",
            field_path=".cliqueNames",
        ),
        Rule(
            rule=(
                "!has(self.resourceSharing) || self.resourceSharing.all(r, !has(r.filter)"
                " || r.filter.childCliqueNames.all(n, n in self.cliqueNames))"
            ),
            message="a filter may name only cliques of this scaling group",
            field_path=".resourceSharing",
        ),
        frozen("cliqueNames"),
        frozen("minAvailable"),
        frozen("resourceSharing"),
        TOPOLOGY_STAYS,
    )

    name: Annotated[ShortName, api("What the group is called.")]
    clique_names: Annotated[
        tuple[ShortName, ...],
        api("The cliques of the group, in the order of their pod indices.", max_length=MAX_CLIQUES),
    ]
    annotations: Annotated[dict[str, str], api("Annotations of the PodCliqueScalingGroup.")] = {}
    replicas: (
        Annotated[
            Positive, api("How many replicas each new group is created with; later it is scaled by itself.", default=1)
        ]
        | None
    ) = None
    min_available: (
        Annotated[Positive, api("How many replicas are scheduled together and must stay available.", default=1)] | None
    ) = None
    scale_config: Annotated[AutoScalingConfig, api("How the group scales by itself.")] | None = None
    resource_sharing: Annotated[
        tuple[GroupResourceSharing, ...],
        api("Resource claims that its cliques share.", keys=("name",), max_length=MAX_SHARED_RESOURCES),
    ] = ()
    topology_constraint: Annotated[TopologyConstraint, api("Where each replica is placed.")] | None = None
    rolling_update: (
        Annotated[RollingUpdate, api("How far an update may disturb this group; updateStrategy's if unset.")] | None
    ) = None
