"""The container of a pod: environment, ports, resources, volumes and probes.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from holdfast.kinds.cloudless import WorkloadSpec
from holdfast.kinds.cloudless.containers import EnvSource, Port, Probe, Resources, Volume
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
    for source in spec.env_from:
        counts = source.part_of_revision is not False
        for kind, named in (("ConfigMap", source.config_map_ref), ("Secret", source.secret_ref)):
            if named is not None:
                yield Reference(kind, named.name, counts, bool(named.optional))
    for volume in spec.volumes:
        if volume.source in _REFERENCES:
            yield Reference(_REFERENCES[volume.source], _named(volume), volume.part_of_revision is not False)


def container(spec: WorkloadSpec) -> dict[str, Any]:
    """The one container of a replica."""
    made: dict[str, Any] = {"name": CONTAINER, "image": spec.image}
    optional: dict[str, Any] = {
        "imagePullPolicy": spec.image_pull_policy,
        "command": list(spec.command),
        "args": list(spec.args),
        "env": [*_plain_env(spec), *_picked_env(spec)],
        "envFrom": list(_whole_env(spec)),
        "ports": [_port(port) for port in spec.ports],
        "resources": _resources(spec),
        "volumeMounts": [_mount(volume) for volume in spec.volumes],
        "livenessProbe": _probe(spec.liveness_probe),
        "readinessProbe": _probe(spec.readiness_probe),
        "startupProbe": _probe(spec.startup_probe),
    }
    return made | {field: value for field, value in optional.items() if value}


# --- environment


def _plain_env(spec: WorkloadSpec) -> Iterator[dict[str, Any]]:
    for name, value in sorted(spec.env.items()):
        yield {"name": name, "value": value}


def _picked_env(spec: WorkloadSpec) -> Iterator[dict[str, Any]]:
    """Variables from single keys of a ConfigMap or Secret."""
    for source in spec.env_from:
        field, reference = _source(source, config_map="configMapKeyRef", secret="secretKeyRef")
        for name, key in sorted(source.keys.items()):
            yield {"name": f"{source.prefix or ''}{name}", "valueFrom": {field: reference | {"key": key}}}


def _whole_env(spec: WorkloadSpec) -> Iterator[dict[str, Any]]:
    """ConfigMaps and Secrets of which every key becomes a variable."""
    for source in spec.env_from:
        if not source.keys:
            field, reference = _source(source, config_map="configMapRef", secret="secretRef")
            yield {field: reference} | ({"prefix": source.prefix} if source.prefix else {})


def _source(source: EnvSource, *, config_map: str, secret: str) -> tuple[str, dict[str, Any]]:
    field, named = (secret, source.secret_ref) if source.config_map_ref is None else (config_map, source.config_map_ref)
    assert named is not None, "the API server refuses a source that names neither"
    return field, {"name": named.name} | ({"optional": True} if named.optional else {})


# --- ports, resources


def _port(port: Port) -> dict[str, Any]:
    made: dict[str, Any] = {"containerPort": port.container_port, "protocol": port.protocol or "TCP"}
    if port.name:
        made["name"] = port.name
    if port.host_port:
        made["hostPort"] = port.host_port
    return made


def _resources(spec: WorkloadSpec) -> dict[str, Any]:
    given = spec.resources
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
            return {"configMap": {"name": _named(volume)}}
        case "secret":
            return {"secret": {"secretName": _named(volume)}}
        case "hostPath":
            return {"hostPath": {"path": volume.options["path"]}}
        case "persistentVolumeClaim":
            return {"persistentVolumeClaim": {"claimName": _named(volume)}}
        case "emptyDir":
            chosen = {field: volume.options[field] for field in ("medium", "sizeLimit") if field in volume.options}
            return {"emptyDir": chosen}


def _mount(volume: Volume) -> dict[str, Any]:
    made: dict[str, Any] = {"name": volume.name, "mountPath": volume.mount_path}
    if volume.read_only:
        made["readOnly"] = True
    if "subPath" in volume.options:
        made["subPath"] = volume.options["subPath"]
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
        **{field: _seconds(text) for field, text in times.items() if text is not None},
        **{field: number for field, number in counts.items() if number is not None},
    }


def _handler(probe: Probe) -> dict[str, Any]:
    if probe.http is not None:
        request: dict[str, Any] = {"path": probe.http.path or "/", "port": probe.http.port}
        if probe.http.scheme:
            request["scheme"] = probe.http.scheme
        if probe.http.headers:
            request["httpHeaders"] = [{"name": header.name, "value": header.value} for header in probe.http.headers]
        return {"httpGet": request}
    if probe.tcp is not None:
        return {"tcpSocket": {"port": probe.tcp.port}}
    if probe.grpc is not None:
        service = {"service": probe.grpc.service} if probe.grpc.service else {}
        return {"grpc": {"port": probe.grpc.port, **service}}
    assert probe.exec is not None, "the API server refuses a probe without a handler"
    return {"exec": {"command": list(probe.exec.command)}}


def _seconds(text: str) -> int:
    """Whole seconds, rounded up, since Kubernetes takes no fractions."""
    return math.ceil(durations.parse(text).total_seconds())
