"""Long lines on a narrow screen."""

from __future__ import annotations

from holdfast.views.folding import folded, folded_messages, wrap

WORDS = "one two three four five six seven eight nine ten eleven twelve"


def test_a_pipe_and_short_lines_stay_as_they_are() -> None:
    assert folded([WORDS], None) == [WORDS]
    assert folded(["short"], 40) == ["short"]


def test_the_last_column_goes_on_below_itself() -> None:
    assert folded([f"Ready   False   {WORDS}"], 40) == [
        "Ready   False   one two three four five",
        "                six seven eight nine ten",
        "                eleven twelve",
    ]


def test_a_text_goes_on_below_its_beginning() -> None:
    lines = folded([f"    message: {WORDS}", f"  - {WORDS}"], 44)
    assert all(len(line) <= 44 for line in lines)
    assert lines[1].startswith("    ")
    assert lines[-1].startswith("    ")


def test_where_there_is_no_room_below_the_last_column_a_line_goes_on_behind_its_beginning() -> None:
    assert folded([f"  {'x' * 48}   {WORDS}"], 60) == [
        f"  {'x' * 48}   one two",
        "      three four five six seven eight nine ten eleven twelve",
    ]


def test_messages_are_folded_and_excerpts_are_not() -> None:
    excerpt = f"    5 |   replicas: three # {WORDS}"
    text = folded_messages(f"error: {WORDS}\n{excerpt}\nhint: short", 30)
    assert excerpt in text.splitlines()
    assert text.startswith("error: one two three four five\n  six ")
    assert folded_messages(text, None) == text


def test_the_value_of_a_field_goes_on_behind_the_beginning_of_its_name() -> None:
    assert folded(["  message: one two three four five six", "  next: 1"], 30) == [
        "  message: one two three four",
        "    five six",
        "  next: 1",
    ]


def test_names_with_hyphens_stay_whole() -> None:
    assert wrap("the pod corner-shop-6vcmx waits", 20) == ["the pod", "corner-shop-6vcmx", "waits"]
