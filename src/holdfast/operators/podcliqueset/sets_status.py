"""What a PodCliqueSet says of itself: replicas, the update that is going on, and why it is as it is.

Everything is derived from what its parts say.  Of the status before, only the facts of
an update are carried over: when it began, and whose turn it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.reasons import Code, count
from holdfast.kinds.grove.sets import FinishingReplica, UpdateProgress
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.reports import (
    READY,
    UPDATE,
    errors_of,
    old_conditions,
    present,
    wire,
    wire_conditions,
)
from holdfast.operators.podcliqueset.sets_observe import SetReplica, World
from holdfast.operators.podcliqueset.sets_termination import Termination
from holdfast.operators.podcliqueset.sets_update import Course
from holdfast.operators.podcliqueset.validate import has_topology
from holdfast.runtime.decisions import Notice

PROGRESSING: Final = "Progressing"
BLOCKED: Final = "Blocked"
TOPOLOGY: Final = "TopologyLevelsUnavailable"

_MOST_NAMED: Final = 3
_STUCK: Final = frozenset({Code.PROGRESS_DEADLINE_EXCEEDED.value, Code.NO_DISRUPTION_BUDGET.value})


def report(
    world: World, going: Course, ending: Termination, now: datetime, *, failure: Failure | None = None
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    before, replicas = world.before, world.replicas
    old = old_conditions(before)
    verdicts = {
        READY: _ready(replicas),
        PROGRESSING: _progressing(replicas, going),
        UPDATE: _updating(replicas, going),
        BLOCKED: _blocked(replicas, failure),
    }
    if has_topology(world.layout):
        message = "the template has topology constraints, which are left out: no topology of the cluster is known"
        verdicts[TOPOLOGY] = Verdict.unknown(Why.TOPOLOGY_DISABLED, message)
    merged = conditions.merge(old, verdicts, generation=world.object.meta.generation, now=now, unnamed="drop")
    status = {
        "observedGeneration": world.object.meta.generation,
        "replicas": world.layout.replicas,
        "availableReplicas": sum(replica.available for replica in replicas),
        "updatedReplicas": sum(replica.updated for replica in replicas),
        "currentGenerationHash": going.generation,
        "rollingUpdateProgress": _by_name(going),
        "updateProgress": _by_number(world, going),
        "terminatingReplicas": [wire(each) for each in ending.replicas] or None,
        "hpaPodSelector": labels.text(labels.of_set(world.layout.name)),
        "lastErrors": errors_of(failure, before.last_errors, now),
        "conditions": wire_conditions(merged),
    }
    return present(status), _notices(world, going, ending)


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass that failed: what was seen, and why it went no further.

    What is wanted is not written down as such before the parts have it: they would act on it.
    """
    before = world.before
    kept = Course(
        generation=before.current_generation_hash or world.layout.generation_hash,
        progress=before.rolling_update_progress,
    )
    ending = Termination(replicas=before.terminating_replicas)
    return report(world, kept, ending, now, failure=failure)[0]


def _by_name(going: Course) -> dict[str, Any] | None:
    """The update as names; empty lists are written out, so that a reader finds them."""
    if going.progress is None:
        return None
    shown: dict[str, Any] = {"updatedPodCliques": [], "updatedPodCliqueScalingGroups": []}
    shown |= wire(going.progress)
    return shown


def _by_number(world: World, going: Course) -> dict[str, Any] | None:
    progress = going.progress
    if progress is None:
        return None
    turn = progress.currently_updating
    counted = UpdateProgress(
        update_started_at=progress.update_started_at,
        update_ended_at=progress.update_ended_at,
        updated_pod_cliques_count=len(progress.updated_pod_cliques),
        total_pod_cliques_count=world.layout.replicas * len(world.layout.standalone),
        updated_pod_clique_scaling_groups_count=len(progress.updated_pod_clique_scaling_groups),
        total_pod_clique_scaling_groups_count=world.layout.replicas * len(world.layout.groups),
        currently_updating=()
        if turn is None
        else (FinishingReplica(replica_index=turn.replica_index, update_started_at=turn.update_started_at),),
    )
    return wire(counted)


# --- conditions


