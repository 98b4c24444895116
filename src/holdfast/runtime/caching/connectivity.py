"""Connectivity: whether the server answers, shared by all watches of a process.

The first watch that gets an answer again wakes the others, so that none waits out a
long backoff for a server that is back.  That the server does not answer is logged
once.  So is what the server does not offer: streaming lists are asked for until the
server refuses one, and then no more.  This module must not know what is requested.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import Final

_log: Final = logging.getLogger("holdfast.runtime")


class Connectivity:
    """The watches of one server that get no answer."""

    def __init__(self) -> None:
        self._without: set[Hashable] = set()
        self._answered = asyncio.Event()
        self._streams = True

    @property
    def streams(self) -> bool:
        """Whether the server offers streaming lists, as far as is known."""
        return self._streams

    def refused_streaming(self, why: str) -> None:
        """The server refused a streaming list, so that no watch asks for another one."""
        if self._streams:
            _log.info("server without streaming lists", extra={"fields": {"why": why, "instead": "list and watch"}})
        self._streams = False

    @property
    def is_lost(self) -> bool:
        """Whether any watch gets no answer."""
        return bool(self._without)

    def lost(self, watch: Hashable, why: str) -> None:
        """A watch gets no answer."""
        if not self._without:
            _log.warning("server away", extra={"fields": {"why": why}})
        self._without.add(watch)

    def found(self, watch: Hashable) -> None:
        """A watch that got no answer gets one, or has ended."""
        if watch not in self._without:
            return
        self._without.remove(watch)
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()
        if not self._without:
            _log.info("server back")

    async def wait(self, seconds: float) -> bool:
        """Wait for so long, or until another watch gets an answer; whether one did."""
        try:
            async with asyncio.timeout(seconds):
                return await self._answered.wait()
        except TimeoutError:
            return False
