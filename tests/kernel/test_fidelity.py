"""P12: the plan that is shown is the plan that runs.  And: Deployment does no better."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.preview import EPOCH, Plan, preview
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import Done, Hold, Kind, Progress, Rollout, Start, Stop, Switch, Verdict, Wait, decide
from holdfast.kernel.strategies import CanaryStep, Step, blue_green, canary, on_delete, recreate, rolling_update

SECOND = timedelta(seconds=1)
STRATEGIES: dict[str, tuple[Step, ...]] = {
    "RollingUpdate": rolling_update(),
    "Partition": rolling_update(partition=2),
    "Recreate": recreate(),
    "BlueGreen": blue_green(pause=SECOND, delay=SECOND),
    "Canary": canary((CanaryStep(weight=20, pause=SECOND), CanaryStep(replicas=3, approval=True))),
    "OnDelete": on_delete(),
}
OPTIONS: tuple[dict[str, bool], ...] = ({}, {"count_terminating": True}, {"ordered": True})


def expanded(plan: Plan) -> Iterator[tuple[str, int]]:
    """The plan's steps one by one, its rounds written out."""
    rounds: dict[int, list[tuple[str, int]]] = {}
    repeats: dict[int, int] = {}
    for step in plan.steps:
        rounds.setdefault(step.round, []).append((str(step.action), step.count))
        repeats[step.round] = step.repeat
    for number, steps in rounds.items():
        for _ in range(repeats[number]):
            yield from steps


def executed(rollout: Rollout, fleet: Fleet) -> Iterator[tuple[str, int]]:
    """What really happens, decision by decision, in a world where nothing fails."""
    progress, now = Progress(), EPOCH
    while True:
        verdict = decide(rollout, fleet, progress=progress, now=now)
        progress = verdict.progress
        match verdict.decision:
            case Start(side=side, count=number):
                yield "start", number
                pool = fleet.pool(side)
                fleet = with_pool(fleet, side, msgspec.structs.replace(pool, unready=pool.unready + number))
            case Stop(side=side, kind=kind, count=number):
                yield "stop", number
                state, pool = "available" if kind is Kind.READY else str(kind), fleet.pool(side)
                left = {state: getattr(pool, state) - number, "terminating": pool.terminating + number}
                fleet = with_pool(fleet, side, msgspec.structs.replace(pool, **left))
            case Switch(traffic=traffic):
                yield "switch", fleet.new.available
                fleet = msgspec.structs.replace(fleet, traffic=traffic)
            case Wait(count=number):
                yield "wait", number
                fleet = msgspec.structs.replace(
                    fleet, old=Pool(available=fleet.old.live), new=Pool(available=fleet.new.live), settled_at=now
                )
            case Hold(until=None, because=because) if because.code is Code.APPROVAL_NEEDED:
                yield "wait", 0
                rollout = msgspec.structs.replace(rollout, approved=progress.step + 1)
            case Hold(until=until) if until is not None:
                yield "wait", 0
                now = until
            case _:
                return


def with_pool(fleet: Fleet, side: Side, pool: Pool) -> Fleet:
    return msgspec.structs.replace(fleet, **{side.value: pool})


