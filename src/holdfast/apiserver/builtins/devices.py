"""Dynamic resources: claims, their templates, device classes, slices.  No controller allocates devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, column, field, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta import names
from holdfast.meta.errors import OMITTED, FieldError

GROUP: Final = "resource.k8s.io"


def _requests(spec: Object) -> Iterator[Object]:
    for request in get(spec, "devices", "requests", default=()):
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _default(spec: Object) -> None:
    """A request is for one device, unless it says otherwise."""
    for request in _requests(spec):
        request["allocationMode"] = request.get("allocationMode") or "ExactCount"
        if request["allocationMode"] == "ExactCount":
            request["count"] = request.get("count") or 1


def _problems(spec: Object, path: str) -> Problems:
    for place, request in each(get(spec, "devices", "requests"), f"{path}.devices.requests"):
        yield from checks.required(request.get("name"), f"{place}.name")
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
        if bool(exactly) == bool(alternatives):
            detail = "exactly one of `exactly` or `firstAvailable` is required"
            yield FieldError.required(place, detail)
        if exactly:
            yield from checks.required(exactly.get("deviceClassName"), f"{place}.exactly.deviceClassName")
        for inner, alternative in each(alternatives, f"{place}.firstAvailable"):
            yield from checks.required(alternative.get("name"), f"{inner}.name")
            yield from checks.required(alternative.get("deviceClassName"), f"{inner}.deviceClassName")


def _immutable(obj: Object, old: Object | None) -> Problems:
    if old is not None and obj.get("spec") != old.get("spec"):
        yield FieldError.invalid("spec", OMITTED, detail="field is immutable")


def _default_claim(obj: Object) -> None:
    _default(obj.get("spec") or {})


def _default_template(obj: Object) -> None:
    _default(get(obj, "spec", "spec", default={}))


def _validate_claim(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_problems(obj.get("spec") or {}, "spec"), *_immutable(obj, old)]


def _validate_template(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_problems(get(obj, "spec", "spec", default={}), "spec.spec"), *_immutable(obj, old)]


def _state(claim: Object) -> str:
    status = claim.get("status") or {}
    if claim["metadata"].get("deletionTimestamp"):
        return "deleted"
    states = [name for name, key in (("allocated", "allocation"), ("reserved", "reservedFor")) if status.get(key)]
    return ",".join(states) or "pending"


def _validate_class(obj: Object, old: Object | None) -> list[FieldError]:
    return list(_class_problems(obj.get("spec") or {}))


def _class_problems(spec: Object) -> Problems:
    for place, selector in each(spec.get("selectors"), "spec.selectors"):
        if selector.get("cel") is None:
            yield FieldError.required(f"{place}.cel")
        else:
            yield from checks.required(selector["cel"].get("expression"), f"{place}.cel.expression")
    for place, config in each(spec.get("config"), "spec.config"):
        if config.get("opaque") is None:
            yield FieldError.required(f"{place}.opaque")
        else:
            yield from checks.named(config["opaque"].get("driver"), f"{place}.opaque.driver")
            yield from checks.required(config["opaque"].get("parameters"), f"{place}.opaque.parameters")


_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
"""The fields of a slice that say which nodes can use its devices: one of them is set."""

_ONE_OF_NODES: Final = f"exactly one of {', '.join(f'`{name}`' for name in _NODES)} is required"
_MOST_DEVICES: Final = 128


def _validate_slice(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    changed = [] if old is None else list(_slice_changes(spec, old.get("spec") or {}))
    return [*_slice_problems(spec), *changed]


def _slice_problems(spec: Object) -> Problems:
    pool = spec.get("pool") or {}
    yield from checks.named(spec.get("driver"), "spec.driver")
    yield from checks.required(pool.get("name"), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count < 1:
        yield FieldError.invalid("spec.pool.resourceSliceCount", count, detail="must be greater than zero")
    if generation < 0:
        yield FieldError.invalid("spec.pool.generation", generation, detail="must be greater than or equal to zero")
    for flag in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(flag) is False:
            yield FieldError.invalid(f"spec.{flag}", False, detail="must be either unset or set to true")
    given = [f"`{name}`" for name in _NODES if spec.get(name)]
    if not given:
        yield FieldError.required("spec", _ONE_OF_NODES)
    elif len(given) > 1:
        value = f"{{{', '.join(given)}}}"
        yield FieldError.invalid("spec", value, detail=f"{_ONE_OF_NODES}, but multiple fields are set")
    yield from _device_problems(spec.get("devices") or [])


def _device_problems(devices: list[Object]) -> Problems:
    if len(devices) > _MOST_DEVICES:
        yield FieldError.too_many("spec.devices", len(devices), max_items=_MOST_DEVICES)
        return
    for place, device in each(devices, "spec.devices"):
        yield from checks.named(device.get("name"), f"{place}.name", rule=names.dns_label)
        for name, attribute in (device.get("attributes") or {}).items():
            if len(attribute) != 1:
                detail, inner = "exactly one value must be specified", f"{place}.attributes[{name}]"
                many = FieldError.invalid(inner, attribute, detail=detail)
                yield many if attribute else FieldError.required(inner, detail)
    yield from checks.unique(devices, "spec.devices", key="name")


def _slice_changes(spec: Object, old: Object) -> Problems:
    yield from checks.unchanged(get(spec, "pool", "name"), get(old, "pool", "name"), path="spec.pool.name")
    for name in ("driver", "nodeName"):
        yield from checks.unchanged(spec.get(name), old.get(name), path=f"spec.{name}")


RESOURCE_CLAIM: Final = builtin(
    "ResourceClaim",
    group=GROUP,
    type_name="DeviceResourceClaim",  # containers have a type of that name
    status=True,
    generation=False,
    columns=(NAME, column("State", _state), AGE),
    default=_default_claim,
    validate=_validate_claim,
)
RESOURCE_CLAIM_TEMPLATE: Final = builtin(
    "ResourceClaimTemplate",
    group=GROUP,
    generation=False,
    columns=(NAME, AGE),
    default=_default_template,
    validate=_validate_template,
)
DEVICE_CLASS: Final = builtin(
    "DeviceClass",
    group=GROUP,
    plural="deviceclasses",
    namespaced=False,
    columns=(NAME, AGE),
    validate=_validate_class,
)
RESOURCE_SLICE: Final = builtin(
    "ResourceSlice",
    group=GROUP,
    namespaced=False,
    columns=(
        NAME,
        field("Node", "spec", "nodeName"),
        field("Driver", "spec", "driver"),
        field("Pool", "spec", "pool", "name"),
        AGE,
    ),
    fields=("spec.nodeName", "spec.driver"),
    validate=_validate_slice,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE)
