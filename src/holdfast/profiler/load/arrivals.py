"""When the requests of an open loop are sent.  Pure: the same seed gives the same times."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

Process = Literal["poisson", "constant"]


def times(rate: float, *, process: Process = "poisson", seed: int = 0) -> Iterator[float]:
    """Seconds from the beginning of a test, without end: `rate` requests a second."""
    if rate <= 0:
        raise ValueError("a rate is more than 0")
    draw = random.Random(seed)
    now = 0.0
    while True:
        yield now
        now += draw.expovariate(rate) if process == "poisson" else 1 / rate
