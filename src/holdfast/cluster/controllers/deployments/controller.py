"""Deployments: one ReplicaSet for each template, and the way from the old ones to the newest.

A pass does one of three things: it follows a changed number of replicas (also of a paused
Deployment), or it goes on with a rollout, or it only counts (of one that is being deleted).
What each ReplicaSet is to be is decided by `revisions` and `scaling`, what the
Deployment says by `status`; this module puts them in order and turns them into writes.
It must not know pods, but for whether old ones still run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from holdfast.cluster.controllers.deployments import revisions, scaling
from holdfast.cluster.controllers.deployments import status as statuses
from holdfast.cluster.controllers.deployments.scaling import Bounds, Step
from holdfast.cluster.controllers.replica_types import (
    Deployment,
    DeploymentStatus,
    Fleet,
    ReplicaSet,
    candidates,
    identity,
)
from holdfast.kernel.outcomes import Failure
from holdfast.meta.objects import Key
from holdfast.runtime.adoption import claim
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import Create, Decision, Delete, Notice, Patch, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    sets   the ReplicaSets that it may have a claim on
    taken  a ReplicaSet of another owner has the name that the next one would get
    busy   where the strategy is to recreate: the UIDs of ReplicaSets with pods that have not ended
    """

    deployment: Deployment
    sets: tuple[ReplicaSet, ...] = ()
    taken: bool = False
    busy: frozenset[str] = frozenset()


def observe(view: View, key: Key) -> World | None:
    found = view.get(DEPLOYMENTS, key)
    if found is None:
        return None
    deployment = Deployment.of(found)
    sets = tuple(
        ReplicaSet.of(obj)
        for obj in candidates(view, REPLICA_SETS, owner=deployment.metadata, selector=deployment.selector)
    )
    name = revisions.name_of_new(deployment)
    busy = frozenset() if deployment.rolling else frozenset(_busy(view, sets))
    return World(
        deployment=deployment,
        sets=sets,
        taken=view.get(REPLICA_SETS, Key(key.namespace, name)) is not None,
        busy=busy,
    )


def decide(world: World, now: datetime) -> Decision:
    deployment = world.deployment
    claimed = claim(
        identity(DEPLOYMENTS, deployment.metadata),
        (each.metadata for each in world.sets),
        resource=REPLICA_SETS,
        fits=lambda meta: deployment.selector.matches(meta.labels),
    )
    mine = [each for each in world.sets if each.uid in claimed.uids]
    seen = revisions.fleet_of(deployment, mine)
    if deployment.deleting:
        return Decision(status=statuses.counted(deployment, seen, now=now).wire())
    fleet = revisions.refreshed(deployment, seen)
    if fleet.new is not None:
        number = fleet.new.metadata.annotations[revisions.REVISION]
        if deployment.metadata.annotations.get(revisions.REVISION) != number:
            # A pass of its own: a status is written for the version that was seen, and this makes another one.
            numbered = _numbered(deployment, number)
            return Decision(writes=(*claimed.writes, *_resized(deployment, seen, fleet), numbered))
        deployment = statuses.noting_found(deployment, fleet.new, now)
    deployment = statuses.noting_pause(deployment, now)
    return _Pass(deployment=deployment, seen=seen, fleet=fleet, claims=claimed.writes, world=world, now=now).decided()


