"""Groups in lockstep (P11): no role below its floor, none far ahead, no group stuck."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import msgspec
import pytest

from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.groups import Role, decide_group, lockstep
from holdfast.kernel.limits import Limits
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import Blocked, Decision, Done, Hold, Kind, Progress, Rollout, Start, Stop
from holdfast.kernel.strategies import CanaryStep, blue_green, canary, recreate, rolling_update
from holdfast.testing.explore import NOW

Pair = tuple[Fleet, Fleet]
FIVE = Fleet(old=Pool(available=5))


def moved(fleet: Fleet, side: Side, *, unready: int = 0, available: int = 0) -> Fleet:
    pool = fleet.pool(side)
    changed = Pool(unready=pool.unready + unready, available=pool.available + available)
    return msgspec.structs.replace(fleet, **{side.value: changed})


def carried_out(fleet: Fleet, decision: Decision) -> Fleet | None:
    match decision:
        case Start(side=side, count=number):
            return moved(fleet, side, unready=number)
        case Stop(side=side, kind=Kind.UNREADY, count=number):
            return moved(fleet, side, unready=-number)
        case Stop(side=side, count=number):
            return moved(fleet, side, available=-number)
        case _:
            return None


def misfortunes(fleet: Fleet) -> Iterator[Fleet]:
    for side in Side:
        if fleet.pool(side).available:
            yield moved(fleet, side, available=-1, unready=1)


def walk(limits: tuple[Limits, Limits], *, crashes: bool) -> int:
    """Visit every state of a two-role group, each role's decision carried out at its own pace."""
    one, other = (Fleet(old=Pool(available=each.replicas)) for each in limits)
    start = (one, other)
    seen: dict[Pair, int] = {start: 0}
    back: list[list[int]] = [[]]
    goals: list[int] = []
    frontier = [start]

    def visit(successor: Pair) -> int:
        if successor not in seen:
            seen[successor] = len(back)
            back.append([])
            frontier.append(successor)
        return seen[successor]

    while frontier:
        pair = frontier.pop()
        roles = {str(n): Role(Rollout(limits=limits[n]), pair[n]) for n in range(2)}
        decisions = [verdict.decision for verdict in decide_group(roles, now=NOW).values()]
        if all(isinstance(decision, Done) for decision in decisions) or any(
            isinstance(decision, Blocked) for decision in decisions
        ):
            goals.append(seen[pair])
        for n, decision in enumerate(decisions):
            after = carried_out(pair[n], decision)
            if after is not None:
                check(limits, pair, n, decision, after)
                back[visit((after, pair[1]) if n == 0 else (pair[0], after))].append(seen[pair])
            fleet = pair[n]
            if fleet.new.unready:
                ready = moved(fleet, Side.NEW, unready=-1, available=1)
                back[visit((ready, pair[1]) if n == 0 else (pair[0], ready))].append(seen[pair])
            for worse in misfortunes(fleet) if crashes else ():
                visit((worse, pair[1]) if n == 0 else (pair[0], worse))
    met = set(goals)
    stack = list(goals)
    while stack:
        for index in back[stack.pop()]:
            if index not in met:
                met.add(index)
                stack.append(index)
    stuck = next((pair for pair, index in seen.items() if index not in met), None)
    assert stuck is None, f"P3: {limits} is stuck at {stuck}"
    return len(seen)


def check(limits: tuple[Limits, Limits], pair: Pair, n: int, decision: Decision, after: Fleet) -> None:
    mine = limits[n]
    if isinstance(decision, Stop):
        assert after.ready >= min(mine.floor, pair[n].ready), f"P11 floor: {limits} {pair} {decision}"
    if isinstance(decision, Start):
        assert after.live <= mine.replicas + mine.surge, f"P2: {limits} {pair} {decision}"
    if isinstance(decision, Start) and decision.side is Side.NEW:
        slowest = min(Fraction(pair[m].new.available, limits[m].replicas) for m in range(2))
        batch = max(1, mine.replicas - mine.floor, mine.surge)
        assert after.new.live <= ceil(slowest * mine.replicas) + batch, f"P11 skew: {limits} {pair} {decision}"


