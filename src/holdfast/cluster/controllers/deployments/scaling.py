"""How big each ReplicaSet of a Deployment is to be next: pure arithmetic, one step at a time.

`rolled` replaces old pods within the surge and the unavailability that are allowed; `recreated`
stops all that is old; `rescaled` follows a changed number of replicas in the middle of a rollout,
in proportion.  What is decided is a list of `Step`s, in order; a step may name a ReplicaSet again.
This module must not know templates, pods or what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cluster.controllers.deployments.revisions import DESIRED, MAXIMUM
from holdfast.cluster.controllers.replica_types import Deployment, Fleet, ReplicaSet
from holdfast.meta import amounts


@dataclass(frozen=True, slots=True)
class Step:
    """One ReplicaSet goes from a size to a size; the same one, where only its record of the total is old."""

    name: str
    before: int
    after: int

    @property
    def moves(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        direction = "up" if self.after > self.before else "down"
        return f"Scaled {direction} replica set {self.name} from {self.before} to {self.after}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the strategy allows, in whole pods."""

    replicas: int
    surge: int = 0
    unavailable: int = 0

    @classmethod
    def of(cls, deployment: Deployment) -> Bounds:
        """Surge is rounded up and unavailability down; where both come to nothing, one may be unavailable."""
        replicas = deployment.spec.replicas
        if not deployment.rolling:
            return cls(replicas)
        rolling = deployment.spec.strategy.rolling_update
        surge = amounts.resolve(rolling.max_surge, replicas, round="up")
        unavailable = amounts.resolve(rolling.max_unavailable, replicas, round="down")
        if not surge and not unavailable:
            unavailable = 1
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """How many must stay available."""
        return self.replicas - self.unavailable


# --- a rollout


def size_of_new(deployment: Deployment, fleet: Fleet) -> int:
    """How big the new ReplicaSet may be now, beside what is old; it never shrinks here."""
    bounds = Bounds.of(deployment)
    size = 0 if fleet.new is None else fleet.new.spec.replicas
    if not deployment.rolling:
        return bounds.replicas
    room = bounds.most - _total(fleet.all)
    return size if room <= 0 else size + min(room, bounds.replicas - size)


def rolled(deployment: Deployment, fleet: Fleet) -> list[Step]:
    """The new ReplicaSet grows first; when it cannot, the old ones shrink."""
    assert fleet.new is not None, "a rollout begins with a new ReplicaSet"
    size, wanted = fleet.new.spec.replicas, deployment.spec.replicas
    if size > wanted:
        return [Step(fleet.new.name, size, wanted)]
    grown = size if size == wanted else size_of_new(deployment, fleet)
    if grown != size:
        return [Step(fleet.new.name, size, grown)]
    return _shrunk(deployment, fleet)


def _shrunk(deployment: Deployment, fleet: Fleet) -> list[Step]:
    """Old pods that are not ready are stopped first, then as many as availability allows."""
    old, new, bounds = fleet.active_old, fleet.new, Bounds.of(deployment)
    if not old or new is None:
        return []
    starting = new.spec.replicas - new.status.available_replicas
    spare = _total(fleet.all) - bounds.least - starting
    if spare <= 0:
        return []
    sizes = {each.name: each.spec.replicas for each in old}
    steps: list[Step] = []

    def shrink(replica_set: ReplicaSet, by: int) -> int:
        size = sizes[replica_set.name]
        if by > 0:
            steps.append(Step(replica_set.name, size, size - by))
            sizes[replica_set.name] = size - by
        return max(by, 0)

    for each in old:
        spare -= shrink(each, min(spare, each.spec.replicas - each.status.available_replicas))
    # A status may lag behind a size that was just reduced; pods that are given up already do not serve.
    serving = sum(min(each.status.available_replicas, each.spec.replicas) for each in (*old, new))
    spare = serving - bounds.least
    for each in old:
        spare -= shrink(each, min(spare, sizes[each.name]))
    return steps


