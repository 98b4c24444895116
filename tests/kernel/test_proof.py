"""The proof: every state that a small fleet can reach keeps the promises.

P1-P6 and P10 are checked by `holdfast.testing.explore`; P11 (groups) and P12
(plan fidelity) have files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.rollout import Rollout
from holdfast.kernel.strategies import CanaryStep, Step, blue_green, canary, on_delete, recreate, rolling_update
from holdfast.testing.explore import Exploration, Report, explore

SECOND = timedelta(seconds=1)

STRATEGIES: dict[str, tuple[Step, ...]] = {
    "RollingUpdate": rolling_update(),
    "Partition": rolling_update(partition=1),
    "Recreate": recreate(),
    "BlueGreen": blue_green(pause=SECOND, delay=SECOND),
    "Canary": canary((CanaryStep(weight=20, pause=SECOND), CanaryStep(weight=60, approval=True))),
    "OnDelete": on_delete(),
}

VARIANTS: dict[str, dict[str, Any]] = {
    "remains of dead replicas": {"walk": {"remains": True}},
    "minReadySeconds": {"walk": {"settling": True}},
    "slow termination": {"walk": {"terminating": True}},
    "slow termination that counts": {"walk": {"terminating": True}, "rollout": {"count_terminating": True}},
    "ordered": {"walk": {"terminating": True}, "rollout": {"ordered": True}},
    "pause between batches": {"rollout": {"pause": SECOND}},
    "unready replicas replaced one at a time": {"walk": {"terminating": True}, "rollout": {"unready_at_a_time": 1}},
    "unready replicas replaced one at a time, slow termination that counts": {
        "walk": {"terminating": True},
        "rollout": {"unready_at_a_time": 1, "count_terminating": True},
    },
}


def traffic(strategy: str) -> int | None:
    return 0 if strategy == "BlueGreen" else None


def surges(strategy: str, replicas: int) -> range:
    # Recreate, BlueGreen and OnDelete never use the surge while they replace; small fleets show it.
    if strategy in ("RollingUpdate", "Partition", "Canary") or replicas <= 3:
        return range(replicas + 1)
    return range(1)


def all_limits(strategy: str, replicas: int) -> Iterator[Limits]:
    """Every floor (and so every maxUnavailable) with every surge."""
    for surge in surges(strategy, replicas):
        for floor in range(replicas + 1):
            yield Limits(replicas, floor, floor, surge)


def walk_all(walks: Iterator[Exploration]) -> Report:
    total = Report()
    for walk in walks:
        total.add(explore(walk))
        assert not total.breaches, total.breaches[0]
    return total


@pytest.mark.parametrize("replicas", range(1, 9))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_reachable_state_keeps_the_promises(strategy: str, replicas: int, record_property: Any) -> None:
    report = walk_all(
        Exploration(
            rollouts=(Rollout(limits=limits, steps=STRATEGIES[strategy]),), old=replicas, traffic=traffic(strategy)
        )
        for limits in all_limits(strategy, replicas)
    )
    record_property("states", report.states)
    assert report.states > 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_promises_hold_with(strategy: str, variant: str, record_property: Any) -> None:
    extra = VARIANTS[variant]
    report = walk_all(
        Exploration(
            rollouts=(Rollout(limits=limits, steps=STRATEGIES[strategy], **extra.get("rollout", {})),),
            old=replicas,
            traffic=traffic(strategy),
            **extra.get("walk", {}),
        )
        for replicas in range(1, 4)
        for limits in all_limits(strategy, replicas)
    )
    record_property("states", report.states)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pause_resume_abort_and_scale_at_any_step_keep_the_promises(strategy: str, record_property: Any) -> None:
    report = walk_all(
        Exploration(
            rollouts=tuple(
                Rollout(limits=Limits(size, min(floor, size), min(floor, size), surge), steps=STRATEGIES[strategy])
                for size in (replicas, *(other for other in range(4) if other != replicas))
            ),
            old=replicas,
            traffic=traffic(strategy),
            interrupts=True,
        )
        for replicas in (1, 3)
        for floor in range(replicas + 1)
        for surge in (0, 1)
    )
    record_property("states", report.states)


@pytest.mark.parametrize("can_surge", [True, False], ids=["can surge", "cannot surge"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_floor_that_may_be_lowered_is_kept_at_its_lowered_height_and_blocks_nothing(
    strategy: str, can_surge: bool, record_property: Any
) -> None:
    report = Report()
    for replicas in range(1, 5):
        limits = resolve(replicas, min_available=replicas, max_surge=0, can_surge=can_surge, may_lower=True)
        assert (limits.floor, limits.lowered, limits.feasible) == (replicas - 1, 1, True)
        rollout = Rollout(limits=limits, steps=STRATEGIES[strategy])
        report.add(explore(Exploration(rollouts=(rollout,), old=replicas, traffic=traffic(strategy))))
    assert not report.breaches, report.breaches[0]
    assert not report.blocked
    assert report.goals
    record_property("states", report.states)


def test_exactly_the_configurations_without_budget_are_blocked_at_the_start() -> None:
    blocked = {
        (limits.replicas, limits.surge, limits.floor)
        for replicas in range(1, 9)
        for limits in all_limits("RollingUpdate", replicas)
        if explore(
            Exploration(
                rollouts=(Rollout(limits=limits, steps=rolling_update()),), old=replicas, crashes=False, revisions=False
            )
        ).blocked
    }
    assert blocked == {(replicas, 0, replicas) for replicas in range(1, 9)}


def test_a_first_rollout_reaches_its_size_whatever_the_limits() -> None:
    for strategy, steps in STRATEGIES.items():
        for limits in all_limits(strategy, 4):
            report = explore(
                Exploration(rollouts=(Rollout(limits=limits, steps=steps),), old=0, traffic=traffic(strategy))
            )
            assert not report.breaches, (strategy, limits, report.breaches[0])
            assert report.goals
