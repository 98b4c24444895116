"""Reach: whether the server answers, as those see it together who ask it.

Whoever has an answer again wakes the others, so that nobody waits out a long pause
for a server that is back.  That it is away is told once, whoever noticed first.
This module must not know what is asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import Final

_log: Final = logging.getLogger("holdfast.runtime")


class Reach:
    """Those who ask one server, and who of them has no answer."""

    def __init__(self) -> None:
        self._without: set[Hashable] = set()
        self._answered = asyncio.Event()

    def lost(self, who: Hashable, why: str) -> None:
        """Somebody has no answer."""
        if not self._without:
            _log.warning("server away", extra={"fields": {"why": why}})
        self._without.add(who)

    def found(self, who: Hashable) -> None:
        """Somebody who had no answer has one, or asks no more."""
        if who not in self._without:
            return
        self._without.remove(who)
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()
        if not self._without:
            _log.info("server back")

    async def wait(self, seconds: float) -> bool:
        """Wait for so long, or until somebody else has an answer; whether that was so."""
        try:
            async with asyncio.timeout(seconds):
                return await self._answered.wait()
        except TimeoutError:
            return False
