"""The garbage collector of a process that works until it is stopped."""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 10_000
"""After how many new objects the collector looks at them; Python's default is 700."""


def collect_rarely() -> None:
    """Keep what is there now for good, and look less often for cycles among what is new.

    Requests and passes make many objects and few cycles, so nearly all of them are freed without the collector. With
    Python's default it took 4 % of the CPU of a server under load, and found nothing.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
