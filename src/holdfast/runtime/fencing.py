"""The fence: nothing is written by a process that may not lead any more.

Losing a lease cancels the work, but work that is cancelled takes its time, and a
process that stalled does not know yet that it lost.  So every write asks first.
What a client does by itself after a write was turned away (it waits, and sends it
again) does not come by here once more; `FencedTransport` stands where every single
request passes.  Nothing here knows how a lease is held.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.protocols import (
    EVERYTHING,
    Client,
    Event,
    Listing,
    PatchType,
    Propagation,
    Scope,
    Transport,
)
from holdfast.client.resources import Resource
from holdfast.client.retries import READS
from holdfast.kernel.outcomes import Retry
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key

Held = Callable[[], bool]
"""Whether it is certain, at this moment, that no other process leads."""


class LeaseLost(Retry):
    """A write was not sent.  A `Retry`: nothing is wrong with the object, and whoever leads next will see to it."""

    def __init__(self) -> None:
        super().__init__("LeaseLost", "this process does not lead any more and must not write; another one takes over")


class Fenced:
    """A `Client` whose writes raise `LeaseLost` unless the lease is held; reads pass."""

    def __init__(self, client: Client, held: Held) -> None:
        self._client = client
        self._held = held

    async def get(self, resource: Resource, key: Key) -> Object:
        return await self._client.get(resource, key)

    async def list(self, resource: Resource, scope: Scope = EVERYTHING, *, metadata_only: bool = False) -> Listing:
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
        return self._client.watch(resource, scope, since=since, initial=initial, metadata_only=metadata_only)

    async def create(self, resource: Resource, manifest: Mapping[str, Any]) -> Object:
        self._check()
        return await self._client.create(resource, manifest)

    async def apply(
        self, resource: Resource, manifest: Mapping[str, Any], *, force: bool = True, subresource: str = ""
    ) -> Object:
        self._check()
        return await self._client.apply(resource, manifest, force=force, subresource=subresource)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        self._check()
        return await self._client.patch(resource, key, patch, type=type, subresource=subresource)

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
        self._check()
        return await self._client.delete(
            resource, key, uid=uid, version=version, propagation=propagation, grace_seconds=grace_seconds
        )

    async def post(self, resource: Resource, key: Key, subresource: str, body: Mapping[str, Any]) -> bytes:
        self._check()
        return await self._client.post(resource, key, subresource, body)

    async def raw(self, request: Request) -> Response:
        if request.method not in READS:
            self._check()
        return await self._client.raw(request)

    async def close(self) -> None:
        await self._client.close()

    def _check(self) -> None:
        if not self._held():
            raise LeaseLost


class FencedTransport:
    """A `Transport` that asks before every request that writes, also before those that a client sends again."""

    def __init__(self, transport: Transport, held: Held) -> None:
        self._transport = transport
        self._held = held

    async def send(self, request: Request) -> Response:
        if request.method not in READS and not self._held():
            raise LeaseLost
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()
