"""OpenAPI v2 in protocol buffers, the only form that older clients of Kubernetes request.

The messages are those of the ``openapi.v2`` package that Kubernetes' clients decode: maps are lists of named values,
and what has no type of its own is sent as YAML, of which JSON is a subset.  The tables have the keys that our
documents use; other keys are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from holdfast.meta import exchange

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ASKED_AS: Final = MEDIA_TYPE.replace(".v1.0", "@v1.0")
"""The spelling in Accept headers; responses use the other, since ``@`` is not allowed in a media type."""

Field = Callable[[Any], bytes]
"""A value to its bytes on the wire, with the number of its field before them."""


def encode(document: Mapping[str, Any]) -> bytes:
    """A document of OpenAPI v2 as bytes."""
    return _DOCUMENT(document)


# The wire.


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(number: int) -> Field:
    tag = _varint(number << 3 | 2)
    return lambda value: tag + _varint(len(value)) + value


def _text(number: int) -> Field:
    wrap = _bytes(number)
    return lambda value: wrap(value.encode())


def _flag(number: int) -> Field:
    tag = _varint(number << 3)
    return lambda value: tag + b"\x01" if value else b""


def _count(number: int) -> Field:
    tag = _varint(number << 3)
    return lambda value: tag + _varint(max(0, int(value)))


def _number(number: int) -> Field:
    tag = _varint(number << 3 | 1)
    return lambda value: tag + struct.pack("<d", value)


def _in(number: int, inner: Field) -> Field:
    """A message within a field."""
    wrap = _bytes(number)
    return lambda value: wrap(inner(value))


def _each(field: Field) -> Field:
    """A repeated field."""
    return lambda values: b"".join(map(field, values))


_key: Final = _text(1)
_yaml: Final = _bytes(2)


def _any(value: Any) -> bytes:
    return _yaml(exchange.encode(value))


def _named(number: int, inner: Field) -> Field:
    """A map, as a repeated message of name and value."""
    wrap, wrap_value = _bytes(number), _bytes(2)
    return lambda values: b"".join(wrap(_key(name) + wrap_value(inner(value))) for name, value in values.items())


class _Message:
    """A message by its fields; those that begin with ``x-`` go into one field together."""

    def __init__(self, extensions: int) -> None:
        self._fields: dict[str, Field] = {}
        self._extension = _named(extensions, _any)

    def having(self, fields: Mapping[str, Field]) -> _Message:
        self._fields |= fields
        return self

    def __call__(self, value: Mapping[str, Any]) -> bytes:
        return b"".join(self._parts(value))

    def _parts(self, value: Mapping[str, Any]) -> Iterable[bytes]:
        for key, each in value.items():
            field = self._fields.get(key)
            if field is not None:
                yield field(each)
            elif key.startswith("x-"):
                yield self._extension({key: each})


# The messages.

_SCHEMA: Final = _Message(31)
_NAMED_SCHEMAS: Final = _named(1, _SCHEMA)


def _additional_properties(value: Any) -> bytes:
    return _flag(2)(value) if isinstance(value, bool) else _in(1, _SCHEMA)(value)


_SCHEMA.having(
    {
        "$ref": _text(1),
        "format": _text(2),
        "title": _text(3),
        "description": _text(4),
        "default": _in(5, _any),
        "multipleOf": _number(6),
        "maximum": _number(7),
        "exclusiveMaximum": _flag(8),
        "minimum": _number(9),
        "exclusiveMinimum": _flag(10),
        "maxLength": _count(11),
        "minLength": _count(12),
        "pattern": _text(13),
        "maxItems": _count(14),
        "minItems": _count(15),
        "uniqueItems": _flag(16),
        "maxProperties": _count(17),
        "minProperties": _count(18),
        "required": _each(_text(19)),
        "enum": _each(_in(20, _any)),
        "additionalProperties": _in(21, _additional_properties),
        "type": _in(22, _text(1)),
        "items": _in(23, _in(1, _SCHEMA)),
        "properties": _in(25, _NAMED_SCHEMAS),
        "example": _in(30, _any),
    }
)

_BODY_PARAMETER: Final = _Message(6).having(
    {"description": _text(1), "name": _text(2), "in": _text(3), "required": _flag(4), "schema": _in(5, _SCHEMA)}
)
_PATH_PARAMETER: Final = _Message(22).having(
    {
        "required": _flag(1),
        "in": _text(2),
        "description": _text(3),
        "name": _text(4),
        "type": _text(5),
        "uniqueItems": _flag(19),
    }
)
_QUERY_PARAMETER: Final = _Message(23).having(
    {
        "required": _flag(1),
        "in": _text(2),
        "description": _text(3),
        "name": _text(4),
        "type": _text(6),
        "uniqueItems": _flag(20),
    }
)
_PARAMETERS: Final[Mapping[str, Field]] = {
    "body": _in(1, _BODY_PARAMETER),
    "query": _in(2, _in(3, _QUERY_PARAMETER)),
    "path": _in(2, _in(4, _PATH_PARAMETER)),
}


def _parameter(value: Mapping[str, Any]) -> bytes:
    return _in(1, _PARAMETERS[value["in"]])(value)


_RESPONSE: Final = _Message(5).having({"description": _text(1), "schema": _in(2, _in(1, _SCHEMA))})
_OPERATION: Final = _Message(13).having(
    {
        "tags": _each(_text(1)),
        "description": _text(3),
        "operationId": _text(5),
        "produces": _each(_text(6)),
        "consumes": _each(_text(7)),
        "parameters": _each(_in(8, _parameter)),
        "responses": _in(9, _named(1, _in(1, _RESPONSE))),
    }
)
_PATH_ITEM: Final = _Message(10).having(
    {
        "get": _in(2, _OPERATION),
        "put": _in(3, _OPERATION),
        "post": _in(4, _OPERATION),
        "delete": _in(5, _OPERATION),
        "patch": _in(8, _OPERATION),
        "parameters": _each(_in(9, _parameter)),
    }
)
_DOCUMENT: Final = _Message(16).having(
    {
        "swagger": _text(1),
        "info": _in(2, _Message(7).having({"title": _text(1), "version": _text(2)})),
        "paths": _in(8, _named(2, _PATH_ITEM)),
        "definitions": _in(9, _NAMED_SCHEMAS),
    }
)
