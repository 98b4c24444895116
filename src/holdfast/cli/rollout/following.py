"""The objects of one rollout: read once, or watched.

The command reads the object and the parts that its kind declares, all by one selector.
This module must not know what the objects mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from holdfast.cli.connecting import Refused, Session
from holdfast.cli.objects.targets import Target
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.operators.rollouts import Observed, RolloutKind
from holdfast.runtime.caches import Caches
from holdfast.runtime.listed import listed


async def look(session: Session, target: Target, kind: RolloutKind) -> Observed:
    """The object and its parts, read once."""
    obj = await session.client.get(target.resource, target.key)
    # The parts are listed after the object, so everything that its status mentions is in the lists.
    return Observed(obj, await listed(session.client, obj, dict.fromkeys(kind.parts, _beside(obj, kind))))


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which objects cannot be watched.

    disconnected  whether the server does not answer, or answers with errors
    trouble       what the client got instead of an answer
    """

    since: datetime
    disconnected: bool
    trouble: str

    @property
    def words(self) -> str:
        """``connection lost since 14:03:22``, in local time."""
        what = "connection lost" if self.disconnected else "not up to date"
        return f"{what} since {self.since.astimezone():%H:%M:%S}"


class Following:
    """The object and its parts, kept up to date by watches."""

    def __init__(self, session: Session, target: Target, kind: RolloutKind, obj: Object) -> None:
        self._target = target
        self._first = obj
        self._changed = asyncio.Event()
        self._outdated_since: datetime | None = None
        beside = _beside(obj, kind)
        scopes = {target.resource: target.watched, **dict.fromkeys(kind.parts, beside)}
        self._caches = Caches(session.client, random=Random().random, scopes=scopes)
        for resource in scopes:
            self._caches.require(resource)
            self._caches.subscribe(resource, lambda old, new: self._changed.set())

    async def run(self) -> None:
        await self._caches.run()

    async def ready(self) -> None:
        """Return when every resource was listed once; raises `Refused` if one cannot be listed."""
        synced = asyncio.ensure_future(self._caches.synced())
        try:
            while not synced.done():
                await asyncio.wait([synced], timeout=_PATIENCE)
                if not synced.done() and (trouble := self.trouble):
                    raise Refused(f"error: {trouble}")
        finally:
            synced.cancel()

    @property
    def trouble(self) -> str:
        """Why the watches are not up to date; empty while they are."""
        return "; ".join(f"cannot watch {resource}: {why}" for resource, why in self._caches.trouble().items())

    def outage(self) -> Outage | None:
        """Why and since when the objects may be outdated; None while they are up to date."""
        trouble = self.trouble
        if not trouble and not self._caches.is_disconnected:
            self._outdated_since = None
            return None
        self._outdated_since = self._outdated_since or datetime.now(UTC)
        return Outage(self._outdated_since, self._caches.is_disconnected, trouble)

    def observed(self) -> Observed | None:
        """The latest objects; None once the object is deleted."""
        obj = self._caches.get(self._target.resource, self._target.key)
        return None if obj is None or obj.uid != self._first.uid else Observed(obj, self._caches)

    async def change(self, *, within: float | None = None) -> bool:
        """Wait for a change; False if none came in so many seconds."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


_PATIENCE = 2.0
"""Seconds after which a list that still fails ends the command."""


@contextlib.asynccontextmanager
async def following(session: Session, target: Target, kind: RolloutKind) -> AsyncGenerator[Following, None]:
    """Follow a rollout until the block ends."""
    # Failures of a watch are shown on the screen; log lines would break it.
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    obj = await session.client.get(target.resource, target.key)
    made = Following(session, target, kind, obj)
    task = asyncio.ensure_future(made.run())
    try:
        await made.ready()
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _beside(obj: Object, kind: RolloutKind) -> Scope:
    return Scope(namespace=obj.key.namespace, labels=kind.selector(obj))
