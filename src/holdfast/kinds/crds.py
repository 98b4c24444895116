"""CustomResourceDefinitions, generated from the types of the kinds.

A declaration in `model`'s vocabulary goes in; a structural OpenAPI v3 schema,
or a whole ``apiextensions.k8s.io/v1`` definition, comes out as plain dicts in a
stable order.  This module must not know any particular kind, nor YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import inspect

from holdfast.kinds.model import Column, Kind, Model, Older, Resource, Spelling

_VALIDATIONS: Final = "x-kubernetes-validations"

_TYPE_META: Final = {
    "apiVersion": "The version of the API that this object is written in.",
    "kind": "The kind of this object.",
}


class SchemaError(TypeError):
    """A declaration that no structural schema can express."""


def crd_of(kind: Kind, *, conversion: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The CustomResourceDefinition that makes an API server serve ``kind``.

    An older version is served only where objects of it are converted, as `conversion` says: a server that does not
    convert would store what the newer version cannot read.
    """
    names: dict[str, Any] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    spec: dict[str, Any] = {
        "group": kind.group,
        "names": names,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [_version(kind)],
    }
    if kind.older is not None and conversion is not None:
        _, older = kind.versions
        spec["versions"].append(_version(older) | {"storage": False} | _deprecated(kind.older))
        spec["conversion"] = dict(conversion)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name},
        "spec": spec,
    }


def _deprecated(older: Older) -> dict[str, Any]:
    return {"deprecated": True, "deprecationWarning": older.deprecation} if older.deprecation else {}


def _version(kind: Kind) -> dict[str, Any]:
    schema = schema_of(kind.model)
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    subresources: dict[str, Any] = {}
    if "status" in schema["properties"]:
        subresources["status"] = {}
    if kind.scale is not None:
        subresources["scale"] = {"specReplicasPath": kind.scale.spec, "statusReplicasPath": kind.scale.status}
        if kind.scale.selector is not None:
            subresources["scale"]["labelSelectorPath"] = kind.scale.selector
    if subresources:
        version["subresources"] = subresources
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    return version


