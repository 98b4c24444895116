"""Turns and bounds: fairness in virtual time, and the event loop's part."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.http.fairness import Bounds, Limits, Place, Seats
from holdfast.meta.errors import TooManyRequests


def simulate(arrivals: Iterable[tuple[float, str]], *, seats: int, service: float) -> dict[str, list[float]]:
    """How long each request of each user waits, in virtual time; every request takes `service`."""
    ids = count()
    shared: Seats[tuple[int, float, str]] = Seats(seats, queue=10_000, queues=100_000)
    events: list[tuple[float, int, str, str]] = []
    waits: dict[str, list[float]] = {}
    for at, user in arrivals:
        heapq.heappush(events, (at, next(ids), "arrive", user))
    while events:
        now, _, what, user = heapq.heappop(events)
        if what == "arrive":
            place, _ = shared.ask(user, partial(lambda *ticket: ticket, next(ids), now, user))
            if place is Place.SEATED:
                waits.setdefault(user, []).append(0.0)
                heapq.heappush(events, (now + service, next(ids), "leave", user))
        elif (ticket := shared.leave(user)) is not None:
            _, since, other = ticket
            waits.setdefault(other, []).append(now - since)
            heapq.heappush(events, (now + service, next(ids), "leave", other))
    assert (shared.seated, shared.queued) == (0, 0)
    return waits


def test_one_request_among_a_thousand_of_another_user_waits_for_one_turn() -> None:
    waits = simulate([*((0.0, "greedy") for _ in range(1000)), (0.5, "modest")], seats=4, service=1.0)
    assert waits["modest"] == [0.5]


def test_users_who_want_all_of_it_share_alike() -> None:
    arrivals = [(0.0, user) for user in ("a", "b", "c") for _ in range(100)]
    waits = simulate(arrivals, seats=6, service=1.0)
    finished_early = {user: sum(wait < 20 for wait in found) for user, found in waits.items()}
    assert max(finished_early.values()) - min(finished_early.values()) <= 6


def test_a_user_alone_has_all_seats() -> None:
    waits = simulate([(0.0, "alone") for _ in range(8)], seats=8, service=1.0)
    assert waits["alone"] == [0.0] * 8


def test_the_requests_of_one_user_are_served_in_order() -> None:
    seats: Seats[int] = Seats(1, queue=10, queues=10)
    numbers = count(1)
    for _ in range(4):
        seats.ask("u", lambda: next(numbers))
    assert [seats.leave("u") for _ in range(4)] == [1, 2, 3, None]


@pytest.mark.parametrize(("queue", "queues", "refused"), [(2, 100, 3), (100, 3, 2), (0, 0, 5)])
def test_queues_are_bounded_for_each_user_and_for_all(queue: int, queues: int, refused: int) -> None:
    seats: Seats[object] = Seats(1, queue=queue, queues=queues)
    assert seats.ask("u", object)[0] is Place.SEATED
    places = [seats.ask("u", object)[0] for _ in range(5)]
    assert places.count(Place.REFUSED) == refused


class Model:
    """Every way in which users come, leave and give up, against the promises of `Seats`."""

    def __init__(self) -> None:
        self.seats: Seats[tuple[str, int]] = Seats(3, queue=4, queues=6)
        self.seated: list[str] = []
        self.waiting: list[tuple[str, int]] = []
        self.ids = count()

    def ask(self, user: str) -> None:
        place, ticket = self.seats.ask(user, lambda: (user, next(self.ids)))
        if place is Place.SEATED:
            assert not self.waiting
            self.seated.append(user)
        elif ticket is not None:
            self.waiting.append(ticket)

    def leave(self, user: str) -> None:
        if user in self.seated:
            self.seated.remove(user)
            ticket = self.seats.leave(user)
            assert (ticket is None) == (not self.waiting)
            if ticket is not None:
                fewest = min(self.seated.count(each) for each, _ in self.waiting)
                assert self.seated.count(ticket[0]) == fewest
                self.waiting.remove(ticket)
                self.seated.append(ticket[0])

    def give_up(self, user: str) -> None:
        mine = next((ticket for ticket in self.waiting if ticket[0] == user), None)
        if mine is not None:
            assert self.seats.give_up(user, mine)
            assert not self.seats.give_up(user, mine)
            self.waiting.remove(mine)


@given(st.lists(st.tuples(st.sampled_from(["ask", "ask", "leave", "give_up"]), st.sampled_from("abc")), max_size=60))
def test_no_seat_is_lost_or_given_twice(steps: list[tuple[str, str]]) -> None:
    model = Model()
    for what, user in steps:
        getattr(model, what)(user)
        assert model.seats.seated == len(model.seated) <= 3
        assert model.seats.queued == len(model.waiting) <= 6
        assert not (model.waiting and len(model.seated) < 3)


SMALL = Bounds(seats=1, admin_seats=1, queue=1, queues=2, wait_seconds=0.02, watches=2, watches_per_user=1)


def test_a_refusal_is_429_and_says_when_to_try_again() -> None:
    async def run() -> None:
        limits = Limits(SMALL)
        async with limits.seat("u"):
            waiting = asyncio.ensure_future(hold(limits, "u"))
            await asyncio.sleep(0)
            with pytest.raises(TooManyRequests) as caught:
                async with limits.seat("u"):
                    pass
            assert caught.value.retry_after_seconds == 1
        await waiting
        assert (limits.seated, limits.queued, limits.rejected) == (0, 0, 1)

    asyncio.run(run())


async def hold(limits: Limits, user: str) -> None:
    async with limits.seat(user):
        await asyncio.sleep(0)


def test_who_waits_too_long_is_refused_and_leaves_no_trace() -> None:
    async def run() -> None:
        limits = Limits(SMALL)
        async with limits.seat("u"):
            with pytest.raises(TooManyRequests):
                await hold(limits, "other")
        assert (limits.seated, limits.queued) == (0, 0)
        await hold(limits, "u")

    asyncio.run(run())


def test_who_goes_away_while_waiting_leaves_no_trace() -> None:
    async def run() -> None:
        limits = Limits(Bounds(seats=1, wait_seconds=5))
        stack = AsyncExitStack()
        await stack.enter_async_context(limits.seat("u"))
        gone, kept = (asyncio.ensure_future(hold(limits, "other")) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        # The seat becomes free in the same turn, so it may be given to the one who is going.
        await stack.aclose()
        await kept
        assert gone.cancelled() or gone.done()
        assert (limits.seated, limits.queued) == (0, 0)

    asyncio.run(run())


def test_administrators_have_seats_of_their_own() -> None:
    async def run() -> None:
        limits = Limits(SMALL)
        async with limits.seat("u"), limits.seat("admin", admin=True):
            assert limits.seated == 2

    asyncio.run(run())


def test_watches_are_counted_by_user_and_in_all() -> None:
    limits = Limits(SMALL)
    limits.begin_watch("a")
    with pytest.raises(TooManyRequests):
        limits.begin_watch("a")
    limits.begin_watch("b")
    with pytest.raises(TooManyRequests):
        limits.begin_watch("c")
    limits.end_watch("a")
    limits.begin_watch("c")
    assert limits.watches == 2
