"""When the controller recreates a replica of a PodCliqueSet: a part was below minAvailable for terminationDelay.

The decision is written to the status first; then the controller deletes the PodCliques of
the replica that are older than the decision.  An interrupted deletion is therefore
continued, and PodCliques that were created since are left alone.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.client.objects import Object
from holdfast.kinds.grove.sets import TerminatingReplica
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.sets.observe import SetReplica, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """
    replicas  the replicas that are being recreated
    delete    the PodCliques to delete
    begun     the replicas that are recreated from this pass on, with their breached parts
    next_at   when the next replica is due
    """

    replicas: tuple[TerminatingReplica, ...] = ()
    delete: tuple[Object, ...] = ()
    begun: tuple[tuple[int, str], ...] = ()
    next_at: datetime | None = None

    @property
    def indices(self) -> frozenset[int]:
        return frozenset(each.replica_index for each in self.replicas)


def termination(world: World, now: datetime) -> Termination:
    """The replicas that are recreated now, and when the next one is due."""
    known = {each.replica_index: each for each in world.before.terminating_replicas}
    kept, delete, begun, deadlines = [], [], [], []
    for replica in world.replicas:
        entry = known.get(replica.index)
        if entry is not None:
            older = _older(world, entry)
            delete += [each for each in older if not each.deleting]
            kept += [entry] if older else []
            continue
        deadline = _deadline(world, replica)
        if deadline is None:
            continue
        if deadline > now:
            deadlines.append(deadline)
            continue
        kept.append(TerminatingReplica(replica_index=replica.index, started_at=times.format(now)))
        begun.append((replica.index, ", ".join(part.situation for part in replica.parts if part.breached)))
    return Termination(
        replicas=tuple(kept), delete=tuple(delete), begun=tuple(begun), next_at=min(deadlines, default=None)
    )


def _deadline(world: World, replica: SetReplica) -> datetime | None:
    """When a replica was incomplete for too long; None while it is complete or being created."""
    if any(template not in replica.cliques for template in replica.hashes):
        return None
    moments = [since for part in replica.parts if (since := part.breached_since) is not None]
    return min(moments) + world.layout.termination_delay if moments else None


_ALWAYS = datetime.min.replace(tzinfo=UTC)


def _older(world: World, entry: TerminatingReplica) -> list[Object]:
    """The PodCliques of a replica that existed when its recreation was decided."""
    started = times.read(entry.started_at) or _ALWAYS
    return [
        each
        for each in world.all
        if labels.index(each.meta.labels, labels.SET_INDEX) == entry.replica_index
        and (times.read(each.meta.creation_timestamp) or started) < started
    ]
