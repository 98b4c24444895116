"""What is created for a request: the profiling Job and what it needs, its output, and the deployment.

The profiler reads what it is asked from the output ConfigMap, and writes its progress and its result there, through
the API, as a ServiceAccount that may do that and nothing else.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.kernel.children import Desired
from holdfast.kinds.nvidia import deployments
from holdfast.kinds.nvidia.requests import Hardware, ProfilingResults
from holdfast.meta.objects import owner_reference
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.observe import ASKED, PROCESS, World
from holdfast.operators.deploymentrequest.requests.overrides import PROFILER, overridden

CREDENTIALS: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where the profiler finds its token."""

TOKEN: Final = "api-access"
CACHE: Final = "model-cache"

RAPID_SECONDS: Final = 600
THOROUGH_SECONDS: Final = 4 * 3600
"""How long a Job may take whose deadline is not overridden."""

_USER: Final = 1000
_TOKEN_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an installation sets: the image that has the profiler."""

    image: str


# --- what the Job needs


def _metadata(world: World, name: str, **annotations: str) -> dict[str, Any]:
    made = {"name": name, "namespace": world.namespace, "labels": names.labels(world.request)}
    return {**made, "annotations": annotations} if annotations else made


def identity(world: World) -> Iterator[Desired]:
    """The ServiceAccount of the profiler, and what it may do: report, and, where it measures, deploy candidates."""
    name = names.account(world.name)
    rules = [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [names.output(world.name)],
            "verbs": ["get", "patch"],
        }
    ]
    if is_thorough(world):
        rules += [
            {
                "apiGroups": [deployments.KIND.group],
                "resources": [deployments.KIND.plural],
                "verbs": ["create", "get", "list", "watch", "delete"],
            },
            {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list", "watch"]},
        ]
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": world.namespace}
    meta = _metadata(world, name)
    yield Desired({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    yield Desired({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": rules})
    yield Desired(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [subject],
        }
    )


def is_thorough(world: World) -> bool:
    return world.request.spec.search_strategy == "thorough"


def output(world: World, attempt: str, hardware: Hardware) -> dict[str, Any]:
    """The ConfigMap that the profiler reads from and writes to."""
    metadata = _metadata(world, names.output(world.name), **{names.ATTEMPT: attempt})
    asked = {
        "name": world.name,
        "namespace": world.namespace,
        "uid": world.object.uid,
        "attempt": attempt,
        "deployment": names.deployment(world.request),
        "spec": msgspec.to_builtins(world.request.spec),
        "hardware": msgspec.to_builtins(hardware),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "ownerReferences": [_owner(world)]},
        "data": {ASKED: msgspec.json.encode(asked, order="deterministic").decode()},
    }


def _owner(world: World) -> dict[str, Any]:
    return owner_reference(world.object.wire())


# --- the Job


def job(world: World, attempt: str, settings: Settings) -> dict[str, Any]:
    """The profiling Job of an attempt."""
    spec = _job_spec(world, settings)
    given = world.request.spec.overrides.profiling_job if world.request.spec.overrides is not None else None
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **_metadata(world, names.job(world.name), **{names.ATTEMPT: attempt}),
            "ownerReferences": [_owner(world)],
        },
        "spec": overridden(spec, given or {}, as_process=world.processes),
    }


def _job_spec(world: World, settings: Settings) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": names.account(world.name),
        # The token is mounted below, for the profiler alone.
        "automountServiceAccountToken": False,
        "containers": [_profiler(world, settings)],
        "volumes": [_token_volume(), *_cache_volume(world)],
    }
    if world.processes:
        pod["runtimeClassName"] = PROCESS
    else:
        pod["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    return {
        "backoffLimit": 0,
        "activeDeadlineSeconds": THOROUGH_SECONDS if is_thorough(world) else RAPID_SECONDS,
        "template": {"metadata": {"labels": names.labels(world.request)}, "spec": pod},
    }


def _profiler(world: World, settings: Settings) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": PROFILER,
        "image": settings.image,
        "command": ["holdfast", "profile", "job"],
        "args": [
            *("--output", f"{world.namespace}/{names.output(world.name)}"),
            *("--credentials", CREDENTIALS),
            *(("--mock",) if world.processes and is_thorough(world) else ()),
            *_cache_arguments(world),
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": TOKEN, "mountPath": CREDENTIALS, "readOnly": True},
            *_cache_mount(world),
        ],
    }
    if not world.processes:
        made["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return made


def _token_volume() -> dict[str, Any]:
    """The token of the ServiceAccount, with the authority of the server and the namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": TOKEN,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ]
        },
    }


def _mount_path(world: World) -> str:
    cache = world.request.spec.model_cache
    return (cache.pvc_mount_path if cache is not None else None) or "/opt/model-cache"


def _cache_volume(world: World) -> Iterator[dict[str, Any]]:
    cache = world.request.spec.model_cache
    if cache is not None and cache.pvc_name:
        yield {"name": CACHE, "persistentVolumeClaim": {"claimName": cache.pvc_name, "readOnly": True}}


def _cache_mount(world: World) -> Iterator[dict[str, Any]]:
    for each in _cache_volume(world):
        yield {"name": each["name"], "mountPath": _mount_path(world), "readOnly": True}


def _cache_arguments(world: World) -> Iterator[str]:
    cache = world.request.spec.model_cache
    if cache is not None and cache.pvc_name:
        below = (cache.pvc_model_path or "").strip("/")
        mount = _mount_path(world).rstrip("/")
        yield from ("--model-dir", f"{mount}/{below}" if below else mount)


# --- the deployment


def deployment(world: World, attempt: str, results: ProfilingResults) -> dict[str, Any]:
    """The deployment that was generated, with what proves that it is ours.

    A runtime version that was set since is filled in where a component has none.
    """
    config: Mapping[str, Any] = results.selected_config or {}
    metadata, spec = dict(config.get("metadata") or {}), dict(config.get("spec") or {})
    return {
        **config,
        "metadata": {
            **metadata,
            "namespace": world.namespace,
            "labels": {**(metadata.get("labels") or {}), **names.labels(world.request)},
            "annotations": {
                **(metadata.get("annotations") or {}),
                names.REQUEST_UID: world.object.uid,
                names.ATTEMPT: attempt,
            },
        },
        "spec": {
            **spec,
            "labels": {**(spec.get("labels") or {}), names.NAME: world.name},
            "components": [_component(world, each) for each in spec.get("components") or ()],
        },
    }


def _component(world: World, component: Any) -> Any:
    """A component, with the runtime's version where it has none."""
    version = world.request.spec.runtime_version_override
    if version is None or not isinstance(component, Mapping) or component.get("runtimeVersionOverride"):
        return component
    return {**component, "runtimeVersionOverride": version}


def config_map(world: World, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A ConfigMap of the deployment, which goes with it."""
    assert world.graph is not None, "it is created after the deployment"
    owner = {
        "apiVersion": f"{deployments.KIND.group}/{deployments.KIND.version}",
        "kind": deployments.KIND.name,
        "name": world.graph.metadata.name,
        "uid": world.graph.metadata.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**_metadata(world, manifest["metadata"]["name"]), "ownerReferences": [owner]},
        **{key: manifest[key] for key in ("data", "binaryData") if isinstance(manifest.get(key), Mapping)},
    }
