"""Unique identifiers."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta import uids


@given(st.integers(min_value=0, max_value=2**128 - 1))
def test_a_uid_is_the_random_uuid_of_its_bits(bits: int) -> None:
    assert uids.from_bits(bits) == str(uuid.UUID(int=bits, version=4))
