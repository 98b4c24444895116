"""The garbage collector of a process that works until it is stopped."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from holdfast.cli.process import garbage


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_what_is_there_is_not_looked_at_again_and_what_is_new_less_often() -> None:
    there = [[]]
    assert any(each is there for each in gc.get_objects())
    garbage.collect_rarely()
    assert not any(each is there for each in gc.get_objects())
    assert gc.get_threshold()[0] == garbage.YOUNG > 700


def test_cycles_among_new_objects_are_still_found() -> None:
    garbage.collect_rarely()
    before = gc.get_stats()[0]["collections"]
    for _ in range(2 * garbage.YOUNG):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.get_stats()[0]["collections"] > before
    assert gc.get_count()[0] <= garbage.YOUNG
