"""An event loop on virtual time: a timer fires at once when nothing else is left to do.

Queues, locks and tasks behave as on any loop; as soon as every task waits, the clock
jumps to the next timer.  Tests of deadlines,
backoff and hour-long watches end at once, and always in the same order.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""When every virtual clock begins."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which waiting takes no time."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._computing = 0
        super().__init__(_Jumping(self.advance, waits=lambda: self._computing > 0))
        # A timer is due within this time, which must be more than the steps between large numbers: after months, the
        # nanosecond of other loops is not.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._elapsed

    def now(self) -> datetime:
        """The time of day that goes with the loop's."""
        return EPOCH + timedelta(seconds=self._elapsed)

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """As in any loop; no time passes while a thread works."""
        future = super().run_in_executor(executor, func, *args)
        self._computing += 1
        future.add_done_callback(self._computed)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads, however long it takes: on virtual time a timeout would be over at once."""
        await super().shutdown_default_executor()

    def _computed(self, _: asyncio.Future[Any]) -> None:
        self._computing -= 1


class _Jumping(selectors.DefaultSelector):
    """Rather than wait for a timer, says that its time has come; `waits` says when to wait for a thread instead."""

    def __init__(self, advance: Callable[[float], None], *, waits: Callable[[], bool]) -> None:
        super().__init__()
        self._advance = advance
        self._waits = waits

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout and self._waits():
            return super().select(None)
        ready = super().select(0 if timeout else timeout)
        if not ready and timeout:
            self._advance(timeout)
        return ready


def run(doing: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that is given its loop, on virtual time, to its end."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(doing(loop))
