"""What is wrong with the spec of a request that its schema and rules cannot say: fields, and what to write.

What only the profiler can tell, such as a model that it does not know, is in its output.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.kinds.nvidia import deployments
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest
from holdfast.meta.names import dns_subdomain
from holdfast.operators.deploymentrequest.requests import names


@dataclass(frozen=True, slots=True)
class Finding:
    """A field that is wrong, and what to write."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def findings(request: DynamoGraphDeploymentRequest) -> tuple[Finding, ...]:
    """Everything that is wrong with a request."""
    return (*_name(request), *_cache(request), *_graph(request))


def _name(request: DynamoGraphDeploymentRequest) -> Iterator[Finding]:
    length = len(request.metadata.name or "")
    if length > names.LONGEST:
        yield Finding(
            "metadata.name",
            f"it has {length} characters, and the name of the profiling Job needs {names.LONGEST} or fewer; "
            "create the request with a shorter name",
        )


def _cache(request: DynamoGraphDeploymentRequest) -> Iterator[Finding]:
    cache = request.spec.model_cache
    if cache is None:
        return
    if not cache.pvc_name:
        yield Finding("spec.modelCache.pvcName", "name the PersistentVolumeClaim that has the model")
    if cache.pvc_mount_path is not None and not cache.pvc_mount_path.startswith("/"):
        yield Finding("spec.modelCache.pvcMountPath", f"{cache.pvc_mount_path!r} is not absolute; begin it with /")
    if cache.pvc_model_path is not None and ".." in cache.pvc_model_path.split("/"):
        yield Finding("spec.modelCache.pvcModelPath", "it leaves the volume; write a path without '..'")


def _graph(request: DynamoGraphDeploymentRequest) -> Iterator[Finding]:
    given = request.spec.overrides.dgd if request.spec.overrides is not None else None
    if given is None:
        return
    path, graph = "spec.overrides.dgd", deployments.KIND
    if given.get("kind") != graph.name:
        yield Finding(f"{path}.kind", f"it is {given.get('kind')!r}; write {graph.name}")
    group = str(given.get("apiVersion", "")).partition("/")[0]
    if group != graph.group:
        yield Finding(f"{path}.apiVersion", f"it is {given.get('apiVersion')!r}; write {graph.group}/{graph.version}")
    name = names.deployment(request)
    for problem in dns_subdomain(name):
        yield Finding(f"{path}.metadata.name", f"{name!r}: {problem}")
    namespace = (given.get("metadata") or {}).get("namespace")
    if namespace not in (None, request.metadata.namespace):
        yield Finding(
            f"{path}.metadata.namespace",
            f"it is {namespace!r}; a deployment is created in the namespace of its request, so leave it out",
        )
