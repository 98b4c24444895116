"""The status of a Deployment: counts, whether it is available, and whether its rollout makes progress.

The rules for conditions are Kubernetes' own, since ``kubectl rollout status`` and many others read them:
one that says the same with the same reason is left as it is, and one that changes goes to the end.
Only `Progressing` is renewed by every bit of progress, for its time is where the deadline counts from.
This module must not know what is written, nor why a ReplicaSet has the size that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.cluster.controllers.deployments.scaling import Bounds
from holdfast.cluster.controllers.replica_types import Condition, Deployment, DeploymentStatus, Fleet, ReplicaSet
from holdfast.kernel.outcomes import Done, Outcome, until
from holdfast.meta import times

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"

_COMPLETE: Final = "NewReplicaSetAvailable"
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_PAUSED: Final = "DeploymentPaused"

_GRACE: Final = timedelta(seconds=1)
"""After the deadline, since times are kept in whole seconds."""


# --- conditions


def _said(type: str, status: str, reason: str, message: str, *, now: datetime) -> Condition:
    stamp = times.format(now)
    return Condition(
        type=type, status=status, reason=reason, message=message, last_update_time=stamp, last_transition_time=stamp
    )


def _without(conditions: Iterable[Condition], type: str) -> tuple[Condition, ...]:
    return tuple(each for each in conditions if each.type != type)


def _with(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    old = next((each for each in conditions if each.type == new.type), None)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return tuple(conditions)
    return (*_without(conditions, new.type), _since(old, new))


def _since(old: Condition | None, new: Condition) -> Condition:
    """The new condition, in its state since when the old one was, if that was the same."""
    if old is None or old.status != new.status:
        return new
    return msgspec.structs.replace(new, last_transition_time=old.last_transition_time)


def _progressing(deployment: Deployment, status: str, reason: str, message: str, *, now: datetime) -> Deployment:
    said = _said(PROGRESSING, status, reason, message, now=now)
    return deployment.with_conditions(_with(deployment.status.conditions, said))


def noting_pause(deployment: Deployment, now: datetime) -> Deployment:
    """Say that a rollout is paused or goes on, so that the time in between does not count towards the deadline."""
    progressing = deployment.status.condition(PROGRESSING)
    reason = "" if progressing is None else progressing.reason
    if deployment.progress_deadline is None or reason == _TIMED_OUT:
        return deployment
    if deployment.spec.paused and reason != _PAUSED:
        return _progressing(deployment, "Unknown", _PAUSED, "Deployment is paused", now=now)
    if not deployment.spec.paused and reason == _PAUSED:
        return _progressing(deployment, "Unknown", "DeploymentResumed", "Deployment is resumed", now=now)
    return deployment


def noting_found(deployment: Deployment, found: ReplicaSet, now: datetime) -> Deployment:
    """Of a Deployment that has said nothing yet: that the ReplicaSet for its template exists."""
    if deployment.progress_deadline is None or deployment.status.condition(PROGRESSING) is not None:
        return deployment
    return _progressing(deployment, "True", "FoundNewReplicaSet", f'Found new replica set "{found.name}"', now=now)


def noting_created(deployment: Deployment, created: ReplicaSet, now: datetime) -> Deployment:
    if deployment.progress_deadline is None:
        return deployment
    return _progressing(
        deployment, "True", "NewReplicaSetCreated", f'Created new replica set "{created.name}"', now=now
    )


def noting_failed(deployment: Deployment, name: str, why: str, *, now: datetime) -> Deployment:
    if deployment.progress_deadline is None:
        return deployment
    message = f'Failed to create new replica set "{name}": {why}'
    return _progressing(deployment, "False", "ReplicaSetCreateError", message, now=now)


# --- counts


def counted(deployment: Deployment, fleet: Fleet, *, now: datetime) -> DeploymentStatus:
    """The counts, and whether there are enough available; nothing is said of progress."""
    statuses = [each.status for each in fleet.all]
    available = sum(status.available_replicas for status in statuses)
    terminating = [status.terminating_replicas for status in statuses]
    # A ReplicaSet whose pods are not counted yet makes the sum unknown.
    leaving = None if None in terminating else sum(number or 0 for number in terminating)
    if available >= Bounds.of(deployment).least:
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        verdict = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(status.replicas for status in statuses),
        updated_replicas=0 if fleet.new is None else fleet.new.status.replicas,
        ready_replicas=sum(status.ready_replicas for status in statuses),
        available_replicas=available,
        unavailable_replicas=max(sum(each.spec.replicas for each in fleet.all) - available, 0),
        terminating_replicas=leaving,
        collision_count=deployment.status.collision_count,
        conditions=_with(deployment.status.conditions, _said(AVAILABLE, *verdict, now=now)),
    )


# --- progress


def progressed(deployment: Deployment, fleet: Fleet, *, now: datetime) -> DeploymentStatus:
    """The counts, and how the rollout gets on."""
    status = counted(deployment, fleet, now=now)
    conditions = _with_progress(deployment, status, fleet, now=now)
    failure = _failure(fleet)
    conditions = _without(conditions, REPLICA_FAILURE) if failure is None else _with(conditions, failure)
    return msgspec.structs.replace(status, conditions=conditions)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """All that is wanted is there, of the newest template, available, and nothing else is."""
    numbers = (status.updated_replicas, status.replicas, status.available_replicas)
    seen = status.observed_generation >= deployment.metadata.generation
    return seen and all(number == deployment.spec.replicas for number in numbers)


def _with_progress(
    deployment: Deployment, status: DeploymentStatus, fleet: Fleet, *, now: datetime
) -> tuple[Condition, ...]:
    old = deployment.status.condition(PROGRESSING)
    if deployment.progress_deadline is None:
        return _without(status.conditions, PROGRESSING)
    if old is not None and old.reason == _COMPLETE and status.replicas == status.updated_replicas:
        # A rollout that was complete stays so, whatever becomes of its pods, until there is a new one.
        return status.conditions
    who = f'Deployment "{deployment.name}"' if fleet.new is None else f'ReplicaSet "{fleet.new.name}"'
    if is_complete(deployment, status):
        done = _said(PROGRESSING, "True", _COMPLETE, f"{who} has successfully progressed.", now=now)
        return _with(status.conditions, done)
    if _is_progress(deployment.status, status):
        moved = _said(PROGRESSING, "True", "ReplicaSetUpdated", f"{who} is progressing.", now=now)
        return (*_without(status.conditions, PROGRESSING), _since(old, moved))
    if _is_late(deployment, old, now):
        late = _said(PROGRESSING, "False", _TIMED_OUT, f"{who} has timed out progressing.", now=now)
        return _with(status.conditions, late)
    return status.conditions


def _is_progress(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _is_late(deployment: Deployment, progressing: Condition | None, now: datetime) -> bool:
    if progressing is None or progressing.reason == _COMPLETE:
        return False
    if progressing.reason == _TIMED_OUT:
        return True
    deadline = _deadline(deployment, progressing)
    return deadline is not None and deadline < now


def _deadline(deployment: Deployment, progressing: Condition | None) -> datetime | None:
    if deployment.progress_deadline is None or progressing is None or not progressing.last_update_time:
        return None
    return times.parse(progressing.last_update_time) + deployment.progress_deadline


def patience(deployment: Deployment, status: DeploymentStatus, *, now: datetime) -> Outcome:
    """When to look again for want of progress, while a rollout is under way."""
    progressing = status.condition(PROGRESSING)
    deadline = _deadline(deployment, progressing)
    if progressing is None or deadline is None:
        return Done()
    if progressing.reason in (_COMPLETE, _TIMED_OUT) or is_complete(deployment, status):
        return Done()
    return until(deadline + _GRACE, now=now, because="the rollout has to get on before its progress deadline")


def _failure(fleet: Fleet) -> Condition | None:
    """What keeps a ReplicaSet from having its pods; the new one's trouble comes before that of old ones."""
    troubled = [] if fleet.new is None else [fleet.new]
    for replica_set in (*troubled, *fleet.old):
        for each in replica_set.status.conditions:
            if each.type == REPLICA_FAILURE:
                return msgspec.structs.replace(each, last_update_time=each.last_transition_time)
    return None
