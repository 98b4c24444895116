"""Tables on a screen: side by side where there is room, wrapped or below their row where there is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.views.columns import Alignment, aligned, wrapped

PODS = [
    ["NAME", "READY", "STATUS", "AGE", "IP", "NODE", "NOMINATED NODE"],
    ["web-7fbcf-x2x9s", "1/1", "Running", "5m", "10.64.0.2", "node-1", "<none>"],
    ["web-7fbcf-zzt4k", "0/1", "Pending", "1s", "<none>", "<none>", "<none>"],
]
EVENTS = [["TYPE", "REASON", "MESSAGE"], ["Normal", "Started", "one two three four five six seven eight nine ten"]]


@pytest.mark.parametrize("width", [None, 200])
def test_a_table_that_fits_is_as_kubectl_has_it(width: int | None) -> None:
    assert aligned(PODS, width)[:2] == [
        "NAME              READY   STATUS    AGE   IP          NODE     NOMINATED NODE",
        "web-7fbcf-x2x9s   1/1     Running   5m    10.64.0.2   node-1   <none>",
    ]


def test_columns_without_room_go_below_their_row_with_their_titles_and_empty_ones_are_left_out() -> None:
    assert aligned(PODS, 50) == [
        "NAME              READY   STATUS    AGE",
        "web-7fbcf-x2x9s   1/1     Running   5m",
        "    IP: 10.64.0.2   NODE: node-1",
        "web-7fbcf-zzt4k   0/1     Pending   1s",
    ]


def test_a_text_is_wrapped_in_its_column_where_that_is_wide_enough_to_read() -> None:
    assert aligned(EVENTS, 60) == [
        "TYPE     REASON    MESSAGE",
        "Normal   Started   one two three four five six seven eight",
        "                   nine ten",
    ]


def test_and_otherwise_it_goes_below_its_row_over_the_whole_width() -> None:
    assert aligned(EVENTS, 40) == [
        "TYPE     REASON",
        "Normal   Started",
        "    MESSAGE: one two three four five six",
        "      seven eight nine ten",
    ]


def test_titles_break_before_columns_are_moved() -> None:
    assert aligned([["NAME", "NOMINATED NODE"], ["web", "<none>"]], 17) == [
        "NAME   NOMINATED",
        "       NODE",
        "web    <none>",
    ]


def test_lists_break_behind_their_commas_and_names_never() -> None:
    assert list(wrapped("app=web,tier=front", 12)) == ["app=web,", "tier=front"]
    assert list(wrapped("web-7fbcf-x2x9s", 5)) == ["web-7fbcf-x2x9s"]


def test_rows_of_a_watch_keep_the_form_of_the_first_ones() -> None:
    alignment = Alignment(50)
    alignment.lines(PODS)
    late = ["web-7fbcf-c9q2v", "1/1", "Running", "1s", "10.64.0.9", "node-2", "<none>"]
    assert alignment.lines([late], PODS[0]) == [
        "web-7fbcf-c9q2v   1/1     Running   1s",
        "    IP: 10.64.0.9   NODE: node-2",
    ]


CELLS = st.text("ab ,-", max_size=40).map(str.strip)


@given(
    rows=st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4)),
    width=st.integers(1, 120),
)
def test_no_letter_is_lost_on_any_width(rows: list[list[str]], width: int) -> None:
    titles = [f"T{index}" for index in range(len(rows[0]))]
    shown = "".join(aligned([titles, *rows], width))
    letters = sorted(letter for row in rows for cell in row if cell != "-" for letter in cell if letter in "ab")
    assert sorted(letter for letter in shown if letter in "ab") == letters


@given(words=st.lists(st.text("ab", min_size=1, max_size=10), max_size=20), width=st.integers(10, 60))
def test_a_wrapped_text_has_all_its_words_in_lines_that_fit(words: list[str], width: int) -> None:
    lines = list(wrapped(" ".join(words), width))
    assert " ".join(lines).split() == words
    assert all(len(line) <= width for line in lines)
