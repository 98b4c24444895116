"""The scheduling of a Workload: the nodes on which its replicas may and should run."""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.kinds.model import Model, Spelling, api


class AffinityTarget(Spelling):
    """What the labels of an affinity belong to."""

    WORKLOAD = "Workload"
    NODE = "Node"

    __spellings__ = {"WORKLOAD": "Workload", "NODE": "Node"}


class Affinity(Model):
    """Nodes or workloads that replicas should run near to, or away from."""

    type: Annotated[AffinityTarget, api("Whether the labels are those of nodes or of workloads.")]
    match_labels: Annotated[dict[str, str], api("The labels to match.", min_length=1)]
    topology_key: (
        Annotated[str, api("The node label that defines the topology domains; kubernetes.io/hostname when absent.")]
        | None
    ) = None
    required: Annotated[bool, api("Whether a replica that cannot meet this stays unscheduled.")] | None = None
    weight: (
        Annotated[
            int, api("The weight of the preference, when not required; 50 when absent.", ge=1, le=100, format="int32")
        ]
        | None
    ) = None


class Toleration(Model):
    """A node taint that replicas tolerate."""

    key: Annotated[str, api("The taint's key; every key when absent.")] | None = None
    value: Annotated[str, api("The taint's value.")] | None = None
    operator: Annotated[Literal["Equal", "Exists"], api("How key and value are compared.")] | None = None
    effect: (
        Annotated[
            Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], api("The taint's effect; every effect when absent.")
        ]
        | None
    ) = None
    toleration_seconds: Annotated[int, api("How long NoExecute is tolerated.", format="int64")] | None = None


class Placement(Model):
    """The nodes on which replicas may and should run."""

    regions: Annotated[tuple[str, ...], api("Regions to run in; any when empty.", list_type="set")] = ()
    zones: Annotated[tuple[str, ...], api("Zones to run in; any when empty.", list_type="set")] = ()
    node_selector: Annotated[dict[str, str], api("Labels that a node must have.")] = {}
    affinity: Annotated[tuple[Affinity, ...], api("What to run near to.")] = ()
    anti_affinity: Annotated[tuple[Affinity, ...], api("What to run away from.")] = ()
    tolerations: Annotated[tuple[Toleration, ...], api("Node taints that are tolerated.")] = ()
    spread_topology: (
        Annotated[
            str,
            api("Spread replicas evenly over zone, region, node, or the values of any other node label.", min_length=1),
        ]
        | None
    ) = None
