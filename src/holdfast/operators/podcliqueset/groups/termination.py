"""When the controller recreates a replica of a scaling group: it was incomplete for longer than terminationDelay.

Only while the group has minAvailable replicas without it; otherwise the set recreates
the whole gang.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.kernel.reasons import count
from holdfast.operators.podcliqueset.groups.observe import World
from holdfast.operators.podcliqueset.part_status import GroupReplica
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.runtime.decisions import Notice


@dataclass(frozen=True, slots=True)
class Termination:
    """The replicas to recreate now, and when the next one is due."""

    replicas: tuple[GroupReplica, ...] = ()
    next_at: datetime | None = None

    @property
    def indices(self) -> frozenset[int]:
        return frozenset(replica.index for replica in self.replicas)


def termination(world: World, now: datetime) -> Termination:
    """The replicas that were incomplete for too long."""
    breached = {replica.index: since for replica in world.expected if (since := replica.breached_since) is not None}
    broken = sum(replica.breached for replica in world.expected)
    if world.replicas - broken < world.minimum:
        return Termination()
    deadlines = {index: since + world.layout.termination_delay for index, since in breached.items()}
    due = tuple(world.replica(index) for index, deadline in deadlines.items() if deadline <= now)
    return Termination(due, min((each for each in deadlines.values() if each > now), default=None))


def notice(world: World, replica: GroupReplica) -> Notice:
    """The Event of a replica that is recreated."""
    short = ", ".join(clique.situation for clique in replica.members.values() if clique.breached)
    message = (
        f"Replica {replica.index} of {count(world.replicas)} is recreated: it was incomplete for longer than "
        f"terminationDelay; below minAvailable: {short}"
    )
    return Notice(type="Warning", reason=PodCliqueSetReason.GROUP_REPLICA_DELETED.value, message=message)
