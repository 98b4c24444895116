"""Node, and Lease, PriorityClass and RuntimeClass."""

from __future__ import annotations

from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, NONE, column, field, get, joined
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.pods.checks import TAINT_EFFECTS
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta import names
from holdfast.meta.ages import UNKNOWN
from holdfast.meta.errors import FieldError

ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ROLE_LABEL: Final = "kubernetes.io/role"
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"


def _default_node(obj: Object) -> None:
    """The allocatable resources of a Node are its capacity unless it sets them."""
    status = obj.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _validate_node(obj: Object, old: Object | None) -> list[FieldError]:
    problems: list[FieldError] = []
    seen = set()
    for place, taint in each(get(obj, "spec", "taints"), "spec.taints"):
        problems += checks.named(taint.get("key"), f"{place}.key", rule=names.label_key)
        problems += checks.chosen(taint.get("effect"), f"{place}.effect", among=TAINT_EFFECTS)
        key = (taint.get("key"), taint.get("effect"))
        problems += [FieldError.duplicate(place, taint)] if key in seen else []
        seen.add(key)
    if old is not None:
        had, has = get(old, "spec", "providerID"), get(obj, "spec", "providerID")
        if had and had != has:
            detail = 'node updates may not change providerID except from "" to valid'
            problems.append(FieldError.forbidden("spec.providerID", detail))
    return problems


def _state(obj: Object) -> str:
    conditions = get(obj, "status", "conditions", default=())
    ready = next((e.get("status") for e in conditions if e.get("type") == "Ready"), None)
    shown = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if get(obj, "spec", "unschedulable"):
        shown.append("SchedulingDisabled")
    return joined(shown)


def _roles(obj: Object) -> str:
    labels = get(obj, "metadata", "labels", default={})
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles |= {labels[ROLE_LABEL]} if labels.get(ROLE_LABEL) else set()
    return joined(sorted(roles - {""}), otherwise=NONE)


def _address(obj: Object, kind: str) -> str:
    addresses = get(obj, "status", "addresses", default=())
    return next((each["address"] for each in addresses if each.get("type") == kind), NONE)


def _validate_lease(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    return [
        *checks.positive(spec.get("leaseDurationSeconds"), "spec.leaseDurationSeconds"),
        *checks.not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions"),
    ]


def _validate_priority(obj: Object, old: Object | None) -> list[FieldError]:
    return list(_priority_problems(obj, old))


def _priority_problems(obj: Object, old: Object | None) -> Problems:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if old is not None:
        if value != old.get("value", 0):
            yield FieldError.forbidden("value", "may not be changed in an update.")
        if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
            yield FieldError.invalid("preemptionPolicy", obj.get("preemptionPolicy"), detail=checks.IMMUTABLE)
        return
    if name.startswith(SYSTEM_PREFIX) and (name, value) not in SYSTEM_PRIORITIES.items():
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        yield FieldError.forbidden("metadata.name", detail)
    elif not name.startswith(SYSTEM_PREFIX) and value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield FieldError.forbidden("value", detail)
    among = ("Never", "PreemptLowerPriority")
    yield from checks.maybe_chosen(obj.get("preemptionPolicy"), "preemptionPolicy", among=among)


SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _validate_runtime(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(checks.named(obj.get("handler"), "handler", rule=names.dns_label))
    if old is not None:
        problems += checks.unchanged(obj.get("handler"), old.get("handler"), path="handler")
    return problems


NODE: Final = builtin(
    "Node",
    namespaced=False,
    short_names=("no",),
    status=True,
    keeps_status=True,
    generation=False,
    columns=(
        NAME,
        column("Status", _state),
        column("Roles", _roles),
        AGE,
        field("Version", "status", "nodeInfo", "kubeletVersion"),
        column("Internal-IP", lambda obj: _address(obj, "InternalIP"), wide=True),
        column("External-IP", lambda obj: _address(obj, "ExternalIP"), wide=True),
        column("OS-Image", lambda obj: get(obj, "status", "nodeInfo", "osImage") or UNKNOWN, wide=True),
        column("Kernel-Version", lambda obj: get(obj, "status", "nodeInfo", "kernelVersion") or UNKNOWN, wide=True),
        column(
            "Container-Runtime",
            lambda obj: get(obj, "status", "nodeInfo", "containerRuntimeVersion") or UNKNOWN,
            wide=True,
        ),
    ),
    fields=("spec.unschedulable",),
    default=_default_node,
    validate=_validate_node,
)
LEASE: Final = builtin(
    "Lease",
    group="coordination.k8s.io",
    generation=False,
    columns=(NAME, field("Holder", "spec", "holderIdentity"), AGE),
    validate=_validate_lease,
    created_by_update=True,
    unconditional=False,
)
PRIORITY_CLASS: Final = builtin(
    "PriorityClass",
    group="scheduling.k8s.io",
    plural="priorityclasses",
    namespaced=False,
    short_names=("pc",),
    columns=(
        NAME,
        field("Value", "value", type="integer", default=0),
        field("Global-Default", "globalDefault", type="boolean", default=False),
        AGE,
        field("PreemptionPolicy", "preemptionPolicy"),
    ),
    validate=_validate_priority,
)
RUNTIME_CLASS: Final = builtin(
    "RuntimeClass",
    group="node.k8s.io",
    plural="runtimeclasses",
    namespaced=False,
    generation=False,
    columns=(NAME, field("Handler", "handler"), AGE),
    validate=_validate_runtime,
    unconditional=False,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (NODE, LEASE, PRIORITY_CLASS, RUNTIME_CLASS)
