"""Numbers of bytes."""

from __future__ import annotations

import pytest

from holdfast.meta.sizes import GIB, MIB, readable, whole_gib


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (1.5 * GIB, "1.5 GiB"),
        (100 * MIB, "100 MiB"),
        (4096 * 1024 * GIB, "4,096 TiB"),
    ],
)
def test_a_number_of_bytes_is_written_in_its_largest_unit(number: int, text: str) -> None:
    assert readable(number) == text


@pytest.mark.parametrize(("number", "whole"), [(0, 0), (1, 1), (GIB, 1), (GIB + 1, 2)])
def test_gib_are_rounded_up(number: int, whole: int) -> None:
    assert whole_gib(number) == whole
