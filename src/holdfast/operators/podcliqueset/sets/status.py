"""The status of a PodCliqueSet: its replicas, the running or last update, and why it is as it is.

Everything is derived from the statuses of its parts.  Of the status before, only the
facts of an update are carried over: when it began, and which replica is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.kernel.conditions import Status, Verdict
from holdfast.kernel.floors import FLOOR_LOWERED
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.pod_problems import PodReason
from holdfast.kernel.reasons import Code, count
from holdfast.kinds.grove.sets import FinishingReplica, UpdateProgress
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.part_status import gravest, pods_ready
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.sets import floors
from holdfast.operators.podcliqueset.sets.observe import SetReplica, World
from holdfast.operators.podcliqueset.sets.termination import Termination
from holdfast.operators.podcliqueset.sets.update import Update
from holdfast.operators.podcliqueset.status import PODS_READY, READY, UPDATE
from holdfast.operators.podcliqueset.validate import has_topology
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced

PROGRESSING: Final = "Progressing"
BLOCKED: Final = "Blocked"
TOPOLOGY: Final = "TopologyLevelsUnavailable"

ANNOUNCED: Final[Announced] = {(FLOOR_LOWERED, "True"): "Warning"}
"""The conditions of a set that become Events; those of a broken floor are the Events of the part."""

_MOST_NAMED: Final = 3
_STUCK: Final = frozenset({Code.PROGRESS_DEADLINE_EXCEEDED.value, Code.NO_DISRUPTION_BUDGET.value})


def report(
    world: World, made: Update, ending: Termination, now: datetime, *, failure: Failure | None = None
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events of what changed."""
    replicas = world.replicas
    verdicts = {
        READY: _ready(replicas),
        PROGRESSING: _progressing(replicas, made),
        UPDATE: _updating(replicas, made),
        BLOCKED: _blocked(replicas, failure),
        PODS_READY: _pods_ready(replicas),
        **floors.verdicts(world, updating=made.running),
    }
    if has_topology(world.layout):
        message = "the topology constraints of the template are not applied: no topology of the cluster is known"
        verdicts[TOPOLOGY] = Verdict.unknown(PodCliqueSetReason.TOPOLOGY_DISABLED, message)
    fields = {
        "replicas": world.layout.replicas,
        "availableReplicas": sum(replica.available for replica in replicas),
        "updatedReplicas": sum(replica.current for replica in replicas),
        # A spec that failed may be corrected; minAvailable is fixed by the first one that is carried out.
        "minAvailable": dict(world.layout.minimums if failure is None else world.before.min_available),
        "currentGenerationHash": made.generation,
        "rollingUpdateProgress": _by_name(made),
        "updateProgress": _by_number(world, made),
        "terminatingReplicas": [status.wire(each) for each in ending.replicas] or None,
        "hpaPodSelector": labels.text(labels.of_set(world.layout.name)),
        "lastErrors": status.last_errors(world.object, failure, now),
    }
    reported, notices = status.report(world.object, verdicts, now=now, fields=fields, announced=ANNOUNCED)
    return reported, (*notices, *_notices(world, made, ending))


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass that failed: what was observed, and the error.

    The wanted generation is recorded only by a pass that brought it to the parts: they act on it.
    """
    before = world.before
    kept = Update(
        generation=before.current_generation_hash or world.layout.generation_hash,
        progress=before.rolling_update_progress,
    )
    ending = Termination(replicas=before.terminating_replicas)
    return report(world, kept, ending, now, failure=failure)[0]


def _by_name(made: Update) -> dict[str, Any] | None:
    """The update with the names of updated parts; empty lists are written too."""
    if made.progress is None:
        return None
    shown: dict[str, Any] = {"updatedPodCliques": [], "updatedPodCliqueScalingGroups": []}
    return shown | status.wire(made.progress)


def _by_number(world: World, made: Update) -> dict[str, Any] | None:
    progress = made.progress
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
    return status.wire(counted)


# --- conditions


def _ready(replicas: tuple[SetReplica, ...]) -> Verdict:
    if not replicas:
        return Verdict.true(PodCliqueSetReason.NONE_WANTED, "spec.replicas is 0")
    lacking = [replica for replica in replicas if not replica.available]
    if not lacking:
        return Verdict.true(PodCliqueSetReason.ALL_AVAILABLE, f"all {count(len(replicas))} available")
    message = f"{len(replicas) - len(lacking)} of {count(len(replicas))} available; {_named(lacking)}{_why(lacking)}"
    return Verdict.false(PodCliqueSetReason.NOT_ALL_AVAILABLE, message)


def _named(lacking: list[SetReplica]) -> str:
    shown = [
        f"replica {each.index} waits for {', '.join(each.lacking[:_MOST_NAMED])}" for each in lacking[:_MOST_NAMED]
    ]
    rest = len(lacking) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest > 0 else "")


def _why(replicas: Iterable[SetReplica]) -> str:
    """What keeps these replicas from being available, where it does not pass by itself."""
    obstacle = gravest(part.obstacle for replica in replicas for part in replica.parts)
    return "" if obstacle is None else f"; {obstacle}"


def _pods_ready(replicas: tuple[SetReplica, ...]) -> Verdict:
    """The gravest trouble of all parts, also of pods beyond minAvailable."""
    incomplete = next((replica for replica in replicas if not replica.whole), None)
    found = pods_ready(part for replica in replicas for part in replica.parts)
    if incomplete is None or found.status is Status.FALSE:
        return found
    return Verdict.false(PodReason.STARTING, f"replica {incomplete.index} is being created")


def _progressing(replicas: tuple[SetReplica, ...], made: Update) -> Verdict:
    if made.running:
        return Verdict.true(PodCliqueSetReason.ROLLING, _update_message(replicas, made))
    new = [each for each in replicas if not each.whole or any(not part.status.last_scheduled for part in each.parts)]
    if new:
        return Verdict.true(PodCliqueSetReason.CREATING, f"{count(len(new))} being created; {_named(new)}{_why(new)}")
    lacking = [replica for replica in replicas if not replica.available]
    if lacking:
        return Verdict.false(PodCliqueSetReason.DEGRADED, f"{_named(lacking)}{_why(lacking)}")
    trouble = gravest(part.trouble for replica in replicas for part in replica.parts)
    if trouble is not None:
        return Verdict.false(trouble.reason, f"all replicas are available, but not all pods are ready; {trouble}")
    return Verdict.false(PodCliqueSetReason.SETTLED, "all replicas exist and are available")


def _updating(replicas: tuple[SetReplica, ...], made: Update) -> Verdict:
    if made.running:
        return Verdict.true(PodCliqueSetReason.ROLLING, _update_message(replicas, made))
    left = sum(not replica.current for replica in replicas) if made.progress is not None else 0
    if left:
        return Verdict.false(
            PodCliqueSetReason.OUTDATED, f"{count(left)} with pods of an earlier template, or not reported yet"
        )
    return Verdict.false(PodCliqueSetReason.NOT_UPDATING, "no update is running")


def _update_message(replicas: tuple[SetReplica, ...], made: Update) -> str:
    """Which replica is being updated, and which of its parts."""
    done = f"{sum(replica.current for replica in replicas)} of {count(len(replicas))} updated"
    current = next((replica for replica in replicas if replica.index == made.replica), None)
    if current is None:
        return f"{done}; the next replica is being selected"
    # What each part does or waits for is in the part's own condition: it changes with every pod.
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
    obstacle = gravest(part.obstacle for part in parts)
    if obstacle is not None:
        return Verdict.true(obstacle.reason, str(obstacle))
    return Verdict.false(PodCliqueSetReason.NOT_BLOCKED, "no part is kept from minAvailable, or from its update")


# --- Events


def _notices(world: World, made: Update, ending: Termination) -> tuple[Notice, ...]:
    notices = []
    if made.started:
        message = f"The rollout of template {made.generation} began"
        notices.append(Notice(reason=PodCliqueSetReason.UPDATE_STARTED.value, message=message))
    known = world.before.rolling_update_progress
    if known is not None and known.update_ended_at is None and not made.running and not made.started:
        message = f"Template {made.generation} is rolled out"
        notices.append(Notice(reason=PodCliqueSetReason.UPDATE_ENDED.value, message=message))
    for index, short in ending.begun:
        message = (
            f"Replica {index} is recreated: it was incomplete for longer than terminationDelay; "
            f"below minAvailable: {short}"
        )
        notices.append(Notice(type="Warning", reason=PodCliqueSetReason.REPLICA_DELETED.value, message=message))
    return tuple(notices)
