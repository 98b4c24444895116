"""How the servers of a Tenant's pools are replaced.

This operator alone stops servers.  While a pool has servers of an old revision, its StatefulSet has the update
strategy OnDelete, so that its controller stops none: the engine names the servers to stop, the operator stops
them, and the StatefulSet's controller creates each successor from the new template.  Once all servers are of the
new revision, the strategy is RollingUpdate, under which the StatefulSet reports the rollout as complete.

A new template is written together with OnDelete, and no server is stopped before the StatefulSet's controller has
observed both.  Pools are replaced in lockstep (`kernel.groups`).  Pure.  This module must not know what a template
consists of, nor what the status says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from holdfast.client.pods import Pod
from holdfast.kernel import stepping
from holdfast.kernel.fleet import Replica
from holdfast.kernel.outcomes import Done, Outcome, soonest, until
from holdfast.kernel.rollout import Rollout
from holdfast.kernel.stepping import Situation, Step
from holdfast.kinds.rustfs.pools import Pool, PoolState
from holdfast.meta import times
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.pools import ON_DELETE, UNDER_WAY, revision_of, state_of
from holdfast.operators.tenant.validate import deadline, limits, rollout_of
from holdfast.runtime import disruption
from holdfast.runtime.decisions import Delete, Evict

STOPPED_BY_US: Final[Mapping[str, Any]] = {"type": ON_DELETE}
COMPLETE: Final[Mapping[str, Any]] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
"""The update strategies of a StatefulSet while servers are replaced, and when all are of its revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """What is done about one pool, and how far its rollout is.

    strategy       the update strategy that its StatefulSet is applied with; None: the StatefulSet is not applied
    stops          the servers to stop
    state          the state of the pool
    progressed_at  when its rollout last made progress; None: none is under way, or it is paused or blocked
    step           what the engine decided, if a rollout is under way
    """

    strategy: Mapping[str, Any] | None
    stops: tuple[Delete | Evict, ...] = ()
    state: PoolState
    progressed_at: datetime | None = None
    step: Step | None = None
    outcome: Outcome = field(default_factory=Done)


def roll(
    world: World, pools: Mapping[str, Pool], *, renewed: frozenset[str], now: datetime, blocked: bool = False
) -> dict[str, Rolling]:
    """What is done about each of the pools, which are those that do not leave the store.

    renewed  the pools whose StatefulSet has another template than the spec asks for
    blocked  whether nothing is done until a user has corrected something; then no rollout is late
    """
    found = {name: world.sets.get(name) for name in pools}
    situations = {
        name: _situation(world, pool, now=now)
        for name, pool in pools.items()
        if (each := found[name]) is not None and each.observed
    }
    held = blocked or bool(rollout_of(world.tenant).paused)
    progress = {
        name: None if held else _progressed_at(world, pool, situations.get(name), now) for name, pool in pools.items()
    }
    updating = [name for name in pools if state_of(found[name]) is PoolState.UPDATING]
    # A pool that waits for another one is not late.
    latest = max((moment for name in updating if (moment := progress[name]) is not None), default=None)
    steps: Mapping[str, Step] = {}
    if not renewed and len(situations) == len(pools):
        # The pools are decided about together, so the StatefulSet of each must be observed.
        steps = _steps({name: each.since(latest) for name, each in situations.items()}, now=now)
    growing = None in found.values()

    def rolling(name: str, pool: Pool) -> Rolling:
        due = None if latest is None else latest + deadline(pool)
        state = state_of(found[name], overdue=due is not None and due <= now)
        waits = [steps[name].outcome()] if name in steps else []
        if due is not None and due > now and state in UNDER_WAY:
            waits.append(until(due, now=now, because=f"the progress deadline of pool {name}"))
        return Rolling(
            strategy=_strategy(world, pool, growing=growing, renewed=name in renewed),
            stops=tuple(_stops(world, pool, steps[name])) if name in steps else (),
            state=state,
            progressed_at=progress[name] if state in UNDER_WAY else None,
            step=steps.get(name),
            outcome=soonest(waits),
        )

    return {name: rolling(name, pool) for name, pool in pools.items()}


