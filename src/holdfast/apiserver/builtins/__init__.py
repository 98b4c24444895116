"""The built-in kinds, one module per family of kinds.

``BUILTINS`` holds them all as `ResourceType` values.  A kind is made of its type, which is data (``data/``, read by
`types`), and of what the type cannot express: defaults that depend on other fields, validation, columns.  All of it is
pure.  ``CONVERSIONS`` has the two kinds that are stored in another version than some clients use, ``FIELD_VALUES`` the
field selectors that are computed.

data/         types and protocol buffer numbers of the built-in kinds
types/        reads them: OpenAPI schemas, merge keys, decoding
common/       what the families share: declaring a kind, checks, columns
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from holdfast.apiserver.builtins import (
    addresses,
    admission_policies,
    autoscaling,
    batch,
    certificates,
    devices,
    events,
    extensions,
    namespaces,
    nodes,
    pods,
    rbac,
    reviews,
    services,
    storage,
    volumes,
    workloads,
)
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.objects import GVK
from holdfast.meta.selectors import field_value

_DECLARED: Final[tuple[ResourceType, ...]] = (
    *namespaces.RESOURCES,
    *nodes.RESOURCES,
    *pods.RESOURCES,
    *services.RESOURCES,
    *addresses.RESOURCES,
    *volumes.RESOURCES,
    *events.RESOURCES,
    *workloads.RESOURCES,
    *batch.RESOURCES,
    *autoscaling.RESOURCES,
    *storage.RESOURCES,
    *devices.RESOURCES,
    *certificates.RESOURCES,
    *rbac.RESOURCES,
    *extensions.RESOURCES,
    *admission_policies.RESOURCES,
    *reviews.RESOURCES,
)


class Conversion(NamedTuple):
    """The conversion between a served version and the stored one."""

    stored_as: GVK
    to_stored: Callable[[Object], Object]
    from_stored: Callable[[Object], Object]


CONVERSIONS: Final[Mapping[GVK, Conversion]] = {
    events.NEW_EVENT.gvk: Conversion(events.EVENT.gvk, events.to_core, events.from_core),
    autoscaling.AUTOSCALER_V1.gvk: Conversion(autoscaling.AUTOSCALER.gvk, autoscaling.to_v2, autoscaling.to_v1),
}

FIELD_VALUES: Final[Mapping[tuple[str, str], Callable[[Object], str]]] = {
    (pods.POD.key, "spec.hostNetwork"): lambda obj: field_value(obj, "spec.hostNetwork") or "false",
    (nodes.NODE.key, "spec.unschedulable"): lambda obj: field_value(obj, "spec.unschedulable") or "false",
    (batch.JOB.key, "status.successful"): lambda obj: field_value(obj, "status.succeeded") or "0",
    (events.EVENT.key, "source"): (
        lambda obj: field_value(obj, "source.component") or field_value(obj, "reportingComponent")
    ),
}
"""The value that a field selector compares, by resource and field, where it is computed."""


def _completed(kind: ResourceType) -> ResourceType:
    """A kind with its conversion and computed field selectors."""
    values = {field: value for (key, field), value in FIELD_VALUES.items() if key == kind.key}
    conversion = CONVERSIONS.get(kind.gvk)
    if conversion is None:
        return replace(kind, field_values=values) if values else kind
    stored = next(each for each in _DECLARED if each.gvk == conversion.stored_as)
    return replace(
        kind,
        field_values=values,
        stored_key=stored.key,
        to_stored=conversion.to_stored,
        from_stored=conversion.from_stored,
    )


BUILTINS: Final = tuple(map(_completed, _DECLARED))


__all__ = ["BUILTINS", "CONVERSIONS", "FIELD_VALUES", "Conversion"]
