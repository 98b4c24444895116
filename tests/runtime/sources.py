"""A versioned API in memory, for tests of watches: small enough to be believed, and it fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.protocols import (
    EVERYTHING,
    Added,
    Bookmark,
    Deleted,
    Event,
    Listing,
    Modified,
    Scope,
    Unreachable,
)
from holdfast.client.resources import PODS, Resource
from holdfast.meta.errors import Expired, Invalid
from holdfast.meta.objects import Key


def wire(name: str, *, version: int, uid: str = "", namespace: str = "default", **meta: Any) -> dict[str, Any]:
    named = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**named, **meta}}


def obj(name: str, version: int = 1, *, resource: Resource = PODS, **meta: Any) -> Object:
    return Object.of(resource, wire(name, version=version, **meta))


class FakeSource:
    """A `reflectors.Source` of one resource.

    collects  whether streaming lists are offered
    refusals  what the next requests are refused with, in turn
    asked     what was asked for: ``list``, ``collect``, ``watch 7``
    """

    def __init__(self, *, collects: bool = True) -> None:
        self.collects = collects
        self.refusals: list[Exception] = []
        self.asked: list[str] = []
        self.objects: dict[Key, Object] = {}
        self.version = 1
        self.open = 0
        self._log: list[tuple[int, Event]] = []
        self._compacted = 0
        self._ending: Exception | None = None
        self._era = 0
        self._moved = asyncio.Event()

    # What the world does.

    def put(self, name: str, **meta: Any) -> Object:
        """Create or change an object; a new one has a UID that none before it had."""
        self.version += 1
        held = self.objects.get(Key("default", name))
        uid = held.uid if held else f"uid-{self.version}"
        made = obj(name, self.version, uid=uid, **meta)
        self.objects[made.key] = made
        self._say(Modified(made) if held else Added(made))
        return made

    def delete(self, name: str) -> Object | None:
        held = self.objects.pop(Key("default", name), None)
        if held is not None:
            self.version += 1
            self._say(Deleted(obj(name, self.version, uid=held.uid)))
        return held

    def bookmark(self) -> None:
        self._say(Bookmark(str(self.version)))

    def compact(self) -> None:
        """Forget how the present came about."""
        self._compacted = self.version
        self._log.clear()

    def end_streams(self, error: Exception | None = None) -> None:
        """End every stream, at once: properly, or with an error."""
        self._era += 1
        self._ending = error
        self._wake()

    def _say(self, event: Event) -> None:
        self._log.append((self.version, event))
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    # What is asked.

    async def get(self, resource: Resource, key: Key) -> Object:
        return self.objects[key]

    async def list(self, resource: Resource, scope: Scope = EVERYTHING, *, metadata_only: bool = False) -> Listing:
        self.asked.append("list")
        await self._answer()
        return Listing(tuple(self.objects.values()), str(self.version))

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        scope: Scope = EVERYTHING,
        *,
        since: str = "",
        initial: bool = False,
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        self.asked.append("collect" if initial else f"watch {since}")
        await self._answer()
        if initial and not self.collects:
            raise Invalid("sendInitialEvents is forbidden for watch")
        if not initial and int(since) < self._compacted:
            raise Expired.of(int(since), self._compacted)
        self.open += 1
        try:
            yield self._events(int(since or 0), initial=initial)
        finally:
            self.open -= 1

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.refusals:
            raise self.refusals.pop(0)

    async def _events(self, since: int, *, initial: bool) -> AsyncIterator[Event]:
        era = self._era
        if initial:
            since = self.version
            for each in tuple(self.objects.values()):
                yield Added(each)
            yield Bookmark(str(since), initial=True)
        position = next((i for i, (version, _) in enumerate(self._log) if version > since), len(self._log))
        seen = since
        while True:
            if self._era != era:
                if self._ending is not None:
                    raise self._ending
                return
            if seen < self._compacted:
                raise Expired.of(seen, self._compacted)
            if position < len(self._log):
                seen, event = self._log[position]
                position += 1
                yield event
            else:
                await self._moved.wait()


CUT = Unreachable("the connection was reset")
