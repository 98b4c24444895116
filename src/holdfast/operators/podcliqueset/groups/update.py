"""The update of one scaling group: its replicas as replicas of the engine, and what the status keeps of it.

A replica is replaced as a whole: the controller deletes all of its PodCliques and creates
them from the new template.  While it is the turn of the replica of the set, replicas with
an earlier template are outdated; otherwise every replica counts as of the wanted one.
Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from holdfast.kernel.fleet import Replica
from holdfast.kernel.reasons import Because, count
from holdfast.kernel.stepping import Situation, Step, indexed, progressed, step
from holdfast.kinds.grove.groups import ReplicasSelectedToUpdate, ScalingGroupUpdateProgress
from holdfast.meta import times
from holdfast.operators.podcliqueset import update as parts
from holdfast.operators.podcliqueset.groups.observe import World
from holdfast.operators.podcliqueset.groups.termination import Termination
from holdfast.operators.podcliqueset.part_status import GroupReplica
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason

Update = parts.Update[ScalingGroupUpdateProgress]

_OUTDATED: Final = "outdated"
"""The revision of every replica with an earlier template."""


def is_replacing(world: World) -> bool:
    """Whether replicas with an earlier template are replaced now."""
    return world.turn.selected and (any(replica.outdated for replica in world.existing) or _is_open(world))


def update(world: World, ending: Termination, now: datetime) -> Update:
    """The next step of a scaling group, whether or not it is being updated; replicas in `ending` are recreated."""
    replacing = is_replacing(world)
    rollout = parts.rollout_of(world.limits, world.bounds, target=world.turn.generation, replacing=replacing)
    situation = Situation(
        # An index is taken until all PodCliques of its replica are gone.
        rollout=msgspec.structs.replace(rollout, count_terminating=True),
        replicas=indexed(
            (_replica(world, each, ending, replacing=replacing) for each in world.existing),
            world.turn.generation,
            size=world.replicas,
        ),
        now=now,
        min_ready=parts.min_ready(world.bounds),
    )
    if not replacing:
        return _resting(world, step(situation), now)
    known, began = world.before.update_progress, not _is_open(world)
    progress = _begun(world, now) if known is None or began else known
    before = None if began else times.read(progress.last_progress_at or progress.update_started_at)
    at = progressed(situation, before=before, old_before=None)
    return _replacing(world, step(situation.since(at)), progress, at=at, began=began)


def _is_open(world: World) -> bool:
    """Whether an update to the wanted generation has begun and not ended."""
    known, generation = world.before.update_progress, world.turn.generation
    return known is not None and known.update_ended_at is None and known.pod_clique_set_generation_hash == generation


def _replica(world: World, replica: GroupReplica, ending: Termination, *, replacing: bool) -> Replica:
    outdated = replacing and replica.outdated
    return Replica(
        id=str(replica.index),
        revision=_OUTDATED if outdated else world.turn.generation,
        created_at=replica.created_at,
        ready_since=world.sighted.get(world.identity(replica)) or replica.ready_since,
        terminating=all(clique.deleting for clique in replica.members.values()),
        # An outdated replica without nodes would keep its gang from being scheduled.
        dead=replica.index in ending.indices or (outdated and not replica.scheduled_in_part),
        ordinal=replica.index,
        # Surplus replicas from the highest index down, then the others from the lowest index up.
        cost=replica.index if replica.index < world.replicas else -replica.index,
    )


# --- what the status keeps


def _begun(world: World, now: datetime) -> ScalingGroupUpdateProgress:
    return ScalingGroupUpdateProgress(
        update_started_at=times.format(now),
        last_progress_at=times.format(now),
        pod_clique_set_generation_hash=world.turn.generation,
    )


def _ended(progress: ScalingGroupUpdateProgress, at: str) -> ScalingGroupUpdateProgress:
    return msgspec.structs.replace(progress, update_ended_at=at, ready_replica_indices_selected_to_update=None)


def _replacing(world: World, made: Step, progress: ScalingGroupUpdateProgress, *, at: datetime, began: bool) -> Update:
    stuck = sum(replica.whole and not replica.scheduled_in_part for replica in world.expected)
    waiting = [replica for replica in world.expected if replica.available and not replica.current]
    if parts.is_over(made, unschedulable=stuck) and not waiting:
        because = Because(PodCliqueSetReason.UPDATED, "all replicas have the wanted template and are available")
        ended = _ended(progress, times.format(made.situation.now))
        return Update(step=made, progress=ended, because=because, began=began)
    progress = msgspec.structs.replace(
        progress,
        last_progress_at=times.format(at),
        ready_replica_indices_selected_to_update=_selected(progress.ready_replica_indices_selected_to_update, made),
    )
    return Update(step=made, progress=progress, because=made.because, began=began)


def _selected(before: ReplicasSelectedToUpdate | None, made: Step) -> ReplicasSelectedToUpdate | None:
    """The available replicas that the update has stopped so far, the last one as the current one."""
    earlier = () if before is None else (*before.completed, before.current)
    indices = (*earlier, *(index for index in map(int, made.stops) if made.stops_ready and index not in earlier))
    return ReplicasSelectedToUpdate(current=indices[-1], completed=indices[:-1]) if indices else None


def _resting(world: World, made: Step, now: datetime) -> Update:
    """No replica is replaced: the last update stays in the status, and one that was interrupted has ended."""
    known, generation = world.before.update_progress, world.turn.generation
    outdated = sum(replica.outdated for replica in world.expected)
    if outdated:
        because = Because(PodCliqueSetReason.OUTDATED, f"{count(outdated)} with pods of an earlier template left")
    else:
        because = Because(PodCliqueSetReason.NOT_UPDATING, "all replicas have the wanted template")
    if world.turn.on_delete and outdated and (known is None or known.pod_clique_set_generation_hash != generation):
        known = _begun(world, now)
    if known is not None and known.update_ended_at is None:
        known = _ended(known, times.format(now))
    return Update(step=made, progress=known, because=because)
