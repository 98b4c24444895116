"""Suspension: since when this process has listened without a break.

A process that was stopped, or whose machine slept, heard nothing in the meantime, and
must not take that for the silence of others.  It notices by its own heartbeat: one
that comes much too late means that nothing else was done in time either.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.resources import Resource
from holdfast.runtime.controllers import Environment

BEAT: Final = timedelta(seconds=5)
LATE: Final = timedelta(seconds=10)
"""By how much a heartbeat must be late to mean a break; a busy process is late by less."""


@dataclass(slots=True)
class Suspension:
    """A component that notices breaks; `since` is the end of the last one, None while there was none."""

    since: datetime | None = None
    name: str = "suspension"
    reads: tuple[Resource, ...] = ()

    async def run(self, environment: Environment) -> None:
        while True:
            before = environment.now()
            await asyncio.sleep(BEAT.total_seconds())
            now = environment.now()
            if now - before > BEAT + LATE:
                self.since = now
