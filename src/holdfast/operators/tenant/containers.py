"""The container of a server: its environment, its volumes, and how one knows that it is well.

The order of the environment is part of what is compared, so it is fixed.  Pure; this module must not know how
many servers are wanted, nor when one is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from holdfast.kinds.rustfs.pools import Pool
from holdfast.kinds.rustfs.tenants import Tenant
from holdfast.operators.tenant import names
from holdfast.operators.tenant.security import Contexts
from holdfast.operators.tenant.settings import Settings

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


def container(tenant: Tenant, pool: Pool, *, namespace: str, held: Contexts, settings: Settings) -> dict[str, Any]:
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
    optional = {"resources": pool.resources, "lifecycle": spec.lifecycle, "securityContext": dict(held.container)}
    return made | {field: value for field, value in optional.items() if value}


def _probe(path: str) -> dict[str, Any]:
    """With Kubernetes' own timings."""
    return {"httpGet": {"path": path, "port": STORE_PORT, "scheme": "HTTP"}}


def pod_management_policy(tenant: Tenant) -> str:
    """All servers start at once unless somebody wants otherwise: they look for each other."""
    return tenant.spec.pod_management_policy or "Parallel"


# --- the environment


def environment(tenant: Tenant, *, namespace: str, settings: Settings) -> list[dict[str, Any]]:
    """Ours in its order, with what the user overrides in place, and then what else the user adds."""
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
    """What servers are told of the volumes of each pool, by the name of the pool; the store lists pools by it."""
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
    """Volumes that are not claimed."""
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
