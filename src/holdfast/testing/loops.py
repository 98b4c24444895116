"""An event loop on virtual time: a timer fires at once when nothing else is left to do.

Queues, locks and tasks behave as on any loop; as soon as every task waits, the clock
jumps to the next timer.  Tests of deadlines,
backoff and hour-long watches end at once, and always in the same order.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

T = TypeVar("T")

EPOCH: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""When every virtual clock begins."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which waiting takes no time."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        super().__init__(_Jumping(self.advance))

    def time(self) -> float:
        return self._elapsed

    def now(self) -> datetime:
        """The time of day that goes with the loop's."""
        return EPOCH + timedelta(seconds=self._elapsed)

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds


class _Jumping(selectors.DefaultSelector):
    """Rather than wait for a timer, says that its time has come."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout else timeout)
        if not ready and timeout:
            self._advance(timeout)
        return ready


def run(doing: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that is given its loop, on virtual time, to its end."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(doing(loop))
