"""Tables: which columns are shown, how wide they are, and in which order rows stand."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.views.columns import Alignment, aligned
from holdfast.views.spans import Tone
from holdfast.views.tables import (
    Column,
    Look,
    Row,
    custom_columns,
    custom_line,
    header,
    line,
    order,
    painted,
    tone,
)

COLUMNS = [Column("Name", format="name"), Column("Count", type="integer"), Column("Node", priority=1)]


def row(*cells: Any, **metadata: Any) -> Row:
    return Row(list(cells), {"metadata": metadata})


ROW = row("web", 3, "n1", namespace="team", labels={"b": "2", "example.com/a": "1"})


@pytest.mark.parametrize(
    ("look", "titles", "cells"),
    [
        (Look(), ["NAME", "COUNT"], ["web", "3"]),
        (Look(wide=True), ["NAME", "COUNT", "NODE"], ["web", "3", "n1"]),
        (Look(namespaces=True), ["NAMESPACE", "NAME", "COUNT"], ["team", "web", "3"]),
        (Look(kind="deployment.apps"), ["NAME", "COUNT"], ["deployment.apps/web", "3"]),
        (Look(labels=True), ["NAME", "COUNT", "LABELS"], ["web", "3", "b=2,example.com/a=1"]),
        (Look(label_columns=("example.com/a", "x")), ["NAME", "COUNT", "A", "X"], ["web", "3", "1", ""]),
    ],
)
def test_only_what_is_wanted_is_shown(look: Look, titles: list[str], cells: list[str]) -> None:
    assert header(COLUMNS, look) == titles
    assert line(COLUMNS, ROW, look) == cells


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, ""), ("a\nb", "a..."), ("a\x1b[1m", "a^[[1m"), (True, "true"), (1.0, "1"), (["x"], '["x"]')],
)
def test_cells_are_one_line_of_harmless_text(cell: Any, text: str) -> None:
    assert line([Column("X")], row(cell), Look()) == [text]


def test_objects_without_labels_say_so() -> None:
    assert line([Column("X")], row("x"), Look(labels=True)) == ["x", "<none>"]


def test_columns_stand_below_each_other_and_the_last_is_not_filled_up() -> None:
    assert aligned([["A", "LONGER", "C"], ["aaaaa", "b", "c"]]) == ["A       LONGER   C", "aaaaa   b        c"]


def test_later_rows_keep_the_widths_of_earlier_ones() -> None:
    alignment = Alignment()
    assert alignment.lines([["first-name", "1"]]) == ["first-name   1"]
    assert alignment.lines([["b", "2"]]) == ["b            2"]


def test_columns_of_ones_own_show_what_their_paths_lead_to() -> None:
    columns = custom_columns("NAME:.metadata.name,PORTS:{.ports[*]},NONE:none")
    assert [column.heading for column in columns] == ["NAME", "PORTS", "NONE"]
    assert custom_line(columns, {"metadata": {"name": "x"}, "ports": [1, 2]}) == ["x", "1,2", "<none>"]


@pytest.mark.parametrize("written", ["NAME", "NAME:", ":.a", "A:.a,", "A:{.a"])
def test_a_column_that_cannot_be_read_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is not a column|.*\n.*\^"):
        custom_columns(written)


@pytest.mark.parametrize(
    ("values", "sorted_"),
    [
        ([3, 1, 2], [1, 2, 3]),
        (["web-10", "web-9"], ["web-9", "web-10"]),
        (["1Gi", "512Mi", "2G"], ["512Mi", "1Gi", "2G"]),
        (["b", None, "a"], [None, "a", "b"]),
        (["2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z"], ["2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"]),
        (["b", 2, "a"], [2, "a", "b"]),
    ],
)
def test_rows_are_sorted_as_people_would(values: list[Any], sorted_: list[Any]) -> None:
    objects = [{} if value is None else {"x": value} for value in values]
    assert [values[index] for index in order(objects, ".x")] == sorted_


@pytest.mark.parametrize(
    ("title", "cell", "meaning"),
    [
        ("STATUS", "Running", Tone.GOOD),
        ("STATUS", "CrashLoopBackOff", Tone.BAD),
        ("STATUS", "ContainerCreating", Tone.CARE),
        ("PHASE", "Failed", Tone.BAD),
        ("NAME", "Failed", Tone.PLAIN),
        ("AVAILABLE", "3", Tone.PLAIN),
        ("STATUS", "", Tone.PLAIN),
    ],
)
def test_a_state_has_a_tone(title: str, cell: str, meaning: Tone) -> None:
    assert tone(title, cell) is meaning


def test_painted_rows_have_the_text_of_aligned_ones() -> None:
    titles, rows = ["NAME", "STATUS"], [["web-0", "Running"], ["a-longer-name", ""]]
    made = painted(titles, rows, Alignment(), header=True)
    assert ["".join(span.text for span in line) for line in made] == aligned([titles, *rows])
