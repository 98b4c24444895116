"""Fleets as pictures: shapes without colours, floors that show, dips that are not lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.fleet import Replica, State
from holdfast.views.fleets import (
    GOING,
    MOST_CELLS,
    SHAPES,
    Mark,
    Picture,
    Piece,
    Sample,
    chart,
    gauge,
    legend,
    picture,
    scale_of,
    sparkline,
    worst_moments,
)

NOW = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def replica(name: str, revision: str = "v1", *, ready: int | None = 60, **fields: bool) -> Replica:
    since = None if ready is None else NOW - ready * SECOND
    return Replica(id=name, revision=revision, created_at=NOW, ready_since=since, **fields)


def shown(*replicas: Replica, revisions: tuple[str, ...] = ("v1", "v2"), scale: int = 1) -> Picture:
    return picture(replicas, revisions=revisions, target="v2", now=NOW, min_ready=10 * SECOND, scale=scale)


def text(pieces: tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in pieces)


# Cells.


def test_every_revision_and_state_is_told_apart_by_its_shape_alone() -> None:
    glyphs = [glyph for shape in SHAPES for glyph in shape.values()] + list(GOING.values())
    assert len(glyphs) == len(set(glyphs))


def test_replicas_stand_in_rows_by_revision_from_serving_to_gone() -> None:
    seen = shown(
        replica("a", ready=None),
        replica("b"),
        replica("c", ready=5),
        replica("d", dead=True),
        replica("e", terminating=True),
        replica("f", "v2"),
        replica("g", "v2", ready=None),
    )
    assert [row.text for row in seen.rows] == ["■▣□✗·", "●○"]
    assert [row.wanted for row in seen.rows] == [False, True]
    assert seen.line() == "■▣□✗·  ●○"
    assert seen.ready == (2, 1)
    assert seen.rows[0].words == "1 of 5 available"


def test_many_replicas_on_a_line_become_numbers() -> None:
    seen = shown(*(replica(str(number)) for number in range(41)), replica("x", "v2", ready=None))
    assert seen.line() == "■41  ○1"
    assert seen.line(most=50).startswith("■■■")


def test_a_revision_without_replicas_keeps_its_row_and_leaves_the_line() -> None:
    seen = shown(replica("f", "v2"))
    assert [row.words for row in seen.rows] == ["none", "1 of 1 available"]
    assert seen.line() == "●"


def test_a_single_dead_replica_among_thousands_is_still_seen() -> None:
    fleet = [replica(str(number)) for number in range(999)] + [replica("x", dead=True)]
    seen = shown(*fleet, scale=scale_of(len(fleet)))
    assert seen.rows[0].text == "■" * 200 + "✗"


@given(st.integers(0, 1_000_000))
def test_any_fleet_fits_into_the_cells(number: int) -> None:
    assert -(-number // scale_of(number)) <= MOST_CELLS
    assert scale_of(number) == 1 or number > MOST_CELLS


def test_the_legend_names_revisions_and_states() -> None:
    assert legend(["v1", "v2"]) == "■ v1  ● v2  ◉ settling  ○ not ready  ✗ dead  · terminating"


# The gauge.


@pytest.mark.parametrize(
    ("ready", "drawn"),
    [(10, "████████┃██"), (8, "████████┃░░"), (4, "████░░░░┃░░"), (0, "░░░░░░░░┃░░")],
)
def test_the_gauge_shows_the_floor_as_a_line_across_the_bar(ready: int, drawn: str) -> None:
    assert text(gauge(ready, floor=8, ceiling=10, width=11)) == drawn


def test_a_gauge_below_the_floor_is_marked_as_a_breach() -> None:
    assert gauge(7, floor=8, ceiling=10, width=11)[0].mark is Mark.BREACH
    assert gauge(8, floor=8, ceiling=10, width=11)[0].mark is Mark.FULL


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(2, 120))
def test_a_gauge_is_always_as_wide_as_asked_for(ready: int, floor: int, ceiling: int, width: int) -> None:
    assert len(text(gauge(ready, floor=floor, ceiling=ceiling, width=width))) == width


# The chart.


def drawn(samples: list[Sample], *, until: int, end: int, top: int, width: int, height: int) -> list[str]:
    rows = chart(samples, until=until * SECOND, end=end * SECOND, top=top, width=width, height=height)
    return [text(row) for row in rows]


def test_a_chart_stacks_the_new_revision_below_the_old_one_and_draws_the_floor() -> None:
    samples = [Sample(0 * SECOND, (3, 0), 2), Sample(4 * SECOND, (2, 1), 2), Sample(8 * SECOND, (1, 3), 2)]
    assert drawn(samples, until=9, end=12, top=4, width=12, height=4) == [
        "        ▒▒  ",
        "▒▒▒▒▒▒▒▒██  ",
        "━━━━━━━━━━┄┄",
        "▒▒▒▒▒▒▒▒██  ",
        "▒▒▒▒██████  ",
    ]


def test_a_dip_within_a_column_is_not_lost() -> None:
    samples = [Sample(0 * SECOND, (4,), 3), Sample(5 * SECOND, (1,), 3), Sample(6 * SECOND, (4,), 3)]
    rows = drawn(samples, until=100, end=100, top=4, width=10, height=4)
    assert rows[1] == "╍" + "━" * 9
    assert worst_moments(samples, end=100 * SECOND, width=4) == (1, 4, 4, 4)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.integers(1, 40),
    st.integers(1, 10),
    st.integers(0, 60),
)
def test_a_chart_is_a_rectangle_with_exactly_one_floor(
    points: list[tuple[int, int, int, int]], width: int, height: int, until: int
) -> None:
    samples = [Sample(at * SECOND, (old, new), floor) for at, old, new, floor in sorted(points)]
    rows = drawn(samples, until=until, end=60, top=18, width=width, height=height)
    assert {len(row) for row in rows} == {width}
    assert sum(set(row) <= set("━╍┄") for row in rows) == 1


def test_a_sparkline_has_a_bar_for_each_value() -> None:
    assert sparkline([0, 1, 4, 8], top=8) == " ▁▄█"
    assert sparkline([0, 0], top=0) == "  "


def test_states_of_a_replica_are_all_drawn() -> None:
    assert {*SHAPES[0], *GOING} == set(State)
