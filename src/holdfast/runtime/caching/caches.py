"""Caches: the stores of a process, one list and watch for each resource and scope, shared by all readers.

A required resource is watched for good, and one that is only subscribed to for as long
as it has subscribers.  Several namespaces are watched separately and read as one.  A
subscriber of metadata shares the whole objects that others need; without such others,
only metadata is fetched.  Reading never waits and never sends a request.

This module must not know controllers, nor what objects mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from holdfast.client.objects import Object
from holdfast.client.protocols import EVERYTHING, Scope
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.caching.connectivity import Connectivity
from holdfast.runtime.caching.reflectors import Reflector, Restarted, Source, ignore
from holdfast.runtime.caching.stores import Store, Writer
from holdfast.runtime.caching.watermarks import Callback
from holdfast.runtime.controllers import Change, Index


class NotWatched(LookupError):
    """A resource was read that is not watched."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(
            f"{resource} ({resource.api_version}) is not watched; name it among the controller's `owns`, `watches` or "
            "`reads`, or the component's `reads`, or subscribe to it first"
        )


class Caches:
    """Implements `controllers.Stores`.

    source      where objects come from
    random      gives numbers in [0, 1), which spread the waits of watches
    namespaces  the only namespaces that are looked at; all, if none is given
    scopes      resources of which only some objects are looked at, by their selectors
    restarted   called whenever a watch is begun again, with the reason
    """

    def __init__(
        self,
        source: Source,
        *,
        random: Callable[[], float],
        namespaces: Iterable[str] = (),
        scopes: Mapping[Resource, Scope] | None = None,
        restarted: Restarted = ignore,
    ) -> None:
        self._source = source
        self._random = random
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._scopes = dict(scopes or {})
        self._restarted = restarted
        self._caches: dict[Resource, Cache] = {}
        self._required: set[Resource] = set()
        self._group: asyncio.TaskGroup | None = None
        self._connectivity = Connectivity()

    # What is followed.

    async def run(self) -> None:
        """Follow everything that is or will be wanted, until cancelled."""
        if self._group is not None:
            raise RuntimeError("the caches run already; one run follows everything that is wanted")
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for cache in self._caches.values():
                    cache.follow(group)
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    def require(self, resource: Resource, *, indexes: Iterable[Index] = ()) -> None:
        """Have a resource followed from now on and for good, whole and with these indexes."""
        self._required.add(resource)
        cache = self._want(resource)
        for index in indexes:
            cache.index(index)

    def subscribe(self, resource: Resource, change: Change, *, metadata_only: bool = False) -> Callable[[], None]:
        cache = self._want(resource, metadata_only=metadata_only)
        cache.subscribe(change, metadata_only=metadata_only)
        return partial(self._unsubscribe, resource, cache, change)

    def _unsubscribe(self, resource: Resource, cache: Cache, change: Change) -> None:
        """End a subscription, and the watch of a resource without subscribers; its kind may be gone."""
        cache.unsubscribe(change)
        if not cache.has_listeners and resource not in self._required and self._caches.get(resource) is cache:
            del self._caches[resource]
            cache.close()

    def _want(self, resource: Resource, *, metadata_only: bool = False) -> Cache:
        """The cache of a resource, which all its readers share."""
        cache = self._caches.get(resource)
        if cache is None:
            reflector = partial(
                Reflector,
                self._source,
                resource,
                random=self._random,
                restarted=self._restarted,
                connectivity=self._connectivity,
            )
            cache = Cache(resource, self._parts(resource), reflector=reflector, metadata_only=metadata_only)
            self._caches[resource] = cache
            if self._group is not None:
                cache.follow(self._group)
        elif not metadata_only:
            cache.complete(self._group)
        return cache

    async def synced(self, *resources: Resource) -> None:
        caches = [self._cache(resource) for resource in resources or self._caches]
        while late := [cache for cache in caches if not cache.synced.is_set()]:
            await late[0].synced.wait()

    def unseen(self) -> tuple[Resource, ...]:
        """What was never listed yet."""
        return tuple(resource for resource, cache in self._caches.items() if not cache.synced.is_set())

    def sizes(self) -> Mapping[Resource, int]:
        """How many objects there are of each resource."""
        return {resource: sum(map(len, cache.among())) for resource, cache in self._caches.items()}

    def trouble(self) -> Mapping[Resource, str]:
        """What cannot be followed now, and why."""
        return {resource: trouble for resource, cache in self._caches.items() if (trouble := cache.trouble)}

    @property
    def is_disconnected(self) -> bool:
        """Whether the server does not answer, so that what is cached may be outdated."""
        return self._connectivity.is_lost

    def _parts(self, resource: Resource) -> Iterator[Scope]:
        """The scopes that make up a resource, in the order of their namespaces."""
        scope = self._scopes.get(resource, EVERYTHING)
        if scope.namespace or not (resource.namespaced and self._namespaces):
            return iter((scope,))
        return (replace(scope, namespace=namespace) for namespace in self._namespaces)

    def _cache(self, resource: Resource) -> Cache:
        cache = self._caches.get(resource)
        if cache is None:
            raise NotWatched(resource)
        return cache

    # What is known.

    def get(self, resource: Resource, key: Key) -> Object | None:
        store = self._cache(resource).store(key.namespace)
        return None if store is None else store.get(key)

    def list(
        self, resource: Resource, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> tuple[Object, ...]:
        return _joined(
            store.list(namespace=namespace, labels=labels) for store in self._cache(resource).among(namespace)
        )

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        return _joined(store.owned(uid) for store in self._cache(resource).among())

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        return _joined(store.indexed(index, value) for store in self._cache(resource).among())

    # Own writes.  An object that is not watched is not waited for: no decision reads it.

    def when_seen(self, resource: Resource, key: Key, version: str, callback: Callback) -> None:
        store = self._watching(resource, key)
        if store is None:
            callback()
        else:
            store.when_seen(key, version, callback)

    def when_gone(self, resource: Resource, key: Key, uid: str, callback: Callback) -> None:
        store = self._watching(resource, key)
        if store is None:
            callback()
        else:
            store.when_gone(key, uid, callback)

    async def live(self, resource: Resource, *, namespace: str) -> Callable[[], bool]:
        cache = self._caches.get(resource)
        part = None if cache is None else cache.part(namespace)
        if part is None:
            return lambda: True
        scope = replace(part.scope, namespace=namespace)
        listed = await self._source.list(resource, scope, metadata_only=True)
        return partial(part.store.shows, listed, namespace=namespace)

    def _watching(self, resource: Resource, key: Key) -> Store | None:
        cache = self._caches.get(resource)
        return None if cache is None else cache.store(key.namespace)


@dataclass(slots=True)
class _Part:
    """The objects of one scope, and the reflector that keeps them up to date."""

    scope: Scope
    store: Store
    writer: Writer
    reflector: Reflector | None = None
    task: asyncio.Task[None] | None = None
    synced: bool = False

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.task = None
        self.synced = False


class Cache:
    """One resource, in one scope or in several namespaces."""

    def __init__(
        self,
        resource: Resource,
        scopes: Iterable[Scope],
        *,
        reflector: Callable[..., Reflector],
        metadata_only: bool,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self._make = reflector
        self._wants_all = not metadata_only
        self._has_all = not metadata_only
        self._waiting: list[Change] = []
        """Subscribers who need whole objects, while there is only metadata."""
        self._parts: dict[str, _Part] = {}
        for scope in sorted(scopes, key=lambda scope: scope.namespace):
            store = Store(resource)
            self._parts[scope.namespace] = _Part(scope, store, Writer(store))

    @property
    def trouble(self) -> str:
        """What is wrong with following it; empty while nothing is."""
        troubles = {part.reflector.trouble for part in self._parts.values() if part.reflector is not None}
        return "; ".join(sorted(troubles - {""}))

    # Reading.

    def store(self, namespace: str) -> Store | None:
        """The store in which objects of a namespace are; None if they are in none."""
        part = self.part(namespace)
        return None if part is None else part.store

    def part(self, namespace: str) -> _Part | None:
        """The part in which objects of a namespace are; None if they are in none."""
        return self._parts.get(namespace) or self._parts.get("")

    def among(self, namespace: str = "") -> Iterator[Store]:
        """The stores in which objects of a namespace, or of any, are, in the order of their keys."""
        if not namespace:
            return (part.store for part in self._parts.values())
        store = self.store(namespace)
        return iter(() if store is None else (store,))

    def index(self, index: Index) -> None:
        for store in self.among():
            store.require(index)

    def subscribe(self, change: Change, *, metadata_only: bool) -> None:
        """Call `change` for every change, beginning with the objects there are, once they are as whole as needed."""
        if self._has_all or metadata_only:
            for store in self.among():
                store.subscribe(change)
        else:
            self._waiting.append(change)

    def unsubscribe(self, change: Change) -> None:
        if change in self._waiting:
            self._waiting.remove(change)
        for store in self.among():
            store.unsubscribe(change)

    @property
    def has_listeners(self) -> bool:
        """Whether there are subscribers."""
        return bool(self._waiting) or any(store.has_listeners for store in self.among())

    # Following.

    def follow(self, group: asyncio.TaskGroup) -> None:
        """Begin to follow the server, in tasks of the group."""
        for part in self._parts.values():
            part.reflector = self._make(
                scope=part.scope,
                writer=part.writer,
                metadata_only=not self._wants_all,
                synced=partial(self._arrived, part, whole=self._wants_all),
            )
            part.task = group.create_task(part.reflector.run(), name=f"watch {self.resource} {part.scope.namespace}")

    def complete(self, group: asyncio.TaskGroup | None) -> None:
        """A subscriber needs whole objects: list again, if there is only metadata."""
        if self._wants_all:
            return
        self._wants_all = True
        self.synced.clear()
        for part in self._parts.values():
            part.stop()
            part.writer.renew()
        if group is not None:
            self.follow(group)

    def close(self) -> None:
        """End the watch, and release everything that waits for it."""
        for part in self._parts.values():
            part.stop()
            part.writer.replace((), "")
        self.synced.set()

    def _arrived(self, part: _Part, *, whole: bool) -> None:
        """A list is in the store of a part."""
        # A subscriber that asked for whole objects while it was called with this list has made it outdated.
        part.synced = whole == self._wants_all
        if not all(part.synced for part in self._parts.values()):
            return
        self._has_all = whole
        if whole:
            waiting, self._waiting = self._waiting, []
            for change in waiting:
                self.subscribe(change, metadata_only=False)
        self.synced.set()


def _joined(found: Iterable[tuple[Object, ...]]) -> tuple[Object, ...]:
    return tuple(chain.from_iterable(found))
