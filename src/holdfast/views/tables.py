"""Tables: what a server sends for ``get``, laid out in columns.

The server makes the cells, so that clients need not know the kind; here is only
decided which columns are shown and how wide they are, as kubectl does.  Values
in, lines out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.meta.jsonpath import evaluate
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.views.columns import NOTHING, Alignment, Piece
from holdfast.views.spans import Line, Span, Tone

_BREAK: Final = re.compile(r"[\f\n\r]")
_DIGITS: Final = re.compile(r"(\d+)")

Object = Mapping[str, Any]


class Column(msgspec.Struct, frozen=True):
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0


class Row(msgspec.Struct, frozen=True):
    cells: list[Any]
    object: dict[str, Any] | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        return (self.object or {}).get("metadata") or {}


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """A ``meta.k8s.io`` Table."""

    column_definitions: list[Column] | None = None
    rows: list[Row] | None = None
    metadata: ListMeta = ListMeta()
    kind: str = ""

    @property
    def columns(self) -> list[Column]:
        return self.column_definitions or []


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Which columns of a table are shown beside the usual ones."""

    wide: bool = False
    headers: bool = True
    namespaces: bool = False
    labels: bool = False
    label_columns: tuple[str, ...] = ()
    kind: str = ""
    """The prefix of each name where several kinds are shown: ``deployment.apps``."""


def header(columns: Sequence[Column], look: Look) -> list[str]:
    shown = [column.name.upper() for column in columns if look.wide or not column.priority]
    own = [label.rpartition("/")[2].upper() for label in look.label_columns]
    return [*(["NAMESPACE"] if look.namespaces else []), *shown, *own, *(["LABELS"] if look.labels else [])]


def line(columns: Sequence[Column], row: Row, look: Look) -> list[str]:
    """The cells of a row that are shown, as text."""
    shown = []
    named = False
    for column, cell in zip(columns, row.cells, strict=False):
        text = _text(cell)
        if look.kind and not named and column.format == "name":
            text, named = f"{look.kind}/{text}", True
        if look.wide or not column.priority:
            shown.append(text)
    labels = row.metadata.get("labels") or {}
    own = [labels.get(label, "") for label in look.label_columns]
    every = [",".join(f"{name}={value}" for name, value in sorted(labels.items())) or NOTHING] if look.labels else []
    place = [row.metadata.get("namespace") or NOTHING] if look.namespaces else []
    return [*place, *shown, *own, *every]


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    first, *rest = _BREAK.split(evaluate.text_of(cell), maxsplit=1)
    return first.replace("\x1b", "^[") + ("..." if rest else "")


# What a cell means.

_STATES: Final = frozenset({"STATUS", "PHASE", "STATE", "AVAILABLE"})
"""The columns whose cells have a tone."""

_BAD: Final = re.compile(
    r"Err|Fail|BackOff|Crash|Lost|NotReady|Blocked|Evicted|OOMKilled|Invalid|Degraded|Unreachable|Rejected"
)
_GOOD: Final = frozenset(
    {"Running", "Ready", "Completed", "Complete", "Succeeded", "Active", "Bound", "Available", "Healthy", "True"}
)


def tone(title: str, cell: str) -> Tone:
    """What a cell means, by the title of its column."""
    if title not in _STATES or not cell or cell == NOTHING or cell.isdecimal():
        return Tone.PLAIN
    if _BAD.search(cell):
        return Tone.BAD
    return Tone.GOOD if cell in _GOOD else Tone.CARE


def painted(titles: Sequence[str], rows: Sequence[Sequence[str]], alignment: Alignment, *, header: bool) -> list[Line]:
    """Rows below their titles, whose states have tones."""
    shown = [*([titles] if header else []), *rows]
    laid = zip(shown, alignment.rows(shown, titles), strict=True)
    return [
        tuple(Span(piece.text, _tone_of(piece, titles, row)) for piece in line) for row, lines in laid for line in lines
    ]


def _tone_of(piece: Piece, titles: Sequence[str], row: Sequence[str]) -> Tone:
    if row is titles or piece.column is None:
        return Tone.FAINT
    return tone(titles[piece.column], row[piece.column]) if piece.column < len(titles) else Tone.PLAIN


# Columns that a user asks for.


@dataclass(frozen=True, slots=True)
class Custom:
    """A column by its heading and the path of what it shows."""

    heading: str
    path: evaluate.Path


def custom_columns(written: str) -> tuple[Custom, ...]:
    """``NAME:.metadata.name,NODE:.spec.nodeName``; raises `ValueError` that says what is wrong."""
    columns = []
    for each in written.split(","):
        heading, colon, path = each.partition(":")
        if not (heading and colon and path):
            raise ValueError(f"{each!r} is not a column; write HEADING:PATH, such as NAME:.metadata.name")
        columns.append(Custom(heading, evaluate.compile(path)))
    return tuple(columns)


def custom_line(columns: Iterable[Custom], obj: Object) -> list[str]:
    return [",".join(map(evaluate.text_of, column.path.find(obj))) or NOTHING for column in columns]


# Order.


def order(objects: Sequence[Object], path: str) -> list[int]:
    """The places of the objects by the values at a path: those without first, numbers in names as numbers."""
    found = [next(iter(evaluate.compile(path).find(obj)), None) for obj in objects]
    quantities = all(isinstance(value, str) and _quantity(value) is not None for value in found if value is not None)
    keys = [_order_key(value, quantities=quantities) for value in found]
    return sorted(range(len(objects)), key=keys.__getitem__)


def _order_key(value: Any, *, quantities: bool) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)
    if quantities:
        return (1, _quantity(value))
    parts = _DIGITS.split(evaluate.text_of(value))
    return (2, *((part, 0) if index % 2 == 0 else ("", int(part)) for index, part in enumerate(parts)))


def _quantity(value: str) -> int | None:
    try:
        return Quantity.parse(value).nanos
    except QuantityError:
        return None
