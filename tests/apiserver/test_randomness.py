"""The randomness of uids and generated names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.randomness import PooledRandom


@given(st.lists(st.integers(min_value=0, max_value=40_000), max_size=30))
def test_pooled_bits_are_of_the_length_that_was_asked_for(lengths: list[int]) -> None:
    random = PooledRandom()
    assert all(random.getrandbits(length).bit_length() <= length for length in lengths)


def test_pooled_bits_do_not_repeat_and_use_every_place() -> None:
    random = PooledRandom()
    drawn = [random.getrandbits(128) for _ in range(1_000)]
    assert len({*drawn}) == len(drawn)
    seen = 0
    for bits in drawn:
        seen |= bits
    assert seen == 2**128 - 1
