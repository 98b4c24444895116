"""The steps of a stateful set: what each replica needs, what is too many, what is to be updated, in this order.

Where the set is ordered, the first step that waits ends the run.  Pure; this module
must not know where pods come from, nor what the status says of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.client.objects import Meta
from holdfast.client.pods import Pod
from holdfast.client.resources import CLAIMS, PODS
from holdfast.cluster.controllers import revisions
from holdfast.cluster.controllers.revisions import Revision
from holdfast.cluster.controllers.statefulsets import identities
from holdfast.meta.amounts import resolve
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create, Delete, Notice, Patch, Write

_CLAIMS_WAVE: Final = 1
_PODS_WAVE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One ordinal of a set, and the pod that fills it."""

    ordinal: int
    name: str
    pod: Pod | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A set with its pods in their places.

    places     every ordinal that the set should have, from the lowest
    condemned  pods that are too many, from the highest ordinal
    claims     those that its pods use, by name
    """

    owner: Mapping[str, Any]
    places: tuple[Place, ...]
    condemned: tuple[Pod, ...]
    claims: Mapping[str, Meta]
    plan: revisions.Plan
    now: datetime

    @classmethod
    def of(
        cls,
        owner: Mapping[str, Any],
        pods: list[Pod],
        *,
        claims: Mapping[str, Meta],
        plan: revisions.Plan,
        now: datetime,
    ) -> Scene:
        name = owner["metadata"]["name"]
        by_ordinal = {identities.ordinal_of(pod.metadata.name, name): pod for pod in pods}
        places = tuple(
            Place(ordinal=ordinal, name=f"{name}-{ordinal}", pod=by_ordinal.pop(ordinal, None))
            for ordinal in identities.ordinals(owner)
        )
        beyond = sorted((ordinal for ordinal in by_ordinal if ordinal is not None), reverse=True)
        condemned = tuple(by_ordinal[ordinal] for ordinal in beyond)
        return cls(owner=owner, places=places, condemned=condemned, claims=claims, plan=plan, now=now)

    @property
    def ordered(self) -> bool:
        return bool(self.owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")

    @property
    def min_ready(self) -> timedelta:
        return timedelta(seconds=self.owner["spec"].get("minReadySeconds") or 0)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return (*(place.pod for place in self.places if place.pod is not None), *self.condemned)

    def well(self, pod: Pod | None) -> bool:
        """It is there to stay, runs, and has been ready for long enough."""
        return pod is not None and not pod.deleting and running(pod) and pod.available(self.min_ready, self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done about one replica.

    waits     nothing after it is done in a set that is ordered
    replaces  the revision of the pod that is stopped for the update, if it is
    """

    writes: tuple[Write, ...] = ()
    notices: tuple[Notice, ...] = ()
    waits: bool = False
    replaces: str = ""


_WAIT: Final = Step(waits=True)


def running(pod: Pod) -> bool:
    return pod.status.phase == "Running"


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(identities.REVISION_LABEL, "")


def steps(scene: Scene) -> Iterator[Step]:
    for place in scene.places:
        step = _kept(scene, place)
        yield step
        if step.waits and scene.ordered:
            return
    for pod in scene.condemned:
        yield Step(writes=_owned_claims(scene, pod, leaving=True))
    lowest_ill = next((pod for pod in reversed(scene.condemned) if not scene.well(pod)), None)
    for pod in scene.condemned:
        step = _let_go(scene, pod, ill=pod is lowest_ill)
        yield step
        if step.waits and scene.ordered:
            return
    strategy = scene.owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") != "OnDelete":
        yield from _updates(scene, strategy.get("rollingUpdate") or {})


# --- what a replica needs


def _kept(scene: Scene, place: Place) -> Step:
    pod = place.pod
    if pod is None:
        return _made(scene, place)
    if pod.finished:
        return _WAIT if pod.deleting else _stopped(scene, pod, because=f"it ended as {pod.status.phase}")
    owned = _owned_claims(scene, pod)
    if pod.status.phase == "Pending":
        missing, notices = _missing_claims(scene, place)
        if missing or owned or scene.ordered:
            return Step(writes=missing + owned, notices=notices, waits=True)
    elif scene.ordered and not scene.well(pod):
        return _WAIT
    repairs = _identity(pod, place.ordinal) + owned
    return Step(writes=repairs, notices=(_notice(scene, "update", place.name),) if repairs else ())


def _made(scene: Scene, place: Place) -> Step:
    owner = scene.owner
    names = identities.claim_names(owner, place.ordinal)
    present = [scene.claims[name] for name in names if name in scene.claims]
    left_over = any(identities.is_left_over(claim, place.name) for claim in present)
    if left_over and identities.deletes(owner, "whenScaled"):
        return _WAIT
    going = next((claim.name for claim in present if claim.deletion_timestamp is not None), None)
    if going is not None:
        failed = _notice(scene, "create", place.name, failed=f"pvc {going} is being deleted")
        return Step(notices=(failed,), waits=True)
    revision = _new_revision(scene, place.ordinal)
    pod = Create(
        because=f"ordinal {place.ordinal} has no pod",
        wave=_PODS_WAVE,
        resource=PODS,
        manifest=identities.manifest(owner, revision.template, ordinal=place.ordinal, revision=revision.name),
    )
    claims, notices = _missing_claims(scene, place)
    return Step(writes=(*claims, pod), notices=(*notices, _notice(scene, "create", place.name)), waits=True)


