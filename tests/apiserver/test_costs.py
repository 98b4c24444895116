"""What a request costs: no more than twice for twice the size, and other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import Iterator

import pytest
from tests.apiserver.costs import REQUESTS, Costly

from holdfast.apiserver.server import Server
from holdfast.meta.exchange import Response

LONGEST_STALL = 0.1
"""How long other requests may wait, in seconds."""

NEGLIGIBLE = 0.01
"""Seconds below which a measurement is mostly noise."""

ROUNDS = 15


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    """The garbage collector runs when it likes, and its time grows with everything else in this process."""
    with warnings.catch_warnings():
        # What other tests left open is not the subject here.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.disable()
    yield
    gc.enable()


class Measured:
    """The time that a request takes the process, and the longest time that the event loop was not available."""

    def __init__(self, costly: Costly, n: int) -> None:
        self.seconds = self.stall = 0.0
        self.answer = asyncio.run(self._measure(costly, n))

    async def _measure(self, costly: Costly, n: int) -> Response:
        server = await Server.open(None)
        token = server.identity.admin_token
        for preparation in costly.preparations(n, token):
            answer = await server.handle(preparation)
            assert answer.status == 201, answer.body[:1000]
        request = costly.request(n, token)
        ticking = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        started = time.process_time()
        answer = await server.handle(request)
        self.seconds = time.process_time() - started
        await asyncio.sleep(0.005)
        ticking.cancel()
        await server.close()
        return answer

    async def _tick(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.002)
            now = time.perf_counter()
            self.stall, last = max(self.stall, now - last), now


@pytest.mark.parametrize("costly", REQUESTS, ids=lambda costly: costly.name)
def test_twice_the_size_costs_no_more_than_twice_and_stalls_no_other_request(costly: Costly) -> None:
    once = twice = stall = float("inf")
    for _ in range(ROUNDS):
        small, large = Measured(costly, costly.size), Measured(costly, 2 * costly.size)
        assert small.answer.status in costly.code, small.answer.body[:1000]
        # What is refused is told without the whole of it.
        assert small.answer.status < 300 or len(small.answer.body) < 500_000
        once, twice, stall = min(once, small.seconds), min(twice, large.seconds), min(stall, large.stall)
        if twice <= max(2.5 * once, NEGLIGIBLE) and stall <= LONGEST_STALL:
            return
    assert twice <= max(2.5 * once, NEGLIGIBLE), f"{once * 1000:.0f} ms, for twice the size {twice * 1000:.0f} ms"
    assert stall <= LONGEST_STALL, f"the event loop was not available for {stall * 1000:.0f} ms"
