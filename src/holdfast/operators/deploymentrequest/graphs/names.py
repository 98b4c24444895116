"""The names, labels and annotations of the objects of a DynamoGraphDeployment.

For a graph `G`, one of its components `C` and the PodCliqueSet `P`, which has the name of the graph unless that is
too long or taken by a set of another layout:

    P              the PodCliqueSet
    P-0-c          the PodClique of a component on one node; the PodCliqueScalingGroup of a component on several nodes
    c-ldr, c-wkr   the cliques of a component on several nodes
    G-c            the Service of a component
    G-workers      the ConfigMap with the addresses of the workers, for frontends that run as processes

`c` is the name of the component in lower case.
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds.grove.components import MAX_NAMES_LENGTH
from holdfast.meta.names import hash_suffix

GRAPH: Final = "nvidia.com/dynamo-graph-deployment-name"
COMPONENT: Final = "nvidia.com/dynamo-component"
COMPONENT_TYPE: Final = "nvidia.com/dynamo-component-type"
NAMESPACE: Final = "nvidia.com/dynamo-namespace"
BASE_MODEL: Final = "nvidia.com/dynamo-base-model"
"""The annotation of a Service with the name of the model that its pods serve."""
BASE_MODEL_HASH: Final = "nvidia.com/dynamo-base-model-hash"
"""The label of the same Service, by which the Services of a model are found."""

RESTART: Final = "nvidia.com/restartAt"
"""The annotation of the pods of a component with the `restart.id` that they were last restarted for."""

UPDATE_STRATEGY: Final = "nvidia.com/grove-update-strategy"
MAX_SURGE: Final = "nvidia.com/deployment-rolling-update-max-surge"
MAX_UNAVAILABLE: Final = "nvidia.com/deployment-rolling-update-max-unavailable"

CLIQUE: Final = "grove.io/podclique"
GROUP_INDEX: Final = "grove.io/podcliquescalinggroup-replica-index"
TEMPLATE_HASH: Final = "grove.io/pod-template-hash"

_LONGEST_LABEL: Final = 63
_LONGEST_ON_ONE_NODE: Final = 32
_LONGEST_ON_SEVERAL_NODES: Final = 16
"""What a component may add to the name of a pod; a longer name is shortened, so that there is room for the set's."""


def shortened(text: str, longest: int) -> str:
    """A name, or its beginning and a hash where it is too long."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - 6].rstrip('-.')}-{hash_suffix(text, 5)}"


def label(text: str) -> str:
    """A name as the value of a label."""
    return shortened(text, _LONGEST_LABEL)


def clique(component: str, *, several_nodes: bool) -> str:
    """The clique of a component on one node, or its scaling group."""
    return shortened(component.lower(), _LONGEST_ON_SEVERAL_NODES if several_nodes else _LONGEST_ON_ONE_NODE)


def leader(group: str) -> str:
    return f"{group}-ldr"


def worker(group: str) -> str:
    return f"{group}-wkr"


def pod_clique_set(graph: str, longest_part: int, layout: str = "") -> str:
    """The PodCliqueSet of a graph; `layout`, where there is one already, tells it from the one before."""
    room = MAX_NAMES_LENGTH - longest_part
    if not layout:
        return shortened(graph, room)
    return f"{shortened(graph, room - 6)}-{hash_suffix(layout, 5)}"


def part(pod_clique_set: str, clique: str) -> str:
    """The PodClique or PodCliqueScalingGroup of a component: PodCliqueSets of graphs have one replica."""
    return f"{pod_clique_set}-0-{clique}"


def service(graph: str, component: str) -> str:
    return shortened(f"{graph}-{component.lower()}", _LONGEST_LABEL)


def workers(graph: str) -> str:
    return f"{shortened(graph, 240)}-workers"


def of_graph(graph: str) -> dict[str, str]:
    """The label of everything that belongs to a graph."""
    return {GRAPH: label(graph)}


def of_component(graph: str, component: str) -> dict[str, str]:
    """The labels by which the pods of a component are selected."""
    return {**of_graph(graph), COMPONENT: label(component)}


def model_hash(model: str) -> str:
    return hash_suffix(model, 10)
