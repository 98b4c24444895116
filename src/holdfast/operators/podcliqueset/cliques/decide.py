"""What the controller does for a PodClique next: which pods it starts and stops, and its disruption budget.

The engine decides how many pods, and which (`update`); this module turns its step into
writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.client.resources import PODS
from holdfast.kernel.fleet import Side
from holdfast.kernel.stepping import Step
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.cliques import render, status
from holdfast.operators.podcliqueset.cliques.observe import World
from holdfast.operators.podcliqueset.cliques.pods import free_indices
from holdfast.operators.podcliqueset.cliques.update import Update, update
from holdfast.runtime import disruption
from holdfast.runtime.decisions import Create, Decision, Rehearsal, Write


def decide(world: World, now: datetime, *, image: str) -> Decision:
    """What to write; `image` is the image of the init container that waits for other PodCliques."""
    made = update(world, now)
    reported, notices = status.report(world, made, now)
    return Decision(
        rehearse=tuple(_rehearsals(world, made, image=image)),
        writes=(*world.claims, *_budget(world), *_stops(world, made), *_starts(world, made.step, image=image)),
        status=reported,
        notices=notices,
        outcome=made.step.outcome(),
    )


def _budget(world: World) -> Iterator[Write]:
    name = world.object.meta.name
    yield from disruption.budget_writes(
        world.object,
        world.budget,
        name=name,
        selector={labels.CLIQUE: name},
        limits=world.limits,
        wanted=world.layout.manages_budgets and not world.selected,
    )


def _stops(world: World, made: Update) -> Iterator[Write]:
    # While a node is drained, the rollout and the drain share one budget.
    evict = made.step.stops_ready and bool(world.cordoned)
    pods = {pod.name: pod for pod in world.pods}
    for name in made.stops:
        yield disruption.stop(pods[name].metadata, made.step.decision.because.message, evict=evict)


def _rehearsals(world: World, made: Update, *, image: str) -> Iterator[Rehearsal]:
    """A pod of the new template, before the first ready pod is stopped for it."""
    if made.step.replaces_first and made.stops:
        clique = world.object.wire()
        manifest = render.pod(clique, world.layout, index=0, after=world.parents, image=image)
        yield Rehearsal(
            about=f"the pod template of PodClique {world.object.meta.name}", resource=PODS, manifest=manifest
        )


def _starts(world: World, made: Step, *, image: str) -> Iterator[Write]:
    number = made.starts(Side.NEW)
    clique = world.object.wire() if number else {}
    for index in free_indices(world.pods, number):
        manifest = render.pod(clique, world.layout, index=index, after=world.parents, image=image)
        yield Create(because=made.decision.because.message, resource=PODS, manifest=manifest)
