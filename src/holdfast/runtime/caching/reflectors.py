"""Reflectors: keep a store like the server, by doing what the watch's state machine asks for.

The decisions are those of `watching`; here is only the I/O: lists, streams, waits, and the
silence after which a stream is dead.  This module must not know what objects mean.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Final, Protocol, assert_never

from holdfast.client.objects import Object
from holdfast.client.protocols import EVERYTHING, Bookmark, Event, Reader, Scope, Watcher
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.caching import watching
from holdfast.runtime.caching.connectivity import Connectivity
from holdfast.runtime.caching.stores import Writer
from holdfast.runtime.caching.watching import Ask, Change, Input, Reason
from holdfast.runtime.caching.watermarks import number

_log: Final = logging.getLogger("holdfast.runtime")

SILENCE: Final = 100.0
"""Seconds without a word, not even a bookmark, which servers send every minute, after which a stream is dead."""

_PRECISION: Final = 1.0
"""Seconds by which silence may be counted short, so that not every event moves a timer."""

_BREATH: Final = 100
"""Events after which other tasks get a turn, so that a busy stream does not keep the loop for itself."""

_OUTDATED: Final = 4
"""Lists in a row that are refused for being older than what was seen; then the server was restored from a backup."""

_RUSH: Final = 1.0
"""Seconds over which the watches are spread that begin again when the server is back."""

Restarted = Callable[[str, str], None]
"""Called whenever a watch is begun again: its resource (``deployments.apps``), and the `watching.Reason`."""


def ignore(resource: str, reason: str) -> None:
    """Do not count how often watches are begun again."""


class Source(Reader, Watcher, Protocol):
    """What a reflector needs of a client."""


class Reflector:
    """Follows the objects of one resource in one scope.

    synced     called after every list that is in the store
    random     gives numbers in [0, 1), which spread waits
    connectivity      shared by the reflectors of one server
    """

    def __init__(
        self,
        source: Source,
        resource: Resource,
        *,
        writer: Writer,
        random: Callable[[], float],
        scope: Scope = EVERYTHING,
        metadata_only: bool = False,
        synced: Callable[[], None] = lambda: None,
        restarted: Restarted = ignore,
        connectivity: Connectivity | None = None,
    ) -> None:
        self.resource = resource
        self.scope = scope
        self._source = source
        self._metadata_only = metadata_only
        self._writer = writer
        self._random = random
        self._synced = synced
        self._restarted = restarted
        self._connectivity = connectivity or Connectivity()
        self._is_away = False
        self._outdated = 0
        """How many lists in a row were older than what had been seen."""
        self._staged: dict[Key, Object] = {}
        self._step = watching.begin()

    @property
    def trouble(self) -> str:
        """What is wrong; empty while all is well."""
        return self._step.state.setbacks.trouble

    async def run(self) -> None:
        """Follow the server until cancelled."""
        self._step = watching.begin(collects=self._connectivity.streams)
        try:
            while True:
                self._take(await self._next())
        finally:
            self._connectivity.found(self)

    async def _next(self) -> Input:
        """What comes of the last question, good or bad."""
        began = self._clock()
        try:
            return await self._answer(self._step.ask)
        except Exception as error:
            # Even after a defect of ours, or of what came, this watch is begun again, and the others go on.
            if isinstance(self._step.state, watching.Collecting) and watching.refuses_streaming(error):
                self._connectivity.refused_streaming(str(error))
            return watching.Failed(error, self._since(began))

    def _take(self, input: Input) -> None:
        before = self._step.state
        self._step = step = watching.step(before, input, spread=self._random())
        if step.change is not None:
            self._apply(step.change)
        if step.reason is not None:
            self._restarted(self.resource.group_resource, step.reason.value)
        if step.state.setbacks is not before.setbacks and step.state.setbacks.trouble != before.setbacks.trouble:
            self._log_trouble(input.error if isinstance(input, watching.Failed) else None)

    def _log_trouble(self, error: Exception | None) -> None:
        """Log a problem when it begins, changes or ends; a server that does not answer, once for all watches."""
        was_away, self._is_away = self._is_away, bool(self.trouble) and self._step.reason is Reason.UNREACHABLE
        if self._is_away:
            self._connectivity.lost(self, self.trouble)
            return
        self._connectivity.found(self)
        if self._step.reason is Reason.BROKEN:
            _log.error("watch broke", exc_info=error, extra={"fields": self._fields()})
        elif self.trouble:
            _log.warning("watch in trouble", extra={"fields": self._fields() | {"trouble": self.trouble}})
        elif not was_away:
            _log.info("watch recovered", extra={"fields": self._fields()})

    def _apply(self, change: Change) -> None:
        match change:
            case watching.Put(obj):
                self._writer.put(obj)
            case watching.Remove(obj):
                self._writer.remove(obj)
            case watching.Advance(version):
                self._writer.advance(version)
            case watching.Stage(obj):
                self._staged[obj.key] = obj
            case watching.Unstage(obj):
                self._staged.pop(obj.key, None)
            case watching.Commit(version):
                staged, self._staged = self._staged, {}
                self._writer.replace(staged.values(), version)
                self._synced()
            case watching.Replace(listed):
                self._writer.replace(listed.objects, listed.version)
                self._synced()
            case _:
                assert_never(change)

    async def _answer(self, ask: Ask | None) -> Input:
        """What comes of a question; of a stream, what came last."""
        match ask:
            case watching.Wait(delay):
                await self._wait(delay.total_seconds())
                return watching.Due()
            case watching.List():
                listed = await self._source.list(self.resource, self.scope, metadata_only=self._metadata_only)
                self._check_age(listed.version)
                return listed
            case watching.Collect():
                self._staged = {}
                return await self._stream(initial=True)
            case watching.Watch(since):
                return await self._stream(since=since)
            case None:
                raise RuntimeError("a stream is over, and nothing else was asked for")
            case _:
                assert_never(ask)

    def _check_age(self, version: str) -> None:
        """Refuse a list that is older than what has been seen.

        It comes from a replica of the server that lags, or was long on its way, and would bring back what is gone.
        A server that insists on its past was restored from a backup: its past is the truth now.
        """
        listed, seen = number(version), self._writer.version
        self._outdated = self._outdated + 1 if listed is not None and listed < seen else 0
        if listed is not None and 0 < self._outdated <= _OUTDATED:
            raise watching.Outdated(listed, seen)
        self._outdated = 0

    async def _wait(self, seconds: float) -> None:
        if self._is_away and await self._connectivity.wait(seconds):
            seconds = min(seconds, _RUSH) * self._random()
        elif self._is_away:
            return
        await asyncio.sleep(seconds)

    async def _stream(self, *, since: str = "", initial: bool = False) -> Input:
        began = self._clock()
        stream = self._source.watch(
            self.resource, self.scope, since=since, initial=initial, metadata_only=self._metadata_only
        )
        async with stream as events:
            self._take(watching.Opened())
            silent = await self._listen(events)
        return watching.Ended(self._since(began), silent=silent)

    async def _listen(self, events: AsyncIterator[Event]) -> bool:
        """Take what a stream says until it ends; whether it had to be ended for its silence."""
        clock, count = asyncio.get_running_loop().time, 0
        heard = clock()
        try:
            async with asyncio.timeout(SILENCE) as silence:
                async for event in events:
                    if isinstance(event, Bookmark) and event.initial:
                        self._check_age(event.version)
                    self._take(event)
                    count += 1
                    if count % _BREATH == 0:
                        await asyncio.sleep(0)
                    if (now := clock()) - heard > _PRECISION:
                        heard = now
                        silence.reschedule(heard + SILENCE)
        except TimeoutError:
            if not silence.expired():
                raise
            return True
        return False

    def _clock(self) -> float:
        return asyncio.get_running_loop().time()

    def _since(self, began: float) -> timedelta:
        return timedelta(seconds=self._clock() - began)

    def _fields(self) -> dict[str, str]:
        return {"resource": str(self.resource), "namespace": self.scope.namespace}
