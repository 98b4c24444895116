"""How the servers of a Tenant's pools are replaced: the engine decides, and StatefulSets are the lever.

A new template comes with a partition that withholds it from every server.  Then, as often as the engine lets a
server stop, the partition goes down by one, and the StatefulSet's controller replaces that server; the pools go
in lockstep (`kernel.groups`).  What is released is computed anew from the world in every pass, and taken back
where it was released and is no longer allowed.

A server that is of an old revision and not ready costs nothing, so it is not waited for (a StatefulSet would,
for ever): it is deleted, once the StatefulSet is known to make its successor of the new revision.  Where servers
of higher ordinals still serve, the partition cannot reach it without them; then the StatefulSet is put to
OnDelete until the successor is there.

Pure.  This module must not know what a template consists of, nor what the status says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.pods import Pod
from holdfast.client.resources import PODS
from holdfast.kernel import fleet as fleets
from holdfast.kernel import rollout as engine
from holdfast.kernel.fleet import Fleet, Replica, Side, State
from holdfast.kernel.groups import Role, decide_group
from holdfast.kernel.guard import guard
from holdfast.kernel.outcomes import Done, Outcome, soonest, until
from holdfast.kernel.reasons import Because
from holdfast.kernel.rollout import Blocked, Hold, Kind, Rollout, Stop, Verdict, Wait
from holdfast.kinds.rustfs.pools import Pool, PoolState, PoolStatus
from holdfast.kinds.rustfs.tenants import Rollout as Wish
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.pools import StatefulSet, state_of
from holdfast.operators.tenant.validate import deadline, limits
from holdfast.runtime.decisions import Delete

REVISION: Final = "controller-revision-hash"
ON_DELETE: Final[Mapping[str, Any]] = {"type": "OnDelete"}

_UNDER_WAY: Final = frozenset({PoolState.UPDATING, PoolState.ROLLOUT_FAILED})

_STATES: Final = {
    Kind.UNREADY: frozenset({State.UNREADY}),
    Kind.READY: frozenset({State.SETTLING, State.AVAILABLE}),
}


def partitioned(partition: int) -> dict[str, Any]:
    """The update strategy that reaches the ordinals from `partition` on."""
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """What is to happen to one pool, and where its rollout stands.

    strategy       what its StatefulSet is told; None leaves it as it is, template and all
    stops          servers that are stopped by us
    state          how the pool is doing
    progressed_at  when its rollout last got further; None: none is under way, or it is paused
    because        why it does what it does, if a rollout is under way
    blocked        why it cannot go on, and what to change
    """

    strategy: Mapping[str, Any] | None
    stops: tuple[Delete, ...] = ()
    state: PoolState
    progressed_at: datetime | None = None
    because: Because | None = None
    blocked: Blocked | None = None
    outcome: Outcome = field(default_factory=Done)


def roll(world: World, pools: Mapping[str, Pool], *, renewed: frozenset[str], now: datetime) -> dict[str, Rolling]:
    """What is to happen to each of the pools, which are those that the store keeps.

    renewed  pools whose template is not the one that was applied last
    """
    made = {name: pool for name, pool in pools.items() if name in world.sets}
    fleet = {name: _fleet(world, pool, now=now) for name, pool in made.items() if world.sets[name].current}
    scene = Scene(world=world, pools=pools, fleets=fleet, now=now)
    if len(made) < len(pools):
        # A new pool is made before the others are told of it.
        return {name: _kept(scene, pool, None if name in made else partitioned(0)) for name, pool in pools.items()}
    if renewed or len(fleet) < len(pools):
        # A decision about one pool counts the others in, so all must be known as they are now.
        return {name: _kept(scene, pool, _strategy(scene, pool, renewed)) for name, pool in pools.items()}
    verdicts = _verdicts(dict(_roles(scene)), now=now)
    return {name: _decided(scene, pool, verdicts.get(name)) for name, pool in pools.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The pools, and the fleets of those whose StatefulSet is reported on as it is now."""

    world: World
    pools: Mapping[str, Pool]
    fleets: Mapping[str, Fleet]
    now: datetime

    def found(self, pool: Pool) -> StatefulSet | None:
        return self.world.sets.get(pool.name)

    def pods(self, pool: Pool) -> tuple[Pod, ...]:
        """The servers of a pool; what is beyond its size is leaving, and nobody's concern."""
        pods = self.world.pods.get(pool.name, ())
        return tuple(pod for pod in pods if ordinal_of(pod) < pool.servers)

    def progress(self, pool: Pool) -> datetime | None:
        return _progress(self.world, pool, self.fleets.get(pool.name), self.now)

    @property
    def latest(self) -> datetime | None:
        """When any of the pools last got further: who waits for another is not late."""
        updating = (pool for pool in self.pools.values() if state_of(self.found(pool)) is PoolState.UPDATING)
        moments = (self.progress(pool) for pool in updating)
        return max((moment for moment in moments if moment is not None), default=None)

    def due(self, pool: Pool) -> datetime | None:
        """When the rollout of a pool has failed, if nothing gets further."""
        latest = self.latest
        return None if latest is None else latest + deadline(pool)

    def state(self, pool: Pool) -> PoolState:
        due = self.due(pool)
        return state_of(self.found(pool), overdue=due is not None and due <= self.now)


