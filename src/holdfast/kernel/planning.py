"""Plans for a whole workload: the seed interface of Cloudless, kept and made true.

`plan_rollout`, `validate_rollout` and `max_replicas_to_stop` take and return
what that interface promised.  The plan is the engine's own preview, so it ends
at the desired size, gates on readiness instead of timers, and is blocked rather
than allowed to break its minimum.

Unset is None here, and 0 means 0; the interface this follows took one for the
other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from holdfast.kernel.fleet import Fleet, Pool
from holdfast.kernel.limits import Amount, Limits, resolve
from holdfast.kernel.preview import Action, Phase, Plan, PlanStep, preview
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Blocked, Rollout
from holdfast.kernel.strategies import CanaryStep, Strategy, steps_of


class UnsupportedStrategy(ValueError):
    """The strategy's name is none of those that exist."""


class FloorViolation(ValueError):
    """Fewer replicas are ready than the minimum asks for."""


class ImpossibleState(ValueError):
    """The counts of a state contradict each other."""


class RolloutStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """How a workload wants to be rolled out."""

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
    """What is desired: how many, and how to get there."""

    replicas: int
    name: str = ""
    rollout: RolloutStrategy = RolloutStrategy()


class RolloutState(msgspec.Struct, frozen=True, kw_only=True):
    """What there is.  `ready_replicas` None means that all of them are."""

    total_replicas: int
    ready_replicas: int | None = None
    updated_replicas: int = 0
    old_replicas: int | None = None
    workload_id: str = ""
    strategy: RolloutStrategy = RolloutStrategy()
    phase: Phase = Phase.INITIALIZING
    start_time: datetime | None = None

    @property
    def ready(self) -> int:
        return self.total_replicas if self.ready_replicas is None else self.ready_replicas


class RolloutPhaseAction(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a plan; a wait without a duration lasts until the replicas are ready, or gone."""

    phase: Phase
    action: Action
    replica_count: int
    wait_duration: timedelta | None = None
    repeat: int = 1


class RolloutPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan in the terms of the seed, and the engine's plan that it was made from."""

    strategy: Strategy
    min_available: int
    max_surge: int
    max_unavailable: int
    pause_duration: timedelta
    phases: tuple[RolloutPhaseAction, ...]
    warnings: tuple[Because, ...]
    blocked: Blocked | None
    plan: Plan


def parse_strategy(name: str) -> Strategy:
    """`RollingUpdate` and `ROLLING_UPDATE` name the same strategy."""
    wanted = name.replace("_", "").lower()
    for strategy in Strategy:
        if strategy.value.lower() == wanted:
            return strategy
    raise UnsupportedStrategy(
        f"unsupported rollout strategy: {name!r}; write one of {', '.join(strategy.value for strategy in Strategy)}"
    )


def rollout_of(spec: WorkloadSpec, *, other_floors: Iterable[int] = ()) -> Rollout:
    """What the engine is asked for when `spec` is; `other_floors` are demands from elsewhere (`limits.resolve`)."""
    wish = spec.rollout
    strategy = parse_strategy(wish.strategy)
    limits = wish.limits(spec.replicas, other_floors=other_floors)
    if strategy is Strategy.RECREATE and limits.floor > 0:
        message = (
            f"Recreate strategy cannot guarantee minAvailable: it stops all replicas first, {limits.floor:,} asked"
        )
        warnings = (*limits.warnings, Because(Code.FLOOR_NOT_GUARANTEED, message))
        limits = msgspec.structs.replace(limits, warnings=warnings)
    return Rollout(
        limits=limits,
        steps=steps_of(
            strategy,
            pause=wish.pause_duration,
            partition=wish.partition,
            canary_steps=wish.canary_steps,
            approval=wish.approval,
            delay=wish.scale_down_delay,
        ),
        pause=wish.pause_duration if strategy in (Strategy.ROLLING_UPDATE, Strategy.CANARY) else timedelta(),
    )


def plan_rollout(current: RolloutState, desired: WorkloadSpec) -> RolloutPlan:
    """How `current` becomes `desired`: every action, or why there can be none."""
    rollout, strategy = rollout_of(desired), parse_strategy(desired.rollout.strategy)
    total, updated = current.total_replicas, current.updated_replicas
    if not 0 <= current.ready <= total or not 0 <= updated <= total:
        raise ImpossibleState(
            f"ready ({current.ready}) and updated ({updated}) replicas must lie between 0 and the total ({total})"
        )
    ready_new = min(updated, current.ready)
    ready_old = current.ready - ready_new
    fleet = Fleet(
        old=Pool(available=ready_old, unready=total - updated - ready_old),
        new=Pool(available=ready_new, unready=updated - ready_new),
        stable=total > updated,
        traffic=100 * (updated == total) if strategy is Strategy.BLUE_GREEN and total else None,
    )
    plan = preview(rollout, fleet)
    return RolloutPlan(
        strategy=strategy,
        min_available=plan.limits.min_available,
        max_surge=plan.limits.surge,
        max_unavailable=plan.limits.max_unavailable,
        pause_duration=desired.rollout.pause_duration,
        phases=tuple(action for step in plan.steps for action in _actions(step, plan.limits)),
        warnings=plan.limits.warnings,
        blocked=plan.blocked,
        plan=plan,
    )


def _actions(step: PlanStep, limits: Limits) -> tuple[RolloutPhaseAction, ...]:
    """A step in the seed's terms: no switch, and growth in portions of the surge."""
    if step.action is Action.SWITCH:
        return ()
    action = RolloutPhaseAction(
        phase=step.phase,
        action=step.action,
        replica_count=step.count,
        wait_duration=step.wait,
        repeat=step.repeat,
    )
    portion = limits.surge
    if step.phase is not Phase.SCALING_UP or step.action is not Action.START or not 0 < portion < step.count:
        return (action,)
    whole, rest = divmod(step.count, portion)
    portions = [(portion, whole), (rest, 1)] if rest else [(portion, whole)]
    return tuple(
        msgspec.structs.replace(action, replica_count=size, repeat=times * step.repeat) for size, times in portions
    )


def validate_rollout(state: RolloutState) -> None:
    """Raise `FloorViolation` when fewer replicas are ready than the minimum, clamped to the total."""
    wish = state.strategy
    if wish.min_available is None:
        return
    minimum = wish.limits(state.total_replicas).min_available
    if state.ready < minimum:
        raise FloorViolation(f"rollout violates minAvailable constraint: ready={state.ready}, min={minimum}")


def max_replicas_to_stop(total: int, ready: int, min_available: int) -> int:
    """How many replicas can be stopped now; with no minimum, all of them."""
    if min_available == 0:
        return total
    return max(0, ready - min_available)
