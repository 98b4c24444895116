"""What the demo knows of each kind: where its floors are, when it runs, and how it is changed.

A kind is one row of `SUBJECTS`; the rest of the demo knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast import kinds
from holdfast.cli.errors import Complaint, InputError
from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import View

Wire = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How objects of one kind are read.

    group      the group of pods that a pod belongs to, by its labels, if it is the object's
    floors     how many of each group must stay ready, and how many there are
    runs       whether what the spec asks for is rolled out
    recovered  whether a broken revision was held and taken back; None: the kind does not do so by itself
    says       what it does, and why
    change     a patch that asks for another version of the image
    """

    group: Callable[[str, Mapping[str, str]], str | None]
    floors: Callable[[Wire, View], Mapping[str, tuple[int, int]]]
    runs: Callable[[Wire], bool]
    recovered: Callable[[Wire], bool] | None
    says: Callable[[Wire], tuple[str, str]]
    change: Callable[[Wire, str], Wire]


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of the demo."""

    manifest: dict[str, Any]
    resource: Resource
    rules: Rules

    @property
    def key(self) -> Key:
        return Key(self.manifest["metadata"]["namespace"], self.manifest["metadata"]["name"])

    @property
    def title(self) -> str:
        return f"{self.resource.kind} {self.key.name}"

    @property
    def breakable(self) -> bool:
        return self.rules.recovered is not None

    def group(self, pod: Object) -> str | None:
        return self.rules.group(self.key.name, pod.meta.labels)

    def floors(self, view: View) -> dict[str, int]:
        return {name: floor for name, (floor, _) in self._floors(view).items()}

    def size(self, view: View, group: str) -> int:
        return self._floors(view).get(group, (0, 0))[1]

    def runs(self, view: View) -> bool:
        wire = self._wire(view)
        return wire is not None and self.rules.runs(wire)

    def recovered(self, view: View) -> bool:
        wire = self._wire(view)
        return wire is not None and self.rules.recovered is not None and self.rules.recovered(wire)

    def says(self, view: View) -> tuple[str, str]:
        wire = self._wire(view)
        return ("new", "not seen yet") if wire is None else self.rules.says(wire)

    def change(self, version: str) -> Wire:
        return self.rules.change(self.manifest, version)

    def _floors(self, view: View) -> Mapping[str, tuple[int, int]]:
        wire = self._wire(view)
        return {} if wire is None else self.rules.floors(wire, view)

    def _wire(self, view: View) -> Wire | None:
        obj = view.get(self.resource, self.key)
        return None if obj is None else obj.wire()


def subject_of(manifest: Mapping[str, Any]) -> Subject:
    """The subject that a manifest describes."""
    kind = kinds.find(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind is None or kind.name not in SUBJECTS:
        message = f"the demo knows {', '.join(SUBJECTS)}, not {manifest.get('kind')}"
        raise InputError(Complaint(message=message, path="kind"))
    metadata = {"namespace": "default", **manifest["metadata"]}
    return Subject({**manifest, "metadata": metadata}, Resource.of(kind), SUBJECTS[kind.name])


def _status(wire: Wire) -> Wire:
    status: Wire = wire.get("status") or {}
    return status


def _is_current(wire: Wire) -> bool:
    return bool(_status(wire).get("observedGeneration") == wire["metadata"].get("generation"))


def _image(image: str, version: str) -> str:
    return f"{image.rpartition(':')[0]}:{version}"


# --- Workloads


def _workload_says(wire: Wire) -> tuple[str, str]:
    because = (_status(wire).get("rollout") or {}).get("because") or {}
    return _status(wire).get("phase", "new"), because.get("message", "nothing is known yet")


def _workload_recovered(wire: Wire) -> bool:
    """The revision was rejected, and all replicas are of the one before."""
    status = _status(wire)
    whole = status.get("availableReplicas") == wire["spec"].get("replicas", 1) and not status.get("oldReplicas")
    return _is_current(wire) and whole and bool(status.get("rejectedRevision"))


WORKLOAD: Final = Rules(
    group=lambda name, labels: f"workload {name}" if labels.get("cloudless.io/workload") == name else None,
    floors=lambda wire, view: {
        f"workload {wire['metadata']['name']}": (
            (_status(wire).get("limits") or {}).get("floor", 0),
            wire["spec"].get("replicas", 1),
        )
    },
    runs=lambda wire: _is_current(wire) and _status(wire).get("phase") == "Completed",
    recovered=_workload_recovered,
    says=_workload_says,
    change=lambda manifest, version: {"spec": {"image": _image(manifest["spec"]["image"], version)}},
)

# --- PodCliqueSets

_CLIQUES: Final = Resource("grove.io", "v1alpha1", "podcliques", "PodClique")
_SET: Final = "app.kubernetes.io/part-of"
_CLIQUE: Final = "grove.io/podclique"


def _clique(name: str, labels: Mapping[str, str]) -> str | None:
    return f"clique {labels[_CLIQUE]}" if labels.get(_SET) == name and _CLIQUE in labels else None


def _clique_floors(wire: Wire, view: View) -> Mapping[str, tuple[int, int]]:
    metadata = wire["metadata"]
    ours = LabelSelector.from_object({"matchLabels": {_SET: metadata["name"]}})
    cliques = view.list(_CLIQUES, namespace=metadata["namespace"], labels=ours)
    specs = {each.key.name: each.wire()["spec"] for each in cliques}
    return {f"clique {name}": (spec.get("minAvailable", 0), spec["replicas"]) for name, spec in specs.items()}


def _set_change(manifest: Wire, version: str) -> Wire:
    template = manifest["spec"]["template"]
    return {"spec": {"template": {"cliques": [_clique_change(clique, version) for clique in template["cliques"]]}}}


def _clique_change(clique: Wire, version: str) -> Wire:
    spec = clique["spec"]
    containers = [{**each, "image": _image(each["image"], version)} for each in spec["podSpec"]["containers"]]
    return {**clique, "spec": {**spec, "podSpec": {**spec["podSpec"], "containers": containers}}}


def _set_runs(wire: Wire) -> bool:
    status, replicas = _status(wire), wire["spec"].get("replicas", 0)
    whole = status.get("availableReplicas") == status.get("updatedReplicas") == replicas
    return _is_current(wire) and whole and not _is_true(wire, "UpdateInProgress")


def _set_says(wire: Wire) -> tuple[str, str]:
    for type, phase in (("Blocked", "Blocked"), ("UpdateInProgress", "Updating"), ("Progressing", "Progressing")):
        if _is_true(wire, type):
            return phase, _message(wire, type)
    return ("Ready" if _is_true(wire, "Ready") else "new"), _message(wire, "Ready")


SET: Final = Rules(
    group=_clique,
    floors=_clique_floors,
    runs=_set_runs,
    recovered=None,
    says=_set_says,
    change=_set_change,
)


# --- Tenants


def _pool(name: str, labels: Mapping[str, str]) -> str | None:
    return f"pool {name}/{labels['rustfs.pool']}" if labels.get("rustfs.tenant") == name else None


def _pool_floors(wire: Wire, view: View) -> Mapping[str, tuple[int, int]]:
    away = (wire["spec"].get("rollout") or {}).get("maxUnavailable", 1)
    name, pools = wire["metadata"]["name"], wire["spec"]["pools"]
    return {f"pool {name}/{pool['name']}": (pool["servers"] - away, pool["servers"]) for pool in pools}


def _tenant_runs(wire: Wire) -> bool:
    pools = _status(wire).get("pools") or ()
    done = all(pool.get("state") == "PoolRolloutComplete" for pool in pools)
    return _is_current(wire) and bool(pools) and done and _status(wire).get("currentState") == "Ready"


def _tenant_says(wire: Wire) -> tuple[str, str]:
    reconciling = "Reconciling" if _is_true(wire, "Reconciling") else "Ready"
    return _status(wire).get("currentState", "new"), _message(wire, reconciling)


TENANT: Final = Rules(
    group=_pool,
    floors=_pool_floors,
    runs=_tenant_runs,
    recovered=None,
    says=_tenant_says,
    # Its images have versions of their own: the next one of those that are known to work.
    change=lambda manifest, version: {"spec": {"image": _image(manifest["spec"]["image"], "1.0.0-beta.11")}},
)


def _condition(wire: Wire, type: str) -> Wire:
    conditions = _status(wire).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type), {})


def _is_true(wire: Wire, type: str) -> bool:
    return _condition(wire, type).get("status") == "True"


def _message(wire: Wire, type: str) -> str:
    return str(_condition(wire, type).get("message", "nothing is known yet"))


SUBJECTS: Final = {"Workload": WORKLOAD, "PodCliqueSet": SET, "Tenant": TENANT}
"""The kinds that the demo knows."""
