"""An election at work: asks the API what the protocol of `leases` wants, and works while the lease is held.

Nothing here knows when a lease may be taken, nor what is done while leading.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias, assert_never

import msgspec

from holdfast.client.objects import Object
from holdfast.client.protocols import Reader, Unreachable, Writer
from holdfast.client.resources import LEASES
from holdfast.meta.errors import AlreadyExists, Conflict, NotFound, StatusError
from holdfast.meta.objects import Key
from holdfast.runtime.leadership.leases import (
    SPREAD,
    TERMS,
    Accepted,
    Action,
    Contender,
    Failed,
    Following,
    Found,
    Happening,
    Leading,
    Look,
    Put,
    Record,
    Refused,
    Seen,
    State,
    Terms,
    Wait,
    Waited,
    released,
    step,
)
from holdfast.runtime.log_once import LogOnce

_log: Final = logging.getLogger("holdfast.runtime.leadership.elections")


class Api(Reader, Writer, Protocol):
    """What an election asks of a client; not a fenced one, for it is what the fence goes by."""


Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Election:
    """Asks for a Lease and works while it is held.

    key        of the Lease; its namespace must exist
    identity   who we are; `unique_identity` makes one
    now        the time of day
    monotonic  seconds of a clock that only ever goes forward, also while the machine sleeps: `boot_seconds`
    """

    def __init__(
        self,
        client: Api,
        key: Key,
        *,
        identity: str,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        terms: Terms = TERMS,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._key = key
        self._me = Contender(identity=identity, terms=terms)
        self._now = now
        self._monotonic = monotonic
        self._spread = spread
        self._state: State = Following()
        self._action: Action = Look()
        self._logged: LogOnce[str] = LogOnce()

    def held(self) -> bool:
        """Whether it is certain, at this moment, that no other process holds the lease."""
        return isinstance(self._state, Leading) and self._state.holds(self._monotonic())

    @property
    def holder(self) -> str:
        """The holder when the lease was last read; empty if it had none."""
        match self._state:
            case Leading(record) | Following(Seen(record)):
                return record.holder
            case _:
                return ""

    async def run(self, work: Work) -> None:
        """Work whenever we lead; ends when the work does.

        The work is cancelled at once when the lease is lost, and begun anew when it is ours again.  Cancelled, this
        ends the work first, keeping the lease meanwhile, and then gives the lease up.
        """
        try:
            while True:
                while not isinstance(self._state, Leading):
                    await self._turn(None)
                if await self._led(work):
                    return
        finally:
            await self._release()

    async def _led(self, work: Work) -> bool:
        """Work until the work ends, or the lease is lost; whether it was the work."""
        working = asyncio.create_task(work(), name=f"leading {self._key}")
        keeping = asyncio.create_task(self._keep(), name=f"keeping {self._key}")
        try:
            await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
            lost = not working.done()
        finally:
            # Work first: what it does on its way out is still done by the holder.
            failures = (await _ended(working), await _ended(keeping))
            for failure in filter(None, failures):
                raise failure
        return not lost

    async def _keep(self) -> None:
        """Renew the lease until it is lost."""
        while isinstance(self._state, Leading):
            await self._turn(self._state.until - self._monotonic())

    async def _turn(self, seconds: float | None) -> None:
        """Do what is to be done, in that time, and learn from it what to do next."""
        try:
            async with asyncio.timeout(seconds):
                happened = await self._done(self._action)
        except TimeoutError:
            happened = Failed()
        before = self._state
        self._state, self._action = step(before, happened, me=self._me, at=self._monotonic(), now=self._now())
        if type(before) is not type(self._state):
            message = "lease acquired" if isinstance(self._state, Leading) else "lease lost"
            _log.info(message, extra={"fields": {"lease": str(self._key), "identity": self._me.identity}})

    async def _done(self, action: Action) -> Happening:
        match action:
            case Wait(seconds):
                await asyncio.sleep(seconds * (1 + SPREAD * self._spread()))
                return Waited()
            case Look():
                return await self._asked("read", self._look())
            case Put():
                return await self._asked("write", self._put(action))
            case _:
                assert_never(action)

    async def _asked(self, verb: str, request: Coroutine[Any, Any, Happening]) -> Happening:
        try:
            async with asyncio.timeout(self._me.terms.patience):
                happened = await request
        except (StatusError, Unreachable, TimeoutError) as error:
            why = str(error) or f"no answer came within {self._me.terms.patience:g} s"
            if self._logged.is_new(verb, why):
                fields = {"lease": str(self._key), "verb": verb, "why": why}
                _log.warning("lease request failed", extra={"fields": fields})
            return Failed()
        self._logged.clear(verb)
        return happened

    async def _look(self) -> Happening:
        try:
            return Found(Record.of(await self._client.get(LEASES, self._key)))
        except NotFound:
            return Found(None)

    async def _put(self, put: Put) -> Happening:
        # Counted from before the request: from when the server wrote it, others count later than we do.
        sent = self._monotonic()
        try:
            return Accepted(Record.of(await self._written(put)), sent)
        except (Conflict, AlreadyExists):
            return Refused()
        except NotFound:
            if put.version:
                return Refused()
            raise  # of a lease that does not exist: its namespace does not, either

    async def _written(self, put: Put) -> Object:
        spec = msgspec.to_builtins(put.spec)
        if put.version:
            patch = {"metadata": {"resourceVersion": put.version}, "spec": spec}
            return await self._client.patch(LEASES, self._key, patch)
        metadata = {"namespace": self._key.namespace, "name": self._key.name}
        return await self._client.create(LEASES, {"metadata": metadata, "spec": spec})

    async def _release(self) -> None:
        """Give the lease up, so that the next one need not wait until it is over."""
        if not isinstance(self._state, Leading) or not self.held():
            return
        record, self._state, self._action = self._state.record, Following(), Look()
        if isinstance(await self._asked("write", self._put(released(record, self._now()))), Refused):
            # A renewal may have been under way when it was cancelled, and have been done all the same.
            match await self._asked("read", self._look()):
                case Found(Record(holder=self._me.identity) as newer):
                    await self._asked("write", self._put(released(newer, self._now())))
                case _:
                    pass


async def _ended(task: asyncio.Task[None]) -> BaseException | None:
    """End a task; what it failed with."""
    task.cancel()
    await asyncio.wait((task,))
    return None if task.cancelled() else task.exception()


# --- for composition roots


def unique_identity() -> str:
    """Who this process is: the host, for people, and something that no other process has ever had."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:12]}"


def boot_seconds() -> float:
    """A clock that only ever goes forward, and goes on while the machine sleeps, where the system has one."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
