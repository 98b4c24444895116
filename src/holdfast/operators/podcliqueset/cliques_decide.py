"""What is done for a PodClique next: pods made, pods deleted, and what is said of it.

Its size comes first, then an update of its pods.  This module turns moves into writes;
it must not know when pods are replaced (`cliques_update`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.client.resources import PODS
from holdfast.kernel.outcomes import Done, Outcome, until
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import cliques_status, pod_render
from holdfast.operators.podcliqueset.cliques_observe import World
from holdfast.operators.podcliqueset.cliques_update import Move, bounded, update
from holdfast.operators.podcliqueset.pods import Pod, expendable, free_indices
from holdfast.runtime.decisions import Create, Decision, Delete, Write

AT_A_TIME: Final = 250
"""Pods that are made or deleted in one pass, so that a large clique reports on its way."""


@dataclass(frozen=True, slots=True)
class Resize:
    """What a clique lacks of its size, and what it has beyond it."""

    create: int = 0
    delete: tuple[Pod, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


def decide(world: World, now: datetime, *, image: str) -> Decision:
    """What to write, and what to say; `image` is what an ordered start waits with."""
    move = update(world, now)
    resize = Resize() if bounded(world) else resized(world)
    status, notices = cliques_status.report(world, move, now)
    return Decision(
        writes=tuple(_writes(world, move, resize, image=image)),
        status=status,
        notices=notices,
        outcome=_outcome(move, now),
    )


def resized(world: World) -> Resize:
    """Pods that are missing, or too many: those that are missed least go, outdated ones before others."""
    active = world.active
    missing = world.replicas - len(active)
    if missing >= 0:
        return Resize(create=missing)
    order = sorted(active, key=lambda pod: expendable(pod, wanted=world.wanted))
    return Resize(delete=tuple(order[:-missing]))


def _writes(world: World, move: Move, resize: Resize, *, image: str) -> Iterator[Write]:
    finished = tuple(pod for pod in world.pods if pod.finished and not pod.deleting)
    yield from _deletions(finished, "it has ended")
    yield from _deletions(resize.delete, "there are more pods than are wanted")
    create, because = resize.create, "pods are missing"
    if not resize:
        # An update goes on when the size is right: what is being made or deleted is seen first.
        yield from _deletions(move.delete, move.because.message)
        create, because = move.create, move.because.message
    clique = world.object.wire()
    for index in free_indices(world.pods, min(create, AT_A_TIME)):
        manifest = pod_render.pod(clique, world.layout, index=index, after=world.parents, image=image)
        yield Create(because=because, resource=PODS, manifest=manifest)


def _deletions(pods: tuple[Pod, ...], because: str) -> Iterator[Write]:
    for pod in pods[:AT_A_TIME]:
        key = Key(pod.metadata.namespace, pod.name)
        yield Delete(because=because, resource=PODS, key=key, uid=pod.metadata.uid)


def _outcome(move: Move, now: datetime) -> Outcome:
    return Done() if move.until is None else until(move.until, now=now, because=move.because.message)
