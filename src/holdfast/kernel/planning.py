"""What a user asks of a rollout, as the engine takes it.

`WorkloadSpec` holds the fields that a user writes: replicas, strategy, limits,
pauses, canary steps.  `rollout_of` turns them into the `Rollout` that the
engine decides on.  Operators, the plan command and the simulator all use it, so
the plan that is shown and the rollout that runs come from the same fields.

Unset is None, and an explicit 0 is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import msgspec

from holdfast.kernel.limits import Amount, Limits, resolve
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Rollout
from holdfast.kernel.strategies import CanaryStep, Strategy, steps_of


class UnsupportedStrategy(ValueError):
    """No strategy has this name."""


class RolloutStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a rollout: its strategy, its limits and its pauses."""

    strategy: str = "RollingUpdate"
    max_surge: Amount | None = None
    max_unavailable: Amount | None = None
    min_available: Amount | None = None
    pause_duration: timedelta = timedelta()
    partition: int = 0
    canary_steps: tuple[CanaryStep, ...] = ()
    approval: bool = False
    scale_down_delay: timedelta = timedelta()

    def limits(self, replicas: int, *, other_floors: Iterable[int] = ()) -> Limits:
        return resolve(
            replicas,
            max_surge=self.max_surge,
            max_unavailable=self.max_unavailable,
            min_available=self.min_available,
            other_floors=other_floors,
        )


class WorkloadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The desired replicas, and how to roll them out."""

    replicas: int
    name: str = ""
    rollout: RolloutStrategy = RolloutStrategy()


def parse_strategy(name: str) -> Strategy:
    """The strategy of that name; `ROLLING_UPDATE` is the same as `RollingUpdate`."""
    wanted = name.replace("_", "").lower()
    for strategy in Strategy:
        if strategy.value.lower() == wanted:
            return strategy
    raise UnsupportedStrategy(
        f"unsupported rollout strategy: {name!r}; write one of {', '.join(strategy.value for strategy in Strategy)}"
    )


def rollout_of(spec: WorkloadSpec, *, other_floors: Iterable[int] = ()) -> Rollout:
    """The rollout that `spec` describes; `other_floors` are floors that others demand, such as disruption budgets."""
    asked = spec.rollout
    strategy = parse_strategy(asked.strategy)
    limits = asked.limits(spec.replicas, other_floors=other_floors)
    if strategy is Strategy.RECREATE and limits.floor > 0:
        message = (
            "Recreate strategy cannot guarantee minAvailable: it stops all replicas first, "
            f"and {limits.floor:,} should stay available"
        )
        warnings = (*limits.warnings, Because(Code.FLOOR_NOT_GUARANTEED, message))
        limits = msgspec.structs.replace(limits, warnings=warnings)
    return Rollout(
        limits=limits,
        steps=steps_of(
            strategy,
            pause=asked.pause_duration,
            partition=asked.partition,
            canary_steps=asked.canary_steps,
            approval=asked.approval,
            delay=asked.scale_down_delay,
        ),
        pause=asked.pause_duration if strategy in (Strategy.ROLLING_UPDATE, Strategy.CANARY) else timedelta(),
    )
