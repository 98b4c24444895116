"""The dashboard in a cluster: a Deployment that serves it, and its Service.

Pure.  Viewers sign in with their own tokens, so the dashboard itself may do nothing: its account has no role.
"""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "holdfast-dashboard"
PORT: Final = 6480

READ_ONLY: Final = "--read-only"
"""The argument that the chart replaces where changes are allowed."""

_LABELS: Final = {"app.kubernetes.io/name": NAME}

Manifest = dict[str, Any]


def manifests(namespace: str, image: str) -> tuple[Manifest, ...]:
    """Everything that serves the dashboard."""
    metadata = {"name": NAME, "namespace": namespace, "labels": dict(_LABELS)}
    service = {"selector": _LABELS, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    template = {"metadata": {"labels": _LABELS}, "spec": _pod(image)}
    deployment = {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": template}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
    )


def _pod(image: str) -> Manifest:
    container = {
        "name": "dashboard",
        "image": image,
        "command": ["holdfast", "dashboard"],
        "args": [
            "--bind=0.0.0.0",
            "--allow-non-loopback",
            f"--port={PORT}",
            "--login=token",
            "--log-format=json",
            READ_ONLY,
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": _PROBE,
        "readinessProbe": _PROBE,
        "resources": {"requests": {"cpu": "20m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }


# The kubelet asks by the address of the pod, which is always a known host.
_PROBE: Final = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "failureThreshold": 3}
