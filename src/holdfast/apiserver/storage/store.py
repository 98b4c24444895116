"""The store: committed objects in memory, made durable by a log, followed by watches.

All decisions are taken on the event loop's thread; the one writer thread only appends to the log.  Writes that
wait are decided together, in order, against the committed state and each other; they are given their versions and
appended in one transaction (group commit); and only when that is durable do they become visible, to readers, then
to watches, then to the callers.  One batch is under way at a time, so the state that a batch is decided on is
the state that it is committed to, and a batch that fails leaves no trace, not even a gap in the versions.

The store must not know kinds, verbs, users or what is in an object.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

from holdfast.apiserver.storage.entries import Change, Draft, Entry, Event, Key, Put, Remove, Stale
from holdfast.apiserver.storage.history import Ahead, Ended, Expired, History, Overflow, Watch, Window
from holdfast.apiserver.storage.memory import Shelves, Stage
from holdfast.apiserver.storage.sqlite_log import (
    CannotOpen,
    Corrupted,
    Full,
    InUse,
    Loaded,
    SqliteLog,
    StorageError,
    TooNew,
    WriteFailed,
)

__all__ = [
    "Ahead", "CannotOpen", "Change", "Closed", "Corrupted", "Draft", "Ended", "Entry", "Event", "Expired", "Full",
    "InUse", "Loaded", "Log", "Overflow", "Put", "Remove", "Stale", "StorageError", "Store", "TooNew", "Watch",
    "Window", "WriteFailed",
]  # fmt: skip

GROUP: Final = 512
"""The most events in one transaction, so that the first of them does not wait long for the last."""

LOG_PERIOD: Final = 60.0
"""Seconds between two lines about writes that fail."""

_log: Final = logging.getLogger("holdfast.apiserver.storage")

EMPTY: Final = Loaded(compacted=1, entries=[], events=[])
"""The version of an empty store.  Versions begin after 1: to clients, 0 means "any"."""

_Entries: TypeAlias = list[Entry]
"""An alias, because ``list`` is a method of the store."""


class Closed(StorageError):
    def __init__(self) -> None:
        super().__init__("the store is closed")


class Log(Protocol):
    """The interface of the log.  Called by the writer thread alone."""

    def append(self, events: Sequence[Event], forgotten: Sequence[Event], *, reserved: bool = False) -> None:
        """All or nothing; raises `WriteFailed`.  `reserved`: it frees space in the end, and may use the reserve."""

    def close(self) -> None: ...


class _Write(NamedTuple):
    changes: tuple[Change, ...]
    future: asyncio.Future[tuple[Entry, ...]]

    @property
    def frees(self) -> bool:
        """Whether it frees space in the end: it removes objects, or takes steps of their removal."""
        return all(isinstance(change, Remove) or change.draft.is_deleting for change in self.changes)

    def answer(self, outcome: tuple[Entry, ...] | Exception) -> None:
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class _Batch(NamedTuple):
    """Writes that are decided: the result of each once the events are durable, and the events that leave the window."""

    outcomes: list[tuple[_Write, tuple[Entry, ...] | Stale]]
    events: list[Event]
    forgotten: list[Event]
    reserved: bool
    """Whether all of them free space, and the disk is full."""


class Store:
    """Objects by resource, namespace and name; every change has a version, and versions have no gaps."""

    def __init__(
        self,
        log: Log | None,
        loaded: Loaded = EMPTY,
        *,
        window: Window | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-store")
        self._clock = clock
        self._shelves = Shelves(loaded.entries)
        self._history = History(window or Window(), compacted=loaded.compacted, events=loaded.events)
        self._changed = {event.entry.resource: event.rv for event in loaded.events}
        self._unchanged = loaded.compacted
        self._floor = 0
        self._waiting: deque[_Write] = deque()
        self._freeing: deque[_Write] = deque()
        """Writes that found the disk full and may use the reserve; they are the next."""
        self._busy = False
        self._idle: asyncio.Future[None] | None = None
        self._closed = False
        self._broken = False
        self._failures = 0
        self._logged = -LOG_PERIOD
        self.trouble = ""
        """Why writes fail at present, in a sentence; empty if they do not."""

    @classmethod
    def open(
        cls,
        path: str | None,
        *,
        window: Window | None = None,
        quota: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open the store of a data directory, or an ephemeral one if `path` is None.  Blocks; raises `CannotOpen`.

        `quota` bounds the file's size in bytes; writes beyond it fail with `Full`.
        """
        if path is None:
            return cls(None, window=window, clock=clock)
        log = SqliteLog.open(Path(path), quota=quota)
        try:
            return cls(log, log.load(), window=window, clock=clock)
        except BaseException:
            log.close()
            raise

    @property
    def revision(self) -> int:
        """The version of the newest committed change."""
        return self._history.revision

    @property
    def compacted(self) -> int:
        """The oldest version that can be read."""
        return self._history.compacted

    def get(self, resource: str, namespace: str, name: str) -> Entry | None:
        return self._shelves.get((resource, namespace, name))

    def list(self, resource: str, namespace: str | None = None) -> _Entries:
        """Its objects, sorted by namespace and name."""
        return self._shelves.all(resource, namespace)

    def snapshot(self) -> tuple[int, _Entries]:
        """The version of the store, and all objects as they are at it."""
        return self.revision, self._shelves.every()

    def count(self, resource: str, namespace: str | None = None) -> int:
        return self._shelves.count(resource, namespace)

    def changed_at(self, resource: str) -> int:
        """The version of the resource's last change, or a later one without changes since."""
        return self._changed.get(resource, self._unchanged)

    async def list_at(self, resource: str, namespace: str | None, rv: int) -> _Entries:
        """Its objects as they were at a version; `Expired` if that is too old."""
        before: dict[Key, Entry | None] = {}
        for event in self._history.since(resource, namespace, rv=rv):
            before.setdefault(event.entry.key, event.previous)
        now = self.list(resource, namespace)
        if not before:
            return now
        then = {entry.key: entry for entry in now} | before
        return [entry for _, entry in sorted(then.items()) if entry is not None]

    def watch(self, resource: str, namespace: str | None = None, *, since: int) -> Watch:
        """Watch the changes after a version; raises `Expired` if that is too old."""
        if self._closed:
            raise Closed
        return self._history.watch(resource, namespace, since=since)

    async def write(self, *changes: Change) -> tuple[Entry, ...]:
        """Do all of the changes, in order, or none; returns once they are durable and visible.

        Raises `Stale` if one of them does not find what it expects, and `WriteFailed`.  For a removal the entry is
        the final state.  A caller that is cancelled cannot know whether its write is done.
        """
        if self._closed:
            raise Closed
        if self._broken:
            raise WriteFailed(self.trouble)
        loop = asyncio.get_running_loop()
        write = _Write(changes, loop.create_future())
        self._waiting.append(write)
        if not self._busy:
            self._busy = True
            # Not at once: other writes of this loop iteration share the transaction.
            loop.call_soon(self._commit, loop)
        return await write.future

    async def compact(self, *, keep: int = 0) -> None:
        """Drop all but the last `keep` events now, instead of with the next writes."""
        floor = self.revision - keep
        self._floor = max(self._floor, floor)
        while self.compacted < floor:
            await self.write()

    async def close(self) -> None:
        """Finish the waiting writes, refuse new ones, end the watches and close the files."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        if self._busy:
            self._idle = loop.create_future()
            await self._idle
        self._history.close()
        if self._log is not None:
            await loop.run_in_executor(self._thread, self._log.close)
        self._thread.shutdown()

    def _commit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Decide the waiting writes and append them to the log."""
        batch = self._decide()
        if self._log is None or not (batch.events or batch.forgotten):
            self._settle(loop, batch, None)
            return
        append = partial(self._log.append, batch.events, batch.forgotten, reserved=batch.reserved)
        appended = loop.run_in_executor(self._thread, append)
        appended.add_done_callback(lambda done: self._settle(loop, batch, done.exception()))

    def _decide(self) -> _Batch:
        now = self._clock()
        stage = Stage(self._shelves.get, revision=self.revision, at=int(now))
        outcomes: list[tuple[_Write, tuple[Entry, ...] | Stale]] = []
        reserved = bool(self._freeing)
        if reserved:
            self._floor = self.revision  # the history is worth less than the space that it takes
        queue = self._freeing or self._waiting
        while queue and len(stage.events) < GROUP:
            write = queue.popleft()
            if write.future.cancelled():
                continue
            try:
                outcomes.append((write, stage.take(write.changes)))
            except Stale as stale:
                # Answered only after the commit, because what it has found may be part of this batch.
                outcomes.append((write, stale))
        forgotten = self._history.overdue(stage.events, now=now, floor=self._floor)
        return _Batch(outcomes, stage.events, forgotten, reserved)

    def _settle(self, loop: asyncio.AbstractEventLoop, batch: _Batch, failure: BaseException | None) -> None:
        """Make a durable batch visible and notify watches and callers; then start the next batch."""
        if failure is None:
            self._publish(batch)
        else:
            self._fail(loop, batch, failure)
        if self._waiting or self._freeing:
            # After the callers that were just resumed, which may have more to write.
            loop.call_soon(self._commit, loop)
        else:
            self._busy = False
            if self._idle is not None:
                self._idle.set_result(None)

    def _publish(self, batch: _Batch) -> None:
        self._shelves.apply(batch.events)
        self._changed |= {event.entry.resource: event.rv for event in batch.events}
        self._history.append(batch.events)
        self._history.forget(len(batch.forgotten))
        if batch.events and not batch.reserved:
            self.trouble = ""
        for write, outcome in batch.outcomes:
            write.answer(outcome)

    def _fail(self, loop: asyncio.AbstractEventLoop, batch: _Batch, failure: BaseException) -> None:
        error = failure if isinstance(failure, WriteFailed) else WriteFailed(f"the log failed: {failure!r}")
        self.trouble = str(error)
        failed = [write for write, _ in batch.outcomes]
        if isinstance(error, Full) and not batch.reserved:
            self._freeing += (write for write in failed if write.frees)
            failed = [write for write in failed if not write.frees]
            self._give_up_history(loop)
        self._log_failures(len(failed))
        if not isinstance(error, Full):
            # After a failed flush the content of the device is unknown until it is read again.
            self._broken = True
            failed += (*self._freeing, *self._waiting)
            self._freeing.clear()
            self._waiting.clear()
        for write in failed:
            # One for each: an exception that is raised twice accumulates tracebacks.
            write.answer(type(error)(self.trouble))

    def _give_up_history(self, loop: asyncio.AbstractEventLoop) -> None:
        """Free the space of old states, which is worth more than the history; watches that are behind list again."""
        if self.compacted < self.revision:
            write = _Write((), loop.create_future())
            write.future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._freeing.append(write)

    def _log_failures(self, count: int) -> None:
        """Log why writes fail, and how many have, at most once a minute."""
        self._failures += count
        now = self._clock()
        if self._failures and not 0 <= now - self._logged < LOG_PERIOD:
            _log.error("writes failed", extra={"fields": {"count": self._failures, "reason": self.trouble}})
            self._failures, self._logged = 0, now
