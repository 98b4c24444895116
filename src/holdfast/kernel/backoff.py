"""Backoff: how long to wait after the n-th failure in a row.

Pure arithmetic.  It must not know what failed, which clock is used, or where
random numbers come from: attempts, the time of the last failure and the spread
are arguments, so a wait survives a restart and a test can name its length.

    >>> Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=1)).delay(4)
    datetime.timedelta(seconds=8)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays that grow by `factor` from `base` up to `cap`.

    `jitter` is the largest share of a delay that the spread may take away.
    It only ever shortens, so `cap` is a promise and not an average.
    """

    base: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=5)
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if self.base <= timedelta(0):
            raise ValueError(f"base is {self.base}; it must be longer than zero, or failures would retry in a hot loop")
        if self.cap < self.base:
            raise ValueError(f"cap is {self.cap}, shorter than base {self.base}; raise the cap or lower the base")
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise ValueError(f"factor is {self.factor}; it must be at least 1, or delays would shrink")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter is {self.jitter}; it is the share of a delay in [0, 1)")

    def delay(self, attempt: int, *, spread: float = 0.0) -> timedelta:
        """The wait after `attempt` failures in a row; none after zero failures.

        `spread` in [0, 1) says how much of the jitter applies.  With equal
        spreads a later attempt never waits less than an earlier one.
        """
        if attempt < 0:
            raise ValueError(f"attempt is {attempt}; count failures in a row, from 0")
        if not 0 <= spread < 1:
            raise ValueError(f"spread is {spread}; pass a number in [0, 1)")
        if attempt == 0:
            return timedelta(0)
        # Beyond these steps the cap holds anyway; computing no further power is why attempt 10,000 does not overflow.
        steps = min(attempt - 1, self._steps_to_cap())
        grown = min(self.base / _MICROSECOND * self.factor**steps, self.cap / _MICROSECOND)
        return min(timedelta(microseconds=grown * (1 - self.jitter * spread)), self.cap)

    def next_attempt_at(self, last_failure: datetime, attempts: int, *, spread: float = 0.0) -> datetime:
        """When to try again, from facts that a status keeps: the last failure and how many came in a row."""
        return last_failure + self.delay(attempts, spread=spread)

    def _steps_to_cap(self) -> int:
        if self.factor == 1:
            return 0
        return math.ceil(math.log(self.cap / self.base) / math.log(self.factor))
