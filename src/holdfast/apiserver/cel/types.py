"""OpenAPI schemas as CEL types.

The engine's checker knows structs by protobuf descriptors, so an object with fields becomes a message descriptor that
is generated here.  Nothing is ever encoded as such a message: rules are evaluated on plain values, with the names and
types that `Converter` gives them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from holdfast.apiserver.cel.library import OPAQUE, PACKAGE
from holdfast.meta import durations
from holdfast.meta.durations import DurationError
from holdfast.meta.schemas.nodes import EMBEDDED, INT_OR_STRING

_Field = descriptor_pb2.FieldDescriptorProto
_Schema = Mapping[str, Any]

_RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*", re.ASCII)
_TO_ESCAPE: Final = re.compile(r"__|[./-]")

_TEXT: Final = {"type": "string"}
_TYPE_META: Final[Mapping[str, Mapping[str, Any]]] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}
_SCALARS: Final = {
    "string": (_Field.TYPE_STRING, "string", "StringValue"),
    "integer": (_Field.TYPE_INT64, "int", "Int64Value"),
    "number": (_Field.TYPE_DOUBLE, "double", "DoubleValue"),
    "boolean": (_Field.TYPE_BOOL, "bool", "BoolValue"),
    "bytes": (_Field.TYPE_BYTES, "bytes", "BytesValue"),
}
_MESSAGES: Final = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_DYNAMIC: Final = "google.protobuf.Value"
_FORMATS: Final = {"date": "timestamp", "date-time": "timestamp", "duration": "duration", "byte": "bytes"}


def escaped(name: str) -> str | None:
    """The name of a field in rules; None if rules cannot access it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return None
    return _TO_ESCAPE.sub(lambda part: _ESCAPES[part[0]], name)


def fields_of(schema: _Schema, *, root: bool = False) -> Mapping[str, _Schema]:
    """The fields of an object that rules can access; whole resources also have some metadata."""
    properties: Mapping[str, _Schema] = schema.get("properties", {})
    return {**properties, **_TYPE_META} if root or schema.get(EMBEDDED) else properties


def kind_of(schema: _Schema) -> str:
    """The type of a value in rules: a JSON type, or the type of its format; empty if unknown."""
    if schema.get(INT_OR_STRING):
        return "dyn"
    kind: str = schema.get("type", "")
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), kind)
    if kind == "object" and not isinstance(schema.get("additionalProperties"), Mapping):
        return "struct"
    return {"object": "map", "array": "list"}.get(kind, kind)


