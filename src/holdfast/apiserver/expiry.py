"""Expiry: removes Events some time after they were last written, one hour by default as in Kubernetes.

It follows the writes of Events and keeps a queue of them in the order in which they expire.  An Event that was written
again since is in the queue a second time, and only its last write counts.  After a restart the time of an Event is that
which the Event itself names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from holdfast.apiserver.storage.store import Ended, Entry, Expired, Overflow, Remove, Stale, StorageError, Store
from holdfast.meta import times

EVENTS: Final = "/events"
DEFAULT_SECONDS: Final = 3600.0
AT_ONCE: Final = 256
"""The most Events that are removed together, so that other writes do not wait long."""

RETRY_SECONDS: Final = 60.0
"""How long to wait after the store refused to remove Events."""


class _Due(NamedTuple):
    """A write of an Event: when it expires by the clock of the event loop, and its version."""

    at: float
    entry: Entry


class _Metadata(msgspec.Struct, rename="camel"):
    creation_timestamp: str | None = None


class _Times(msgspec.Struct, rename="camel"):
    """The times that an Event names."""

    metadata: _Metadata
    last_timestamp: str | None = None
    event_time: str | None = None


_decode: Final = msgspec.json.Decoder(_Times).decode


class Expiry:
    """Removes Events `seconds` after their last write, while it is started."""

    def __init__(self, store: Store, *, seconds: float, now: Callable[[], datetime]) -> None:
        self._store = store
        self._seconds = seconds
        self._now = now
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="expiry of events")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except (Overflow, Expired):
                continue  # begin again with what is there
            except Ended:
                return  # the store is closed

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        watch = self._store.watch(EVENTS, since=self._store.revision)
        try:
            queue = deque(sorted(self._existing(clock()), key=lambda due: due.at))
            while True:
                within = max(0.0, queue[0].at - clock()) if queue else None
                written = await watch.take(within=within)
                queue.extend(_Due(clock() + self._seconds, event.entry) for event in written if event.type != "DELETED")
                due: list[_Due] = []
                while queue and queue[0].at <= clock() and len(due) < AT_ONCE:
                    due.append(queue.popleft())
                if not await self._remove([each.entry for each in due]):
                    queue.extendleft(each._replace(at=clock() + RETRY_SECONDS) for each in reversed(due))
        finally:
            watch.close()

    def _existing(self, clock: float) -> Iterable[_Due]:
        now = self._now()
        for entry in self._store.list(EVENTS):
            age = (now - _last_seen(entry, now)).total_seconds()
            # A clock that was set back, or an Event of another clock, extends no lifetime.
            yield _Due(clock + min(max(self._seconds - age, 0.0), self._seconds), entry)

    async def _remove(self, entries: list[Entry]) -> bool:
        """Remove those that were not written again; False if the store cannot write."""
        last = [entry for entry in entries if self._store.get(*entry.key) is entry]
        outcomes = await asyncio.gather(
            *(self._store.write(Remove(*entry.key, expect=entry.rv)) for entry in last), return_exceptions=True
        )
        failures = [each for each in outcomes if isinstance(each, BaseException) and not isinstance(each, Stale)]
        for failure in failures:
            if not isinstance(failure, StorageError):
                raise failure
        return not failures


def _last_seen(entry: Entry, default: datetime) -> datetime:
    try:
        event = _decode(entry.value)
        named = event.last_timestamp or event.event_time or event.metadata.creation_timestamp
        return times.parse(named) if named else default
    except ValueError:
        return default
