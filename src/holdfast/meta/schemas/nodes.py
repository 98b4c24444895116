"""A schema as a tree of nodes that hold what the walks over objects need, computed once.

The module must not know the walks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.meta.schemas.constraints import (
    Check,
    Patterns,
    enum_check,
    fitting_integers,
    format_check,
    number_checks,
    text_checks,
)

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_KEYS: Final = "x-kubernetes-list-map-keys"


_PYTHON_TYPES: Final[Mapping[str, type]] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int
}  # fmt: skip
_TEXT_WORDS: Final = ("minLength", "maxLength", "pattern", "enum")
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_NUMBER: Final = {"type": "integer"}


def _record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


OBJECT_META: Final[Mapping[str, Any]] = _record(
    name=_TEXT,
    generateName=_TEXT,
    namespace=_TEXT,
    selfLink=_TEXT,
    uid=_TEXT,
    resourceVersion=_TEXT,
    generation=_NUMBER,
    creationTimestamp=_TEXT | {"nullable": True},
    deletionTimestamp=_TEXT | {"nullable": True},
    deletionGracePeriodSeconds=_NUMBER,
    labels=_TEXTS,
    annotations=_TEXTS,
    ownerReferences={
        "type": "array",
        "items": _record(
            apiVersion=_TEXT, kind=_TEXT, name=_TEXT, uid=_TEXT, controller=_FLAG, blockOwnerDeletion=_FLAG
        ),
    },
    finalizers={"type": "array", "items": _TEXT},
    managedFields={
        "type": "array",
        "items": _record(
            manager=_TEXT, operation=_TEXT, apiVersion=_TEXT, time=_TEXT, fieldsType=_TEXT,
            fieldsV1={"type": "object", PRESERVE: True}, subresource=_TEXT,
        ),
    },
)  # fmt: skip
"""The metadata of any object; a definition may not spell it out, yet its fields are known."""


_anything: Final[Callable[[Any], object]] = type
"""True of anything, and called without a frame of its own."""


class Node:
    """One node of a schema, with what each walk asks of it worked out."""

    __slots__ = (
        "additional", "alternatives", "checks_number", "checks_text", "choice", "default", "defaulted", "embedded",
        "excluded", "fits", "format_name", "has_default", "has_inside", "has_resources", "has_sets", "items", "kinds",
        "list_type", "map_keys", "max_items", "max_properties", "min_items", "min_properties", "nullable", "open",
        "plain", "properties", "required", "resource", "restates_type", "unique",
    )  # fmt: skip

    def __init__(self, schema: Mapping[str, Any], patterns: Patterns, *, resource: bool = False) -> None:
        self.kinds = kinds_of(schema)
        self.nullable = bool(schema.get("nullable"))
        self.open = bool(schema.get(PRESERVE))
        self.embedded = bool(schema.get(EMBEDDED))
        self.resource = resource or self.embedded
        self.list_type = schema.get(LIST_TYPE)
        self.map_keys = tuple(schema.get(MAP_KEYS, ()))

        self.properties = {name: Node(inner, patterns) for name, inner in schema.get("properties", {}).items()}
        additional, items = schema.get("additionalProperties"), schema.get("items")
        self.additional = Node(additional, patterns) if isinstance(additional, Mapping) else None
        self.items = Node(items, patterns) if isinstance(items, Mapping) else None
        if additional is True:
            self.additional = Node({PRESERVE: True}, patterns)

        self.has_default = schema.get("default") is not None
        self.default = schema.get("default")
        self.defaulted = tuple((name, node.default) for name, node in self.properties.items() if node.has_default)
        inside = [*self.properties.values(), *(node for node in (self.additional, self.items) if node)]
        self.has_inside = bool(inside)
        self.has_resources: bool = self.embedded or any(node.has_resources for node in inside)
        self.has_sets: bool = self.list_type in ("set", "map") or any(node.has_sets for node in inside)

        self.required = tuple(schema.get("required", ()))
        self.min_properties, self.max_properties = schema.get("minProperties", 0), schema.get("maxProperties")
        self.min_items, self.max_items = schema.get("minItems", 0), schema.get("maxItems")
        self.unique = bool(schema.get("uniqueItems"))

        known_format = format_check(schema)
        self.format_name = schema["format"] if known_format else ""
        self.checks_text = (text_checks(schema, patterns), known_format)
        self.checks_number = number_checks(schema)
        self.choice: Check | None = enum_check(schema["enum"]) if schema.get("enum") else None
        self.alternatives = tuple(
            (word, tuple(Node(branch, patterns) for branch in schema[word]))
            for word in ("anyOf", "oneOf", "allOf")
            if schema.get(word)
        )
        self.excluded = Node(schema["not"], patterns) if "not" in schema else None
        # Written out by most authors, it says what the type says already.
        self.restates_type = schema.get("anyOf") == _INT_OR_STRING_TYPES and len(self.alternatives) == 1
        self.plain = self._plain()
        self.fits = self._fits(schema, patterns)

    def _plain(self) -> type | None:
        """The type whose values need no look at anything but `fits` and what is inside them."""
        if self.alternatives or self.excluded or len(self.kinds) != 1:
            return None
        plain = _PYTHON_TYPES.get(self.kinds[0])
        return plain if self.choice is None or plain is str else None

    def _fits(self, schema: Mapping[str, Any], patterns: Patterns) -> Callable[[Any], object] | None:
        """For scalars of the plain type, a test in one call that is true only where nothing is wrong."""
        if self.plain is bool:
            return _anything
        if self.plain is int:
            return None if schema.get("multipleOf") else fitting_integers(schema).__contains__
        if self.plain is not str or self.format_name:
            return None
        words = {word for word in _TEXT_WORDS if schema.get(word) is not None}
        if not words:
            return _anything
        if words == {"enum"}:
            return frozenset(schema["enum"]).__contains__
        if "enum" in words:
            return None
        search = patterns(schema["pattern"]) if "pattern" in words else _anything
        if words == {"pattern"}:
            return search
        least, most = schema.get("minLength") or 0, schema.get("maxLength", sys.maxsize)
        return lambda value: least <= len(value) <= most and search(value)


def kinds_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The JSON types that a node's values may have; none where it says nothing."""
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def key_of(node: Node, item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry of a list that is a map, defaults counted in."""
    properties = node.items.properties if node.items else {}
    key = {}
    for name in node.map_keys:
        if name in item:
            key[name] = item[name]
        elif name in properties and properties[name].has_default:
            key[name] = properties[name].default
    return key