def _strategy(world: World, pool: Pool, *, growing: bool, renewed: bool) -> Mapping[str, Any] | None:
    found = world.sets.get(pool.name)
    if found is None:
        return COMPLETE
    if growing or not found.observed:
        # A new pool is created before the templates of the others name it.
        return None
    outdated = any(revision_of(pod) != found.status.update_revision for pod in servers(world, pool))
    return STOPPED_BY_US if renewed or outdated else COMPLETE


def _stops(world: World, pool: Pool, step: Step) -> Iterator[Delete | Evict]:
    """Stop the servers that the engine names; evict ready ones while a node of the pool is being drained."""
    if world.sets[pool.name].spec.update_strategy.type != ON_DELETE:
        return  # Its controller could create a successor from the old template.
    pods = {pod.metadata.name: pod for pod in servers(world, pool)}
    drained = any(pod.spec.node_name in world.cordoned for pod in pods.values())
    for name in step.stops:
        yield disruption.stop(pods[name].metadata, step.decision.because.message, evict=step.stops_ready and drained)


# --- the pools in the engine's terms


def servers(world: World, pool: Pool) -> tuple[Pod, ...]:
    """The pods of a pool; the StatefulSet's controller deletes those beyond its size."""
    return tuple(pod for pod in world.pods.get(pool.name, ()) if ordinal_of(pod) < pool.servers)


def ordinal_of(pod: Pod) -> int:
    """The ordinal of a pod in its StatefulSet."""
    digits = pod.metadata.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _situation(world: World, pool: Pool, *, now: datetime) -> Situation:
    asked, status = rollout_of(world.tenant), world.sets[pool.name].status
    bounds = limits(asked, pool)
    rollout = Rollout(
        limits=bounds,
        target=status.update_revision,
        # One after the other, unless several may be down at a time.
        ordered=bounds.max_unavailable <= 1,
        count_terminating=True,
        deadline=deadline(pool),
        paused=bool(asked.paused),
    )
    replicas = tuple(
        Replica(
            id=pod.metadata.name,
            revision=revision_of(pod),
            created_at=times.parse(pod.metadata.creation_timestamp or ""),
            ready_since=pod.ready_since(),
            terminating=pod.deleting,
            dead=pod.finished,
            ordinal=ordinal_of(pod),
        )
        for pod in servers(world, pool)
    )
    stable = status.current_revision if status.current_revision not in ("", status.update_revision) else None
    return Situation(rollout=rollout, replicas=replicas, now=now, stable=stable)


def _steps(situations: Mapping[str, Situation], *, now: datetime) -> dict[str, Step]:
    """The steps of the pools whose rollout is under way: in lockstep where old servers are ready, at once elsewhere."""
    moving = {name: each for name, each in situations.items() if each.fleet.old.live or each.stable is not None}
    serving = {name: each for name, each in moving.items() if each.fleet.old.ready}
    alone = {name: stepping.step(each) for name, each in moving.items() if name not in serving}
    return stepping.step_together(serving, now=now) | alone


def _progressed_at(world: World, pool: Pool, situation: Situation | None, now: datetime) -> datetime:
    """When the rollout of a pool last made progress: it began, a server was replaced, a new one became ready."""
    before = world.before.get(pool.name)
    kept = None if before is None else times.read(before.last_progress_time)
    if situation is None:
        return kept or times.truncate(now)
    status = world.sets[pool.name].status
    moved = before is None or (
        status.update_revision != before.update_revision or status.updated_replicas > (before.updated_replicas or 0)
    )
    return times.truncate(stepping.progressed(situation, before=None if moved else kept, old_before=None))
