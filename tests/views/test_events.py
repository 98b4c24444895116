"""Events as lines: on wide and narrow screens, and in pipes."""

from __future__ import annotations

from typing import Any

from holdfast.views.columns import Alignment
from holdfast.views.events import lines, ordered
from holdfast.views.spans import Tone, text


def event(reason: str, at: str, **rest: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "web-0", "namespace": "shop"}
    return {
        "reason": reason,
        "lastTimestamp": at,
        "involvedObject": about,
        "type": "Normal",
        "message": "It is so.",
        **rest,
    }


EVENTS = [
    event("Second", "2030-01-01T00:00:02Z", type="Warning", count=3),
    event("First", "2030-01-01T00:00:01Z"),
]


def shown(**options: Any) -> list[str]:
    return text(lines(ordered(EVENTS), age=lambda instant: f"{(instant or '')[-3:-1]}s", **options)).splitlines()


def test_a_pipe_has_a_table_with_the_newest_last() -> None:
    assert shown() == [
        "LAST SEEN   TYPE      REASON   OBJECT      MESSAGE",
        "01s         Normal    First    pod/web-0   It is so.",
        "02s (x3)    Warning   Second   pod/web-0   It is so.",
    ]


def test_namespaces_are_a_column_where_there_are_several() -> None:
    assert [line.split()[0] for line in shown(namespaces=True)] == ["NAMESPACE", "shop", "shop"]


def test_later_lines_have_no_second_header_and_keep_the_widths() -> None:
    alignment = Alignment()
    assert len(shown(alignment=alignment)) == 3
    assert shown(alignment=alignment)[0].startswith("01s         Normal    First")


def test_on_a_narrow_screen_no_line_is_longer_than_the_screen_and_nothing_is_cut() -> None:
    words = " ".join(f"word{number}" for number in range(40))
    made = lines(ordered([event("Long", "2030-01-01T00:00:02Z", message=words)]), age=lambda instant: "2s", width=60)
    assert all(len(line) <= 60 for line in text(made).splitlines())
    assert text(made).split()[-40:] == words.split()


def test_a_warning_has_a_mark_beside_its_colour() -> None:
    first, _, second, _ = lines(ordered(EVENTS), age=lambda instant: "2s", width=80)
    assert "!" not in text([first])
    assert text([second]).split()[1] == "!"
    assert second[1].tone is Tone.CARE


def test_an_event_of_the_new_api_and_an_empty_one_are_shown() -> None:
    new = {"regarding": {"kind": "Node", "name": "n"}, "note": "a\nb", "series": {"count": 2}, "reason": "R"}
    assert "node/n" in text(lines(ordered([new]), age=lambda instant: "?"))
    assert "a b" in text(lines(ordered([new]), age=lambda instant: "?"))
    assert "object/<none>" in text(lines(ordered([{}]), age=lambda instant: "?"))
