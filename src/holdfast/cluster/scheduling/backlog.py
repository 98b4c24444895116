"""The backlog: the pods that are not scheduled, and which of them is next.

A unit of the backlog is one pod, or a gang.  Units are tried in the order of their
priority, and of one priority by age; pods beyond the minimum of their gang come after the
minimums of all gangs.  One that is unschedulable waits until the cluster has
changed in a way that may help, or for a time that grows.  A pod that gets a node has it
at once, though its binding may take a moment or fail.

A plain data structure: changes go in, and what to do comes out; time is an argument.
It must not know how bindings are written.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final, TypeAlias

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.cluster.scheduling.gangs import LABEL, Gang, Held, is_complete, place_gang
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster
from holdfast.cluster.scheduling.placing import Placed, Unschedulable, place
from holdfast.kernel.backoff import Backoff
from holdfast.meta.objects import Key

PATIENCE: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=5))
"""How long a unit rests that found no place, if nothing changes that may help."""

GATED: Final = "SchedulingGated"
UNSCHEDULABLE: Final = "Unschedulable"
_GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"


@dataclass(frozen=True, slots=True)
class Bind:
    """The pod has its place; it is to be written."""

    claim: Claim
    node: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The pod has no place, and does not say so yet."""

    pod: Object
    reason: str
    message: str


