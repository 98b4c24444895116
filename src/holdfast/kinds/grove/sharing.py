"""Resource claims that parts of a gang share.

This module must not know what the resources are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from holdfast.kinds.grove.components import MAX_CLIQUES, MAX_SCALING_GROUPS, ShortName
from holdfast.kinds.model import OPEN, Model, Name, OpenObject, Rule, api

ClaimTemplateSpec = Annotated[
    OpenObject,
    api(
        properties={
            "spec": {
                **OPEN,
                "required": ["devices"],
                "properties": {
                    "devices": {
                        **OPEN,
                        "required": ["requests"],
                        "properties": {"requests": {"type": "array", "minItems": 1, "items": OPEN}},
                    }
                },
            }
        },
        required=["spec"],
    ),
]


class SharingScope(StrEnum):
    """Who shares one resource claim."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


class ResourceClaimTemplate(Model):
    """A template for resource claims, which ``resourceSharing`` refers to by name."""

    name: Annotated[Name, api("What the template is called here.")]
    template_spec: Annotated[ClaimTemplateSpec, api("The spec of a ResourceClaimTemplate.")]


class ResourceSharing(Model):
    """A resource claim that the pods of an owner share."""

    name: Annotated[Name, api("The template: one of this set, or a ResourceClaimTemplate object.")]
    namespace: (
        Annotated[str, api("Where the ResourceClaimTemplate object is; the set's namespace if unset.", max_length=63)]
        | None
    ) = None
    scope: Annotated[SharingScope, api("Whether all replicas share one claim or each has its own.")]


class SetSharingFilter(Model):
    """Which children of a PodCliqueSet share a claim."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.childCliqueNames) || has(self.childScalingGroupNames)",
            message="a filter names at least one child; leave the filter out to share with all",
            reason="FieldValueRequired",
        ),
    )

    child_clique_names: Annotated[
        tuple[ShortName, ...],
        api("The names of the cliques that share it.", list_type="set", min_length=1, max_length=MAX_CLIQUES),
    ] = ()
    child_scaling_group_names: Annotated[
        tuple[ShortName, ...],
        api(
            "The names of the scaling groups that share it.",
            list_type="set",
            min_length=1,
            max_length=MAX_SCALING_GROUPS,
        ),
    ] = ()


class SetResourceSharing(ResourceSharing):
    """A resource claim that children of a PodCliqueSet share."""

    filter: Annotated[SetSharingFilter, api("Which children share it; all if unset.")] | None = None


class GroupSharingFilter(Model):
    """Which cliques of a scaling group share a claim."""

    child_clique_names: Annotated[
        tuple[ShortName, ...],
        api("The names of the cliques that share it.", list_type="set", min_length=1, max_length=MAX_CLIQUES),
    ]


class GroupResourceSharing(ResourceSharing):
    """A resource claim that cliques of a scaling group share."""

    filter: Annotated[GroupSharingFilter, api("Which cliques share it; all if unset.")] | None = None
