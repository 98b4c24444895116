"""The garbage collector: follows every object there is, and deletes what has lost its owners.

It knows metadata only, of all resources that can be listed, watched and deleted,
as the server's discovery lists them; kinds that come and go with their definitions are
followed too.  `graph` says what is doubtful and what becomes of it.  Here the API
is asked before anything is done about it: an owner counts as deleted only if its deletion
was seen or the server says so, and every write holds only for the version that was decided on.

The objects of a kind are deleted before its definition is.  So the deletion of a definition
is the deletion of all its objects, even where the watch of the kind ended before it said so; the
server cannot be asked about them any more, and the graph remembers them for their dependents.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar, assert_never

import msgspec

from holdfast.client.discovery import discover
from holdfast.client.objects import Object, OwnerReference
from holdfast.client.pods import Condition
from holdfast.client.protocols import Scope, Unreachable
from holdfast.client.resources import DEFINITIONS, EVENTS, Resource
from holdfast.cluster.controllers.gc import graph
from holdfast.cluster.controllers.gc.graph import Detach, Doubts, Graph, Leave, Remove, Standing
from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Done, Outcome, Retry
from holdfast.meta.errors import Conflict, NotFound, StatusError
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Environment
from holdfast.runtime.decisions import Notice
from holdfast.runtime.metrics import Metrics
from holdfast.runtime.passes.events import Events
from holdfast.runtime.work.keyed_work import KeyedWork

T = TypeVar("T")

NAME: Final = "garbage-collector"
NEEDED: Final = frozenset({"list", "watch", "delete"})
IGNORED: Final = frozenset({EVENTS.group_resource, "events.events.k8s.io"})
"""Resources that own nothing and have no owners, and of which there are most."""

WORKERS: Final = 20
REMEMBERED: Final = 500
"""How many references are remembered to which the server has no owner, so that not every dependent asks."""

FIRST_LOOK: Final = 30.0
"""Seconds after which work begins, even if some kind cannot be listed: doubts are settled by asking anyway."""

_AGAIN: Final = Backoff(base=timedelta(milliseconds=100), cap=timedelta(seconds=30))

Place: TypeAlias = tuple[Resource, Key, str]
"""Where an owner is said to be: its resource, its key, its UID."""


class GarbageCollector:
    """A `Component`."""

    name = NAME
    reads = (DEFINITIONS,)

    async def run(self, environment: Environment) -> None:
        await _Collection(environment).run()


class _Collection:
    """One run of the collector."""

    def __init__(self, environment: Environment) -> None:
        self._stores = environment.stores
        self._client = environment.client
        self._events = Events(environment.client, NAME, now=environment.now, metrics=Metrics())
        self._graph = Graph()
        self._work: KeyedWork[str] = KeyedWork(NAME, self._attend, workers=WORKERS)
        self._absent: OrderedDict[Place, None] = OrderedDict()
        self._strays: dict[str, list[OwnerReference]] = {}
        self._unknown: set[str] = set()
        """Objects with an owner of a kind that the server does not have."""
        self._followed: dict[Resource, Callable[[], None]] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._defined = asyncio.Event()
        self._undefined: set[tuple[str, str]] = set()
        """Group and plural of the kinds whose definition was deleted."""

    async def run(self) -> None:
        unsubscribe = self._stores.subscribe(DEFINITIONS, self._definition_changed)
        try:
            async with asyncio.TaskGroup() as group:
                await self._follow_for_sure()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stores.synced(*self._followed), FIRST_LOOK)
                group.create_task(self._work.run())
                while True:
                    await self._defined.wait()
                    await self._follow_for_sure()
        finally:
            unsubscribe()
            for stop in self._followed.values():
                stop()

    # --- which kinds there are

    async def _follow_for_sure(self) -> None:
        """Follow what the server has, asking until it has everything that is defined, and nothing else."""
        attempt = 0
        while True:
            self._defined.clear()
            with suppress(StatusError, Unreachable):
                await self._follow()
                if not self._undiscovered():
                    return
            attempt += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._defined.wait(), _AGAIN.delay(attempt).total_seconds())

    async def _follow(self) -> None:
        discovery = await discover(self._client)
        preferred = [each for each in discovery.preferred() if each.resource.group_resource not in IGNORED]
        self._kinds = {(each.resource.group, each.resource.kind): each.resource for each in preferred}
        served = {each.resource for each in preferred if each.verbs >= NEEDED}
        # What could not be asked about is not gone.
        away = {tuple(missing.rpartition("/")[::2]) for missing in discovery.missing}
        for resource in [each for each in self._followed if each not in served]:
            if (resource.group, resource.version) not in away:
                self._followed.pop(resource)()
                deleted = (resource.group, resource.plural) in self._undefined
                for uid in self._graph.of(resource):
                    self._doubt(self._graph.remove(uid) if deleted else self._graph.forget(uid))
        for resource in sorted(served - self._followed.keys()):
            self._followed[resource] = self._stores.subscribe(resource, self._changed, metadata_only=True)
        waiting, self._unknown = self._unknown, set()
        for uid in waiting:
            self._work.add(uid)

    def _definition_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._undefined.add(_named(old))
        if new is not None:
            self._undefined.discard(_named(new))
        self._defined.set()

    def _undiscovered(self) -> bool:
        """Whether discovery does not show yet what was defined, or still shows a kind whose definition was deleted."""
        known = {(each.group, each.plural) for each in self._kinds.values()}
        return not known.isdisjoint(self._undefined) or any(
            (spec.group, spec.names.plural) not in known
            for spec in map(_established, self._stores.list(DEFINITIONS))
            if spec is not None
        )

    # --- what there is

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._doubt(self._graph.remove(old.uid))
        if new is not None:
            self._doubt(self._graph.put(new))

    def _doubt(self, doubts: Doubts) -> None:
        for dependent, reference in doubts.strays:
            self._strays.setdefault(dependent.uid, []).append(reference)
        for uid in doubts.examine:
            self._work.add(uid)

    def _remember(self, place: Place) -> None:
        self._absent[place] = None
        self._absent.move_to_end(place)
        if len(self._absent) > REMEMBERED:
            self._absent.popitem(last=False)

    # --- what is doubtful

    async def _attend(self, uid: str) -> Outcome:
        """Settle the doubts about one object: as it was seen, and if that is old, as it is."""
        obj = self._graph.get(uid)
        if obj is None:
            self._strays.pop(uid, None)
            return Done()
        await self._tell(obj)
        with suppress(NotFound):
            try:
                return await self._settle(obj)
            except Conflict:
                fresh = await self._client.get(obj.resource, obj.key)
                return await self._settle(fresh) if fresh.uid == uid else Done()
        return Done()

    async def _tell(self, obj: Object) -> None:
        for reference in self._strays.pop(obj.uid, ()):
            message = graph.stray_message(obj, reference)
            await self._events.emit(obj, [Notice(type="Warning", reason="OwnerRefInvalidNamespace", message=message)])

    async def _settle(self, obj: Object) -> Outcome:
        if graph.orphaning(obj):
            await self._orphan(obj)
        elif graph.in_foreground(obj):
            await self._finish(obj)
        elif not obj.deleting:
            await self._collect(obj)
        return Done()

    async def _orphan(self, owner: Object) -> None:
        """Remove the owner reference of the dependents, and then the finalizer of the owner.

        The dependents are listed live: one that the watches have not shown yet would be deleted with its owner.
        """
        for dependents in await _a_few_at_a_time(self._dependents(owner, each) for each in tuple(self._followed)):
            await _a_few_at_a_time(self._forget(each, owner.uid) for each in dependents)
        await self._patch(owner, graph.without_finalizer(owner, graph.ORPHAN))

    async def _dependents(self, owner: Object, resource: Resource) -> list[Object]:
        """The objects of a resource that name an owner, as the server has them."""
        if owner.meta.namespace and not resource.namespaced:
            return []  # it cannot name an owner in a namespace
        try:
            listed = await self._client.list(resource, Scope(namespace=owner.meta.namespace), metadata_only=True)
        except NotFound:
            return []  # its definition was deleted
        return [each for each in listed.objects if any(one.uid == owner.uid for one in graph.owners_of(each))]

    async def _forget(self, dependent: Object, uid: str) -> None:
        with suppress(NotFound):
            try:
                await self._patch(dependent, graph.without_owners(dependent, {uid}))
            except Conflict:
                fresh = await self._client.get(dependent.resource, dependent.key)
                if fresh.uid == dependent.uid and any(owner.uid == uid for owner in graph.owners_of(fresh)):
                    await self._patch(fresh, graph.without_owners(fresh, {uid}))

    async def _finish(self, owner: Object) -> None:
        """Remove the finalizer of an owner whose dependents are deleted; delete those that are left."""
        blocking = self._graph.blocking(owner.uid)
        for dependent in blocking:
            if not dependent.deleting:
                self._work.add(dependent.uid)
        if not blocking:
            await self._patch(owner, graph.without_finalizer(owner, graph.FOREGROUND))

    async def _collect(self, obj: Object) -> None:
        owners: dict[str, Standing] = {}
        unseen: list[OwnerReference] = []
        for reference in graph.owners_of(obj):
            standing = await self._standing(obj, reference)
            if standing is None:
                return
            owners[reference.uid] = standing
            if standing is not Standing.ABSENT and self._graph.get(reference.uid) is None:
                unseen.append(reference)
        dependents, circular = bool(self._graph.dependents(obj.uid)), self._graph.circular(obj.uid)
        match graph.action_for(obj, owners, dependents=dependents, circular=circular):
            case Leave():
                self._expect(obj, unseen)
            case Detach(owners=lost):
                await self._patch(obj, graph.without_owners(obj, lost))
            case Remove(propagation=propagation, unblock=unblock):
                if unblock:
                    obj = await self._patch(obj, graph.without_blocking(obj))
                await self._client.delete(
                    obj.resource, obj.key, uid=obj.uid, version=obj.version, propagation=propagation
                )
            case never:
                assert_never(never)

    def _expect(self, obj: Object, unseen: list[OwnerReference]) -> None:
        """An owner that exists must be seen as well, or its deletion would not be noticed."""
        for reference in unseen:
            if self._kinds[reference.group, reference.kind] in self._followed:
                raise Retry("OwnerNotSeen", f"{obj.ref} has the owner {reference.kind} {reference.name}, not seen yet")

    async def _standing(self, obj: Object, reference: OwnerReference) -> Standing | None:
        """How an owner stands; None if that is not known, so that its dependent must stay."""
        seen, deleted = self._graph.get(reference.uid), self._graph.deleted(reference.uid)
        if seen is not None and not seen.deleting and graph.refers(obj, reference, seen):
            return Standing.SOLID
        if deleted is not None and graph.refers(obj, reference, deleted):
            return Standing.ABSENT
        resource = self._kinds.get((reference.group, reference.kind))
        if resource is None:
            self._unknown.add(obj.uid)
            return None
        if resource.namespaced and not obj.meta.namespace:
            return None  # a reference into no namespace in particular
        place = (resource, Key(obj.meta.namespace if resource.namespaced else "", reference.name), reference.uid)
        if place in self._absent:
            return Standing.ABSENT
        try:
            owner = await self._client.get(*place[:2])
        except NotFound:
            owner = None
        if owner is None or owner.uid != reference.uid:
            self._remember(place)
            return Standing.ABSENT
        return Standing.GOING if graph.in_foreground(owner) else Standing.SOLID

    async def _patch(self, obj: Object, patch: Mapping[str, Any]) -> Object:
        return await self._client.patch(obj.resource, obj.key, patch)


async def _a_few_at_a_time(doing: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each gives, in their order; raises the first failure, when all have ended."""
    free = asyncio.Semaphore(WORKERS)

    async def done(each: Coroutine[Any, Any, T]) -> T:
        async with free:
            return await each

    ended = await asyncio.gather(*map(done, doing), return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
    return [each for each in ended if not isinstance(each, BaseException)]


# --- definitions


class _Names(msgspec.Struct, frozen=True, gc=False):
    plural: str = ""


class _DefinitionSpec(msgspec.Struct, frozen=True, gc=False):
    group: str = ""
    names: _Names = _Names()


class _DefinitionStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class _Definition(msgspec.Struct, frozen=True, gc=False):
    spec: _DefinitionSpec = _DefinitionSpec()
    status: _DefinitionStatus = _DefinitionStatus()


def _named(obj: Object) -> tuple[str, str]:
    """Group and plural of the kind that a definition defines."""
    spec = obj.decode(_Definition).spec
    return spec.group, spec.names.plural


def _established(obj: Object) -> _DefinitionSpec | None:
    """What a definition defines, if the server says that it does."""
    definition = obj.decode(_Definition)
    established = any(each.type == "Established" and each.status == "True" for each in definition.status.conditions)
    return definition.spec if established and not obj.deleting else None
