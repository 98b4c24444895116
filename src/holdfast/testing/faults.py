"""Clients that fail on purpose, to stand between a runtime and its API.

    Crash      after the n-th write the process gets no answer to anything any more
    Loss       the n-th change is never delivered, and the watch must start over, as after a compaction
    Lag        every change is withheld until the next one comes, so that all reads are one version old
    Disorder   changes of different kinds come late by different times, so that they come in another order
    Refusal    the n-th write is refused, as a busy server does
    Silence    replies to some writes are lost after the server has committed them, changes come late, other
               writes are refused, and all of them are slow

A fault sees each write and may change each watch stream.  It must not know its users.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, TypeVar

from holdfast.client.objects import Object
from holdfast.client.protocols import (
    EVERYTHING,
    Bookmark,
    Client,
    Event,
    Listing,
    PatchType,
    Propagation,
    Scope,
    Unreachable,
)
from holdfast.client.resources import EVENTS, LEASES, PODS, Resource
from holdfast.meta.errors import Expired, Invalid, TooManyRequests
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key

T = TypeVar("T")

_UNTOUCHED = frozenset({EVENTS, LEASES})
"""Events and Leases: writes of these are not counted, because their number differs from run to run."""


class Fault:
    """No fault: counts writes and changes.  Faults override what they need."""

    def __init__(self) -> None:
        self.writes = 0
        self.changes = 0

    async def before_write(self, resource: Resource) -> None:
        """Called before a write is sent."""

    async def sent(self, writing: Coroutine[Any, Any, T]) -> T:
        """A write on its way to the server and back."""
        return await writing

    async def after_write(self, resource: Resource) -> None:
        """Called when a write is done and its answer is on its way back."""
        self.writes += 1

    async def alive(self) -> None:
        """Called before anything is sent."""

    async def changed(self, resource: Resource, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """The stream of changes as it is to be delivered."""
        async for event in events:
            if not isinstance(event, Bookmark):
                self.changes += 1
            yield event


class Crash(Fault):
    """Crashes with the `n`-th write: the server has done it, and the client gets no answer."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self._n = n
        self.dead = asyncio.Event()

    async def alive(self) -> None:
        if self.dead.is_set():
            await asyncio.get_running_loop().create_future()

    async def after_write(self, resource: Resource) -> None:
        await super().after_write(resource)
        if self.writes == self._n:
            self.dead.set()
        await self.alive()


class Loss(Fault):
    """Never delivers the `n`-th change."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self._n = n

    async def changed(self, resource: Resource, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            if not isinstance(event, Bookmark):
                self.changes += 1
                if self.changes == self._n:
                    raise Expired.of(1, 2)
            yield event


class Lag(Fault):
    """Delivers each change only when the next one of its resource comes, or after `at_most` seconds."""

    def __init__(self, at_most: float = 5.0) -> None:
        super().__init__()
        self._at_most = at_most

    async def changed(self, resource: Resource, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        withheld: Event | None = None
        coming = asyncio.ensure_future(anext(events))
        try:
            while True:
                await asyncio.wait({coming}, timeout=None if withheld is None else self._at_most)
                if not coming.done():
                    assert withheld is not None, "only a withheld change has a timeout"
                    yield withheld
                    withheld = None
                    continue
                try:
                    event = coming.result()
                except StopAsyncIteration:
                    return
                if withheld is not None:
                    yield withheld
                withheld = event
                coming = asyncio.ensure_future(anext(events))
        finally:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming


class Disorder(Fault):
    """Delivers changes late, each resource by a time of its own that the seed gives."""

    def __init__(self, seed: int, at_most: float = 4.0) -> None:
        super().__init__()
        self._seed = seed
        self._at_most = at_most

    def delay(self, resource: Resource) -> float:
        digest = hashlib.sha256(f"{self._seed}/{resource}".encode()).digest()
        return self._at_most * digest[0] / 255

    async def changed(self, resource: Resource, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            await asyncio.sleep(self.delay(resource))
            yield event


class Refusal(Fault):
    """Has the `n`-th write refused by a server that is busy."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self._n = n
        self._asked = 0

    async def before_write(self, resource: Resource) -> None:
        self._asked += 1
        if self._asked == self._n:
            raise TooManyRequests.of("busy", retry_after_seconds=1)


