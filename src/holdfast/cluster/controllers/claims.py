"""PersistentVolumeClaims, and the volumes that they are bound to.

For clusters whose nodes are simulated or local processes: a claim gets a volume at once.

- A claim is bound to a volume that was made for it, or else to the smallest free one
  of its class that is large enough.
- Otherwise a volume is made (`pvc-<uid>`, a directory), unless the claim wants none
  (``storageClassName: ""``) or its class is a StorageClass of another provisioner, whose
  work it is.  A class that does not exist as an object is treated like ours, because
  manifests from other clusters name many classes.  A claim without a class gets that
  which is marked as the default one, or else ours, and says so.
- Volumes are available on every node, so no claim waits for a first consumer; ours grow on request.

A claim stays while a pod on a node uses it (``kubernetes.io/pvc-protection``).  The volume
that was made for it is deleted with it, unless its reclaim policy is Retain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import CLAIMS, PODS, VOLUMES
from holdfast.cluster.controllers.claim_types import (
    CLASSES,
    IS_DEFAULT,
    PROVISIONED_BY,
    PROVISIONER,
    Claim,
    StorageClass,
    Volume,
    reference,
    runs,
    used_claims,
)
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import NOTHING, Create, Decision, Delete, Notice, Patch, Write

PROTECTION: Final = "kubernetes.io/pvc-protection"
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_US: Final = {COMPLETED: "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


# --- claims


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A claim and its surroundings.

    named     the volume that the claim names
    reserved  volumes that are kept for it
    free      volumes of its class that are bound to no claim
    storage   its class, if there is an object of that name, or one that is marked as the default
    used      whether a pod on a node uses it
    """

    claim: Object
    named: Object | None = None
    reserved: tuple[Object, ...] = ()
    free: tuple[Object, ...] = ()
    storage: StorageClass | None = None
    used: bool = False


def observe(view: View, key: Key) -> World | None:
    obj = view.get(CLAIMS, key)
    if obj is None:
        return None
    spec = obj.decode(Claim).spec
    return World(
        claim=obj,
        named=view.get(VOLUMES, Key("", spec.volume_name)) if spec.volume_name else None,
        reserved=view.indexed(VOLUMES, BY_CLAIM.name, str(key)),
        free=() if spec.volume_name else view.indexed(VOLUMES, BY_CLASS.name, spec.storage_class_name or ""),
        storage=_class_of(view, spec.storage_class_name),
        used=any(runs(pod) for pod in view.indexed(PODS, BY_USED_CLAIM.name, str(key))),
    )


def decide(world: World, now: datetime, *, directory: str) -> Decision:
    claim = world.claim.decode(Claim)
    if claim.spec.volume_name:
        return _bound(world, claim)
    mine = [each for each in world.reserved if each.decode(Volume).reserved_for(claim.metadata)]
    if mine:
        return Decision(writes=(*_taken(world, mine[0]), _named(world, mine[0].wire())))
    fitting = _fitting(world, claim)
    if fitting is not None:
        return Decision(writes=(*_taken(world, fitting), _named(world, fitting.wire())))
    waits = _waits(world, claim)
    if waits is not None:
        return Decision(status=_status(world, "Pending"), notices=(waits,))
    volume = _made(world, claim, directory)
    made = Create(resource=VOLUMES, manifest=volume, because=f"no free volume meets the claim {world.claim.key}")
    return Decision(writes=(made, _named(world, volume)))


def cleanup(world: World, now: datetime) -> Decision:
    """A claim that is being deleted is removed when no pod uses it, with its volume."""
    if world.used:
        return NOTHING
    return Decision(writes=tuple(_reclaimed(world)), finalized=True)


def _reclaimed(world: World) -> Iterator[Write]:
    for obj in world.reserved:
        volume = obj.decode(Volume)
        wanted = volume.spec.persistent_volume_reclaim_policy == "Delete" and volume.ours
        if wanted and volume.belongs_to(world.claim.meta) and not obj.deleting:
            because = "the claim that it was made for is being deleted"
            yield Delete(resource=VOLUMES, key=obj.key, uid=obj.uid, because=because)


