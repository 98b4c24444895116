"""Decisions, by tables: what is done, and why, and what is said while nothing is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from holdfast.kernel.fleet import Fleet, Pool
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.preview import Phase, phase_of
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import (
    Blocked,
    Decision,
    Done,
    Hold,
    OnFailure,
    Progress,
    RollBack,
    Rollout,
    Start,
    Stop,
    Switch,
    Verdict,
    Wait,
    decide,
)
from holdfast.kernel.strategies import (
    CanaryStep,
    Step,
    blue_green,
    canary,
    on_delete,
    recreate,
    rolling_update,
    steps_of,
)
from holdfast.kernel.strategies import Strategy as StrategyName
from holdfast.testing.explore import NOW

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def limits(replicas: int = 5, floor: int = 4, surge: int = 1) -> Limits:
    return Limits(replicas, floor, floor, surge)


def ask(fleet: Fleet, *, progress: Progress | None = None, **rollout: Any) -> Verdict:
    rollout.setdefault("limits", limits())
    return decide(Rollout(**rollout), fleet, progress=progress or Progress(), now=NOW)


def brief(decision: Decision) -> tuple[Any, ...]:
    match decision:
        case Start(side=side, count=count):
            return ("start", str(side), count)
        case Stop(side=side, kind=kind, count=count):
            return ("stop", str(side), str(kind), count)
        case Wait(because=because) | Hold(because=because) | Blocked(because=because):
            return (type(decision).__name__.lower(), str(because.code))
        case _:
            return (type(decision).__name__.lower(),)


def pools(old: Pool, new: Pool | None = None, **more: Any) -> Fleet:
    return Fleet(old=old, new=new or Pool(), **more)


RULE: dict[str, tuple[Fleet, tuple[Any, ...]]] = {
    "surge comes first": (pools(Pool(available=5)), ("start", "new", 1)),
    "then what is spare above the floor": (pools(Pool(available=5), Pool(unready=1)), ("stop", "old", "ready", 1)),
    "at the floor it waits for the new ones": (pools(Pool(available=4), Pool(unready=2)), ("wait", "WaitingForReady")),
    "unready old replicas go first": (pools(Pool(unready=2, available=3)), ("stop", "old", "unready", 2)),
    "dead ones before that": (pools(Pool(unready=2, available=3, dead=1)), ("stop", "old", "dead", 1)),
    "a lost new replica is started again": (pools(Pool(), Pool(available=4)), ("start", "new", 1)),
    "settling replicas are not available": (
        pools(Pool(available=4), Pool(settling=2)),
        ("wait", "WaitingForAvailable"),
    ),
    "too many are scaled down, old ones first": (pools(Pool(available=9)), ("stop", "old", "ready", 4)),
    "too many on one side are scaled down within the ceiling": (
        pools(Pool(available=6)),
        ("stop", "old", "ready", 1),
    ),
    "too many new ones are scaled down": (pools(Pool(), Pool(available=7)), ("stop", "new", "ready", 2)),
    "unready surplus costs nothing": (pools(Pool(), Pool(available=5, unready=2)), ("stop", "new", "unready", 2)),
    "all there": (pools(Pool(), Pool(available=5)), ("done",)),
}


@pytest.mark.parametrize("name", RULE)
def test_the_rule(name: str) -> None:
    fleet, expected = RULE[name]
    assert brief(ask(fleet).decision) == expected


def test_every_decision_says_why_in_a_code_and_a_sentence() -> None:
    for fleet, _ in RULE.values():
        because = ask(fleet).decision.because
        assert because.code.meaning
        assert " " in because.message


def test_no_budget_and_no_surge_is_blocked_before_anything_is_touched_with_the_remedy_in_words() -> None:
    decision = ask(pools(Pool(unready=1, available=2)), limits=resolve(3, min_available=3, max_surge=0)).decision
    assert isinstance(decision, Blocked)
    assert decision.because.code is Code.NO_DISRUPTION_BUDGET
    assert "maxSurge" in decision.remedy
    assert "minAvailable" in decision.remedy


def test_the_remedy_names_only_what_would_help() -> None:
    asked = resolve(3, min_available=3, can_surge=False)
    decision = ask(pools(Pool(available=3)), limits=asked, ordered=True).decision
    assert isinstance(decision, Blocked)
    assert decision.remedy == "set minAvailable to 2 or less (maxUnavailable to 1 or more)"


def test_a_blocked_rollout_still_replaces_what_died_and_still_scales() -> None:
    asked = resolve(3, min_available=3, max_surge=0)
    assert brief(ask(pools(Pool(available=2, dead=1)), limits=asked).decision) == ("stop", "old", "dead", 1)
    assert brief(ask(pools(Pool(available=2)), limits=asked).decision) == ("start", "old", 1)
    assert brief(ask(pools(Pool(available=5)), limits=asked).decision) == ("stop", "old", "ready", 2)


UNREADY_AT_A_TIME: dict[str, tuple[Fleet, tuple[Any, ...]]] = {
    "so many go at once": (pools(Pool(unready=4, available=1)), ("stop", "old", "unready", 2)),
    "their places are filled first": (pools(Pool(unready=2, available=1)), ("start", "new", 3)),
    "an empty place counts": (pools(Pool(unready=3, available=1)), ("stop", "old", "unready", 1)),
    "one that is not ready counts": (
        pools(Pool(unready=3, available=1), Pool(unready=1)),
        ("stop", "old", "unready", 1),
    ),
    "no more until the new ones are ready": (
        pools(Pool(unready=3, available=1), Pool(unready=2)),
        ("wait", "WaitingForReady"),
    ),
    "no more until those that go are gone": (
        pools(Pool(unready=3, available=1, terminating=2), Pool(available=2)),
        ("wait", "WaitingForTermination"),
    ),
    "dead ones are no part of it": (pools(Pool(unready=1, dead=3), Pool(unready=2)), ("stop", "old", "dead", 3)),
    "nor are new ones beyond the desired number": (
        pools(Pool(), Pool(available=5, unready=4)),
        ("stop", "new", "unready", 4),
    ),
}


@pytest.mark.parametrize("name", UNREADY_AT_A_TIME)
def test_unready_old_replicas_are_replaced_a_few_at_a_time(name: str) -> None:
    fleet, expected = UNREADY_AT_A_TIME[name]
    assert brief(ask(fleet, unready_at_a_time=2).decision) == expected


def test_a_floor_that_is_lowered_is_the_floor_of_the_rollout() -> None:
    asked = resolve(3, min_available=3, max_surge=0, may_lower=True)
    assert brief(ask(pools(Pool(available=3)), limits=asked).decision) == ("stop", "old", "ready", 1)
    assert brief(ask(pools(Pool(available=2), Pool(unready=1)), limits=asked).decision) == ("wait", "WaitingForReady")


def test_an_ordered_fleet_heals_from_a_superseded_broken_revision_without_deleted_pods() -> None:
    fleet = pools(Pool(unready=1, available=2))
    decision = ask(fleet, limits=limits(3, 2, 0), ordered=True).decision
    assert brief(decision) == ("stop", "old", "unready", 1)


def test_an_ordered_fleet_updates_one_replica_after_another() -> None:
    asked: dict[str, Any] = {"limits": limits(5, 2, 0), "ordered": True}
    assert brief(ask(pools(Pool(available=5)), **asked).decision) == ("stop", "old", "ready", 1)
    gone = pools(Pool(available=4, terminating=1))
    assert brief(ask(gone, **asked).decision) == ("wait", "WaitingForTermination")
    assert brief(ask(pools(Pool(available=4)), **asked).decision) == ("start", "new", 1)
    assert brief(ask(pools(Pool(available=4), Pool(unready=1)), **asked).decision) == ("wait", "WaitingForReady")


def test_an_ordered_fleet_says_that_it_waits_for_a_replica_to_go_not_for_its_floor() -> None:
    fleet = pools(Pool(available=1, terminating=1), Pool(available=3))
    asked: dict[str, Any] = {"limits": limits(3, 2, 2), "ordered": True}
    assert brief(ask(fleet, **asked).decision) == ("wait", "WaitingForTermination")


def test_replicas_that_are_going_and_do_not_count_are_not_waited_for() -> None:
    # The old ones have just become ready: they may not be stopped yet, and there is no room beside them.
    fleet = pools(Pool(settling=5, terminating=1), settles_at=NOW + SECOND)
    assert brief(ask(fleet, limits=limits(5, 4, 0)).decision) == ("wait", "AtFloor")
    assert brief(ask(fleet, limits=limits(5, 4, 0), count_terminating=True).decision) == (
        "wait",
        "WaitingForTermination",
    )


def test_an_ordered_fleet_shrinks_one_replica_after_another() -> None:
    asked: dict[str, Any] = {"limits": limits(2, 1, 0), "ordered": True}
    assert brief(ask(pools(Pool(), Pool(available=4)), **asked).decision) == ("stop", "new", "ready", 1)
    going = pools(Pool(), Pool(available=3, terminating=1))
    assert brief(ask(going, **asked).decision) == ("wait", "WaitingForTermination")


def test_an_ordered_fleet_replaces_every_gap_but_grows_one_by_one() -> None:
    asked: dict[str, Any] = {"limits": limits(5, 2, 0), "ordered": True}
    growing = pools(Pool(), Pool(unready=1, available=1), stable=False)
    assert brief(ask(growing, **asked).decision) == ("wait", "WaitingForReady")
    holed = msgspec.structs.replace(growing, gaps=2)
    assert brief(ask(holed, **asked).decision) == ("start", "new", 2)


def test_a_partition_keeps_the_rest_at_the_old_revision_and_restores_it_there() -> None:
    steps = rolling_update(partition=3)
    assert brief(ask(pools(Pool(available=3), Pool(available=2)), steps=steps).decision) == ("done",)
    assert brief(ask(pools(Pool(available=2), Pool(available=2)), steps=steps).decision) == ("start", "old", 1)


def test_where_no_stable_revision_is_known_what_is_missing_comes_new() -> None:
    fleet = pools(Pool(available=1), Pool(available=2), stable=False)
    steps = rolling_update(partition=3)
    assert brief(ask(fleet, steps=steps).decision) == ("start", "new", 2)
    assert brief(ask(fleet, steps=steps, paused=True).decision) == ("start", "new", 2)
    full = pools(Pool(available=1), Pool(available=4), stable=False)
    assert brief(ask(full, steps=steps).decision) == ("done",)


def test_terminating_replicas_take_room_only_where_they_count() -> None:
    fleet = pools(Pool(available=4, terminating=1), Pool(unready=1))
    assert brief(ask(fleet).decision) == ("start", "new", 1)
    assert brief(ask(fleet, count_terminating=True).decision) == ("wait", "WaitingForReady")


def test_a_pause_between_batches_holds_until_it_has_passed_since_the_last_replica_settled() -> None:
    fleet = pools(Pool(available=5), Pool(available=1), settled_at=NOW - 10 * SECOND)
    decision = ask(fleet, pause=30 * SECOND).decision
    assert decision == Hold(NOW + 20 * SECOND, decision.because)
    assert decision.because.code is Code.BATCH_PAUSE
    later = msgspec.structs.replace(fleet, settled_at=NOW - MINUTE)
    assert brief(ask(later, pause=30 * SECOND).decision) == ("stop", "old", "ready", 1)


def test_with_a_pause_nothing_is_stopped_while_a_batch_settles() -> None:
    fleet = pools(Pool(available=5), Pool(unready=1))
    assert brief(ask(fleet, pause=SECOND).decision) == ("wait", "WaitingForReady")


def test_a_paused_rollout_holds_and_still_answers_losses_and_scaling() -> None:
    half = pools(Pool(available=3), Pool(available=2))
    assert brief(ask(half, paused=True).decision) == ("hold", "Paused")
    lost = pools(Pool(available=2), Pool(available=2))
    assert brief(ask(lost, paused=True).decision) == ("start", "old", 1)
    shrunk = ask(half, paused=True, limits=limits(3, 1, 0)).decision
    assert brief(shrunk) == ("stop", "old", "ready", 2)


LATE = {"deadline": MINUTE}


@pytest.mark.parametrize(
    ("on_failure", "expected"),
    [
        (OnFailure.HOLD, ("blocked", "ProgressDeadlineExceeded")),
        (OnFailure.ABORT, ("rollback",)),
        (OnFailure.ROLL_BACK, ("rollback",)),
    ],
)
def test_a_missed_progress_deadline(on_failure: OnFailure, expected: tuple[Any, ...]) -> None:
    fleet = pools(Pool(available=4), Pool(unready=2), progressed_at=NOW - 2 * MINUTE)
    decision = ask(fleet, on_failure=on_failure, **LATE).decision
    assert brief(decision) == expected
    if isinstance(decision, RollBack):
        assert decision.final is (on_failure is OnFailure.ROLL_BACK)


def test_a_first_rollout_has_nothing_to_roll_back_to() -> None:
    fleet = pools(Pool(), Pool(unready=5), stable=False, progressed_at=NOW - 2 * MINUTE)
    assert brief(ask(fleet, on_failure=OnFailure.ROLL_BACK, **LATE).decision) == ("blocked", "ProgressDeadlineExceeded")


def test_a_pause_between_batches_that_is_longer_than_the_deadline_is_no_delay() -> None:
    settled = NOW - 5 * MINUTE
    fleet = pools(Pool(available=5), Pool(available=1), settled_at=settled, progressed_at=settled)
    assert brief(ask(fleet, pause=10 * MINUTE, **LATE).decision) == ("hold", "BatchPause")
    over = msgspec.structs.replace(fleet, settled_at=NOW - 10 * MINUTE, progressed_at=NOW - 10 * MINUTE)
    assert brief(ask(over, pause=10 * MINUTE, **LATE).decision) == ("stop", "old", "ready", 1)
    stuck = msgspec.structs.replace(over, new=Pool(unready=1), progressed_at=NOW - 11 * MINUTE)
    assert brief(ask(stuck, pause=10 * MINUTE, **LATE).decision) == ("blocked", "ProgressDeadlineExceeded")


def test_a_fleet_that_is_complete_is_never_late() -> None:
    fleet = pools(Pool(), Pool(available=5), progressed_at=NOW - 2 * MINUTE)
    assert brief(ask(fleet, **LATE).decision) == ("done",)


def test_a_refused_rollout_says_so_beside_the_loss_that_is_replaced_meanwhile() -> None:
    verdict = ask(pools(Pool(available=2)), limits=resolve(3, min_available=3, max_surge=0))
    assert brief(verdict.decision) == ("start", "old", 1)
    assert verdict.refusal is not None
    assert verdict.refusal.because.code is Code.NO_DISRUPTION_BUDGET
    assert ask(pools(Pool(available=5))).refusal is None


def test_a_wait_says_when_to_look_again_at_the_latest() -> None:
    fleet = pools(Pool(available=4), Pool(unready=2), progressed_at=NOW)
    decision = ask(fleet, **LATE).decision
    assert isinstance(decision, Wait)
    assert decision.until == NOW + MINUTE
    settling = pools(Pool(available=4), Pool(settling=2), progressed_at=NOW, settles_at=NOW + SECOND)
    decision = ask(settling, **LATE).decision
    assert isinstance(decision, Wait)
    assert decision.until == NOW + SECOND


CANARY = canary((CanaryStep(weight=20, pause=MINUTE), CanaryStep(weight=60, approval=True)))


def test_no_rollout_is_late_while_a_gate_is_closed_or_when_it_opens() -> None:
    fleet = pools(Pool(available=2), Pool(available=3), progressed_at=NOW - 2 * MINUTE)
    asked: dict[str, Any] = {"steps": CANARY, "progress": Progress("", 1, NOW - 2 * MINUTE), **LATE}
    assert brief(ask(fleet, **asked).decision) == ("hold", "ApprovalNeeded")
    opened = ask(fleet, approved=2, **asked)
    assert brief(opened.decision) == ("start", "new", 1)
    assert opened.progress.step == 2
    left = pools(Pool(available=5), progressed_at=NOW - 2 * MINUTE)
    assert brief(ask(left, steps=on_delete(), **LATE).decision) == ("hold", "DeletionNeeded")


def test_a_step_without_budget_is_refused_as_soon_as_it_is_reached() -> None:
    steps = canary((CanaryStep(weight=20),))
    verdict = ask(pools(Pool(available=4), Pool(available=1)), steps=steps, limits=limits(5, 5, 0))
    assert brief(verdict.decision) == ("blocked", "NoDisruptionBudget")
    assert verdict.progress.step == 1


def test_a_canary_reaches_its_part_then_holds_for_its_pause() -> None:
    verdict = ask(pools(Pool(available=4), Pool(available=1)), steps=CANARY)
    assert verdict.decision == Hold(NOW + MINUTE, verdict.decision.because)
    assert verdict.progress == Progress("", 0, NOW)


def test_a_pause_that_has_passed_leads_to_the_next_part_at_once() -> None:
    verdict = ask(pools(Pool(available=4), Pool(available=1)), steps=CANARY, progress=Progress("", 0, NOW - 2 * MINUTE))
    assert brief(verdict.decision) == ("start", "new", 1)
    assert verdict.progress == Progress("", 1, None)


def test_a_manual_gate_opens_when_a_user_promotes_the_step() -> None:
    fleet, at = pools(Pool(available=2), Pool(available=3)), Progress("", 1, NOW)
    assert brief(ask(fleet, steps=CANARY, progress=at).decision) == ("hold", "ApprovalNeeded")
    assert brief(ask(fleet, steps=CANARY, progress=at, approved=2).decision) == ("start", "new", 1)


def test_promoting_fully_passes_every_gate() -> None:
    fleet = pools(Pool(available=4), Pool(available=1))
    verdict = ask(fleet, steps=CANARY, approved=len(CANARY))
    assert verdict.progress.step == 1
    assert brief(verdict.decision) == ("start", "new", 1)


def test_a_first_rollout_passes_every_gate() -> None:
    fleet = pools(Pool(), Pool(available=5), stable=False)
    assert brief(ask(fleet, steps=CANARY).decision) == ("done",)


def test_progress_towards_another_revision_is_void() -> None:
    verdict = ask(pools(Pool(available=5)), steps=CANARY, target="v3", progress=Progress("v2", 2, NOW))
    assert verdict.progress == Progress("v3", 0, None)


BLUE_GREEN = blue_green(pause=MINUTE, delay=MINUTE)


def test_blue_green_switches_only_when_the_whole_new_set_is_available() -> None:
    waiting = pools(Pool(available=5), Pool(available=4, unready=1), traffic=0)
    assert brief(ask(waiting, steps=BLUE_GREEN, progress=Progress("", 1)).decision) == ("wait", "WaitingForReady")
    complete = pools(Pool(available=5), Pool(available=5), traffic=0)
    decision = ask(complete, steps=BLUE_GREEN, progress=Progress("", 1)).decision
    assert decision == Switch(100, decision.because)


def test_blue_green_restores_the_serving_set_while_it_waits_for_approval() -> None:
    steps = blue_green(approval=True)
    fleet = pools(Pool(available=3), Pool(available=5), traffic=0)
    assert brief(ask(fleet, steps=steps).decision) == ("start", "old", 1)


def test_blue_green_restores_the_serving_set_although_the_new_one_never_gets_ready() -> None:
    fleet = pools(Pool(available=2), Pool(unready=5), traffic=0)
    assert brief(ask(fleet, steps=BLUE_GREEN).decision) == ("start", "old", 2)


def test_blue_green_scales_its_serving_set_down_at_once_beside_a_new_one() -> None:
    fleet = pools(Pool(available=10), traffic=0)
    decision = ask(fleet, steps=blue_green(), limits=limits(5, 5, 0), pause=MINUTE).decision
    assert brief(decision) == ("stop", "old", "ready", 5)
    assert decision.because.code is Code.SCALING_DOWN


def test_blue_green_starts_nothing_old_when_the_switch_is_due() -> None:
    fleet = pools(Pool(available=2), Pool(available=5), traffic=0)
    assert isinstance(ask(fleet, steps=blue_green()).decision, Switch)


def test_blue_green_keeps_the_old_set_for_the_delay_and_then_drains_it_at_once() -> None:
    fleet = pools(Pool(available=5), Pool(available=5), traffic=100)
    held = ask(fleet, steps=BLUE_GREEN, progress=Progress("", 2, NOW))
    assert held.decision.because.code is Code.STEP_PAUSE
    drained = ask(fleet, steps=BLUE_GREEN, progress=Progress("", 2, NOW - 2 * MINUTE))
    assert brief(drained.decision) == ("stop", "old", "ready", 5)
    assert drained.decision.because.code is Code.DRAINING


def test_a_strategy_that_became_blue_green_midway_switches_although_its_steps_are_said_to_be_past() -> None:
    # Step 2 of a canary, say; in BlueGreen it lies behind the switch that the world does not show.
    steps, beyond = blue_green(), Progress("", 2, NOW)
    complete = pools(Pool(available=5), Pool(available=5), traffic=0)
    assert isinstance(ask(complete, steps=steps, progress=beyond).decision, Switch)
    growing = ask(pools(Pool(available=5), Pool(available=2), traffic=0), steps=steps, progress=beyond)
    assert brief(growing.decision) == ("start", "new", 3)
    assert growing.progress == Progress("", 0, None)
    switched = pools(Pool(available=5), Pool(available=5), traffic=100)
    assert brief(ask(switched, steps=steps, progress=beyond).decision) == ("stop", "old", "ready", 5)


def test_undoing_blue_green_while_the_old_set_is_kept_switches_back_at_once() -> None:
    # Seen from the stable revision: its whole set is there, the traffic is elsewhere, and every gate is open.
    fleet = pools(Pool(available=5), Pool(available=5), traffic=0)
    decision = ask(fleet, steps=BLUE_GREEN, approved=len(BLUE_GREEN), target="v1", progress=Progress("v2", 2)).decision
    assert decision == Switch(100, decision.because)


def test_recreate_waits_until_the_last_old_replica_has_gone() -> None:
    assert brief(ask(pools(Pool(available=5)), steps=recreate()).decision) == ("stop", "old", "ready", 5)
    going = pools(Pool(terminating=1))
    assert brief(ask(going, steps=recreate()).decision) == ("wait", "WaitingForTermination")
    assert brief(ask(pools(Pool()), steps=recreate()).decision) == ("start", "new", 5)


def test_recreate_after_a_drain_without_budget_is_blocked_and_says_so() -> None:
    fleet = pools(Pool(available=1), Pool(available=2))
    decision = ask(fleet, steps=recreate(), limits=limits(3, 3, 0), progress=Progress("", 1)).decision
    assert brief(decision) == ("blocked", "NoDisruptionBudget")


def test_blue_green_replaces_what_the_serving_set_lost_whatever_the_budget() -> None:
    fleet = pools(Pool(available=3), Pool(available=2), traffic=100)
    decision = ask(fleet, steps=BLUE_GREEN, limits=limits(3, 3, 0), progress=Progress("", 2, NOW)).decision
    assert brief(decision) == ("start", "new", 1)


def test_on_delete_replaces_only_what_a_user_deletes() -> None:
    assert brief(ask(pools(Pool(available=5)), steps=on_delete()).decision) == ("hold", "DeletionNeeded")
    assert brief(ask(pools(Pool(available=4)), steps=on_delete()).decision) == ("start", "new", 1)
    assert brief(ask(pools(Pool(), Pool(available=5)), steps=on_delete()).decision) == ("done",)


def test_a_third_revision_midway_drains_what_never_got_ready_first() -> None:
    # The second revision is broken: its replicas are old now, and unready.
    fleet = pools(Pool(unready=2, available=4))
    assert brief(ask(fleet).decision) == ("stop", "old", "unready", 2)


def test_an_abort_is_a_rollout_back_to_the_stable_revision() -> None:
    # Seen from the stable revision, the canary's replicas are the old ones.
    assert brief(ask(pools(Pool(available=2), Pool(available=4))).decision) == ("stop", "old", "ready", 1)
    assert brief(ask(pools(Pool(unready=2), Pool(available=4))).decision) == ("stop", "old", "unready", 2)


@pytest.mark.parametrize("step", [Step(share=150), Step(number=9), Step(hold=-4), Step(share=-10), Step(hold=9)])
def test_no_step_wants_more_than_all_or_less_than_none(step: Step) -> None:
    assert step.new(5) in (0, 5)


@pytest.mark.parametrize("strategy", list(StrategyName))
def test_every_strategy_is_a_list_of_steps(strategy: StrategyName) -> None:
    assert steps_of(strategy, pause=MINUTE, canary_steps=(CanaryStep(weight=10),))


PHASES: dict[str, tuple[dict[str, Any], Fleet, Phase]] = {
    "a first rollout scales up": ({}, pools(Pool(), stable=False), Phase.SCALING_UP),
    "an update updates": ({}, pools(Pool(available=5)), Phase.UPDATING),
    "too many scale down": ({}, pools(Pool(available=9)), Phase.SCALING_DOWN),
    "a user paused it": ({"paused": True}, pools(Pool(available=5)), Phase.PAUSED),
    "nothing left to do": ({}, pools(Pool(), Pool(available=5)), Phase.COMPLETED),
    "blocked by its floor": ({"limits": limits(3, 3, 0)}, pools(Pool(available=3)), Phase.PAUSED),
    "late": (LATE, pools(Pool(available=4), Pool(unready=2), progressed_at=NOW - 2 * MINUTE), Phase.FAILED),
    "recreate empties": ({"steps": recreate()}, pools(Pool(available=5)), Phase.SCALING_DOWN),
    "recreate fills": ({"steps": recreate()}, pools(Pool()), Phase.SCALING_UP),
}


@pytest.mark.parametrize("name", PHASES)
def test_the_phase_is_a_word_for_the_verdict(name: str) -> None:
    asked, fleet, phase = PHASES[name]
    asked = {"limits": limits(), **asked}
    verdict = ask(fleet, **asked)
    assert phase_of(verdict, fleet, rollout=Rollout(**asked)) is phase


def test_done_is_what_it_says() -> None:
    decision = ask(pools(Pool(), Pool(available=5))).decision
    assert isinstance(decision, Done)
    assert decision.because.code is Code.COMPLETED
