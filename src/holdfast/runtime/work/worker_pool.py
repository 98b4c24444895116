"""WorkerPool: runs the keys of a queue, so many at a time, each as soon as it is due.

It is the loop that drivers of controllers and `KeyedWork` have in common.  It must not
know what a key means, nor how a run ends: `work` reports that to the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from holdfast.runtime.work.queues import NEVER, Queue

K = TypeVar("K", bound=Hashable)


class WorkerPool(Generic[K]):
    """The workers of one queue.

    work   runs one key; it calls `Queue.done` and does not raise
    limit  how many keys run at a time
    """

    def __init__(self, queue: Queue[K], work: Callable[[K], Awaitable[None]], *, limit: int) -> None:
        self._queue = queue
        self._work = work
        self._limit = limit
        self._wake = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Look at the queue again, because it has changed."""
        self._wake.set()

    def stop(self) -> None:
        """Take no more keys."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled, or until `stop` and the end of the runs that had begun."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as runs:
            while not (self._stopping and not self._queue.running):
                self._wake.clear()
                while self._has_room and (key := self._queue.take(loop.time())) is not None:
                    runs.create_task(self._run(key))
                due = self._queue.next_due() if self._has_room else NEVER
                timer = None if due == NEVER else loop.call_at(due, self._wake.set)
                await self._wake.wait()
                if timer is not None:
                    timer.cancel()

    @property
    def _has_room(self) -> bool:
        return not self._stopping and self._queue.running < self._limit

    async def _run(self, key: K) -> None:
        await self._work(key)
        self._wake.set()
