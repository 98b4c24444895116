"""Floors: a fleet that grows has lost nothing, a loss breaks the floor, an exception is declared."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.kernel.conditions import Status
from holdfast.kernel.floors import FLOOR_HELD, FLOOR_LOWERED, Floor, FloorReason, observed, verdicts
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.reasons import Code

LIMITS = resolve(5, min_available=4)
LOWERED = resolve(3, min_available=3, max_surge=0, may_lower=True)


def after(*available: int, limits: Limits = LIMITS) -> Floor:
    """The floor after these numbers of replicas were available, one after another."""
    floor: Floor | None = None
    for number in available:
        floor = observed(floor, limits=limits, available=number)
    assert floor is not None
    return floor


CASES: dict[str, tuple[tuple[int, ...], FloorReason, int | None]] = {
    # available, one after another; the reason; the lowest since the floor was first reached
    "nothing runs yet": ((0,), FloorReason.STILL_GROWING, None),
    "growth is no loss": ((0, 1, 2, 3), FloorReason.STILL_GROWING, None),
    "the floor is reached": ((0, 2, 4), FloorReason.HELD, 4),
    "more than the floor": ((0, 5), FloorReason.HELD, 5),
    "a replica above the floor goes": ((5, 4), FloorReason.HELD, 4),
    "a loss below the floor": ((5, 3), FloorReason.BELOW_FLOOR, 3),
    "a loss before the floor was reached": ((0, 3, 2), FloorReason.BELOW_FLOOR, None),
    "regained": ((5, 2, 4), FloorReason.HELD, 2),
    "more than desired count as those desired": ((6, 4), FloorReason.HELD, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_the_floor_after(name: str) -> None:
    available, reason, lowest = CASES[name]
    floor = after(*available)
    said = verdicts(floor, LIMITS)[FLOOR_HELD]
    assert said.reason == reason
    assert said.status is (Status.FALSE if reason is FloorReason.BELOW_FLOOR else Status.TRUE)
    assert f"{available[-1]} available, the floor is 4" in said.message
    assert floor.lowest == lowest
    assert floor.broken == (reason is FloorReason.BELOW_FLOOR)


def test_a_rollout_that_begins_has_a_lowest_point_of_its_own() -> None:
    floor = observed(after(5, 2, 5), limits=LIMITS, available=5, afresh=True)
    assert floor.lowest == 5
    assert floor.most == 5


def test_a_fleet_that_is_scaled_up_has_lost_nothing() -> None:
    floor = observed(after(3, limits=resolve(3, min_available=3)), limits=resolve(9, min_available=9), available=3)
    assert not floor.broken
    assert observed(floor, limits=resolve(9, min_available=9), available=2).broken


def test_a_fleet_that_is_scaled_down_is_measured_by_its_new_size() -> None:
    smaller = resolve(2, min_available=2)
    floor = observed(after(5), limits=smaller, available=2)
    assert (floor.most, floor.required, floor.broken) == (2, 2, False)
    grown = observed(floor, limits=LIMITS, available=2)
    assert not grown.broken


def test_a_lowered_floor_is_kept_with_by_how_many_and_announced_in_a_condition() -> None:
    floor = after(3, 2, limits=LOWERED)
    said = verdicts(floor, LOWERED)
    assert (floor.required, floor.lowered, floor.lowest) == (2, 1, 2)
    assert said[FLOOR_HELD].reason == FloorReason.HELD
    assert said[FLOOR_LOWERED].status is Status.TRUE
    assert said[FLOOR_LOWERED].reason == Code.FLOOR_LOWERED
    assert "2 of 3 stay available" in said[FLOOR_LOWERED].message


def test_below_a_lowered_floor_the_floor_is_broken() -> None:
    assert verdicts(after(3, 1, limits=LOWERED), LOWERED)[FLOOR_HELD].reason == FloorReason.BELOW_FLOOR


def test_without_an_exception_none_is_announced() -> None:
    assert set(verdicts(after(5), LIMITS)) == {FLOOR_HELD}


def test_a_floor_survives_its_status() -> None:
    floor = after(5, 3)
    assert msgspec.json.decode(msgspec.json.encode(floor), type=Floor) == floor
    assert msgspec.to_builtins(floor) == {"required": 4, "available": 3, "most": 5, "lowest": 3}
