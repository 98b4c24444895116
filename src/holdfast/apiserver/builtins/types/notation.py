"""The notation of the built-in types, and their OpenAPI schemas.

One block per type, one or several fields per line::

    Container -- A container of a pod.
      name! string -- Name of the container, unique within its pod.
      ports [containerPort,protocol]ContainerPort ~containerPort
      terminationMessagePath string = "/dev/termination-log"
      resources ResourceRequirements
      stdin bool; stdinOnce bool; tty bool

    Type kind            a whole object: apiVersion, kind and metadata come by themselves
    Type atomic          replaced as a whole by server-side apply
    field!               required
    *T                   absent and zero differ, so a zero is kept; a zero of other fields is left out, as typed
                         clients and servers of Kubernetes do
    T (a type's name)    always present, ``{}`` by default; ``*T`` may be absent
    []T [set]T [k,l]T    a list: atomic, a set, or keyed by fields
    {}T                  a map of strings
    ~key                 the merge key of strategic patches where it is not the first key of the list; ``~`` merges
                         without one, ``~-`` does not merge; ``~!`` replaces an object as a whole;
                         ``~key,retainKeys``: a union's members replace one another
    atomic               the map is replaced as a whole
    = value              the default, in JSON
    -- text              what it is
    # text               at the beginning of a line: a comment

This module knows no particular type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Schema = dict[str, Any]

SCALARS: Final[Mapping[str, Schema]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "intstr": {"x-kubernetes-int-or-string": True, "format": "int-or-string"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "json": {"x-kubernetes-preserve-unknown-fields": True},
}
TIMES: Final = frozenset({"time", "microtime"})
ZEROS: Final[Mapping[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0, "number": 0, "bytes": ""}
_OBJECT_FIELDS: Final = """
  apiVersion string -- Group and version of this representation.
  kind string -- Kind of the object.
  metadata ObjectMeta -- Name, labels and other metadata.
"""

_HEADER: Final = re.compile(r"(\w+)((?: (?:kind|atomic))*)(?: -- (.*))?")
_FIELD: Final = re.compile(
    r"(?P<name>[\w$-]+)(?P<required>!)? (?P<type>\S+)(?: ~(?P<merge>\S*))?(?P<atomic> atomic)?"
    r"(?: = (?P<default>.*?))?(?: -- (?P<text>.*))?"
)
_TYPE: Final = re.compile(r"(?P<pointer>\*)?(?P<container>\[[\w,]*\]|\{\})?(?P<of>.+)")


class NotationError(ValueError):
    """A line that is not in the notation."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a field: a scalar or a named type, or a list or map of them."""

    of: str
    """The name of a scalar or a struct; for a list or map, the type of its items."""
    container: str = ""
    """``[]`` with the keys between the brackets, ``{}``, or nothing."""
    item: Type | None = None
    pointer: bool = False

    @classmethod
    def parse(cls, text: str) -> Type:
        match = _TYPE.fullmatch(text)
        if match is None:
            raise NotationError(f"{text!r} is not a type")
        item = cls.parse(match["of"]) if match["container"] else None
        return cls(match["of"], match["container"] or "", item, match["pointer"] is not None)

    @property
    def keys(self) -> tuple[str, ...]:
        inner = self.container[1:-1] if self.container.startswith("[") else ""
        return tuple(inner.split(",")) if inner and inner != "set" else ()


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type
    required: bool
    merge: str | None
    atomic: bool
    default: Any
    """None if there is none; no field has the default null."""
    text: str

    @classmethod
    def parse(cls, line: str) -> Field:
        match = _FIELD.fullmatch(" ".join(line.split()))
        if match is None:
            raise NotationError(f"{line.strip()!r} is not a field; write 'name type = default -- text'")
        return cls(
            name=match["name"],
            type=Type.parse(match["type"]),
            required=match["required"] is not None,
            merge=match["merge"],
            atomic=match["atomic"] is not None,
            default=json.loads(match["default"]) if match["default"] else None,
            text=match["text"] or "",
        )


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    fields: tuple[Field, ...]
    atomic: bool = False
    text: str = ""


