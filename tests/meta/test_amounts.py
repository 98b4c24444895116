"""Integers and percentages."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.amounts import AmountError, IntOrPercent, Rounding, resolve


@pytest.mark.parametrize(
    ("value", "amount", "text"),
    [
        (0, IntOrPercent(0), "0"),
        (3, IntOrPercent(3), "3"),
        ("0%", IntOrPercent(0, is_percent=True), "0%"),
        ("25%", IntOrPercent(25, is_percent=True), "25%"),
        ("025%", IntOrPercent(25, is_percent=True), "25%"),
        ("250%", IntOrPercent(250, is_percent=True), "250%"),
    ],
)
def test_counts_and_percentages_are_read_and_written(value: int | str, amount: IntOrPercent, text: str) -> None:
    assert IntOrPercent.parse(value) == amount
    assert str(amount) == text


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (True, "True is a boolean"),
        (-1, "-1 is negative"),
        ("-5%", "is not a percentage"),
        ("+5%", "is not a percentage"),
        ("2.5%", "is not a percentage"),
        ("25 %", "is not a percentage"),
        ("%", "is not a percentage"),
        ("", "is not a percentage"),
        ("many", "is not a percentage"),
        ("25%\n", "is not a percentage"),
        ("1" * 5000 + "%", "is not a percentage"),
        (2.5, "is not an amount"),
        (None, "is not an amount"),
    ],
)
def test_anything_else_is_refused_with_examples(value: Any, problem: str) -> None:
    with pytest.raises(AmountError, match=f"{problem}.*such as 3.*'25%'"):
        IntOrPercent.parse(value)


def test_a_number_in_quotes_is_told_how_to_be_written() -> None:
    with pytest.raises(AmountError, match="write 3 without quotes, or '3%'"):
        IntOrPercent.parse("3")


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        (3, 0, 3, 3),
        ("25%", 10, 3, 2),
        ("25%", 4, 1, 1),
        ("25%", 0, 0, 0),
        ("0%", 10, 0, 0),
        ("1%", 1, 1, 0),
        ("100%", 7, 7, 7),
        ("150%", 3, 5, 4),
        ("29%", 100, 29, 29),
    ],
)
def test_a_percentage_is_of_the_total_and_a_count_is_itself(value: int | str, total: int, up: int, down: int) -> None:
    assert resolve(value, total, round="up") == up
    assert resolve(value, total, round="down") == down


amounts = st.builds(IntOrPercent, st.integers(0, 10**9 - 1), is_percent=st.booleans())
totals = st.integers(0, 10**12)
roundings = st.sampled_from(["up", "down"])


@given(amounts)
def test_every_amount_round_trips(amount: IntOrPercent) -> None:
    assert IntOrPercent.parse(amount.to_wire()) == amount


@given(st.integers(0, 1000), totals)
def test_resolving_is_exact(percent: int, total: int) -> None:
    exact = Fraction(percent * total, 100)
    assert resolve(f"{percent}%", total, round="up") == ceil(exact)
    assert resolve(f"{percent}%", total, round="down") == floor(exact)


@given(amount=amounts, total=totals, more=totals, round=roundings)
def test_a_larger_total_never_means_fewer(amount: IntOrPercent, total: int, more: int, round: Rounding) -> None:
    assert resolve(amount, total, round=round) <= resolve(amount, total + more, round=round)


@given(percent=st.integers(0, 100), total=totals)
def test_a_part_and_the_rest_make_the_whole(percent: int, total: int) -> None:
    taken = resolve(f"{percent}%", total, round="up")
    left = resolve(f"{100 - percent}%", total, round="down")
    assert taken + left == total
