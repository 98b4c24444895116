"""The 29 cases of the seed (CLD-REQ-023) and the 6 further ones of its workload suite.

A case is the plan of the engine for the fields that it names; what is said of a
state, or of the replicas that may be stopped in it, is what the floor's
condition and the engine's guard say.  The seed writes 0 for "not set"; here
that is None, and 0 means 0.  Where the seed contradicts itself, its first
invariant wins: in every phase, ready minus stopped is at least the minimum.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.kernel.conditions import Status
from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.floors import FLOOR_HELD, observed, verdicts
from holdfast.kernel.guard import guard
from holdfast.kernel.limits import resolve
from holdfast.kernel.planning import RolloutStrategy, UnsupportedStrategy, WorkloadSpec, rollout_of
from holdfast.kernel.preview import Action, Phase, Plan, preview
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Kind, Shape, Stop


def plan(current: int, desired: int, **rollout: Any) -> Plan:
    """The plan from `current` available replicas of the old revision to `desired` of the new one."""
    pause = timedelta(seconds=rollout.pop("pause", 0))
    spec = WorkloadSpec(replicas=desired, rollout=RolloutStrategy(pause_duration=pause, **rollout))
    traffic = 0 if spec.rollout.strategy in ("BlueGreen", "BLUE_GREEN") and current else None
    return preview(rollout_of(spec), Fleet(old=Pool(available=current), stable=current > 0, traffic=traffic))


def counts(plan: Plan, phase: Phase, action: Action) -> list[int]:
    return [
        step.count for step in plan.steps if step.phase is phase and step.action is action for _ in range(step.repeat)
    ]


def ends_at(plan: Plan) -> tuple[int, int]:
    return plan.final.new.available, plan.final.old.live


# TC-001: enforcement. (RollingUpdate, surge 1, pause 1 s)

ENFORCEMENT = {
    # name: current, desired, min, maxUnavailable, resolved minimum, largest batch
    "1 enforce_min_available_3_of_5": (5, 5, 3, 2, 3, 2),
    "2 min_available_equals_replicas": (3, 3, 3, 2, 3, 1),
    "3 min_available_zero_no_constraint": (5, 5, None, 3, 2, 3),
    "4 min_available_1_default": (4, 4, 1, 2, 1, 2),
    "5 max_unavailable_limited_by_min_available": (5, 5, 4, 3, 4, 1),
    "6 scale_down_with_min_available": (5, 3, 2, 2, 2, 2),
    "7 min_available_exceeds_replicas_clamped": (3, 3, 5, 1, 3, 1),
}


@pytest.mark.parametrize("name", ENFORCEMENT)
def test_enforcement(name: str) -> None:
    current, desired, minimum, unavailable, resolved, batch = ENFORCEMENT[name]
    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=1, pause=1)
    assert made.blocked is None
    assert made.limits.min_available == resolved
    stops = counts(made, Phase.UPDATING, Action.STOP)
    assert stops
    assert max(stops) <= batch
    assert made.lowest_ready >= min(resolved, current)
    assert ends_at(made) == (desired, 0)


@pytest.mark.parametrize("name", ["2 min_available_equals_replicas", "7 min_available_exceeds_replicas_clamped"])
def test_a_fleet_at_its_minimum_surges_first_where_the_seed_would_stop_one(name: str) -> None:
    current, desired, minimum, unavailable, _, _ = ENFORCEMENT[name]
    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=1, pause=1)
    assert [made.steps[0].action, made.steps[1].action] == [Action.START, Action.WAIT]
    assert made.lowest_ready == 3


@pytest.mark.parametrize("name", ["2 min_available_equals_replicas", "7 min_available_exceeds_replicas_clamped"])
def test_a_fleet_at_its_minimum_is_blocked_when_surge_is_zero(name: str) -> None:
    current, desired, minimum, unavailable, _, _ = ENFORCEMENT[name]
    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=0)
    assert made.blocked is not None
    assert made.blocked.because.code is Code.NO_DISRUPTION_BUDGET
    assert "maxSurge" in made.blocked.remedy
    assert made.steps == ()


# TC-002: validation.

VALIDATION = {
    "8 sufficient_ready_replicas": (5, 4, 3, True),
    "9 exactly_min_available": (5, 3, 3, True),
    "10 insufficient_ready_replicas": (5, 2, 3, False),
    "11 zero_min_available_no_constraint": (5, 0, 0, True),
    "12 all_replicas_ready": (3, 3, 2, True),
}


@pytest.mark.parametrize("name", VALIDATION)
def test_validation(name: str) -> None:
    total, ready, minimum, valid = VALIDATION[name]
    limits = resolve(total, min_available=minimum, max_unavailable=total)
    said = verdicts(observed(observed(None, limits=limits, available=total), limits=limits, available=ready), limits)
    assert said[FLOOR_HELD].status is (Status.TRUE if valid else Status.FALSE)
    assert f"{ready} available, the floor is {minimum}" in said[FLOOR_HELD].message


def test_validation_clamps_the_minimum_as_planning_does() -> None:
    limits = resolve(3, min_available=5)
    said = verdicts(observed(None, limits=limits, available=3), limits)
    assert said[FLOOR_HELD].status is Status.TRUE


# TC-003: how many can be stopped.

STOPPABLE = {
    "13 can_stop_two_replicas": (5, 5, 3, 2),
    "14 can_stop_zero_at_min": (3, 3, 3, 0),
    "15 can_stop_all_no_constraint": (5, 5, 0, 5),
    "16 negative_result_clamped_to_zero": (5, 2, 3, 0),
    "17 can_stop_one_replica": (4, 4, 3, 1),
    "18 partial_ready_replicas": (5, 4, 3, 1),
}


def stoppable(total: int, ready: int, minimum: int) -> int:
    """How many of all replicas the engine lets go at once."""
    fleet = Fleet(old=Pool(available=ready, unready=total - ready))
    everything = Stop(Side.OLD, Kind.READY, total, Because(Code.STOPPING_OLD, "all of them"))
    left = guard(everything, fleet, shape=Shape(new=total, old=0, floor=minimum, ceiling=total))
    return left.count if isinstance(left, Stop) else 0


@pytest.mark.parametrize("name", STOPPABLE)
def test_how_many_replicas_may_be_stopped(name: str) -> None:
    total, ready, minimum, expected = STOPPABLE[name]
    assert stoppable(total, ready, minimum) == expected


# TC-004 and TC-005: Recreate and BlueGreen.


@pytest.mark.parametrize(
    "minimum", [2, None], ids=["19 recreate_with_min_available_warning", "20 recreate_with_zero_min_available"]
)
def test_recreate_stops_all_first_and_warns(minimum: int | None) -> None:
    made = plan(3, 3, strategy="Recreate", min_available=minimum, pause=1)
    assert made.limits.min_available == 2
    assert made.steps[0].action is Action.STOP
    assert made.steps[0].count == 3
    assert Code.FLOOR_NOT_GUARANTEED in [warning.code for warning in made.limits.warnings]
    assert ends_at(made) == (3, 0)


@pytest.mark.parametrize(
    ("current", "desired"), [(3, 3), (2, 5)], ids=["21 bluegreen_maintains_availability", "22 bluegreen_scale_up"]
)
def test_blue_green_starts_a_whole_set_before_it_stops_one(current: int, desired: int) -> None:
    made = plan(current, desired, strategy="BlueGreen", min_available=2, max_surge=desired, pause=5)
    first, *rest = made.steps
    assert (first.phase, first.action, first.count) == (Phase.SCALING_UP, Action.START, desired)
    stops = [index for index, step in enumerate(made.steps) if step.action is Action.STOP]
    assert stops
    assert min(stops) >= 2
    assert made.steps[stops[0]].count == current
    assert (Phase.PAUSED, timedelta(seconds=5)) in [(step.phase, step.wait) for step in rest]
    assert made.lowest_ready >= current
    assert ends_at(made) == (desired, 0)


# TC-006: defaults. (nothing runs yet, surge 1)

DEFAULTS = {
    "23 default_from_max_unavailable": (5, 2, None, 3),
    "24 default_when_both_zero": (5, None, None, 4),
    "25 explicit_min_available_used": (5, 2, 4, 4),
    "26 min_available_clamped_to_replicas": (3, 1, 10, 3),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_minimum(name: str) -> None:
    desired, unavailable, minimum, expected = DEFAULTS[name]
    made = plan(0, desired, max_unavailable=unavailable, min_available=minimum, max_surge=1)
    assert made.limits.min_available == expected
    # The seed's plan stops at one replica; a plan ends at the desired size.
    assert ends_at(made) == (desired, 0)


# TC-007: scaling. (RollingUpdate, maxUnavailable 2, pause 1 s)


def test_27_scale_up_with_min_available() -> None:
    made = plan(2, 5, min_available=2, max_unavailable=2, max_surge=2, pause=1)
    assert made.limits.min_available == 2
    assert counts(made, Phase.SCALING_UP, Action.START)
    # The surge bounds how many live at once; what is missing of the desired number starts together.
    assert made.most_live <= 5 + 2
    assert made.lowest_ready >= 2
    assert ends_at(made) == (5, 0)


def test_28_scale_down_with_min_available() -> None:
    made = plan(5, 2, min_available=2, max_unavailable=2, max_surge=1, pause=1)
    assert made.limits.min_available == 2
    assert counts(made, Phase.SCALING_DOWN, Action.STOP)
    assert made.lowest_ready >= 2
    # Survivors alone are updated: the seed starts five replicas to keep two.
    assert sum(counts(made, Phase.UPDATING, Action.START)) == 2
    assert ends_at(made) == (2, 0)


def test_29_no_scale_same_replicas() -> None:
    made = plan(3, 3, min_available=2, max_unavailable=2, max_surge=1, pause=1)
    assert made.limits.min_available == 2
    assert ends_at(made) == (3, 0)


# The six further cases of the workload suite.


def test_rolling_update_respects_min_available() -> None:
    made = plan(3, 3, max_surge=1, max_unavailable=1, min_available=2)
    assert sum(1 for step in made.steps if step.phase is Phase.UPDATING) >= 2
    assert made.lowest_ready >= 2


def test_scale_up_with_max_surge() -> None:
    made = plan(2, 5, max_surge=2, min_available=2)
    assert counts(made, Phase.SCALING_UP, Action.START)


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate", "BlueGreen", "ROLLING_UPDATE", "BLUE_GREEN"])
def test_each_strategy_makes_a_plan_that_ends_at_the_desired_size(strategy: str) -> None:
    made = plan(3, 3, strategy=strategy, max_surge=1, max_unavailable=1)
    assert made.steps
    assert ends_at(made) == (3, 0)


def test_full_workload_spec_from_nothing() -> None:
    made = plan(0, 2, min_available=1, max_surge=1, max_unavailable=1)
    assert made.limits.min_available == 1
    assert ends_at(made) == (2, 0)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedStrategy, match=r"unsupported rollout strategy: 'rolling'.*RollingUpdate"):
        plan(1, 1, strategy="rolling")


def test_a_blue_green_workload_that_only_scales_switches_nothing() -> None:
    spec = WorkloadSpec(replicas=5, rollout=RolloutStrategy(strategy="BlueGreen", min_available=2))
    made = preview(rollout_of(spec), Fleet(new=Pool(available=3), stable=False, traffic=100))
    assert [step.action for step in made.steps] == [Action.START, Action.WAIT]
    assert made.lowest_ready == 3


# The seed's invariants, over a grid.


@pytest.mark.parametrize("current", range(9))
def test_every_plan_keeps_the_first_invariant_and_ends_at_its_size_or_is_blocked(current: int) -> None:
    for desired in range(9):
        for minimum in (None, *range(10)):
            for unavailable in (None, 0, 1, 3):
                for surge in (None, 0, 1, 3):
                    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=surge)
                    floor = made.limits.floor
                    assert 0 <= made.limits.min_available <= desired
                    assert made.lowest_ready >= min(floor, current)
                    if made.blocked is None:
                        assert ends_at(made) == (desired, 0)
                    else:
                        assert surge == 0
                        assert floor == desired
