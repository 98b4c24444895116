"""Workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, ControllerRevision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.builtins.common.columns import (
    AGE,
    NAME,
    NONE,
    column,
    field,
    get,
    number,
    selector_text,
    template_columns,
)
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.pods.checks import template_problems
from holdfast.apiserver.builtins.pods.defaults import default_template
from holdfast.apiserver.builtins.types.library import TYPES
from holdfast.apiserver.builtins.volumes import claim_spec_problems
from holdfast.apiserver.resources import Object, ResourceType, Scale
from holdfast.meta.errors import FieldError
from holdfast.meta.objects import controller_of

MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFULSET_FIXED: Final = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
SCALE: Final = Scale(selector=".spec.selector", selector_form="object")
_TEMPLATE: Final = ("spec", "template")
_SELECTOR: Final = ("spec", "selector")


# Defaults.


def _rolling(strategy: Object, bounds: str) -> None:
    """A rolling update has bounds even if the object sets none."""
    if strategy.get("type") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", TYPES.blank(bounds))


def _default_deployment(obj: Object) -> None:
    default_template(obj["spec"]["template"])
    _rolling(obj["spec"]["strategy"], "RollingUpdateDeployment")


def _default_replica_set(obj: Object) -> None:
    default_template(obj["spec"]["template"])


def _default_stateful_set(obj: Object) -> None:
    spec = obj["spec"]
    default_template(spec["template"])
    _rolling(spec["updateStrategy"], "RollingUpdateStatefulSetStrategy")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _default_daemon_set(obj: Object) -> None:
    default_template(obj["spec"]["template"])
    _rolling(obj["spec"]["updateStrategy"], "RollingUpdateDaemonSet")


def _default_replication_controller(obj: Object) -> None:
    template = obj["spec"].get("template")
    if template is None:
        return
    default_template(template)
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        obj["spec"].setdefault("selector", dict(labels))
        obj["metadata"].setdefault("labels", dict(labels))


# Checks.


def _selected_template(spec: Object, *, what: str) -> Problems:
    """A selector is required, must not be empty, and must match the labels of the template."""
    selector, labels = spec.get("selector"), get(spec, "template", "metadata", "labels", default={})
    broken = list(checks.label_selector(selector, "spec.selector"))
    if selector is None:
        yield FieldError.required("spec.selector")
    elif not selector:
        yield FieldError.invalid("spec.selector", selector, detail=f"empty selector is invalid for {what}")
    yield from broken
    if selector and not broken and not checks.selects(selector, labels):
        yield FieldError.invalid("spec.template.metadata.labels", labels, detail=MISMATCH)
    yield from template_problems(_with_claims(spec), "spec.template")


def _with_claims(spec: Object) -> Object:
    """The pod template of a StatefulSet, with the volumes of its claim templates."""
    template: Object = spec["template"]
    given = get(template, "spec", "volumes", default=[])
    named = {volume.get("name") for volume in given}
    claimed = [get(claim, "metadata", "name") for claim in spec.get("volumeClaimTemplates") or ()]
    added = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed if name and name not in named
    ]
    return {**template, "spec": {**template["spec"], "volumes": [*given, *added]}} if added else template


def _always_restarting(spec: Object) -> Problems:
    policy = get(spec, "template", "spec", "restartPolicy")
    if policy != "Always":
        yield FieldError.not_supported("spec.template.spec.restartPolicy", policy, supported=("Always",))
    if get(spec, "template", "spec", "activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield FieldError.forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _counts(spec: Object, *names: str) -> Problems:
    for name in names:
        yield from checks.not_negative(spec.get(name), f"spec.{name}")


def _surge(update: Object, path: str) -> Problems:
    """The bounds of a rolling update, of which at least one must not be zero."""
    for name in ("maxUnavailable", "maxSurge"):
        yield from checks.int_or_percent(update.get(name), f"{path}.{name}")
    yield from checks.at_most_all(update.get("maxUnavailable"), f"{path}.maxUnavailable")
    if _is_zero(update.get("maxUnavailable")) and _is_zero(update.get("maxSurge")):
        at, value = f"{path}.maxUnavailable", update.get("maxUnavailable")
        yield FieldError.invalid(at, value, detail="may not be 0 when `maxSurge` is 0")


def _is_zero(value: Any) -> bool:
    return value in (0, "0%")


def _validate_deployment(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_deployment_problems(obj["spec"]), *_same_selector(obj, old)]


def _deployment_problems(spec: Object) -> Problems:
    yield from _counts(spec, "replicas")
    yield from _selected_template(spec, what="deployment")
    yield from _always_restarting(spec)
    strategy = spec["strategy"]
    among = ("Recreate", "RollingUpdate")
    yield from checks.chosen(strategy.get("type"), "spec.strategy.type", among=among)
    update, at = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if strategy.get("type") == "Recreate" and update is not None:
        yield FieldError.forbidden(at, "may not be specified when strategy `type` is 'Recreate'")
    elif strategy.get("type") == "RollingUpdate":
        yield from _surge(update or {}, at)
    yield from _counts(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
    if deadline is not None and deadline <= ready:
        detail = "must be greater than minReadySeconds"
        yield FieldError.invalid("spec.progressDeadlineSeconds", deadline, detail=detail)


def _same_selector(obj: Object, old: Object | None) -> Problems:
    if old is not None:
        yield from checks.unchanged(get(obj, *_SELECTOR), get(old, *_SELECTOR), path="spec.selector")


def _validate_replica_set(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    return [
        *_counts(spec, "replicas", "minReadySeconds"),
        *_selected_template(spec, what="replicaset"),
        *_always_restarting(spec),
        *_same_selector(obj, old),
    ]


def _validate_stateful_set(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_stateful_set_problems(obj["spec"]))
    if old is not None:
        for name in _STATEFULSET_FIXED:
            problems += checks.unchanged(obj["spec"].get(name), old["spec"].get(name), path=f"spec.{name}")
    return problems


def _stateful_set_problems(spec: Object) -> Problems:
    among = ("OrderedReady", "Parallel")
    yield from checks.chosen(spec.get("podManagementPolicy"), "spec.podManagementPolicy", among=among)
    strategy = spec["updateStrategy"]
    yield from checks.chosen(strategy.get("type"), "spec.updateStrategy.type", among=("RollingUpdate", "OnDelete"))
    update, at = strategy.get("rollingUpdate"), "spec.updateStrategy.rollingUpdate"
    if strategy.get("type") == "OnDelete" and update is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield FieldError.invalid(at, update, detail=detail)
    elif update is not None:
        yield from checks.not_negative(update.get("partition"), f"{at}.partition")
        yield from checks.int_or_percent(update.get("maxUnavailable"), f"{at}.maxUnavailable")
        if _is_zero(update.get("maxUnavailable")):
            yield FieldError.invalid(f"{at}.maxUnavailable", update["maxUnavailable"], detail="cannot be 0")
    policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
        yield from checks.maybe_chosen(policy.get(name), path, among=("Retain", "Delete"))
    yield from _counts(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from checks.not_negative(get(spec, "ordinals", "start"), "spec.ordinals.start")
    yield from _selected_template(spec, what="statefulset")
    yield from _always_restarting(spec)
    for place, claim in checks.each(spec.get("volumeClaimTemplates"), "spec.volumeClaimTemplates"):
        yield from claim_spec_problems(claim.get("spec") or {}, f"{place}.spec")


def _validate_daemon_set(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_daemon_set_problems(obj["spec"]), *_same_selector(obj, old)]


def _daemon_set_problems(spec: Object) -> Problems:
    yield from _selected_template(spec, what="daemonset")
    yield from _always_restarting(spec)
    yield from _counts(spec, "minReadySeconds", "revisionHistoryLimit")
    strategy = spec["updateStrategy"]
    yield from checks.chosen(strategy.get("type"), "spec.updateStrategy.type", among=("RollingUpdate", "OnDelete"))
    if strategy.get("type") == "RollingUpdate":
        yield from _surge(strategy.get("rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate")


def _validate_replication_controller(obj: Object, old: Object | None) -> list[FieldError]:
    return list(_replication_controller_problems(obj["spec"]))


def _replication_controller_problems(spec: Object) -> Problems:
    yield from _counts(spec, "replicas", "minReadySeconds")
    yield from checks.required(spec.get("selector"), "spec.selector")
    template = spec.get("template")
    if template is None:
        yield FieldError.required("spec.template")
        return
    labels = get(template, "metadata", "labels", default={})
    if any(labels.get(key) != value for key, value in (spec.get("selector") or {}).items()):
        yield FieldError.invalid("spec.template.metadata.labels", labels, detail=MISMATCH)
    yield from template_problems(template, "spec.template")
    yield from _always_restarting(spec)


def _validate_revision(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(checks.not_negative(obj.get("revision"), "revision"))
    if old is not None:
        problems += checks.unchanged(obj.get("data"), old.get("data"), path="data")
    elif obj.get("data") is None:
        problems.append(FieldError.required("data", "data is mandatory"))
    return problems


# Columns.


def _ready(obj: Object) -> str:
    return f"{get(obj, 'status', 'readyReplicas', default=0)}/{get(obj, 'spec', 'replicas', default=0)}"


def _controller(obj: Object) -> str:
    owner = controller_of(obj)
    if owner is None:
        return NONE
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"


_WIDE: Final = template_columns(*_TEMPLATE, selector=_SELECTOR)
_REPLICA_COLUMNS: Final = (
    NAME,
    number("Desired", "spec", "replicas"),
    number("Current", "status", "replicas"),
    number("Ready", "status", "readyReplicas"),
    AGE,
    *_WIDE,
)

DEPLOYMENT: Final = builtin(
    "Deployment",
    group="apps",
    short_names=("deploy",),
    categories=("all",),
    status=True,
    scale=SCALE,
    columns=(
        NAME,
        column("Ready", _ready, description="Ready pods and desired pods."),
        field("Up-to-date", "status", "updatedReplicas", default=0),
        field("Available", "status", "availableReplicas", default=0),
        AGE,
        *_WIDE,
    ),
    default=_default_deployment,
    validate=_validate_deployment,
    status_leaves=("labels",),
)
REPLICA_SET: Final = builtin(
    "ReplicaSet",
    group="apps",
    short_names=("rs",),
    categories=("all",),
    status=True,
    scale=SCALE,
    columns=_REPLICA_COLUMNS,
    fields=("status.replicas",),
    default=_default_replica_set,
    validate=_validate_replica_set,
)
STATEFUL_SET: Final = builtin(
    "StatefulSet",
    group="apps",
    short_names=("sts",),
    categories=("all",),
    status=True,
    scale=SCALE,
    columns=(NAME, column("Ready", _ready), AGE, *template_columns(*_TEMPLATE)),
    default=_default_stateful_set,
    validate=_validate_stateful_set,
)
DAEMON_SET: Final = builtin(
    "DaemonSet",
    group="apps",
    short_names=("ds",),
    categories=("all",),
    status=True,
    columns=(
        NAME,
        number("Desired", "status", "desiredNumberScheduled"),
        number("Current", "status", "currentNumberScheduled"),
        number("Ready", "status", "numberReady"),
        number("Up-to-date", "status", "updatedNumberScheduled"),
        number("Available", "status", "numberAvailable"),
        column("Node Selector", lambda obj: selector_text(get(obj, *_TEMPLATE, "spec", "nodeSelector"))),
        AGE,
        *_WIDE,
    ),
    default=_default_daemon_set,
    validate=_validate_daemon_set,
)
REPLICATION_CONTROLLER: Final = builtin(
    "ReplicationController",
    short_names=("rc",),
    categories=("all",),
    status=True,
    scale=replace(SCALE, selector_form="labels"),
    columns=_REPLICA_COLUMNS,
    fields=("status.replicas",),
    default=_default_replication_controller,
    validate=_validate_replication_controller,
    dependents="orphan",
)
CONTROLLER_REVISION: Final = builtin(
    "ControllerRevision",
    group="apps",
    generation=False,
    columns=(NAME, column("Controller", _controller), field("Revision", "revision", default=0), AGE),
    validate=_validate_revision,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (
    REPLICATION_CONTROLLER,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    CONTROLLER_REVISION,
)
