"""What a PodClique says of itself: how many pods, of which template, whether enough, and what an update waits for.

Pods that are on their way out are counted nowhere.  What cannot be seen in the world
(which template all pods had last, when enough were scheduled) is carried over from the
status before, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.reasons import count
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.cliques_observe import World
from holdfast.operators.podcliqueset.cliques_update import Move, update
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.reports import (
    BREACHED,
    READY,
    UPDATE,
    breached_since,
    errors_of,
    lost,
    old_conditions,
    present,
    updating,
    wire,
    wire_conditions,
)
from holdfast.runtime.decisions import Notice

SCHEDULED: Final = "PodCliqueScheduled"


def report(
    world: World, move: Move, now: datetime, *, failure: Failure | None = None
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    before, active = world.before, world.active
    ready = sum(pod.ready for pod in active)
    scheduled = sum(pod.scheduled for pod in active)
    updated = sum(pod.template_hash == world.wanted for pod in active)
    old = old_conditions(before)
    verdicts = {
        SCHEDULED: _scheduled(world, scheduled),
        BREACHED: _breached(world, move, scheduled),
        READY: _ready(world, ready),
        UPDATE: updating(move),
    }
    merged = conditions.merge(old, verdicts, generation=world.object.meta.generation, now=now, unnamed="drop")
    status = {
        "observedGeneration": world.object.meta.generation,
        "replicas": len(active),
        "readyReplicas": ready,
        "updatedReplicas": updated,
        "scheduledReplicas": scheduled,
        "scheduleGatedReplicas": sum(pod.gated for pod in active),
        "hpaPodSelector": labels.text({labels.CLIQUE: world.object.meta.name}) if world.standalone else None,
        "lastErrors": errors_of(failure, before.last_errors, now),
        "lastScheduled": before.last_scheduled or (times.format(now) if scheduled >= world.minimum else None),
        "minAvailableBreachedSince": breached_since(merged),
        **_hashes(world, move, updated),
        "updateProgress": None if move.progress is None else wire(move.progress),
        "conditions": wire_conditions(merged),
    }
    return present(status), lost(before.scheduled_replicas, scheduled, wanted=world.replicas)


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass whose writes failed: what was seen, and why it went no further."""
    return report(world, update(world, now), now, failure=failure)[0]


def _hashes(world: World, move: Move, updated: int) -> dict[str, str | None]:
    """Which generation all pods have: it moves when every pod is of the wanted template and no update runs."""
    generation, before = world.mandate.generation, world.before
    whole = bool(generation) and updated == len(world.active) == world.replicas and not move.running
    return {
        "currentPodTemplateHash": world.wanted if whole else before.current_pod_template_hash,
        "currentPodCliqueSetGenerationHash": (generation if whole else before.current_pod_clique_set_generation_hash),
    }


# --- conditions


def _scheduled(world: World, scheduled: int) -> Verdict:
    message = f"{scheduled} of {count(world.replicas, 'pod')} have a node, {world.minimum} must"
    if scheduled >= world.minimum:
        return Verdict.true(Why.ENOUGH_SCHEDULED, message)
    return Verdict.false(Why.TOO_FEW_SCHEDULED, message)


def _breached(world: World, move: Move, scheduled: int) -> Verdict:
    if move.running:
        return Verdict.unknown(Why.UPDATING, f"an update is going on: {move.because.message}")
    if scheduled < world.minimum:
        return Verdict.true(Why.SCHEDULED_BELOW_MINIMUM, f"{scheduled} pods have a node, {world.minimum} must")
    failing = sum(pod.failing for pod in world.active)
    message = f"{scheduled - failing} pods are ready or starting, {failing} are failing, {world.minimum} are needed"
    if scheduled - failing < world.minimum:
        return Verdict.true(Why.TOO_FEW_READY, message)
    return Verdict.false(Why.ENOUGH_READY, message)


def _ready(world: World, ready: int) -> Verdict:
    message = f"{ready} of {count(world.replicas, 'pod')} ready, {world.minimum} needed"
    if ready >= world.minimum or not world.replicas:
        return Verdict.true(Why.ENOUGH_READY, message)
    homeless = sum(pod.unplaceable for pod in world.active if not pod.scheduled)
    if homeless:
        return Verdict.false(Why.NO_PLACE, f"{message}; the scheduler finds no node for {homeless}")
    return Verdict.false(Why.TOO_FEW_READY, message)
