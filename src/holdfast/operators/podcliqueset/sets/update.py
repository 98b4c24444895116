"""The update of a PodCliqueSet: one replica at a time.

Replicas without a scheduled pod come first, then those below minAvailable, then the
others by index.  The selected replica stays in the status until it is updated, so that a
restarted controller continues with it.  The parts of the replica are updated at the same
time, by their own controllers.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from holdfast.kinds.grove.sets import RollingUpdateProgress, UpdatingReplica
from holdfast.meta import times
from holdfast.operators.podcliqueset.sets.observe import SetReplica, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """
    generation  the generation hash that is wanted from this pass on
    progress    the running or last update; None before the first one
    started     the update begins in this pass
    """

    generation: str
    progress: RollingUpdateProgress | None
    started: bool = False

    @property
    def running(self) -> bool:
        return self.progress is not None and self.progress.update_ended_at is None

    @property
    def replica(self) -> int | None:
        """The index of the replica that is being updated."""
        return _selected(self.progress)


def _selected(progress: RollingUpdateProgress | None) -> int | None:
    current = None if progress is None else progress.currently_updating
    return None if current is None else current.replica_index


def update(world: World, now: datetime, *, recreated: frozenset[int] = frozenset()) -> Update:
    """The update after this pass; replicas in `recreated` are being recreated."""
    wanted, before = world.layout.generation_hash, world.before
    known, moment = before.rolling_update_progress, times.format(now)
    recorded = before.current_generation_hash
    if recorded is None:
        return Update(generation=wanted, progress=known)
    if recorded != wanted or _is_left_behind(world):
        ended = moment if world.layout.on_delete else None
        begun = RollingUpdateProgress(update_started_at=moment, update_ended_at=ended)
        return Update(generation=wanted, progress=_with_names(world, begun), started=True)
    if known is None:
        return Update(generation=wanted, progress=None)
    if known.update_ended_at is None and world.layout.on_delete:
        known = msgspec.structs.replace(known, update_ended_at=moment, currently_updating=None)
    elif known.update_ended_at is None:
        known = _continued(world, known, moment, recreated)
    return Update(generation=wanted, progress=_with_names(world, known))


def _is_left_behind(world: World) -> bool:
    """Whether parts have an earlier generation and no update runs: the strategy was OnDelete before."""
    known = world.before.rolling_update_progress
    if world.layout.on_delete or (known is not None and known.update_ended_at is None):
        return False
    wanted = world.layout.generation_hash
    recorded = (
        part.status.current_pod_clique_set_generation_hash for replica in world.replicas for part in replica.parts
    )
    return any(generation is not None and generation != wanted for generation in recorded)


def _continued(
    world: World, known: RollingUpdateProgress, moment: str, recreated: frozenset[int]
) -> RollingUpdateProgress:
    """The same replica until it is updated, then the next one; the update ends when none is left."""
    undone = {replica.index: replica for replica in world.replicas if not replica.updated}
    if _selected(known) in undone:
        return known
    candidates = [replica for index, replica in undone.items() if index not in recreated]
    if candidates:
        chosen = UpdatingReplica(replica_index=min(candidates, key=urgency).index, update_started_at=moment)
        return msgspec.structs.replace(known, currently_updating=chosen)
    ended = None if undone else moment
    return msgspec.structs.replace(known, update_ended_at=ended, currently_updating=None)


def urgency(replica: SetReplica) -> tuple[bool, bool, int]:
    """The order in which replicas are updated."""
    return replica.scheduled_in_part, not replica.breached, replica.index


def _with_names(world: World, progress: RollingUpdateProgress) -> RollingUpdateProgress:
    """The progress with the names of updated parts, in the order of replicas and of the template.

    A part whose template did not change is updated from the start; it is listed with its replica.
    """
    shown = [
        replica
        for replica in world.replicas
        if replica.current or replica.index == _selected(progress) or world.layout.on_delete
    ]
    return msgspec.structs.replace(
        progress,
        updated_pod_cliques=tuple(name for replica in shown for name in replica.updated_cliques),
        updated_pod_clique_scaling_groups=tuple(name for replica in shown for name in replica.updated_groups),
    )
