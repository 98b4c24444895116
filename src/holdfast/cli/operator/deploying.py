"""Deploying: the objects that run operators in a cluster: a Deployment, who it is, and what it may do.

Pure: controllers and names in, manifests out.  What is allowed is what the controllers
declare (`permissions`), and nothing besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from holdfast.cli.operator import permissions
from holdfast.cli.operator.permissions import Permission
from holdfast.runtime.controllers import Controller
from holdfast.runtime.manager import GRACE

NAME: Final = "holdfast-operator"
"""Of everything that is made, and of the lease."""

HEALTH_PORT: Final = 8081
WEBHOOK_PORT: Final = 9443

_LABELS: Final = {"app.kubernetes.io/name": NAME}
_RBAC: Final = "rbac.authorization.k8s.io"
_MARGIN: Final = 10
"""Seconds between the last pass that may end and the kill."""

Manifest = dict[str, Any]


def manifests(
    controllers: Sequence[Controller[Any]],
    *,
    namespace: str,
    image: str,
    arguments: Iterable[str] = (),
    webhooks: bool = False,
) -> list[Manifest]:
    """Everything, in the order in which it can be created; `arguments` go to the command besides.

    webhooks  whether the operator serves webhooks, with a Service by which the API server reaches them
    """
    everywhere = permissions.needed(controllers) | permissions.to_install()
    own = permissions.to_elect() | (permissions.to_serve_webhooks() if webhooks else frozenset())
    if webhooks:
        served = f"--webhook-port={WEBHOOK_PORT}", "--webhook-bind=0.0.0.0", f"--webhook-service={namespace}/{NAME}"
        arguments = (*arguments, *served)
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(namespace)},
        _role("ClusterRole", everywhere),
        _binding("ClusterRole", namespace),
        _role("Role", own, namespace),
        _binding("Role", namespace),
        *([_service(namespace)] if webhooks else []),
        _deployment(namespace, image, arguments),
    ]


def _service(namespace: str) -> Manifest:
    """The Service of the webhooks; a process that stands by answers too."""
    ports = [{"name": "webhooks", "port": 443, "targetPort": WEBHOOK_PORT}]
    # A process is not ready before the definitions are installed, which the server may need the webhooks for.
    spec = {"selector": _LABELS, "ports": ports, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(namespace), "spec": spec}


def _role(kind: str, allowed: Iterable[Permission], namespace: str = "") -> Manifest:
    rules = permissions.rules(allowed)
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": _metadata(namespace), "rules": rules}


def _binding(role: str, namespace: str) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{role}Binding",
        "metadata": _metadata(namespace if role == "Role" else ""),
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def _deployment(namespace: str, image: str, arguments: Iterable[str]) -> Manifest:
    container: Manifest = {
        "name": "operator",
        "image": image,
        "command": ["holdfast", "operator", "run"],
        "args": [
            "--leader-elect",
            "--health-bind=0.0.0.0",
            f"--health-port={HEALTH_PORT}",
            "--log-format=json",
            *arguments,
        ],
        "ports": [{"name": "health", "containerPort": HEALTH_PORT}],
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Private keys of client certificates pass through a file for a moment, and it needs a place.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": int(GRACE) + _MARGIN,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(namespace),
        "spec": {
            # One works, and one stands by with all that it needs to go on.
            "replicas": 2,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "health"}, "periodSeconds": 10, "failureThreshold": 3}


def _metadata(namespace: str) -> Manifest:
    place = {"namespace": namespace} if namespace else {}
    return {"name": NAME, **place, "labels": _LABELS}
