"""The objects of a DynamoGraphDeployment: one PodCliqueSet, a Service for each component that listens, a ConfigMap.

A component on one node is a clique; one on several nodes is a scaling group of a leader and its workers.  Pure.  This
module must not know what exists: the restarts that pods have seen are passed in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from holdfast.client.resources import CONFIG_MAPS, SERVICES, Resource
from holdfast.kinds.nvidia.deployments import (
    DynamoGraphDeployment,
    EnvironmentVariable,
    GraphComponent,
    TopologyConstraint,
)
from holdfast.meta.quantities import Quantity
from holdfast.operators.deploymentrequest.graphs import names
from holdfast.operators.deploymentrequest.graphs.components import (
    MAIN,
    clique_name,
    is_group,
    is_process,
    minimum,
    nodes,
    pod_spec,
    replicas,
)
from holdfast.operators.deploymentrequest.graphs.environment import (
    FRONTEND,
    PORT_VARIABLES,
    PORTS,
    WORKERS,
    WORKERS_FILE,
    WORKERS_PATH,
    merged,
    variables,
)
from holdfast.operators.deploymentrequest.graphs.limits import rolling_update, update_strategy
from holdfast.operators.deploymentrequest.graphs.mocks import is_mock
from holdfast.operators.deploymentrequest.graphs.multinode import joined
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, SETS
from holdfast.runtime.status import present

Manifest = dict[str, Any]

_TERMINATION_DELAY: Final = "15m"
_GRACE_SECONDS: Final = 60
_SHARED_MEMORY: Final = "8Gi"
_CACHES: Final = {"vllm": "/root/.cache/vllm", "sglang": "/root/.cache/sglang", "trtllm": "/root/.cache/tensorrt_llm"}


def adapter(graph: DynamoGraphDeployment, component: GraphComponent) -> Manifest:
    """The scaling adapter of a component, with the size that it is created with."""
    name = graph.metadata.name or ""
    spec = {"replicas": replicas(component), "dgdRef": {"name": name, "componentName": component.name}}
    return _object(graph, ADAPTERS, names.service(name, component.name), spec=spec)


# --- the PodCliqueSet


def pod_clique_set(
    graph: DynamoGraphDeployment, *, restarts: Mapping[str, str], name: str = "", named_by_layout: bool = False
) -> Manifest:
    """The PodCliqueSet.

    restarts         the `restart.id` that the pods of each component have seen last
    name             its name, where it exists
    named_by_layout  give it a name of its layout, because a set of another layout has the name of the graph
    """
    spec, own = graph.spec, graph.metadata.annotations | graph.spec.annotations
    cliques = [clique for each in spec.components for clique in _cliques(graph, each, restarts.get(each.name, ""))]
    groups = [_group(graph, each) for each in spec.components if is_group(each)]
    template: Manifest = {
        "cliques": cliques,
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "terminationDelay": _TERMINATION_DELAY,
    }
    if groups:
        template["podCliqueScalingGroups"] = groups
    if spec.priority_class_name:
        template["priorityClassName"] = spec.priority_class_name
    topology = spec.topology_constraint
    if topology is not None and topology.pack_domain:
        template["topologyConstraint"] = _topology(graph, topology.pack_domain)
    made: Manifest = {
        "replicas": 1,
        "updateStrategy": {
            "type": update_strategy(own),
            "rollingUpdate": rolling_update(own),
            "disruptionBudget": "Managed",
        },
        "template": template,
    }
    signature = json.dumps(layout(made), sort_keys=True) if named_by_layout else ""
    return _object(graph, SETS, name or set_name(graph, signature), spec=made)


def set_name(graph: DynamoGraphDeployment, signature: str = "") -> str:
    """The name of the PodCliqueSet, such that the names of its pods fit; `signature` tells it from one before."""
    parts = [0]
    for component in graph.spec.components:
        name = clique_name(component)
        parts.append(len(name) + len(names.leader(name)) if is_group(component) else len(name))
    return names.pod_clique_set(graph.metadata.name or "", max(parts), signature)


def layout(spec: Mapping[str, Any]) -> list[Any]:
    """What of the spec of a PodCliqueSet cannot be changed: its cliques and groups, and how they are scheduled."""
    template = spec.get("template") or {}
    cliques = [
        [
            clique.get("name"),
            clique["spec"].get("minAvailable"),
            clique["spec"]["podSpec"].get("schedulerName"),
            _pack(clique),
        ]
        for clique in template.get("cliques") or ()
    ]
    groups = [
        [group.get("name"), group.get("minAvailable"), list(group.get("cliqueNames") or ()), _pack(group)]
        for group in template.get("podCliqueScalingGroups") or ()
    ]
    return [sorted(cliques, key=str), sorted(groups, key=str), _pack(template)]


def _pack(part: Mapping[str, Any]) -> Any:
    constraint = part.get("topologyConstraint") or {}
    return [constraint.get("topologyName"), (constraint.get("pack") or {}).get("required")]


def _topology(graph: DynamoGraphDeployment, domain: str) -> Manifest:
    topology = graph.spec.topology_constraint
    named = None if topology is None else topology.cluster_topology_name
    return {**({"topologyName": named} if named else {}), "pack": {"required": domain}}


def _constrained(graph: DynamoGraphDeployment, constraint: TopologyConstraint | None) -> Manifest:
    return {} if constraint is None else {"topologyConstraint": _topology(graph, constraint.pack_domain)}


def _cliques(graph: DynamoGraphDeployment, component: GraphComponent, restart: str) -> Iterator[Manifest]:
    name = clique_name(component)
    if not is_group(component):
        size = max(replicas(component), minimum(component))
        made = _clique(graph, component, name, size, minimum(component), restart, {})
        own = _own_limits(graph, component)
        yield {**made, **_constrained(graph, component.topology_constraint), **own}
        return
    leader = f"$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{names.leader(name)}-0.$(GROVE_HEADLESS_SERVICE)"
    shared = {"DYNAMO_LEADER_ADDRESS": leader, "DYNAMO_NODE_COUNT": str(nodes(component))}
    yield _clique(graph, component, names.leader(name), 1, 1, restart, {**shared, "DYNAMO_RANK": "0"})
    if nodes(component) > 1:
        size = nodes(component) - 1
        yield _clique(graph, component, names.worker(name), size, size, restart, shared)


def _group(graph: DynamoGraphDeployment, component: GraphComponent) -> Manifest:
    name = clique_name(component)
    cliques = [names.leader(name), *([names.worker(name)] if nodes(component) > 1 else [])]
    return {
        "name": name,
        "cliqueNames": cliques,
        "replicas": max(replicas(component), minimum(component)),
        "minAvailable": minimum(component),
        **_constrained(graph, component.topology_constraint),
        **_own_limits(graph, component),
    }


def _own_limits(graph: DynamoGraphDeployment, component: GraphComponent) -> Manifest:
    """`rollingUpdate` of a component, where its pod template has annotations for it."""
    own = {
        name: value
        for name, value in _template_metadata(component, "annotations").items()
        if name in (names.MAX_SURGE, names.MAX_UNAVAILABLE)
    }
    if not own:
        return {}
    return {"rollingUpdate": rolling_update(graph.metadata.annotations | graph.spec.annotations | own)}


def _clique(
    graph: DynamoGraphDeployment,
    component: GraphComponent,
    name: str,
    size: int,
    least: int,
    restart: str,
    more: Mapping[str, str],
) -> Manifest:
    annotations = {**graph.spec.annotations, **_template_metadata(component, "annotations")}
    if restart:
        annotations[names.RESTART] = restart
    spec = {
        "roleName": name,
        "replicas": size,
        "minAvailable": least,
        "podSpec": _pod_spec(graph, component, more),
    }
    marks = {**graph.spec.labels, **_template_metadata(component, "labels"), **_labels(graph, component)}
    return {"name": name, "labels": marks, **({"annotations": annotations} if annotations else {}), "spec": spec}


def _template_metadata(component: GraphComponent, field: str) -> dict[str, str]:
    metadata = (component.pod_template or {}).get("metadata")
    found = metadata.get(field) if isinstance(metadata, dict) else None
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _labels(graph: DynamoGraphDeployment, component: GraphComponent) -> dict[str, str]:
    marks = names.of_component(graph.metadata.name or "", component.name)
    if component.type:
        marks[names.COMPONENT_TYPE] = component.type
    if component.model_ref is not None:
        marks[names.BASE_MODEL_HASH] = names.model_hash(component.model_ref.name)
    return marks


# --- the pods


def _pod_spec(graph: DynamoGraphDeployment, component: GraphComponent, more: Mapping[str, str]) -> Manifest:
    spec = dict(pod_spec(component))
    spec.setdefault("terminationGracePeriodSeconds", _GRACE_SECONDS)
    volumes, mounts = list(spec.get("volumes") or ()), list[Manifest]()
    for volume, mount in _volumes(graph, component):
        if not any(each.get("name") == volume["name"] for each in volumes):
            volumes.append(volume)
            mounts.append(mount)
    if volumes:
        spec["volumes"] = volumes
    spec["containers"] = [_container(graph, component, each, mounts, more) for each in spec.get("containers") or ()]
    return spec


def _volumes(graph: DynamoGraphDeployment, component: GraphComponent) -> Iterator[tuple[Manifest, Manifest]]:
    """The volumes that the operator adds, each with its mount."""
    size = _SHARED_MEMORY if component.shared_memory_size is None else component.shared_memory_size
    if Quantity.parse(size) != Quantity.parse(0) and not is_process(component):
        empty = {"medium": "Memory", "sizeLimit": str(size)}
        yield {"name": "shared-memory", "emptyDir": empty}, {"name": "shared-memory", "mountPath": "/dev/shm"}
    cache = component.compilation_cache
    if cache is not None:
        path = cache.mount_path or _CACHES[graph.spec.backend_framework or "vllm"]
        claim = {"claimName": cache.pvc_name}
        yield (
            {"name": "compilation-cache", "persistentVolumeClaim": claim},
            {"name": "compilation-cache", "mountPath": path},
        )
    if component.type == FRONTEND and is_process(component):
        source = {"name": names.workers(graph.metadata.name or "")}
        yield {"name": "workers", "configMap": source}, {"name": "workers", "mountPath": WORKERS_PATH}


def _container(
    graph: DynamoGraphDeployment,
    component: GraphComponent,
    container: Mapping[str, Any],
    mounts: Sequence[Manifest],
    more: Mapping[str, str],
) -> Manifest:
    """A container of the pod template; the container `main` is completed."""
    made = dict(container)
    given = tuple(variables(graph, component, as_process=is_process(component)))
    # A variable can make a command another program, which those who write graphs may not run on the machine.
    shared = [] if is_mock(component) else list(map(_variable, graph.spec.env))
    if made.get("name") != MAIN:
        if made.get("name") == component.frontend_sidecar:
            made["env"] = merged(given, shared, made.get("env") or ())
        return made
    ours = (*given, *({"name": name, "value": value} for name, value in more.items()))
    made["env"] = merged(ours, shared, made.get("env") or ())
    if nodes(component) > 1:
        is_worker = "DYNAMO_RANK" not in more
        made = joined(made, graph.spec.backend_framework, nodes=nodes(component), worker=is_worker)
    if mounts:
        made["volumeMounts"] = [*(made.get("volumeMounts") or ()), *mounts]
    port = PORTS.get(component.type or "")
    if port is not None:
        made["ports"] = _ports(made.get("ports") or (), port[0], target_port(component, *port))
    if component.type == FRONTEND and not made.get("command") and not made.get("args"):
        made["command"] = ["python3", "-m", "dynamo.frontend"]
    if component.type == FRONTEND or component.type in WORKERS:
        for name, probe in _probes(target_port(component, *PORTS[component.type or FRONTEND])).items():
            made.setdefault(name, probe)
    return made


def _variable(variable: EnvironmentVariable) -> Manifest:
    return present({"name": variable.name, "value": variable.value, "valueFrom": variable.value_from})


def _ports(ports: Sequence[Mapping[str, Any]], name: str, number: int) -> list[Manifest]:
    """The ports of a container, and the one of its component unless it has one of this name or number."""
    taken = any(each.get("name") == name or each.get("containerPort") == number for each in ports)
    own = [] if taken else [{"name": name, "containerPort": number, "protocol": "TCP"}]
    return [*map(dict, ports), *own]


def _probes(port: int) -> dict[str, Manifest]:
    """The probes of a frontend or worker.  A worker may load its model for two hours before it is live."""

    def http(path: str, period: int, failures: int) -> Manifest:
        return {
            "httpGet": {"path": path, "port": port},
            "periodSeconds": period,
            "timeoutSeconds": min(4, period),
            "failureThreshold": failures,
        }

    return {
        "startupProbe": http("/live", 2, 3600),
        "livenessProbe": http("/live", 10, 3),
        "readinessProbe": http("/health", 5, 3),
    }


# --- Services, and the addresses of workers


def services(graph: DynamoGraphDeployment) -> Iterator[Manifest]:
    """A Service for each component that listens: headless for workers, which are addressed one by one."""
    name = graph.metadata.name or ""
    for component in graph.spec.components:
        port = PORTS.get(component.type or "")
        if port is None:
            continue
        target = target_port(component, *port)
        spec: Manifest = {
            "selector": names.of_component(name, component.name),
            "ports": [{"name": port[0], "port": port[1], "targetPort": target, "protocol": "TCP"}],
        }
        if component.type in WORKERS:
            spec["clusterIP"] = "None"
        made = _object(graph, SERVICES, names.service(name, component.name), spec=spec)
        made["metadata"]["labels"] |= _labels(graph, component)
        if component.model_ref is not None:
            made["metadata"].setdefault("annotations", {})[names.BASE_MODEL] = component.model_ref.name
        yield made


def target_port(component: GraphComponent, name: str, number: int) -> int:
    """The port of the container `main` that a Service leads to."""
    containers = pod_spec(component).get("containers") or ()
    main: Manifest = next((each for each in containers if each.get("name") == MAIN), {})
    declared = next((each["containerPort"] for each in main.get("ports") or () if each.get("name") == name), None)
    if declared is not None:
        return int(declared)
    values = {each.get("name"): str(each.get("value", "")) for each in main.get("env") or ()}
    given = values.get(PORT_VARIABLES.get(component.type or "", ""), "")
    return int(given) if given.isascii() and given.isdecimal() and 0 < int(given) < 65536 else number


def workers_port(component: GraphComponent) -> int:
    return target_port(component, *PORTS[component.type or "worker"])


def has_workers_file(graph: DynamoGraphDeployment) -> bool:
    """Whether a frontend reads the addresses of workers from a file."""
    return any(each.type == FRONTEND and is_process(each) for each in graph.spec.components)


def workers(graph: DynamoGraphDeployment, addresses: Mapping[str, Sequence[str]]) -> Manifest:
    """The ConfigMap with the addresses of the workers that are ready, which are given by component."""
    listed = [
        {"component": each.name, "type": each.type, "address": f"{address}:{workers_port(each)}"}
        for each in graph.spec.components
        if each.type in WORKERS
        for address in addresses.get(each.name, ())
    ]
    content = json.dumps({"workers": listed}, indent=1)
    return _object(graph, CONFIG_MAPS, names.workers(graph.metadata.name or ""), data={WORKERS_FILE: content})


def _object(graph: DynamoGraphDeployment, resource: Resource, name: str, **content: Any) -> Manifest:
    metadata: Manifest = {
        "name": name,
        "namespace": graph.metadata.namespace,
        "labels": {**graph.spec.labels, **names.of_graph(graph.metadata.name or "")},
    }
    if graph.spec.annotations:
        metadata["annotations"] = dict(graph.spec.annotations)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
