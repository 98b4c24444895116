"""The overview on a screen: what fits, and what each health looks like."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.views.overview import Counts, FloorBar, Health, Row
from holdfast.views.overview_screens import MARKS, Columns, line, longest_name, matches, short, summary, titles
from holdfast.views.spans import text


def row(health: Health = Health.GOOD, **fields: Any) -> Row:
    given: dict[str, Any] = {
        "id": "x",
        "kind": "Workload",
        "resource": "workloads.cloudless.io",
        "namespace": "shop",
        "name": "web",
        "phase": "Completed",
        "health": health,
        **fields,
    }
    return Row(**given)


def shown(each: Row, width: int, *, namespaces: bool = True) -> str:
    columns = Columns.of(width, longest_name([each], namespaces=namespaces))
    return text([line(each, columns, namespaces=namespaces, age=lambda instant: "5m")])


def test_each_health_has_a_shape_of_its_own() -> None:
    assert len({mark for mark, _ in MARKS.values()}) == len(Health)
    assert len({tone for _, tone in MARKS.values()}) == len(Health)


@pytest.mark.parametrize("width", [40, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    long = row(
        Health.TROUBLE,
        name="a-name-that-is-as-long-as-kubernetes-allows-it-to-be-" * 4,
        kind="DynamoGraphDeploymentScalingAdapter",
        phase="APhaseThatIsVeryLong",
        because="because " * 40,
        ready=12345,
        desired=12345,
        floor=FloorBar(ready=5, desired=10, floor=8),
    )
    columns = Columns.of(width, longest_name([long], namespaces=True))
    assert len(text([titles(columns)])) <= max(width, 60)
    if width >= 80:
        assert len(shown(long, width)) <= width


def test_an_object_shows_its_replicas_and_why_it_waits() -> None:
    waiting = row(Health.PROGRESSING, phase="Updating", ready=8, desired=10, because="2 replicas are not ready")
    assert shown(waiting, 80).split()[:5] == ["◐", "Workload", "shop/web", "Updating", "8/10"]
    assert shown(waiting, 80).endswith("2 replicas are not ready")
    assert "shop/" not in shown(waiting, 80, namespaces=False)


def test_what_is_good_says_no_more_than_that() -> None:
    assert "anything" not in shown(row(because="anything"), 80)


def test_a_wide_screen_has_the_floor_in_the_bar() -> None:
    broken = shown(row(Health.TROUBLE, floor=FloorBar(ready=4, desired=10, floor=8)), 120)
    assert "███░░░╎░" in broken


def test_a_paused_object_has_a_mark() -> None:
    assert "Completed ‖" in shown(row(paused=True), 80)


@pytest.mark.parametrize(("words", "found"), [("web", True), ("workload sho", True), ("nothing", False), ("", True)])
def test_all_words_of_a_filter_must_be_in_the_object(words: str, found: bool) -> None:
    assert matches(row(), words) is found


def test_the_summary_counts_every_health() -> None:
    assert text([summary(Counts(trouble=1, progressing=2, good=3000))]) == (
        "✗ 1 in trouble   ◐ 2 in progress   ✓ 3,000 good"
    )


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("Workload", "Workload"), ("ALongNameOfAKind", "…NameOfAKind"), ("Averyverylongname", "Averyverylon…")],
)
def test_of_a_long_kind_the_last_words_are_shown(kind: str, shown: str) -> None:
    assert short(kind, 13) == shown
