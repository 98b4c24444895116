"""The objects that are created for a Tenant, each rendered from the Tenant alone.

The update strategy of a StatefulSet is an argument.  The order of the environment variables is part of the
template, so it is fixed.  Pure.  This module must not know what exists, nor when a server is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.kinds.rustfs.pools import Pool
from holdfast.kinds.rustfs.tenants import Tenant
from holdfast.meta import hashing
from holdfast.operators.tenant import names, security
from holdfast.operators.tenant.pools import SERVERS
from holdfast.operators.tenant.security import Contexts


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an installation of the operator sets for all Tenants.

    image           of servers whose Tenant names none
    cluster_domain  the last part of the DNS names of Services
    """

    image: str = "rustfs/rustfs:1.0.0-beta.10"
    cluster_domain: str = "cluster.local"


DEFAULTS: Final = Settings()

TEMPLATE: Final = "holdfast.dev/template-hash"
"""The annotation with the hash of the pod template that was applied last."""

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation of a Tenant whose change replaces all servers."""

SIMULATION: Final = "sim.holdfast.dev/"
"""The prefix of annotations that simulated nodes read; they are copied to the servers."""

STORE_PORT: Final = 9000
CONSOLE_PORT: Final = 9001

PATH: Final = "/data"
LOGS: Final = "logs"
LOG_PATH: Final = "/logs"
LOG_SIZE: Final = "5Gi"
VOLUME_SIZE: Final = "10Gi"

ACCESS_KEY: Final = "accesskey"
SECRET_KEY: Final = "secretkey"
"""The keys of the Secret with the root credentials."""

_RPC: Final = "RUSTFS_RPC_SECRET"


# --- objects


def account(tenant: Tenant, *, namespace: str) -> dict[str, Any]:
    """The ServiceAccount of the servers, which need no token."""
    name = tenant.metadata.name or ""
    return {
        **_head("v1", "ServiceAccount", names.account(name), namespace, names.labels(name)),
        "automountServiceAccountToken": False,
    }


def services(tenant: Tenant, *, namespace: str) -> tuple[dict[str, Any], ...]:
    """The Services: of the store, of its console, and the headless one of its servers."""
    name = tenant.metadata.name or ""
    selector = names.selector(name)
    store = [_port("http-rustfs", STORE_PORT)]
    return (
        _service(names.store(name), namespace, name, {"type": "ClusterIP", "selector": selector, "ports": store}),
        _service(
            names.console(name),
            namespace,
            name,
            {"type": "ClusterIP", "selector": selector, "ports": [_port("http-console", CONSOLE_PORT)]},
        ),
        _service(
            names.headless(name),
            namespace,
            name,
            {
                "type": "ClusterIP",
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": selector,
                "ports": store,
            },
        ),
    )


def _service(name: str, namespace: str, tenant: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {**_head("v1", "Service", name, namespace, names.labels(tenant)), "spec": spec}


def _port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "port": number, "targetPort": number, "protocol": "TCP"}


def stateful_set(
    tenant: Tenant, pool: Pool, *, namespace: str, strategy: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    """The StatefulSet of a pool."""
    name = tenant.metadata.name or ""
    made = template(tenant, pool, namespace=namespace, settings=settings)
    labels = names.pool_labels(name, pool.name)
    head = _head("apps/v1", "StatefulSet", names.stateful_set(name, pool.name), namespace, labels)
    head["metadata"]["annotations"] = {TEMPLATE: template_hash(made), SERVERS: str(pool.servers)}
    return {
        **head,
        "spec": {
            "replicas": pool.servers,
            "serviceName": names.headless(name),
            "podManagementPolicy": pod_management_policy(tenant),
            "updateStrategy": dict(strategy),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "selector": {"matchLabels": names.selector(name, pool.name)},
            "template": made,
            "volumeClaimTemplates": claims(tenant, pool),
        },
    }


def template(tenant: Tenant, pool: Pool, *, namespace: str, settings: Settings) -> dict[str, Any]:
    """The pod template of a pool; another template is another revision."""
    name = tenant.metadata.name or ""
    metadata: dict[str, Any] = {"labels": names.pool_labels(name, pool.name)}
    passed_on = {
        key: value
        for key, value in tenant.metadata.annotations.items()
        if key.startswith(SIMULATION) or key == RESTARTED_AT
    }
    if passed_on:
        metadata["annotations"] = passed_on
    return {"metadata": metadata, "spec": dict(_pod_spec(tenant, pool, namespace, settings))}


def template_hash(made: Mapping[str, Any]) -> str:
    """The hash of a template."""
    return hashing.canonical_hash(made)


def _pod_spec(tenant: Tenant, pool: Pool, namespace: str, settings: Settings) -> Iterator[tuple[str, Any]]:
    spec = tenant.spec
    if spec.service_account_name is None:
        yield "serviceAccountName", names.account(tenant.metadata.name or "")
        yield "automountServiceAccountToken", False
    else:
        yield "serviceAccountName", spec.service_account_name
    contexts = security.contexts(tenant, pool)
    yield "containers", [container(tenant, pool, namespace=namespace, contexts=contexts, settings=settings)]
    optional: dict[str, Any] = {
        "securityContext": dict(contexts.pod),
        "imagePullSecrets": [] if spec.image_pull_secret is None else [{"name": spec.image_pull_secret.name}],
        "schedulerName": spec.scheduler,
        "priorityClassName": pool.priority_class_name or spec.priority_class_name,
        "nodeSelector": pool.node_selector,
        "affinity": pool.affinity,
        "tolerations": [msgspec.to_builtins(each) for each in pool.tolerations],
        "topologySpreadConstraints": [msgspec.to_builtins(each) for each in pool.topology_spread_constraints],
        "volumes": pod_volumes(tenant),
    }
    yield from ((field, value) for field, value in optional.items() if value)


def _head(api_version: str, kind: str, name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


# --- the container of a server


def container(tenant: Tenant, pool: Pool, *, namespace: str, contexts: Contexts, settings: Settings) -> dict[str, Any]:
    spec = tenant.spec
    made: dict[str, Any] = {
        "name": "rustfs",
        "image": spec.image or settings.image,
        "imagePullPolicy": spec.image_pull_policy or "IfNotPresent",
        "ports": [
            {"name": "http", "containerPort": STORE_PORT, "protocol": "TCP"},
            {"name": "console", "containerPort": CONSOLE_PORT, "protocol": "TCP"},
        ],
        "env": environment(tenant, namespace=namespace, settings=settings),
        "volumeMounts": list(_mounts(tenant, pool)),
        "livenessProbe": _probe("/health"),
        "readinessProbe": _probe("/health/ready"),
        "startupProbe": _probe("/health"),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    optional = {"resources": pool.resources, "lifecycle": spec.lifecycle, "securityContext": dict(contexts.container)}
    return made | {field: value for field, value in optional.items() if value}


def _probe(path: str) -> dict[str, Any]:
    """A probe with the default timings of Kubernetes."""
    return {"httpGet": {"path": path, "port": STORE_PORT, "scheme": "HTTP"}}


def pod_management_policy(tenant: Tenant) -> str:
    """All servers start at once unless the spec says otherwise: a server waits for the others to start."""
    return tenant.spec.pod_management_policy or "Parallel"


# --- the environment


def environment(tenant: Tenant, *, namespace: str, settings: Settings) -> list[dict[str, Any]]:
    """The variables of the operator in a fixed order, with the values of the user, then the other ones of the user."""
    own = {each["name"]: each for each in _own(tenant, namespace, settings)}
    for variable in tenant.spec.env:
        if variable.name != _RPC or tenant.spec.rpc_secret is None:
            own[variable.name] = msgspec.to_builtins(variable)
    return list(own.values())


def _own(tenant: Tenant, namespace: str, settings: Settings) -> Iterator[dict[str, Any]]:
    yield _value("RUSTFS_VOLUMES", " ".join(volumes(tenant, namespace=namespace, settings=settings).values()))
    yield _value("RUSTFS_ADDRESS", f"0.0.0.0:{STORE_PORT}")
    yield _value("RUSTFS_CONSOLE_ADDRESS", f"0.0.0.0:{CONSOLE_PORT}")
    yield _value("RUSTFS_CONSOLE_ENABLE", "true")
    if tenant.spec.creds_secret is not None:
        yield _secret("RUSTFS_ACCESS_KEY", tenant.spec.creds_secret.name, ACCESS_KEY)
        yield _secret("RUSTFS_SECRET_KEY", tenant.spec.creds_secret.name, SECRET_KEY)
    if tenant.spec.rpc_secret is not None:
        yield _secret(_RPC, tenant.spec.rpc_secret.name, tenant.spec.rpc_secret.key)


def volumes(tenant: Tenant, *, namespace: str, settings: Settings) -> dict[str, str]:
    """The volumes of each pool as RUSTFS_VOLUMES has them, by the name of the pool; the store knows pools by them."""
    (first, *others) = tenant.spec.pools
    if not others and first.servers == first.persistence.volumes_per_server == 1:
        return {first.name: f"{path(first)}/rustfs0"}
    name = tenant.metadata.name or ""
    domain = f"{names.headless(name)}.{namespace}.svc.{settings.cluster_domain}"
    return {
        pool.name: (
            f"http://{names.stateful_set(name, pool.name)}-{{0...{pool.servers - 1}}}.{domain}:{STORE_PORT}"
            f"{path(pool)}/rustfs{{0...{pool.persistence.volumes_per_server - 1}}}"
        )
        for pool in tenant.spec.pools
    }


def _value(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value}


def _secret(name: str, secret: str, key: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


# --- volumes


def path(pool: Pool) -> str:
    return (pool.persistence.path or PATH).rstrip("/")


def _mounts(tenant: Tenant, pool: Pool) -> Iterator[dict[str, Any]]:
    for number in range(pool.persistence.volumes_per_server):
        yield {"name": f"vol-{number}", "mountPath": f"{path(pool)}/rustfs{number}"}
    logging = tenant.spec.logging
    if logging is not None and logging.mode in ("emptydir", "persistent"):
        yield {"name": LOGS, "mountPath": logging.mount_path or LOG_PATH}


def pod_volumes(tenant: Tenant) -> list[dict[str, Any]]:
    """Volumes without a claim."""
    logging = tenant.spec.logging
    return [{"name": LOGS, "emptyDir": {}}] if logging is not None and logging.mode == "emptydir" else []


def claims(tenant: Tenant, pool: Pool) -> list[dict[str, Any]]:
    """The templates of the claims of each server."""
    asked = pool.persistence
    labels = names.pool_labels(tenant.metadata.name or "", pool.name) | asked.labels
    metadata: dict[str, Any] = {"labels": labels} | ({"annotations": asked.annotations} if asked.annotations else {})
    spec = asked.volume_claim_template or {}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": VOLUME_SIZE}}} | spec
    made = [_claim(f"vol-{number}", metadata, wanted) for number in range(asked.volumes_per_server)]
    logging = tenant.spec.logging
    if logging is not None and logging.mode == "persistent":
        storage = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": logging.storage_size or LOG_SIZE}},
        }
        optional = {"storageClassName": logging.storage_class} if logging.storage_class else {}
        made.append(_claim(LOGS, metadata, storage | optional))
    return made


def _claim(name: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }
