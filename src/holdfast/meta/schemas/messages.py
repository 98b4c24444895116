"""Findings in the words of the API server, as clients know them from real clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.meta.errors import FieldError
from holdfast.meta.schemas.constraints import Finding, name_of

JSON_TYPES: Final[Mapping[type, str]] = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
}  # fmt: skip
_JSON_FORMATS: Final = {int: "int64", float: "float64"}


def field_error(finding: Finding) -> FieldError:
    """The error that an API server would answer with."""
    name, value, limit = name_of(finding.path), finding.value, finding.limit
    in_body = _IN_BODY.get(finding.word)
    if in_body is not None:
        shown = len(value) if isinstance(value, list | dict) else value
        return FieldError.invalid(name, shown, detail=f"{name} in body {in_body(limit, value)}")
    match finding.word:
        case "type":
            found = JSON_TYPES[type(value)]
            if limit[0] not in JSON_TYPES.values():  # a format
                found = _JSON_FORMATS.get(type(value), "")
            detail = f'{name} in body must be of type {",".join(limit)}: "{found}"'
            return FieldError.type_invalid(name, found, detail=detail)
        case "format":
            shown = value.replace("\\", "\\\\").replace('"', '\\"')
            detail = f'{name} in body must be of type {limit}: "{shown}"'
            return FieldError.type_invalid(name, value, detail=detail)
        case "required":
            return FieldError.required(name_of((finding.path, limit)))
        case "resource":
            return FieldError.required(name, "must not be empty")
        case "enum":
            supported = (choice if isinstance(choice, str) else _json(choice) for choice in limit)
            return FieldError.not_supported(name, value, supported=supported)
        case "maxLength":
            return FieldError.too_long(name, limit)
        case "maxItems" | "maxProperties":
            return FieldError.too_many(name, len(value), max_items=limit)
        case "uniqueItems":
            return FieldError.invalid(name, "", detail=f"{name} in body shouldn't contain duplicates")
        case "range":
            kind, form = limit
            written = f"with format {form}" if form else "(default format)"
            return FieldError.invalid("", "", detail=f"Checked value must be of type {kind} {written} in {name}")
        case "listMap":
            return FieldError.invalid(name, value, detail="must be an object for an array of list-type map")
        case "duplicate":
            return FieldError.duplicate(name, value)
    return FieldError.invalid("", "", detail=f'"{name}" {_JOINT[finding.word](limit)}')


_IN_BODY: Final[Mapping[str, Callable[[Any, Any], str]]] = {
    "minLength": lambda limit, _: f"should be at least {limit} chars long",
    "pattern": lambda limit, _: f"should match '{limit}'",
    "minItems": lambda limit, _: f"should have at least {limit} items",
    "minProperties": lambda limit, _: f"should have at least {limit} properties",
    "multipleOf": lambda limit, value: f"should be a multiple of {_bound(limit, value)}",
    "minimum": lambda limit, value: f"should be greater than or equal to {_bound(limit, value)}",
    "exclusiveMinimum": lambda limit, value: f"should be greater than {_bound(limit, value)}",
    "maximum": lambda limit, value: f"should be less than or equal to {_bound(limit, value)}",
    "exclusiveMaximum": lambda limit, value: f"should be less than {_bound(limit, value)}",
}
"""What the value in the body should be instead."""

_JOINT: Final[Mapping[str, Callable[[int], str]]] = {
    "anyOf": lambda _: "must validate at least one schema (anyOf)",
    "oneOf": lambda valid: (
        "must validate one and only one schema (oneOf). "
        + (f"Found {valid} valid alternatives" if valid else "Found none valid")
    ),
    "allOf": lambda valid: f"must validate all the schemas (allOf){'' if valid else '. None validated'}",
    "not": lambda _: "must not validate the schema (not)",
}
"""Logical operators, by how many of their schemas the value satisfies; the server names no field for them."""


def _bound(limit: float, value: float) -> str:
    """A bound as the server prints it: whole for whole values, else as Go prints a float."""
    if isinstance(value, int) or isinstance(limit, int) or limit.is_integer():
        return str(int(limit))
    return repr(limit)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
