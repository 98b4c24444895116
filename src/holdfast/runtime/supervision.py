"""Supervision: a part that crashes is started again, after a longer wait each time, and the other parts go on.

A `Part` is anything that runs until it is cancelled.  A crash is logged, counted, and
reported by the health check until the part has run for longer than it had to wait.
This module must not know what a part does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Failure
from holdfast.runtime.metrics import Metrics

_log: Final = logging.getLogger("holdfast.runtime")

BACKOFF: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=1))

STEADY: Final = 300.0
"""Seconds of running after which earlier crashes say nothing any more."""


class Part:
    """Something that runs, under a name such as ``component scheduler``.

    run     runs until it is cancelled; begun anew after every crash.  That it returns means that it is done
    spread  gives numbers in [0, 1), so that parts that crashed together do not come back together
    """

    def __init__(
        self, name: str, run: Callable[[], Awaitable[None]], *, metrics: Metrics, spread: Callable[[], float]
    ) -> None:
        self.name = name
        self._run = run
        self._metrics = metrics
        self._spread = spread
        self._crashes = 0
        self._last = ""
        self._why = ""
        self._doubtful_until = 0.0

    async def keep(self) -> None:
        """Run it, and again after every crash, until it is done or this is cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._run()
            except asyncio.CancelledError as stray:
                if _is_cancelled():
                    raise
                crash: BaseException = stray  # a task that the part waited for was cancelled, not the part itself
            except Exception as error:
                crash = error
            else:
                return
            await asyncio.sleep(self._crashed(crash, at=clock(), lasted=clock() - began))

    def trouble(self, now: float) -> str | None:
        """What is wrong with it, if anything is."""
        if now >= self._doubtful_until:
            return None
        return f"{self.name} crashed with {self._last}, {self._crashes} times in a row"

    def _crashed(self, error: BaseException, *, at: float, lasted: float) -> float:
        """Record a crash; returns in how many seconds the part is started again."""
        self._crashes = 1 if lasted > STEADY else self._crashes + 1
        self._last = type(error).__name__
        delay = BACKOFF.delay(self._crashes, spread=self._spread()).total_seconds()
        self._doubtful_until = at + 2 * delay
        self._metrics.crashed(self.name)
        self._log_crash(error, again_in=delay)
        return delay

    def _log_crash(self, error: BaseException, *, again_in: float) -> None:
        """Log why it crashed, with a traceback only if that is new."""
        is_new = self._crashes == 1 or self._why != repr(error)
        self._why = repr(error)
        fields = {"part": self.name, "crashes": self._crashes, "again_in": f"{again_in:.3g}s"}
        if isinstance(error, Failure):
            # Not a defect of its code: it says itself what went wrong.
            _log.warning("part gave up", extra={"fields": fields | {"reason": error.reason, "error": error.message}})
        else:
            _log.error("part crashed", exc_info=error if is_new else None, extra={"fields": fields})


def _is_cancelled() -> bool:
    """Whether the running task itself was cancelled, and not a task that it waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
