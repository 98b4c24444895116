"""Defaults of pods that depend on other fields, so that a schema cannot express them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.apiserver.resources import Object
from holdfast.meta.quantities import Quantity

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
TOLERATED_SECONDS: Final = 300
NODE_TROUBLES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def containers(spec: Object) -> Iterator[Object]:
    """All containers of a pod, including init and ephemeral containers."""
    for name in CONTAINER_LISTS:
        yield from spec.get(name) or ()


def default_template(template: Object) -> None:
    default_spec(template["spec"])


def default_pod(pod: Object) -> None:
    """The defaults of a pod; those of a template, and some that only pods have."""
    spec = pod["spec"]
    default_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in containers(spec):
        _requests_from_limits(container.get("resources") or {})
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port.get("containerPort", 0))
    _requests_from_limits(spec.get("resources") or {})


def default_spec(spec: Object) -> None:
    for container in containers(spec):
        container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    for volume in spec.get("volumes") or ():
        if volume.keys() <= {"name"}:
            volume["emptyDir"] = {}
        elif "image" in volume:
            volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # The second field is the deprecated name of the first; clients may read either.
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def pull_policy(image: str) -> str:
    """Always for the tag ``latest`` and for an image without a tag, else IfNotPresent."""
    name, _, digest = image.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    moving = tag == "latest" or (not tag and not digest and name != "")
    return "Always" if moving else "IfNotPresent"


def _requests_from_limits(resources: Object) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def admit_pod(pod: Object) -> None:
    """Complete a new pod: status, service account, tolerations of unready nodes."""
    spec = pod["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if not spec.get("priorityClassName"):
        spec.setdefault("priority", 0)
    _tolerate_troubles(spec)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def _tolerate_troubles(spec: Object) -> None:
    tolerations = list(spec.get("tolerations") or ())
    for trouble in NODE_TROUBLES:
        said = any(
            each.get("key", trouble) == trouble and each.get("effect", "NoExecute") == "NoExecute"
            for each in tolerations
        )
        if not said:
            tolerations.append(
                {"key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}
            )
    spec["tolerations"] = tolerations


def qos_class(spec: Object) -> str:
    """The QoS class of a pod, by the requests and limits of its containers."""
    running = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [spec["resources"]] if spec.get("resources") else [each.get("resources") or {} for each in running]
    if not any(_counted(each, name) for each in resources for name in ("requests", "limits")):
        return "BestEffort"
    return "Guaranteed" if all(map(_guaranteed, resources)) else "Burstable"


def _guaranteed(resources: Object) -> bool:
    limits = _counted(resources, "limits")
    return limits.keys() == {"cpu", "memory"} and _counted(resources, "requests") == limits


def _counted(resources: Object, name: str) -> dict[str, Any]:
    """The CPU and memory that count for the QoS class, without zeros."""
    amounts = resources.get(name) or {}
    counted = {key: Quantity.parse(amounts[key]) for key in ("cpu", "memory") if key in amounts}
    return {key: amount for key, amount in counted.items() if amount}
