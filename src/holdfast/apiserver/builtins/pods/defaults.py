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
    """All containers of a pod, whatever they are for."""
    for name in CONTAINER_LISTS:
        yield from spec.get(name) or ()


def default_template(template: Object) -> None:
    default_spec(template["spec"])


def default_pod(pod: Object) -> None:
    """A pod gets more than a template: what depends on there being a pod at last."""
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
        # The second name is the first one's from before 1.0; clients may read either.
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def pull_policy(image: str) -> str:
    """A tag that moves is pulled again; so is an image without one, which means ``latest``."""
    name, _, digest = image.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    moving = tag == "latest" or (not tag and not digest and name != "")
    return "Always" if moving else "IfNotPresent"


def _requests_from_limits(resources: Object) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def admit_pod(pod: Object) -> None:
    """What a cluster gives every new pod: its state, its account, its patience with nodes in trouble."""
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
    """How a pod is treated when its node runs short: by what its containers ask for, and may take."""
    running = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [spec["resources"]] if spec.get("resources") else [each.get("resources") or {} for each in running]
    if not any(_counted(each, name) for each in resources for name in ("requests", "limits")):
        return "BestEffort"
    return "Guaranteed" if all(map(_guaranteed, resources)) else "Burstable"


def _guaranteed(resources: Object) -> bool:
    limits = _counted(resources, "limits")
    return limits.keys() == {"cpu", "memory"} and _counted(resources, "requests") == limits


def _counted(resources: Object, name: str) -> dict[str, Any]:
    """The amounts that count for the class: CPU and memory that are not zero."""
    amounts = resources.get(name) or {}
    counted = {key: Quantity.parse(amounts[key]) for key in ("cpu", "memory") if key in amounts}
    return {key: amount for key, amount in counted.items() if amount}
