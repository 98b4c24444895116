"""Watches of a command: the stores of `runtime.caching.caches`, for as long as a block runs.

A list that fails ends the command with its error; afterwards a lost connection is retried.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from random import Random
from typing import Final

from holdfast.cli.background import background
from holdfast.cli.connecting import Refused, Session
from holdfast.client.protocols import Scope
from holdfast.client.resources import Resource
from holdfast.runtime.caching.caches import Caches

_PATIENCE: Final = 2.0
"""Seconds after which a list that still fails ends the command."""


def caches(session: Session, scopes: Mapping[Resource, Scope]) -> Caches:
    """The stores of these resources; they are filled by `running`."""
    made = Caches(session.client, random=Random().random, scopes=scopes)
    for resource in scopes:
        made.require(resource)
    return made


@contextlib.asynccontextmanager
async def running(stores: Caches) -> AsyncGenerator[Caches, None]:
    """Watch until the block ends; it begins when everything was listed once.  Raises `Refused`."""
    # Failures of a watch are shown by the command; log lines would break its output.
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    async with background(stores.run()):
        await _ready(stores)
        yield stores


def trouble(stores: Caches) -> str:
    """Why watches are not up to date; empty while they are."""
    return "; ".join(f"cannot watch {resource}: {why}" for resource, why in stores.trouble().items())


async def _ready(stores: Caches) -> None:
    synced = asyncio.ensure_future(stores.synced())
    try:
        while not synced.done():
            await asyncio.wait([synced], timeout=_PATIENCE)
            if not synced.done() and (why := trouble(stores)):
                raise Refused(f"error: {why}")
    finally:
        synced.cancel()
