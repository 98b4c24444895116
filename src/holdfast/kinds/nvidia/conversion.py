"""What the fields of ``nvidia.com/v1alpha1`` are in ``v1beta1``, and the other way round.

Projections for `holdfast.kinds.conversion`, which keeps what they leave out.  A service of v1alpha1 spells out what a
pod template says in v1beta1 (`resources`, `envs`, `extraPodSpec.mainContainer`); in the other direction everything
becomes `extraPodSpec`, and the spelling that the object had is put back.  Values of the wrong type are left out, so
that nothing that a server may have stored raises.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from holdfast.kinds.conversion import Content, Conversion
from holdfast.kinds.nvidia.requests import Sku

OLDER: Final = "v1alpha1"
NEWER: Final = "v1beta1"

_GROUP: Final = "nvidia.com"
_MAIN: Final = "main"
_GPU: Final = "nvidia.com/gpu"
_TYPES: Final = frozenset({"frontend", "worker", "prefill", "decode", "planner", "epp"})
_ROLES: Final = frozenset({"prefill", "decode"})

Wire = dict[str, Any]


# --- reading values whatever they are


def _object(value: Any) -> Wire:
    return dict(value) if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Wire]:
    return [dict(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _picked(source: Mapping[str, Any], *fields: str) -> Wire:
    """The fields that are there."""
    return {name: source[name] for name in fields if name in source}


def _full(**fields: Any) -> Wire:
    """The fields that are not empty."""
    return {name: value for name, value in fields.items() if value not in (None, {}, [], "")}


def _by_name(*lists: Iterable[Wire]) -> list[Wire]:
    """Items by name: a later one wins, in the place of the first."""
    found: dict[Any, Wire] = {}
    for number, item in enumerate(item for items in lists for item in items):
        found[item["name"] if isinstance(item.get("name"), str) else number] = item
    return list(found.values())


# --- DynamoGraphDeployment

_SAME_IN_GRAPH: Final = (
    "annotations",
    "labels",
    "priorityClassName",
    "backendFramework",
    "restart",
    "providerOverride",
    "experimental",
)
_SAME_IN_COMPONENT: Final = (
    "replicas",
    "minAvailable",
    "multinode",
    "modelRef",
    "eppConfig",
    "topologyConstraint",
    "globalDynamoNamespace",
    "runtimeVersionOverride",
)
_SAME_IN_STATUS: Final = ("observedGeneration", "state", "conditions", "restart", "checkpoints", "placement")


def _graph_up(content: Content) -> Content:
    spec = _object(content.get("spec"))
    services = _object(spec.get("services"))
    made = _picked(spec, *_SAME_IN_GRAPH)
    if isinstance(spec.get("envs"), list):
        made["env"] = spec["envs"]
    topology = _object(spec.get("topologyConstraint"))
    if topology:
        made["topologyConstraint"] = _full(
            clusterTopologyName=topology.get("topologyProfile"), packDomain=topology.get("packDomain")
        )
    if services:
        made["components"] = [{"name": name, **_component(_object(services[name]))} for name in sorted(services)]
    return _whole(content, spec=made, status=_graph_status_up)


def _graph_down(content: Content) -> Content:
    spec = _object(content.get("spec"))
    made = _picked(spec, *_SAME_IN_GRAPH)
    if isinstance(spec.get("env"), list):
        made["envs"] = spec["env"]
    topology = _object(spec.get("topologyConstraint"))
    if topology:
        made["topologyConstraint"] = _full(
            topologyProfile=topology.get("clusterTopologyName"), packDomain=topology.get("packDomain")
        )
    components = [each for each in _items(spec.get("components")) if isinstance(each.get("name"), str)]
    if components:
        made["services"] = {each["name"]: _service(each) for each in components}
    return _whole(content, spec=made, status=_graph_status_down)


def _whole(content: Content, *, spec: Wire, status: Any) -> Content:
    """The content with another spec, and with its status where it has one."""
    made: Content = {"spec": spec} if "spec" in content else {}
    if isinstance(content.get("status"), Mapping):
        made["status"] = status(content["status"])
    return made


def _component(service: Wire) -> Wire:
    """A component of v1beta1, from a service of v1alpha1."""
    made = _picked(service, *_SAME_IN_COMPONENT)
    kind, role = service.get("componentType"), service.get("subComponentType")
    if kind == "worker" and role in _ROLES:
        made["type"] = role
    elif kind in _TYPES:
        made["type"] = kind
    if _object(service.get("scalingAdapter")).get("enabled") is True:
        made["scalingAdapter"] = {}
    memory = _object(service.get("sharedMemory"))
    if memory.get("disabled") is True:
        made["sharedMemorySize"] = "0"
    elif memory.get("size"):
        made["sharedMemorySize"] = memory["size"]
    cache = next(
        (each for each in _items(service.get("volumeMounts")) if each.get("useAsCompilationCache") is True), {}
    )
    if isinstance(cache.get("name"), str):
        made["compilationCache"] = {"pvcName": cache["name"], **_full(mountPath=cache.get("mountPoint"))}
    template = _full(metadata=_pod_metadata(service), spec=_pod_spec(service))
    if template:
        made["podTemplate"] = template
    return made


def _pod_metadata(service: Wire) -> Wire:
    extra = _object(service.get("extraPodMetadata"))
    return _full(
        **{name: {**_object(service.get(name)), **_object(extra.get(name))} for name in ("annotations", "labels")}
    )


def _pod_spec(service: Wire) -> Wire:
    spec = _object(service.get("extraPodSpec"))
    main = _main_container(service, _object(spec.pop("mainContainer", None)))
    others = [each for each in _items(spec.pop("containers", None)) if each.get("name") != main.get("name")]
    mounts = [each for each in _items(service.get("volumeMounts")) if not each.get("useAsCompilationCache")]
    claims = [
        {"name": each["name"], "persistentVolumeClaim": {"claimName": each["name"]}}
        for each in mounts
        if isinstance(each.get("name"), str)
    ]
    volumes = _by_name(claims, _items(spec.pop("volumes", None)))
    if main or others:
        spec["containers"] = [*([{"name": _MAIN, **main}] if main else []), *others]
    return spec | _full(volumes=volumes)


def _main_container(service: Wire, main: Wire) -> Wire:
    """The container `main`: what the service spells out, and what its mainContainer says, which wins."""
    made = {**_picked(service, "livenessProbe", "readinessProbe"), **main}
    variables = _by_name(_items(service.get("envs")), _items(main.get("env")))
    secret = service.get("envFromSecret")
    sources = [{"secretRef": {"name": secret}}] if isinstance(secret, str) and secret else []
    mounts = [
        {"name": each["name"], "mountPath": each["mountPoint"]}
        for each in _items(service.get("volumeMounts"))
        if not each.get("useAsCompilationCache") and isinstance(each.get("name"), str) and each.get("mountPoint")
    ]
    own_sources = [each for each in _items(main.get("envFrom")) if each not in sources]
    own_mounts = [each for each in _items(main.get("volumeMounts")) if each not in mounts]
    for name, value in (
        ("env", variables),
        ("envFrom", [*sources, *own_sources]),
        ("volumeMounts", [*mounts, *own_mounts]),
        ("resources", _resources(_object(service.get("resources")), _object(main.get("resources")))),
    ):
        made.pop(name, None)
        if value:
            made[name] = value
    return made


def _resources(asked: Wire, own: Wire) -> Wire:
    """The resources of a container, from those of a service; the container's own win."""
    made = dict(own)
    for field in ("requests", "limits"):
        amounts = {**_amounts(_object(asked.get(field))), **_object(own.get(field))}
        made.pop(field, None)
        if amounts:
            made[field] = amounts
    claims = _by_name(_items(asked.get("claims")), _items(own.get("claims")))
    made.pop("claims", None)
    return {**made, **_full(claims=claims)}


