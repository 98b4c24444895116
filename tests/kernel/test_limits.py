"""Limits: percentages, defaults, clamping, and what is said about them."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel import limits as module
from holdfast.kernel.limits import InvalidLimits, Limits, resolve
from holdfast.kernel.reasons import Code

amounts = st.none() | st.integers(0, 30) | st.integers(0, 200).map("{}%".format)

RESOLVED: dict[str, tuple[dict[str, Any], tuple[int, int, int]]] = {
    # what was asked: (minAvailable, floor, surge)
    "nothing set: all but one": ({"replicas": 5}, (4, 4, 0)),
    "nothing set, one replica: it stays, and surges": ({"replicas": 1}, (1, 1, 1)),
    "nothing set, none desired": ({"replicas": 0}, (0, 0, 0)),
    "only maxUnavailable": ({"replicas": 5, "max_unavailable": 2}, (3, 3, 0)),
    "only minAvailable": ({"replicas": 5, "min_available": 2}, (2, 2, 0)),
    "minAvailable is stricter": ({"replicas": 5, "min_available": 4, "max_unavailable": 3}, (4, 4, 0)),
    "maxUnavailable is stricter": ({"replicas": 5, "min_available": 1, "max_unavailable": 2}, (1, 3, 0)),
    "an explicit zero minimum is a minimum": ({"replicas": 5, "min_available": 0}, (0, 0, 0)),
    "an explicit zero unavailable": ({"replicas": 5, "max_unavailable": 0, "max_surge": 2}, (5, 5, 2)),
    "surge percentage rounds up": ({"replicas": 5, "max_surge": "25%"}, (4, 4, 2)),
    "unavailable percentage rounds down": ({"replicas": 5, "max_unavailable": "25%"}, (4, 4, 0)),
    "minimum percentage rounds up": ({"replicas": 5, "min_available": "50%"}, (3, 3, 0)),
    "surge may double the fleet": ({"replicas": 3, "max_surge": "200%"}, (2, 2, 6)),
    "a disruption budget is stricter": ({"replicas": 5, "min_available": 2, "other_floors": [4]}, (2, 4, 0)),
    "a disruption budget beyond the replicas counts as all": (
        {"replicas": 5, "min_available": 2, "other_floors": [9], "max_surge": 1},
        (2, 5, 1),
    ),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_resolving(name: str) -> None:
    asked, expected = RESOLVED[name]
    limits = resolve(**asked)
    assert (limits.min_available, limits.floor, limits.surge) == expected


WARNED: dict[str, tuple[dict[str, Any], list[Code]]] = {
    "minimum above the replicas": ({"replicas": 3, "min_available": 5, "max_surge": 1}, [Code.MIN_AVAILABLE_CLAMPED]),
    "unavailable above the replicas": ({"replicas": 3, "max_unavailable": 4}, [Code.MAX_UNAVAILABLE_CLAMPED]),
    "no room and no surge given": ({"replicas": 3, "min_available": 3}, [Code.SURGE_DERIVED]),
    "no room by default": ({"replicas": 1}, [Code.SURGE_DERIVED]),
    "no room, cannot surge, minimum by default": ({"replicas": 1, "can_surge": False}, [Code.FLOOR_LOWERED]),
    "no room, cannot surge, a percentage that rounds to none": (
        {"replicas": 3, "max_unavailable": "25%", "can_surge": False},
        [Code.FLOOR_LOWERED],
    ),
    "a surge that cannot be": ({"replicas": 3, "max_surge": 1, "can_surge": False}, [Code.SURGE_IGNORED]),
    "a surge of none that cannot be": ({"replicas": 3, "max_surge": 0, "can_surge": False}, []),
    "no room and an explicit zero surge": ({"replicas": 3, "min_available": 3, "max_surge": 0}, []),
    "room enough": ({"replicas": 3, "min_available": 2}, []),
}


@pytest.mark.parametrize("name", WARNED)
def test_what_is_changed_is_said(name: str) -> None:
    asked, codes = WARNED[name]
    assert [warning.code for warning in resolve(**asked).warnings] == codes


def test_no_room_and_an_explicit_zero_surge_is_not_feasible() -> None:
    assert not resolve(3, min_available=3, max_surge=0).feasible
    assert not resolve(3, min_available=3, can_surge=False).feasible
    assert resolve(0, max_surge=0).feasible


def test_a_fleet_that_cannot_surge_lowers_only_a_floor_that_was_not_asked_for() -> None:
    assert resolve(1, can_surge=False).floor == 0
    assert resolve(1, other_floors=[0], can_surge=False).floor == 0
    assert resolve(3, max_unavailable="25%", can_surge=False).floor == 2
    assert resolve(3, max_unavailable="25%", min_available=1, can_surge=False).min_available == 1
    assert resolve(1, min_available=1, can_surge=False).floor == 1
    assert resolve(1, other_floors=[1], can_surge=False).floor == 1
    assert resolve(3, max_unavailable=0, can_surge=False).floor == 3
    assert resolve(3, max_unavailable="0%", can_surge=False).floor == 3


LOWERED: dict[str, tuple[dict[str, Any], tuple[int, int, int]]] = {
    # minAvailable, floor and by how many the floor lies below minAvailable
    "minAvailable asks for all replicas": ({"replicas": 3, "min_available": 3, "max_surge": 0}, (3, 2, 1)),
    "minAvailable asks for all replicas, as a percentage": (
        {"replicas": 3, "min_available": "100%", "max_surge": 0},
        (3, 2, 1),
    ),
    "minAvailable asks for more than all replicas": ({"replicas": 3, "min_available": 9, "max_surge": 0}, (3, 2, 1)),
    "an explicit zero maxUnavailable": ({"replicas": 3, "max_unavailable": 0, "max_surge": 0}, (2, 2, 0)),
    "replicas that cannot surge": ({"replicas": 3, "min_available": 3, "can_surge": False}, (3, 2, 1)),
    "the only replica": ({"replicas": 1, "min_available": 1, "max_surge": 0}, (1, 0, 1)),
}


@pytest.mark.parametrize("name", LOWERED)
def test_a_floor_that_may_be_lowered_is_lowered_by_one_and_the_exception_is_declared(name: str) -> None:
    asked, expected = LOWERED[name]
    limits = resolve(**asked, may_lower=True)
    assert (limits.min_available, limits.floor, limits.lowered) == expected
    assert limits.feasible
    warning = limits.warnings[-1]
    assert warning.code is Code.FLOOR_LOWERED
    assert f"set minAvailable to {limits.replicas - 1} or less" in warning.message
    assert ("maxSurge to 1" in warning.message) == limits.can_surge


KEPT: dict[str, tuple[dict[str, Any], int]] = {
    "a surge is allowed": ({"replicas": 3, "min_available": 3, "max_surge": 1}, 3),
    "a surge is derived": ({"replicas": 3, "min_available": 3}, 3),
    "one may be down already": ({"replicas": 3, "min_available": 2, "max_surge": 0}, 2),
    "a disruption budget needs all replicas": (
        {"replicas": 3, "min_available": 3, "max_surge": 0, "other_floors": [3]},
        3,
    ),
    "no replicas": ({"replicas": 0, "max_surge": 0}, 0),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_floor_that_may_be_lowered_stays_where_it_need_not_or_must_not_be(name: str) -> None:
    asked, floor = KEPT[name]
    limits = resolve(**asked, may_lower=True)
    assert (limits.floor, limits.lowered) == (floor, 0)
    assert Code.FLOOR_LOWERED not in [warning.code for warning in limits.warnings]


@given(replicas=st.integers(0, 20), minimum=amounts, unavailable=amounts, surge=amounts, can_surge=st.booleans())
def test_permission_to_lower_makes_every_rollout_feasible_and_costs_at_most_one_replica(
    replicas: int, minimum: Any, unavailable: Any, surge: Any, can_surge: bool
) -> None:
    asked = {"max_surge": surge, "max_unavailable": unavailable, "min_available": minimum, "can_surge": can_surge}
    plain, lowered = resolve(replicas, **asked), resolve(replicas, **asked, may_lower=True)
    assert lowered.feasible
    assert lowered.floor == plain.floor - (not plain.feasible)
    assert lowered.surge == plain.surge


DRAINED: dict[str, tuple[dict[str, Any], int]] = {
    "the floor leaves room": ({"replicas": 5, "min_available": 3}, 3),
    "a surge replaces what a drain takes": ({"replicas": 3, "min_available": 3, "max_surge": 1}, 3),
    "the floor would let no drain end": ({"replicas": 3, "min_available": 3, "max_surge": 0}, 2),
    "the only replica": ({"replicas": 1, "min_available": 1, "max_surge": 0}, 0),
    "no replicas": ({"replicas": 0}, 0),
}


@pytest.mark.parametrize("name", DRAINED)
def test_a_disruption_budget_keeps_the_floor_unless_no_drain_could_ever_end(name: str) -> None:
    asked, floor = DRAINED[name]
    assert resolve(**asked).drain_floor == floor


REFUSED: dict[str, dict[str, Any]] = {
    "replicas": {"replicas": -1},
    "maxSurge": {"replicas": 3, "max_surge": -1},
    "maxUnavailable": {"replicas": 3, "max_unavailable": "x%"},
    "minAvailable": {"replicas": 3, "min_available": "-5%"},
}


@pytest.mark.parametrize("field", REFUSED)
def test_nonsense_is_refused_with_its_field(field: str) -> None:
    with pytest.raises(InvalidLimits) as error:
        resolve(**REFUSED[field])
    assert error.value.field == field
    assert error.value.message


@pytest.mark.parametrize("value", [2**31, 10**12, True, "999999999%"])
def test_absurd_numbers_are_refused(value: Any) -> None:
    with pytest.raises(InvalidLimits):
        resolve(value if not isinstance(value, str) else 2**31 - 1, max_surge=value)


@given(replicas=st.integers(0, 20), surge=amounts, unavailable=amounts, minimum=amounts)
def test_limits_are_ordered_and_a_rollout_is_refused_only_by_an_explicit_zero(
    replicas: int, surge: Any, unavailable: Any, minimum: Any
) -> None:
    limits = resolve(replicas, max_surge=surge, max_unavailable=unavailable, min_available=minimum)
    assert 0 <= limits.min_available <= limits.floor <= limits.replicas <= limits.ceiling
    assert limits.max_unavailable == limits.replicas - limits.floor
    if not limits.feasible:
        assert surge in (0, "0%")


@given(replicas=st.integers(0, 20), minimum=amounts, more=st.integers(0, 25))
def test_another_floor_never_lowers_the_floor(replicas: int, minimum: Any, more: int) -> None:
    plain: Limits = resolve(replicas, min_available=minimum)
    assert resolve(replicas, min_available=minimum, other_floors=[more]).floor >= plain.floor


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(module).failed == 0
