"""How the replicas of one scaling group are replaced when a template has changed.

A replica is replaced as a whole: all of its PodCliques are deleted, and made again
from the new template.  Ready replicas go one at a time, the lowest index first, the
next when the one before is available again and the minimum is.  Replicas without any
pod on a node go at once; those that have, and are not available, a few at a time.

Where somebody bounded the update, the kernel's engine decides instead (`stepping`).

Pure.  This module must not know how PodCliques are made or deleted.
"""

from __future__ import annotations

from datetime import datetime
from math import ceil
from typing import Final

import msgspec

from holdfast.kernel.fleet import Replica
from holdfast.kernel.reasons import Because, count
from holdfast.kinds.grove.groups import ReplicasSelectedToUpdate, ScalingGroupUpdateProgress
from holdfast.meta import times
from holdfast.operators.podcliqueset import moves
from holdfast.operators.podcliqueset.groups_observe import World
from holdfast.operators.podcliqueset.parts import GroupReplica
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.stepping import Bounds, next_step

UNREADY_AT_A_TIME: Final = 4
"""One part in so many of the replicas, those that run and are not available, may be replaced together."""

_OLD: Final = "outdated"


Move = moves.Move[ScalingGroupUpdateProgress, GroupReplica]


def bounded(world: World) -> bool:
    """Whether the engine sees to the number of replicas as well."""
    return world.bounds is not None and _is_on(world)


def update(world: World, now: datetime) -> Move:
    """The next move of an update; one that has nothing to do where there is none."""
    if not _is_on(world):
        return _resting(world, now)
    progress = _progress(world, now)
    return _bounded(world, progress, now) if world.bounds is not None else _recreated(world, progress, now)


def _is_on(world: World) -> bool:
    if not world.mandate.selected:
        return False
    everything = (*world.expected, *world.beyond)
    return any(replica.outdated for replica in everything) or _open(world)


def _open(world: World) -> bool:
    known = world.before.update_progress
    return (
        known is not None
        and known.update_ended_at is None
        and known.pod_clique_set_generation_hash == world.mandate.generation
    )


def _resting(world: World, now: datetime) -> Move:
    known = world.before.update_progress
    outdated = sum(replica.outdated for replica in world.expected)
    if outdated:
        because = Because(Why.OUTDATED, f"{count(outdated)} with an earlier template left")
    else:
        because = Because(Why.NOT_UPDATING, "all replicas are of the wanted template")
    generation = world.mandate.generation
    if world.mandate.on_delete and outdated and (known is None or known.pod_clique_set_generation_hash != generation):
        begun = _begun(world, now)
        return Move(progress=msgspec.structs.replace(begun, update_ended_at=begun.update_started_at), because=because)
    if known is not None and known.update_ended_at is None:
        known = msgspec.structs.replace(
            known, update_ended_at=times.format(now), ready_replica_indices_selected_to_update=None
        )
    return Move(progress=known, because=because)


def _progress(world: World, now: datetime) -> ScalingGroupUpdateProgress:
    known = world.before.update_progress
    return known if known is not None and _open(world) else _begun(world, now)


def _begun(world: World, now: datetime) -> ScalingGroupUpdateProgress:
    return ScalingGroupUpdateProgress(
        update_started_at=times.format(now),
        last_progress_at=times.format(now),
        pod_clique_set_generation_hash=world.mandate.generation,
    )


# --- delete first


def _recreated(world: World, progress: ScalingGroupUpdateProgress, now: datetime) -> Move:
    outdated = tuple(replica for replica in world.expected if replica.outdated)
    unplaced = tuple(replica for replica in outdated if not replica.placed)
    if unplaced:
        because = Because(Why.REPLACING_UNPLACED, f"{count(len(unplaced), 'outdated replica')} without nodes")
        return Move(progress=progress, because=because, delete=unplaced)
    current = _selected(world, progress)
    if current is not None and current.outdated:
        return _taken_down(world, progress, current)
    unready = tuple(replica for replica in outdated if not replica.available)
    if unready:
        return _unready(world, progress, unready)
    if current is not None and not current.updated:
        message = f"replica {current.index} was taken down and is not available again"
        return Move(progress=progress, because=Because(Why.WAITING_FOR_REPLACEMENT, message))
    if outdated:
        return _next(world, progress, outdated, now)
    return _ending(world, progress, now)


def _selected(world: World, progress: ScalingGroupUpdateProgress) -> GroupReplica | None:
    """The replica that was chosen last, if there should still be one of its index."""
    chosen = progress.ready_replica_indices_selected_to_update
    return None if chosen is None or chosen.current >= world.replicas else world.replica(chosen.current)