def _amounts(item: Wire) -> Wire:
    gpu = item.get("gpuType") if isinstance(item.get("gpuType"), str) and item.get("gpuType") else _GPU
    return {
        **_full(cpu=item.get("cpu"), memory=item.get("memory")),
        **({str(gpu): item["gpu"]} if item.get("gpu") else {}),
        **_object(item.get("custom")),
    }


def _service(component: Wire) -> Wire:
    """A service of v1alpha1, from a component of v1beta1."""
    made = _picked(component, *_SAME_IN_COMPONENT)
    kind = component.get("type")
    if kind in _ROLES:
        made |= {"componentType": "worker", "subComponentType": kind}
    elif kind in _TYPES:
        made["componentType"] = kind
    if isinstance(component.get("scalingAdapter"), Mapping):
        made["scalingAdapter"] = {"enabled": True}
    size = component.get("sharedMemorySize")
    if size in (0, "0"):
        made["sharedMemory"] = {"disabled": True}
    elif size:
        made["sharedMemory"] = {"size": size}
    cache = _object(component.get("compilationCache"))
    if isinstance(cache.get("pvcName"), str):
        mount = {"name": cache["pvcName"], "useAsCompilationCache": True}
        made["volumeMounts"] = [{**mount, **_full(mountPoint=cache.get("mountPath"))}]
    template = _object(component.get("podTemplate"))
    metadata, spec = _object(template.get("metadata")), _object(template.get("spec"))
    extra = _full(annotations=_object(metadata.get("annotations")), labels=_object(metadata.get("labels")))
    if extra:
        made["extraPodMetadata"] = extra
    containers = _items(spec.pop("containers", None))
    main = next((each for each in containers if each.get("name") == _MAIN), None)
    others = [each for each in containers if each is not main]
    if main is not None:
        spec["mainContainer"] = {name: value for name, value in main.items() if name != "name"}
    spec |= _full(containers=others)
    if spec:
        made["extraPodSpec"] = spec
    return made


