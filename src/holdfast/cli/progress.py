"""What a command waits for, on the last line of a terminal: shown after a second, and removed when the wait ends.

In a pipe nothing is printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Callable
from typing import Final

from holdfast.cli import logs, painting
from holdfast.cli.background import background
from holdfast.cli.errors import printable
from holdfast.meta.ages import human_duration
from holdfast.views.spans import Span, Tone, cut

PATIENCE: Final = 1.0
"""Seconds before anything is shown: most waits are shorter."""

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME: Final = 0.2


@contextlib.asynccontextmanager
async def waiting(words: Callable[[], str]) -> AsyncGenerator[None, None]:
    """Show what is waited for until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    async with background(_animate(words)):
        yield


async def _animate(words: Callable[[], str]) -> None:
    since = time.monotonic()
    await asyncio.sleep(PATIENCE)
    with logs.above(_erase, lambda: None):
        await _draw(words, since)


def _erase() -> None:
    sys.stderr.write("\r\x1b[2K")
    sys.stderr.flush()


async def _draw(words: Callable[[], str], since: float) -> None:
    try:
        for number in range(10**9):
            frame = _FRAMES[number % len(_FRAMES)]
            text = f"{frame} {printable(words())} ({human_duration(time.monotonic() - since)})"
            width = shutil.get_terminal_size().columns - 1
            line = painting.text([(Span(cut(text, width), Tone.FAINT),)], colours=painting.has_colours(sys.stderr))
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
            await asyncio.sleep(_FRAME)
    finally:
        _erase()
