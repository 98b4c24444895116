"""The environment of the pods of a graph: what they are, and how they find each other.

Every container `main` has these variables, unless the manifest sets one of the same name:

    DYN_NAMESPACE                 `<namespace>-<graph>`, or `dynamo` with globalDynamoNamespace
    DYN_COMPONENT                 the type of the component
    DYN_PARENT_DGD_K8S_NAME       the graph, and its namespace
    DYN_PARENT_DGD_K8S_NAMESPACE
    DYN_DISCOVERY_BACKEND         `kubernetes`
    POD_NAME, POD_NAMESPACE, POD_UID, POD_IP

A worker (`worker`, `prefill`, `decode`) listens on the port DYN_SYSTEM_PORT (9090, the port `system`) of POD_IP and
answers `/live` and `/health` there.  A frontend listens on DYN_HTTP_PORT (8000, the port `http`) of POD_IP, answers
the same paths, and finds the workers by:

    HOLDFAST_WORKERS              `prefill=chat-prefill.ns.svc:9090,decode=chat-decode.ns.svc:9090`: for each component
                                  of workers its type, and the host and port of its headless Service
    HOLDFAST_WORKERS_FILE         a JSON file that is kept up to date, for frontends that run as processes, where no DNS
                                  has the names of Services:
                                  {"workers": [{"component": "Decode", "type": "decode", "address": "127.8.0.3:9090"}]}

The file has the workers that are ready, in the order of their names.  A frontend reads it again when it changes.

Where a component spans several nodes, its pods also have DYNAMO_LEADER_ADDRESS, the host name of the leader, and
DYNAMO_NODE_COUNT; the leader has DYNAMO_RANK 0, and worker `i` of `$(GROVE_PCLQ_POD_INDEX)` has the rank `i + 1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment, GraphComponent
from holdfast.operators.deploymentrequest.graphs import names

Variable = dict[str, Any]

HTTP_PORT: Final = 8000
SYSTEM_PORT: Final = 9090
PLANNER_PORT: Final = 9085
PICKER_PORT: Final = 9002

FRONTEND: Final = "frontend"
WORKERS: Final = frozenset({"worker", "prefill", "decode"})

PORTS: Final[Mapping[str, tuple[str, int]]] = {
    FRONTEND: ("http", HTTP_PORT),
    **dict.fromkeys(sorted(WORKERS), ("system", SYSTEM_PORT)),
    "planner": ("metrics", PLANNER_PORT),
    "epp": ("grpc", PICKER_PORT),
}
"""The port that the container `main` of a component listens on, by its type."""

PORT_VARIABLES: Final[Mapping[str, str]] = {
    FRONTEND: "DYN_HTTP_PORT",
    **dict.fromkeys(sorted(WORKERS), "DYN_SYSTEM_PORT"),
}
"""The variable that gives the container `main` its port, by the type of the component."""

WORKERS_FILE: Final = "workers.json"
WORKERS_PATH: Final = "/etc/holdfast/workers"


def runtime_namespace(graph: DynamoGraphDeployment, component: GraphComponent) -> str:
    """The namespace in which the workers of a component register."""
    if component.global_dynamo_namespace:
        return "dynamo"
    return f"{graph.metadata.namespace}-{graph.metadata.name}"


def variables(graph: DynamoGraphDeployment, component: GraphComponent, *, as_process: bool) -> Iterator[Variable]:
    """The variables of the container `main` of a component."""
    namespace = runtime_namespace(graph, component)
    yield {"name": "DYN_NAMESPACE", "value": namespace}
    if component.type:
        yield {"name": "DYN_COMPONENT", "value": component.type}
    yield {"name": "DYN_PARENT_DGD_K8S_NAME", "value": graph.metadata.name or ""}
    yield {"name": "DYN_PARENT_DGD_K8S_NAMESPACE", "value": graph.metadata.namespace or ""}
    yield {"name": "DYN_DISCOVERY_BACKEND", "value": "kubernetes"}
    for name, path in (("NAME", "name"), ("NAMESPACE", "namespace"), ("UID", "uid")):
        yield {"name": f"POD_{name}", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{path}"}}}
    yield {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    if component.type == FRONTEND:
        yield {"name": "DYNAMO_PORT", "value": str(HTTP_PORT)}
        yield {"name": "DYN_HTTP_PORT", "value": str(HTTP_PORT)}
        yield {"name": "DYN_NAMESPACE_PREFIX", "value": namespace}
        yield {"name": "HOLDFAST_WORKERS", "value": ",".join(_services(graph))}
        if as_process:
            yield {"name": "HOLDFAST_WORKERS_FILE", "value": f"{WORKERS_PATH}/{WORKERS_FILE}"}
    if component.type in WORKERS:
        yield {"name": "DYN_SYSTEM_ENABLED", "value": "true"}
        yield {"name": "DYN_SYSTEM_PORT", "value": str(SYSTEM_PORT)}


def _services(graph: DynamoGraphDeployment) -> Iterator[str]:
    name, namespace = graph.metadata.name or "", graph.metadata.namespace
    for each in graph.spec.components:
        if each.type in WORKERS:
            yield f"{each.type}={names.service(name, each.name)}.{namespace}.svc:{SYSTEM_PORT}"


def merged(ours: Iterable[Variable], *others: Sequence[Mapping[str, Any]]) -> list[Variable]:
    """Variables by name; later ones win, and the first of a name decides its place."""
    found: dict[str, Variable] = {}
    for variable in (*ours, *(each for other in others for each in other)):
        found[str(variable.get("name"))] = dict(variable)
    return list(found.values())