Step: TypeAlias = Bind | Refuse


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A pod, or a gang, by its key."""

    key: Key
    gang: bool = False


@dataclass(slots=True)
class _Waiting:
    """A pod that waits, and the reason and message that its condition was last given."""

    pod: Object
    claim: Claim
    reported: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class _Resting:
    """An unschedulable unit: how often it was tried, when it is tried again, and what must change to try it before."""

    attempts: int
    again: datetime
    freed: int | None
    """None, if room cannot help."""
    changed: int | None
    """None, if other pods cannot help by coming."""


@dataclass(slots=True)
class Backlog:
    """The units that wait."""

    cluster: Cluster
    serves: frozenset[str]
    gangs_exist: bool = False
    _waiting: dict[Key, _Waiting] = field(default_factory=dict)
    _binding: dict[Key, _Waiting] = field(default_factory=dict)
    _gangs: dict[Key, Gang] = field(default_factory=dict)
    _members: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _queue: list[tuple[int, bool, str, Unit]] = field(default_factory=list)
    _queued: set[Unit] = field(default_factory=set)
    _resting: dict[Unit, _Resting] = field(default_factory=dict)
    _alarms: list[tuple[datetime, int, Unit]] = field(default_factory=list)
    _ticket: Iterator[int] = field(default_factory=count)
    _looked: tuple[int, int] = (0, 0)
    _refused: dict[Any, Unschedulable] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many pods wait."""
        return len(self._waiting)

    # --- what changes

    def see_pod(self, key: Key, pod: Object | None) -> None:
        claim = None if pod is None else Claim.of(pod)
        if pod is None or claim is None or claim.finished:
            self._binding.pop(key, None)
            self._drop(key)
            self.cluster.remove(key)
        elif claim.needs.node_name:
            self._binding.pop(key, None)
            self._drop(key)
            self.cluster.put(claim, claim.needs.node_name)
        elif claim.deleting or claim.needs.scheduler not in self.serves:
            self._drop(key)
        elif key in self._binding and self._binding[key].claim.uid == claim.uid:
            pass  # The binding is on its way.
        else:
            self._wait(pod, claim)

    def see_gang(self, key: Key, gang: Object | None) -> None:
        if gang is None:
            self._gangs.pop(key, None)
        else:
            self._gangs[key] = Gang.of(gang)
        if self._members.get(key):
            self._enqueue(Unit(key, gang=True))

    def see_gangs_exist(self, exist: bool) -> None:
        """Whether there are gangs at all; where there are none, pods are scheduled one by one."""
        if exist == self.gangs_exist:
            return
        waiting = list(self._waiting.values())
        for each in waiting:
            self._drop(each.claim.key)
        self.gangs_exist = exist
        for each in waiting:
            self._wait(each.pod, each.claim)

    def failed(self, claim: Claim, now: datetime) -> None:
        """A binding was not written: the place is free again, and the pod waits again."""
        bound = self._binding.get(claim.key)
        if bound is None or bound.claim.uid != claim.uid:
            return
        del self._binding[claim.key]
        self.cluster.remove(claim.key)
        self._wait(bound.pod, claim)
        unit = self._unit(claim)
        self._queued.discard(unit)
        # It was no lack of room: the room that other failed bindings leave must not have it tried again at once.
        self._rest(unit, now, heeds_pods=False, heeds_room=False)

    def not_reported(self, refusal: Refuse, now: datetime) -> None:
        """The condition of a pod was not written; it is to be written again."""
        waiting = self._waiting.get(refusal.pod.key)
        if waiting is None or waiting.claim.uid != refusal.pod.uid:
            return
        waiting.reported = ("", "")
        unit = self._unit(waiting.claim)
        if unit not in self._resting:
            self._rest(unit, now, heeds_pods=False)

    def _wait(self, pod: Object, claim: Claim) -> None:
        key, before = claim.key, self._waiting.get(claim.key)
        if before is not None and before.claim == claim:
            before.pod = pod
            return
        self._drop(key)
        self._waiting[key] = _Waiting(pod, claim, _said(pod))
        unit = self._unit(claim)
        if unit.gang:
            self._members.setdefault(unit.key, {})[key] = None
        self._enqueue(unit)

    def _drop(self, key: Key) -> None:
        """Forget that a pod waits."""
        waited = self._waiting.pop(key, None)
        if waited is None:
            return
        unit = self._unit(waited.claim)
        if not unit.gang:
            self._resting.pop(unit, None)
            return
        members = self._members.get(unit.key, {})
        members.pop(key, None)
        if not members:
            self._members.pop(unit.key, None)
            self._resting.pop(unit, None)

    def _unit(self, claim: Claim) -> Unit:
        """What a pod is tried with; behind its gates, a pod is of no gang yet."""
        gang = claim.labels.get(LABEL) if self.gangs_exist and not claim.needs.gates else None
        return Unit(Key(claim.namespace, gang), gang=True) if gang else Unit(claim.key)

    # --- what is next

    def take(self, now: datetime, *, most: int) -> list[Step]:
        """What to do now, for about as many pods; empty when nothing can be done before `due`, or a change."""
        self._revive(now)
        steps: list[Step] = []
        while self._queue and len(steps) < most:
            *_, unit = heapq.heappop(self._queue)
            if unit in self._queued:
                self._queued.discard(unit)
                steps += self._try_gang(unit, now) if unit.gang else self._try_pod(unit, now)
        return steps

    def due(self) -> datetime | None:
        """When something can be tried again though nothing has changed."""
        while self._alarms:
            at, _, unit = self._alarms[0]
            resting = self._resting.get(unit)
            if resting is not None and resting.again == at:
                return at
            heapq.heappop(self._alarms)
        return None

    @property
    def idle(self) -> bool:
        """Nothing can be tried before time passes or something changes."""
        return not self._queued and self._looked == (self.cluster.freed, self.cluster.changed)

    def _enqueue(self, unit: Unit) -> None:
        if unit in self._queued:
            return
        claims = [self._waiting[key].claim for key in self._keys(unit)]
        if not claims:
            return
        priority = max(claim.needs.priority for claim in claims)
        self._queued.add(unit)
        heapq.heappush(self._queue, (-priority, self._beyond_minimum(unit), min(each.created for each in claims), unit))

    def _beyond_minimum(self, unit: Unit) -> bool:
        """Whether a unit is a gang that has its minimum: its other pods come after the minimums of all gangs."""
        gang = self._gangs.get(unit.key) if unit.gang else None
        return gang is not None and is_complete(gang, self.cluster)

    def _revive(self, now: datetime) -> None:
        """Queue what rests, if its time has come or something changed that may help it."""
        while (at := self.due()) is not None and at <= now:
            self._enqueue(heapq.heappop(self._alarms)[2])
        freed, changed = self.cluster.freed, self.cluster.changed
        if self._looked == (freed, changed):
            return
        if self._looked[0] != freed:
            self._refused.clear()
        self._looked = (freed, changed)
        for unit, resting in self._resting.items():
            roomier = resting.freed is not None and resting.freed < freed
            if roomier or (resting.changed is not None and resting.changed < changed):
                self._enqueue(unit)

    def _keys(self, unit: Unit) -> tuple[Key, ...]:
        return tuple(self._members.get(unit.key, ())) if unit.gang else (unit.key,) * (unit.key in self._waiting)

    # --- one unit

    def _try_pod(self, unit: Unit, now: datetime) -> list[Step]:
        waiting = self._waiting.get(unit.key)
        if waiting is None:
            return []
        if waiting.claim.needs.gates:
            return self._refusals((unit.key,), GATED, _GATED_MESSAGE)
        found = self._place(waiting.claim)
        if isinstance(found, Placed):
            return [self._bind(waiting.claim, found.node)]
        self._rest(unit, now, heeds_pods=waiting.claim.needs.depends_on_pods)
        return self._refusals((unit.key,), UNSCHEDULABLE, found.message)

    def _place(self, claim: Claim) -> Placed | Unschedulable:
        """As `place`; what was refused to a pod is refused to its like until room is made."""
        if claim.needs.depends_on_pods:
            return place(claim, self.cluster)
        like = (claim.needs, claim.namespace, frozenset(claim.labels.items()))
        known = self._refused.get(like) if self._refused else None
        found = known or place(claim, self.cluster)
        if isinstance(found, Unschedulable):
            self._refused[like] = found
        return found

    def _try_gang(self, unit: Unit, now: datetime) -> list[Step]:
        keys = self._keys(unit)
        if not keys:
            return []
        gang = self._gangs.get(unit.key)
        if gang is None:
            self._rest(unit, now, heeds_pods=False)
            return self._refusals(keys, UNSCHEDULABLE, f"PodGang {unit.key} does not exist.")
        listed = set(gang.whole.pods)
        waiting = {key: self._waiting[key].claim for key in keys if key in listed}
        unlisted = tuple(key for key in keys if key not in listed)
        steps = self._refusals(unlisted, UNSCHEDULABLE, f"PodGang {unit.key} does not name the pod.")
        complete = is_complete(gang, self.cluster)
        found = place_gang(gang, waiting, self.cluster, beyond_minimum=complete)
        heeds_pods = any(claim.needs.depends_on_pods for claim in waiting.values())
        if isinstance(found, Held):
            self._rest(unit, now, heeds_pods=heeds_pods)
            return steps + self._refusals(tuple(waiting), UNSCHEDULABLE, found.message)
        steps += [self._bind(claim, node) for claim, node in found.bindings]
        for key, why in found.waiting.items():
            steps += self._refusals((key,), UNSCHEDULABLE, why)
        if not complete:
            self._enqueue(unit)
        elif self._members.get(unit.key):
            self._rest(unit, now, heeds_pods=heeds_pods)
        return steps

    def _bind(self, claim: Claim, node: str) -> Bind:
        waiting = self._waiting[claim.key]
        self._drop(claim.key)
        self._binding[claim.key] = waiting
        self.cluster.put(claim, node)
        return Bind(claim, node)

    def _rest(self, unit: Unit, now: datetime, *, heeds_pods: bool, heeds_room: bool = True) -> None:
        before = self._resting.get(unit)
        attempts = before.attempts + 1 if before else 1
        again = now + PATIENCE.delay(attempts)
        cluster = self.cluster
        freed = cluster.freed if heeds_room else None
        self._resting[unit] = _Resting(attempts, again, freed, cluster.changed if heeds_pods else None)
        heapq.heappush(self._alarms, (again, next(self._ticket), unit))

    def _refusals(self, keys: tuple[Key, ...], reason: str, message: str) -> list[Step]:
        """The conditions of pods that do not say this yet."""
        steps: list[Step] = []
        for key in keys:
            waiting = self._waiting[key]
            if waiting.reported != (reason, message):
                waiting.reported = (reason, message)
                steps.append(Refuse(waiting.pod, reason, message))
        return steps


def _said(pod: Object) -> tuple[str, str]:
    """What the pod says itself of why it waits."""
    condition = Pod.of(pod).condition("PodScheduled")
    return (condition.reason, condition.message) if condition else ("", "")
