"""SIGTERM and SIGINT end a command in order, whatever it waits for: also before it is ready."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_signalled(work: Coroutine[Any, Any, None]) -> bool:
    """Run `work` to its end, or until the first signal cancels it; whether it came to its end."""
    task = asyncio.create_task(work)

    def stop() -> None:
        if not task.cancelling():
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await asyncio.wait({task})
    if task.cancelled():
        return False
    task.result()
    return True
