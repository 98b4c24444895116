"""ReplicaSets: as many pods as the spec asks for, and a status that counts them.

Pods are adopted and released by the selector; failed ones are replaced; of too many, those that
serve least are stopped first.  The names of new pods follow from the ReplicaSet as it was
seen, so a decision that is made twice on the same view makes the same pods once.
This module must not know Deployments, but for the siblings that share a controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Pod, from_template
from holdfast.client.resources import PODS, REPLICA_SETS
from holdfast.cluster.controllers.replica_types import (
    Condition,
    ReplicaSet,
    ReplicaSetStatus,
    candidates,
    controller_of,
    identity,
)
from holdfast.kernel.outcomes import Failure, Outcome, soonest, until
from holdfast.meta import names, times
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.adoption import claim
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import Create, Decision, Delete, Notice, Write

BURST: Final = 500
"""Pods that one pass starts or stops at most; the next pass does the rest."""

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
REPLICA_FAILURE: Final = "ReplicaFailure"

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_COSTS: Final = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    pods      those it may own, in any state
    siblings  of a ReplicaSet with too many pods: the pods of all that share its controller, its own too
    """

    replica_set: ReplicaSet
    pods: tuple[Pod, ...] = ()
    siblings: tuple[Pod, ...] = ()


def observe(view: View, key: Key) -> World | None:
    found = view.get(REPLICA_SETS, key)
    if found is None:
        return None
    replica_set = ReplicaSet.of(found)
    selector = replica_set.selector
    pods = tuple(Pod.of(obj) for obj in candidates(view, PODS, owner=replica_set.metadata, selector=selector))
    too_many = sum(pod.active for pod in pods) > replica_set.spec.replicas
    siblings = tuple(_siblings(view, replica_set)) if too_many else ()
    return World(replica_set=replica_set, pods=pods, siblings=siblings)


def decide(world: World, now: datetime) -> Decision:
    replica_set, selector = world.replica_set, world.replica_set.selector
    owner = identity(REPLICA_SETS, replica_set.metadata)
    claimed = claim(
        owner,
        (pod.metadata for pod in world.pods if pod.active),
        resource=PODS,
        fits=lambda meta: selector.matches(meta.labels),
    )
    mine = [pod for pod in world.pods if pod.metadata.uid in claimed.uids]
    writes: list[Write] = list(claimed.writes)
    notices: list[Notice] = []
    missing = replica_set.spec.replicas - len(mine)
    if replica_set.deleting:
        missing = 0
    if missing > 0:
        for name in islice(_free_names(world), min(missing, BURST)):
            writes.append(_started(replica_set, owner, name=name))
            notices.append(Notice(reason="SuccessfulCreate", message=f"Created pod: {name}"))
    elif missing < 0:
        for pod in surplus(mine, -missing, siblings=world.siblings, now=now)[:BURST]:
            writes.append(_stopped(pod, replica_set))
            notices.append(Notice(reason="SuccessfulDelete", message=f"Deleted pod: {pod.metadata.name}"))
    return Decision(
        writes=tuple(writes),
        status=_status(world, mine, now=now).wire(),
        notices=tuple(notices),
        outcome=_next_available(mine, replica_set, now=now),
    )


def explain(world: World, failure: Failure, now: datetime) -> dict[str, Any]:
    """The status when pods could not be started or stopped; what was said first stays until it works again."""
    replica_set, selector = world.replica_set, world.replica_set.selector
    mine = [pod for pod in world.pods if pod.active and _is_ours(pod, replica_set, selector)]
    status = _status(world, mine, now=now)
    said = [each for each in replica_set.status.conditions if each.type == REPLICA_FAILURE]
    if not said:
        failed = Condition(
            type=REPLICA_FAILURE,
            status="True",
            last_transition_time=times.format(now),
            reason="FailedCreate" if len(mine) < replica_set.spec.replicas else "FailedDelete",
            message=failure.message,
        )
        said = [failed]
    return msgspec.structs.replace(status, conditions=(*status.conditions, *said)).wire()


# --- which pods go first


def surplus(pods: Sequence[Pod], number: int, *, siblings: Iterable[Pod], now: datetime) -> list[Pod]:
    """So many of the pods, in the order in which they are stopped."""
    crowd = Counter(pod.spec.node_name for pod in siblings if pod.active)

    def worth(pod: Pod) -> tuple[Any, ...]:
        ready = pod.ready
        return (
            pod.spec.node_name != "",
            _PHASES.get(pod.status.phase, 0),
            ready,
            _deletion_cost(pod.metadata),
            -crowd[pod.spec.node_name],
            _magnitude(pod.ready_since() if ready else None, now),
            -pod.restarts,
            _magnitude(_created(pod.metadata), now),
            pod.metadata.uid,
        )

    return sorted(pods, key=worth)[:number]


