"""Plain words are read as kubectl reads them, but for the booleans that nobody means."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.manifests.scalars import LEGACY_BOOLEANS, NotAScalar, scalar

WORDS: list[tuple[str, Any]] = [
    ("", None),
    ("~", None),
    ("null", None),
    ("Null", None),
    ("nUll", "nUll"),
    ("true", True),
    ("FALSE", False),
    ("tRue", "tRue"),
    ("0", 0),
    ("-17", -17),
    ("+17", 17),
    ("1_000", 1000),
    ("0x1F", 31),
    ("-0x1F", -31),
    ("0b101", 5),
    ("0o17", 15),
    ("017", 15),
    ("08", 8),
    ("99999999999999999999", 99999999999999999999),
    ("1e3", 1000),
    ("1.0", 1),
    ("0.5", 0.5),
    (".5", 0.5),
    ("-1.5e-3", -0.0015),
    ("1:30", "1:30"),
    ("1.2.3", "1.2.3"),
    ("2026-01-31", "2026-01-31"),
    ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
    ("0x", "0x"),
    ("-", "-"),
    (".", "."),
    ("25%", "25%"),
    ("500m", "500m"),
    ("hello", "hello"),
]


@pytest.mark.parametrize(("text", "value"), WORDS)
def test_a_word_has_the_value_that_kubectl_gives_it(text: str, value: Any) -> None:
    read = scalar(text)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("text", sorted(LEGACY_BOOLEANS))
def test_a_boolean_of_yaml_1_1_is_the_text_that_was_written(text: str) -> None:
    assert scalar(text) == text


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("3", "str", "3"), ("3", "int", 3), ("3", "float", 3.0), ("true", "bool", True), ("", "null", None)],
)
def test_a_tag_says_what_the_word_is(text: str, kind: str, value: Any) -> None:
    read = scalar(text, kind)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "kind"),
    [(".inf", ""), ("-.INF", ""), (".nan", ""), ("1e999", ""), ("9" * 5000, ""), ("x", "int"), ("3", "binary")],
)
def test_what_json_cannot_say_is_refused_with_a_hint(text: str, kind: str) -> None:
    with pytest.raises(NotAScalar) as refused:
        scalar(text, kind)
    assert refused.value.hint


@given(st.text(max_size=20))
def test_no_word_fails_in_any_other_way(text: str) -> None:
    with contextlib.suppress(NotAScalar):
        scalar(text)


@given(st.integers())
def test_every_integer_is_read_back(number: int) -> None:
    assert scalar(str(number)) == number