def _column(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description is not None:
        out["description"] = column.description
    if column.format is not None:
        out["format"] = column.format
    if column.priority:
        out["priority"] = column.priority
    return out


def schema_of(model: type[Model]) -> dict[str, Any]:
    """The structural schema of ``model``.

    At the root of a `Resource`, ``metadata`` is a bare object and never
    required: Kubernetes owns its schema and allows no other there.
    """
    info = inspect.type_info(model)
    if not isinstance(info, inspect.StructType):
        raise SchemaError(f"{model!r} is not a model; declare it as a subclass of Model")
    schema = _struct(info, ())
    if issubclass(model, Resource):
        properties = schema["properties"]
        for name, description in _TYPE_META.items():
            properties[name] = {"description": description, "type": "string"}
        properties["metadata"] = {"type": "object"}
        required = [name for name in schema.pop("required", ()) if name not in {"apiVersion", "kind", "metadata"}]
        if required:
            schema["required"] = required
    return schema


def _schema(info: inspect.Type, trail: tuple[str, ...]) -> dict[str, Any]:
    """The schema of one type; ``trail`` names the models it stands in, outermost first."""
    match info:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return _annotated(_schema(inner, trail), extra or {})
        case inspect.UnionType(types=types):
            return _union(types, trail)
        case inspect.StructType():
            return _struct(info, trail)
        case inspect.StrType(min_length=least, max_length=most, pattern=pattern):
            return {"type": "string", **_present(minLength=least, maxLength=most, pattern=pattern)}
        case inspect.IntType():
            return {"type": "integer", **_bounds(info)}
        case inspect.FloatType():
            return {"type": "number", **_bounds(info)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.LiteralType(values=values):
            return _enum(list(values), trail)
        case inspect.EnumType(cls=cls):
            return _enum(_spellings(cls), trail)
        case inspect.VarTupleType(item_type=item, min_length=least, max_length=most):
            return {"type": "array", "items": _schema(item, trail), **_present(minItems=least, maxItems=most)}
        case inspect.DictType():
            return _map(info, trail)
        case inspect.AnyType() | inspect.RawType():
            return {"x-kubernetes-preserve-unknown-fields": True}
    raise SchemaError(f"{_where(trail)}: {info!r} has no structural schema; lists are tuple[T, ...], maps dict[str, T]")


def _struct(info: inspect.StructType, trail: tuple[str, ...]) -> dict[str, Any]:
    cls = info.cls
    if cls.__name__ in trail:
        cycle = " -> ".join((*trail, cls.__name__))
        raise SchemaError(f"{cycle}: structural schemas cannot recurse; make the inner field an OpenObject")
    inner = (*trail, cls.__name__)
    schema: dict[str, Any] = {}
    if cls.__doc__:
        schema["description"] = " ".join(cls.__doc__.split())
    schema["type"] = "object"
    if info.fields:
        schema["properties"] = {field.encode_name: _schema(field.type, inner) for field in info.fields}
    required = [field.encode_name for field in info.fields if field.required]
    if required:
        schema["required"] = required
    rules = cls.RULES if issubclass(cls, Model) else ()
    if rules:
        schema[_VALIDATIONS] = [rule.to_schema() for rule in rules]
    return schema


def _annotated(schema: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` as a field's annotation refines it; rules add up, all else overrides, and None takes a key away."""
    merged = _present(**{**schema, **msgspec.to_builtins(dict(extra))})
    rules = [*schema.get(_VALIDATIONS, ()), *extra.get(_VALIDATIONS, ())]
    if rules:
        merged[_VALIDATIONS] = rules
    if "description" in merged:
        merged = {"description": merged.pop("description"), **merged}
    return merged


def _union(types: tuple[inspect.Type, ...], trail: tuple[str, ...]) -> dict[str, Any]:
    members = [_schema(member, trail) for member in types if not isinstance(member, inspect.NoneType)]
    if len(members) == 1:
        return members[0]
    kinds = {member.get("type") for member in members}
    merged: dict[str, Any] = {}
    for member in members:
        merged |= member
    if kinds == {"integer", "number"}:
        return {**merged, "type": "number"}
    if kinds in ({"integer", "string"}, {"integer", "number", "string"}):
        # A bound concerns numbers only and a pattern strings only, so both may stand on the one node.
        del merged["type"]
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, **merged}
    raise SchemaError(f"{_where(trail)}: a union of {_names(members)} has no structural schema; use an OpenObject")


def _map(info: inspect.DictType, trail: tuple[str, ...]) -> dict[str, Any]:
    sizes = _present(minProperties=info.min_length, maxProperties=info.max_length)
    if isinstance(info.value_type, inspect.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **sizes}
    return {"type": "object", "additionalProperties": _schema(info.value_type, trail), **sizes}


def _enum(values: list[Any], trail: tuple[str, ...]) -> dict[str, Any]:
    if all(isinstance(value, str) for value in values):
        return {"type": "string", "enum": values}
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return {"type": "integer", "enum": values}
    raise SchemaError(f"{_where(trail)}: the enum {values!r} mixes types; use strings alone")


def _spellings(cls: type[Enum]) -> list[Any]:
    """What is written first, then what is only read."""
    others = cls.__spellings__ if issubclass(cls, Spelling) else {}
    return [*(member.value for member in cls), *others]


def _bounds(info: inspect.IntType | inspect.FloatType) -> dict[str, Any]:
    """OpenAPI 3.0 says "exclusive" by a flag beside the bound, not by another bound."""
    out = _present(minimum=info.ge, maximum=info.le, multipleOf=info.multiple_of)
    if info.gt is not None:
        out |= {"minimum": info.gt, "exclusiveMinimum": True}
    if info.lt is not None:
        out |= {"maximum": info.lt, "exclusiveMaximum": True}
    return out


def _present(**keywords: Any) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _where(trail: tuple[str, ...]) -> str:
    return trail[-1] if trail else "the root"


def _names(members: list[dict[str, Any]]) -> str:
    return ", ".join(str(member.get("type", "anything")) for member in members)
