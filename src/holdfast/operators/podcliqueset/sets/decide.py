"""What the controller does for a PodCliqueSet next: which objects it creates, patches and deletes.

The parts update themselves when the set has selected their replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Done, Outcome, Permanent, until
from holdfast.meta.objects import owner_reference
from holdfast.operators.podcliqueset import render
from holdfast.operators.podcliqueset.patching import patched
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS
from holdfast.operators.podcliqueset.sets import status
from holdfast.operators.podcliqueset.sets.observe import World
from holdfast.operators.podcliqueset.sets.termination import Termination, termination
from holdfast.operators.podcliqueset.sets.update import update
from holdfast.operators.podcliqueset.validate import problems
from holdfast.runtime.decisions import Create, Decision, Delete, Write


def decide(world: World, now: datetime) -> Decision:
    found = problems(world.layout)
    if found:
        raise Permanent(PodCliqueSetReason.INVALID.value, "; ".join(map(str, found)))
    ending = termination(world, now)
    made = update(world, now, recreated=ending.indices)
    reported, notices = status.report(world, made, ending, now)
    if world.before.current_generation_hash is None:
        # The parts read the wanted generation from the status, so it is there before they are.
        return Decision(status=reported)
    return Decision(
        children=tuple(Desired(each) for each in children(world)),
        writes=tuple(_writes(world, ending)),
        status=reported,
        notices=notices,
        outcome=_outcome(ending, now),
    )


def children(world: World) -> Iterator[dict[str, Any]]:
    """The objects of a set beside its parts and their gangs; those of surplus replicas are not among them."""
    layout = world.layout
    yield from render.identity(layout)
    for index in range(layout.replicas):
        yield render.service(layout, index)
        yield from render.autoscalers(layout, index)


def _writes(world: World, ending: Termination) -> Iterator[Write]:
    layout, owner = world.layout, owner_reference(world.object.head())
    for index in range(layout.replicas):
        for clique in layout.standalone:
            made = render.clique(layout, clique, index, template_hash=world.hashes[clique.name])
            yield from _part(world, CLIQUES, made, owner)
        for group in layout.groups:
            yield from _part(world, GROUPS, render.group(layout, group, index), owner)
    names = {each.meta.name for each in ending.delete}
    for each in ending.delete:
        yield _deletion(CLIQUES, each, "its replica was incomplete for longer than terminationDelay")
    for kind, parts in ((CLIQUES, world.cliques), (GROUPS, world.groups)):
        for index, found in parts.items():
            for part in found.values() if index >= layout.replicas else ():
                if not part.deleting and part.name not in names:
                    yield _deletion(kind, world.objects[kind.kind, part.name], "the set has fewer replicas")


def _part(world: World, resource: Resource, made: dict[str, Any], owner: dict[str, Any]) -> Iterator[Write]:
    have = world.objects.get((resource.kind, made["metadata"]["name"]))
    if have is None:
        made["metadata"]["ownerReferences"] = [owner]
        yield Create(because="a replica lacks it", resource=resource, manifest=made)
    elif not have.deleting:
        yield from patched(have, render.without_replicas(made))


def _deletion(resource: Resource, obj: Object, because: str) -> Delete:
    return Delete(because=because, resource=resource, key=obj.key, uid=obj.uid)


def _outcome(ending: Termination, now: datetime) -> Outcome:
    if ending.next_at is None:
        return Done()
    return until(ending.next_at, now=now, because="a replica is incomplete; it is recreated after terminationDelay")