def _taken_down(world: World, progress: ScalingGroupUpdateProgress, replica: GroupReplica) -> Move:
    """The choice was written first, so that it survives us; what was begun is finished, whatever the minimum."""
    if replica.available and _available(world) < world.minimum:
        return Move(progress=progress, because=_below_minimum(world))
    because = Because(Why.REPLACING_READY, f"replica {replica.index} is replaced")
    return Move(progress=progress, because=because, delete=(replica,))


def _unready(world: World, progress: ScalingGroupUpdateProgress, unready: tuple[GroupReplica, ...]) -> Move:
    most = max(1, ceil(world.replicas / UNREADY_AT_A_TIME))
    fresh = sum(not replica.outdated and not replica.available and replica.placed for replica in world.expected)
    room = most - fresh
    if room <= 0:
        message = f"{count(len(unready), 'outdated replica')} not available; {fresh} being replaced, at most {most} are"
        return Move(progress=progress, because=Because(Why.WAITING_FOR_REPLACEMENT, message))
    because = Because(Why.REPLACING_UNREADY, f"{min(room, len(unready))} of {len(unready)} that are not available")
    return Move(progress=progress, because=because, delete=unready[:room])


def _next(
    world: World, progress: ScalingGroupUpdateProgress, outdated: tuple[GroupReplica, ...], now: datetime
) -> Move:
    if _available(world) < world.minimum:
        return Move(progress=progress, because=_below_minimum(world))
    chosen, before = outdated[0], progress.ready_replica_indices_selected_to_update
    completed = () if before is None else (*before.completed, before.current)
    selecting = msgspec.structs.replace(
        progress,
        last_progress_at=times.format(now),
        ready_replica_indices_selected_to_update=ReplicasSelectedToUpdate(current=chosen.index, completed=completed),
    )
    message = f"replica {chosen.index} is next, {len(outdated) - 1} outdated after it"
    return Move(progress=selecting, because=Because(Why.REPLACING_READY, message))


def _available(world: World) -> int:
    return sum(replica.available for replica in world.expected)


def _below_minimum(world: World) -> Because:
    message = f"{_available(world)} of {world.minimum} replicas that must be are available; none is taken down"
    return Because(Why.WAITING_FOR_MINIMUM, message)


def _ending(world: World, progress: ScalingGroupUpdateProgress, now: datetime) -> Move:
    """Nothing is outdated: it is over once what is new is available; what has no place had none before either."""
    available = _available(world)
    late = [
        replica.index
        for replica in world.expected
        if not replica.updated and not (replica.whole and not replica.placed and available >= world.minimum)
    ]
    if late:
        message = f"replica {', '.join(map(str, late[:5]))} not available yet, all of the wanted template"
        return Move(progress=progress, because=Because(Why.WAITING_FOR_ALL, message))
    return _ended(progress, now)


def _ended(progress: ScalingGroupUpdateProgress, now: datetime) -> Move:
    ended = msgspec.structs.replace(
        progress, update_ended_at=times.format(now), ready_replica_indices_selected_to_update=None
    )
    return Move(progress=ended, because=Because(Why.UPDATED, "all replicas are of the wanted template, and available"))


# --- within bounds


def _bounded(world: World, progress: ScalingGroupUpdateProgress, now: datetime) -> Move:
    assert world.bounds is not None, "only what is bounded is asked"
    there = tuple(replica for replica in (*world.expected, *world.beyond) if replica.members)
    step = next_step(
        map(_unit, there),
        world.mandate.generation,
        bounds=Bounds(replicas=world.replicas, minimum=world.minimum, wish=world.bounds),
        outdated_before=world.replicas - (world.before.updated_replicas or 0),
        progressed=times.parse(progress.last_progress_at or progress.update_started_at),
        now=now,
    )
    if step.done:
        return _ended(progress, now)
    return Move(
        progress=msgspec.structs.replace(progress, last_progress_at=times.format(step.progressed_at)),
        because=step.because,
        create=step.start,
        delete=tuple(replica for replica in there if str(replica.index) in step.stop),
        blocked=step.blocked,
        until=step.until,
    )


def _unit(replica: GroupReplica) -> Replica:
    created = replica.created_at
    assert created is not None, "what has members was created"
    return Replica(
        id=str(replica.index),
        revision=_OLD if replica.outdated else replica.generation,
        created_at=created,
        ready_since=replica.ready_since,
        terminating=all(clique.deleting for clique in replica.members.values()),
        ordinal=replica.index,
    )
