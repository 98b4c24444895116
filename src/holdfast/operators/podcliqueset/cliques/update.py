"""The update of one PodClique: its pods as replicas of the engine, and what the status keeps of it.

While it is the turn of the replica of the set, the revision of a pod is its template
hash; otherwise every pod counts as of the wanted template, so that missing pods are
started and surplus ones stopped, and none is replaced.  Pure.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.kernel.fleet import Replica
from holdfast.kernel.reasons import Because, count
from holdfast.kernel.stepping import Situation, Step, indexed, progressed, step
from holdfast.kinds.grove.cliques import PodCliqueUpdateProgress, PodsSelectedToUpdate
from holdfast.meta import times
from holdfast.operators.podcliqueset import update as parts
from holdfast.operators.podcliqueset.cliques.observe import World
from holdfast.operators.podcliqueset.cliques.pods import Pod, expendable
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason

Update = parts.Update[PodCliqueUpdateProgress]


def update(world: World, now: datetime) -> Update:
    """The next step of a PodClique, whether or not it is being updated."""
    replacing = world.standalone and world.turn.selected and (bool(world.outdated) or _is_open(world))
    situation = Situation(
        rollout=parts.rollout_of(world.limits, world.bounds, target=world.wanted, replacing=replacing),
        replicas=_replicas(world, replacing=replacing),
        now=now,
        min_ready=parts.min_ready(world.bounds),
    )
    if not replacing:
        return _resting(world, step(situation), now)
    known, before = world.before.update_progress, world.before
    began = known is None or not _is_open(world)
    progress = _begun(world, now) if known is None or began else known
    at = progressed(
        situation,
        before=None if began else times.read(progress.last_progress_at or progress.update_started_at),
        old_before=(before.replicas or 0) - (before.updated_replicas or 0),
    )
    return _replacing(world, step(situation.since(at)), progress, at=at, began=began)


def _is_open(world: World) -> bool:
    """Whether an update to the wanted template has begun and not ended."""
    known = world.before.update_progress
    return known is not None and known.update_ended_at is None and known.pod_template_hash == world.wanted


# --- pods as replicas


def _replicas(world: World, *, replacing: bool) -> tuple[Replica, ...]:
    order = {pod.name: rank for rank, pod in enumerate(_cheapest_first(world, replacing=replacing))}
    surges = world.limits.surge > 0
    replicas = [
        Replica(
            id=pod.name,
            revision=pod.template_hash if replacing else world.wanted,
            created_at=pod.created_at,
            ready_since=world.ready_since(pod),
            terminating=pod.deleting,
            # An outdated pod without a node would keep its gang from being scheduled.
            dead=pod.finished or (replacing and pod.template_hash != world.wanted and not pod.scheduled),
            leaving=surges and pod.spec.node_name in world.cordoned,
            ordinal=pod.index,
            cost=order[pod.name],
            restarts=pod.restarts,
        )
        for pod in world.pods
    ]
    if replacing or surges:
        return indexed(replicas, world.wanted, size=world.replicas)
    return tuple(msgspec.structs.replace(each, ordinal=None) for each in replicas)


def _cheapest_first(world: World, *, replacing: bool) -> list[Pod]:
    """The pods in the order in which they are stopped: outdated ones by age, surplus ones by what they are worth."""

    def is_replaced(pod: Pod) -> bool:
        return replacing and pod.template_hash != world.wanted

    outdated = sorted(filter(is_replaced, world.pods), key=lambda pod: (not pod.failing, pod.created_at, pod.name))
    others = (pod for pod in world.pods if not is_replaced(pod))
    return [*outdated, *sorted(others, key=lambda pod: expendable(pod, wanted=world.wanted))]


# --- what the status keeps


def _begun(world: World, now: datetime) -> PodCliqueUpdateProgress:
    return PodCliqueUpdateProgress(
        update_started_at=times.format(now),
        last_progress_at=times.format(now),
        pod_clique_set_generation_hash=world.turn.generation,
        pod_template_hash=world.wanted,
    )


def _ended(progress: PodCliqueUpdateProgress, at: str) -> PodCliqueUpdateProgress:
    return msgspec.structs.replace(progress, update_ended_at=at, ready_pods_selected_to_update=None)


def _replacing(world: World, made: Step, progress: PodCliqueUpdateProgress, *, at: datetime, began: bool) -> Update:
    now = made.situation.now
    if parts.is_over(made, unschedulable=sum(pod.unschedulable for pod in world.active if not pod.ready)):
        because = Because(PodCliqueSetReason.UPDATED, "all pods have the wanted template and are available")
        return Update(step=made, progress=_ended(progress, times.format(now)), because=because, began=began)
    progress = msgspec.structs.replace(
        progress,
        last_progress_at=times.format(at),
        pod_clique_set_generation_hash=world.turn.generation,
        ready_pods_selected_to_update=_selected(progress.ready_pods_selected_to_update, made),
    )
    return Update(step=made, progress=progress, because=made.because, began=began)


def _selected(before: PodsSelectedToUpdate | None, made: Step) -> PodsSelectedToUpdate | None:
    """The ready pods that the update has stopped so far, the last one as the current one."""
    earlier = () if before is None else (*before.completed, before.current)
    names = (*earlier, *(name for name in made.stops if made.stops_ready and name not in earlier))
    return PodsSelectedToUpdate(current=names[-1], completed=names[:-1]) if names else None


def _resting(world: World, made: Step, now: datetime) -> Update:
    """No pod is replaced: the last update stays in the status, and one that was interrupted has ended."""
    known, outdated = world.before.update_progress, len(world.outdated)
    if outdated:
        because = Because(PodCliqueSetReason.OUTDATED, f"{count(outdated, 'pod')} of an earlier template left")
    else:
        because = Because(PodCliqueSetReason.NOT_UPDATING, "all pods have the wanted template")
    if world.turn.on_delete and outdated and (known is None or known.pod_template_hash != world.wanted):
        known = _begun(world, now)
    if known is not None and known.update_ended_at is None:
        known = _ended(known, times.format(now))
    return Update(step=made, progress=known, because=because)
