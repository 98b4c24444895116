"""The built-in kinds: what a server knows before anybody defines a kind of their own.

``BUILTINS`` holds them all as `ResourceType` values.  ``CONVERSIONS`` has the two that are kept in another version
than some clients ask for, and ``FIELD_VALUES`` the few field selectors that are more than a field of the object.
A kind is made of its type (``types_*``, in the notation of `notation`), what its schema cannot say of its defaults,
its checks and its columns; all are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from holdfast.apiserver.builtins import (
    autoscaling,
    batch,
    claims,
    events,
    extensions,
    namespaces,
    nodes,
    pods,
    reviews,
    roles,
    services,
    storage_classes,
    workloads,
)
from holdfast.apiserver.builtins.library import TYPES
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.objects import GVK
from holdfast.meta.selectors import field_value

_DECLARED: Final[tuple[ResourceType, ...]] = (
    *namespaces.RESOURCES,
    *nodes.RESOURCES,
    *pods.RESOURCES,
    *services.RESOURCES,
    *claims.RESOURCES,
    *events.RESOURCES,
    *workloads.RESOURCES,
    *batch.RESOURCES,
    *autoscaling.RESOURCES,
    *storage_classes.RESOURCES,
    *roles.RESOURCES,
    *extensions.RESOURCES,
    *reviews.RESOURCES,
)


class Conversion(NamedTuple):
    """The way between the version that is asked for and the one that is kept."""

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
"""What a selector compares, by resource and field, where that is not the field's own value."""


def _completed(kind: ResourceType) -> ResourceType:
    """A kind with how it is kept and selected."""
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


def definitions() -> Mapping[str, Mapping[str, object]]:
    """The schema of every type by its name, for documents that refer to types.

    Wherever a type is used, the ``properties`` of its schema are one and the same mapping.
    """
    return {name: TYPES.schema(name) for name in TYPES}


__all__ = ["BUILTINS", "CONVERSIONS", "FIELD_VALUES", "Conversion", "definitions"]
