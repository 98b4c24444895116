"""How an update goes through the replicas of a PodCliqueSet: one at a time.

First the replicas that have no pod on a node, then those that have too few, then by
index.  Which one it is stays in the status until it is done, so that whoever comes
after us goes on with it.  Inside a replica its parts are updated side by side, by
their own controllers.

Pure.  This module must not know how parts are updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from holdfast.kinds.grove.sets import RollingUpdateProgress, UpdatingReplica
from holdfast.meta import times
from holdfast.operators.podcliqueset.sets_observe import SetReplica, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    generation  the generation that is wanted from now on
    progress    the running or last update; None before the first
    started     it begins in this pass
    """

    generation: str
    progress: RollingUpdateProgress | None
    started: bool = False

    @property
    def running(self) -> bool:
        return self.progress is not None and self.progress.update_ended_at is None

    @property
    def turn(self) -> int | None:
        """The replica that is being updated."""
        if self.progress is None or self.progress.currently_updating is None:
            return None
        return self.progress.currently_updating.replica_index


def course(world: World, now: datetime, *, ending: frozenset[int] = frozenset()) -> Course:
    """Where an update stands after this pass; replicas in `ending` are just being made anew."""
    wanted, before = world.layout.generation_hash, world.before
    known, moment = before.rolling_update_progress, times.format(now)
    recorded = before.current_generation_hash
    if recorded is None:
        return Course(generation=wanted, progress=known)
    if recorded != wanted or _left_behind(world):
        ended = moment if world.layout.on_delete else None
        begun = RollingUpdateProgress(update_started_at=moment, update_ended_at=ended)
        return Course(generation=wanted, progress=_listed(world, begun), started=True)
    if known is None:
        return Course(generation=wanted, progress=None)
    if known.update_ended_at is None and world.layout.on_delete:
        known = msgspec.structs.replace(known, update_ended_at=moment, currently_updating=None)
    elif known.update_ended_at is None:
        known = _onwards(world, known, moment, ending)
    return Course(generation=wanted, progress=_listed(world, known))


def _left_behind(world: World) -> bool:
    """Parts are of an earlier generation and nobody updates them: pods were left to people, and are no longer."""
    known = world.before.rolling_update_progress
    if world.layout.on_delete or (known is not None and known.update_ended_at is None):
        return False
    wanted = world.layout.generation_hash
    recorded = (
        part.status.current_pod_clique_set_generation_hash for replica in world.replicas for part in replica.parts
    )
    return any(generation is not None and generation != wanted for generation in recorded)


def _onwards(world: World, known: RollingUpdateProgress, moment: str, ending: frozenset[int]) -> RollingUpdateProgress:
    """The same replica while it is not done, then the next; when there is none the update has ended."""
    undone = {replica.index: replica for replica in world.replicas if not replica.updated}
    turn = known.currently_updating
    if turn is not None and turn.replica_index in undone:
        return known
    candidates = [replica for index, replica in undone.items() if index not in ending]
    if candidates:
        index = min(candidates, key=urgency).index
        chosen = UpdatingReplica(replica_index=index, update_started_at=moment)
        return msgspec.structs.replace(known, currently_updating=chosen)
    if undone:
        return msgspec.structs.replace(known, currently_updating=None)
    return msgspec.structs.replace(known, update_ended_at=moment, currently_updating=None)


def urgency(replica: SetReplica) -> tuple[bool, bool, int]:
    """By what replicas are sorted that an update still has to reach."""
    return replica.placed, not replica.breached, replica.index


def _listed(world: World, progress: RollingUpdateProgress) -> RollingUpdateProgress:
    """The parts that are updated, in the order of replicas and of the template.

    What did not change has the wanted template from the start; it is listed with its replica.
    """
    turn = None if progress.currently_updating is None else progress.currently_updating.replica_index
    shown = [
        replica for replica in world.replicas if replica.current or replica.index == turn or world.layout.on_delete
    ]
    return msgspec.structs.replace(
        progress,
        updated_pod_cliques=tuple(name for replica in shown for name in replica.updated_cliques),
        updated_pod_clique_scaling_groups=tuple(name for replica in shown for name in replica.updated_groups),
    )
