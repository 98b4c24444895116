"""A component of a graph as the rest of the operator reads it, with the defaults of the API."""

from __future__ import annotations

from typing import Any, Final

from holdfast.kinds.nvidia.deployments import GraphComponent
from holdfast.operators.deploymentrequest.graphs import names

MAIN: Final = "main"
"""The container that the operator completes."""


def pod_spec(component: GraphComponent) -> dict[str, Any]:
    """The pod spec that a component gives; empty where it gives none."""
    spec = (component.pod_template or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def nodes(component: GraphComponent) -> int:
    """The nodes that one replica of a component spans."""
    return 1 if component.multinode is None else component.multinode.node_count or 2


def is_group(component: GraphComponent) -> bool:
    """Whether a component is a scaling group: it spans several nodes, or asks for one."""
    forced = (component.experimental or {}).get("forceScalingGroup")
    return component.multinode is not None or forced is True


def clique_name(component: GraphComponent) -> str:
    """The clique of a component, or its scaling group."""
    return names.clique(component.name, several_nodes=is_group(component))


def replicas(component: GraphComponent) -> int:
    """The replicas that a component is created with."""
    return 1 if component.replicas is None else component.replicas


def minimum(component: GraphComponent) -> int:
    """The replicas of a component that are scheduled together, and that an update keeps available."""
    return component.min_available or 1


def scales_itself(component: GraphComponent) -> bool:
    """Whether the replicas of a component are left to other clients after its creation."""
    return component.scaling_adapter is not None or component.replicas is None


def is_process(component: GraphComponent) -> bool:
    """Whether the pods of a component run as processes of the machine."""
    return pod_spec(component).get("runtimeClassName") == "process"
