"""Stores: the objects of one resource in one scope, as they were last seen.

A store has two halves.  `Writer` belongs to the reflector that watches the server, and
is the only way to change anything.  `Store` is what readers get: it finds objects by
key, namespace, label, owner or a declared index without a scan, notifies listeners of
changes, and calls back when a version has been seen.

A change is complete, in all indexes, before a listener is notified of it.  This module
must not know how objects arrive, nor what reads them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from holdfast.client.objects import Object, Undecodable
from holdfast.client.protocols import Listing
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector, Operator, Requirement
from holdfast.runtime.caching.inverted_index import ORDER, InvertedIndex, OrderedIndex
from holdfast.runtime.caching.watermarks import Callback, Watermarks, number
from holdfast.runtime.controllers import Change, Index

_log: Final = logging.getLogger("holdfast.runtime")

Difference: TypeAlias = tuple[Object | None, Object | None]
"""One object as it was and as it is."""


_EMPTY: Final = InvertedIndex()


class UnknownIndex(LookupError):
    """An index that was not declared."""


class Store:
    """The half that reads.  Results are in the order of their keys."""

    def __init__(self, resource: Resource, *, indexes: Iterable[Index] = ()) -> None:
        self.resource = resource
        self._namespaces: dict[str, dict[str, Object]] = {}
        self._length = 0
        self._owners = OrderedIndex()
        self._labels: dict[str, InvertedIndex] = {}
        self._indexes: dict[str, tuple[Index, InvertedIndex]] = {}
        self._listeners: list[Change] = []
        self._marks = Watermarks()
        self._version = 0
        for index in indexes:
            self.require(index)

    # Finding objects.

    def __len__(self) -> int:
        return self._length

    def get(self, key: Key) -> Object | None:
        named = self._namespaces.get(key.namespace)
        return None if named is None else named.get(key.name)

    def list(self, *, namespace: str = "", labels: LabelSelector | None = None) -> tuple[Object, ...]:
        """Objects of a namespace (of all, if none is given) that labels match.

        The smallest group that an index knows is looked through: the namespace, or one requirement's objects.
        """
        requirements = frozenset() if labels is None else labels.requirements
        size, best = self._size(namespace), None
        for requirement in requirements:
            if requirement.operator is Operator.IN and (among := self._count(requirement)) < size:
                size, best = among, requirement
        rest = requirements - {best}
        found = self._among(namespace) if best is None else self._with(best, namespace)
        return _in_order(obj for obj in found if all(other.matches(obj.meta.labels) for other in rest))

    def owned(self, uid: str) -> tuple[Object, ...]:
        """Objects that name the owner with this UID."""
        return self._owners.find(uid)

    def indexed(self, index: str, value: str) -> tuple[Object, ...]:
        """Objects for which the index gives this value."""
        if index not in self._indexes:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise UnknownIndex(
                f"{self.resource} has no index {index!r} (it has: {known}); declare it in the controller's `indexes`"
            )
        return _in_order(self._indexes[index][1].find(value))

    def _size(self, namespace: str) -> int:
        return len(self._namespaces.get(namespace, ())) if namespace else len(self)

    def _count(self, requirement: Requirement) -> int:
        return sum(map(self._labels.get(requirement.key, _EMPTY).count, requirement.values))

    def _among(self, namespace: str) -> Iterator[Object]:
        for each in (namespace,) if namespace else self._namespaces:
            yield from self._namespaces.get(each, {}).values()

    def _with(self, requirement: Requirement, namespace: str) -> Iterator[Object]:
        entries = self._labels.get(requirement.key, _EMPTY)
        for value in requirement.values:
            for obj in entries.find(value):
                if not namespace or obj.meta.namespace == namespace:
                    yield obj

    # Listening to changes.

    def require(self, index: Index) -> None:
        """Keep an index from now on; asking again for the same one changes nothing."""
        held = self._indexes.get(index.name)
        if held is None:
            entries = InvertedIndex()
            for obj in self._among(""):
                _for_each(entries.add, _values(index, obj), obj)
            self._indexes[index.name] = index, entries
        elif held[0] != index:
            raise ValueError(
                f"two indexes of {self.resource} are named {index.name!r} and differ; give one of them another name"
            )

    def subscribe(self, change: Change) -> None:
        """Call `change` for every change, beginning with the objects there are."""
        self._listeners.append(change)
        for obj in _in_order(self._among("")):
            self._notify(change, None, obj)

    def unsubscribe(self, change: Change) -> None:
        """Call `change` no more; without effect if it is not subscribed."""
        if change in self._listeners:
            self._listeners.remove(change)

    @property
    def has_listeners(self) -> bool:
        """Whether there are listeners."""
        return bool(self._listeners)

    def _announce(self, differences: Iterable[Difference]) -> None:
        for old, new in differences:
            for change in tuple(self._listeners):
                self._notify(change, old, new)

    def _notify(self, change: Change, old: Object | None, new: Object | None) -> None:
        try:
            change(old, new)
        except Exception:
            # The other listeners are notified all the same, and the watch goes on.
            _log.exception("a listener failed on a change", extra={"fields": {"object": str(new or old)}})

    # Versions.

    @property
    def version(self) -> int:
        """The highest version that has been processed; 0 before the first, or where versions are no numbers."""
        return self._version

    def seen(self, key: Key, version: str) -> bool:
        """Whether a write of an object, which made this version of it, has been seen."""
        wanted = number(version)
        if wanted is not None:
            return self._version >= wanted
        held = self.get(key)
        return held is not None and held.version == version

    def shows(self, listed: Listing, *, namespace: str = "") -> bool:
        """Whether everything that a listing of a namespace (of all, if none is given) shows has been seen.

        True if the store has processed the listing's version, or if it has each listed object at that version or a
        later one, and no object that had gone by then.
        """
        version = number(listed.version)
        if version is not None and self._version >= version:
            return True
        live = {obj.key: obj for obj in listed.objects}
        gone = (obj for obj in self._among(namespace) if obj.key not in live and not _newer(obj, version))
        return next(gone, None) is None and all(self._has(obj) for obj in listed.objects)

    def _has(self, obj: Object) -> bool:
        """Whether an object has been seen at its version, or a later one."""
        held = self.get(obj.key)
        return held is not None and (_same(held, obj) or _older(obj, held))

    def when_seen(self, key: Key, version: str, callback: Callback) -> None:
        """Call back once a write of an object has been seen; at once, if it has been."""
        wanted = number(version)
        if self.seen(key, version):
            callback()
        elif wanted is not None:
            self._marks.await_version(wanted, callback)
        else:
            self._marks.await_object(key, lambda held: held is None or held.version == version, callback)

    def when_gone(self, key: Key, uid: str, callback: Callback) -> None:
        """Call back once the object with this UID is seen to be gone, or on its way out; at once, if it is."""

        def gone(held: Object | None) -> bool:
            return held is None or held.uid != uid or held.deleting

        if gone(self.get(key)):
            callback()
        else:
            self._marks.await_object(key, gone, callback)


class Writer:
    """The half that writes, of which a store has one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._renewing = False

    @property
    def version(self) -> int:
        """The highest version that has been processed."""
        return self._store.version

    def renew(self) -> None:
        """Take objects of the next listing even where their version is held, because they say more now."""
        self._renewing = True

    def replace(self, objects: Iterable[Object], version: str) -> None:
        """The server has exactly these.  Objects that are not among them were deleted meanwhile.

        A listing is believed even where its version is older than what was seen: the reflector refuses those that
        need not be, and what is left is a server that was restored from a backup, whose past is the truth now.
        """
        store = self._store
        listed = {(obj.meta.namespace, obj.meta.name): obj for obj in objects}
        missing = [obj for obj in store._among("") if (obj.meta.namespace, obj.meta.name) not in listed]
        differences: list[Difference] = [(obj, None) for obj in missing]
        for obj in missing:
            self._drop(obj)
        for obj in listed.values():
            held = store.get(obj.key)
            if held is None or not _same(held, obj):
                differences += self._exchange(held, obj)
            elif self._renewing:
                self._exchange(held, obj)
        self._renewing = False
        went_back = (number(version) or 0) < store._version
        store._version = number(version) or 0
        store._announce(differences)
        for key in store._marks.keys:
            _call(store._marks.see(key, store.get(key)))
        _call(store._marks.forget() if went_back or not store._version else store._marks.reach(store._version))

    def put(self, obj: Object) -> None:
        """An object is new, or another version of one that is held.  One that is older than what is held is ignored."""
        held = self._store.get(obj.key)
        if held is None or not (_same(held, obj) or _older(obj, held)):
            self._store._announce(self._exchange(held, obj))
            _call(self._store._marks.see(obj.key, obj))
        self.advance(obj.version)

    def remove(self, obj: Object) -> None:
        """An object is gone, at the version that it shows."""
        held = self._store.get(obj.key)
        if held is not None and not _older(obj, held):
            self._drop(held)
            self._store._announce([(held, None)])
            _call(self._store._marks.see(obj.key, None))
        self.advance(obj.version)

    def advance(self, version: str) -> None:
        """Everything up to this version has been processed."""
        reached = number(version)
        if reached is not None and reached > self._store._version:
            self._store._version = reached
            _call(self._store._marks.reach(reached))

    def _exchange(self, held: Object | None, obj: Object) -> list[Difference]:
        """Put an object in the place of one that is held; returns what listeners are notified of."""
        if held is None:
            self._keep(obj)
        elif held.meta.labels == obj.meta.labels and held.meta.owner_references == obj.meta.owner_references:
            self._swap(held, obj)
        else:
            self._drop(held)
            self._keep(obj)
        if held is not None and held.uid != obj.uid:
            return [(held, None), (None, obj)]
        return [(held, obj)]

    def _swap(self, held: Object, obj: Object) -> None:
        """Put an object in the place of one that has its labels and owners, as most changes leave them."""
        store, meta = self._store, obj.meta
        store._namespaces[meta.namespace][meta.name] = obj
        for label, value in meta.labels.items():
            store._labels[label].swap(value, held, obj)
        for uid in {owner.uid for owner in meta.owner_references}:
            store._owners.swap(uid, held, obj)
        for index, entries in store._indexes.values():
            before, after = _values(index, held), _values(index, obj)
            for value in before & after:
                entries.swap(value, held, obj)
            for value in before - after:
                entries.remove(value, held)
            for value in after - before:
                entries.add(value, obj)

    def _keep(self, obj: Object) -> None:
        store, meta = self._store, obj.meta
        store._namespaces.setdefault(meta.namespace, {})[meta.name] = obj
        store._length += 1
        for label, value in meta.labels.items():
            entries = store._labels.get(label)
            if entries is None:
                entries = store._labels[label] = InvertedIndex()
            entries.add(value, obj)
        _for_each(store._owners.add, (owner.uid for owner in meta.owner_references), obj)
        for index, entries in store._indexes.values():
            _for_each(entries.add, _values(index, obj), obj)

    def _drop(self, obj: Object) -> None:
        store, meta = self._store, obj.meta
        named = store._namespaces[meta.namespace]
        del named[meta.name]
        store._length -= 1
        if not named:
            del store._namespaces[meta.namespace]
        for label, value in meta.labels.items():
            entries = store._labels[label]
            entries.remove(value, obj)
            if not entries:
                del store._labels[label]
        _for_each(store._owners.remove, (owner.uid for owner in meta.owner_references), obj)
        for index, entries in store._indexes.values():
            _for_each(entries.remove, _values(index, obj), obj)


def _in_order(objects: Iterable[Object]) -> tuple[Object, ...]:
    return tuple(sorted(objects, key=ORDER))


def _same(held: Object, obj: Object) -> bool:
    return held.version == obj.version and held.uid == obj.uid


def _older(obj: Object, held: Object) -> bool:
    """Whether an object is from before what is held; versions of one resource can be compared, whatever the UIDs."""
    new, old = number(obj.version), number(held.version)
    return new is not None and old is not None and new < old


def _newer(obj: Object, version: int | None) -> bool:
    """Whether an object changed after a version."""
    own = number(obj.version)
    return own is not None and version is not None and own > version


def _values(index: Index, obj: Object) -> frozenset[str]:
    try:
        return frozenset(index.values(obj))
    except Undecodable:
        # Its own controller says so in its status.
        return frozenset()
    except Exception:
        # One object that an index cannot read must not keep all others from being found.
        _log.exception("an index failed on an object", extra={"fields": {"index": index.name, "object": str(obj)}})
        return frozenset()


def _for_each(act: Callable[[str, Object], None], values: Iterable[str], obj: Object) -> None:
    for value in values:
        act(value, obj)


def _call(callbacks: Iterable[Callback]) -> None:
    for callback in callbacks:
        callback()
