"""The status of a PodClique: how many pods it has, of which template, whether enough, and what its update waits for.

Pods that are being deleted are not counted.  What the world does not show (which
template all pods had last, when enough were scheduled) is carried over from the status
before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.pod_problems import PodReason
from holdfast.kernel.reasons import count
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.cliques.observe import World
from holdfast.operators.podcliqueset.cliques.update import Update, update
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.status import ANNOUNCED, BREACHED, PODS_READY, READY, UPDATE, lost, with_breach
from holdfast.operators.podcliqueset.update import floor_of
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice

SCHEDULED: Final = "PodCliqueScheduled"


def report(
    world: World, made: Update, now: datetime, *, failure: Failure | None = None
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events of what changed."""
    before, active = world.before, world.active
    ready = sum(pod.ready for pod in active)
    scheduled = sum(pod.scheduled for pod in active)
    updated = sum(pod.template_hash == world.wanted for pod in active)
    floor, about_floor = floor_of(before.floor, made, available=made.step.fleet.available)
    verdicts = {
        SCHEDULED: _scheduled(world, scheduled),
        BREACHED: _breached(world, made, scheduled),
        READY: _ready(world, ready),
        PODS_READY: _pods_ready(world, ready, failure),
        UPDATE: made.verdict,
        **about_floor,
    }
    fields = {
        "replicas": len(active),
        "readyReplicas": ready,
        "updatedReplicas": updated,
        "scheduledReplicas": scheduled,
        "scheduleGatedReplicas": sum(pod.gated for pod in active),
        "hpaPodSelector": labels.text({labels.CLIQUE: world.object.meta.name}) if world.standalone else None,
        "lastErrors": status.last_errors(world.object, failure, now),
        "lastScheduled": before.last_scheduled or (times.format(now) if scheduled >= world.minimum else None),
        **_hashes(world, made, updated),
        "updateProgress": None if made.progress is None else status.wire(made.progress),
        "floor": floor,
    }
    reported, notices = status.report(world.object, verdicts, now=now, fields=fields, announced=ANNOUNCED)
    return with_breach(reported), (*notices, *lost(before.scheduled_replicas, scheduled, wanted=world.replicas))


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass whose writes failed: what was observed, and the error."""
    return report(world, update(world, now), now, failure=failure)[0]


def _hashes(world: World, made: Update, updated: int) -> dict[str, str | None]:
    """The template and generation that all pods have: they change when every pod is updated and no update runs."""
    generation, before = world.turn.generation, world.before
    whole = bool(generation) and updated == len(world.active) == world.replicas and not made.running
    return {
        "currentPodTemplateHash": world.wanted if whole else before.current_pod_template_hash,
        "currentPodCliqueSetGenerationHash": generation if whole else before.current_pod_clique_set_generation_hash,
    }


# --- conditions


def _scheduled(world: World, scheduled: int) -> Verdict:
    message = f"{scheduled} of {count(world.replicas, 'pod')} scheduled, minAvailable is {world.minimum}"
    if scheduled >= world.minimum:
        return Verdict.true(PodCliqueSetReason.ENOUGH_SCHEDULED, message)
    return Verdict.false(PodCliqueSetReason.TOO_FEW_SCHEDULED, message)


def _breached(world: World, made: Update, scheduled: int) -> Verdict:
    if made.running:
        return Verdict.unknown(PodCliqueSetReason.UPDATING, f"an update is running: {made.because.message}")
    if scheduled < world.minimum:
        message = f"{count(scheduled, 'pod')} scheduled, minAvailable is {world.minimum}"
        return Verdict.true(PodCliqueSetReason.SCHEDULED_BELOW_MINIMUM, message)
    failing = sum(pod.failing for pod in world.active)
    message = f"{scheduled - failing} pods ready or starting, {failing} failing, minAvailable is {world.minimum}"
    if scheduled - failing < world.minimum:
        return Verdict.true(PodCliqueSetReason.TOO_FEW_READY, message)
    return Verdict.false(PodCliqueSetReason.ENOUGH_READY, message)


def _ready(world: World, ready: int) -> Verdict:
    message = f"{ready} of {count(world.replicas, 'pod')} ready, minAvailable is {world.minimum}"
    if ready >= world.minimum or not world.replicas:
        return Verdict.true(PodCliqueSetReason.ENOUGH_READY, message)
    diagnosis = world.diagnosis
    return Verdict.false(PodCliqueSetReason.TOO_FEW_READY, message if diagnosis is None else f"{message}; {diagnosis}")


def _pods_ready(world: World, ready: int, failure: Failure | None) -> Verdict:
    """Why not all pods are ready, also those beyond minAvailable."""
    if ready >= world.replicas:
        return Verdict.true(PodCliqueSetReason.ALL_PODS_READY, "all pods are ready")
    if failure is not None:
        return Verdict.false(failure.reason, failure.message)
    diagnosis = world.diagnosis
    if diagnosis is None:
        return Verdict.false(PodReason.STARTING, f"{len(world.active)} of {count(world.replicas, 'pod')} exist")
    return Verdict.false(diagnosis.reason, str(diagnosis))