def _bound(world: World, claim: Claim) -> Decision:
    """A claim that names its volume: it has it, or takes it, or must wait."""
    if world.named is None:
        lost = COMPLETED in claim.metadata.annotations
        if not lost:
            return Decision(status=_status(world, "Pending"))
        message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        return Decision(
            status=_status(world, "Lost"),
            notices=(Notice(type="Warning", reason="ClaimLost", message=message),),
        )
    volume = world.named.decode(Volume)
    if volume.belongs_to(claim.metadata):
        if volume.ours and claim.wants > volume.size:
            return Decision(writes=(_grown(world.named, claim),))
        have = {"accessModes": list(volume.spec.access_modes), "capacity": {"storage": volume.spec.capacity.storage}}
        return Decision(status=_status(world, "Bound") | have)
    if volume.spec.claim_ref is None or volume.reserved_for(claim.metadata):
        return Decision(writes=_taken(world, world.named))
    message = f'volume "{volume.metadata.name}" already bound to a different claim.'
    notice = Notice(type="Warning", reason="FailedBinding", message=message)
    return Decision(status=_status(world, "Pending"), notices=(notice,))


def _status(world: World, phase: str) -> dict[str, Any]:
    return {**(world.claim.wire().get("status") or {}), "phase": phase}


def _taken(world: World, volume: Object) -> tuple[Patch, ...]:
    """Keep a volume for the claim, on condition that no other claim has taken it meanwhile."""
    if volume.decode(Volume).belongs_to(world.claim.meta):
        return ()
    patch = {"spec": {"claimRef": reference(world.claim)}}
    because = f"it meets the claim {world.claim.key}"
    return (
        Patch(resource=VOLUMES, key=volume.key, patch=patch, uid=volume.uid, version=volume.version, because=because),
    )


def _named(world: World, volume: Mapping[str, Any]) -> Patch:
    """Have the claim name the volume that is kept for it, and be of its class if it was of none."""
    obj = world.claim
    spec = {"volumeName": volume["metadata"]["name"]}
    if obj.decode(Claim).spec.storage_class_name is None and volume["spec"].get("storageClassName"):
        spec["storageClassName"] = volume["spec"]["storageClassName"]
    return Patch(
        resource=CLAIMS,
        key=obj.key,
        patch={"metadata": {"annotations": BOUND_BY_US}, "spec": spec},
        uid=obj.uid,
        version=obj.version,
        wave=1,
        because="a volume is kept for it",
    )


def _grown(volume: Object, claim: Claim) -> Patch:
    return Patch(
        resource=VOLUMES,
        key=volume.key,
        patch={"spec": {"capacity": {"storage": claim.spec.resources.requests.storage}}},
        uid=volume.uid,
        because="its claim wants more",
    )


def _fitting(world: World, claim: Claim) -> Object | None:
    """The smallest free volume that is large enough and can do what the claim wants."""
    spec = claim.spec
    selector = None if spec.selector is None else LabelSelector.from_object(spec.selector, "spec.selector")
    fitting = []
    for obj in world.free:
        volume = obj.decode(Volume)
        fits = (
            volume.size >= claim.wants
            and set(volume.spec.access_modes) >= set(spec.access_modes)
            and volume.spec.volume_mode == spec.volume_mode
            and (selector is None or selector.matches(obj.meta.labels))
            and not obj.deleting
        )
        if fits:
            fitting.append((volume.size, obj.meta.name, obj))
    return min(fitting, key=lambda each: each[:2])[2] if fitting else None


def _waits(world: World, claim: Claim) -> Notice | None:
    """Why no volume is made for a claim; None if one is."""
    if claim.spec.storage_class_name == "":
        message = "no persistent volumes available for this claim and no storage class is set"
        return Notice(reason="FailedBinding", message=message)
    if world.storage is None or world.storage.provisioner == PROVISIONER:
        return None
    who = f"either by the external provisioner '{world.storage.provisioner}' or manually by the system administrator"
    message = (
        f"Waiting for a volume to be created {who}. If volume creation is delayed, please verify that the provisioner "
        "is running and correctly registered."
    )
    return Notice(reason="ExternalProvisioning", message=message)


def _made(world: World, claim: Claim, directory: str) -> dict[str, Any]:
    """The volume that is made for a claim."""
    name = f"pvc-{claim.metadata.uid}"
    storage = world.storage
    standard = storage.metadata.name if storage is not None else "standard"
    return {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim.spec.resources.requests.storage},
            "accessModes": list(claim.spec.access_modes),
            "claimRef": reference(world.claim),
            "hostPath": {"path": f"{directory}/{name}", "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": "Delete" if storage is None else storage.reclaim_policy,
            "storageClassName": claim.spec.storage_class_name or standard,
            "volumeMode": claim.spec.volume_mode,
        },
    }