def fleet_of(current: int, strategy: str) -> Fleet:
    return Fleet(
        old=Pool(available=current), stable=current > 0, traffic=0 if strategy == "BlueGreen" and current else None
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_preview_equals_execution_when_nothing_fails(strategy: str) -> None:
    for current, replicas, surge in product(range(7), range(7), range(3)):
        for floor, pause in product(range(replicas + 1), (timedelta(), SECOND)):
            rollout = Rollout(limits=Limits(replicas, floor, floor, surge), steps=STRATEGIES[strategy], pause=pause)
            fleet = fleet_of(current, strategy)
            for options in OPTIONS:
                asked = msgspec.structs.replace(rollout, **options)
                assert list(expanded(preview(asked, fleet))) == list(executed(asked, fleet))


@given(
    replicas=st.integers(40, 400),
    current=st.integers(0, 400),
    surge=st.integers(0, 9),
    unavailable=st.integers(0, 9),
    pause=st.sampled_from([timedelta(), SECOND]),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    options=st.sampled_from(OPTIONS),
)
def test_strides_over_repeated_rounds_leave_nothing_out(
    replicas: int, current: int, surge: int, unavailable: int, pause: timedelta, strategy: str, options: dict[str, bool]
) -> None:
    floor = max(0, replicas - unavailable)
    limits = Limits(replicas, floor, floor, surge)
    rollout = Rollout(limits=limits, steps=STRATEGIES[strategy], pause=pause, **options)
    fleet = fleet_of(current, strategy)
    assert list(expanded(preview(rollout, fleet))) == list(executed(rollout, fleet))


def test_a_plan_for_ten_thousand_replicas_is_as_short_as_one_for_ten() -> None:
    plan = preview(Rollout(limits=resolve(10_000, max_surge=1, max_unavailable=0)), Fleet(old=Pool(available=10_000)))
    assert len(plan.steps) < 10
    assert sum(count for action, count in expanded(plan) if action == "stop") == 10_000
    assert isinstance(plan.end, Done)
    assert plan.lowest_ready == 10_000
    assert plan.most_live == 10_001


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options), "plain"))
@pytest.mark.parametrize("current", [0, 10_000, 25_000], ids=["grows", "stays", "shrinks"])
def test_any_plan_takes_few_decisions_at_any_size(
    strategy: str, options: dict[str, bool], current: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(*args: Any, **kwargs: Any) -> Verdict:
        asked.append(args)
        return decide(*args, **kwargs)

    monkeypatch.setattr("holdfast.kernel.preview.decide", counted)
    for surge, floor in product((0, 1, 3), (10_000, 9_999, 9_000, 0)):
        limits = Limits(10_000, floor, floor, surge)
        plan = preview(Rollout(limits=limits, steps=STRATEGIES[strategy], **options), fleet_of(current, strategy))
        assert len(plan.steps) < 60, limits
        assert len(asked) < 300, limits
        asked.clear()


def test_a_plan_waits_for_replicas_to_go_where_the_rollout_will() -> None:
    recreated = preview(Rollout(limits=resolve(3), steps=recreate()), Fleet(old=Pool(available=3)))
    assert [(str(step.phase), *each) for step, each in zip(recreated.steps, expanded(recreated), strict=True)] == [
        ("ScalingDown", "stop", 3),
        ("ScalingDown", "wait", 3),
        ("ScalingUp", "start", 3),
        ("ScalingUp", "wait", 3),
    ]
    limits = resolve(4, max_unavailable=1, max_surge=0)
    in_place = preview(Rollout(limits=limits, count_terminating=True), Fleet(old=Pool(available=4)))
    assert list(expanded(in_place))[:4] == [("stop", 1), ("wait", 1), ("start", 1), ("wait", 1)]


def test_the_duration_of_a_plan_counts_every_pause_of_a_repeated_round() -> None:
    rollout = Rollout(limits=resolve(1_000, max_surge=1, max_unavailable=0), pause=timedelta(seconds=30))
    assert preview(rollout, Fleet(old=Pool(available=1_000))).duration == timedelta(seconds=30_000)


# The Deployment controller's rule, as its documentation and its tests describe it.

State = tuple[int, int, int, int]  # old unready, old available, new unready, new available
Rule = Callable[[Limits, State], State]


def deployment_rule(limits: Limits, state: State) -> State:
    old_unready, old_available, new_unready, new_available = state
    total = sum(state)
    missing = limits.replicas - new_unready - new_available
    room = limits.ceiling - total
    if missing > 0 and room > 0:
        return old_unready, old_available, new_unready + min(missing, room), new_available
    stoppable = total - limits.floor - new_unready
    if old_unready + old_available == 0 or stoppable <= 0:
        return state
    unhealthy = min(old_unready, stoppable)
    spare = max(0, old_available + new_available - limits.floor)
    return old_unready - unhealthy, old_available - min(old_available, spare), new_unready, new_available


def our_rule(limits: Limits, state: State) -> State:
    old_unready, old_available, new_unready, new_available = state
    fleet = Fleet(old=Pool(old_unready, available=old_available), new=Pool(new_unready, available=new_available))
    match decide(Rollout(limits=limits), fleet, progress=Progress(), now=EPOCH).decision:
        case Start(count=number):
            return old_unready, old_available, new_unready + number, new_available
        case Stop(kind="unready", count=number):
            return old_unready - number, old_available, new_unready, new_available
        case Stop(count=number):
            return old_unready, old_available - number, new_unready, new_available
        case _:
            return state


def reachable(limits: Limits, rule: Rule) -> set[State]:
    """Every state of a rollout in which new replicas get ready one at a time, whenever they like."""
    start: State = (0, limits.replicas, 0, 0)
    seen, frontier = {start}, [start]
    while frontier:
        state = frontier.pop()
        moves = [rule(limits, state)]
        if state[2]:
            moves.append((state[0], state[1], state[2] - 1, state[3] + 1))
        for move in moves:
            if move not in seen:
                seen.add(move)
                frontier.append(move)
    return seen


@pytest.mark.parametrize("replicas", range(1, 9))
def test_against_deployment_same_end_never_fewer_ready_never_more_live(replicas: int) -> None:
    for surge, unavailable in product(range(5), range(6)):
        if surge == 0 and unavailable == 0:
            continue  # Deployment turns this into one unavailable; we refuse it and say so.
        floor = max(0, replicas - unavailable)
        limits = Limits(replicas, floor, floor, surge)
        ours, theirs = reachable(limits, our_rule), reachable(limits, deployment_rule)
        goal = (0, 0, 0, replicas)
        assert goal in ours
        assert goal in theirs
        assert min(state[1] + state[3] for state in ours) >= min(state[1] + state[3] for state in theirs)
        assert max(map(sum, ours)) <= max(map(sum, theirs))
