"""Workers: run long computations on a thread of their own, so that the event loop answers other requests meanwhile.

What a request costs is linear in the size of its body and of the object that it changes.  Small ones are computed on
the event loop, because a thread costs more than they do.  Large ones are computed one after another on one thread: with
several, the loop would wait for each of them before it gets the interpreter back.

While a request with a huge object is processed, garbage is not collected: the collector looks at every object there
is, and keeps the interpreter meanwhile.  With the millions of small objects that a body of 3 MiB becomes, that takes a
quarter of a second.  These objects have no cycles, and are freed without it when their request ends.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Final, TypeVar

T = TypeVar("T")

LARGE: Final = 8 * 1024
"""From this many bytes on a computation leaves the event loop; less takes a few milliseconds at most."""

HUGE: Final = 256 * 1024
"""From this many bytes on an object has so many parts that they are noticed in a collection of garbage."""

_SWITCH_SECONDS: Final = 0.001
"""How long the thread may keep the interpreter while the event loop waits for it."""

_UNCOLLECTED_SECONDS: Final = 60.0
"""After which there is a collection although huge requests follow one another without end."""


async def compute(size: int, do: Callable[[], T]) -> T:
    """The result of `do`, a pure computation on an input of `size` bytes that nothing else changes meanwhile."""
    if size < LARGE:
        return do()
    if size >= HUGE:
        _postpone()
    return await asyncio.get_running_loop().run_in_executor(_thread(), do)


@cache
def _thread() -> ThreadPoolExecutor:
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
    return ThreadPoolExecutor(1, thread_name_prefix="holdfast-compute")


# The collection of garbage.


class OfRequest:
    """The time in which a request is processed, and whether collections wait for its end."""

    __slots__ = ("_token", "is_huge")

    def __enter__(self) -> None:
        self.is_huge = False
        self._token = _request.set(self)

    def __exit__(self, *exc: object) -> None:
        _request.reset(self._token)
        if self.is_huge:
            # After whatever the thread still holds of the request.
            _thread().submit(_collections.resume)


_request: Final[ContextVar[OfRequest | None]] = ContextVar("request", default=None)


def _postpone() -> None:
    """Have no collection before the end of this request."""
    request = _request.get()
    if request is not None and not request.is_huge:
        request.is_huge = True
        _collections.pause()


class _Collections:
    """Collections of garbage, which wait while huge requests are processed, but not for ever."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._huge = 0
        self._since = 0.0
        self._enabled = True

    def pause(self) -> None:
        with self._lock:
            if not self._huge:
                self._enabled = gc.isenabled()
                gc.disable()
                self._since = time.monotonic()
            elif time.monotonic() - self._since > _UNCOLLECTED_SECONDS:
                gc.collect()
                self._since = time.monotonic()
            self._huge += 1

    def resume(self) -> None:
        with self._lock:
            self._huge -= 1
            if not self._huge and self._enabled:
                gc.enable()


_collections: Final = _Collections()