def emptied(sets: Sequence[ReplicaSet]) -> list[Step]:
    return [Step(each.name, each.spec.replicas, 0) for each in sets if each.active]


def recreated(deployment: Deployment, fleet: Fleet) -> list[Step]:
    """The new ReplicaSet gets all its pods at once; the old ones are gone by now."""
    assert fleet.new is not None, "it was made when the old pods were gone"
    size, wanted = fleet.new.spec.replicas, deployment.spec.replicas
    return [Step(fleet.new.name, size, wanted)] if size != wanted else []


# --- another number of replicas


def is_rescaled(deployment: Deployment, fleet: Fleet) -> bool:
    """Whether the number of replicas has changed since the ReplicaSets were sized."""
    desired = (each.number(DESIRED) for each in fleet.all if each.active)
    return any(number is not None and number != deployment.spec.replicas for number in desired)


def rescaled(deployment: Deployment, fleet: Fleet) -> list[Step]:
    """Follow the number of replicas: the only ReplicaSet in use alone, or all of a rollout in proportion."""
    replicas = deployment.spec.replicas
    only = _only_or_latest(fleet)
    if only is not None:
        steps = [Step(only.name, only.spec.replicas, replicas)]
    elif _is_saturated(deployment, fleet.new):
        steps = emptied(fleet.active_old)
    elif deployment.rolling:
        steps = _in_proportion(deployment, fleet)
    else:
        steps = []
    recorded = {each.name: each.number(DESIRED) == replicas for each in fleet.all}
    return [step for step in steps if step.moves or not recorded[step.name]]


def _only_or_latest(fleet: Fleet) -> ReplicaSet | None:
    active = [each for each in fleet.all if each.active]
    if len(active) > 1 or not fleet.all:
        return None
    if active:
        return active[0]
    return fleet.new or max(fleet.old, key=lambda each: each.age)


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """The new ReplicaSet has every pod that is wanted, and all are available."""
    if new is None:
        return False
    numbers = (new.spec.replicas, new.number(DESIRED), new.status.available_replicas)
    return all(number == deployment.spec.replicas for number in numbers)


def _in_proportion(deployment: Deployment, fleet: Fleet) -> list[Step]:
    """What is added or taken is shared by size, so that a rollout that is stuck puts no more pods at risk."""
    bounds = Bounds.of(deployment)
    allowed = bounds.most if bounds.replicas else 0
    active = [each for each in fleet.all if each.active]
    change = allowed - _total(active)
    # The largest first, and among equals the newest when growing and the oldest when shrinking.
    active.sort(key=lambda each: each.age, reverse=change > 0)
    active.sort(key=lambda each: -each.spec.replicas)
    shared = 0
    sizes = {each.name: each.spec.replicas for each in active}
    for each in active:
        share = _share(deployment, each, left=change - shared)
        sizes[each.name] += share
        shared += share
    if active:
        largest = active[0].name
        sizes[largest] = max(sizes[largest] + change - shared, 0)
    return [Step(each.name, each.spec.replicas, sizes[each.name]) for each in active]


def _share(deployment: Deployment, replica_set: ReplicaSet, *, left: int) -> int:
    """How much of what is left to add (or, below zero, to take) falls to one ReplicaSet."""
    size, replicas = replica_set.spec.replicas, deployment.spec.replicas
    if not left:
        return 0
    if not replicas:
        return max(-size, left)
    before = replica_set.number(MAXIMUM) or deployment.status.replicas
    if not before:
        return 0
    # Half a pod is rounded up, in whole numbers.
    fair = (2 * size * Bounds.of(deployment).most + before) // (2 * before) - size
    return min(fair, left) if left > 0 else max(fair, left)


def _total(sets: Sequence[ReplicaSet]) -> int:
    return sum(each.spec.replicas for each in sets)
