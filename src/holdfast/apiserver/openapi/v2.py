"""OpenAPI v2 (Swagger), converted from v3.

Version 2 has neither alternatives nor null, and its readers validate objects before they send them.  Where v2 cannot
express exactly what is allowed, it therefore says nothing, as Kubernetes does: a client that refuses a valid object is
worse than one that leaves an invalid object to the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.apiserver.openapi.schemas import INT_OR_STRING, PREFIX, QUANTITY, Schema

DEFINITIONS: Final = "#/definitions/"

_DROPPED: Final = frozenset({"anyOf", "oneOf", "not", "allOf", "nullable", "x-kubernetes-validations"})
_SHAPE: Final = frozenset({"type", "format", "items", "properties", "additionalProperties", "required"})
_STRINGS: Final = {
    INT_OR_STRING: {"type": "string", "format": "int-or-string"},
    QUANTITY: {"type": "string"},
}
"""Components of several types; they become strings, because readers accept numbers for strings."""

_EMBEDDED: Final[Mapping[str, Schema]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


def definitions(components: Mapping[str, Schema]) -> dict[str, Schema]:
    """The components as definitions."""
    return {name: schema_of(each) | _STRINGS.get(name, {}) for name, each in components.items()}


def schema_of(schema: Mapping[str, Any]) -> Schema:
    """A schema in version 2."""
    if "$ref" in schema:
        return {"$ref": _moved(schema["$ref"])}
    dropped = _DROPPED | _SHAPE if _undescribable(schema) else _DROPPED
    out = {key: value for key, value in schema.items() if key not in dropped}
    match schema.get("allOf"):
        case [{"$ref": ref}]:
            return {"$ref": _moved(ref), **out}
    if "properties" in out:
        properties = {name: schema_of(each) for name, each in out["properties"].items()}
        out["properties"] = {**_EMBEDDED, **properties} if schema.get("x-kubernetes-embedded-resource") else properties
    if "items" in out:
        out["items"] = schema_of(out["items"])
    if isinstance(out.get("additionalProperties"), Mapping):
        out["additionalProperties"] = schema_of(out["additionalProperties"])
    return out


def _undescribable(schema: Mapping[str, Any]) -> bool:
    """Whether valid values may have several types or unlisted fields."""
    anything = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    untyped_list = schema.get("type") == "array" and "items" not in schema
    return bool(anything or schema.get("nullable") or untyped_list)


def _moved(ref: str) -> str:
    return DEFINITIONS + ref.removeprefix(PREFIX)


def paths(items: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The paths in version 2."""
    return {path: {key: _member(key, value) for key, value in item.items()} for path, item in items.items()}


def _member(key: str, value: Any) -> Any:
    return [_parameter(each) for each in value] if key == "parameters" else _operation(value)


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in operation.items() if key != "requestBody"}
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        out["consumes"] = list(body["content"])
        parameters.append(_body(body))
    out["parameters"] = parameters
    answers = operation["responses"]
    out["produces"] = list(answers["200"]["content"])
    out["responses"] = {code: _response(answer) for code, answer in answers.items()}
    return out


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}


def _body(body: Mapping[str, Any]) -> dict[str, Any]:
    schema = next(iter(body["content"].values()))["schema"]
    return {"name": "body", "in": "body", "schema": schema_of(schema)} | (
        {"required": True} if body.get("required") else {}
    )


def _response(answer: Mapping[str, Any]) -> dict[str, Any]:
    content = answer.get("content")
    schema = {"schema": schema_of(next(iter(content.values()))["schema"])} if content else {}
    return {"description": answer["description"], **schema}
