"""The containers of a pod: environment, ports, resources, volumes, probes and hooks.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.kinds.cloudless import WorkloadSpec
from holdfast.kinds.cloudless.containers import (
    EnvSource,
    Hook,
    HTTPAction,
    HTTPProbe,
    InitContainer,
    Lifecycle,
    Mount,
    Port,
    Probe,
    ProcessSpec,
    ResourceRequirements,
    Resources,
    ServerSpec,
    Sidecar,
    Volume,
)
from holdfast.kinds.cloudless.security import ContainerSecurityContext
from holdfast.meta import durations

CONTAINER: Final = "app"
GPU: Final = "nvidia.com/gpu"

_REFERENCES: Final = {"configMap": "ConfigMap", "secret": "Secret"}
"""Volume sources whose content may be part of the revision, with the kind that they name."""


class Reference(NamedTuple):
    """A ConfigMap or Secret that replicas use.

    part_of_revision  whether its content is part of the revision
    optional          whether replicas start without it
    """

    kind: str
    name: str
    part_of_revision: bool
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def references(spec: WorkloadSpec) -> Iterator[Reference]:
    """Every ConfigMap and Secret that replicas use."""
    for source in (source for each in (spec, *spec.init_containers, *spec.sidecars) for source in each.env_from):
        counts = source.part_of_revision is not False
        for kind, named in (("ConfigMap", source.config_map_ref), ("Secret", source.secret_ref)):
            if named is not None:
                yield Reference(kind, named.name, counts, bool(named.optional))
    for volume in spec.volumes:
        if volume.source in _REFERENCES:
            counts = volume.part_of_revision is not False
            yield Reference(_REFERENCES[volume.source], _named(volume), counts, bool(volume.optional))


def container(spec: WorkloadSpec) -> dict[str, Any]:
    """The main container of a replica."""
    mounts = [_mount(volume) for volume in spec.volumes if volume.mount_path is not None]
    own = {field: value for field, value in _security(spec.security_context).items() if field in CONTAINER_ONLY}
    return _given(
        {"name": CONTAINER, **_process(spec), **_server(spec), "volumeMounts": mounts, "securityContext": own}
    )


def other_containers(spec: WorkloadSpec) -> Iterator[dict[str, Any]]:
    """The init containers, and the sidecars as Kubernetes has them: init containers that are always restarted."""
    for init in spec.init_containers:
        yield _given({**_beside(init), **_process(init)})
    for sidecar in spec.sidecars:
        yield _given({**_beside(sidecar), **_process(sidecar), **_server(sidecar), "restartPolicy": "Always"})


def _beside(other: InitContainer | Sidecar) -> dict[str, Any]:
    return {
        "name": other.name,
        "volumeMounts": [_mount_of(mount) for mount in other.mounts],
        "securityContext": _security(other.security_context),
    }


def _process(spec: ProcessSpec) -> dict[str, Any]:
    return {
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy,
        "command": list(spec.command),
        "args": list(spec.args),
        "workingDir": spec.working_dir,
        "env": [*_plain_env(spec), *_picked_env(spec)],
        "envFrom": list(_whole_env(spec)),
        "resources": _resources(spec.resources),
    }


def _server(spec: ServerSpec) -> dict[str, Any]:
    return {
        "ports": [_port(port) for port in spec.ports],
        "livenessProbe": _probe(spec.liveness_probe),
        "readinessProbe": _probe(spec.readiness_probe),
        "startupProbe": _probe(spec.startup_probe),
        "lifecycle": _lifecycle(spec.lifecycle),
    }


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {field: value for field, value in fields.items() if value}


# --- environment


def _plain_env(spec: ProcessSpec) -> Iterator[dict[str, Any]]:
    for name, value in sorted(spec.env.items()):
        yield {"name": name, "value": value}


def _picked_env(spec: ProcessSpec) -> Iterator[dict[str, Any]]:
    """Variables from single keys of a ConfigMap or Secret."""
    for source in spec.env_from:
        field, reference = _source(source, config_map="configMapKeyRef", secret="secretKeyRef")
        for name, key in sorted(source.keys.items()):
            yield {"name": f"{source.prefix or ''}{name}", "valueFrom": {field: reference | {"key": key}}}


def _whole_env(spec: ProcessSpec) -> Iterator[dict[str, Any]]:
    """ConfigMaps and Secrets of which every key becomes a variable."""
    for source in spec.env_from:
        if not source.keys:
            field, reference = _source(source, config_map="configMapRef", secret="secretRef")
            yield {field: reference} | ({"prefix": source.prefix} if source.prefix else {})


def _source(source: EnvSource, *, config_map: str, secret: str) -> tuple[str, dict[str, Any]]:
    field, named = (secret, source.secret_ref) if source.config_map_ref is None else (config_map, source.config_map_ref)
    if named is None:
        return field, {}  # the API refuses the pod, and says where
    return field, {"name": named.name} | ({"optional": True} if named.optional else {})


# --- ports, resources


def _port(port: Port) -> dict[str, Any]:
    made: dict[str, Any] = {"containerPort": port.container_port, "protocol": port.protocol or "TCP"}
    if port.name:
        made["name"] = port.name
    if port.host_port:
        made["hostPort"] = port.host_port
    return made


def _resources(given: ResourceRequirements | None) -> dict[str, Any]:
    if given is None:
        return {}
    requests = {} if given.requests is None else _amounts(given.requests)
    limits = {} if given.limits is None else _amounts(given.limits)
    # Kubernetes does not overcommit extended resources: they need a limit, equal to the request.
    limits |= {name: amount for name, amount in requests.items() if "/" in name and name not in limits}
    return {field: amounts for field, amounts in (("requests", requests), ("limits", limits)) if amounts}


def _amounts(resources: Resources) -> dict[str, str]:
    given: dict[str, Any] = {
        "cpu": None if resources.cpu_millicores is None else f"{resources.cpu_millicores}m",
        "memory": resources.memory_bytes,
        "ephemeral-storage": resources.storage_bytes,
        GPU: resources.gpu_count,
    }
    quantities: dict[str, Any] = {
        "cpu": resources.cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        GPU: resources.gpu,
        **resources.extended,
    }
    named = given | {name: amount for name, amount in quantities.items() if amount is not None}
    return {name: str(amount) for name, amount in named.items() if amount is not None}


def bandwidth(spec: WorkloadSpec) -> dict[str, str]:
    """Bandwidth as the annotations that network plugins read; Kubernetes has no such resource."""
    given = spec.resources
    for resources in (None, None) if given is None else (given.limits, given.requests):
        if resources is not None and resources.bandwidth_bps:
            amount = str(resources.bandwidth_bps)
            return {"kubernetes.io/ingress-bandwidth": amount, "kubernetes.io/egress-bandwidth": amount}
    return {}


# --- volumes


def volumes(spec: WorkloadSpec) -> Iterator[dict[str, Any]]:
    """The volumes of a replica."""
    for volume in spec.volumes:
        yield {"name": volume.name, **_volume_source(volume)}


def _volume_source(volume: Volume) -> dict[str, Any]:
    match volume.source:
        case "configMap":
            return {"configMap": {"name": _named(volume), **_files(volume)}}
        case "secret":
            return {"secret": {"secretName": _named(volume), **_files(volume)}}
        case "hostPath":
            return {"hostPath": {"path": volume.options["path"]}}
        case "persistentVolumeClaim":
            return {"persistentVolumeClaim": {"claimName": _named(volume)}}
        case "emptyDir":
            chosen = {field: volume.options[field] for field in ("medium", "sizeLimit") if field in volume.options}
            return {"emptyDir": chosen}


def _files(volume: Volume) -> dict[str, Any]:
    """How the keys of a ConfigMap or Secret become files."""
    made: dict[str, Any] = {}
    if volume.keys:
        made["items"] = [{"key": key, "path": path} for path, key in sorted(volume.keys.items())]
    if volume.default_mode is not None:
        made["defaultMode"] = volume.default_mode
    if volume.optional:
        made["optional"] = True
    return made


def _mount(volume: Volume) -> dict[str, Any]:
    made: dict[str, Any] = {"name": volume.name, "mountPath": volume.mount_path}
    if volume.read_only:
        made["readOnly"] = True
    if "subPath" in volume.options:
        made["subPath"] = volume.options["subPath"]
    return made


def _mount_of(mount: Mount) -> dict[str, Any]:
    made: dict[str, Any] = {"name": mount.name, "mountPath": mount.mount_path}
    if mount.read_only:
        made["readOnly"] = True
    if mount.sub_path:
        made["subPath"] = mount.sub_path
    return made


def _named(volume: Volume) -> str:
    return volume.options.get("name", volume.name)


# --- probes


def _probe(probe: Probe | None) -> dict[str, Any] | None:
    if probe is None:
        return None
    times = {
        "initialDelaySeconds": probe.initial_delay,
        "periodSeconds": probe.period,
        "timeoutSeconds": probe.timeout,
    }
    counts = {"successThreshold": probe.success_threshold, "failureThreshold": probe.failure_threshold}
    return {
        **_handler(probe),
        **{field: seconds(text) for field, text in times.items() if text is not None},
        **{field: number for field, number in counts.items() if number is not None},
    }


def _handler(probe: Probe) -> dict[str, Any]:
    if probe.http is not None:
        return {"httpGet": _request(probe.http)}
    if probe.tcp is not None:
        return {"tcpSocket": {"port": probe.tcp.port}}
    if probe.grpc is not None:
        service = {"service": probe.grpc.service} if probe.grpc.service else {}
        return {"grpc": {"port": probe.grpc.port, **service}}
    if probe.exec is None:
        return {}  # the API refuses the pod, and says where
    return {"exec": {"command": list(probe.exec.command)}}


def _request(http: HTTPProbe | HTTPAction) -> dict[str, Any]:
    request: dict[str, Any] = {"path": http.path or "/", "port": http.port}
    if http.scheme:
        request["scheme"] = http.scheme
    if http.headers:
        request["httpHeaders"] = [{"name": header.name, "value": header.value} for header in http.headers]
    return request


# --- hooks


def _lifecycle(lifecycle: Lifecycle | None) -> dict[str, Any]:
    if lifecycle is None:
        return {}
    hooks = {"postStart": lifecycle.post_start, "preStop": lifecycle.pre_stop}
    return {name: _hook(hook) for name, hook in hooks.items() if hook is not None}


def _hook(hook: Hook) -> dict[str, Any]:
    if hook.exec is not None:
        return {"exec": {"command": list(hook.exec.command)}}
    if hook.http is not None:
        return {"httpGet": _request(hook.http)}
    assert hook.sleep is not None, "the API server refuses a hook without an action"
    return {"sleep": {"seconds": seconds(hook.sleep)}}


# --- security

CONTAINER_ONLY: Final = ("privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities")
"""The fields of a security context that Kubernetes has for containers and not for pods."""


def pod_security(spec: WorkloadSpec) -> dict[str, Any]:
    """The security settings that all containers of a replica share."""
    made = {field: value for field, value in _security(spec.security_context).items() if field not in CONTAINER_ONLY}
    if "sysctls" in made:
        made["sysctls"] = [{"name": name, "value": value} for name, value in sorted(made["sysctls"].items())]
    return made


def _security(given: ContainerSecurityContext | None) -> dict[str, Any]:
    """The fields that are set; they have the names of Kubernetes."""
    return {} if given is None else dict(msgspec.json.decode(msgspec.json.encode(given)))


def seconds(text: str) -> int:
    """Whole seconds, rounded up, since Kubernetes takes no fractions."""
    return math.ceil(durations.parse(text).total_seconds())
