"""The 29 cases of the seed (CLD-REQ-023) and the 6 further ones of its workload suite.

The seed writes 0 for "not set"; here that is None, and 0 means 0.  Where the
seed contradicts itself, its first invariant wins: in every phase, ready minus
stopped is at least the minimum.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.kernel.planning import (
    FloorViolation,
    ImpossibleState,
    RolloutPlan,
    RolloutState,
    RolloutStrategy,
    UnsupportedStrategy,
    WorkloadSpec,
    max_replicas_to_stop,
    plan_rollout,
    validate_rollout,
)
from holdfast.kernel.preview import Action, Phase
from holdfast.kernel.reasons import Code


def plan(current: int, desired: int, **rollout: object) -> RolloutPlan:
    pause = timedelta(seconds=float(str(rollout.pop("pause", 0))))
    strategy = RolloutStrategy(pause_duration=pause, **rollout)  # type: ignore[arg-type]
    return plan_rollout(RolloutState(total_replicas=current), WorkloadSpec(replicas=desired, rollout=strategy))


def counts(plan: RolloutPlan, phase: Phase, action: Action) -> list[int]:
    return [
        step.replica_count
        for step in plan.phases
        if step.phase is phase and step.action is action
        for _ in range(step.repeat)
    ]


def ends_at(plan: RolloutPlan) -> tuple[int, int]:
    final = plan.plan.final
    return final.new.available, final.old.live


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
    assert made.min_available == resolved
    stops = counts(made, Phase.UPDATING, Action.STOP)
    assert stops
    assert max(stops) <= batch
    assert made.plan.lowest_ready >= min(resolved, current)
    assert ends_at(made) == (desired, 0)


@pytest.mark.parametrize("name", ["2 min_available_equals_replicas", "7 min_available_exceeds_replicas_clamped"])
def test_a_fleet_at_its_minimum_surges_first_where_the_seed_would_stop_one(name: str) -> None:
    current, desired, minimum, unavailable, _, _ = ENFORCEMENT[name]
    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=1, pause=1)
    assert [made.phases[0].action, made.phases[1].action] == [Action.START, Action.WAIT]
    assert made.plan.lowest_ready == 3


@pytest.mark.parametrize("name", ["2 min_available_equals_replicas", "7 min_available_exceeds_replicas_clamped"])
def test_a_fleet_at_its_minimum_is_blocked_when_surge_is_zero(name: str) -> None:
    current, desired, minimum, unavailable, _, _ = ENFORCEMENT[name]
    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=0)
    assert made.blocked is not None
    assert made.blocked.because.code is Code.NO_DISRUPTION_BUDGET
    assert "maxSurge" in made.blocked.remedy
    assert made.phases == ()


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
    state = RolloutState(
        total_replicas=total,
        ready_replicas=ready,
        strategy=RolloutStrategy(min_available=minimum, max_unavailable=total),
    )
    if valid:
        validate_rollout(state)
    else:
        with pytest.raises(FloorViolation) as error:
            validate_rollout(state)
        assert str(error.value) == f"rollout violates minAvailable constraint: ready={ready}, min={minimum}"


def test_validation_clamps_the_minimum_as_planning_does() -> None:
    validate_rollout(RolloutState(total_replicas=3, ready_replicas=3, strategy=RolloutStrategy(min_available=5)))


# TC-003: how many can be stopped.

STOPPABLE = {
    "13 can_stop_two_replicas": (5, 5, 3, 2),
    "14 can_stop_zero_at_min": (3, 3, 3, 0),
    "15 can_stop_all_no_constraint": (5, 5, 0, 5),
    "16 negative_result_clamped_to_zero": (5, 2, 3, 0),
    "17 can_stop_one_replica": (4, 4, 3, 1),
    "18 partial_ready_replicas": (5, 4, 3, 1),
}


@pytest.mark.parametrize("name", STOPPABLE)
def test_max_replicas_to_stop(name: str) -> None:
    total, ready, minimum, expected = STOPPABLE[name]
    assert max_replicas_to_stop(total, ready, minimum) == expected
    if minimum > 0 and ready >= minimum:
        assert ready - max_replicas_to_stop(total, ready, minimum) >= minimum


# TC-004 and TC-005: Recreate and BlueGreen.


@pytest.mark.parametrize(
    "minimum", [2, None], ids=["19 recreate_with_min_available_warning", "20 recreate_with_zero_min_available"]
)
def test_recreate_stops_all_first_and_warns(minimum: int | None) -> None:
    made = plan(3, 3, strategy="Recreate", min_available=minimum, pause=1)
    assert made.strategy == "Recreate"
    assert made.min_available == 2
    assert made.phases[0].action is Action.STOP
    assert made.phases[0].replica_count == 3
    assert Code.FLOOR_NOT_GUARANTEED in [warning.code for warning in made.warnings]
    assert ends_at(made) == (3, 0)


@pytest.mark.parametrize(
    ("current", "desired"), [(3, 3), (2, 5)], ids=["21 bluegreen_maintains_availability", "22 bluegreen_scale_up"]
)
def test_blue_green_starts_a_whole_set_before_it_stops_one(current: int, desired: int) -> None:
    made = plan(current, desired, strategy="BlueGreen", min_available=2, max_surge=desired, pause=5)
    first, *rest = made.phases
    assert (first.phase, first.action, first.replica_count) == (Phase.SCALING_UP, Action.START, desired)
    stops = [index for index, step in enumerate(made.phases) if step.action is Action.STOP]
    assert stops
    assert min(stops) >= 2
    assert made.phases[stops[0]].replica_count == current
    assert (Phase.PAUSED, timedelta(seconds=5)) in [(step.phase, step.wait_duration) for step in rest]
    assert made.plan.lowest_ready >= current
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
    assert made.min_available == expected
    # The seed's plan stops at one replica; a plan ends at the desired size.
    assert ends_at(made) == (desired, 0)


# TC-007: scaling. (RollingUpdate, maxUnavailable 2, pause 1 s)


def test_27_scale_up_with_min_available() -> None:
    made = plan(2, 5, min_available=2, max_unavailable=2, max_surge=2, pause=1)
    assert made.min_available == 2
    starts = counts(made, Phase.SCALING_UP, Action.START)
    assert starts
    assert max(starts) <= 2
    assert ends_at(made) == (5, 0)


def test_28_scale_down_with_min_available() -> None:
    made = plan(5, 2, min_available=2, max_unavailable=2, max_surge=1, pause=1)
    assert made.min_available == 2
    assert counts(made, Phase.SCALING_DOWN, Action.STOP)
    assert made.plan.lowest_ready >= 2
    # Survivors alone are updated: the seed starts five replicas to keep two.
    assert sum(counts(made, Phase.UPDATING, Action.START)) == 2
    assert ends_at(made) == (2, 0)


def test_29_no_scale_same_replicas() -> None:
    made = plan(3, 3, min_available=2, max_unavailable=2, max_surge=1, pause=1)
    assert made.min_available == 2
    assert ends_at(made) == (3, 0)


# The six further cases of the workload suite.


def test_rolling_update_respects_min_available() -> None:
    made = plan(3, 3, max_surge=1, max_unavailable=1, min_available=2)
    assert sum(1 for step in made.phases if step.phase is Phase.UPDATING) >= 2
    assert made.plan.lowest_ready >= 2


def test_scale_up_with_max_surge() -> None:
    made = plan(2, 5, max_surge=2, min_available=2)
    assert counts(made, Phase.SCALING_UP, Action.START)


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate", "BlueGreen", "ROLLING_UPDATE", "BLUE_GREEN"])
def test_each_strategy_makes_a_plan_that_ends_at_the_desired_size(strategy: str) -> None:
    made = plan(3, 3, strategy=strategy, max_surge=1, max_unavailable=1)
    assert made.phases
    assert ends_at(made) == (3, 0)


def test_full_workload_spec_from_nothing() -> None:
    made = plan(0, 2, min_available=1, max_surge=1, max_unavailable=1)
    assert made.min_available == 1
    assert ends_at(made) == (2, 0)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedStrategy, match=r"unsupported rollout strategy: 'rolling'.*RollingUpdate"):
        plan(1, 1, strategy="rolling")


def test_a_blue_green_workload_that_only_scales_switches_nothing() -> None:
    rollout = RolloutStrategy(strategy="BlueGreen", min_available=2)
    state = RolloutState(total_replicas=3, updated_replicas=3)
    made = plan_rollout(state, WorkloadSpec(replicas=5, rollout=rollout))
    assert [step.action for step in made.phases] == [Action.START, Action.WAIT]
    assert made.plan.lowest_ready == 3


# The seed's invariants, over a grid.


@pytest.mark.parametrize("current", range(9))
def test_every_plan_keeps_the_first_invariant_and_ends_at_its_size_or_is_blocked(current: int) -> None:
    for desired in range(9):
        for minimum in (None, *range(10)):
            for unavailable in (None, 0, 1, 3):
                for surge in (None, 0, 1, 3):
                    made = plan(current, desired, min_available=minimum, max_unavailable=unavailable, max_surge=surge)
                    floor = made.plan.limits.floor
                    assert 0 <= made.min_available <= desired
                    assert made.plan.lowest_ready >= min(floor, current)
                    if made.blocked is None:
                        assert ends_at(made) == (desired, 0)
                    else:
                        assert surge == 0
                        assert floor == desired


@pytest.mark.parametrize("counts", [{"ready_replicas": 4}, {"updated_replicas": 4}, {"ready_replicas": -1}])
def test_counts_that_contradict_each_other_are_refused(counts: dict[str, int]) -> None:
    with pytest.raises(ImpossibleState, match="between 0 and the total"):
        plan_rollout(RolloutState(total_replicas=3, **counts), WorkloadSpec(replicas=3))
