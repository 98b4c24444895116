"""Worlds of a Workload as tests write them: revisions go by the image that makes them.

made = decided(web("web:2", replicas=4), pods("web:1", 4), complete="web:1")
assert deeds(made) == ["record web:2", "start 1 of web:2"]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast import kinds
from holdfast.client.resources import (
    BUDGETS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from holdfast.kinds.cloudless import Workload
from holdfast.meta import times
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.workload.decide import decide
from holdfast.operators.workload.observe import INDEXES, WORKLOADS, World, observe
from holdfast.operators.workload.render import REVISION, WORKLOAD, Template, controller_revision
from holdfast.runtime.decisions import Create, Decision, Delete, Evict, Patch, Write
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
Wire = dict[str, Any]
Placed = tuple[Resource, Wire]


def ago(**spans: float) -> str:
    """So long before now, as the API writes it."""
    return times.format(NOW - timedelta(**spans))


# --- objects


def web(
    image: str = "web:1",
    *,
    replicas: int = 4,
    rollout: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Wire:
    """The Workload `web`."""
    made: Wire = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "uid-web",
            "resourceVersion": "7",
            "generation": 3,
            "annotations": dict(annotations or {}),
            "labels": dict(labels or {}),
        },
        "spec": {"image": image, "replicas": replicas, **spec},
    }
    if rollout is not None:
        made["spec"]["rollout"] = dict(rollout)
    if status is not None:
        made["status"] = dict(status)
    return made


def template(image: str, *, configs: Mapping[str, str] | None = None, **spec: Any) -> Template:
    workload = kinds.decode(web(image, **spec))
    assert isinstance(workload, Workload)
    return Template.of(workload, configs)


def revision(image: str, **spec: Any) -> str:
    """The name of the revision that an image makes."""
    return template(image, **spec).revision


def metadata(name: str, **more: Any) -> Wire:
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "5", **more}


def ours() -> list[Wire]:
    return [owner_reference(web())]


def pod(
    name: str,
    image: str = "web:1",
    *,
    ready: bool | str = True,
    phase: str = "Running",
    node: str = "n1",
    created: str = "",
    restarts: int = 0,
    going: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Placed:
    """A replica; `ready` may say since when, which is an hour ago otherwise."""
    since = ready if isinstance(ready, str) else ago(hours=1)
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
    meta = metadata(
        name,
        labels={WORKLOAD: "web", REVISION: revision(image)} if labels is None else dict(labels),
        creationTimestamp=created or ago(hours=2),
        ownerReferences=ours(),
    )
    if going:
        meta["deletionTimestamp"] = ago(seconds=1)
    status = {
        "phase": phase,
        "conditions": [condition],
        "containerStatuses": [{"name": "app", "restartCount": restarts}],
    }
    return PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": node}, "status": status}


def pods(image: str, number: int, **more: Any) -> list[Placed]:
    """So many replicas of an image, each on a node of its own."""
    mark = "-".join([image.replace(":", ""), *(str(value).lower()[:9] for value in more.values())])
    return [pod(f"{mark}-{n}", image, **{"node": f"n{n}", **more}) for n in range(number)]


def record(image: str, number: int = 1, **spec: Any) -> Placed:
    """The ControllerRevision of an image."""
    made = controller_revision(web(), template(image, **spec), number=number)
    made["metadata"] |= metadata(f"{made['metadata']['generateName']}{number}")
    return CONTROLLER_REVISIONS, made


def service(
    name: str = "web", *, serving: str = "", owned: bool = True, switched: bool = False, **selector: str
) -> Placed:
    meta = metadata(name, ownerReferences=ours() if owned else [])
    if switched:
        meta["annotations"] = {"holdfast.dev/switched-for": "web"}
    selected = {WORKLOAD: "web", REVISION: revision(serving)} if serving else {}
    spec = {"selector": {**selector, **selected}, "ports": [{"port": 80}]}
    return SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def budget(name: str = "pdb", *, selector: Mapping[str, Any] | None = None, owned: bool = False, **spec: Any) -> Placed:
    selects = {"matchLabels": {WORKLOAD: "web"}} if selector is None else dict(selector)
    meta = metadata(name, ownerReferences=ours() if owned else [])
    return BUDGETS, {"metadata": meta, "spec": {"selector": selects, **spec}}


def node(name: str, *, cordoned: bool = False) -> Placed:
    return NODES, {"metadata": {"name": name, "uid": name}, "spec": {"unschedulable": cordoned}}


def config(name: str, *, secret: bool = False, uid: str = "", **data: str) -> Placed:
    return (SECRETS if secret else CONFIG_MAPS), {"metadata": metadata(name, uid=uid or f"uid-{name}"), "data": data}


def said(complete: str = "", *, rolling: str = "", **rollout: Any) -> Wire:
    """A status: what was rolled out completely, what is being rolled out, and the facts of that."""
    made: Wire = {"rollout": rollout} if rollout else {}
    if complete:
        made |= {"currentRevision": revision(complete), "updateRevision": revision(rolling or complete)}
    elif rolling:
        made["updateRevision"] = revision(rolling)
    return made


# --- passes


def seen(workload: Wire, *others: Placed | Iterable[Placed]) -> World:
    placed: list[Placed] = [(WORKLOADS, workload)]
    for other in others:
        placed += [other] if isinstance(other, tuple) else other
    world = observe(Snapshot(placed, indexes=INDEXES), Key("default", workload["metadata"]["name"]))
    assert world is not None, "it is there"
    return world


def decided(workload: Wire, *others: Placed | Iterable[Placed], now: datetime = NOW) -> Decision:
    return decide(seen(workload, *others), now)


IMAGES = [f"web:{n}" for n in range(1, 6)]


def deeds(decision: Decision) -> list[str]:
    """What a decision writes, in words, equal ones together, but for the disruption budget."""
    ordered = sorted(decision.writes, key=lambda write: write.wave)
    counted = Counter(_deed(write) for write in ordered if not _is_about_budget(write))
    return [text.replace("*", str(number)) for text, number in counted.items()]


def _is_about_budget(write: Write) -> bool:
    return not isinstance(write, Evict) and write.resource == BUDGETS


def kept_budget(decision: Decision) -> str:
    """What a decision writes about the disruption budget of the Workload, in words."""
    written = [write for write in decision.writes if _is_about_budget(write)]
    assert len(written) <= 1, "one write is enough"
    match written:
        case [Create(manifest=manifest)]:
            return f"create {manifest['metadata']['name']} {_kept(manifest['spec'])}"
        case [Patch(key=key, patch=[{"value": spec}])]:
            return f"patch {key.name} {_kept(spec)}"
        case [Delete(key=key)]:
            return f"delete {key.name}"
        case _:
            return ""


def _kept(spec: Mapping[str, Any]) -> str:
    selected = spec["selector"]["matchLabels"]
    assert selected[WORKLOAD] == "web"
    of = f" of {image_of(selected[REVISION])}" if REVISION in selected else ""
    return f"{spec['minAvailable']}{of}"


def _deed(write: Write) -> str:
    match write:
        case Create(resource=resource, manifest=manifest) if resource == PODS:
            return f"start * of {image_of(manifest['metadata']['labels'][REVISION])}"
        case Create(resource=resource, manifest=manifest) if resource == CONTROLLER_REVISIONS:
            return f"record {image_of(manifest['metadata']['labels'][REVISION])} as {manifest['revision']}"
        case Create(manifest=manifest):
            selected = manifest["spec"]["selector"][REVISION]
            return f"make {manifest['kind']} {manifest['metadata']['name']} for {image_of(selected)}"
        case Evict(key=key):
            return f"evict {key.name}"
        case Delete(resource=resource, key=key):
            return f"stop {key.name}" if resource == PODS else f"forget {image_of(key.name.split('-')[1])}"
        case Patch(resource=resource, key=key, patch=patch) if resource == PODS:
            return f"{'adopt' if patch['metadata']['ownerReferences'] else 'release'} {key.name}"
        case Patch(resource=resource, key=key, patch=patch) if resource == SERVICES:
            selected = patch["spec"]["selector"][REVISION]
            return f"switch {key.name} to {image_of(selected) if selected else 'all'}"
        case Patch(resource=resource, patch=patch) if resource == WORKLOADS:
            return f"reject {image_of(patch['metadata']['annotations']['holdfast.dev/rejected-revision'])}"
        case Patch(key=key, patch=patch):
            return f"renumber {image_of(key.name.split('-')[1])} to {patch['revision']}"
        case _:
            raise AssertionError(f"not expected of this operator: {write}")


def image_of(name: str) -> str:
    """The image whose revision has this name, where the spec says nothing else."""
    return next((image for image in IMAGES if revision(image) == name), name)


def status(decision: Decision) -> Wire:
    assert decision.status is not None, "every decision has a status"
    return dict(decision.status)


def condition(decision: Decision | Mapping[str, Any], type: str) -> str:
    """A condition as ``True Reason``."""
    says = status(decision) if isinstance(decision, Decision) else decision
    found = next(each for each in says["conditions"] if each["type"] == type)
    return f"{found['status']} {found['reason']}"


def code(decision: Decision) -> str:
    return str(status(decision)["rollout"]["because"]["code"])


def notices(decision: Decision) -> Iterator[str]:
    return (f"{each.type} {each.reason}" for each in decision.notices)
