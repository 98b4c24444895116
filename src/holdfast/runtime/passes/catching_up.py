"""Catching up: wait until the stores show what the server has, after writes whose outcome is unknown.

A reply that is lost leaves a write that was done or not, and a store that may not show
it yet.  A second later, when the server has surely dealt with it, the resource is listed
live, and what waits is called back as soon as the store shows everything that was listed.
One list serves all that wait for the same resource in the same namespace.

A process that takes over from another one knows of none of the other's last writes, so for
it the outcome of any write is unknown: it waits for all resources that it reads.

While the server is away, it is asked again and again.  This module must not know what waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from holdfast.client.protocols import Unreachable
from holdfast.client.resources import Resource
from holdfast.kernel.backoff import Backoff
from holdfast.meta.errors import StatusError
from holdfast.runtime.caching.watermarks import Callback
from holdfast.runtime.controllers import Stores

_log: Final = logging.getLogger("holdfast.runtime")

SETTLED: Final = 1.0
"""Seconds after which a server has done a write whose reply was lost, or never will."""

AGAIN: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(seconds=15), jitter=0.5)
"""The wait before a server that did not answer is asked again; the first of these also between two comparisons."""


class CatchingUp:
    """Callbacks that wait until the stores show what the server has."""

    def __init__(self, stores: Stores, *, spread: Callable[[], float]) -> None:
        self._stores = stores
        self._spread = spread
        self._waiting: dict[tuple[Resource, str], list[Callback]] = {}
        """Callbacks that came since the list that is under way was begun."""
        self._tasks: dict[tuple[Resource, str], asyncio.Task[None]] = {}

    def then(self, resource: Resource, namespace: str, callback: Callback) -> None:
        """Call back, once, when the store shows what the server has of a resource in a namespace from now on."""
        place = (resource, namespace)
        self._waiting.setdefault(place, []).append(callback)
        if place not in self._tasks:
            name = f"catch up with {resource} {namespace}"
            self._tasks[place] = asyncio.create_task(self._catch_up(resource, namespace), name=name)

    async def all(self, resources: Iterable[Resource], namespaces: Iterable[str]) -> None:
        """Returns when the stores show what the server has of these resources in these namespaces from now on."""
        shown = []
        for resource in resources:
            for namespace in namespaces if resource.namespaced else ("",):
                shown.append(asyncio.Event())
                self.then(resource, namespace, shown[-1].set)
        for each in shown:
            await each.wait()

    def close(self) -> None:
        """Call back no more."""
        for task in self._tasks.values():
            task.cancel()

    async def _catch_up(self, resource: Resource, namespace: str) -> None:
        place = (resource, namespace)
        try:
            while callbacks := self._waiting.pop(place, None):
                await asyncio.sleep(SETTLED)
                seen = await self._live(resource, namespace)
                while not seen():
                    await self._wait(1)
                for callback in callbacks:
                    callback()
        finally:
            del self._tasks[place]

    async def _live(self, resource: Resource, namespace: str) -> Callable[[], bool]:
        attempt = 0
        while True:
            try:
                return await self._stores.live(resource, namespace=namespace)
            except (StatusError, Unreachable) as error:
                attempt += 1
                fields = {"resource": str(resource), "namespace": namespace, "error": str(error)}
                _log.debug("the outcome of a write is still unknown", extra={"fields": fields})
            await self._wait(attempt)

    async def _wait(self, attempt: int) -> None:
        await asyncio.sleep(AGAIN.delay(attempt, spread=self._spread()).total_seconds())
