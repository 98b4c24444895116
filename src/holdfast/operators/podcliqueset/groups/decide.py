"""What the controller does for a scaling group next: which PodCliques it creates, deletes and patches.

The engine decides how many replicas, and which (`update`); this module turns its step
into writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import count, islice
from typing import Any

from holdfast.client.resources import PODS
from holdfast.kernel.fleet import Side
from holdfast.kernel.outcomes import Outcome, soonest, until
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.podcliqueset import render
from holdfast.operators.podcliqueset.cliques.render import pod as render_pod
from holdfast.operators.podcliqueset.groups import status
from holdfast.operators.podcliqueset.groups.observe import World
from holdfast.operators.podcliqueset.groups.termination import Termination, notice, termination
from holdfast.operators.podcliqueset.groups.update import Update, is_replacing, update
from holdfast.operators.podcliqueset.part_status import GroupReplica
from holdfast.operators.podcliqueset.patching import patched
from holdfast.operators.podcliqueset.resources import CLIQUES
from holdfast.runtime.decisions import Create, Decision, Delete, Rehearsal, Write


def decide(world: World, now: datetime) -> Decision:
    ending = Termination() if is_replacing(world) else termination(world, now)
    made = update(world, ending, now)
    reported, notices = status.report(world, made, now)
    return Decision(
        rehearse=tuple(_rehearsals(world, made)),
        writes=tuple(_writes(world, made)),
        status=reported,
        notices=(*notices, *(notice(world, replica) for replica in ending.replicas)),
        outcome=_outcome(made, ending, now),
    )


def _writes(world: World, made: Update) -> Iterator[Write]:
    stopped, because = frozenset(map(int, made.stops)), made.step.decision.because.message
    for index in sorted(stopped):
        yield from _deletions(world.replica(index), because)
    for replica in world.existing:
        if replica.index not in stopped:
            yield from _creations(world, replica, f"replica {replica.index} lacks it")
    absent = (index for index in count() if index not in world.cliques)
    for index in islice(absent, made.step.starts(Side.NEW)):
        yield from _creations(world, world.replica(index), because)
    if world.turn.on_delete:
        yield from _patches(world)


def _rehearsals(world: World, made: Update) -> Iterator[Rehearsal]:
    """A pod of each PodClique with a new template, before the first available replica is stopped for it."""
    if not (made.step.replaces_first and made.stops):
        return
    index = int(made.stops[0])
    for name in world.hashes:
        clique = _rendered(world, index, name)
        # It does not exist yet, and owners are no part of a rehearsal.
        clique["metadata"]["uid"] = world.object.uid
        manifest = render_pod(clique, world.layout, index=0, image="")
        yield Rehearsal(about=f"the pod template of PodClique {name}", resource=PODS, manifest=manifest)


def _creations(world: World, replica: GroupReplica, because: str) -> Iterator[Write]:
    for name in replica.missing:
        made = _rendered(world, replica.index, name)
        made["metadata"]["ownerReferences"] = [owner_reference(world.object.head())]
        yield Create(because=because, resource=CLIQUES, manifest=made)


def _deletions(replica: GroupReplica, because: str) -> Iterator[Write]:
    """Delete a replica; breached PodCliques last, so that an interrupted deletion is continued."""
    for clique in replica.members.values():
        if not clique.deleting:
            key = Key(clique.metadata.namespace, clique.name)
            wave = 1 if clique.breached else 0
            yield Delete(because=because, resource=CLIQUES, key=key, uid=clique.metadata.uid, wave=wave)


def _patches(world: World) -> Iterator[Write]:
    """With OnDelete, PodCliques are patched to the new template; their pods get it when the user deletes them."""
    for replica in world.expected:
        for name, clique in replica.members.items():
            if not clique.deleting and name in world.hashes:
                wanted = render.without_replicas(_rendered(world, replica.index, name))
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


def _outcome(made: Update, ending: Termination, now: datetime) -> Outcome:
    if ending.next_at is None:
        return made.step.outcome()
    due = until(ending.next_at, now=now, because="a replica is incomplete; it is recreated after terminationDelay")
    return soonest((made.step.outcome(), due))
