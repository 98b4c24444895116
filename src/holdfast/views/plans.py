"""A plan as it is shown: rows, a summary, and fixes where it is blocked.

The plan is the engine's own preview; what is added is how low the ready
replicas get in each step, and words.  Values only: no colours, no terminal, no
files.  The command line and the dashboard render the same `PlanView`.  An object
whose parts are rolled out each by itself has a `PlanSummary`, with a `PlanView` for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

import msgspec

from holdfast.kernel.fleet import Fleet, Pool
from holdfast.kernel.planning import WorkloadSpec, parse_strategy, rollout_of
from holdfast.kernel.preview import EPOCH, Action, Phase, Plan, PlanStep, preview
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Progress, Rollout
from holdfast.kernel.strategies import Old, Strategy
from holdfast.meta import durations


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One step; rows of one ``round`` are done in order, ``repeat`` times over.

    ``ready`` is the fewest ready replicas right after the step, in all its repetitions.
    """

    step: PlanStep
    ready: int

    @property
    def what(self) -> str:
        """The action in a few words."""
        step = self.step
        side = "" if step.side is None else f" {step.side}"
        match step.action:
            case Action.WAIT if step.wait is not None:
                return f"wait {durations.short(step.wait)}"
            case Action.WAIT if step.because.code is Code.APPROVAL_NEEDED:
                return "wait for approval"
            case Action.WAIT:
                return f"wait for {step.count:,}{side}"
            case Action.SWITCH:
                return f"switch to {step.count:,}{side}"
            case Action.START | Action.STOP:
                return f"{step.action.value} {step.count:,}{side}"


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that would unblock the plan: settings and their values."""

    fields: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The start of a plan: the rollout, the fleet, and the progress so far."""

    rollout: Rollout
    fleet: Fleet
    progress: Progress | None = None

    @classmethod
    def at(cls, now: datetime, rollout: Rollout, fleet: Fleet, progress: Progress | None = None) -> Beginning:
        """A rollout that runs in a cluster: a preview has a clock of its own, and no deadline passes in it."""

        def moved(moment: datetime | None) -> datetime | None:
            return None if moment is None else moment + (EPOCH - now)

        fleet = msgspec.structs.replace(
            fleet, settled_at=moved(fleet.settled_at), settles_at=moved(fleet.settles_at), progressed_at=None
        )
        if progress is not None:
            progress = msgspec.structs.replace(progress, reached_at=moved(progress.reached_at))
        return cls(msgspec.structs.replace(rollout, paused=False), fleet, progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan, with everything that is shown of it.

    floor      available replicas below which nothing is stopped; 0 where the strategy keeps none
    max_live   replicas above which nothing is started
    outcome    how it ends: done, waiting for a user, or blocked
    """

    name: str
    strategy: Strategy
    current: int
    desired: int
    scaling_only: bool
    floor: int
    min_available: int
    max_surge: int
    max_unavailable: int
    max_live: int
    lowest_ready: int
    final_replicas: int
    duration: timedelta
    rows: tuple[PlanRow, ...]
    warnings: tuple[Because, ...]
    outcome: Because
    remedy: str | None
    """What to change, when the plan is blocked."""
    fixes: tuple[Fix, ...]

    @property
    def blocked(self) -> bool:
        return self.remedy is not None

    @property
    def holds(self) -> bool:
        """Whether the plan never goes below the floor, or below where it started from."""
        return self.lowest_ready >= min(self.floor, self.current)


def plan_view(
    spec: WorkloadSpec,
    *,
    current: int,
    scaling_only: bool = False,
    paused: bool = False,
    start: Beginning | None = None,
    ordered: bool = False,
    count_terminating: bool = False,
) -> PlanView:
    """The plan from ``current`` ready replicas to ``spec``.

    ``scaling_only``: those replicas already are what ``spec`` asks for, but for their number.
    ``paused``: the rollout stands still; the plan is what follows when it is resumed.
    ``start``: what there really is, where it is more than so many ready replicas.
    ``ordered``, ``count_terminating``: without that, how the engine is asked for the rollout.
    """
    strategy = parse_strategy(spec.rollout.strategy)
    asked = msgspec.structs.replace(rollout_of(spec), ordered=ordered, count_terminating=count_terminating)
    start = start or Beginning(asked, _fleet(strategy, current, scaling_only))
    made = part_view(spec.name, start, strategy=strategy, current=current, scaling_only=scaling_only, paused=paused)
    if not made.blocked or start.rollout.limits != asked.limits:
        return made
    return replace(made, fixes=_fixes(spec, current))


def part_view(
    name: str,
    start: Beginning,
    *,
    strategy: Strategy = Strategy.ROLLING_UPDATE,
    current: int,
    scaling_only: bool = False,
    paused: bool = False,
) -> PlanView:
    """The plan of a rollout as the engine is asked for it, without fixes."""
    rollout, limits = start.rollout, start.rollout.limits
    plan = preview(rollout, start.fleet, progress=start.progress)
    keeps_floor = scaling_only or strategy is not Strategy.RECREATE
    warnings = [
        warning for warning in limits.warnings if warning.code is not Code.FLOOR_NOT_GUARANTEED or not keeps_floor
    ]
    if paused:
        warnings.append(Because(Code.PAUSED, "the rollout is paused; this is what follows when it is resumed"))
    return PlanView(
        name=name,
        strategy=strategy,
        current=current,
        desired=limits.replicas,
        scaling_only=scaling_only,
        floor=limits.floor if keeps_floor else 0,
        min_available=limits.min_available,
        max_surge=limits.surge,
        max_unavailable=limits.max_unavailable,
        max_live=_max_live(rollout),
        lowest_ready=plan.lowest_ready,
        final_replicas=plan.final.live,
        duration=plan.duration,
        rows=tuple(_rows(plan, start.fleet)),
        warnings=tuple(warnings),
        outcome=plan.end.because,
        remedy=None if plan.blocked is None else plan.blocked.remedy,
        fixes=(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """The plan of an object whose parts are rolled out each by itself.

    notes  in which order the parts are rolled out, and what happens beside
    parts  the plan of each part that changes, in that order
    """

    name: str
    notes: tuple[str, ...]
    parts: tuple[PlanView, ...]

    @property
    def blocked(self) -> bool:
        return any(part.blocked for part in self.parts)

    @property
    def alike(self) -> tuple[tuple[PlanView, tuple[str, ...]], ...]:
        """Each plan once, and the names of the parts that have it."""
        names: dict[PlanView, list[str]] = {}
        for part in self.parts:
            names.setdefault(replace(part, name=""), []).append(part.name)
        return tuple((view, tuple(found)) for view, found in names.items())


def to_json(view: PlanView) -> dict[str, Any]:
    """The plan for programs; fields are only ever added."""
    return {
        "strategy": view.strategy.value,
        "current": view.current,
        "desired": view.desired,
        "floor": view.floor,
        "minAvailable": view.min_available,
        "maxSurge": view.max_surge,
        "maxUnavailable": view.max_unavailable,
        "maxLive": view.max_live,
        "lowestReady": view.lowest_ready,
        "finalReplicas": view.final_replicas,
        "duration": durations.short(view.duration),
        "warnings": [_because(warning) for warning in view.warnings],
        "blocked": {"reason": view.outcome.code.value, "message": view.outcome.message, "remedy": view.remedy}
        if view.blocked
        else None,
        "outcome": _because(view.outcome),
        "steps": [_step(row.step) for row in view.rows],
    }


def summary_to_json(summary: PlanSummary) -> dict[str, Any]:
    """The plan of all parts for programs; fields are only ever added."""
    return {
        "name": summary.name,
        "notes": list(summary.notes),
        "blocked": summary.blocked,
        "parts": [{"name": part.name, **to_json(part)} for part in summary.parts],
    }


def _because(because: Because) -> dict[str, str]:
    return {"code": because.code.value, "message": because.message}


def _step(step: PlanStep) -> dict[str, Any]:
    return {
        "phase": step.phase.value,
        "action": step.action.value,
        "count": step.count,
        "repeat": step.repeat,
        "round": step.round,
        "side": None if step.side is None else step.side.value,
        "waitSeconds": None if step.wait is None else step.wait.total_seconds(),
        "because": _because(step.because),
    }


def _fleet(strategy: Strategy, current: int, scaling_only: bool) -> Fleet:
    """``current`` ready replicas, all of one revision."""
    pool = Pool(available=current)
    traffic = 100 * scaling_only if strategy is Strategy.BLUE_GREEN and current else None
    if scaling_only:
        return Fleet(new=pool, stable=False, traffic=traffic)
    return Fleet(old=pool, stable=current > 0, traffic=traffic)


def _max_live(rollout: Rollout) -> int:
    replicas = rollout.limits.replicas
    beside = any(step.old is Old.SERVE for step in rollout.steps)
    return 2 * replicas if beside else rollout.limits.ceiling


# --- how low it gets ---------------------------------------------------------


def _rows(plan: Plan, fleet: Fleet) -> Iterator[PlanRow]:
    """The steps with the ready replicas after each, found by simulating them."""
    for _, steps in groupby(plan.steps, key=lambda step: step.round):
        before, after = fleet, []
        for step in steps:
            fleet = _done(fleet, step)
            after.append((step, fleet.ready))
        times = after[0][0].repeat - 1
        # Every repetition moves the same numbers by the same amounts.
        drift = times * (fleet.ready - before.ready)
        yield from (PlanRow(step, ready + min(0, drift)) for step, ready in after)
        if times:
            fleet = msgspec.structs.replace(
                fleet,
                old=Pool(available=fleet.old.available + times * (fleet.old.available - before.old.available)),
                new=Pool(available=fleet.new.available + times * (fleet.new.available - before.new.available)),
            )


def _done(fleet: Fleet, step: PlanStep) -> Fleet:
    """The fleet once ``step`` was done."""
    if step.action is Action.SWITCH:
        return msgspec.structs.replace(fleet, traffic=100)
    if step.action is Action.WAIT:
        if step.phase is Phase.PAUSED:
            return fleet
        return msgspec.structs.replace(fleet, old=Pool(available=fleet.old.live), new=Pool(available=fleet.new.live))
    assert step.side is not None, "starts and stops have a side"
    pool = fleet.pool(step.side)
    if step.action is Action.START:
        pool = msgspec.structs.replace(pool, unready=pool.unready + step.count)
    elif step.because.code is Code.REPLACING_DEAD:
        pool = msgspec.structs.replace(pool, dead=pool.dead - step.count)
    elif step.because.code is Code.REMOVING_UNREADY:
        pool = msgspec.structs.replace(pool, unready=pool.unready - step.count)
    else:
        settling = min(pool.settling, step.count)
        available = pool.available - step.count + settling
        pool = msgspec.structs.replace(pool, settling=pool.settling - settling, available=available)
    return msgspec.structs.replace(fleet, **{step.side.value: pool})


# --- fixes ------------------------------------------------------------


def _fixes(spec: WorkloadSpec, current: int) -> tuple[Fix, ...]:
    """The smallest changes that unblock the plan, each tried on the engine before it is recommended."""
    surge, minimum, unavailable = ("maxSurge", 1), ("minAvailable", spec.replicas - 1), ("maxUnavailable", 1)
    lower = [fix for fix in (Fix((minimum,)), Fix((unavailable,))) if _unblocks(fix, spec, current)]
    candidates = (Fix((surge,)), *(lower or [Fix((minimum, unavailable))]))
    return tuple(fix for fix in candidates if _unblocks(fix, spec, current))


def _unblocks(fix: Fix, spec: WorkloadSpec, current: int) -> bool:
    changes: dict[str, Any] = {_ATTRIBUTES[field]: value for field, value in fix.fields}
    strategy = msgspec.structs.replace(spec.rollout, **changes)
    changed = msgspec.structs.replace(spec, rollout=strategy)
    return preview(rollout_of(changed), _fleet(parse_strategy(strategy.strategy), current, False)).blocked is None


_ATTRIBUTES: Final = {"maxSurge": "max_surge", "minAvailable": "min_available", "maxUnavailable": "max_unavailable"}
