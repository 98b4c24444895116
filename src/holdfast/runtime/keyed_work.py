"""KeyedWork: keys that a component works on, some at a time, each until it is done.

What a driver is for a controller, in small: for components that work on something
else than the keys of one resource.  A key runs once at a time; one that fails is
tried again after a while that grows, and a defect stops nothing but itself.  This
module must not know what a chore is.
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
from holdfast.runtime.log_once import Troubles
from holdfast.runtime.queues import NEVER, Priority, Queue

K = TypeVar("K", bound=Hashable)

_log: Final = logging.getLogger("holdfast.cluster")


class KeyedWork(Generic[K]):
    """A queue of keys and who works on them.

    name     whose chores they are, for the log
    do       works on one key; it returns when to look again, or raises
    workers  how many keys are worked on at a time
    """

    def __init__(
        self, name: str, do: Callable[[K], Awaitable[Outcome]], *, workers: int, backoff: Backoff = BACKOFF
    ) -> None:
        self._name = name
        self._do = do
        self._workers = workers
        self._backoff = backoff
        self._queue: Queue[K] = Queue()
        self._wake = asyncio.Event()
        self._troubles: Troubles[K] = Troubles()

    def add(self, key: K) -> None:
        """Have a key worked on, because the world has changed for it."""
        self._queue.changed(key, asyncio.get_running_loop().time())
        self._wake.set()

    def wait(self, key: K, after: timedelta) -> None:
        """Have a key worked on after a while, if nothing brings it sooner."""
        now = asyncio.get_running_loop().time()
        self._queue.add(key, now, at=now + after.total_seconds(), priority=Priority.LOOKED_AT)
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                while self._queue.running < self._workers and (key := self._queue.take(loop.time())) is not None:
                    group.create_task(self._work(key))
                due = self._queue.next_due() if self._queue.running < self._workers else NEVER
                timer = None if due == NEVER else loop.call_at(due, self._wake.set)
                await self._wake.wait()
                if timer is not None:
                    timer.cancel()

    async def _work(self, key: K) -> None:
        try:
            outcome = await self._do(key)
        except Exception as error:
            self._failed(key, error)
        else:
            self._queue.done(key)
            self._troubles.over(key)
            if isinstance(outcome, Again):
                self.wait(key, outcome.after)
        self._wake.set()

    def _failed(self, key: K, error: Exception) -> None:
        failures = self._queue.done(key, failed=True)
        asked = error.after if isinstance(error, Retry) else None
        delay = asked or self._backoff.delay(failures)
        self._tell(key, error)
        self.wait(key, delay)

    def _tell(self, key: K, error: Exception) -> None:
        """Say what went wrong, once; that something must wait, or was looked at too late, is no trouble."""
        if isinstance(error, (Failure, Conflict, NotFound, AlreadyExists)):
            return
        if not self._troubles.is_news(key, type(error).__name__, str(error)):
            return
        said = {"fields": {"component": self._name, "key": str(key), "error": str(error)}}
        if isinstance(error, (StatusError, Unreachable)):
            _log.warning("chore failed", extra=said)
        else:
            _log.error("chore crashed", exc_info=error, extra=said)
