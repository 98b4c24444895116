"""Following one object: its page, kept up to date, and shared by all its viewers.

The object, its parts and its Events are watched in the narrowest scope, for as long as the
page has viewers.  A page is made of sections; a viewer gets those that changed.  This module
must not know how pages travel, nor any kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from random import Random
from typing import Any, Final

import msgspec
import yaml

from holdfast.client.objects import Object
from holdfast.client.protocols import Client, Scope
from holdfast.client.resources import CONTROLLER_REVISIONS, EVENTS, PODS, Resource
from holdfast.dashboard.boards import Board
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import Observed
from holdfast.operators.shown import ShownKind, Surroundings, page
from holdfast.runtime.caching.caches import Caches
from holdfast.views import overview

PACE: Final = 0.1
"""The least time between two versions of a page, in seconds."""

REST: Final = 5
"""How many times as long as a version took to make the next one waits: thousands of pods must not take the process."""

TICK: Final = 2.0
"""How often a page is made again whose pods count down, in seconds."""

PATIENCE: Final = 5.0
"""Seconds to wait for the parts of an object before its page is shown without them."""

_log: Final = logging.getLogger("holdfast.dashboard")

GONE: Final = "gone"
"""The section that says that the object is deleted."""


class Following:
    """The page of one object, in sections of JSON by name; `number` grows with each version of it."""

    def __init__(self, client: Client, board: Board, kind: ShownKind, obj: Object) -> None:
        self._board = board
        self._kind = kind
        self._first = obj
        self._id = overview.identity(kind.name, obj.key.namespace, obj.key.name)
        self._scopes = _scopes(kind, obj)
        self._caches = Caches(client, random=Random().random, scopes=self._scopes)
        self._changed = asyncio.Event()
        self._next = asyncio.Event()
        self._counts_down = False
        self.sections: Mapping[str, bytes] = {}
        self.number = 0
        for resource in self._scopes:
            self._caches.require(resource)
            self._caches.subscribe(resource, lambda old, new: self._changed.set())

    async def run(self) -> None:
        """Keep the page up to date until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._caches.run())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._caches.synced(*(each for each in self._scopes if each != EVENTS))
            board = group.create_task(self._watch_links())
            try:
                while True:
                    self._changed.clear()
                    began = loop.time()
                    self._make()
                    await asyncio.sleep(max(PACE, REST * (loop.time() - began)))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(TICK if self._counts_down else None):
                            await self._changed.wait()
            finally:
                board.cancel()

    async def _watch_links(self) -> None:
        """Make the page again when the objects change that it links to."""
        links, samples = self._board.links(self._id), self._samples()
        while True:
            await self._board.change(self._board.number)
            latest = self._board.links(self._id), self._samples()
            if latest != (links, samples):
                (links, samples) = latest
                self._changed.set()
            await asyncio.sleep(PACE)

    def _samples(self) -> tuple[Any, ...]:
        entry = self._board.entry(self._id)
        return () if entry is None else tuple(entry.samples)

    def _make(self) -> None:
        resource = self._first.resource
        # Before its first list, nothing is known to be deleted.
        obj = self._first if resource in self._caches.unseen() else self._caches.get(resource, self._first.key)
        is_gone = obj is None or obj.uid != self._first.uid
        sections = {GONE: b"true"} if obj is None or is_gone else self._sections(obj)
        if sections != self.sections:
            self.sections, self.number = sections, self.number + 1
            announced, self._next = self._next, asyncio.Event()
            announced.set()

    def _sections(self, obj: Object) -> dict[str, bytes]:
        """The sections of the page as it is now; one that cannot be made says so, and what was shown stays."""
        try:
            around = Surroundings(
                events=self._caches.list(EVENTS),
                links=self._board.links(self._id) or self._board.owners(obj),
                samples=self._samples(),
                dump=dump,
            )
            made = page(self._kind, Observed(obj, self._caches), around, datetime.now(UTC))
        except Exception as error:
            _log.exception("a page cannot be made", extra={"fields": {"object": str(obj)}})
            problem = f"the page cannot be made: {type(error).__name__}; the log of the dashboard says where"
            return {**self.sections, "trouble": msgspec.json.encode(problem)}
        self._counts_down = any(_counts_down(each) for each in made.tree)
        sections = {name: msgspec.json.encode(getattr(made, name)) for name in made.__struct_fields__}
        return sections | {"trouble": msgspec.json.encode(self.trouble)}

    @property
    def trouble(self) -> str:
        """Why the page may be outdated; empty while it is not."""
        return "; ".join(f"cannot watch {resource}: {why}" for resource, why in self._caches.trouble().items())

    async def change(self, number: int) -> None:
        """Return when there is a version of the page after a number."""
        while self.number <= number:
            await self._next.wait()


def _counts_down(branch: Any) -> bool:
    waits = any(each.state in ("settling", "terminating") for each in branch.leaves)
    return waits or any(_counts_down(each) for each in branch.branches)


def _scopes(kind: ShownKind, obj: Object) -> dict[Resource, Scope]:
    """What is watched for the page of an object."""
    key = obj.key
    scopes: dict[Resource, Scope] = {
        EVENTS: Scope(namespace=key.namespace or "default", fields=f"involvedObject.uid={obj.uid}")
    }
    if kind.rollout is not None:
        beside = Scope(namespace=key.namespace, labels=kind.rollout.selector(obj))
        scopes |= dict.fromkeys(kind.rollout.parts, beside)
        if kind.rollout.history is not None:
            scopes.setdefault(CONTROLLER_REVISIONS, beside)
    return scopes | {kind.resource: Scope(namespace=key.namespace, fields=f"metadata.name={key.name}")}


def dump(value: Any) -> str:
    """A value as YAML, in the order of its fields; what was written lately is not written again."""
    return _dump(msgspec.json.encode(value))


@lru_cache(maxsize=64)
def _dump(encoded: bytes) -> str:
    value = msgspec.json.decode(encoded)
    return yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, allow_unicode=True)


POD: Final = ShownKind(resource=PODS)
"""Pods have pages, and no rows on the overview."""


async def follow(
    client: Client, board: Board, kind: ShownKind, key: Key, *, spawn: Callable[[Any], asyncio.Task[None]]
) -> tuple[Following, asyncio.Task[None]]:
    """Begin to follow an object; raises `NotFound`."""
    made = Following(client, board, kind, await client.get(kind.resource, key))
    return made, spawn(made.run())
