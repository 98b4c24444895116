"""The objects of the process of a Provider: certificates, a claim for its data, a Service and a Deployment."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.client.resources import CLAIMS
from holdfast.kernel.children import Desired
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import CA, CERTIFICATE, KEY
from holdfast.operators.virtualmachine.providers.observe import NFS_VOLUME, STORAGE_VOLUME, World, labels
from holdfast.operators.virtualmachine.resources import PROVIDERS
from holdfast.operators.virtualmachine.settings import Settings
from holdfast.runtime.decisions import Create, Patch

_TLS: Final = "/etc/virtrigaud/tls"
_CREDENTIALS: Final = "/etc/virtrigaud/credentials"
_DATA: Final = "/var/lib/holdfast"
_STORAGE: Final = "/mnt/migration-storage"
_HEALTH_PORT: Final = 8080
INVENTORY: Final = "HOLDFAST_PROVIDER_INVENTORY"
"""The environment variable with the hosts of a simulated hypervisor, in YAML."""

_OWN: Final = frozenset({"simulated", "qemu"})
"""The types whose process is Holdfast itself."""


def children(world: World, settings: Settings) -> tuple[Desired, ...]:
    """The objects that should exist; none where the process runs already."""
    if world.external or world.idle:
        return ()
    wanted: list[Desired] = []
    if world.own_certificates:
        secret = _secret(world)
        if secret is not None:
            wanted.append(Desired(secret))
    if settings.processes:
        wanted.append(Desired(_claim(world), prune=False))
    wanted += [Desired(_service(world)), Desired(_deployment(world, settings), wave=1)]
    return tuple(wanted)


def served_type(world: World, settings: Settings) -> str:
    """The type of hypervisor that the process serves: simulated where another one cannot run as a process here."""
    type = world.provider.spec.type.value
    return type if not settings.processes or type in settings.local else "simulated"


def _metadata(world: World, name: str) -> dict[str, Any]:
    key, type = world.object.key, world.provider.spec.type.value
    more = {
        "app.kubernetes.io/component": "provider",
        "app.kubernetes.io/managed-by": "virtrigaud",
        "virtrigaud.io/provider-type": type,
    }
    return {"name": name, "namespace": key.namespace, "labels": {**labels(key), **more}}


def _secret(world: World) -> dict[str, Any] | None:
    """The Secret with our certificates: new ones, or those that it has."""
    key = world.object.key
    data = world.issued if world.issued is not None else world.secret.items() if world.secret else None
    if data is None:
        return None
    encoded = {name: base64.b64encode(value).decode() for name, value in sorted(data.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(world, names.certificate(key.namespace, key.name)),
        "type": "Opaque",
        "data": encoded,
    }


def _claim(world: World) -> dict[str, Any]:
    key = world.object.key
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(world, names.data(key.namespace, key.name)),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
    }


def _service(world: World) -> dict[str, Any]:
    key = world.object.key
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(world, names.runtime(key.namespace, key.name)),
        "spec": {
            "selector": labels(key),
            "ports": [
                {"name": "grpc", "port": world.port, "targetPort": world.port, "protocol": "TCP"},
                {"name": "metrics", "port": _HEALTH_PORT, "targetPort": _HEALTH_PORT, "protocol": "TCP"},
            ],
        },
    }


def _deployment(world: World, settings: Settings) -> dict[str, Any]:
    key, runtime = world.object.key, world.provider.spec.runtime
    template = {
        # Machines outlive a crash of the process that started them.
        "metadata": {"labels": _metadata(world, "")["labels"], "annotations": {"holdfast.dev/daemons": "Keep"}}
        if settings.processes
        else {"labels": _metadata(world, "")["labels"]},
        "spec": _process(world, settings) if settings.processes else _containers(world),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(world, names.runtime(key.namespace, key.name)),
        "spec": {
            "replicas": 1 if settings.processes else runtime.replicas or 1,
            # Two processes must not write to one hypervisor's data.
            **({"strategy": {"type": "Recreate"}} if settings.processes else {}),
            "selector": {"matchLabels": labels(key)},
            "template": template,
        },
    }


def _tls_volume(world: World) -> dict[str, Any]:
    key, service = world.object.key, world.provider.spec.runtime.service
    tls = service.tls if service else None
    name = tls.secret_ref.name if tls and tls.secret_ref else names.certificate(key.namespace, key.name)
    items = [{"key": each, "path": each} for each in (CA, CERTIFICATE, KEY)]
    return {"name": "tls", "secret": {"secretName": name, "items": items}}


def storage_claims(world: World, settings: Settings) -> tuple[str, ...]:
    """The claims that are mounted for migrations.

    A process of the node mounts the same one from the start: to mount another would restart it, and end its machines.
    """
    return (names.SHARED_STORAGE,) if settings.processes else world.claims


def shared_claim(world: World, settings: Settings) -> Create | Patch | None:
    """Make the claim that all Providers of a namespace mount, or note that this one does: it goes with the last one."""
    if not settings.processes or world.external or world.idle:
        return None
    key, obj = world.object.key, world.object
    owner = {"apiVersion": PROVIDERS.api_version, "kind": PROVIDERS.kind, "name": key.name, "uid": obj.uid}
    found, because = world.shared, f"Provider {key.name} mounts it for migrations"
    if found is None:
        manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": names.SHARED_STORAGE,
                "namespace": key.namespace,
                "labels": {names.STORAGE: names.STORAGE_VALUE},
                "ownerReferences": [owner],
            },
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "10Gi"}}},
        }
        return Create(resource=CLAIMS, manifest=manifest, because=because)
    owners = found.wire()["metadata"].get("ownerReferences", [])
    if any(each.get("uid") == obj.uid for each in owners) or found.deleting:
        return None
    patch = {"metadata": {"ownerReferences": [*owners, owner]}}
    return Patch(resource=CLAIMS, key=found.key, uid=found.uid, version=found.version, patch=patch, because=because)


def _storage(world: World, settings: Settings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The volumes for migrations, and where they are mounted."""
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for n, claim in enumerate(storage_claims(world, settings)):
        name = f"{STORAGE_VOLUME}{n}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": f"{_STORAGE}/{claim}"})
    for n, (server, export) in enumerate(() if settings.processes else world.nfs):
        volumes.append({"name": f"{NFS_VOLUME}{n}", "nfs": {"server": server, "path": export}})
        mounts.append({"name": f"{NFS_VOLUME}{n}", "mountPath": f"{_STORAGE}/nfs/{server}/{export.strip('/')}"})
    return volumes, mounts