def _strategy(scene: Scene, pool: Pool, renewed: frozenset[str]) -> Mapping[str, Any]:
    """A new template is withheld from every server; others keep what they have."""
    return partitioned(pool.servers) if pool.name in renewed else _as_is(scene.world.sets[pool.name])


def _kept(scene: Scene, pool: Pool, strategy: Mapping[str, Any] | None) -> Rolling:
    """A pool that nothing is decided about."""
    state = scene.state(pool)
    under_way = state in _UNDER_WAY
    return Rolling(
        strategy=strategy,
        state=state,
        progressed_at=scene.progress(pool) if under_way else None,
        outcome=_overdue_at(scene, pool) if under_way else Done(),
    )


def _decided(scene: Scene, pool: Pool, verdict: Verdict | None) -> Rolling:
    """What becomes of a verdict; a pool without one has nothing to replace."""
    kept, found = _kept(scene, pool, None), scene.world.sets[pool.name]
    if verdict is None:
        return replace(kept, strategy=_lever(found, pool, scene.pods(pool), frozenset()))
    step = guard(verdict.decision, scene.fleets[pool.name], shape=verdict.shape)
    chosen = frozenset(_chosen(scene, pool, step))
    strategy = _lever(found, pool, scene.pods(pool), chosen)
    said = verdict.refusal or step
    return replace(
        kept,
        strategy=strategy,
        stops=tuple(_stops(pool, scene.pods(pool), chosen, step)) if strategy == _as_is(found) else (),
        because=said.because,
        blocked=said if isinstance(said, Blocked) else None,
        outcome=soonest((kept.outcome, *_waits(step, scene.now))),
    )


def _waits(step: engine.Decision, now: datetime) -> Iterator[Outcome]:
    if isinstance(step, Hold | Wait) and step.until is not None and step.until > now:
        yield until(step.until, now=now, because=step.because.message)


def _overdue_at(scene: Scene, pool: Pool) -> Outcome:
    due = scene.due(pool)
    if due is None or due <= scene.now:
        return Done()
    return until(due, now=scene.now, because=f"the progress deadline of pool {pool.name}")


# --- the pools in the engine's terms


def _replicas(pods: Iterable[Pod]) -> tuple[Replica, ...]:
    return tuple(
        Replica(
            id=pod.metadata.name,
            revision=pod.metadata.labels.get(REVISION, ""),
            created_at=times.parse(pod.metadata.creation_timestamp or ""),
            ready_since=pod.ready_since(),
            terminating=pod.deleting,
            dead=pod.finished,
            ordinal=ordinal_of(pod),
        )
        for pod in pods
    )


def ordinal_of(pod: Pod) -> int:
    """Which server of its pool a pod is."""
    digits = pod.metadata.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _fleet(world: World, pool: Pool, *, now: datetime) -> Fleet:
    status = world.sets[pool.name].status
    pods = (pod for pod in world.pods.get(pool.name, ()) if ordinal_of(pod) < pool.servers)
    stable = status.current_revision not in ("", status.update_revision)
    counted = fleets.observe(_replicas(pods), status.update_revision, now=now, stable=stable)
    return msgspec.structs.replace(counted, progressed_at=_progress(world, pool, counted, now))