# --- volumes


@dataclass(frozen=True, slots=True)
class Kept:
    """A volume, and the claim that it is kept for, if that exists."""

    volume: Object
    claim: Object | None


def observe_volume(view: View, key: Key) -> Kept | None:
    volume = view.get(VOLUMES, key)
    if volume is None or volume.deleting:
        return None
    ref = volume.decode(Volume).spec.claim_ref
    return Kept(volume, None if ref is None else view.get(CLAIMS, Key(ref.namespace, ref.name)))


def decide_volume(world: Kept, now: datetime) -> Decision:
    """A volume says whose it is; what becomes of it when its claim goes is decided with the claim."""
    volume = world.volume.decode(Volume)
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        phase = "Available"
    elif world.claim is not None and world.claim.uid == volume.spec.claim_ref.uid:
        phase = "Bound"
    else:
        phase = "Released"
    return Decision(status={**(world.volume.wire().get("status") or {}), "phase": phase})


# --- who concerns whom


def _class_of(view: View, name: str | None) -> StorageClass | None:
    if name:
        obj = view.get(CLASSES, Key("", name))
        return None if obj is None else obj.decode(StorageClass)
    marked = (each for each in view.list(CLASSES) if each.meta.annotations.get(IS_DEFAULT) == "true")
    return next((each.decode(StorageClass) for each in marked), None)


def _claim_of(volume: Object) -> Iterator[Key]:
    ref = volume.decode(Volume).spec.claim_ref
    if ref is not None:
        yield Key(ref.namespace, ref.name)


def _free_class(volume: Object) -> Iterator[str]:
    spec = volume.decode(Volume).spec
    if spec.claim_ref is None:
        yield spec.storage_class_name


def _waiting_class(claim: Object) -> Iterator[str]:
    spec = claim.decode(Claim).spec
    if not spec.volume_name:
        yield spec.storage_class_name or ""


BY_CLAIM: Final = Index(resource=VOLUMES, name="claimed-by", values=lambda volume: map(str, _claim_of(volume)))
BY_CLASS: Final = Index(resource=VOLUMES, name="free-class", values=_free_class)
BY_USED_CLAIM: Final = Index(resource=PODS, name="used-claim", values=lambda pod: map(str, used_claims(pod)))
BY_WAITING_CLASS: Final = Index(resource=CLAIMS, name="waiting-class", values=_waiting_class)


def _claims_of_volume(volume: Object, view: View) -> Iterator[Key]:
    """The claim that a volume is kept for, or all that may be waiting for one like it."""
    yield from _claim_of(volume)
    for name in _free_class(volume):
        yield from _waiting(view, name)


def _claims_of_class(storage: Object, view: View) -> Iterator[Key]:
    for name in {storage.meta.name, ""}:
        yield from _waiting(view, name)


def _waiting(view: View, name: str) -> Iterator[Key]:
    return (claim.key for claim in view.indexed(CLAIMS, BY_WAITING_CLASS.name, name))


def _claims_of_pod(pod: Object, view: View) -> Iterator[Key]:
    """Only claims that wait to go are concerned by who uses them."""
    for key in used_claims(pod):
        claim = view.get(CLAIMS, key)
        if claim is not None and claim.deleting:
            yield key


def _volume_of_claim(claim: Object, view: View) -> Iterable[Key]:
    return (volume.key for volume in view.indexed(VOLUMES, BY_CLAIM.name, str(claim.key)))


def controllers(directory: str = "/var/lib/holdfast/volumes") -> tuple[Controller[World], Controller[Kept]]:
    """The controllers of claims and volumes; volumes that are made are below `directory` on their node."""
    claims = Controller(
        name="claim",
        resource=CLAIMS,
        watches=(
            Watch(resource=VOLUMES, keys=_claims_of_volume),
            Watch(resource=CLASSES, keys=_claims_of_class),
            Watch(resource=PODS, keys=_claims_of_pod),
        ),
        indexes=(BY_CLAIM, BY_CLASS, BY_USED_CLAIM, BY_WAITING_CLASS),
        observe=observe,
        decide=partial(decide, directory=directory),
        cleanup=cleanup,
        finalizer=PROTECTION,
    )
    volumes = Controller(
        name="volume",
        resource=VOLUMES,
        watches=(Watch(resource=CLAIMS, keys=_volume_of_claim),),
        indexes=(BY_CLAIM,),
        observe=observe_volume,
        decide=decide_volume,
    )
    return claims, volumes