def _graph_status_up(status: Wire) -> Wire:
    made = _picked(status, *_SAME_IN_STATUS)
    rolling = _object(status.get("rollingUpdate"))
    if rolling:
        made["rollingUpdate"] = _renamed(rolling, updatedServices="updatedComponents")
    if isinstance(status.get("services"), Mapping):
        made["components"] = {
            name: {field: value for field, value in _object(each).items() if field != "componentName"}
            for name, each in status["services"].items()
        }
    return made


def _graph_status_down(status: Wire) -> Wire:
    made = _picked(status, *_SAME_IN_STATUS)
    rolling = _object(status.get("rollingUpdate"))
    if rolling:
        made["rollingUpdate"] = _renamed(rolling, updatedComponents="updatedServices")
    if isinstance(status.get("components"), Mapping):
        made["services"] = {name: _named(_object(each)) for name, each in status["components"].items()}
    return made


def _named(component: Wire) -> Wire:
    names = component.get("componentNames")
    return {**component, "componentName": names[0]} if isinstance(names, list) and names else component


def _renamed(source: Wire, **names: str) -> Wire:
    return {names.get(name, name): value for name, value in source.items()}


# --- DynamoGraphDeploymentRequest

_SKUS: Final = {"gb200": "gb200_sxm"} | {sku: sku for sku in get_args(Sku)}
"""GPUs as profilers of v1alpha1 name them, and as v1beta1 does; others are kept, and discovered again."""
_PHASES: Final = {
    "": "Pending",
    "Initializing": "Pending",
    "Pending": "Pending",
    "Profiling": "Profiling",
    "Deploying": "Deploying",
    "Ready": "Ready",
    "DeploymentDeleted": "Ready",
    "Failed": "Failed",
}
_STATES: Final = {
    "Pending": "Pending",
    "Profiling": "Profiling",
    "Ready": "Ready",
    "Deploying": "Deploying",
    "Deployed": "Ready",
    "Failed": "Failed",
}
_SWEEP: Final = ("ttft", "itl")
_LOAD: Final = ("isl", "osl")


def _request_up(content: Content) -> Content:
    spec = _object(content.get("spec"))
    profiling = _object(spec.get("profilingConfig"))
    config = _object(profiling.get("config"))
    targets, hardware = _object(config.get("sla")), _object(config.get("hardware"))
    # It is off by default in v1alpha1, and on in v1beta1.
    made = {**_picked(spec, "model", "backend", "runtimeVersionOverride"), "autoApply": spec.get("autoApply") is True}
    made |= _full(
        image=profiling.get("profilerImage"),
        workload=_numbers(targets, *_LOAD),
        sla=_numbers(targets, *_SWEEP),
        hardware=_hardware(hardware, _object(config.get("sweep"))),
    )
    if spec.get("useMocker") is True:
        made["features"] = {"mocker": {"enabled": True}}
    overrides = _full(profilingJob=_job(profiling), dgd=_named_deployment(_object(spec.get("deploymentOverrides"))))
    if overrides:
        made["overrides"] = overrides
    return _whole(content, spec=made, status=_request_status_up)


