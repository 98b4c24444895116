"""Protocol buffers as Kubernetes' typed clients write them, zeros and all, from the tables of the server."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.apiserver.builtins.types.library import message_struct, numbers
from holdfast.apiserver.builtins.types.notation import Field, Type
from holdfast.apiserver.builtins.types.numbers import Numbers
from holdfast.apiserver.resources import Object
from holdfast.meta import times


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    named = field_of(1, api_version.encode()) + field_of(2, kind.encode())
    return b"k8s\x00" + field_of(1, named) + field_of(2, message)


def field_of(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    number %= 2**64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def encode(name: str, obj: Object) -> bytes:
    """A message as Kubernetes' typed clients write it: what is no pointer is written even if it is zero."""
    fields = {field.name: field for field in message_struct(name).fields}

    def content(message: Numbers) -> bytes:
        own = b"".join(encode_field(number, fields[each], obj) for number, each in message.fields.items())
        return own + b"".join(field_of(number, content(inlined)) for number, inlined in message.inlined.items())

    return content(numbers()[name])


def encode_field(number: int, field: Field, obj: Object) -> bytes:
    type_ = field.type
    if field.name not in obj:
        zero = None if type_.pointer or type_.container or field.required else ZEROS.get(type_.of)
        return b"" if zero is None else encode_value(number, type_, zero)
    value = obj[field.name]
    if type_.item is None:
        return encode_value(number, type_, value)
    if type_.container == "{}":
        entries = ((field_of(1, key.encode()), each) for key, each in value.items())
        return b"".join(field_of(number, key + encode_value(2, type_.item, each)) for key, each in entries)
    return b"".join(encode_value(number, type_.item, each) for each in value)


ZEROS: Mapping[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0}


def encode_value(number: int, type_: Type, value: Any) -> bytes:
    match type_:
        case Type(item=Type() as item):
            return field_of(number, b"".join(encode_value(1, item, each) for each in value))
        case Type(of="bool" | "int32" | "int64"):
            return varint(number << 3) + varint(int(value))
        case Type(of="number"):
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case _:
            return field_of(number, encode_content(type_.of, value))


def encode_content(of: str, value: Any) -> bytes:
    match of:
        case "string":
            return str(value).encode()
        case "bytes":
            return base64.b64decode(value)
        case "any" | "json":
            return field_of(1, json.dumps(value).encode())
        case "quantity":
            return field_of(1, value.encode())
        case "intstr" if isinstance(value, int):
            return b"\x08\x00" + varint(2 << 3) + varint(value) + field_of(3, b"")
        case "intstr":
            return b"\x08\x01\x10\x00" + field_of(3, value.encode())
        case "time" | "microtime":
            return b"" if value is None else encode_time(times.parse_micro(value))
        case _ if numbers()[of].stands_for_field:
            return encode(of, {"allows": False, standing(of, value): value})
        case _:
            return encode(of, value)


def encode_time(instant: datetime) -> bytes:
    seconds = (instant.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    return b"\x08" + varint(int(seconds)) + b"\x10" + varint(instant.microsecond * 1000)


def standing(of: str, value: Any) -> str:
    """The field of a value, by its type."""
    names = list(numbers()[of])
    return names[0 if isinstance(value, bool) else -1 if isinstance(value, list) else names.index("schema")]
