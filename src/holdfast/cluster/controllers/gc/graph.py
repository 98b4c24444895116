"""The graph of owners, and what becomes of an object whose owners are deleted.

`Graph` follows ownership by UID.  Every object that is created, changed or deleted goes
in, and the objects that may have lost an owner by that come out; this costs as much as
the change touches, however large the graph is.  An owner that has not
been seen is no node: its dependents wait under its UID.

`action_for` decides about one object from the standing of its owners.  There are three
ways to delete an owner, and two of them are a finalizer on it while they last:

    Background   the owner is deleted at once; dependents without another owner follow
    Foreground   ``foregroundDeletion``: dependents that block the owner are deleted first
    Orphan       ``orphan``: dependents lose the reference, and the owner is deleted alone

Pure: the graph may lag behind the API, so the collector asks the API whether an owner
is really gone.  This module must not know how.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from holdfast.client.objects import Object, OwnerReference
from holdfast.client.protocols import Propagation
from holdfast.client.resources import Resource

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

REMEMBERED: Final = 500
"""How many deleted objects without dependents are remembered, for dependents that are created late."""


def in_foreground(obj: Object) -> bool:
    """Whether an object is being deleted and waits for the deletion of its dependents."""
    return obj.deleting and FOREGROUND in obj.meta.finalizers


def orphaning(obj: Object) -> bool:
    """Whether an object is being deleted and waits for its dependents to lose their reference."""
    return obj.deleting and ORPHAN in obj.meta.finalizers


# --- the graph


@dataclass(frozen=True, slots=True)
class Doubts:
    """What a change makes worth a look.

    examine  objects by UID: they may have to go, or have something to finish before they go
    strays   objects that name an owner which lives in another namespace, with the references that do
    """

    examine: tuple[str, ...] = ()
    strays: tuple[tuple[Object, OwnerReference], ...] = ()


class Graph:
    """All objects by UID, with their owners and dependents, and the deleted objects that still have dependents."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # an ordered set: the same changes give the same order
        self._deleted: dict[str, Object] = {}
        self._deleted_alone: dict[str, None] = {}
        """The deleted objects without dependents, oldest first."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, uid: str) -> Object | None:
        return self._objects.get(uid)

    def deleted(self, uid: str) -> Object | None:
        """The last state of a deleted object: for as long as it has dependents, and then among the last few."""
        return self._deleted.get(uid)

    def of(self, resource: Resource) -> tuple[str, ...]:
        """The objects of a resource, by UID; all are looked through, so this is for the end of a kind."""
        return tuple(uid for uid, obj in self._objects.items() if obj.resource == resource)

    def dependents(self, uid: str) -> tuple[Object, ...]:
        """Every object that names the owner with `uid`."""
        return tuple(self._objects[each] for each in self._dependents.get(uid, ()))

    def blocking(self, uid: str) -> tuple[Object, ...]:
        """The dependents that must be deleted before their owner; an object never waits for itself."""
        return tuple(
            each
            for each in self.dependents(uid)
            if each.uid != uid and any(owner.uid == uid and owner.block_owner_deletion for owner in owners_of(each))
        )

    def circular(self, uid: str) -> bool:
        """Whether an object waits for one that waits for it: a dependent of it is in the foreground itself."""
        return any(in_foreground(each) for each in self.dependents(uid) if each.uid != uid)

    def put(self, obj: Object) -> Doubts:
        """An object is new, or has changed."""
        old = self._objects.get(obj.uid)
        before = {} if old is None else {owner.uid: owner for owner in owners_of(old)}
        after = {owner.uid: owner for owner in owners_of(obj)}
        joined = after.keys() - before.keys()
        self._objects[obj.uid] = obj
        self._deleted.pop(obj.uid, None)
        self._deleted_alone.pop(obj.uid, None)
        for uid in joined:
            self._dependents.setdefault(uid, {})[obj.uid] = None
            self._deleted_alone.pop(uid, None)
        self._unlink(obj.uid, before.keys() - after.keys())
        begins_to_wait = in_foreground(obj) and not (old and in_foreground(old))
        begins_to_orphan = orphaning(obj) and not (old and orphaning(old))
        wrong = (*self._misnamed(obj, joined), *(self._misnaming(obj) if old is None else ()))
        return Doubts(
            examine=_unique(
                (
                    *(each.uid for each, _, _ in wrong),
                    *([obj.uid] if self._doubtful(joined) else ()),
                    *self._unblocked(before, after),
                    *(self._dependents.get(obj.uid, ()) if begins_to_wait else ()),
                    *([obj.uid] if begins_to_wait or begins_to_orphan else ()),
                )
            ),
            strays=tuple((each, reference) for each, reference, owner in wrong if not _reachable(each, owner)),
        )

    def remove(self, uid: str) -> Doubts:
        """An object was deleted."""
        obj = self._objects.get(uid)
        doubts = self.forget(uid)
        if obj is not None:
            self._deleted[uid] = obj
            if uid not in self._dependents:
                self._remember_alone(uid)
        return doubts

    def forget(self, uid: str) -> Doubts:
        """An object is no longer seen, which does not say that it was deleted."""
        obj = self._objects.get(uid)
        if obj is None:
            return Doubts()
        owners = dict.fromkeys(owner.uid for owner in owners_of(obj))
        self._unlink(uid, owners)
        del self._objects[uid]
        freed = [owner for owner in owners if self._in_foreground(owner)]
        return Doubts(examine=_unique((*self._dependents.get(uid, ()), *freed)))

    def _unlink(self, uid: str, owners: Iterable[str]) -> None:
        for owner in owners:
            dependents = self._dependents[owner]
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner]
                if owner in self._deleted:
                    self._remember_alone(owner)

    def _remember_alone(self, uid: str) -> None:
        self._deleted_alone[uid] = None
        if len(self._deleted_alone) > REMEMBERED:
            oldest = next(iter(self._deleted_alone))
            del self._deleted_alone[oldest], self._deleted[oldest]

    def _doubtful(self, owners: Iterable[str]) -> bool:
        """Whether one of these new owners is not seen, or takes its dependents along."""
        return any(uid not in self._objects or self._in_foreground(uid) for uid in owners)

    def _unblocked(self, before: Mapping[str, OwnerReference], after: Mapping[str, OwnerReference]) -> Iterator[str]:
        """Owners that wait for their dependents, and no longer for this one."""
        for uid, owner in before.items():
            freed = owner.block_owner_deletion and not (uid in after and after[uid].block_owner_deletion)
            if freed and self._in_foreground(uid):
                yield uid

    def _misnamed(self, obj: Object, uids: Collection[str]) -> Iterator[tuple[Object, OwnerReference, Object]]:
        """The references of an object to these owners that say another place than where the owner is seen."""
        for reference in owners_of(obj):
            owner = self._objects.get(reference.uid) if reference.uid in uids else None
            if owner is not None and not refers(obj, reference, owner):
                yield obj, reference, owner

    def _misnaming(self, owner: Object) -> Iterator[tuple[Object, OwnerReference, Object]]:
        """Those that named an owner before it was seen, and named it wrongly."""
        for each in self.dependents(owner.uid):
            if each.uid != owner.uid:
                yield from self._misnamed(each, {owner.uid})

    def _in_foreground(self, uid: str) -> bool:
        obj = self._objects.get(uid)
        return obj is not None and in_foreground(obj)


def owners_of(obj: Object) -> tuple[OwnerReference, ...]:
    return obj.meta.owner_references


def refers(dependent: Object, reference: OwnerReference, owner: Object) -> bool:
    """Whether a reference with the owner's UID also says where the owner is: its kind, its name, its namespace."""
    return (
        reference.name == owner.meta.name
        and reference.kind == owner.resource.kind
        and reference.group == owner.resource.group
        and _reachable(dependent, owner)
    )


