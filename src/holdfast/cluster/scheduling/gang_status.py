"""The status of a PodGang: whether it is scheduled and ready, and its phase.

The operator that creates the gang writes the condition ``Initialized``; a scheduler
writes the others, which is done here, from the pods as they are.  This module must not know how
pods are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import PODS
from holdfast.cluster.scheduling.gangs import LABEL, POD_GANGS, Gang
from holdfast.kernel import conditions
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.reasons import Reason
from holdfast.kinds.grove_scheduler import PodGangPhase
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import NOTHING, Decision
from holdfast.runtime.status import prior_conditions, stored_status


class PodGangReason(Reason):
    """Why a PodGang is scheduled or ready, or not."""

    ALL_PLACED = "AllPlaced", "Every group has as many pods on nodes as it needs."
    NOT_PLACED = "NotPlaced", "Groups that the message names have fewer pods on nodes than they need."
    ALL_READY = "AllReady", "Every group has as many ready pods as it needs."
    NOT_READY = "NotReady", "Groups that the message names have fewer ready pods than they need."


@dataclass(frozen=True, slots=True)
class World:
    """A gang, and those of its pods that there are."""

    object: Object
    pods: dict[Key, Pod]


def observe(view: View, key: Key) -> World | None:
    obj = view.get(POD_GANGS, key)
    if obj is None:
        return None
    found = ((member, view.get(PODS, member)) for member in Gang.of(obj).whole.pods)
    return World(obj, {member: Pod.of(pod) for member, pod in found if pod is not None})


def decide(world: World, now: datetime) -> Decision:
    if world.object.deleting:
        return NOTHING
    before = stored_status(world.object)
    unplaced = _lacking(world, lambda pod: bool(pod.spec.node_name))
    unready = _lacking(world, lambda pod: pod.ready)
    verdicts = {
        "Scheduled": _verdict(unplaced, PodGangReason.ALL_PLACED, PodGangReason.NOT_PLACED, what="on nodes"),
        "Ready": _verdict(unready, PodGangReason.ALL_READY, PodGangReason.NOT_READY, what="ready"),
    }
    merged = conditions.merge(
        prior_conditions(world.object),
        verdicts,
        generation=world.object.meta.generation,
        now=now,
        unnamed="keep",
    )
    running = not _lacking(world, lambda pod: pod.status.phase == "Running")
    phase = PodGangPhase.PENDING if unplaced else PodGangPhase.RUNNING if running else PodGangPhase.STARTING
    return Decision(status={**before, "phase": phase.value, "conditions": [each.to_wire() for each in merged]})


def _lacking(world: World, counts: Callable[[Pod], bool]) -> list[str]:
    """The groups with fewer such pods than they need: ``workers (1 of 3)``."""
    lacking = []
    for group in Gang.of(world.object).whole.groups:
        pods = (world.pods[key] for key in group.members if key in world.pods)
        number = sum(pod.active and counts(pod) for pod in pods)
        if number < group.minimum:
            lacking.append(f"{group.name} ({number} of {group.minimum})")
    return lacking


def _verdict(lacking: list[str], good: PodGangReason, bad: PodGangReason, *, what: str) -> Verdict:
    if not lacking:
        return Verdict.true(good, f"Every group has the pods {what} that it needs.")
    return Verdict.false(bad, f"Too few pods are {what}: {', '.join(lacking)}.")


def _gang_of(pod: Object, view: View) -> Iterable[Key]:
    name = pod.meta.labels.get(LABEL)
    return (Key(pod.meta.namespace, name),) if name else ()


CONTROLLER: Final = Controller(
    name="podgang-status",
    resource=POD_GANGS,
    watches=(Watch(resource=PODS, keys=_gang_of),),
    observe=observe,
    decide=decide,
)
"""Runs where the definition of PodGangs is installed."""
