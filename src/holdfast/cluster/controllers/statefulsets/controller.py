"""Stateful sets: replicas with an ordinal each, made, updated and stopped in order.

Replicas are created from the lowest ordinal and deleted from the highest, one after the other
(`OrderedReady`), or all at once (`Parallel`).  An update stops the replica with the
highest ordinal that is of another revision and waits for its successor; a replica
that does not become ready holds everything after it, the update to a repaired
template too, as Kubernetes has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Pod
from holdfast.client.resources import CLAIMS, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from holdfast.cluster.controllers import revisions
from holdfast.cluster.controllers.replica_types import candidates
from holdfast.cluster.controllers.revisions import Revision
from holdfast.cluster.controllers.statefulsets import identities
from holdfast.cluster.controllers.statefulsets.steps import Scene, revision_of, running, steps
from holdfast.kernel.outcomes import Outcome, soonest, until
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime import adoption
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import Decision

_NAMESAKES: Final = "namesakes"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A set, and what it selects or has; not all of the pods and revisions need be its own.

    claims  those that its replicas use, by name
    taken   names of revisions that begin as its own would
    """

    set: Mapping[str, Any]
    pods: tuple[Pod, ...] = ()
    revisions: tuple[Revision, ...] = ()
    claims: Mapping[str, Meta] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()


# --- observe


def observe(view: View, key: Key) -> World | None:
    found = view.get(STATEFUL_SETS, key)
    if found is None:
        return None
    owner = found.wire()
    selector = LabelSelector.from_object(owner["spec"]["selector"])
    pods = tuple(map(Pod.of, candidates(view, PODS, owner=found.meta, selector=selector)))
    kept = candidates(view, CONTROLLER_REVISIONS, owner=found.meta, selector=selector)
    namesakes = view.indexed(CONTROLLER_REVISIONS, _NAMESAKES, f"{key.namespace}/{key.name}")
    return World(
        set=owner,
        pods=pods,
        revisions=tuple(map(Revision.of, kept)),
        claims=_claims(view, owner, (pod.metadata.name for pod in pods)),
        taken=frozenset(each.meta.name for each in namesakes),
    )


def _claims(view: View, owner: Mapping[str, Any], pods: Iterable[str]) -> dict[str, Meta]:
    meta = owner["metadata"]
    parsed = (identities.ordinal_of(name, meta["name"]) for name in pods)
    used = {ordinal for ordinal in parsed if ordinal is not None}
    ordinals = sorted({*identities.ordinals(owner), *used})
    names = (name for ordinal in ordinals for name in identities.claim_names(owner, ordinal))
    found = (view.get(CLAIMS, Key(meta["namespace"], name)) for name in names)
    return {claim.meta.name: claim.meta for claim in found if claim is not None}


def _namesake(revision: Object) -> Iterable[str]:
    yield f"{revision.meta.namespace}/{revision.meta.name.rpartition('-')[0]}"


def _set_of_orphan(pod: Object, view: View) -> Iterable[Key]:
    """A pod without a controller may be one to adopt."""
    stem = pod.meta.name.rpartition("-")[0]
    if stem and pod.controller is None:
        yield Key(pod.meta.namespace, stem)


def _sets_of_claim(claim: Object, view: View) -> Iterable[Key]:
    """``data-my-web-0`` may be a claim of ``web`` or of ``my-web``."""
    stem = claim.meta.name.rpartition("-")[0]
    while stem := stem.partition("-")[2]:
        key = Key(claim.meta.namespace, stem)
        if view.get(STATEFUL_SETS, key) is not None:
            yield key


# --- decide


def decide(world: World, now: datetime) -> Decision:
    owner, name = world.set, world.set["metadata"]["name"]
    selector = LabelSelector.from_object(owner["spec"]["selector"])

    def is_revision(meta: Meta) -> bool:
        return selector.matches(meta.labels)

    def is_replica(meta: Meta) -> bool:
        return selector.matches(meta.labels) and identities.ordinal_of(meta.name, name) is not None

    claimed = adoption.claim(owner, (pod.metadata for pod in world.pods), resource=PODS, fits=is_replica)
    kept = adoption.claim(
        owner, (each.metadata for each in world.revisions), resource=CONTROLLER_REVISIONS, fits=is_revision
    )
    pods = [pod for pod in world.pods if pod.metadata.uid in claimed.uids]
    plan = _plan(world, pods, history=[each for each in world.revisions if each.metadata.uid in kept.uids])
    scene = Scene.of(owner, pods, claims=world.claims, plan=plan, now=now)
    if owner["metadata"].get("deletionTimestamp"):
        return Decision(status=_status(scene))
    taken = list(steps(scene))
    return Decision(
        writes=(*claimed.writes, *kept.writes, *plan.writes, *(write for step in taken for write in step.writes)),
        status=_status(scene, replaced=Counter(step.replaces for step in taken)),
        notices=tuple(notice for step in taken for notice in step.notices),
        outcome=_outcome(scene),
    )


def _plan(world: World, pods: Iterable[Pod], *, history: Iterable[Revision]) -> revisions.Plan:
    status = world.set.get("status") or {}
    return revisions.plan(
        world.set,
        history,
        current=status.get("currentRevision", ""),
        collisions=status.get("collisionCount") or 0,
        taken=world.taken,
        live=[revision_of(pod) for pod in pods],
        limit=world.set["spec"].get("revisionHistoryLimit"),
    )


def _status(scene: Scene, *, replaced: Mapping[str, int] | None = None) -> dict[str, Any]:
    """What the set says of itself; pods that this pass stops for the update no longer count as current."""
    plan, owner, pods = scene.plan, scene.owner, scene.pods
    ready = [pod for pod in pods if running(pod) and pod.ready]
    staying = Counter(revision_of(pod) for pod in pods if not pod.deleting)
    current, updated = plan.current.name, staying[plan.update.name]
    remaining = staying[current] - (replaced or {}).get(current, 0)
    rolling = (owner["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate"
    if rolling and updated == len(ready) == len(pods) == len(scene.places):
        current, remaining = plan.update.name, updated
    counts = {"readyReplicas": len(ready), "currentReplicas": remaining, "updatedReplicas": updated}
    return {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "replicas": len(pods),
        **{name: number for name, number in counts.items() if number},
        "availableReplicas": sum(pod.available(scene.min_ready, scene.now) for pod in ready),
        "currentRevision": current,
        "updateRevision": plan.update.name,
        "collisionCount": plan.collisions,
    }


def _outcome(scene: Scene) -> Outcome:
    """Pods that are ready become available by the passing of time alone."""
    waits = ((pod.metadata.name, pod.available_at(scene.min_ready)) for pod in scene.pods if running(pod))
    return soonest(
        until(at, now=scene.now, because=f"{name} becomes available")
        for name, at in waits
        if at is not None and at > scene.now
    )


CONTROLLER: Final = Controller(
    name="statefulset",
    resource=STATEFUL_SETS,
    owns=(PODS, CONTROLLER_REVISIONS),
    watches=(Watch(resource=PODS, keys=_set_of_orphan), Watch(resource=CLAIMS, keys=_sets_of_claim)),
    indexes=(Index(resource=CONTROLLER_REVISIONS, name=_NAMESAKES, values=_namesake),),
    observe=observe,
    decide=decide,
)
