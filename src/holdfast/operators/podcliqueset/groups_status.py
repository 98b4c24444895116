"""What a scaling group says of itself: how many replicas, of which generation, whether enough.

What cannot be seen in the world (which generation all replicas had last) is carried
over from the status before, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Status, Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.reasons import count
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.groups_observe import World
from holdfast.operators.podcliqueset.groups_update import Move, update
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

TERMINATING: Final = "GangTerminationInProgress"


def report(
    world: World, move: Move, now: datetime, *, failure: Failure | None = None
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    before, expected = world.before, world.expected
    scheduled = sum(replica.scheduled for replica in expected)
    once = sum(replica.ever_scheduled for replica in expected) >= min(world.minimum, world.replicas)
    old = old_conditions(before)
    breached = _breached(world, move)
    verdicts = {BREACHED: breached, READY: _ready(world), UPDATE: updating(move)}
    if breached.status is not Status.FALSE and not once and _was_whole(world):
        message = "the replica of the set was incomplete for too long, was ended, and begins anew"
        verdicts[TERMINATING] = Verdict.true(Why.TERMINATING, message)
    merged = conditions.merge(old, verdicts, generation=world.object.meta.generation, now=now, unnamed="drop")
    status = {
        "observedGeneration": world.object.meta.generation,
        "replicas": world.replicas,
        "scheduledReplicas": scheduled,
        "availableReplicas": sum(replica.available for replica in expected),
        "updatedReplicas": sum(replica.updated for replica in expected),
        "selector": labels.text({labels.GROUP: world.object.meta.name}),
        "lastErrors": errors_of(failure, before.last_errors, now),
        "lastScheduled": (before.last_scheduled or times.format(now)) if once and world.replicas else None,
        "minAvailableBreachedSince": breached_since(merged),
        "currentPodCliqueSetGenerationHash": _generation(world, move),
        "updateProgress": _progress(world, move),
        "conditions": wire_conditions(merged),
    }
    return present(status), lost(before.scheduled_replicas, scheduled, wanted=world.replicas)


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass whose writes failed: what was seen, and why it went no further."""
    return report(world, update(world, now), now, failure=failure)[0]


def _was_whole(world: World) -> bool:
    """It once had enough replicas on nodes, as far as its status remembers."""
    before = world.before
    flagged = any(each.type == TERMINATING and each.status == "True" for each in before.conditions)
    return before.last_scheduled is not None or flagged


def _generation(world: World, move: Move) -> str | None:
    """Which generation all replicas have: it moves when all of them are there, are of it, and no update runs."""
    if world.mandate.generation and not move.running and all(replica.current for replica in world.expected):
        return world.mandate.generation
    return world.before.current_pod_clique_set_generation_hash


def _progress(world: World, move: Move) -> dict[str, Any] | None:
    if move.progress is None:
        return None
    cliques = [
        clique.has(world.hashes.get(name, ""), world.mandate.generation) and clique.ready
        for replica in world.expected
        for name, clique in replica.members.items()
    ]
    counted = msgspec.structs.replace(
        move.progress,
        updated_pod_cliques_count=sum(cliques),
        total_pod_cliques_count=world.replicas * len(world.hashes),
    )
    return wire(counted)


# --- conditions


def _breached(world: World, move: Move) -> Verdict:
    if move.running:
        return Verdict.unknown(Why.UPDATING, f"an update is going on: {move.because.message}")
    sound = sum(replica.whole and not replica.breached for replica in world.expected)
    needed = min(world.minimum, world.replicas)
    message = f"{sound} of {count(world.replicas)} complete and without a fault, {needed} needed"
    if sound < needed:
        return Verdict.true(Why.TOO_FEW_GROUP_REPLICAS, message)
    return Verdict.false(Why.ENOUGH_GROUP_REPLICAS, message)


def _ready(world: World) -> Verdict:
    available, needed = sum(replica.available for replica in world.expected), min(world.minimum, world.replicas)
    message = f"{available} of {count(world.replicas)} available, {needed} needed"
    if available >= needed:
        return Verdict.true(Why.ENOUGH_GROUP_REPLICAS, message)
    homeless = [each for replica in world.expected for each in replica.members.values() if each.homeless]
    if homeless:
        return Verdict.false(Why.NO_PLACE, f"{message}; no node for pods of {homeless[0].name}")
    return Verdict.false(Why.TOO_FEW_GROUP_REPLICAS, message)