def all_limits(replicas: int) -> list[Limits]:
    return [Limits(replicas, floor, floor, surge) for floor in range(replicas + 1) for surge in range(3)]


@pytest.mark.parametrize("sizes", list(product(range(1, 4), repeat=2)), ids=lambda sizes: f"{sizes[0]}x{sizes[1]}")
def test_no_role_falls_below_its_floor_or_runs_ahead(sizes: tuple[int, int], record_property: Any) -> None:
    states = sum(
        walk((first, second), crashes=sum(sizes) <= 4)
        for first, second in product(all_limits(sizes[0]), all_limits(sizes[1]))
    )
    record_property("states", states)


def test_a_role_of_two_keeps_one_ready_beside_a_role_of_one_where_a_known_planner_drops_to_none() -> None:
    # Sizes 1 and 2, no surge, one unavailable: there the second role goes from two old to two new in one step.
    walk((Limits(1, 0, 0, 0), Limits(2, 1, 1, 0)), crashes=True)


def test_a_blocked_role_holds_the_whole_group_before_anything_is_touched() -> None:
    roles = {
        "prefill": Role(Rollout(limits=Limits(2, 2, 2, 0)), Fleet(old=Pool(available=2))),
        "decode": Role(Rollout(limits=Limits(4, 2, 2, 1)), Fleet(old=Pool(available=4))),
    }
    verdicts = decide_group(roles, now=NOW)
    assert isinstance(verdicts["prefill"].decision, Blocked)
    assert isinstance(verdicts["decode"].decision, Hold)
    assert verdicts["decode"].decision.because.code is Code.WAITING_FOR_ROLES
    assert "prefill" in verdicts["decode"].decision.because.message


def test_a_blocked_role_does_not_keep_the_others_from_replacing_their_losses() -> None:
    roles = {
        "prefill": Role(Rollout(limits=Limits(2, 2, 2, 0)), Fleet(old=Pool(available=2))),
        "decode": Role(Rollout(limits=Limits(4, 2, 2, 1)), Fleet(old=Pool(available=3))),
    }
    decision = decide_group(roles, now=NOW)["decode"].decision
    assert isinstance(decision, Start)
    assert (decision.side, decision.count) == (Side.OLD, 1)


def test_a_blocked_role_that_replaces_a_loss_holds_the_group_all_the_same() -> None:
    roles = {
        "prefill": Role(Rollout(limits=Limits(2, 2, 2, 0)), Fleet(old=Pool(available=1))),
        "decode": Role(Rollout(limits=Limits(4, 2, 2, 1)), Fleet(old=Pool(available=4))),
        "router": Role(Rollout(limits=Limits(1, 1, 1, 0)), Fleet(new=Pool(available=1))),
        "planner": Role(Rollout(limits=Limits(3, 2, 2, 0), paused=True), Fleet(old=Pool(available=3))),
    }
    verdicts = decide_group(roles, now=NOW)
    assert isinstance(verdicts["prefill"].decision, Start)
    assert verdicts["decode"].decision.because.code is Code.WAITING_FOR_ROLES
    assert isinstance(verdicts["router"].decision, Done)
    assert verdicts["planner"].decision.because.code is Code.PAUSED


def test_a_role_that_keeps_a_partition_does_not_hold_the_others_back_for_ever() -> None:
    roles = {
        "kept": Role(Rollout(limits=Limits(5, 4, 4, 0), steps=rolling_update(partition=4)), FIVE),
        "all": Role(Rollout(limits=Limits(5, 4, 4, 0)), Fleet(old=Pool(available=2), new=Pool(available=3))),
    }
    assert lockstep(roles)["all"] == 1
    done = msgspec.structs.replace(roles["kept"], fleet=Fleet(old=Pool(available=4), new=Pool(available=1)))
    decision = decide_group({**roles, "kept": done}, now=NOW)["all"].decision
    assert (type(decision), decision.because.code) == (Stop, Code.STOPPING_OLD)


