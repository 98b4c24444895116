"""Schemas of built-in types, for fields that are written as in a pod.

The schemas are generated from the types of the API server and are closed, so a misspelled
field or an amount that is none is refused, or warned about, when the object is applied and
not when a pod is created from it.  Python keeps such a field as it was written.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import Meta

from holdfast.kinds.model import Rule, api

_DATA: Final = files("holdfast.kinds") / "data" / "core.json"


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    schemas: dict[str, dict[str, Any]] = msgspec.json.decode(_DATA.read_bytes())
    return schemas


def schema(name: str) -> dict[str, Any]:
    """The schema of a built-in type; not to be changed."""
    return _schemas()[name]


def typed(
    name: str, *, rules: tuple[Rule, ...] = (), required: tuple[str, ...] | None = None, **properties: dict[str, Any]
) -> Meta:
    """The annotation of a ``dict[str, Any]`` that has the schema of a built-in type.

    rules       the rules of the field
    required    the properties that it must have; None: those that the type requires
    properties  schemas of properties that are narrower than those of the type
    """
    schema = dict(_schemas()[name])
    schema["properties"] = {**schema["properties"], **properties}
    if required is not None:
        schema["required"] = list(required) or None
    # Without this, what is not described would be kept.
    schema["x-kubernetes-preserve-unknown-fields"] = None
    return api(rules=rules, **schema)
