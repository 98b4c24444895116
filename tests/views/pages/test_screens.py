"""The page of one object on a screen."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.views.overview import Health, Row
from holdfast.views.pages import Page, screens
from holdfast.views.pages.conditions import ConditionView
from holdfast.views.pages.events import EventView
from holdfast.views.pages.head import Fact, Head
from holdfast.views.pages.progress import Bar
from holdfast.views.pages.revisions import RevisionView
from holdfast.views.pages.sections import Link, TableView
from holdfast.views.spans import text

ROW = Row(
    id="x", kind="VMSnapshot", resource="vmsnapshots.x", namespace="ns", name="s", phase="Taking", health=Health.TROUBLE
)


def page(**parts: Any) -> Page:
    head = Head(row=ROW, uid="1", summary="the hypervisor does not answer", facts=(Fact(label="disk", value="4 GiB"),))
    return Page(head=head, **parts)


def shown(made: Page, width: int = 80) -> list[str]:
    lines = screens.lines(made, None, width=width, called="vmsnapshot/s", age=lambda instant: "5m")
    return text(lines).splitlines()


def test_the_head_says_what_it_is_and_why() -> None:
    assert shown(page()) == [" ✗ s  VMSnapshot  Taking", "   the hypervisor does not answer", "   disk: 4 GiB"]


def test_every_part_has_a_title_and_parts_without_content_have_none() -> None:
    full = page(
        conditions=(
            ConditionView(type="Ready", status="False", reason="Away", message="it is away", since="t", bad=True),
            ConditionView(type="Valid", status="True", message="all is well"),
        ),
        bars=(Bar(label="copying", percent=50.0, words="2 of 4"), Bar(label="waiting")),
        tables=(TableView(title="Disks", columns=("NAME",), rows=(("root",),)),),
        revisions=tuple(RevisionView(number=number, revision=f"r{number}") for number in range(8, 0, -1)),
        links=(Link(relation="owner", kind="VMSet", resource="vmsets.x", namespace="ns", name="set"),),
        events=tuple(
            EventView(id=str(number), warning=True, reason="Odd", message="why", count=2) for number in range(20)
        ),
    )
    lines = shown(full)
    assert [line.strip() for line in lines if line.startswith(" ") and not line.startswith("  ")][1:] == [
        "Progress",
        "Conditions",
        "Disks",
        "Revisions",
        "Related",
        "Events",
    ]
    joined = "\n".join(lines)
    assert "✗ Ready" in joined
    assert "it is away" in joined
    assert "all is well" not in joined
    assert "50%  2 of 4" in joined
    assert "and 3 more" in joined
    assert "and 8 more; press e for all" in joined
    assert "! Odd (x2)" in joined
    assert len(shown(page())) == 3


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    long = "word " * 60
    made = page(
        events=(EventView(id="1", reason="R" * 60, message=long),),
        conditions=(ConditionView(type="T" * 50, status="False", message=long, bad=True),),
    )
    assert all(len(line) <= width for line in shown(made, width))
