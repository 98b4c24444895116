"""Work in the background: a coroutine that runs while a block does, and ends with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, T]) -> AsyncGenerator[asyncio.Task[T], None]:
    """Run it until the block ends; if it failed before, its exception is raised then."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
