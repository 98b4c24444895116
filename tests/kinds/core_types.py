"""The schemas of built-in types that fields of custom kinds have, generated from the types of the API server.

``python -m tests.kinds.core_types`` writes them to `kinds/data/core.json`, which `holdfast.kinds.core` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.places import ROOT

from holdfast.apiserver.builtins.types.library import TYPES
from holdfast.kinds.crds import schema_of
from holdfast.kinds.model import OPEN, Model, Quantity

PATH: Final = ROOT / "src" / "holdfast" / "kinds" / "data" / "core.json"

NAMES: Final = (
    "Affinity",
    "EnvVarSource",
    "Lifecycle",
    "PersistentVolumeClaimSpec",
    "PodSpec",
    "ResourceRequirements",
    "SeccompProfile",
    "SecurityContext",
    "Toleration",
    "TopologySpreadConstraint",
)

_PROFILES: Final = ["RuntimeDefault", "Localhost", "Unconfined"]
_VALUES: Final[Mapping[tuple[str, str], list[str]]] = {
    ("AppArmorProfile", "type"): _PROFILES,
    ("SeccompProfile", "type"): _PROFILES,
    ("TopologySpreadConstraint", "whenUnsatisfiable"): ["DoNotSchedule", "ScheduleAnyway"],
}
"""The values that the API server accepts of fields whose types do not list them."""


class _Amount(Model):
    amount: Quantity


_QUANTITY: Final = schema_of(_Amount)["properties"]["amount"]
_INT_OR_STRING: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def schema(name: str) -> dict[str, Any]:
    """The structural schema of a type: closed, without defaults, which pods get from the API server."""
    struct = TYPES.struct(name)
    properties = {}
    for field in struct.fields:
        made = _of(field.type)
        if field.text:
            made = {"description": field.text, **made}
        if (name, field.name) in _VALUES:
            made["enum"] = _VALUES[name, field.name]
        properties[field.name] = made
    out: dict[str, Any] = {"type": "object", "properties": properties}
    required = [field.name for field in struct.fields if field.required]
    if required:
        out["required"] = required
    if struct.atomic:
        out["x-kubernetes-map-type"] = "atomic"
    return out


def _of(type_: Any) -> dict[str, Any]:
    if type_.item is not None and type_.container == "{}":
        return {"type": "object", "additionalProperties": _of(type_.item)}
    if type_.item is not None:
        items = _of(type_.item)
        # A key without a default must be required; a default would change templates that are stored.
        keyed = type_.keys and set(type_.keys) <= set(items.get("required", ()))
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(type_.keys)} if keyed else {}
        return {"type": "array", "items": items, **keys}
    match type_.of:
        case "quantity":
            return dict(_QUANTITY)
        case "intstr":
            return dict(_INT_OR_STRING)
        case "string":
            return {"type": "string"}
        case "bool":
            return {"type": "boolean"}
        case "int32" | "int64":
            return {"type": "integer", "format": type_.of}
        case "ObjectMeta":
            return dict(OPEN)  # of a template inside a pod; it has no schema in custom kinds
        case name:
            return schema(name)


def is_built_in(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is that of a built-in type, whose fields Kubernetes explains."""
    return frozenset(schema.get("properties", ())) in {frozenset(TYPES.schema(name)["properties"]) for name in NAMES}


def document() -> str:
    return json.dumps({name: schema(name) for name in NAMES}, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(document())