def explain(world: World, failure: Failure, now: datetime) -> dict[str, Any] | None:
    """What is said when the new ReplicaSet could not be made; of other failures nothing is, they are tried again."""
    made = next((write.manifest for write in decide(world, now).writes if isinstance(write, Create)), None)
    if made is None:
        return None
    return statuses.noting_failed(world.deployment, made["metadata"]["name"], failure.message, now=now).status.wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """
    seen    the ReplicaSets as they are
    fleet   the same with the new one numbered and annotated as it should be
    claims  what is adopted and released
    """

    deployment: Deployment
    seen: Fleet
    fleet: Fleet
    claims: tuple[Write, ...]
    world: World
    now: datetime

    def decided(self) -> Decision:
        deployment, fleet = self.deployment, self.fleet
        if deployment.spec.paused:
            gone = revisions.outdated(deployment, fleet.old)
            return self._counted(scaling.rescaled(deployment, fleet), gone)
        if scaling.is_rescaled(deployment, fleet):
            steps = scaling.rescaled(deployment, fleet)
            if steps:
                return self._counted(steps)
        return self._rolling() if deployment.rolling else self._recreating()

    def _rolling(self) -> Decision:
        if self.fleet.new is None:
            return self._with_new()
        return self._rolled_out(scaling.rolled(self.deployment, self.fleet))

    def _recreating(self) -> Decision:
        deployment, fleet = self.deployment, self.fleet
        if fleet.active_old:
            return self._progressed(scaling.emptied(fleet.active_old))
        if self._old_pods_run():
            return self._progressed(())
        if fleet.new is None:
            return self._with_new()
        return self._rolled_out(scaling.recreated(deployment, fleet))

    def _old_pods_run(self) -> bool:
        return any(each.status.replicas > 0 or each.uid in self.world.busy for each in self.fleet.old)

    # --- endings

    def _with_new(self) -> Decision:
        """Make the ReplicaSet for the template, and go on with it as if it were there."""
        deployment, fleet = self.deployment, self.fleet
        if self.world.taken:
            collisions = (deployment.status.collision_count or 0) + 1
            status = msgspec.structs.replace(deployment.status, collision_count=collisions)
            return Decision(writes=self.claims, status=status.wire())
        made = revisions.new_set(deployment, fleet)
        made = made.with_replicas(scaling.size_of_new(deployment, Fleet(new=made, old=fleet.old)))
        made = _sized(made, Bounds.of(deployment))
        begun = msgspec.structs.replace(fleet, new=made)
        steps = scaling.rolled(deployment, begun) if deployment.rolling else []
        created = revisions.created(deployment, made)
        first = Step(made.name, 0, made.spec.replicas)
        noted = statuses.noting_created(deployment, made, self.now)
        return self._ended(
            noted,
            statuses.progressed(noted, begun.scaled(_sizes(steps)), now=self.now),
            writes=(*self.claims, created, *self._writes(steps)),
            steps=(first, *steps),
        )

    def _rolled_out(self, steps: Sequence[Step]) -> Decision:
        """Go on with a rollout; when it is complete, delete old revisions beyond the limit."""
        deployment = self.deployment
        done = not steps and statuses.is_complete(deployment, deployment.status)
        return self._progressed(steps, revisions.outdated(deployment, self.fleet.old) if done else ())

    def _progressed(self, steps: Sequence[Step], gone: Sequence[Delete] = ()) -> Decision:
        status = statuses.progressed(self.deployment, self.fleet.scaled(_sizes(steps)), now=self.now)
        writes = (*self.claims, *self._writes(steps), *gone)
        return self._ended(self.deployment, status, writes=writes, steps=steps)

    def _counted(self, steps: Sequence[Step], gone: Sequence[Delete] = ()) -> Decision:
        """Another number of replicas is no progress of a rollout, and no want of it."""
        status = statuses.counted(self.deployment, self.fleet.scaled(_sizes(steps)), now=self.now)
        writes = (*self.claims, *self._writes(steps), *gone)
        return Decision(writes=writes, status=status.wire(), notices=_notices(steps))

    def _ended(
        self, deployment: Deployment, status: DeploymentStatus, *, writes: tuple[Write, ...], steps: Sequence[Step]
    ) -> Decision:
        outcome = statuses.patience(deployment, status, now=self.now)
        return Decision(writes=writes, status=status.wire(), notices=_notices(steps), outcome=outcome)

    def _writes(self, steps: Sequence[Step]) -> list[Patch]:
        """One patch for each ReplicaSet that changes, however many steps it takes."""
        bounds, touched = Bounds.of(self.deployment), {step.name for step in steps}
        resized = [
            _sized(each, bounds) if each.name in touched else each for each in self.fleet.scaled(_sizes(steps)).all
        ]
        wanted = Fleet(new=None if self.fleet.new is None else resized.pop(), old=tuple(resized))
        return _resized(self.deployment, self.seen, wanted)