def _new_revision(scene: Scene, ordinal: int) -> Revision:
    """A missing replica is made at the current revision only where the update does not reach."""
    owner, plan = scene.owner, scene.plan
    strategy = owner["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if rolling is not None:
        untouched = rolling.get("partition") or 0
    elif strategy.get("type") == "RollingUpdate":
        untouched = (owner.get("status") or {}).get("currentReplicas", 0)
    else:
        untouched = 0
    return plan.current if ordinal < identities.ordinals(owner).start + untouched else plan.update


def _identity(pod: Pod, ordinal: int) -> tuple[Write, ...]:
    meta = pod.metadata
    if meta.labels.get(identities.NAME_LABEL) == meta.name:
        return ()
    return (
        Patch(
            because="its labels do not say which replica it is",
            resource=PODS,
            key=Key(meta.namespace, meta.name),
            patch={"metadata": {"labels": identities.identity(meta.name, ordinal)}},
            uid=meta.uid,
        ),
    )


def _missing_claims(scene: Scene, place: Place) -> tuple[tuple[Write, ...], tuple[Notice, ...]]:
    because, set_name = f"{place.name} needs it", scene.owner["metadata"]["name"]
    missing = [
        manifest
        for manifest in identities.claim_manifests(scene.owner, place.ordinal)
        if manifest["metadata"]["name"] not in scene.claims
    ]
    writes = (Create(because=because, wave=_CLAIMS_WAVE, resource=CLAIMS, manifest=manifest) for manifest in missing)
    messages = (
        f"create Claim {manifest['metadata']['name']} Pod {place.name} in StatefulSet {set_name} success"
        for manifest in missing
    )
    return tuple(writes), tuple(Notice(reason="SuccessfulCreate", message=message) for message in messages)


def _owned_claims(scene: Scene, pod: Pod, *, leaving: bool = False) -> tuple[Write, ...]:
    """Set the owner of the claims of a pod: the set, the pod, or none, as the policy says."""
    ordinal = identities.ordinal_of(pod.metadata.name, scene.owner["metadata"]["name"])
    assert ordinal is not None, "a replica has an ordinal"
    writes: list[Write] = []
    for name in identities.claim_names(scene.owner, ordinal):
        claim = scene.claims.get(name)
        if claim is None:
            continue
        wanted = identities.owners_wanted(scene.owner, claim, pod=pod.metadata, leaving=leaving)
        if wanted is not None:
            writes.append(
                Patch(
                    because="its owners are not those that the retention policy wants",
                    wave=_CLAIMS_WAVE,
                    resource=CLAIMS,
                    key=Key(claim.namespace, claim.name),
                    patch={"metadata": {"ownerReferences": wanted or None}},
                    uid=claim.uid,
                    version=claim.resource_version,
                )
            )
    return tuple(writes)


# --- what goes


def _let_go(scene: Scene, pod: Pod, *, ill: bool) -> Step:
    """Stop a pod that is too many; in order, only one that is well, or the lowest of those that are not."""
    if pod.deleting or (scene.ordered and not scene.well(pod) and not ill):
        return _WAIT
    return _stopped(scene, pod, because="the set has more replicas than it should")


def _updates(scene: Scene, rolling: Mapping[str, Any]) -> Iterator[Step]:
    """Stop pods of other revisions, from the highest ordinal down to the partition."""
    reached = scene.places[rolling.get("partition") or 0 :][::-1]
    if "maxUnavailable" in rolling:
        allowed = max(resolve(rolling["maxUnavailable"], len(scene.places), round="down"), 1)
        free = allowed - sum(not scene.well(place.pod) for place in scene.places)
        old = [place.pod for place in reached if place.pod is not None and _is_old(scene, place.pod)]
        yield from (_replaced(scene, pod) for pod in old[: max(free, 0)])
        return
    for place in reached:
        if place.pod is not None and _is_old(scene, place.pod):
            yield _replaced(scene, place.pod)
            return
        if not scene.well(place.pod):
            return


def _is_old(scene: Scene, pod: Pod) -> bool:
    return revision_of(pod) != scene.plan.update.name and not pod.deleting


def _replaced(scene: Scene, pod: Pod) -> Step:
    return _stopped(scene, pod, because=f"it is not of revision {scene.plan.update.name}", replaces=revision_of(pod))


def _stopped(scene: Scene, pod: Pod, *, because: str, replaces: str = "") -> Step:
    meta = pod.metadata
    stop = Delete(because=because, wave=_PODS_WAVE, resource=PODS, key=Key(meta.namespace, meta.name), uid=meta.uid)
    return Step(writes=(stop,), notices=(_notice(scene, "delete", meta.name),), waits=True, replaces=replaces)


def _notice(scene: Scene, verb: str, pod: str, *, failed: str = "") -> Notice:
    subject = f"{verb} Pod {pod} in StatefulSet {scene.owner['metadata']['name']}"
    if failed:
        return Notice(type="Warning", reason=f"Failed{verb.capitalize()}", message=f"{subject} failed error: {failed}")
    return Notice(reason=f"Successful{verb.capitalize()}", message=f"{subject} successful")