def _ready(replicas: tuple[SetReplica, ...]) -> Verdict:
    if not replicas:
        return Verdict.true(Why.NONE_WANTED, "no replicas are asked for")
    lacking = [replica for replica in replicas if not replica.available]
    if not lacking:
        return Verdict.true(Why.ALL_AVAILABLE, f"all {count(len(replicas))} available")
    message = f"{len(replicas) - len(lacking)} of {count(len(replicas))} available; {_named(lacking)}"
    return Verdict.false(Why.NOT_ALL_AVAILABLE, message)


def _named(lacking: list[SetReplica]) -> str:
    shown = [f"replica {each.index} lacks {', '.join(each.lacking[:_MOST_NAMED])}" for each in lacking[:_MOST_NAMED]]
    rest = len(lacking) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest > 0 else "")


def _progressing(replicas: tuple[SetReplica, ...], going: Course) -> Verdict:
    if going.running:
        return Verdict.true(Why.ROLLING, _update_message(replicas, going))
    made = [each for each in replicas if not each.whole or any(not part.status.last_scheduled for part in each.parts)]
    if made:
        return Verdict.true(Why.CREATING, f"{count(len(made))} being made; {_named(made)}")
    lacking = [replica for replica in replicas if not replica.available]
    if lacking:
        return Verdict.false(Why.DEGRADED, _named(lacking))
    return Verdict.false(Why.SETTLED, "everything that is asked for is there")


def _updating(replicas: tuple[SetReplica, ...], going: Course) -> Verdict:
    if going.running:
        return Verdict.true(Why.ROLLING, _update_message(replicas, going))
    left = sum(not replica.current for replica in replicas) if going.progress is not None else 0
    if left:
        return Verdict.false(
            Why.OUTDATED, f"{count(left)} with pods of an earlier template, or not known to be without"
        )
    return Verdict.false(Why.NOT_UPDATING, "no update is going on")


def _update_message(replicas: tuple[SetReplica, ...], going: Course) -> str:
    """Which replica is updated, and what its parts do or wait for."""
    done = f"{sum(replica.updated for replica in replicas)} of {count(len(replicas))} updated"
    current = next((replica for replica in replicas if replica.index == going.turn), None)
    if current is None:
        return f"{done}; the next replica is being chosen"
    # What each of them does or waits for is in its own condition; it changes with every pod.
    doing = [part.name for part in current.parts if part.doing is not None]
    waits = (
        f"in {', '.join(doing[:_MOST_NAMED])}" if doing else f"waiting for {', '.join(current.lacking) or 'its parts'}"
    )
    return f"{done}; replica {current.index} is being updated, {waits}"


def _blocked(replicas: tuple[SetReplica, ...], failure: Failure | None) -> Verdict:
    if failure is not None:
        return Verdict.true(failure.reason, failure.message)
    parts = [part for replica in replicas for part in replica.parts]
    for part in parts:
        if part.doing is not None and part.doing.reason in _STUCK:
            return Verdict.true(part.doing.reason, f"{part.name}: {part.doing.message}")
    homeless = [part for part in parts if part.homeless]
    if homeless:
        message = f"no node for pods of {', '.join(part.situation for part in homeless[:_MOST_NAMED])}"
        return Verdict.true(Why.NO_PLACE, message)
    return Verdict.false(Why.NOT_BLOCKED, "nothing keeps the set from what is asked for")


# --- news


def _notices(world: World, going: Course, ending: Termination) -> tuple[Notice, ...]:
    notices = []
    if going.started:
        notices.append(
            Notice(reason=Why.UPDATE_STARTED.value, message=f"Template {going.generation} begins to be rolled out")
        )
    known = world.before.rolling_update_progress
    if known is not None and known.update_ended_at is None and not going.running and not going.started:
        notices.append(Notice(reason=Why.UPDATE_ENDED.value, message=f"Template {going.generation} is rolled out"))
    for index, lacking in ending.begun:
        message = f"Replica {index} is made anew: too few pods of {lacking} for longer than terminationDelay"
        notices.append(Notice(type="Warning", reason=Why.REPLICA_DELETED.value, message=message))
    return tuple(notices)
