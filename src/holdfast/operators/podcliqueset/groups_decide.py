"""What is done for a scaling group next: PodCliques made, deleted and kept, and what is said of it.

This module turns moves into writes; it must not know when replicas are replaced
(`groups_update`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.kernel.outcomes import Outcome, soonest, until
from holdfast.kernel.reasons import count
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.podcliqueset import groups_status, render
from holdfast.operators.podcliqueset.groups_observe import World
from holdfast.operators.podcliqueset.groups_update import Move, bounded, update
from holdfast.operators.podcliqueset.keeping import patched
from holdfast.operators.podcliqueset.parts import Clique, GroupReplica
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.resources import CLIQUES
from holdfast.runtime.decisions import Create, Decision, Delete, Notice, Write


@dataclass(frozen=True, slots=True)
class Termination:
    """Replicas that were incomplete for too long and go, and when the next one will have been."""

    replicas: tuple[GroupReplica, ...] = ()
    next_at: datetime | None = None


def decide(world: World, now: datetime) -> Decision:
    move = update(world, now)
    ending = termination(world, move, now)
    status, notices = groups_status.report(world, move, now)
    told = tuple(_told(world, replica) for replica in ending.replicas)
    return Decision(
        writes=tuple(_writes(world, move, ending)),
        status=status,
        notices=(*notices, *told),
        outcome=_outcome(move, ending, now),
    )


def termination(world: World, move: Move, now: datetime) -> Termination:
    """Replicas that go alone: the group has enough without them.  Otherwise the whole gang is the set's to end."""
    if move.running:
        return Termination()
    breached = {replica.index: since for replica in world.expected if (since := replica.breached_since) is not None}
    broken = sum(replica.breached for replica in world.expected)
    if world.replicas - broken < world.minimum:
        return Termination()
    deadlines = {index: since + world.layout.termination_delay for index, since in breached.items()}
    due = tuple(world.replica(index) for index, deadline in deadlines.items() if deadline <= now)
    return Termination(due, min((each for each in deadlines.values() if each > now), default=None))


def _writes(world: World, move: Move, ending: Termination) -> Iterator[Write]:
    going = {replica.index for replica in (*ending.replicas, *move.delete)}
    by_engine = bounded(world)
    if not by_engine:
        for replica in world.beyond:
            yield from _deletions(replica, "the group has fewer replicas")
    for replica in move.delete:
        yield from _deletions(replica, move.because.message)
    for replica in ending.replicas:
        yield from _deletions(replica, "it was incomplete for longer than terminationDelay")
    for replica in (*world.expected, *(world.beyond if by_engine else ())):
        # The engine starts replicas; what it has started is completed here.
        if replica.index not in going and (replica.members or not by_engine):
            yield from _creations(world, replica, replica.missing)
    absent = (replica for index in range(world.replicas + move.create) if not (replica := world.replica(index)).members)
    for replica, _ in zip(absent, range(move.create), strict=False):
        yield from _creations(world, replica, replica.missing)
    if world.mandate.on_delete:
        yield from _kept(world)


def _creations(world: World, replica: GroupReplica, cliques: Iterable[str]) -> Iterator[Write]:
    for name in cliques:
        made = _rendered(world, replica.index, name)
        made["metadata"]["ownerReferences"] = [owner_reference(world.object.wire())]
        yield Create(because=f"replica {replica.index} lacks it", resource=CLIQUES, manifest=made)


def _deletions(replica: GroupReplica, because: str) -> Iterator[Write]:
    """Delete a replica; what shows that it must go goes last, so that a deletion that is cut off is taken up again."""
    for clique in replica.members.values():
        if not clique.deleting:
            yield _deletion(clique, because, wave=1 if clique.breached else 0)


def _deletion(clique: Clique, because: str, *, wave: int) -> Delete:
    key = Key(clique.metadata.namespace, clique.name)
    return Delete(because=because, resource=CLIQUES, key=key, uid=clique.metadata.uid, wave=wave)


def _kept(world: World) -> Iterator[Write]:
    """With OnDelete, PodCliques take a new template in place, and their pods when somebody deletes them."""
    for replica in world.expected:
        for name, clique in replica.members.items():
            if not clique.deleting and name in world.hashes:
                wanted = render.kept(_rendered(world, replica.index, name))
                yield from patched(world.objects[clique.name], wanted)


def _rendered(world: World, index: int, clique: str) -> dict[str, Any]:
    return render.member(
        world.layout,
        world.template,
        world.layout.by_name[clique],
        index=world.index,
        group_index=index,
        template_hash=world.hashes[clique],
    )


def _told(world: World, replica: GroupReplica) -> Notice:
    lacking = ", ".join(clique.situation for clique in replica.members.values() if clique.breached)
    message = f"Replica {replica.index} of {count(world.replicas)} is made anew: too few pods of {lacking}"
    return Notice(type="Warning", reason=Why.GROUP_REPLICA_DELETED.value, message=message)


def _outcome(move: Move, ending: Termination, now: datetime) -> Outcome:
    waits = []
    if move.until is not None:
        waits.append(until(move.until, now=now, because=move.because.message))
    if ending.next_at is not None:
        waits.append(until(ending.next_at, now=now, because="a replica is incomplete and may stay so until then"))
    return soonest(waits)