def test_a_gate_is_not_asked_before_the_group_lets_its_step_be_reached() -> None:
    steps = canary((CanaryStep(weight=60, approval=True),))
    ahead = Role(Rollout(limits=Limits(5, 4, 4, 1), steps=steps), Fleet(old=Pool(available=4), new=Pool(available=1)))
    verdict = decide_group({"ahead": ahead, "slow": Role(ahead.rollout, FIVE)}, now=NOW)["ahead"]
    assert verdict.decision.because.code is Code.WAITING_FOR_ROLES
    assert verdict.progress.reached_at is None


def test_traffic_is_not_switched_to_the_part_of_a_set_that_the_group_allows() -> None:
    rollout = Rollout(limits=Limits(5, 4, 4, 0), steps=blue_green())
    part = Role(rollout, Fleet(old=Pool(available=5), new=Pool(available=1), traffic=0))
    none = Role(rollout, Fleet(old=Pool(available=5), traffic=0))
    assert decide_group({"a": part, "b": none}, now=NOW)["a"].decision.because.code is Code.WAITING_FOR_ROLES


@pytest.mark.parametrize("stable", [True, False])
def test_the_pace_of_a_group_never_keeps_a_role_small(stable: bool) -> None:
    # Nothing old is left to stand in for what a cap would withhold: a role that grows, and a Recreate that fills.
    slow = Role(Rollout(limits=Limits(5, 4, 4, 0)), FIVE)
    fleet = Fleet(new=Pool(available=1), stable=stable)
    filling = Role(Rollout(limits=Limits(9, 8, 8, 0), steps=recreate()), fleet, Progress("", 1))
    growing = Role(Rollout(limits=Limits(9, 8, 8, 0)), Fleet(new=Pool(available=1), stable=False))
    verdicts = decide_group({"slow": slow, "filling": filling, "growing": growing}, now=NOW)
    for name in ("filling", "growing"):
        decision = verdicts[name].decision
        assert isinstance(decision, Start)
        assert (decision.side, decision.count) == (Side.NEW, 8)


def test_a_group_is_late_when_none_of_its_roles_gets_further() -> None:
    minute = timedelta(minutes=1)
    rollout = Rollout(limits=Limits(4, 3, 3, 1), deadline=minute)
    ahead = Fleet(old=Pool(available=3), new=Pool(available=1), progressed_at=NOW - 5 * minute)
    slow = Fleet(old=Pool(available=4), new=Pool(unready=1), progressed_at=NOW)
    verdicts = decide_group({"ahead": Role(rollout, ahead), "slow": Role(rollout, slow)}, now=NOW)
    assert {verdict.refusal for verdict in verdicts.values()} == {None}
    stuck = msgspec.structs.replace(slow, progressed_at=NOW - minute)
    verdicts = decide_group({"ahead": Role(rollout, ahead), "slow": Role(rollout, stuck)}, now=NOW)
    assert isinstance(verdicts["slow"].decision, Blocked)
    assert verdicts["ahead"].decision.because.code is Code.WAITING_FOR_ROLES


def test_the_faster_role_says_that_it_waits_for_the_others() -> None:
    limits = Limits(4, 3, 3, 1)
    roles = {
        "fast": Role(Rollout(limits=limits), Fleet(old=Pool(available=3), new=Pool(available=1))),
        "slow": Role(Rollout(limits=limits), Fleet(old=Pool(available=4), new=Pool(unready=1))),
    }
    decision = decide_group(roles, now=NOW)["fast"].decision
    assert decision.because.code is Code.WAITING_FOR_ROLES


def test_a_group_of_one_role_is_a_rollout() -> None:
    roles = {"only": Role(Rollout(limits=Limits(3, 2, 2, 0)), Fleet(old=Pool(available=3)))}
    assert isinstance(decide_group(roles, now=NOW)["only"].decision, Stop)
