"""Tables and metadata alone: columns, cells, rows, and the events of watches."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.apiserver.builtins.common.columns import AGE
from holdfast.apiserver.builtins.events import EVENT
from holdfast.apiserver.resources import Column, ResourceType
from holdfast.apiserver.verbs import tables
from holdfast.meta import ages
from holdfast.meta.errors import BadRequest
from holdfast.meta.exchange import Request, encode

NOW = datetime(2025, 1, 15, 10, tzinfo=UTC).timestamp()
COLUMNS = (
    Column(name="Size", value=".spec.size", type="integer"),
    Column(name="Phase", value=".status.phase", description="Where it is.", priority=1),
    Column(name="Age", value=".metadata.creationTimestamp", type="date"),
)
WIDGETS = ResourceType(
    group="oracle.example", version="v1", kind="Widget", plural="widgets", singular="widget", custom=True,
    columns=COLUMNS,
)  # fmt: skip
WIDGET: dict[str, Any] = {
    "kind": "Widget",
    "apiVersion": "oracle.example/v1",
    "metadata": {"name": "a", "resourceVersion": "7", "creationTimestamp": "2025-01-15T09:55:00Z"},
    "spec": {"size": 3},
}
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": WIDGET["metadata"]}


@dataclass(frozen=True)
class Entry:
    value: bytes
    converted: dict[str, bytes] = field(default_factory=dict)


def rows_of(*columns: Column, obj: dict[str, Any] = WIDGET, custom: bool = True) -> list[Any]:
    kind = ResourceType(group="g", version="v1", kind="K", plural="ks", singular="k", custom=custom, columns=columns)
    shown = tables.table(kind, [obj], now=NOW, list_meta={})
    return list(shown["rows"][0]["cells"])


SECOND, MINUTE, HOUR, DAY, YEAR = 1, 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (1.9, "1s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 30, "2m30s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 2 * HOUR, "3d2h"),
        (8 * DAY + 2 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 11 * DAY, "2y11d"),
        (8 * YEAR + 11 * DAY, "8y"),
    ],
)
def test_spans_are_printed_in_two_or_three_figures(seconds: float, text: str) -> None:
    assert ages.human_duration(seconds) == text


def age_cell(obj: dict[str, Any], now: float) -> Any:
    assert callable(AGE.value)
    return AGE.value(obj, now)


def test_an_age_that_cannot_be_told_says_so() -> None:
    assert age_cell(WIDGET, NOW) == "5m"
    assert age_cell({"metadata": {"creationTimestamp": None}}, NOW) == "<unknown>"
    assert ages.age("yesterday", NOW) == "<invalid>"


def test_a_table_has_a_name_then_the_columns_of_the_kind() -> None:
    shown = tables.table(WIDGETS, [WIDGET], now=NOW, list_meta={"resourceVersion": "9"})
    assert shown["kind"] == "Table"
    assert shown["apiVersion"] == "meta.k8s.io/v1"
    assert shown["metadata"] == {"resourceVersion": "9"}
    assert [(c["name"], c["type"], c["format"], c["priority"]) for c in shown["columnDefinitions"]] == [
        ("Name", "string", "name", 0),
        ("Size", "integer", "", 0),
        ("Phase", "string", "", 1),
        ("Age", "date", "", 0),
    ]
    assert [column["description"] for column in shown["columnDefinitions"][1:3]] == [
        "Custom resource definition column (in JSONPath format): .spec.size",
        "Where it is.",
    ]
    assert shown["rows"] == [{"cells": ["a", 3, None, "5m"], "object": PARTIAL}]


def test_a_name_that_stands_elsewhere_is_not_put_first() -> None:
    shown = [column.name for column in tables.columns_of(EVENT) if not column.priority]
    assert shown == ["Last Seen", "Type", "Reason", "Object", "Message"]


@pytest.mark.parametrize(
    ("type_", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", 3, "3"),
        ("string", True, "true"),
        ("string", {"a": [1]}, '{"a":[1]}'),
        ("integer", 3, 3),
        ("integer", 3.7, 3),
        ("integer", "3", None),
        ("integer", True, None),
        ("number", 3, 3.0),
        ("number", "3", None),
        ("boolean", False, False),
        ("boolean", "false", None),
        ("date", "2025-01-15T09:00:00Z", "60m"),
        ("date", "soon", "<invalid>"),
        ("date", 3, None),
    ],
)
def test_cells_are_of_their_columns_type_or_empty(type_: str, value: Any, cell: Any) -> None:
    cells = rows_of(
        Column(name="C", value=".spec.c", type=type_), obj={"metadata": {"name": "a"}, "spec": {"c": value}}
    )
    assert cells == ["a", cell]
    assert type(cells[1]) is type(cell)


def test_cells_may_be_functions_of_object_and_time() -> None:
    assert rows_of(Column(name="Name", value=lambda obj, now: "own"), Column(name="Age", value=age_cell)) == [
        "own",
        "5m",
    ]


def test_a_path_that_leads_nowhere_is_an_empty_cell() -> None:
    assert rows_of(Column(name="C", value=".spec.size[0].x"), Column(name="D", value=".status.ready")) == [
        "a",
        None,
        None,
    ]


def test_kinds_without_columns_show_when_their_objects_were_made() -> None:
    assert rows_of() == ["a", "5m"]
    assert rows_of(custom=False) == ["a", "2025-01-15T09:55:00Z"]


def test_rows_carry_as_much_of_the_object_as_is_asked() -> None:
    for include, expected in (("Metadata", PARTIAL), ("Object", WIDGET), ("None", None)):
        shown = tables.table(WIDGETS, [WIDGET], include=include, now=NOW, list_meta={})
        assert shown["rows"][0]["object"] == expected


def test_how_much_is_included_is_metadata_unless_the_query_says_otherwise() -> None:
    def asked(*values: str) -> Request:
        return Request("GET", "/", {"includeObject": values} if values else {})

    assert tables.include_of(asked()) == "Metadata"
    assert tables.include_of(asked("")) == "Metadata"
    assert tables.include_of(asked("None")) == "None"
    with pytest.raises(BadRequest) as refused:
        tables.include_of(asked("All"))
    assert refused.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_metadata_is_cut_out_of_the_bytes() -> None:
    assert json.loads(tables.partial(encode(WIDGET))) == PARTIAL
    assert json.loads(tables.partial(b'{"spec":{}}'))["metadata"] == {}
    assert json.loads(tables.partial_list([encode(WIDGET)] * 2, {"resourceVersion": "9", "continue": "c"})) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9", "continue": "c"},
        "items": [PARTIAL, PARTIAL],
    }
    assert json.loads(tables.partial_list([], {}))["items"] == []


def test_only_the_first_event_of_a_watch_says_what_the_columns_are() -> None:
    render = tables.watch_renderer(WIDGETS, "Table", "None", now=lambda: NOW)
    assert render is not None
    first, second = (json.loads(render(Entry(encode(WIDGET)))) for _ in range(2))
    assert len(first["columnDefinitions"]) == 4
    assert second["columnDefinitions"] is None
    assert first["metadata"] == {"resourceVersion": "7"}
    assert first["rows"] == second["rows"] == [{"cells": ["a", 3, None, "5m"], "object": None}]


def test_a_watch_of_another_version_shows_objects_in_that_version() -> None:
    old = {**WIDGET, "apiVersion": "oracle.example/v1beta1"}
    render = tables.watch_renderer(WIDGETS, "Table", "Object", now=lambda: NOW)
    assert render is not None
    assert json.loads(render(Entry(encode(old))))["rows"][0]["object"] == WIDGET


def test_watches_of_metadata_and_of_whole_objects_need_no_table() -> None:
    render = tables.watch_renderer(WIDGETS, "PartialObjectMetadata", "Metadata", now=lambda: NOW)
    assert render is not None
    assert json.loads(render(Entry(encode(WIDGET)))) == PARTIAL
    assert tables.watch_renderer(WIDGETS, "", "Metadata", now=lambda: NOW) is None
