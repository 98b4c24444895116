"""ResourceClaim and ResourceClaimTemplate.  They are stored and validated; no controller allocates devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, column, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Object, ResourceType
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
RESOURCES: Final[tuple[ResourceType, ...]] = (RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)