def _request_down(content: Content) -> Content:
    spec = _object(content.get("spec"))
    overrides = _object(spec.get("overrides"))
    sla, load, hardware = (_object(spec.get(each)) for each in ("sla", "workload", "hardware"))
    targets = {**_numbers(load, *_LOAD), **_numbers(sla, *_SWEEP)}
    config = _full(
        sla=targets,
        hardware=_full(num_gpus_per_node=hardware.get("numGpusPerNode")),
        sweep=_full(aic_system=hardware.get("gpuSku")),
    )
    pod = _object(_object(_object(overrides.get("profilingJob")).get("template")).get("spec"))
    container = next(iter(_items(pod.get("containers"))), {})
    made = _picked(spec, "model", "backend", "runtimeVersionOverride")
    if spec.get("autoApply") is not False:
        made["autoApply"] = True
    made["profilingConfig"] = _full(
        profilerImage=spec.get("image"),
        config=config,
        resources=_object(container.get("resources")),
        tolerations=_items(pod.get("tolerations")),
        nodeSelector=_object(pod.get("nodeSelector")),
    )
    if _object(_object(spec.get("features")).get("mocker")).get("enabled") is True:
        made["useMocker"] = True
    metadata = _object(_object(overrides.get("dgd")).get("metadata"))
    made |= _full(deploymentOverrides=_full(**_picked(metadata, "name", "labels", "annotations")))
    return _whole(content, spec=made, status=_request_status_down)


def _numbers(source: Wire, *fields: str) -> Wire:
    """The fields that are positive numbers; others are no targets."""
    return {name: value for name, value in _picked(source, *fields).items() if _is_number(value) and value > 0}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hardware(hardware: Wire, sweep: Wire) -> Wire:
    per_node, sku = hardware.get("num_gpus_per_node"), sweep.get("aic_system")
    return _full(
        numGpusPerNode=per_node if isinstance(per_node, int) and not isinstance(per_node, bool) else None,
        gpuSku=_SKUS.get(sku) if isinstance(sku, str) else None,
    )


def _job(profiling: Wire) -> Wire:
    resources = _object(profiling.get("resources"))
    pod = _full(
        containers=[{"name": "profiler", "resources": resources}] if resources else [],
        tolerations=_items(profiling.get("tolerations")),
        nodeSelector=_object(profiling.get("nodeSelector")),
    )
    return {"template": {"spec": pod}} if pod else {}


def _named_deployment(overrides: Wire) -> Wire:
    metadata = _full(**_picked(overrides, "name", "labels", "annotations"))
    if not metadata:
        return {}
    return {"apiVersion": f"{_GROUP}/{NEWER}", "kind": "DynamoGraphDeployment", "metadata": metadata}


def _request_status_up(status: Wire) -> Wire:
    made = _picked(status, "observedGeneration", "conditions")
    deployment = _object(status.get("deployment"))
    state = status.get("state")
    if state == "Ready" and deployment.get("created") is True:
        made["phase"] = "Deployed"
    elif isinstance(state, str) and state in _PHASES:
        made["phase"] = _PHASES[state]
    made |= _full(dgdName=deployment.get("name"))
    generated = _object(status.get("generatedDeployment"))
    if generated:
        made["profilingResults"] = {"selectedConfig": generated}
    return made


def _request_status_down(status: Wire) -> Wire:
    made = _picked(status, "observedGeneration", "conditions")
    phase = status.get("phase")
    if isinstance(phase, str) and phase in _STATES:
        made["state"] = _STATES[phase]
    deployment = _full(name=status.get("dgdName"))
    if phase == "Deployed":
        deployment["created"] = True
    made |= _full(deployment=deployment)
    generated = _object(_object(status.get("profilingResults")).get("selectedConfig"))
    if generated:
        made["generatedDeployment"] = generated
    return made


# --- the conversions

GRAPHS: Final = Conversion(group=_GROUP, older=OLDER, newer=NEWER, up=_graph_up, down=_graph_down)
REQUESTS: Final = Conversion(group=_GROUP, older=OLDER, newer=NEWER, up=_request_up, down=_request_down)