# --- writes


def _sizes(steps: Iterable[Step]) -> dict[str, int]:
    return {step.name: step.after for step in steps}


def _notices(steps: Iterable[Step]) -> tuple[Notice, ...]:
    return tuple(Notice(reason="ScalingReplicaSet", message=str(step)) for step in steps if step.moves)


def _sized(replica_set: ReplicaSet, bounds: Bounds) -> ReplicaSet:
    """With the record of the whole that it was sized for."""
    marks = {revisions.DESIRED: str(bounds.replicas), revisions.MAXIMUM: str(bounds.most)}
    meta = replica_set.metadata
    return msgspec.structs.replace(
        replica_set, metadata=msgspec.structs.replace(meta, annotations={**meta.annotations, **marks})
    )


def _resized(deployment: Deployment, seen: Fleet, wanted: Fleet) -> list[Patch]:
    """What differs between the ReplicaSets as they are and as they should be."""
    return [
        Patch(
            because=f"Deployment {deployment.name} goes on",
            resource=REPLICA_SETS,
            key=before.key,
            patch=patch,
            uid=before.uid,
            # A size is right for the pods that were counted, and for no others.
            version=before.metadata.resource_version,
            wave=1,
        )
        for before, after in zip(seen.all, wanted.all, strict=True)
        if (patch := _difference(before, after))
    ]


def _difference(before: ReplicaSet, after: ReplicaSet) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    had = before.metadata.annotations
    marks = {name: text for name, text in after.metadata.annotations.items() if had.get(name) != text}
    if marks:
        patch["metadata"] = {"annotations": marks}
    spec: dict[str, int] = {}
    if before.spec.replicas != after.spec.replicas:
        spec["replicas"] = after.spec.replicas
    if before.spec.min_ready_seconds != after.spec.min_ready_seconds:
        spec["minReadySeconds"] = after.spec.min_ready_seconds
    if spec:
        patch["spec"] = spec
    return patch


def _numbered(deployment: Deployment, number: str) -> Patch:
    return Patch(
        because=f"its template is revision {number}",
        resource=DEPLOYMENTS,
        key=deployment.key,
        patch={"metadata": {"annotations": {revisions.REVISION: number}}},
        uid=deployment.uid,
        wave=2,
    )


# --- what is seen


def _busy(view: View, sets: Iterable[ReplicaSet]) -> Iterator[str]:
    for each in sets:
        if any(not Pod.of(obj).finished for obj in view.owned(PODS, each.uid)):
            yield each.uid


def adopters(obj: Object, view: View) -> Iterator[Key]:
    """The Deployments that may adopt a ReplicaSet without a controller."""
    if obj.controller is not None or obj.deleting:
        return
    for found in view.list(DEPLOYMENTS, namespace=obj.meta.namespace):
        if Deployment.of(found).selector.matches(obj.meta.labels):
            yield found.key


def waiting_for(obj: Object, view: View) -> Iterator[Key]:
    """The Deployment that recreates, and may wait for this pod to be gone; no other looks at pods."""
    owner = obj.controller
    if owner is None or owner.kind != REPLICA_SETS.kind:
        return
    replica_set = view.get(REPLICA_SETS, Key(obj.meta.namespace, owner.name))
    above = None if replica_set is None else replica_set.controller
    if above is None or above.kind != DEPLOYMENTS.kind:
        return
    found = view.get(DEPLOYMENTS, Key(obj.meta.namespace, above.name))
    if found is not None and not Deployment.of(found).rolling:
        yield found.key


CONTROLLER: Final = Controller(
    name="deployment",
    resource=DEPLOYMENTS,
    owns=(REPLICA_SETS,),
    watches=(Watch(resource=REPLICA_SETS, keys=adopters), Watch(resource=PODS, keys=waiting_for)),
    observe=observe,
    decide=decide,
    explain=explain,
)