class Silence(Fault):
    """Loses the reply of a `share` of the writes, all of which are committed, and delivers changes up to `late` s late.

    Changes of one resource stay in order.  Of the writes, a share `refused` is not committed, as by a busy server, and
    the others take up to `slow` s to the server, which they reach although their process is killed meanwhile: in a
    share `killed` of them `kill` is set.
    """

    def __init__(
        self,
        seed: int,
        *,
        share: float = 0.3,
        late: float = 4.0,
        refused: float = 0.0,
        slow: float = 0.0,
        killed: float = 0.0,
    ) -> None:
        super().__init__()
        self._random = Random(seed)
        self._share = share
        self._late = late
        self._refused = refused
        self._slow = slow
        self._killed = killed
        self.kill = asyncio.Event()

    async def sent(self, writing: Coroutine[Any, Any, T]) -> T:
        if not self._slow:
            return await writing

        async def slowly() -> T:
            await asyncio.sleep(self._random.random() * self._slow)
            return await writing

        under_way = asyncio.create_task(slowly())
        if self._random.random() < self._killed:
            self.kill.set()
        return await asyncio.shield(under_way)

    async def before_write(self, resource: Resource) -> None:
        if self._refused and self._random.random() < self._refused:
            raise TooManyRequests.of("busy", retry_after_seconds=1)

    async def after_write(self, resource: Resource) -> None:
        await super().after_write(resource)
        if self._random.random() < self._share:
            raise Unreachable("the reply was lost")

    async def changed(self, resource: Resource, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        clock = asyncio.get_running_loop().time
        coming: asyncio.Queue[tuple[float, Event | Exception | None]] = asyncio.Queue()

        async def read() -> None:
            try:
                async for event in events:
                    coming.put_nowait((clock() + self._random.random() * self._late, event))
                coming.put_nowait((clock(), None))
            except Exception as error:
                coming.put_nowait((clock(), error))

        reading = asyncio.create_task(read())
        try:
            while True:
                due, event = await coming.get()
                await asyncio.sleep(max(due - clock(), 0.0))
                if event is None:
                    return
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading


class Faulty:
    """A client with a fault in it."""

    def __init__(self, client: Client, fault: Fault) -> None:
        self._client = client
        self._fault = fault

    async def get(self, resource: Resource, key: Key) -> Object:
        await self._fault.alive()
        return await self._client.get(resource, key)

    async def list(self, resource: Resource, scope: Scope = EVERYTHING, *, metadata_only: bool = False) -> Listing:
        await self._fault.alive()
        return await self._client.list(resource, scope, metadata_only=metadata_only)

    def watch(
        self,
        resource: Resource,
        scope: Scope = EVERYTHING,
        *,
        since: str = "",
        initial: bool = False,
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._watched(resource, scope, since=since, initial=initial, metadata_only=metadata_only)

    @contextlib.asynccontextmanager
    async def _watched(self, resource: Resource, scope: Scope, **options: Any) -> AsyncIterator[AsyncIterator[Event]]:
        await self._fault.alive()
        async with self._client.watch(resource, scope, **options) as events:
            if resource in _UNTOUCHED:
                yield events
                return
            async with contextlib.aclosing(_Stream(self._fault.changed(resource, events))) as changed:
                yield changed

    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        if dry_run:
            await self._fault.alive()
            return await self._client.create(resource, manifest, dry_run=True)
        return await self._written(resource, self._client.create(resource, manifest))

    async def apply(
        self, resource: Resource, manifest: Mapping[str, Any], *, force: bool = True, subresource: str = ""
    ) -> Object:
        applying = self._client.apply(resource, manifest, force=force, subresource=subresource)
        return await self._written(resource, applying)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        patching = self._client.patch(resource, key, patch, type=type, subresource=subresource)
        return await self._written(resource, patching)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        version: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> Object | None:
        deleting = self._client.delete(
            resource, key, uid=uid, version=version, propagation=propagation, grace_seconds=grace_seconds
        )
        return await self._written(resource, deleting)

    async def post(self, resource: Resource, key: Key, subresource: str, body: Mapping[str, Any]) -> bytes:
        return await self._written(resource, self._client.post(resource, key, subresource, body))

    async def raw(self, request: Request) -> Response:
        await self._fault.alive()
        return await self._client.raw(request)

    async def close(self) -> None:
        await self._client.close()

    async def _written(self, resource: Resource, writing: Coroutine[Any, Any, T]) -> T:
        counts = resource not in _UNTOUCHED
        try:
            await self._fault.alive()
            if counts:
                await self._fault.before_write(resource)
        except BaseException:
            writing.close()
            raise
        answer = await (self._fault.sent(writing) if counts else writing)
        if counts:
            await self._fault.after_write(resource)
        return answer


class RefusesPods(Faulty):
    """A client whose server refuses to create pods that contain a text, in a dry run too."""

    def __init__(self, client: Client, text: str) -> None:
        super().__init__(client, Fault())
        self._text = text

    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        if resource == PODS and self._text in str(manifest):
            raise Invalid(f"Pod is invalid: {self._text} is not allowed")
        return await super().create(resource, manifest, dry_run=dry_run)


class _Stream(AsyncIterator[Event]):
    """A stream that can be closed, over one that is a generator."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    async def __anext__(self) -> Event:
        return await anext(self._events)

    async def aclose(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()