class Types:
    """The types of a schema and its children, and the descriptor pool with their messages."""

    def __init__(self, schema: _Schema) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto2")
        for name in OPAQUE:
            self._file.message_type.add(name=name)
        self._messages: dict[int, str] = {}
        self.type_of(schema, root=True)
        self.pool = DescriptorPool()
        for module in (struct_pb2, wrappers_pb2, timestamp_pb2, duration_pb2):
            copy = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(copy)
            self.pool.Add(copy)
            self._file.dependency.append(module.DESCRIPTOR.name)
        self.pool.Add(self._file)

    def type_of(self, schema: _Schema, *, root: bool = False) -> str:
        """The CEL type of a schema's values, as the engine writes it."""
        match kind_of(schema):
            case "struct":
                return f"{PACKAGE}.{self._message(schema, root=root)}"
            case "map":
                return f"map<string, {self.type_of(schema['additionalProperties'])}>"
            case "list":
                return f"list<{self.type_of(schema.get('items', {}))}>"
            case "timestamp" | "duration" as kind:
                return kind
            case kind:
                return _SCALARS[kind][1] if kind in _SCALARS else "dyn"

    def _message(self, schema: _Schema, *, root: bool = False) -> str:
        known = self._messages.get(id(schema))
        if known is not None:
            return known
        message = self._file.message_type.add(name=f"Object{len(self._file.message_type)}")
        message.options.deprecated_legacy_json_field_conflicts = True
        name = self._messages[id(schema)] = str(message.name)
        fields = {
            rule_name: inner
            for field, inner in fields_of(schema, root=root).items()
            if (rule_name := escaped(field)) is not None and kind_of(inner)
        }
        taken = set(fields)
        for number, (field, inner) in enumerate(fields.items(), start=1):
            # Explicit JSON names, since the default ones may be the same for two fields.
            declared, entry = _Field(name=field, number=number, json_name=f"f{number}"), _entry_name(field)
            if kind_of(inner) == "map" and entry not in taken:
                taken.add(entry)
                self._add_map(message, declared, inner, entry=entry)
            else:
                self._add(message, declared, inner)
        return name

    def _add(self, message: Any, field: Any, schema: _Schema) -> None:
        if kind_of(schema) == "list":
            field.label = _Field.LABEL_REPEATED
            self._set_type(field, schema.get("items", {}))
        else:
            field.label = _Field.LABEL_OPTIONAL
            self._set_type(field, schema, nullable=bool(schema.get("nullable")))
        message.field.append(field)

    def _add_map(self, message: Any, field: Any, schema: _Schema, *, entry: str) -> None:
        nested = message.nested_type.add(name=entry)
        nested.options.map_entry = True
        nested.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
        value = _Field(name="value", number=2, label=_Field.LABEL_OPTIONAL)
        self._set_type(value, schema["additionalProperties"])
        nested.field.append(value)
        field.label, field.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{message.name}.{entry}"
        message.field.append(field)

    def _set_type(self, field: Any, schema: _Schema, *, nullable: bool = False) -> None:
        """Set the type of a field; nested lists and maps have no type of their own in messages."""
        kind = kind_of(schema)
        if kind in _SCALARS and not nullable:
            field.type = _SCALARS[kind][0]
            return
        field.type = _Field.TYPE_MESSAGE
        if kind == "struct":
            field.type_name = f".{PACKAGE}.{self._message(schema)}"
        elif kind in _SCALARS:
            field.type_name = f".google.protobuf.{_SCALARS[kind][2]}"
        else:
            field.type_name = f".{_MESSAGES.get(kind, _DYNAMIC)}"


def _entry_name(field: str) -> str:
    """The name of the entry message of a map field, as descriptors require it."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


Convert = Callable[[Any], Any]


def converter(schema: _Schema, *, root: bool = False) -> Convert | None:
    """The conversion of a value for rules; None if it needs none."""
    match kind_of(schema):
        case "struct":
            return _struct_converter(fields_of(schema, root=root))
        case "map":
            return _each(converter(schema["additionalProperties"]))
        case "list":
            return _each(converter(schema.get("items", {})))
        case kind:
            return _CONVERTERS.get(kind)


def _each(convert: Convert | None) -> Convert | None:
    """The conversion of lists and maps by that of their items; nulls stay."""
    if convert is None:
        return None

    def convert_each(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if item is None else convert(item) for key, item in value.items()}
        if isinstance(value, list):
            return [item if item is None else convert(item) for item in value]
        return value

    return convert_each


def _struct_converter(fields: Mapping[str, _Schema]) -> Convert | None:
    renamed = {name: escaped(name) for name in fields if escaped(name) != name}
    changed = {name: change for name, inner in fields.items() if (change := converter(inner)) is not None}
    if not renamed and not changed:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        seen: dict[str, Any] = {}
        for name, item in value.items():
            rule_name = renamed.get(name, name)
            if rule_name is not None:
                seen[rule_name] = changed[name](item) if name in changed and item is not None else item
        return seen

    return convert


def _timestamp(value: Any) -> Any:
    stamp = Timestamp()
    try:
        stamp.FromJsonString(value if "T" in value else f"{value}T00:00:00Z")
    except (TypeError, ValueError):
        return value
    return stamp


def _duration(value: Any) -> Any:
    try:
        length = Duration()
        length.FromNanoseconds(durations.parse_nanoseconds(value))
    except (TypeError, ValueError, DurationError):
        return value
    return length


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return value


def _double(value: Any) -> Any:
    return float(value) if type(value) is int else value


_CONVERTERS: Final[Mapping[str, Convert]] = {
    "timestamp": _timestamp,
    "duration": _duration,
    "bytes": _bytes,
    "number": _double,
}
