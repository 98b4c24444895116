"""The pods of a PodClique, rendered: their names, labels, environment and gates.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.meta.objects import owner_reference
from holdfast.operators.podcliqueset import labels, names
from holdfast.operators.podcliqueset.startup import Parent
from holdfast.operators.podcliqueset.templates import Layout, replicas

GATE: Final = "grove.io/podgang-pending-creation"
"""The scheduling gate that a pod has until its PodGang lists it."""

STARTS_AFTER: Final = "holdfast.dev/starts-after"
"""The annotation ``<podclique>:<ready>,...`` that makes simulated nodes hold a pod back."""

WAITER: Final = "grove-initc"
"""The init container that holds a pod back on any other cluster."""

_TOKEN: Final = "grove-initc-token"
_POD_INFO: Final = "grove-pod-info"
_NOT_FOR_PODS: Final = ("holdfast.dev/", "kubectl.kubernetes.io/")
_SERVICE_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def pod(
    clique: Mapping[str, Any], layout: Layout, *, index: int, after: Iterable[Parent] = (), image: str
) -> dict[str, Any]:
    """Pod `index` of a PodClique; `image` is the image of the init container that waits for its parents."""
    metadata = clique["metadata"]
    name, namespace, marks = metadata["name"], metadata["namespace"], metadata.get("labels") or {}
    parents = tuple(after)
    subdomain = names.replica(layout.name, int(marks[labels.SET_INDEX]))
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if not key.startswith(_NOT_FOR_PODS)
    }
    if parents:
        annotations[STARTS_AFTER] = ",".join(map(str, parents))
    spec = dict(clique["spec"]["podSpec"])
    spec |= {
        "hostname": names.hostname(name, index),
        "subdomain": subdomain,
        "schedulingGates": [{"name": GATE}, *(spec.get("schedulingGates") or ())],
    }
    if parents:
        spec["initContainers"] = [*(spec.get("initContainers") or ()), _waiter(parents, image=image)]
        spec["volumes"] = [*(spec.get("volumes") or ()), *_volumes(layout)]
    variables = list(environment(layout, marks, name=name, namespace=namespace))
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_with_environment(container, variables) for container in spec[field]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{name}-",
            "namespace": namespace,
            "labels": {**marks, labels.CLIQUE: name, labels.POD_INDEX: str(index)},
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner_reference(clique)],
        },
        "spec": spec,
    }


def environment(layout: Layout, marks: Mapping[str, str], *, name: str, namespace: str) -> Iterable[dict[str, Any]]:
    """The variables that describe where a pod belongs; variables of the container may refer to them."""
    service = names.replica(layout.name, int(marks[labels.SET_INDEX]))
    yield {"name": "GROVE_PCS_NAME", "value": layout.name}
    yield {"name": "GROVE_PCS_INDEX", "value": marks[labels.SET_INDEX]}
    yield {"name": "GROVE_PCLQ_NAME", "value": name}
    yield {"name": "GROVE_HEADLESS_SERVICE", "value": names.service_address(service, namespace)}
    yield _from_label("GROVE_PCLQ_POD_INDEX", labels.POD_INDEX)
    group = layout.group_of.get(marks.get(labels.TEMPLATE, ""))
    if group is not None:
        yield _from_label("GROVE_PCSG_NAME", labels.GROUP)
        yield _from_label("GROVE_PCSG_INDEX", labels.GROUP_INDEX)
        total = sum(replicas(clique) for clique in layout.members(group))
        yield {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(total)}


def _from_label(name: str, label: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def _with_environment(container: Mapping[str, Any], variables: list[dict[str, Any]]) -> dict[str, Any]:
    """A container with these variables before its own; its own variables of the same names are dropped."""
    ours = {variable["name"] for variable in variables}
    own = [variable for variable in container.get("env") or () if variable.get("name") not in ours]
    return {**container, "env": [*variables, *own]}


# --- the init container of an ordered start


def _waiter(parents: Iterable[Parent], *, image: str) -> dict[str, Any]:
    return {
        "name": WAITER,
        "image": image,
        "command": ["holdfast", "operator", "wait-for"],
        "args": [f"--podcliques={','.join(map(str, parents))}"],
        "volumeMounts": [
            {"name": _TOKEN, "mountPath": _SERVICE_ACCOUNT_PATH, "readOnly": True},
            {"name": _POD_INFO, "mountPath": "/var/grove/pod-info", "readOnly": True},
        ],
    }


def _volumes(layout: Layout) -> Iterable[dict[str, Any]]:
    yield {"name": _TOKEN, "secret": {"secretName": names.token_secret(layout.name)}}
    yield {
        "name": _POD_INFO,
        "downwardAPI": {
            "items": [
                {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                {"path": "podgangname", "fieldRef": {"fieldPath": f"metadata.labels['{labels.GANG}']"}},
            ]
        },
    }
