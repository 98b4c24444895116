"""The status of a scaling group: how many replicas it has, of which generation, and whether enough.

What the world does not show (which generation all replicas had last) is carried over
from the status before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.conditions import Status, Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.pod_problems import PodReason
from holdfast.kernel.reasons import count
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.groups.observe import World
from holdfast.operators.podcliqueset.groups.termination import Termination
from holdfast.operators.podcliqueset.groups.update import Update, update
from holdfast.operators.podcliqueset.part_status import gravest, pods_ready
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.status import ANNOUNCED, BREACHED, PODS_READY, READY, UPDATE, lost, with_breach
from holdfast.operators.podcliqueset.update import floor_of
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice

TERMINATING: Final = "GangTerminationInProgress"


def report(
    world: World, made: Update, now: datetime, *, failure: Failure | None = None
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events of what changed."""
    before, expected = world.before, world.expected
    scheduled = sum(replica.scheduled for replica in expected)
    once = sum(replica.ever_scheduled for replica in expected) >= world.minimum
    breached = _breached(world, made)
    verdicts = {BREACHED: breached, READY: _ready(world), UPDATE: made.verdict, PODS_READY: _pods_ready(world)}
    recreated = breached.status is not Status.FALSE and not once and _was_scheduled(world)
    if recreated:
        message = "the replica of the set was incomplete for longer than terminationDelay, and is being recreated"
        verdicts[TERMINATING] = Verdict.true(PodCliqueSetReason.TERMINATING, message)
    floor, about_floor = floor_of(before.floor, made, available=world.available, again=recreated)
    fields = {
        "replicas": world.replicas,
        "scheduledReplicas": scheduled,
        "availableReplicas": world.available,
        "updatedReplicas": sum(replica.current for replica in expected),
        "selector": labels.text({labels.GROUP: world.object.meta.name}),
        "lastErrors": status.last_errors(world.object, failure, now),
        "lastScheduled": (before.last_scheduled or times.format(now)) if once and world.replicas else None,
        "currentPodCliqueSetGenerationHash": _generation(world, made),
        "updateProgress": _progress(world, made),
        "floor": floor,
    }
    verdicts |= about_floor
    reported, notices = status.report(world.object, verdicts, now=now, fields=fields, announced=ANNOUNCED)
    return with_breach(reported), (*notices, *lost(before.scheduled_replicas, scheduled, wanted=world.replicas))


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass whose writes failed: what was observed, and the error."""
    return report(world, update(world, Termination(), now), now, failure=failure)[0]


def _was_scheduled(world: World) -> bool:
    """Whether enough replicas were scheduled once, as its status says."""
    before = world.before
    recreated = any(each.type == TERMINATING and each.status == "True" for each in before.conditions)
    return before.last_scheduled is not None or recreated


def _generation(world: World, made: Update) -> str | None:
    """The generation that all replicas have: it changes when every replica is updated and no update runs."""
    if world.turn.generation and not made.running and all(replica.current for replica in world.expected):
        return world.turn.generation
    return world.before.current_pod_clique_set_generation_hash


def _progress(world: World, made: Update) -> dict[str, Any] | None:
    if made.progress is None:
        return None
    cliques = [
        clique.has(world.hashes.get(name, ""), world.turn.generation) and clique.available
        for replica in world.expected
        for name, clique in replica.members.items()
    ]
    counted = msgspec.structs.replace(
        made.progress,
        updated_pod_cliques_count=sum(cliques),
        total_pod_cliques_count=world.replicas * len(world.hashes),
    )
    return status.wire(counted)


# --- conditions


def _breached(world: World, made: Update) -> Verdict:
    if made.running:
        return Verdict.unknown(PodCliqueSetReason.UPDATING, f"an update is running: {made.because.message}")
    sound = sum(replica.whole and not replica.breached for replica in world.expected)
    message = f"{sound} of {count(world.replicas)} complete and without a breach, minAvailable is {world.minimum}"
    if sound < world.minimum:
        return Verdict.true(PodCliqueSetReason.TOO_FEW_GROUP_REPLICAS, message)
    return Verdict.false(PodCliqueSetReason.ENOUGH_GROUP_REPLICAS, message)


def _ready(world: World) -> Verdict:
    message = f"{world.available} of {count(world.replicas)} available, minAvailable is {world.minimum}"
    if world.available >= world.minimum:
        return Verdict.true(PodCliqueSetReason.ENOUGH_GROUP_REPLICAS, message)
    members = [clique for replica in world.expected for clique in replica.members.values()]
    obstacle = gravest(clique.obstacle for clique in members)
    if obstacle is not None:
        message = f"{message}; {obstacle}"
    return Verdict.false(PodCliqueSetReason.TOO_FEW_GROUP_REPLICAS, message)


def _pods_ready(world: World) -> Verdict:
    """The gravest trouble of the PodCliques that should exist, also of those beyond minAvailable."""
    incomplete = next((replica for replica in world.expected if not replica.whole), None)
    found = pods_ready(clique for replica in world.expected for clique in replica.members.values())
    if incomplete is None or found.status is Status.FALSE:
        return found
    return Verdict.false(PodReason.STARTING, f"replica {incomplete.index} is being created")
