"""What ``spec.overrides.profilingJob`` may change of the profiling Job: an allow-list.

The command, its arguments, the labels by which the controller finds its objects and the volume with the token are
kept.  Where pods run as processes of a machine, what could make them another program than the profiler is left out:
the right to create a request is not the right to run commands there.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.operators.deploymentrequest.requests.generated import overlaid

PROFILER: Final = "profiler"
"""The container that other settings of containers are for."""

_JOB: Final = (
    "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism", "suspend",
)  # fmt: skip
_POD: Final = (
    "tolerations", "nodeSelector", "affinity", "priorityClassName", "imagePullSecrets", "serviceAccountName",
    "runtimeClassName", "dnsPolicy", "dnsConfig", "securityContext", "terminationGracePeriodSeconds",
    "topologySpreadConstraints", "automountServiceAccountToken", "volumes", "initContainers", "schedulerName",
)  # fmt: skip
_POD_AS_PROCESS: Final = (
    "tolerations",
    "nodeSelector",
    "affinity",
    "priorityClassName",
    "terminationGracePeriodSeconds",
)
_CONTAINER: Final = ("image", "imagePullPolicy", "resources", "env", "envFrom", "volumeMounts", "securityContext")
_CONTAINER_AS_PROCESS: Final = ("resources",)

ALLOWED: Final = (*_JOB, *_POD, *_CONTAINER)
"""All fields that may be overridden."""


def overridden(job: Mapping[str, Any], override: Mapping[str, Any], *, as_process: bool) -> dict[str, Any]:
    """The spec of the Job with what an override may change."""
    template = _object(override.get("template"))
    pod, metadata = _object(template.get("spec")), _object(template.get("metadata"))
    own_pod: tuple[str, ...] = _POD_AS_PROCESS if as_process else _POD
    own_container: tuple[str, ...] = _CONTAINER_AS_PROCESS if as_process else _CONTAINER
    changes: dict[str, Any] = {
        **_chosen(override, _JOB),
        "template": {
            "metadata": {
                "labels": _kept(metadata.get("labels"), job["template"]["metadata"].get("labels") or {}),
                "annotations": _kept(metadata.get("annotations"), {}),
            },
            "spec": _chosen(pod, own_pod),
        },
    }
    given = [each for each in _objects(pod.get("containers")) if each.get("name") in (None, PROFILER)]
    if given:
        changes["template"]["spec"]["containers"] = [
            {"name": PROFILER, **_chosen(each, own_container)} for each in given[:1]
        ]
    kept = {each["name"] for each in job["template"]["spec"].get("volumes", ())}
    chosen = changes["template"]["spec"]
    if "volumes" in chosen:
        chosen["volumes"] = [each for each in _objects(chosen["volumes"]) if each.get("name") not in kept]
    merged: dict[str, Any] = overlaid(dict(job), changes)
    return merged


def _chosen(given: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {field: given[field] for field in fields if given.get(field) is not None}


def _kept(given: Any, protected: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations, without those that are protected."""
    return {key: value for key, value in _object(given).items() if key not in protected}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
