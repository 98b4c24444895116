"""The objects of one rollout: read once, or watched.

The command reads the object and the parts that its kind declares, all by one selector.
This module must not know what the objects mean.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.cli import watching
from holdfast.cli.connecting import Session
from holdfast.cli.objects.targets import Target
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.operators.rollouts import Observed, RolloutKind
from holdfast.runtime.caching.listed import listed


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
        self.caches = watching.caches(session, scopes)
        for resource in scopes:
            self.caches.subscribe(resource, lambda old, new: self._changed.set())

    def outage(self) -> Outage | None:
        """Why and since when the objects may be outdated; None while they are up to date."""
        trouble = watching.trouble(self.caches)
        if not trouble and not self.caches.is_disconnected:
            self._outdated_since = None
            return None
        self._outdated_since = self._outdated_since or datetime.now(UTC)
        return Outage(self._outdated_since, self.caches.is_disconnected, trouble)

    def observed(self) -> Observed | None:
        """The latest objects; None once the object is deleted."""
        obj = self.caches.get(self._target.resource, self._target.key)
        return None if obj is None or obj.uid != self._first.uid else Observed(obj, self.caches)

    async def change(self, *, within: float | None = None) -> bool:
        """Wait for a change; False if none came in so many seconds."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


@contextlib.asynccontextmanager
async def following(session: Session, target: Target, kind: RolloutKind) -> AsyncGenerator[Following, None]:
    """Follow a rollout until the block ends."""
    obj = await session.client.get(target.resource, target.key)
    made = Following(session, target, kind, obj)
    async with watching.running(made.caches):
        yield made


def _beside(obj: Object, kind: RolloutKind) -> Scope:
    return Scope(namespace=obj.key.namespace, labels=kind.selector(obj))