def _roles(scene: Scene) -> Iterator[tuple[str, Role]]:
    """The pools that have something to replace; one that is complete, or just being made, holds nobody up."""
    wish = scene.world.tenant.spec.rollout or Wish()
    for name, pool in scene.pools.items():
        fleet, status = scene.fleets[name], scene.world.sets[name].status
        if not fleet.old.live and status.current_revision == status.update_revision:
            continue
        bounds = limits(wish, pool)
        rollout = Rollout(
            limits=bounds,
            target=status.update_revision,
            # One after the other, unless several may be down at a time.
            ordered=bounds.max_unavailable <= 1,
            count_terminating=True,
            deadline=deadline(pool),
            paused=bool(wish.paused),
        )
        yield name, Role(rollout, fleet)


def _verdicts(roles: Mapping[str, Role], *, now: datetime) -> dict[str, Verdict]:
    """The engine's word on each pool: in lockstep where servers of the old revision serve, at once elsewhere."""
    serving = {name: role for name, role in roles.items() if role.fleet.old.ready}
    others = {name: role for name, role in roles.items() if name not in serving}
    alone = {
        name: engine.decide(role.rollout, role.fleet, progress=role.progress, now=now) for name, role in others.items()
    }
    return decide_group(serving, now=now) | alone


# --- progress: what the world does not show


def _progress(world: World, pool: Pool, fleet: Fleet | None, now: datetime) -> datetime | None:
    """When the rollout of a pool last got further: it began, a server was replaced, a new one became ready."""
    wish, before, found = world.tenant.spec.rollout, world.before.get(pool.name), world.sets.get(pool.name)
    if wish is not None and wish.paused:
        return None
    if found is None or before is None or before.last_progress_time is None or _moved(found, before):
        return times.truncate(now)
    kept = times.parse(before.last_progress_time)
    return kept if fleet is None or fleet.settled_at is None else max(kept, fleet.settled_at)


def _moved(found: StatefulSet, before: PoolStatus) -> bool:
    status = found.status
    other = found.current and status.update_revision != (before.update_revision or "")
    return other or status.updated_replicas > (before.updated_replicas or 0)


# --- the lever


def _chosen(scene: Scene, pool: Pool, step: engine.Decision) -> tuple[str, ...]:
    """The servers that a decision means; those that failed for good are the StatefulSet's own matter."""
    if not isinstance(step, Stop) or step.side is not Side.OLD or step.kind not in _STATES:
        return ()
    status = scene.world.sets[pool.name].status
    return fleets.choose(
        _replicas(scene.pods(pool)),
        status.update_revision,
        side=step.side,
        states=_STATES[step.kind],
        count=step.count,
        now=scene.now,
        stable=status.current_revision,
    )


def _as_is(found: StatefulSet) -> Mapping[str, Any]:
    """The update strategy that a StatefulSet has."""
    strategy = found.spec.update_strategy
    return ON_DELETE if strategy.type == "OnDelete" else partitioned(strategy.rolling_update.partition)


def _lever(found: StatefulSet, pool: Pool, pods: tuple[Pod, ...], chosen: frozenset[str]) -> Mapping[str, Any]:
    """The update strategy that has the chosen servers replaced, those that were, and no other."""
    present = {ordinal_of(pod): pod for pod in pods if not pod.deleting and not pod.finished}
    on_delete = found.spec.update_strategy.type == "OnDelete"
    if on_delete and len(present) < pool.servers:
        # A successor is to come, and it must come of the new revision.
        return ON_DELETE
    released = pool.servers if on_delete else found.spec.update_strategy.rolling_update.partition
    partition, reached = pool.servers, set()
    for ordinal in reversed(range(pool.servers)):
        pod = present.get(ordinal)
        if pod is None and ordinal < released:
            break
        if pod is not None and not _is_new(found, pod) and pod.metadata.name not in chosen:
            break
        partition = ordinal
        reached |= {pod.metadata.name} if pod is not None else set()
    return partitioned(partition) if chosen <= reached else ON_DELETE


def _is_new(found: StatefulSet, pod: Pod) -> bool:
    return pod.metadata.labels.get(REVISION, "") == found.status.update_revision


def _stops(pool: Pool, pods: tuple[Pod, ...], chosen: frozenset[str], step: engine.Decision) -> Iterator[Delete]:
    """The chosen servers that the StatefulSet's controller would not stop by itself, or only one after the other."""
    well = sum(not pod.deleting and pod.ready for pod in pods)
    if len(chosen) == 1 and well == pool.servers:
        return
    for pod in pods:
        if pod.metadata.name in chosen:
            yield Delete(
                because=step.because.message,
                resource=PODS,
                key=Key(pod.metadata.namespace, pod.metadata.name),
                uid=pod.metadata.uid,
            )
