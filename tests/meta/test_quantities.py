"""Quantities: what is read, how it prints, and that the arithmetic is exact."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.quantities import Format, Quantity, QuantityError

MOST = 2**63 - 1
BINARY, DECIMAL, EXPONENT = Format.BINARY_SI, Format.DECIMAL_SI, Format.DECIMAL_EXPONENT

READ: list[tuple[str | int | float, Fraction | int, Format]] = [
    ("0", 0, DECIMAL),
    ("0Ki", 0, BINARY),
    ("00012", 12, DECIMAL),
    ("+3", 3, DECIMAL),
    ("-3", -3, DECIMAL),
    ("1Ki", 2**10, BINARY),
    ("7Mi", 7 * 2**20, BINARY),
    ("6Gi", 6 * 2**30, BINARY),
    ("5Ti", 5 * 2**40, BINARY),
    ("4Pi", 4 * 2**50, BINARY),
    ("3Ei", 3 * 2**60, BINARY),
    ("12n", Fraction(12, 10**9), DECIMAL),
    ("500u", Fraction(500, 10**6), DECIMAL),
    ("100m", Fraction(1, 10), DECIMAL),
    ("8k", 8 * 10**3, DECIMAL),
    ("7M", 7 * 10**6, DECIMAL),
    ("6G", 6 * 10**9, DECIMAL),
    ("5T", 5 * 10**12, DECIMAL),
    ("2P", 2 * 10**15, DECIMAL),
    ("1E", 10**18, DECIMAL),
    ("1e3", 10**3, EXPONENT),
    ("1E3", 10**3, EXPONENT),
    ("1E+3", 10**3, EXPONENT),
    ("1e-3", Fraction(1, 1000), EXPONENT),
    ("1.2e3", 1200, EXPONENT),
    ("0.5e-2", Fraction(5, 1000), EXPONENT),
    ("1.5", Fraction(3, 2), DECIMAL),
    (".5", Fraction(1, 2), DECIMAL),
    ("-.5", Fraction(-1, 2), DECIMAL),
    ("1.", 1, DECIMAL),
    ("1.G", 10**9, DECIMAL),
    ("1.5Gi", 3 * 2**29, BINARY),
    ("0.05Gi", Fraction(2**30, 20), BINARY),
    # rounded up to a nano, away from zero
    ("3.001n", Fraction(4, 10**9), DECIMAL),
    ("-3.001n", Fraction(-4, 10**9), DECIMAL),
    ("1.1E-9", Fraction(2, 10**9), EXPONENT),
    ("0.0000000001", Fraction(1, 10**9), DECIMAL),
    ("1e-999999999999", Fraction(1, 10**9), EXPONENT),
    ("0e-999999999999", 0, EXPONENT),
    # less than one has no binary form
    ("0.000000000001Ki", Fraction(2, 10**9), DECIMAL),
    # capped
    ("9Ei", MOST, BINARY),
    ("-9Ei", -MOST, BINARY),
    ("9223372036854775807Ki", MOST, BINARY),
    ("1e999999999999", MOST, EXPONENT),
    ("0e999999999999", 0, EXPONENT),
    # bare JSON numbers
    (2, 2, DECIMAL),
    (-2, -2, DECIMAL),
    (0.1, Fraction(1, 10), DECIMAL),
    (1e-7, Fraction(1, 10**7), EXPONENT),
]

PRINTED = [
    ("0", "0"),
    ("0Gi", "0"),
    ("-0", "0"),
    ("1024Mi", "1Gi"),
    ("1.5Gi", "1536Mi"),
    ("1025Ki", "1025Ki"),
    ("1000Ki", "1000Ki"),
    ("0.5Ki", "512"),
    ("1023.5Ki", "1048064"),
    ("0.05Gi", "53687091200m"),
    ("-2048Ki", "-2Mi"),
    ("0.1", "100m"),
    ("1.5", "1500m"),
    ("1000m", "1"),
    ("1000", "1k"),
    ("1024", "1024"),
    ("1500", "1500"),
    ("0.0001", "100u"),
    ("123456789n", "123456789n"),
    ("1000000k", "1G"),
    ("10E", "9223372036854775807"),
    ("1e3", "1e3"),
    ("1E3", "1e3"),
    ("1000e0", "1e3"),
    ("1e4", "10e3"),
    ("1e2", "100"),
    ("1e-3", "1e-3"),
    ("1.2e3", "1200"),
    ("-1.5", "-1500m"),
    ("9Ei", "9223372036854775807"),
]


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.nanos, 10**9)


@pytest.mark.parametrize(("text", "value", "family"), READ, ids=[str(text) for text, _, _ in READ])
def test_every_form_is_read_exactly(text: str | int | float, value: Fraction | int, family: Format) -> None:
    quantity = Quantity.parse(text)
    assert exact(quantity) == value
    assert quantity.format is family


@pytest.mark.parametrize(("text", "printed"), PRINTED, ids=[text for text, _ in PRINTED])
def test_the_canonical_form_keeps_the_family(text: str, printed: str) -> None:
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize(
    "junk",
    [
        "", " ", "+", "-", ".", "-.", "Gi", "m", "1.1.1", "--1", "1e", "1e1.5", "1ee3", "1i", "1ki", "1gi", "1mi",
        "1Kii", "1x", "0x10", "1,5", "1_000", "Infinity", "nan", "1\n", "١", "1" * 5000, True, None, [], float("nan"),
    ],
)  # fmt: skip
def test_junk_is_refused_with_examples(junk: Any) -> None:
    with pytest.raises(QuantityError, match=r"is not a quantity; write .*'500m', '2', '1.5Gi'"):
        Quantity.parse(junk)


@pytest.mark.parametrize(
    ("slip", "meant"), [("1GB", "1G"), ("1 Gi", "1Gi"), ("16GiB", "16Gi"), ("1K", "1k"), ("1 KB", "1k"), (" 1", "1")]
)
def test_the_usual_slips_are_told_what_was_meant(slip: str, meant: str) -> None:
    with pytest.raises(QuantityError, match=f"did you mean '{meant}'"):
        Quantity.parse(slip)


@pytest.mark.parametrize(
    ("text", "whole", "millis"),
    [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1Gi", 2**30, 2**30 * 1000),
        ("0", 0, 0),
    ],
)
def test_whole_units_and_millis_are_rounded_away_from_zero(text: str, whole: int, millis: int) -> None:
    assert Quantity.parse(text).to_int() == whole
    assert Quantity.parse(text).to_millis() == millis


def test_equality_order_and_hash_go_by_value() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi") == Quantity.parse("1073741824")
    assert len({Quantity.parse(text) for text in ("1", "1000m", "1e0", "1.0")}) == 1
    assert Quantity.parse("1G") < Quantity.parse("1Gi")
    assert Quantity.parse("1") != 1


def test_arithmetic_keeps_the_units_of_the_left() -> None:
    gi, mega = Quantity.parse("1Gi"), Quantity.parse("1M")
    assert str(gi + gi) == "2Gi"
    assert str(gi * 3) == str(3 * gi) == "3Gi"
    assert str(-gi) == "-1Gi"
    assert str(mega + gi) == "1074741824"
    assert str(gi - Quantity.parse("512Mi")) == "512Mi"
    assert str(gi // 2) == "512Mi"
    assert gi // Quantity.parse("100Mi") == 10


def test_zero_takes_the_units_of_what_is_added() -> None:
    zero = Quantity.parse("0")
    assert str(zero + Quantity.parse("1Gi")) == "1Gi"
    assert str(zero - Quantity.parse("1Gi")) == "-1Gi"
    assert str(sum([Quantity.parse("512Mi")] * 2, zero)) == "1Gi"
    assert not zero
    assert Quantity.parse("1n")


def test_a_sum_beyond_the_cap_is_not_cut() -> None:
    assert str(Quantity.parse("8E") * 1000) == "8000E"
    assert str(Quantity.parse("4Ei") * 1024) == "4096Ei"


@pytest.mark.parametrize("stranger", [1.5, "1", None])
def test_a_quantity_does_not_mix_with_strangers(stranger: Any) -> None:
    gi: Any = Quantity.parse("1Gi")
    for operate in (lambda: gi + stranger, lambda: gi - stranger, lambda: gi * stranger, lambda: gi // stranger):
        with pytest.raises(TypeError):
            operate()


def test_a_quantity_shows_itself_as_it_prints() -> None:
    assert repr(Quantity.parse("1024Mi")) == "Quantity('1Gi')"


quantities = st.builds(Quantity, st.integers(-MOST * 10**9, MOST * 10**9), st.sampled_from(Format))
numbers = st.integers(-1000, 1000)
suffixes = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2", "e+1"])
written = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**6),
    st.just("") | st.integers(0, 10**6).map(lambda digits: f".{digits}"),
    suffixes,
)


@given(quantities)
def test_what_is_printed_is_read_back(quantity: Quantity) -> None:
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(written)
def test_the_canonical_form_is_a_fixed_point(text: str) -> None:
    canonical = str(Quantity.parse(text))
    assert str(Quantity.parse(canonical)) == canonical


@given(written)
def test_a_sign_is_all_that_a_sign_changes(text: str) -> None:
    unsigned = text.lstrip("+-")
    assert Quantity.parse(f"-{unsigned}") == -Quantity.parse(unsigned)


@given(quantities, quantities, quantities)
def test_addition_is_a_group(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a - a == Quantity(0)
    assert a - b == a + -b
    assert exact(a + b) == exact(a) + exact(b)


@given(quantities, quantities, numbers, numbers)
def test_multiplication_distributes(a: Quantity, b: Quantity, m: int, n: int) -> None:
    assert (a + b) * n == a * n + b * n
    assert a * m + a * n == a * (m + n)


@given(quantities, quantities, numbers.filter(bool))
def test_division_is_the_floor(a: Quantity, b: Quantity, n: int) -> None:
    assert (a // n).nanos == a.nanos // n
    if b:
        assert a // b == exact(a) // exact(b)


@given(quantities, quantities)
def test_order_is_the_order_of_the_values(a: Quantity, b: Quantity) -> None:
    assert (a < b) == (exact(a) < exact(b))
    assert (a == b) == (exact(a) == exact(b))
    assert a != b or hash(a) == hash(b)


@given(quantities)
def test_rounding_never_loses_anything(quantity: Quantity) -> None:
    assert abs(quantity.to_int()) == ceil(abs(exact(quantity)))
    assert abs(quantity.to_millis()) == ceil(abs(exact(quantity)) * 1000)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (1000, "1k"), (1536, "1536"), (64 << 20, "64Mi"), (3 << 30, "3Gi")]
)
def test_bytes_are_written_with_the_largest_binary_suffix(number: int, text: str) -> None:
    assert str(Quantity.of_bytes(number)) == text
    assert Quantity.parse(text).to_int() == number
