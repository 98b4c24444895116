"""Where gangs and their parts are placed in the topology of a cluster.

This module must not know what is placed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from holdfast.kinds.model import Model, Name, Rule, api

Domain = Annotated[str, api(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9-]*$")]


class TopologyPack(Model):
    """Into which topology domain a replica is packed."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.required) || has(self.preferred)",
            message="pack needs required or preferred",
            reason="FieldValueRequired",
        ),
    )

    required: Annotated[Domain, api("The domain that a replica must fit into, or stay pending.")] | None = None
    preferred: Annotated[Domain, api("The domain that a replica should fit into, if it can.")] | None = None


class TopologyConstraint(Model):
    """Where each replica is placed in the topology of the cluster."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.pack) || has(self.packDomain)",
            message="topologyConstraint needs pack",
            reason="FieldValueRequired",
            field_path=".pack",
        ),
        Rule(
            rule="!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            message="packDomain is the old name of pack.required; set pack.required alone",
            field_path=".pack.required",
        ),
        Rule(
            rule="!has(self.packDomain) || (oldSelf.hasValue() && has(oldSelf.value().packDomain))",
            message="packDomain is no longer accepted; use pack.required",
            reason="FieldValueForbidden",
            field_path=".packDomain",
            optional_old_self=True,
        ),
        # A packDomain may still move to pack.required, which means the same.
        Rule(
            rule=(
                "(has(self.packDomain) ? self.packDomain"
                " : has(self.pack) && has(self.pack.required) ? self.pack.required : '')"
                " == (has(oldSelf.packDomain) ? oldSelf.packDomain"
                " : has(oldSelf.pack) && has(oldSelf.pack.required) ? oldSelf.pack.required : '')"
                " && (has(self.pack) && has(self.pack.preferred) ? self.pack.preferred : '')"
                " == (has(oldSelf.pack) && has(oldSelf.pack.preferred) ? oldSelf.pack.preferred : '')"
            ),
            message="the domains of a topologyConstraint are immutable",
            reason="FieldValueForbidden",
        ),
        Rule(
            rule=(
                "has(oldSelf.topologyName)"
                " ? has(self.topologyName) && self.topologyName == oldSelf.topologyName"
                " : !has(self.topologyName) || has(oldSelf.packDomain)"
            ),
            message="topologyName is immutable, but may be added beside an old packDomain",
            reason="FieldValueForbidden",
            field_path=".topologyName",
        ),
    )

    topology_name: Annotated[Name, api("The topology that domains belong to; the parent's if unset.")] | None = None
    pack: Annotated[TopologyPack, api("Into which domain each replica is packed.")] | None = None
    pack_domain: Annotated[Domain, api("The old name of pack.required.")] | None = None


TOPOLOGY_STAYS: Final = Rule(
    rule="has(self.topologyConstraint) == has(oldSelf.topologyConstraint)",
    message="topologyConstraint can be neither added nor removed",
    reason="FieldValueForbidden",
    field_path=".topologyConstraint",
)
