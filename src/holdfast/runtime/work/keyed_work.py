"""KeyedWork: keys that a component works on, several at a time, each until it is done.

It is to a component what a driver is to a controller: for components whose keys are not
the objects of one resource.  A key never runs twice at the same time.  One that fails is
tried again after a growing wait, and an unexpected exception ends only its own run.
This module must not know what a key means.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Final, Generic, TypeVar

from holdfast.client.protocols import Unreachable
from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Again, Failure, Outcome, Retry
from holdfast.meta.errors import AlreadyExists, Conflict, NotFound, StatusError
from holdfast.runtime.controllers import BACKOFF
from holdfast.runtime.log_once import LogOnce
from holdfast.runtime.work.queues import Priority, Queue
from holdfast.runtime.work.worker_pool import WorkerPool

K = TypeVar("K", bound=Hashable)

_log: Final = logging.getLogger("holdfast.cluster")


class KeyedWork(Generic[K]):
    """A queue of keys and the workers that run them.

    name     the component, for the log
    do       works on one key; it returns when to look again, or raises
    workers  how many keys are worked on at a time
    """

    def __init__(
        self, name: str, do: Callable[[K], Awaitable[Outcome]], *, workers: int, backoff: Backoff = BACKOFF
    ) -> None:
        self._name = name
        self._do = do
        self._backoff = backoff
        self._queue: Queue[K] = Queue()
        self._pool = WorkerPool(self._queue, self._run, limit=workers)
        self._logged: LogOnce[K] = LogOnce()

    def add(self, key: K) -> None:
        """Run a key, because something changed for it."""
        self._queue.changed(key, asyncio.get_running_loop().time())
        self._pool.wake()

    def wait(self, key: K, after: timedelta) -> None:
        """Run a key after a while, if nothing brings it sooner."""
        now = asyncio.get_running_loop().time()
        self._queue.add(key, now, at=now + after.total_seconds(), priority=Priority.LOOKED_AT)
        self._pool.wake()

    async def run(self) -> None:
        """Work until cancelled."""
        await self._pool.run()

    async def _run(self, key: K) -> None:
        try:
            outcome = await self._do(key)
        except Exception as error:
            self._failed(key, error)
        else:
            self._queue.done(key)
            self._logged.clear(key)
            if isinstance(outcome, Again):
                self.wait(key, outcome.after)

    def _failed(self, key: K, error: Exception) -> None:
        failures = self._queue.done(key, failed=True)
        asked = error.after if isinstance(error, Retry) else None
        delay = asked or self._backoff.delay(failures)
        self._log_failure(key, error)
        self.wait(key, delay)

    def _log_failure(self, key: K, error: Exception) -> None:
        """Log what went wrong, once; a key that waits, or that acted on an old object, is not logged."""
        if isinstance(error, (Failure, Conflict, NotFound, AlreadyExists)):
            return
        if not self._logged.is_new(key, type(error).__name__, str(error)):
            return
        said = {"fields": {"component": self._name, "key": str(key), "error": str(error)}}
        if isinstance(error, (StatusError, Unreachable)):
            _log.warning("work failed", extra=said)
        else:
            _log.error("work crashed", exc_info=error, extra=said)
