"""What the terminal interface shows: the objects of all kinds, watched, and one object with everything around it.

Nothing here knows the screen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from holdfast.cli import watching
from holdfast.cli.connecting import Session
from holdfast.cli.objects import printers
from holdfast.cli.objects.targets import Target
from holdfast.cli.operator import selection
from holdfast.client.discovery import Discovery, Served
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.client.resources import EVENTS, Resource
from holdfast.meta.objects import Key
from holdfast.operators import shown
from holdfast.operators.rollouts import Observed
from holdfast.operators.shown import ShownKind, Surroundings
from holdfast.runtime.caching.caches import Caches
from holdfast.views.overview import Row
from holdfast.views.pages import Page
from holdfast.views.pages.sections import Link
from holdfast.views.trees import Tree


@dataclass(frozen=True, slots=True)
class Watched:
    """A kind that the server serves, and how it is shown."""

    kind: ShownKind
    served: Served

    @property
    def names(self) -> tuple[str, ...]:
        """By what a user may call it."""
        return (*self.served.names, *self.served.short_names, self.served.resource.group_resource)


def watched_kinds(known: Discovery) -> tuple[Watched, ...]:
    """The kinds of all operators that a server serves."""
    served = {each.resource: each for each in known.served}
    kinds = (kind for each in selection.operators() for kind in each.shown_kinds())
    return tuple(Watched(kind, served[kind.resource]) for kind in kinds if kind.resource in served)


class World:
    """The rows of all objects, kept up to date by watches."""

    def __init__(self, session: Session, kinds: Iterable[Watched], *, namespace: str) -> None:
        self.session = session
        self.namespace = namespace
        self.kinds = {each.kind.name: each for each in kinds}
        self.rows: dict[str, Row] = {}
        self.changed = asyncio.Event()
        self._lost_since: datetime | None = None
        scopes = {each.kind.resource: _scope(each.kind.resource, namespace) for each in self.kinds.values()}
        self.caches: Caches = watching.caches(session, scopes)
        for each in self.kinds.values():
            self.caches.subscribe(each.kind.resource, partial(self._change, each.kind))

    async def run(self) -> None:
        """Watch until cancelled."""
        logging.getLogger("holdfast").addHandler(logging.NullHandler())
        if self.kinds:
            await self.caches.run()

    @property
    def is_loaded(self) -> bool:
        """Whether every kind was listed once."""
        return not self.caches.unseen()

    def outage(self) -> str:
        """Since when the objects may be outdated, and why; empty while they are up to date."""
        trouble = watching.trouble(self.caches)
        if not trouble and not self.caches.is_disconnected:
            self._lost_since = None
            return ""
        self._lost_since = self._lost_since or datetime.now(UTC)
        what = "connection lost" if self.caches.is_disconnected else "not up to date"
        since = f"{what} since {self._lost_since.astimezone():%H:%M:%S}, retrying"
        return f"{since}: {trouble}" if trouble and not self.caches.is_disconnected else since

    def target(self, row: Row) -> Target:
        """The object of a row, as commands name it."""
        return Target(self.kinds[row.resource].served, Scope(namespace=row.namespace), row.name)

    def object(self, row: Row) -> Object | None:
        return self.caches.get(self.kinds[row.resource].kind.resource, Key(row.namespace, row.name))

    def _change(self, kind: ShownKind, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self.rows.pop(kind.row(old).id, None)
        else:
            row = kind.row(new)
            self.rows[row.id] = row
        self.changed.set()


def _scope(resource: Resource, namespace: str) -> Scope:
    return Scope(namespace=namespace if resource.namespaced else "")


@dataclass(frozen=True, slots=True)
class Sight:
    """One object at a moment: its page, and the tree of its rollout."""

    page: Page
    tree: Tree | None


class Subject:
    """One object, its parts and its Events, kept up to date by watches."""

    def __init__(self, world: World, row: Row, obj: Object) -> None:
        self._world = world
        self._watched = world.kinds[row.resource]
        self._first = obj
        self.row = row
        self.target = world.target(row)
        self.changed = asyncio.Event()
        kind, namespace = self._watched.kind, obj.key.namespace
        scopes = {kind.resource: self.target.watched}
        if kind.rollout is not None:
            scopes |= dict.fromkeys(kind.rollout.parts, Scope(namespace=namespace, labels=kind.rollout.selector(obj)))
        scopes[EVENTS] = Scope(namespace=namespace, fields=f"involvedObject.uid={obj.uid}")
        self.caches = watching.caches(world.session, scopes)
        for resource in scopes:
            self.caches.subscribe(resource, lambda old, new: self.changed.set())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Watch until the block ends."""
        async with watching.running(self.caches):
            yield

    @property
    def kind(self) -> ShownKind:
        return self._watched.kind

    @property
    def called(self) -> str:
        return f"{self.kind.resource.kind.lower()}/{self.row.name}"

    def object(self) -> Object | None:
        """The object; None once it is deleted."""
        obj = self.caches.get(self.kind.resource, self._first.key)
        return None if obj is None or obj.uid != self._first.uid else obj

    def sight(self, now: datetime) -> Sight | None:
        """The object as it is now; None once it is deleted."""
        obj = self.object()
        if obj is None:
            return None
        observed = Observed(obj, self.caches)
        around = Surroundings(
            events=self.caches.list(EVENTS), links=tuple(self._links(obj)), dump=lambda value: printers.as_yaml(value)
        )
        page = shown.page(self.kind, observed, around, now)
        return Sight(page, self._tree(observed, now))

    def _tree(self, observed: Observed, now: datetime) -> Tree | None:
        rollout = self.kind.rollout
        if rollout is None:
            return None
        try:
            return rollout.tree(observed, now)
        except shown.UNREADABLE:
            return None

    def _links(self, obj: Object) -> Iterable[Link]:
        """The owners of the object, and the objects that its fields name."""
        resources = {(each.resource.group, each.resource.kind): each.resource for each in self._kinds()}
        for owner in obj.meta.owner_references:
            yield shown.owner_link(owner, obj, resources)
        for _, link in self.kind.links(obj):
            yield link
        for row in self._world.rows.values():
            if row.owner == f"{self.kind.resource.kind}/{obj.key.name}" and row.namespace == obj.key.namespace:
                yield Link(
                    relation="part", kind=row.kind, resource=row.resource, namespace=row.namespace, name=row.name
                )

    def _kinds(self) -> Iterable[ShownKind]:
        return (each.kind for each in self._world.kinds.values())
