"""Waiting: until something holds of an object, and no longer.

Looks first and then watches, so that nothing between is missed, and looks again
after whatever interrupts.  What is waited for is the caller's function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.protocols import Bookmark, Client, Deleted, Scope, Unreachable
from holdfast.client.resources import Resource
from holdfast.meta.errors import Gone, StatusError
from holdfast.meta.objects import Key

PAUSE_SECONDS: Final = 1.0
"""Between the end of one watch and the next look, so that a server in trouble is not asked in a hot loop."""

Holds = Callable[[Object | None], bool]
"""What is waited for; None stands for an object that does not exist."""


async def until(client: Client, resource: Resource, key: Key, holds: Holds, *, timeout: float | None) -> Object | None:
    """The object as it is once `holds` does; raises `TimeoutError` after `timeout` seconds of waiting.

    The time begins with the first answer: what holds already is seen, however short the time and slow the server.
    """
    scope = Scope(namespace=key.namespace, fields=f"metadata.name={key.name}")
    try:
        async with asyncio.timeout(None) as clock:
            begin = partial(_begin, clock, timeout)
            while True:
                try:
                    found = await _watched(client, resource, scope, holds, looked=begin)
                except (Unreachable, Gone):
                    found = None
                except StatusError as error:
                    if not error.transient:
                        raise
                    found = None
                if found is not None:
                    return found[0]
                begin()
                await asyncio.sleep(PAUSE_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"timed out after {timeout:g} seconds waiting for {resource} {key}") from None


def _begin(clock: asyncio.Timeout, seconds: float | None) -> None:
    if clock.when() is None and seconds is not None:
        clock.reschedule(asyncio.get_running_loop().time() + seconds)


async def _watched(
    client: Client, resource: Resource, scope: Scope, holds: Holds, *, looked: Callable[[], None]
) -> tuple[Object | None] | None:
    """One look and one watch; None if the watch ended before it held."""
    listing = await client.list(resource, scope)
    current = listing.objects[0] if listing.objects else None
    if holds(current):
        return (current,)
    looked()
    async with client.watch(resource, scope, since=listing.version) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                continue
            current = None if isinstance(event, Deleted) else event.object
            if holds(current):
                return (current,)
    return None
