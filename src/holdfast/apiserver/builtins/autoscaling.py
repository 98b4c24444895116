"""HorizontalPodAutoscaler (v1 and v2) and PodDisruptionBudget.

Autoscalers are stored as v2; `to_v2` and `to_v1` convert between the two.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, UNSET, column, field, get, number
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.ages import UNKNOWN
from holdfast.meta.errors import FieldError
from holdfast.meta.schemas.walk import copied

DEFAULT_CPU_PERCENT: Final = 80
SOURCES: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
"""The field of each type of metric."""

SHOWN_METRICS: Final = 2
_BOTH: Final = "minAvailable and maxUnavailable cannot be both set"


def _cpu_metric(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _default_autoscaler(obj: Object) -> None:
    spec = obj["spec"]
    if not spec.get("metrics"):
        spec["metrics"] = [_cpu_metric(DEFAULT_CPU_PERCENT)]
    behavior = spec.get("behavior")
    if behavior is not None:
        _default_behavior(behavior)


def _default_behavior(behavior: Object) -> None:
    """Up at once and by leaps, down as far as the last five minutes allow."""
    up = behavior.setdefault("scaleUp", {})
    up.setdefault("stabilizationWindowSeconds", 0)
    up.setdefault("selectPolicy", "Max")
    up.setdefault(
        "policies",
        [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}],
    )
    down = behavior.setdefault("scaleDown", {})
    down.setdefault("selectPolicy", "Max")
    down.setdefault("policies", [{"type": "Percent", "value": 100, "periodSeconds": 15}])


def _default_autoscaler_v1(obj: Object) -> None:
    obj["spec"].setdefault("targetCPUUtilizationPercentage", DEFAULT_CPU_PERCENT)


def to_v2(v1: Object) -> Object:
    """An autoscaler of v1 as it is stored."""
    v2: Object = copied(v1) | {"apiVersion": "autoscaling/v2"}
    percent = v2["spec"].pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        v2["spec"]["metrics"] = [_cpu_metric(percent)]
    status = v2.get("status") or {}
    current = status.pop("currentCPUUtilizationPercentage", None)
    if current is not None:
        measured = {"name": "cpu", "current": {"averageUtilization": current}}
        status["currentMetrics"] = [{"type": "Resource", "resource": measured}]
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)  # v1 always has it, v2 only where it is not zero
    return v2


def to_v1(v2: Object) -> Object:
    """A stored autoscaler as v1, which has only the CPU metric."""
    v1: Object = copied(v2) | {"apiVersion": "autoscaling/v1"}
    v1["spec"].pop("behavior", None)
    for metric in v1["spec"].pop("metrics", None) or ():
        percent = get(metric, "resource", "target", "averageUtilization")
        if get(metric, "resource", "name") == "cpu" and percent is not None:
            v1["spec"]["targetCPUUtilizationPercentage"] = percent
    status = v1.get("status") or {}
    status.pop("conditions", None)
    for metric in status.pop("currentMetrics", None) or ():
        percent = get(metric, "resource", "current", "averageUtilization")
        if get(metric, "resource", "name") == "cpu" and percent is not None:
            status["currentCPUUtilizationPercentage"] = percent
    status.setdefault("currentReplicas", 0)
    return v1


def _bounds(spec: Object) -> Problems:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if low is not None and low < 1:
        yield FieldError.invalid("spec.minReplicas", low, detail="must be greater than or equal to 1")
    if high < 1:
        yield FieldError.invalid("spec.maxReplicas", high, detail=checks.POSITIVE)
    elif low is not None and high < low:
        yield FieldError.invalid("spec.maxReplicas", high, detail="must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        yield from checks.required(target.get(name), f"spec.scaleTargetRef.{name}")


def _validate_autoscaler(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_bounds(obj["spec"]))
    for place, metric in each(obj["spec"].get("metrics"), "spec.metrics"):
        problems += _metric(metric, place)
    for name in ("scaleUp", "scaleDown"):
        rules, at = get(obj, "spec", "behavior", name, default={}), f"spec.behavior.{name}"
        problems += checks.not_negative(rules.get("stabilizationWindowSeconds"), f"{at}.stabilizationWindowSeconds")
        among = ("Disabled", "Max", "Min")
        problems += checks.maybe_chosen(rules.get("selectPolicy"), f"{at}.selectPolicy", among=among)
    return problems


def _metric(metric: Object, path: str) -> Problems:
    kind = metric.get("type")
    if not kind:
        yield FieldError.required(f"{path}.type", "must specify a metric source type")
    elif kind not in SOURCES:
        yield FieldError.not_supported(f"{path}.type", kind, supported=sorted(SOURCES))
    elif SOURCES[kind] not in metric:
        detail = "must populate information for the given metric source"
        yield FieldError.required(f"{path}.{SOURCES[kind]}", detail)
    else:
        among = ("AverageValue", "Utilization", "Value")
        target = get(metric, SOURCES[kind], "target", "type")
        yield from checks.chosen(target, f"{path}.{SOURCES[kind]}.target.type", among=among)


def _validate_autoscaler_v1(obj: Object, old: Object | None) -> list[FieldError]:
    percent = obj["spec"].get("targetCPUUtilizationPercentage")
    return [*_bounds(obj["spec"]), *checks.positive(percent, "spec.targetCPUUtilizationPercentage")]


def _targets(obj: Object) -> str:
    """The current and the target value of each metric."""
    current = get(obj, "status", "currentMetrics", default=())
    wanted = get(obj, "spec", "metrics", default=())
    shown = [_target(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(wanted)]
    more = len(shown) - SHOWN_METRICS
    text = ", ".join(shown[:SHOWN_METRICS])
    return f"{text} + {more} more..." if more > 0 else text or "<none>"


def _target(metric: Object, status: Object) -> str:
    source = SOURCES.get(metric.get("type", ""), "")
    target, now = get(metric, source, "target", default={}), get(status, source, "current", default={})
    label = f"{get(metric, source, 'name')}: " if source in ("resource", "containerResource") else ""
    if "averageUtilization" in target:
        return f"{label}{_percent(now.get('averageUtilization'))}/{target['averageUtilization']}%"
    name = "averageValue" if "averageValue" in target else "value"
    average = " (avg)" if name == "averageValue" and source in ("external", "object") else ""
    return f"{label}{now.get(name, UNKNOWN)}/{target.get(name, UNKNOWN)}{average}"


def _percent(value: Any) -> str:
    return UNKNOWN if value is None else f"{value}%"


def _target_v1(obj: Object) -> str:
    wanted = get(obj, "spec", "targetCPUUtilizationPercentage", default=UNKNOWN)
    return f"cpu: {_percent(get(obj, 'status', 'currentCPUUtilizationPercentage'))}/{wanted}%"


def _reference(obj: Object) -> str:
    return f"{get(obj, 'spec', 'scaleTargetRef', 'kind')}/{get(obj, 'spec', 'scaleTargetRef', 'name')}"


def _validate_budget(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    problems: list[FieldError] = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        problems.append(FieldError.invalid("spec", spec, detail=_BOTH))
    for name in ("minAvailable", "maxUnavailable"):
        problems += checks.int_or_percent(spec.get(name), f"spec.{name}")
        problems += checks.at_most_all(spec.get(name), f"spec.{name}")
    problems += checks.label_selector(spec.get("selector"), "spec.selector")
    among = ("AlwaysAllow", "IfHealthyBudget")
    policy = spec.get("unhealthyPodEvictionPolicy")
    return [*problems, *checks.maybe_chosen(policy, "spec.unhealthyPodEvictionPolicy", among=among)]


_AUTOSCALER: Final[dict[str, Any]] = {
    "group": "autoscaling",
    "short_names": ("hpa",),
    "categories": ("all",),
    "status": True,
    "generation": False,
    "storage_version": "v2",
}
_REPLICAS: Final = (
    field("MinPods", "spec", "minReplicas", default=UNSET),
    field("MaxPods", "spec", "maxReplicas", default=0),
    field("Replicas", "status", "currentReplicas", default=0),
    AGE,
)
AUTOSCALER: Final = builtin(
    "HorizontalPodAutoscaler",
    version="v2",
    columns=(NAME, column("Reference", _reference), column("Targets", _targets), *_REPLICAS),
    default=_default_autoscaler,
    validate=_validate_autoscaler,
    **_AUTOSCALER,
)
AUTOSCALER_V1: Final = builtin(
    "HorizontalPodAutoscaler",
    type_name="HorizontalPodAutoscalerV1",
    columns=(NAME, column("Reference", _reference), column("Targets", _target_v1), *_REPLICAS),
    default=_default_autoscaler_v1,
    validate=_validate_autoscaler_v1,
    **_AUTOSCALER,
)
BUDGET: Final = builtin(
    "PodDisruptionBudget",
    group="policy",
    short_names=("pdb",),
    status=True,
    columns=(
        NAME,
        field("Min Available", "spec", "minAvailable", default="N/A"),
        field("Max Unavailable", "spec", "maxUnavailable", default="N/A"),
        number("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
    validate=_validate_budget,
    unconditional=False,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (AUTOSCALER, AUTOSCALER_V1, BUDGET)