def _mounts(world: World, settings: Settings, *, data: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes, and where they are mounted."""
    key, credentials = world.object.key, world.provider.spec.credential_secret_ref
    volumes, mounts = [], []
    if world.secure:
        volumes.append(_tls_volume(world))
        mounts.append({"name": "tls", "mountPath": _TLS, "readOnly": True})
    if credentials is not None:
        secret = {"secretName": credentials.name, "optional": True}
        volumes.append({"name": "credentials", "secret": secret})
        mounts.append({"name": "credentials", "mountPath": _CREDENTIALS, "readOnly": True})
    if data:
        claim = {"claimName": names.data(key.namespace, key.name)}
        volumes.append({"name": "data", "persistentVolumeClaim": claim})
        mounts.append({"name": "data", "mountPath": _DATA})
    more = _storage(world, settings)
    return [*volumes, *more[0]], [*mounts, *more[1]]


def _serve(world: World, settings: Settings, address: str) -> list[str]:
    """The arguments of ``holdfast``."""
    type = served_type(world, settings)
    arguments = ["provider", "serve", type, "--listen", f"{address}:{world.port}", "--data", _DATA]
    arguments += ["--tls-dir", _TLS] if world.secure else ["--plaintext"]
    if type in _OWN:
        for claim in storage_claims(world, settings):
            arguments += ["--claim", f"{claim}={_STORAGE}/{claim}"]
        folder = settings.storage or (_STORAGE if world.nfs and not settings.processes else "")
        arguments += ["--storage", folder] if folder else []
    return arguments + _own_arguments(world, type, settings)


def _own_arguments(world: World, type: str, settings: Settings) -> list[str]:
    """What one type of hypervisor needs besides."""
    endpoint = world.provider.spec.endpoint
    match type:
        case "simulated" if type != world.provider.spec.type.value:
            return ["--any-place"]
        case "libvirt":
            # A query may name commands to run on this machine.
            return ["--uri", endpoint.partition("?")[0]]
        case "qemu" if settings.images:
            return ["--images", settings.images]
        case _:
            return []


def _process(world: World, settings: Settings) -> dict[str, Any]:
    """A pod that runs as a process of the node."""
    volumes, mounts = _mounts(world, settings, data=True)
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {
        "runtimeClassName": "process",
        "terminationGracePeriodSeconds": 10,
        "containers": [
            {
                "name": "provider",
                "image": world.provider.spec.runtime.image,
                "command": [*settings.command, *_serve(world, settings, "$(POD_IP)")],
                # Variables of the spec are left out: the process runs as the user who started the cluster.
                "env": [address, *_named(settings.env), *_common(world), *_inventory(world)],
                "readinessProbe": {"tcpSocket": {"port": world.port}, "periodSeconds": 2},
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def _containers(world: World) -> dict[str, Any]:
    """A pod of the provider's image."""
    runtime = world.provider.spec.runtime
    volumes, mounts = _mounts(world, Settings(), data=False)
    own = world.provider.spec.type.value in _OWN
    arguments = (
        _serve(world, Settings(), "0.0.0.0") if own else [f"--port={world.port}", f"--health-port={_HEALTH_PORT}"]
    )
    probe = {"httpGet": {"path": "/healthz", "port": _HEALTH_PORT}} if not own else {"tcpSocket": {"port": world.port}}
    container = {
        "name": "provider",
        "image": runtime.image,
        "imagePullPolicy": runtime.image_pull_policy or "IfNotPresent",
        "args": arguments,
        "env": [*_common(world), *runtime.env],
        "ports": [{"name": "grpc", "containerPort": world.port}, {"name": "metrics", "containerPort": _HEALTH_PORT}],
        "livenessProbe": runtime.liveness_probe or {**probe, "initialDelaySeconds": 15, "periodSeconds": 20},
        "readinessProbe": runtime.readiness_probe or {**probe, "initialDelaySeconds": 5, "periodSeconds": 10},
        "securityContext": runtime.security_context
        or {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [*mounts, {"name": "tmp", "mountPath": "/tmp"}, {"name": "work", "mountPath": _DATA}],
        **({"resources": runtime.resources} if runtime.resources else {}),
    }
    pod: dict[str, Any] = {
        "containers": [container],
        "volumes": [*volumes, {"name": "tmp", "emptyDir": {}}, {"name": "work", "emptyDir": {}}],
    }
    if runtime.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": each.name} for each in runtime.image_pull_secrets]
    where = {
        "nodeSelector": dict(runtime.node_selector),
        "tolerations": list(runtime.tolerations),
        "affinity": runtime.affinity,
    }
    return pod | {name: value for name, value in where.items() if value}


def _common(world: World) -> Iterator[dict[str, str]]:
    """The variables that every provider reads."""
    spec, key = world.provider.spec, world.object.key
    tls = spec.runtime.service.tls if spec.runtime.service else None
    variables = {
        "PROVIDER_TYPE": spec.type.value,
        "PROVIDER_ENDPOINT": spec.endpoint,
        "PROVIDER_NAMESPACE": key.namespace,
        "PROVIDER_NAME": key.name,
        "TLS_ENABLED": str(world.secure).lower(),
        "VIRTRIGAUD_PROVIDER_INSECURE": str(not world.secure).lower(),
        "TLS_INSECURE_SKIP_VERIFY": str(bool(tls and tls.insecure_skip_verify)).lower(),
        "LOG_LEVEL": spec.runtime.log_level or "info",
        "LOG_FORMAT": spec.runtime.log_format or "text",
    }
    if spec.defaults is not None:
        places = ("datastore", "storage_pod", "cluster", "folder", "resource_pool", "network")
        given = {name: getattr(spec.defaults, name) for name in places}
        variables |= {f"PROVIDER_DEFAULT_{name.upper()}": value for name, value in given.items() if value}
    yield from _named(variables)


def _inventory(world: World) -> Iterator[dict[str, str]]:
    """The variable of the spec that a process gets: the inventory of a simulated hypervisor, which is a text."""
    for each in world.provider.spec.runtime.env:
        if each.get("name") == INVENTORY and isinstance(each.get("value"), str):
            yield {"name": INVENTORY, "value": each["value"]}


def _named(variables: Mapping[str, str]) -> Iterator[dict[str, str]]:
    yield from ({"name": name, "value": value} for name, value in variables.items())