def _reachable(dependent: Object, owner: Object) -> bool:
    """Whether a dependent can name the owner: one of its own namespace, or one outside all of them."""
    return owner.meta.namespace in ("", dependent.meta.namespace)


def _unique(uids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(uids))


# --- the verdict about one object


class Standing(Enum):
    """How an owner stands."""

    SOLID = "it exists, and keeps its dependents"
    GOING = "it is being deleted and waits for its dependents to go first"
    ABSENT = "it does not exist"


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Detach:
    """Forget the owners with these UIDs: the object has another one."""

    owners: frozenset[str]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the object.  `unblock` first has it block no owner, for one of them waits for it in a circle."""

    propagation: Propagation
    unblock: bool = False


Action: TypeAlias = Leave | Detach | Remove


def action_for(obj: Object, owners: Mapping[str, Standing], *, dependents: bool, circular: bool) -> Action:
    """What becomes of an object with such owners; `dependents` says whether it has any itself."""
    if not owners:
        return Leave()
    lost = frozenset(uid for uid, standing in owners.items() if standing is not Standing.SOLID)
    if len(lost) < len(owners):
        # An owner that waits is let go as well: it would wait for an object that stays.
        return Detach(lost) if lost else Leave()
    if Standing.GOING in owners.values() and dependents:
        return Remove("Foreground", unblock=circular)
    if ORPHAN in obj.meta.finalizers:
        return Remove("Orphan")
    return Remove("Foreground" if FOREGROUND in obj.meta.finalizers else "Background")


# --- the patches


def without_owners(obj: Object, uids: Iterable[str]) -> dict[str, Any]:
    """The patch by which an object forgets owners, on condition that it has not changed."""
    gone = frozenset(uids)
    return _patch(obj, ownerReferences=[_wire(owner) for owner in owners_of(obj) if owner.uid not in gone] or None)


def without_blocking(obj: Object) -> dict[str, Any]:
    """The patch by which an object blocks the deletion of no owner, on condition that it has not changed."""
    return _patch(obj, ownerReferences=[_wire(owner) | {"blockOwnerDeletion": False} for owner in owners_of(obj)])


def without_finalizer(obj: Object, finalizer: str) -> dict[str, Any]:
    """The patch that removes `finalizer`, on condition that the object has not changed."""
    return _patch(obj, finalizers=[each for each in obj.meta.finalizers if each != finalizer] or None)


def _patch(obj: Object, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"uid": obj.uid, "resourceVersion": obj.version, **metadata}}


def _wire(owner: OwnerReference) -> dict[str, Any]:
    wire = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    flags = {"controller": owner.controller, "blockOwnerDeletion": owner.block_owner_deletion}
    return wire | {name: flag for name, flag in flags.items() if flag is not None}


# --- messages


def stray_message(dependent: Object, reference: OwnerReference) -> str:
    """What is said of an owner reference into another namespace, or from outside all of them."""
    named = f"{reference.api_version}/{reference.kind}, namespace: {dependent.meta.namespace}, name: {reference.name}"
    return f'ownerRef [{named}, uid: {reference.uid}] does not exist in namespace "{dependent.meta.namespace}"'