def read(text: str) -> Iterator[Struct]:
    """The types of a text, in its order."""
    for block in re.split(r"\n(?=\w)", without_comments(text)):
        head, _, body = block.partition("\n")
        match = _HEADER.fullmatch(head.strip())
        if match is None:
            raise NotationError(f"{head!r} does not begin a type; write 'Name -- text'")
        if "kind" in match[2]:
            body = _OBJECT_FIELDS + body
        lines = (part for line in body.splitlines() for part in _split(line))
        yield Struct(match[1], tuple(map(Field.parse, lines)), "atomic" in match[2], match[3] or "")


def without_comments(text: str) -> str:
    return re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip()


def _split(line: str) -> list[str]:
    """The fields of a line; the text after ``--`` may have semicolons of its own."""
    fields, dashes, text = line.partition(" -- ")
    parts = [part for part in fields.split(";") if part.strip()]
    return [*parts[:-1], parts[-1] + dashes + text] if parts else []


class Types:
    """All types of some texts; schemas are computed on first use, and shared."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self._structs: dict[str, Struct] = {}
        self._schemas: dict[str, Schema] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __contains__(self, name: object) -> bool:
        return name in self._known()

    def struct(self, name: str) -> Struct:
        return self._known()[name]

    def schema(self, name: str) -> Schema:
        """The OpenAPI schema of a type.  Each use of a type shares one value, which must not be changed."""
        if name not in self._schemas:
            schema: Schema = {"type": "object"}
            self._schemas[name] = schema
            struct = self.struct(name)
            schema |= {"description": struct.text} if struct.text else {}
            schema["properties"] = {field.name: self._property(field) for field in struct.fields}
            required = [field.name for field in struct.fields if field.required]
            schema |= {"required": required} if required else {}
            schema |= {"x-kubernetes-map-type": "atomic"} if struct.atomic else {}
        return self._schemas[name]

    def blank(self, name: str) -> dict[str, Any]:
        """An empty object of this type: its defaults and the fields that are always written."""
        properties = self.schema(name)["properties"]
        blank: dict[str, Any] = {}
        for field in self.struct(name).fields:
            default = properties[field.name].get("default")
            if default is not None:
                blank[field.name] = self.blank(field.type.of) if default == {} else default
        return blank

    def _known(self) -> dict[str, Struct]:
        if not self._structs:
            for struct in (struct for text in self._texts for struct in read(text)):
                if struct.name in self._structs:
                    raise NotationError(f"{struct.name} is described twice")
                self._structs[struct.name] = struct
        return self._structs

    def _property(self, field: Field) -> Schema:
        schema = self._of(field.type)
        extra: Schema = {"description": field.text} if field.text else {}
        default = field.default if field.default is not None else self.zero(field)
        extra |= {"default": default} if default is not None else {}
        extra |= {"x-kubernetes-map-type": "atomic"} if field.atomic else {}
        extra |= {"nullable": True} if field.type.of in TIMES and not field.type.container else {}
        merge = field.type.keys[0] if field.merge is None and field.type.keys else field.merge
        if merge == "!":
            extra["x-kubernetes-patch-strategy"] = "replace"
        elif merge is not None and merge != "-":
            key, _, strategy = merge.partition(",")
            extra["x-kubernetes-patch-strategy"] = f"merge,{strategy}" if strategy else "merge"
            extra |= {"x-kubernetes-patch-merge-key": key} if key else {}
        return schema | extra if extra else schema

    def _of(self, type_: Type) -> Schema:
        if type_.item is not None and type_.container == "{}":
            return {"type": "object", "additionalProperties": self._of(type_.item)}
        if type_.item is not None:
            return {"type": "array", "items": self._of(type_.item)} | _list_type(type_)
        return SCALARS[type_.of] if type_.of in SCALARS else self.schema(type_.of)

    def zero(self, field: Field) -> Any:
        """The value of an unset field that is always written; None if it is left out."""
        if field.type.container or field.type.pointer:
            return None
        if field.type.of in self:
            return {}
        return ZEROS.get(field.type.of) if field.required else None


def _list_type(type_: Type) -> Schema:
    if type_.keys:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(type_.keys)}
    return {"x-kubernetes-list-type": "set" if "set" in type_.container else "atomic"}
