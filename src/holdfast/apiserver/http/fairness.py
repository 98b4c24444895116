"""Fairness: limits how many requests run at once, and shares the seats among users.

`Seats` is the pure core: a number of seats, and a queue of waiting requests for each flow (a user).  A free seat goes
to the flow that occupies the fewest, so that a thousand requests of one user delay a request of another user by a
single request.  `Limits` applies it on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Generic, TypeVar

from holdfast.meta.errors import TooManyRequests

T = TypeVar("T")

RETRY_AFTER_SECONDS: Final = 1
WHY: Final = "too many requests, please try again later"


class Place(Enum):
    """The result of asking for a seat."""

    SEATED = auto()
    QUEUED = auto()
    REFUSED = auto()


@dataclass(slots=True)
class _Flow(Generic[T]):
    seated: int = 0
    queue: deque[T] = field(default_factory=deque)


class Seats(Generic[T]):
    """Seats that are shared fairly among flows; a ticket stands for a waiting request."""

    def __init__(self, seats: int, *, queue: int, queues: int, share: int | None = None) -> None:
        """`queue` bounds the waiting requests of one flow, `queues` those of all, `share` the seats of one flow."""
        self._free = seats
        self._share = seats if share is None else share
        self._queue = queue
        self._queues = queues
        self._flows: dict[str, _Flow[T]] = {}
        self._waiting: dict[str, None] = {}
        """Flows with waiting requests, the one that was served longest ago first."""
        self.seated = 0
        self.queued = 0

    def ask(self, flow: str, ticket: Callable[[], T]) -> tuple[Place, T | None]:
        """Take a seat if one is free; else queue with a new ticket, unless the queue is full."""
        own = self._flows.get(flow)
        if own is None:
            own = self._flows[flow] = _Flow()
        if self._free and own.seated < self._share:
            # Waiting requests were given the seats that became free, so no request is overtaken.
            self._free -= 1
            self._sit(own)
            return Place.SEATED, None
        if len(own.queue) >= self._queue or self.queued >= self._queues:
            self._forget(flow, own)
            return Place.REFUSED, None
        mine = ticket()
        own.queue.append(mine)
        self.queued += 1
        self._waiting.setdefault(flow)
        return Place.QUEUED, mine

    def leave(self, flow: str) -> T | None:
        """Give a seat back; returns the ticket of the waiting request that gets it, if there is one."""
        own = self._flows[flow]
        own.seated -= 1
        self.seated -= 1
        self._forget(flow, own)
        chosen = min(self._waiting, key=lambda each: self._flows[each].seated) if self._waiting else ""
        if not self._waiting or self._flows[chosen].seated >= self._share:
            self._free += 1
            return None
        next_flow = self._flows[chosen]
        ticket = next_flow.queue.popleft()
        self.queued -= 1
        del self._waiting[chosen]
        if next_flow.queue:
            self._waiting[chosen] = None
        self._sit(next_flow)
        return ticket

    def give_up(self, flow: str, ticket: T) -> bool:
        """Leave the queue; False if the ticket was given a seat already."""
        own = self._flows.get(flow)
        if own is None or ticket not in own.queue:
            return False
        own.queue.remove(ticket)
        self.queued -= 1
        if not own.queue:
            del self._waiting[flow]
        self._forget(flow, own)
        return True

    def _sit(self, flow: _Flow[T]) -> None:
        flow.seated += 1
        self.seated += 1

    def _forget(self, name: str, flow: _Flow[T]) -> None:
        if not flow.seated and not flow.queue:
            del self._flows[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits.  Administrators have seats of their own, so that users cannot block them, nor they users.

    `bodies` and `large_bodies` bound the request bodies that are in memory, of at most and of more than `small_body`
    bytes; one user may have half of them, since a client may take long to send one.
    """

    seats: int = 256
    admin_seats: int = 256
    bodies: int = 512
    large_bodies: int = 16
    small_body: int = 64 * 1024
    queue: int = 128
    queues: int = 1024
    wait_seconds: float = 15.0
    watches: int = 20_000
    watches_per_user: int = 5_000


class Limits:
    """Applies the bounds; refuses requests beyond them with 429."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self._users = self._seats(self.bounds.seats)
        self._admins = self._seats(self.bounds.admin_seats)
        self._bodies = {
            (admin, large): self._seats(number, share=(number + 1) // 2)
            for admin in (False, True)
            for large, number in ((False, self.bounds.bodies), (True, self.bounds.large_bodies))
        }
        self._watches: dict[str, int] = {}
        self.watches = 0
        self.rejected = 0

    def _seats(self, number: int, *, share: int | None = None) -> Seats[asyncio.Future[None]]:
        return Seats(number, queue=self.bounds.queue, queues=self.bounds.queues, share=share)

    @property
    def seated(self) -> int:
        return self._users.seated + self._admins.seated

    @property
    def queued(self) -> int:
        return self._users.queued + self._admins.queued

    def seat(self, user: str, *, admin: bool = False) -> AbstractAsyncContextManager[None]:
        """Wait for a seat, and hold it while a request is processed."""
        return _Held(self, self._admins if admin else self._users, user)

    def body(self, user: str, *, size: int | None, admin: bool = False) -> AbstractAsyncContextManager[None]:
        """Wait until a body of `size` bytes, or of an unknown size, may be read, and hold its place in memory."""
        large = size is None or size > self.bounds.small_body
        return _Held(self, self._bodies[admin, large], user)

    def begin_watch(self, user: str) -> None:
        """Count a watch, which is long-running and has no seat; `end_watch` must follow."""
        own = self._watches.get(user, 0)
        if own >= self.bounds.watches_per_user or self.watches >= self.bounds.watches:
            raise self._refused()
        self._watches[user] = own + 1
        self.watches += 1

    def end_watch(self, user: str) -> None:
        self.watches -= 1
        self._watches[user] -= 1
        if not self._watches[user]:
            del self._watches[user]

    async def wait(self, seats: Seats[asyncio.Future[None]], user: str, ticket: asyncio.Future[None] | None) -> None:
        """Wait until a ticket gets its seat; without one, refuse."""
        if ticket is None:
            raise self._refused()
        try:
            async with asyncio.timeout(self.bounds.wait_seconds):
                await ticket
        except (TimeoutError, asyncio.CancelledError) as error:
            if not seats.give_up(user, ticket):
                self.leave(seats, user)
            if isinstance(error, TimeoutError):
                raise self._refused() from None
            raise

    def leave(self, seats: Seats[asyncio.Future[None]], user: str) -> None:
        """Give a seat back."""
        ticket = seats.leave(user)
        if ticket is not None and not ticket.done():
            ticket.set_result(None)

    def _refused(self) -> TooManyRequests:
        self.rejected += 1
        return TooManyRequests.of(WHY, retry_after_seconds=RETRY_AFTER_SECONDS)


class _Held(AbstractAsyncContextManager[None]):
    """A seat of a user, for the duration of a block."""

    __slots__ = ("_limits", "_seats", "_user")

    def __init__(self, limits: Limits, seats: Seats[asyncio.Future[None]], user: str) -> None:
        self._limits = limits
        self._seats = seats
        self._user = user

    async def __aenter__(self) -> None:
        place, ticket = self._seats.ask(self._user, _ticket)
        if place is not Place.SEATED:
            await self._limits.wait(self._seats, self._user, ticket)

    async def __aexit__(self, *exc: object) -> None:
        self._limits.leave(self._seats, self._user)


def _ticket() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()
