"""Workers: run long computations on a thread of their own, so that the event loop answers other requests meanwhile.

What a request costs is linear in the size of its body and of the object that it changes.  Small ones are computed on
the event loop, because a thread costs more than they do.  Large ones are computed one after another on one thread: with
several, the loop would wait for each of them before it gets the interpreter back.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

T = TypeVar("T")

LARGE: Final = 8 * 1024
"""From this many bytes on a computation leaves the event loop; less takes a few milliseconds at most."""

_SWITCH_SECONDS: Final = 0.001
"""How long the thread may keep the interpreter while the event loop waits for it."""


async def compute(size: int, do: Callable[[], T]) -> T:
    """The result of `do`, a pure computation on an input of `size` bytes that nothing else changes meanwhile."""
    if size < LARGE:
        return do()
    return await asyncio.get_running_loop().run_in_executor(_thread(), do)


@cache
def _thread() -> ThreadPoolExecutor:
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
    return ThreadPoolExecutor(1, thread_name_prefix="holdfast-compute")
