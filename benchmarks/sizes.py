"""How large a benchmark is: as large as the figures need, or tiny, which shows only that it runs."""

from __future__ import annotations

import os
from typing import Final, TypeVar

T = TypeVar("T")

VARIABLE: Final = "HOLDFAST_BENCH_SIZE"
"""The variable that says ``tiny``; the processes of a benchmark inherit it."""


def sized(full: T, tiny: T) -> T:
    """A count or a duration of a benchmark."""
    return tiny if os.environ.get(VARIABLE) == "tiny" else full
