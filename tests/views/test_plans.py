"""Plans as they are shown agree with the engine that made them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.fleet import Fleet, Pool
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec, rollout_of
from holdfast.kernel.reasons import Code
from holdfast.kernel.strategies import CanaryStep, Strategy
from holdfast.views.plans import Beginning, Fix, PlanView, plan_view, to_json


def view(replicas: int, *, current: int | None = None, scaling_only: bool = False, **wish: Any) -> PlanView:
    spec = WorkloadSpec(replicas=replicas, name="web", rollout=RolloutStrategy(**wish))
    return plan_view(spec, current=replicas if current is None else current, scaling_only=scaling_only)


def rows(shown: PlanView) -> list[tuple[int, str, int]]:
    return [(row.step.repeat, row.what, row.ready) for row in shown.rows]


def test_a_row_says_what_is_done_and_how_low_the_ready_replicas_get() -> None:
    assert rows(view(10, min_available=8, max_surge=2, pause_duration=timedelta(seconds=15))) == [
        (1, "start 2 new", 10),
        (1, "wait for 2 new", 12),
        (4, "wait 15s", 12),
        (4, "stop 2 old", 10),
        (4, "start 2 new", 10),
        (4, "wait for 2 new", 12),
        (1, "wait 15s", 12),
        (1, "stop 2 old", 10),
    ]


def test_a_blue_green_rollout_switches_and_counts_only_those_that_serve() -> None:
    shown = view(4, strategy="BlueGreen", approval=True, scale_down_delay=timedelta(minutes=15))
    assert rows(shown) == [
        (1, "start 4 new", 4),
        (1, "wait for 4 new", 4),
        (1, "wait for approval", 4),
        (1, "switch to 4 new", 4),
        (1, "wait 15m", 4),
        (1, "stop 4 old", 4),
    ]
    assert (shown.max_live, shown.lowest_ready, shown.duration) == (8, 4, timedelta(minutes=15))


@pytest.mark.parametrize("strategy", [strategy for strategy in Strategy if strategy is not Strategy.CANARY])
def test_scaling_alone_never_replaces_a_replica(strategy: Strategy) -> None:
    grown = view(6, current=4, scaling_only=True, strategy=str(strategy))
    assert rows(grown)[:1] == [(1, "start 2 new", 4)]
    assert (grown.lowest_ready, grown.final_replicas, grown.warnings) == (4, 6, ())
    shrunk = view(4, current=6, scaling_only=True, strategy=str(strategy))
    assert rows(shrunk) == [(1, "stop 2 new", 4)]
    assert rows(view(4, scaling_only=True, strategy=str(strategy))) == []


def test_recreate_keeps_no_floor_and_says_so() -> None:
    shown = view(4, strategy="Recreate")
    assert (shown.floor, shown.min_available, shown.lowest_ready) == (0, 3, 0)
    assert [warning.code for warning in shown.warnings] == [Code.FLOOR_NOT_GUARANTEED]


def test_a_plan_that_waits_for_somebody_says_for_what() -> None:
    shown = view(4, strategy="OnDelete")
    assert (shown.rows, shown.blocked, shown.outcome.code) == ((), False, Code.DELETION_NEEDED)


def test_a_paused_rollout_is_planned_with_a_warning() -> None:
    shown = plan_view(WorkloadSpec(replicas=3), current=3, paused=True)
    assert [warning.code for warning in shown.warnings] == [Code.PAUSED]
    assert shown.rows


@pytest.mark.parametrize(
    ("wish", "fixes"),
    [
        ({"min_available": 3, "max_surge": 0}, [{"maxSurge": 1}, {"minAvailable": 2}]),
        ({"max_unavailable": 0, "max_surge": 0}, [{"maxSurge": 1}, {"maxUnavailable": 1}]),
        (
            {"min_available": 3, "max_unavailable": 0, "max_surge": 0},
            [{"maxSurge": 1}, {"minAvailable": 2, "maxUnavailable": 1}],
        ),
        ({"min_available": "100%", "max_surge": "0%"}, [{"maxSurge": 1}, {"minAvailable": 2}]),
    ],
)
def test_a_blocked_plan_names_the_changes_that_unblock_it(wish: dict[str, Any], fixes: list[dict[str, int]]) -> None:
    shown = view(3, **wish)
    assert shown.blocked
    assert shown.outcome.code is Code.NO_DISRUPTION_BUDGET
    assert shown.fixes == tuple(Fix(tuple(fix.items())) for fix in fixes)


def test_a_plan_for_ten_thousand_replicas_is_as_short_as_one_for_ten() -> None:
    shown = view(10_000, max_surge=1)
    assert len(shown.rows) <= 12
    assert min(row.ready for row in shown.rows) == shown.lowest_ready == 9_999


AMOUNTS = st.none() | st.integers(0, 12) | st.integers(0, 100).map(lambda share: f"{share}%")
STEPS = st.lists(st.builds(CanaryStep, weight=st.integers(0, 100)), min_size=1, max_size=3).map(tuple)


@given(
    replicas=st.integers(0, 40),
    current=st.integers(0, 40),
    scaling_only=st.booleans(),
    wish=st.fixed_dictionaries(
        {
            "strategy": st.sampled_from([str(strategy) for strategy in Strategy]),
            "max_surge": AMOUNTS,
            "max_unavailable": AMOUNTS,
            "min_available": AMOUNTS,
            "partition": st.integers(0, 5),
            "canary_steps": STEPS,
        }
    ),
)
def test_the_lowest_row_is_as_low_as_the_engine_says(
    replicas: int, current: int, scaling_only: bool, wish: dict[str, Any]
) -> None:
    shown = view(replicas, current=current, scaling_only=scaling_only, **wish)
    assert min([current, *(row.ready for row in shown.rows)]) == shown.lowest_ready
    assert shown.holds


def test_the_json_has_the_promised_fields_and_no_other_types() -> None:
    found = to_json(view(3, min_available=3, max_surge=0))
    assert found["blocked"] == {
        "reason": "NoDisruptionBudget",
        "message": "all 3 replicas must stay available and no surge is allowed, so no ready replica can be replaced",
        "remedy": "set maxSurge to 1 or more, or minAvailable to 2 or less (maxUnavailable to 1 or more)",
    }
    assert found["steps"] == []
    found = to_json(view(3, min_available=3, pause_duration=timedelta(seconds=1.5)))
    assert found["warnings"][0]["code"] == "SurgeDerived"
    assert found["blocked"] is None
    assert found["steps"][2] == {
        "phase": "Paused",
        "action": "wait",
        "count": 0,
        "repeat": 2,
        "round": 1,
        "side": None,
        "waitSeconds": 1.5,
        "because": {"code": "BatchPause", "message": "a pause of 1 second between batches"},
    }


def test_a_plan_can_begin_with_whatever_there_is() -> None:
    asked = WorkloadSpec(name="web", replicas=4, rollout=RolloutStrategy(max_surge=1, max_unavailable=1))
    fleet = Fleet(old=Pool(available=2, settling=1, dead=1), new=Pool(unready=1))
    shown = plan_view(asked, current=4, start=Beginning(rollout_of(asked), fleet))
    assert rows(shown)[:3] == [(1, "stop 1 old", 3), (1, "start 1 new", 3), (1, "wait for 2 new", 5)]
    assert (shown.final_replicas, shown.lowest_ready) == (4, 3)
