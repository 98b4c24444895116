"""The objects that are made for a Tenant, each from the Tenant alone.

All functions are pure.  What a StatefulSet is told of the rollout (its update strategy) is given to it; this
module must not know how that is decided, nor what exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from holdfast.kinds.rustfs.pools import Pool
from holdfast.kinds.rustfs.tenants import Tenant
from holdfast.meta import hashing
from holdfast.operators.tenant import containers, names, security
from holdfast.operators.tenant.containers import CONSOLE_PORT, STORE_PORT
from holdfast.operators.tenant.pools import SERVERS
from holdfast.operators.tenant.settings import Settings

TEMPLATE: Final = "holdfast.dev/template-hash"
"""The annotation with the hash of the pod template that was applied last: another one is another revision."""

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation of a Tenant that makes a new revision of the same spec."""

SIMULATION: Final = "sim.holdfast.dev/"
"""Annotations that simulated nodes read; they go to the servers as they are."""


def account(tenant: Tenant, *, namespace: str) -> dict[str, Any]:
    """The ServiceAccount of the servers, which need no token."""
    name = tenant.metadata.name or ""
    return {
        **_head("v1", "ServiceAccount", names.account(name), namespace, names.labels(name)),
        "automountServiceAccountToken": False,
    }


def services(tenant: Tenant, *, namespace: str) -> tuple[dict[str, Any], ...]:
    """The Services: of the store, of its console, and the one by which servers find each other."""
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
            "podManagementPolicy": containers.pod_management_policy(tenant),
            "updateStrategy": dict(strategy),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "selector": {"matchLabels": names.selector(name, pool.name)},
            "template": made,
            "volumeClaimTemplates": containers.claims(tenant, pool),
        },
    }


def template(tenant: Tenant, pool: Pool, *, namespace: str, settings: Settings) -> dict[str, Any]:
    """What each server of a pool is made from; another one is another revision."""
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
    """The name of a template: the same for the same meaning."""
    return hashing.canonical_hash(made)


def _pod_spec(tenant: Tenant, pool: Pool, namespace: str, settings: Settings) -> Iterator[tuple[str, Any]]:
    spec = tenant.spec
    if spec.service_account_name is None:
        yield "serviceAccountName", names.account(tenant.metadata.name or "")
        yield "automountServiceAccountToken", False
    else:
        yield "serviceAccountName", spec.service_account_name
    held = security.contexts(tenant, pool)
    yield "containers", [containers.container(tenant, pool, namespace=namespace, held=held, settings=settings)]
    optional: dict[str, Any] = {
        "securityContext": dict(held.pod),
        "imagePullSecrets": [] if spec.image_pull_secret is None else [{"name": spec.image_pull_secret.name}],
        "schedulerName": spec.scheduler,
        "priorityClassName": pool.priority_class_name or spec.priority_class_name,
        "nodeSelector": pool.node_selector,
        "affinity": pool.affinity,
        "tolerations": [msgspec.to_builtins(each) for each in pool.tolerations],
        "topologySpreadConstraints": [msgspec.to_builtins(each) for each in pool.topology_spread_constraints],
        "volumes": containers.pod_volumes(tenant),
    }
    yield from ((field, value) for field, value in optional.items() if value)


def _head(api_version: str, kind: str, name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