def _magnitude(since: datetime | None, now: datetime) -> int:
    """Of an age, the power of two: pods of about the same age are alike, so the choice among them is arbitrary."""
    if since is None:
        return -2
    microseconds = int((now - since).total_seconds() * 1_000_000)
    return (microseconds * 1_000).bit_length() - 1 if microseconds > 0 else -1


def _deletion_cost(meta: Meta) -> int:
    try:
        cost = int(meta.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0
    return cost if cost in _COSTS else 0


def _created(meta: Meta) -> datetime | None:
    return times.parse(meta.creation_timestamp) if meta.creation_timestamp else None


# --- pods that come and go


def _free_names(world: World) -> Iterator[str]:
    """Names for new pods: the same ones for the same view, and none that a pod has."""
    meta = world.replica_set.metadata
    taken = {pod.metadata.name for pod in world.pods}
    for number in count():
        name = names.generate_name(f"{meta.name}-", f"{meta.uid}/{meta.resource_version}/{number}")
        if name not in taken:
            taken.add(name)
            yield name


def _started(replica_set: ReplicaSet, owner: dict[str, Any], *, name: str) -> Create:
    manifest = from_template(replica_set.spec.template, owner, name=name)
    # The name is chosen here, and still says, as any server's would, what it was made from.
    manifest["metadata"]["generateName"] = f"{replica_set.name}-"
    return Create(because=f"{replica_set.spec.replicas} pods are wanted", resource=PODS, manifest=manifest, wave=1)


def _stopped(pod: Pod, replica_set: ReplicaSet) -> Delete:
    meta = pod.metadata
    because = f"only {replica_set.spec.replicas} pods are wanted, and this one is missed least"
    return Delete(because=because, resource=PODS, key=Key(meta.namespace, meta.name), uid=meta.uid, wave=1)


# --- status


def _status(world: World, mine: Sequence[Pod], *, now: datetime) -> ReplicaSetStatus:
    replica_set, selector = world.replica_set, world.replica_set.selector
    minimum = replica_set.min_ready
    wanted = ((replica_set.spec.template.get("metadata") or {}).get("labels") or {}).items()
    leaving = (pod for pod in world.pods if pod.deleting and not pod.finished)
    ready = [pod for pod in mine if pod.ready]
    return ReplicaSetStatus(
        replicas=len(mine),
        fully_labeled_replicas=sum(wanted <= pod.metadata.labels.items() for pod in mine),
        ready_replicas=len(ready),
        available_replicas=sum(pod.available(minimum, now) for pod in ready) if minimum else len(ready),
        terminating_replicas=sum(_is_ours(pod, replica_set, selector) for pod in leaving),
        observed_generation=replica_set.metadata.generation,
        conditions=tuple(each for each in replica_set.status.conditions if each.type != REPLICA_FAILURE),
    )


def _is_ours(pod: Pod, replica_set: ReplicaSet, selector: LabelSelector) -> bool:
    controller = controller_of(pod.metadata)
    return controller is not None and controller.uid == replica_set.uid and selector.matches(pod.metadata.labels)


def _next_available(mine: Iterable[Pod], replica_set: ReplicaSet, *, now: datetime) -> Outcome:
    if not replica_set.min_ready:
        return soonest(())
    due = (pod.available_at(replica_set.min_ready) for pod in mine)
    because = "a ready pod becomes available when it has been ready for minReadySeconds"
    return soonest(until(at, now=now, because=because) for at in due if at is not None and at > now)


# --- what is seen


def _siblings(view: View, replica_set: ReplicaSet) -> Iterator[Pod]:
    controller = controller_of(replica_set.metadata)
    if controller is None:
        return
    for sibling in view.owned(REPLICA_SETS, controller.uid):
        yield from (Pod.of(obj) for obj in view.owned(PODS, sibling.uid))


def adopters(obj: Object, view: View) -> Iterator[Key]:
    """The ReplicaSets that may adopt a pod without a controller."""
    if obj.controller is not None or obj.deleting:
        return
    for found in view.list(REPLICA_SETS, namespace=obj.meta.namespace):
        if found.decode(ReplicaSet).selector.matches(obj.meta.labels):
            yield found.key


CONTROLLER: Final = Controller(
    name="replicaset",
    resource=REPLICA_SETS,
    owns=(PODS,),
    watches=(Watch(resource=PODS, keys=adopters),),
    observe=observe,
    decide=decide,
    explain=explain,
)
