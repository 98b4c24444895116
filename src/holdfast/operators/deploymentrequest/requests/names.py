"""The names, labels and annotations of what is created for a request."""

from __future__ import annotations

from typing import Final

from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest

NAME: Final = "dgdr.nvidia.com/name"
NAMESPACE: Final = "dgdr.nvidia.com/namespace"
MANAGED_BY: Final = "nvidia.com/managed-by"

REQUEST_UID: Final = "dgdr.nvidia.com/uid"
"""The annotation of a deployment with the UID of the request that it was created for."""

ATTEMPT: Final = "dgdr.nvidia.com/attempt"
"""The annotation of a Job, of its output and of a deployment: the attempt that they belong to."""

RETRY: Final = "holdfast.dev/retry"
"""The annotation of a request whose change begins a new attempt."""

LONGEST: Final = 63 - len("profile-")
"""The longest name of a request: the name of its Job is the value of a label of its pods."""


def job(request: str) -> str:
    return f"profile-{request}"


def account(request: str) -> str:
    """The ServiceAccount of the profiler, and its Role and RoleBinding."""
    return job(request)


def output(request: str) -> str:
    return f"dgdr-output-{request}"


def labels(request: DynamoGraphDeploymentRequest) -> dict[str, str]:
    """The labels of everything that is created for a request."""
    meta = request.metadata
    return {NAME: meta.name or "", NAMESPACE: meta.namespace or "default", MANAGED_BY: "holdfast"}


def deployment(request: DynamoGraphDeploymentRequest) -> str:
    """The name of the deployment: the one that ``overrides.dgd`` gives, or one after the request."""
    given = request.spec.overrides.dgd if request.spec.overrides is not None else None
    name = ((given or {}).get("metadata") or {}).get("name")
    return str(name) if name else f"{request.metadata.name}-dgd"
