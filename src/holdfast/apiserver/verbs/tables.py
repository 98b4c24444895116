"""Tables and PartialObjectMetadata: the two short forms in which clients can request objects.

A table is what ``kubectl get`` prints: columns, and a row of cells for each object, computed on the server so that no
client needs to know a kind.  PartialObjectMetadata is cut out of the stored bytes without decoding the rest.  Columns
belong to the resource type; this module must not know any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from holdfast.apiserver.resources import Column, Object, ResourceType
from holdfast.meta.ages import age
from holdfast.meta.errors import BadRequest, FieldError
from holdfast.meta.exchange import Request, encode
from holdfast.meta.jsonpath import evaluate

META: Final = "meta.k8s.io/v1"
INCLUDES: Final = ("Metadata", "Object", "None")

_CREATED: Final = ".metadata.creationTimestamp"
_NAME: Final = Column(name="Name", value=".metadata.name", format="name", description="Name of the object.")
_AGE: Final = Column(name="Age", value=_CREATED, type="date", description="Time since the object was created.")
_CREATED_AT: Final = Column(name="Created At", value=lambda obj, now: created(obj), type="date",
                            description="When the object was created.")  # fmt: skip


class Stored(Protocol):
    """A value with the bytes of an object, and those in versions that it was converted to."""

    @property
    def value(self) -> bytes: ...

    @property
    def converted(self) -> dict[str, bytes]: ...


def created(obj: Object) -> str | None:
    value = (obj.get("metadata") or {}).get("creationTimestamp")
    return value if isinstance(value, str) else None


# --- Tables ---


def include_of(request: Request) -> str:
    """The includeObject parameter: how much of each object its row has."""
    asked = request.param("includeObject") or "Metadata"
    if asked not in INCLUDES:
        detail = "must be 'Metadata', 'Object', 'None', or empty"
        raise BadRequest(
            f"Unable to convert to Table as requested: {FieldError.invalid('includeObject', asked, detail=detail)}"
        )
    return asked


def table(
    kind: ResourceType,
    objects: Iterable[Object],
    *,
    include: str = "Metadata",
    now: float,
    list_meta: Mapping[str, Any],
    headers: bool = True,
) -> dict[str, Any]:
    """The objects as a Table; `list_meta` is the metadata of the list, or of the only object."""
    columns = columns_of(kind)
    definitions = [_definition(column, custom=kind.custom) for column in columns] if headers else None
    rows = [
        {"cells": [_cell(column, obj, now) for column in columns], "object": _included(obj, include)} for obj in objects
    ]
    return {
        "kind": "Table",
        "apiVersion": META,
        "metadata": dict(list_meta),
        "columnDefinitions": definitions,
        "rows": rows,
    }


def columns_of(kind: ResourceType) -> tuple[Column, ...]:
    """The columns of a kind: the name first unless the kind places it, and the creation time if it has none."""
    own = kind.columns or ((_AGE,) if kind.custom else (_CREATED_AT,))
    return own if any(column.name == _NAME.name for column in own) else (_NAME, *own)


def _definition(column: Column, *, custom: bool) -> dict[str, Any]:
    description = column.description
    if custom and not description:
        description = f"Custom resource definition column (in JSONPath format): {column.value}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    }


def _cell(column: Column, obj: Object, now: float) -> Any:
    if "name" not in obj["metadata"]:
        return ""  # a bookmark of a watch is an object with a version and nothing else
    if callable(column.value):
        return column.value(obj, now)
    value = evaluate.compile(column.value).first(obj)
    return None if value is None else _as(column.type, value, now)


def _as(type_: str, value: Any, now: float) -> Any:
    """A value as a cell of a column's type; None if it is not of that type."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_:
        case "string":
            return evaluate.text_of(value)
        case "integer" if number:
            return int(value)
        case "number" if number:
            return float(value)
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            return age(value, now)
        case _:
            return None


def _included(obj: Object, include: str) -> Any:
    match include:
        case "Object":
            return obj
        case "None":
            return None
        case _:
            return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj.get("metadata") or {}}


# --- Metadata alone ---


class _Head(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_heads: Final = msgspec.json.Decoder(_Head)
_PARTIAL: Final = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


def partial(value: bytes) -> bytes:
    """The metadata of an object, cut out of its bytes."""
    return _PARTIAL + bytes(_heads.decode(value).metadata) + b"}"


def partial_list(values: Iterable[bytes], list_meta: Mapping[str, Any]) -> bytes:
    begin = {"kind": "PartialObjectMetadataList", "apiVersion": META, "metadata": dict(list_meta)}
    return encode(begin)[:-1] + b',"items":[' + b",".join(map(partial, values)) + b"]}"


# --- Watches ---


def watch_renderer(
    kind: ResourceType, form: str, include: str, *, now: Callable[[], float]
) -> Callable[[Stored], bytes] | None:
    """The conversion of the objects of a watch; None if they are sent as stored."""
    match form:
        case "Table":
            return _TableEvents(kind, include, now)
        case "PartialObjectMetadata":
            return lambda entry: partial(entry.value)
        case _:
            return None


class _TableEvents:
    """Each object of a watch as a table of one row; only the first has the column definitions."""

    def __init__(self, kind: ResourceType, include: str, now: Callable[[], float]) -> None:
        self._kind = kind
        self._include = include
        self._now = now
        self._headers = True

    def __call__(self, entry: Stored) -> bytes:
        obj: Object = msgspec.json.decode(entry.converted.get(self._kind.api_version, entry.value))
        obj["apiVersion"] = self._kind.api_version
        version = (obj.get("metadata") or {}).get("resourceVersion", "")
        shown = table(
            self._kind,
            (obj,),
            include=self._include,
            now=self._now(),
            list_meta={"resourceVersion": version},
            headers=self._headers,
        )
        self._headers = False
        return encode(shown)
